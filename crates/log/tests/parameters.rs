//! Parameters of definitions: `{switch}` in a text and a value for it.

use proptest::prelude::*;
use queuescope_log::{Definitions, Schema};

const PATH: &str = r#"
about = "packets that passed a switch"
[parameters]
switch = { about = "the number of the switch" }
limit = { about = "up to this many are normal", default = "0" }
[[filter]]
name = "off_path_{switch}"
expression = "switch_1 == {switch} and dst_port in {80, 443} or switch_2 == {switch}"
[[aggregate]]
name = "strays_{switch}"
function = "count"
filter = "off_path_{switch}"
[[trigger]]
name = "path_{switch}"
condition = "strays_{switch} > {limit}"
"#;

fn read(values: &[(&str, &str)]) -> Result<Definitions, String> {
    let mut definitions = Definitions::new(Schema::packet());
    match definitions.add_text_with("path.toml", PATH, values) {
        Ok(()) => Ok(definitions),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn values_take_the_place_of_their_names() {
    let definitions = read(&[("switch", "7")]).unwrap();
    let filter = &definitions.filters()[0];
    assert_eq!(filter.name, "off_path_7");
    assert_eq!(filter.text, "switch_1 == 7 and dst_port in {80, 443} or switch_2 == 7");
    assert!(definitions.text().contains("strays_7 > 0"), "{}", definitions.text());
    let definitions = read(&[("switch", "8"), ("limit", "20"), ("switch", "9")]).unwrap();
    assert!(definitions.text().contains("strays_9 > 20"), "the last counts: {}", definitions.text());
}

#[test]
fn one_text_is_added_for_several_values() {
    let mut definitions = Definitions::new(Schema::packet());
    for switch in ["7", "8", "9"] {
        definitions.add_text_with("path.toml", PATH, &[("switch", switch)]).unwrap();
    }
    let names: Vec<_> = definitions.triggers().iter().map(|trigger| trigger.name.as_str()).collect();
    assert_eq!(names, ["path_7", "path_8", "path_9"]);
    let error = definitions.add_text_with("path.toml", PATH, &[("switch", "8")]).unwrap_err().to_string();
    assert!(error.contains("two filters are named 'off_path_8'"), "{error}");
    assert_eq!(definitions.filters().len(), 3);
}

#[test]
fn wrong_values_are_errors() {
    for (values, expected) in [
        (&[][..], "`switch` has no value"),
        (&[("switch", "7"), ("swich", "7")][..], "there is no parameter `swich`"),
        (&[("switch", "7\"")][..], "cannot be a value of `switch`"),
        (&[("switch", "7\n")][..], "cannot be a value of `switch`"),
        (&[("switch", "seven")][..], "'seven' is neither a value of `switch_1` nor"),
    ] {
        let error = read(values).unwrap_err();
        assert!(error.contains(expected), "{error} and not {expected}");
    }
    let near = read(&[("switch", "7"), ("swich", "7")]).unwrap_err();
    assert!(near.contains("did you mean `switch`?"), "{near}");
    // Errors in the resulting text show it with the values.
    assert!(read(&[("switch", "seven")]).unwrap_err().contains("off_path_seven"));
    let text = "[parameters]\nswitch = { default = \"1\" }";
    let error = Definitions::parse("none.toml", text, Schema::packet()).unwrap_err().to_string();
    assert!(error.contains("missing field `about`"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Values are inserted once: braces in a value are not parameters.
    #[test]
    fn values_are_not_searched_for_parameters(value in "[a-z{}_]{0,12}") {
        let text = "[parameters]\na = { about = '' }\nb = { about = '' }\n[[filter]]\nname = 'f'\nexpression = 'ttl == {a}{b}'";
        let mut definitions = Definitions::new(Schema::packet());
        let error = definitions.add_text_with("t", text, &[("a", &value), ("b", "{a}")]).unwrap_err().to_string();
        let expected = format!("ttl == {value}{{a}}");
        prop_assert!(error.contains(&expected), "{}", error);
    }
}
