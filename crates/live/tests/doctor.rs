//! What is told of a machine is what it can do.

#[test]
fn every_ability_has_a_price_and_a_remedy() {
    for ability in queuescope_live::abilities() {
        println!("{ability:?}");
        assert!(!ability.costs.is_empty() && !ability.grant.is_empty(), "{ability:?}");
    }
}
