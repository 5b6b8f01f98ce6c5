//! Random reports, whole, cut and changed.

use super::model::{Model, group};
use super::{reference, view};
use proptest::prelude::*;

/// Changes of single bytes, by their place from 0 to 1.
fn changes() -> impl Strategy<Value = Vec<(f64, u8)>> {
    prop::collection::vec((0.0..1.0, any::<u8>()), 1..4)
}

fn changed(bytes: &[u8], changes: &[(f64, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, value) in changes {
        let at = (*place * bytes.len() as f64) as usize;
        bytes[at] = *value;
    }
    bytes
}

proptest! {
    #[test]
    fn reports_have_the_fields_that_they_were_made_from(Model { bytes, expected } in group()) {
        let (header, reports) = expected;
        let expected = Ok((header, reports.into_iter().map(Ok).collect()));
        prop_assert_eq!(view::reports(&bytes), expected.clone());
        prop_assert_eq!(reference::reports(&bytes), expected);
    }

    #[test]
    fn changed_reports_are_read_as_by_the_reference(Model { bytes, .. } in group(), changes in changes(), cut in 0.0..1.5) {
        let mut bytes = changed(&bytes, &changes);
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        prop_assert_eq!(view::reports(&bytes), reference::reports(&bytes));
    }

    #[test]
    fn any_bytes_are_read_as_by_the_reference(mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Some(first) = bytes.first_mut() {
            *first = 0x20 | *first & 0x0f;
        }
        prop_assert_eq!(view::reports(&bytes), reference::reports(&bytes));
    }

    /// Of a payload that is cut, the first reports are the same, and at most one error follows.
    #[test]
    fn a_cut_payload_has_the_same_reports_and_fewer(Model { bytes, expected } in group()) {
        let (header, whole) = expected;
        for length in 0..bytes.len() {
            let Ok((own, reports)) = view::reports(&bytes[..length]) else {
                prop_assert!(length <= 8);
                continue;
            };
            prop_assert_eq!(&own, &header);
            let read: Vec<_> = reports.iter().filter_map(|report| report.as_ref().ok()).collect();
            // One that reaches to the end may be cut without notice if enough is left.
            for (at, report) in read.iter().enumerate() {
                if at + 1 < whole.len() || length < 1020 {
                    prop_assert_eq!(*report, &whole[at]);
                }
            }
            let errors: Vec<_> = reports.iter().filter_map(|report| report.as_ref().err()).collect();
            prop_assert!(errors.len() <= 1);
            prop_assert!(errors.is_empty() || reports.last().is_some_and(Result::is_err));
            prop_assert!(read.len() + errors.len() <= whole.len());
        }
    }
}
