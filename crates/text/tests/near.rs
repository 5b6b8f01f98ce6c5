//! The correct name that is most similar to a wrong one.

use queuescope_text::nearest;

#[test]
fn the_nearest_name_is_found_if_it_is_similar() {
    let names = ["rate", "delay", "limit", "discipline", "fq-codel", "src_ip", "dst_ip", "dst_port"];
    let near = |wrong| nearest(wrong, names.iter().copied());
    assert_eq!(near("rates"), Some("rate"));
    assert_eq!(near("dleay"), Some("delay"));
    assert_eq!(near("dicsiplin"), Some("discipline"));
    assert_eq!(near("DST_PROT"), Some("dst_port"));
    assert_eq!(near("bandwidth"), None);
    assert_eq!(near("name"), None, "half of it is other than `rate`");
}

#[test]
fn how_words_are_joined_matters_only_between_equals() {
    let near = |wrong| nearest(wrong, ["fq-codel", "dstPort", "dst_port"].into_iter());
    assert_eq!(near("fqcodel"), Some("fq-codel"));
    assert_eq!(near("FQ_CoDel"), Some("fq-codel"));
    assert_eq!(near("dst_prot"), Some("dst_port"));
}

#[test]
fn an_empty_or_one_letter_or_very_long_name_has_no_nearest() {
    let near = |wrong: &str| nearest(wrong, ["ts", "rate", ""].into_iter()).is_some();
    assert!(near("rat"));
    assert!(!near("") && !near("a") && !near("-"));
    assert!(!near(&"rate".repeat(1000)) && !near(&"ts".repeat(100)));
}
