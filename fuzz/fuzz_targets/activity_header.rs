//! The header of ABC on any frame: what an exit sends is what came into the edge, and an edge refuses what a node behind it would.
//!
//! Input: two bytes of activity, then the frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_wire::ActivityHeader;

fuzz_target!(|input: &[u8]| {
    let Some((&activity, frame)) = input.split_first_chunk() else { return };
    let header = ActivityHeader(i16::from_be_bytes(activity));
    let read = ActivityHeader::read(frame);
    let mut taken = frame.to_vec();
    match (read, ActivityHeader::take(&mut taken)) {
        (Ok(Some(own)), Ok((Some(same), rest))) => {
            assert_eq!(own, same);
            // The frame is as its header was pushed, to the last byte.
            assert_eq!(own.pushed(rest), frame);
        }
        (Ok(None), Ok((None, rest))) => assert_eq!(rest, frame),
        (Err(why), Err(same)) => assert_eq!(why, same),
        other => panic!("{other:?}"),
    }
    let mut pushed = header.pushed(frame);
    if frame.len() < 14 {
        assert_eq!(pushed, frame);
        return;
    }
    match (read, ActivityHeader::take(&mut pushed)) {
        (Ok(None), Ok((found, rest))) => assert_eq!((found, &*rest), (Some(header), frame)),
        (Ok(Some(_)) | Err(_), Err(_)) => {}
        other => panic!("{other:?}"),
    }
});
