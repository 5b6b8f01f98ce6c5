//! Users' schemas: where attributes are, and that any text is either read or refused.

use proptest::prelude::*;
use queuescope_log::{AttributeId, Kind, Order, Place, Schema};

const PROBE: &str = r#"
name = "probe"
doc = "what a probe sends"
time = "seen"
record-size = 40

[[attribute]]
name = "seen"
kind = "time"
doc = "when"

[[attribute]]
name = "version"
kind = "u4"

[[attribute]]
name = "flags"
kind = "u4"
values = { lost = 1, late = 2 }
aliases = ["state"]

[[attribute]]
name = "loss"
kind = "f32"
order = "little"

[[attribute]]
name = "from"
kind = "address"
offset = 16

[[attribute]]
name = "from_low"
kind = "ipv4"
view = "from"
bit = 96

[[attribute]]
name = "rest"
kind = "bytes6"
"#;

#[test]
fn attributes_are_adjacent_unless_they_have_an_offset() {
    let schema = Schema::parse("probe.toml", PROBE).unwrap();
    let place = |name: &str| schema.attribute(schema.find(name).unwrap()).place;
    let at = |offset, bit, bits, order| Place { offset, bit, bits, order };
    assert_eq!(place("seen"), at(0, 0, 64, Order::Big));
    assert_eq!(place("version"), at(8, 0, 4, Order::Big));
    assert_eq!(place("flags"), at(8, 4, 4, Order::Big));
    assert_eq!(place("loss"), at(9, 0, 32, Order::Little));
    assert_eq!(place("from"), at(16, 0, 128, Order::Big));
    assert_eq!(place("from_low"), at(28, 0, 32, Order::Big));
    assert_eq!(place("rest"), at(32, 0, 48, Order::Big));
    assert_eq!((schema.record_size(), schema.name(), schema.doc()), (40, "probe", "what a probe sends"));
    assert_eq!((schema.time(), schema.find("state")), (Some(AttributeId(0)), Some(AttributeId(2))));
    assert_eq!(schema.find("nothing"), None);
    assert_eq!(schema.attribute(AttributeId(2)).key_of("LATE"), Ok(2));
    assert_eq!(schema.attribute(AttributeId(3)).kind, Kind::Float);
    let mut record = [0; 40];
    record[28..32].copy_from_slice(&[10, 0, 0, 1]);
    record[26..28].copy_from_slice(&[0xff; 2]);
    record[9..13].copy_from_slice(&0.25f32.to_le_bytes());
    record[8] = 0x42;
    let text = |name: &str| {
        let id = schema.find(name).unwrap();
        schema.attribute(id).text_of(schema.key(id, &record))
    };
    assert_eq!(
        ["version", "flags", "loss", "from", "from_low"].map(text),
        ["4", "late", "0.25", "10.0.0.1", "10.0.0.1"]
    );
}

#[test]
fn a_record_is_as_long_as_its_attributes_by_default() {
    let schema = Schema::parse("x", "name = \"x\"\n[[attribute]]\nname = \"a\"\nkind = \"u12\"\noffset = 3").unwrap();
    assert_eq!((schema.record_size(), schema.time()), (5, None));
}

/// The text of a schema with some of its lines swapped, repeated or removed, or with other digits.
fn mutated() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..6u8, 0..300u32);
    let texts = vec![PROBE, include_str!("common/every-kind.toml"), include_str!("../src/schema/packet.toml")];
    (prop::sample::select(texts), prop::collection::vec(change, 1..5)).prop_map(|(text, changes)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (a, b, kind, number) in changes {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match kind {
                0 => lines[a].clear(),
                1 => lines.swap(a, b),
                2 => {
                    let copy = lines[a].clone();
                    lines.insert(b, copy);
                }
                3 => {
                    let end = lines[a].find(|c: char| c.is_ascii_digit());
                    if let Some(end) = end {
                        let rest = lines[a][end..].trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
                        lines[a] = format!("{}{number}{rest}", &lines[a][..end]);
                    }
                }
                4 => lines.insert(b, format!("offset = {number}")),
                _ => lines.insert(b, format!("bit = {}", number / 4)),
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_is_read_or_refused(text in mutated(), noise in prop::collection::vec(any::<u8>(), 4096)) {
        match Schema::parse("mutated.toml", &text) {
            Ok(schema) => {
                let mut record = noise[..schema.record_size()].to_vec();
                for (id, attribute) in schema.iter().filter(|(_, attribute)| attribute.is_comparable()) {
                    prop_assert!(attribute.place.end() as usize <= schema.record_size());
                    let key = schema.key(id, &record);
                    prop_assert!(key <= attribute.highest_key());
                    schema.reader(id).write(&mut record, key);
                    prop_assert_eq!(schema.key(id, &record), key);
                }
            }
            Err(error) => prop_assert!(error.to_string().contains('×')),
        }
    }

    #[test]
    fn any_text_is_a_schema_or_refused(text in "(\\PC|\n|\\[\\[attribute\\]\\]|name|kind|=|\"|u8){0,40}") {
        if let Err(error) = Schema::parse("text", &text) {
            prop_assert!(error.count() > 0);
        }
    }
}
