//! Random INT headers, whole, cut and changed.

use super::model::{Model, int};
use super::{reference, view};
use proptest::prelude::*;
use queuescope_wire::telemetry::{IntHeader, IntHeaders, MalformedInt};

fn any_int() -> impl Strategy<Value = Model<(reference::Fields, Vec<reference::Fields>)>> {
    (0..4u64, any::<u16>()).prop_flat_map(|(npt, value)| int(npt, value))
}

proptest! {
    #[test]
    fn headers_have_the_fields_that_they_were_made_from(
        Model { bytes, expected } in any_int(), behind in prop::collection::vec(any::<u8>(), 0..20)
    ) {
        let bytes = [bytes, behind].concat();
        prop_assert_eq!(view::int(&bytes), Ok(expected.clone()));
        prop_assert_eq!(reference::int(&bytes), Ok(expected));
    }

    #[test]
    fn changed_headers_are_read_as_by_the_reference(
        Model { mut bytes, .. } in any_int(), at in 0..20usize, value: u8, cut in 0.0..1.5
    ) {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        prop_assert_eq!(view::int(&bytes), reference::int(&bytes));
    }

    /// Of headers that are cut, the first hops are the same, and what is missing is counted.
    #[test]
    fn cut_headers_have_the_same_hops_and_fewer(Model { bytes, expected } in any_int()) {
        let (mut fields, whole) = expected;
        for length in 0..bytes.len() {
            let read = view::int(&bytes[..length]);
            prop_assert_eq!(&read, &reference::int(&bytes[..length]));
            let Ok((own, hops)) = read else {
                prop_assert!(length < 16);
                continue;
            };
            if own.contains_key("hop_count") {
                fields.insert("missing", (bytes.len() - length).to_string());
                prop_assert_eq!(&own, &fields);
            }
            prop_assert!(hops.len() < whole.len().max(1));
            prop_assert_eq!(&hops[..], &whole[..hops.len()]);
        }
    }

    /// However long the source's own metadata are, a caller that knows their length gets all hops.
    #[test]
    fn the_sources_own_metadata_may_be_longer_than_a_hop(hops in 1..6usize, own in 0..9usize, instructions in 1..5u32) {
        let bitmap = [0x8000u16, 0x9000, 0xd000, 0xe100][instructions as usize - 1];
        let hop_words = instructions as usize;
        let stack = hops * hop_words + own;
        let mut bytes = vec![0x20, 0, hop_words as u8, 7, (bitmap >> 8) as u8, 0, 0, 1, 0x80, 0, 0, 0];
        bytes.extend((0..stack).flat_map(|word| (word as u32).to_be_bytes()));
        let md = queuescope_wire::telemetry::IntMd::read(&bytes, bytes.len()).unwrap();
        let read: Vec<_> = md.hops_with(own).unwrap().collect();
        prop_assert_eq!(read.len(), hops);
        for (at, hop) in read.iter().enumerate() {
            prop_assert_eq!(hop.node, Some((at * hop_words) as u32));
            prop_assert_eq!(hop.domain_specific.len(), if at + 1 == hops { own * 4 } else { 0 });
        }
        let wrong = own + 1;
        if hop_words > 1 {
            let stack_words = stack;
            prop_assert_eq!(md.hops_with(wrong), Err(MalformedInt::Stack { stack_words, hop_words, source_only: wrong }));
        }
    }
}

#[test]
fn a_header_without_hops_has_none() {
    let bytes = [0x10, 3, 0, 0, 0x20, 0, 2, 8, 0x90, 0, 0, 0, 0, 0, 0, 0];
    let headers = IntHeaders::read(&bytes).unwrap();
    let IntHeader::Md(md) = headers.header else { panic!("{headers:?}") };
    assert_eq!((md.hops().len(), md.hop_count(), md.hops().next()), (0, 0, None));
}
