//! Streams from outside: malformed ones are errors.

use super::{ENOUGH, IpcLimits, READ, answer, any_record, log, question};
use proptest::prelude::*;
use proptest::sample::Index;
use queuescope_fleet::answer::{Extent, IpcError, Merged, Merging, Partial};
use queuescope_recording::query::Records;

/// A change of some bytes.
#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Flip(Index, u8),
    /// A length or an offset.
    Word(Index, i32),
    Cut(Index),
    Remove(Index, u8),
    Insert(Index, Vec<u8>),
    Repeat(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let word = prop_oneof![any::<i32>(), -20..20i32, Just(i32::MAX), Just(i32::MIN)];
    prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        4 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        4 => (any::<Index>(), word).prop_map(|(at, word)| Change::Word(at, word)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => (any::<Index>(), 1..20u8).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => any::<(Index, Index)>().prop_map(|(at, from)| Change::Repeat(at, from)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match change {
        Change::Set(at, byte) => bytes[at.index(length)] = *byte,
        Change::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
        Change::Word(at, word) => {
            let at = at.index(length) / 4 * 4;
            let end = (at + 4).min(length);
            bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
        }
        Change::Cut(at) => bytes.truncate(at.index(length)),
        Change::Remove(at, count) => {
            let at = at.index(length);
            bytes.drain(at..(at + usize::from(*count)).min(length));
        }
        Change::Insert(at, more) => {
            let at = at.index(length);
            bytes.splice(at..at, more.iter().copied());
        }
        Change::Repeat(at, from) => {
            let from = from.index(length) / 8 * 8;
            let (at, copy) = (at.index(length) / 8 * 8, bytes[from..(from + 64).min(length)].to_vec());
            bytes.splice(at..at, copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        question in question(), records in prop::collection::vec(any_record(), 0..20),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let asked = question.asked();
        let part = answer(&asked, Records::Log(&log(&records)), Extent::default(), ENOUGH);
        let limits = IpcLimits { rows: 50, ..READ };
        let mut bytes = part.encode(&asked).expect("it can be written");
        changes.iter().for_each(|change| apply(&mut bytes, change));
        let mut merging = Merging::new(&asked);
        if let Ok(read) = Partial::decode(&bytes, &asked, limits) {
            prop_assert!(read.groups.len() <= limits.rows);
            merging.add(&read).expect("what was read can be added");
        }
        merging.add(&part).expect("it is a part of this answer");
        let merged = merging.finish();

        let mut bytes = merged.encode(&asked).expect("times are before 2262");
        changes.iter().for_each(|change| apply(&mut bytes, change));
        if let Ok(read) = Merged::decode(&bytes, &asked, limits) {
            prop_assert!(read.groups.len() <= limits.rows);
            let of_question = (asked.keys().len(), asked.functions().len());
            prop_assert!(read.groups.iter().all(|(keys, values)| (keys.len(), values.len()) == of_question));
        }
    }

    #[test]
    fn any_bytes_never_panic(question in question(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let asked = question.asked();
        prop_assert!(Partial::decode(&bytes, &asked, READ).is_err());
        prop_assert!(Merged::decode(&bytes, &asked, READ).is_err());
    }

    #[test]
    fn each_shorter_stream_is_malformed(question in question(), records in prop::collection::vec(any_record(), 0..20), at in any::<Index>()) {
        let asked = question.asked();
        let part = answer(&asked, Records::Log(&log(&records)), Extent::default(), ENOUGH);
        let bytes = part.encode(&asked).expect("it can be written");
        let cut = Partial::decode(&bytes[..at.index(bytes.len())], &asked, READ);
        prop_assert!(matches!(cut, Err(IpcError::Malformed(_))), "{:?}", cut);
    }
}
