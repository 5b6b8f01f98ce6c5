//! Limits on groups: the answer names what it lacks.

use super::{ENOUGH, READ, answer, any_record, log, schema};
use proptest::prelude::*;
use queuescope_fleet::answer::{Asked, Extent, IpcError, IpcLimits, Merging, Partial, Texts};
use queuescope_log::Number;
use queuescope_recording::query::{PartLimits, Records};
use queuescope_wire::ByteCount;

fn asked() -> Asked {
    let texts = Texts { select: "count,sum(length)", group: "slot,delta", ..Texts::default() };
    Asked::new(&texts, schema()).expect("it is valid")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_highest_groups_stay_and_the_others_are_counted(
        records in prop::collection::vec(any_record(), 0..80), groups in 0..6usize,
        memory in prop_oneof![Just(1u64 << 30), Just(1)],
    ) {
        let asked = asked();
        let log = log(&records);
        let all = answer(&asked, Records::Log(&log), Extent::default(), ENOUGH);
        // With little memory there are several passes.
        let limits = PartLimits { groups, memory: ByteCount(memory) };
        let part = answer(&asked, Records::Log(&log), Extent::default(), limits);
        prop_assert_eq!(part.packets, records.len() as u64);
        prop_assert_eq!(part.groups.len(), groups.min(all.groups.len()));
        prop_assert_eq!(part.left_out, (all.groups.len() - part.groups.len()) as u64);
        prop_assert!(part.groups.is_sorted_by_key(|(keys, _)| keys.clone()));
        let counts = |part: &Partial| part.groups.iter().map(|(_, states)| states[0].words().map(|words| words[0])).collect::<Vec<_>>();
        let (mut kept, mut every) = (counts(&part), counts(&all));
        kept.sort_unstable_by(|a, b| b.cmp(a));
        every.sort_unstable_by(|a, b| b.cmp(a));
        prop_assert_eq!(&kept[..], &every[..kept.len()]);
        prop_assert!(part.groups.iter().all(|group| all.groups.contains(group)));
        let is_noted = part.notes.iter().any(|note| note.contains("groups were left out"));
        prop_assert_eq!(is_noted, part.left_out > 0);
    }
}

#[test]
fn what_one_host_left_out_is_in_the_merged_answer() {
    let asked = asked();
    let records: Vec<_> = (0..5u128).map(|slot| super::record([0, 0, slot, 0, 0, 0, 0, 0])).collect();
    let few = PartLimits { groups: 2, ..ENOUGH };
    let mut merging = Merging::new(&asked);
    for limits in [few, ENOUGH] {
        merging.add(&answer(&asked, Records::Log(&log(&records)), Extent::default(), limits)).expect("it is a part");
    }
    let merged = merging.finish();
    assert_eq!((merged.packets, merged.left_out, merged.groups.len()), (10, 3, 5));
    let counts: Vec<_> = merged.groups.iter().map(|(_, values)| values[0]).collect();
    assert_eq!(counts, [2, 2, 1, 1, 1].map(Number::Unsigned), "of equal groups, the first ones stay");
}

#[test]
fn answers_beyond_the_readers_limits_are_refused() {
    let asked = asked();
    let records: Vec<_> = (0..9u128).map(|slot| super::record([0, 0, slot, 0, 0, 0, 0, 0])).collect();
    let part = answer(&asked, Records::Log(&log(&records)), Extent::default(), ENOUGH);
    let bytes = part.encode(&asked).expect("it can be written");
    let decode = |limits| Partial::decode(&bytes, &asked, limits).map(|part| part.groups.len());
    assert_eq!(decode(IpcLimits { rows: 9, bytes: bytes.len() }), Ok(9));
    assert_eq!(decode(IpcLimits { rows: 8, ..READ }), Err(IpcError::Rows { most: 8 }));
    let (most, found) = (bytes.len() - 1, bytes.len());
    assert_eq!(decode(IpcLimits { bytes: most, ..READ }), Err(IpcError::Bytes { bytes: found, most }));
}

#[test]
fn an_answer_that_is_no_longer_wanted_ends() {
    let asked = asked();
    let log = log(&vec![super::record([0; 8]); 4096]);
    let ended = asked.evaluate(Records::Log(&log), Extent::default(), ENOUGH, &|| false);
    assert_eq!(ended.map_err(|error| error.kind()), Err(std::io::ErrorKind::Interrupted));
}
