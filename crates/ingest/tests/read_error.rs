//! A reader that fails differs from a capture that is cut.

use queuescope_ingest::{Listener, OpenedCapture, Queue, Source};
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_sim::Output;
use queuescope_wire::{Departure, FlowId, KeyMask, MaskedKey, Nanos, Packet};
use std::convert::Infallible;
use std::io::{self, Cursor, ErrorKind, Read};

struct Ignore;

impl Sink for Ignore {
    fn dropped(&mut self, _: &Dropped) {}
    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

impl Output for Ignore {
    fn departed(&mut self, _: &Departure) {}
}

impl Listener for Ignore {
    type Key = MaskedKey;
    type Error = Infallible;

    fn intern(&mut self, _: &MaskedKey, _: Nanos) -> FlowId {
        FlowId(0)
    }
}

/// Fails as a connection does that the other side resets.
struct Reset;

impl Read for Reset {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::ConnectionReset.into())
    }
}

fn read(capture: impl Read + Send + 'static) -> Source {
    let capture = OpenedCapture::from_reader(capture, "it", "1mbps".parse().unwrap(), None).unwrap();
    let Ok(source) = capture.replay(&Queue::default(), KeyMask::WHOLE, &mut Ignore, &mut |_, _| ());
    source
}

#[test]
fn a_failed_reader_differs_from_a_cut_capture() {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    let whole = read(Cursor::new(bytes.clone()));
    assert_eq!((whole.input.damage, whole.read_error), (None, None));
    // A packet of 60 bytes, of which 4 are there.
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 60, 0, 0, 0, 1, 2, 3, 4]);
    let cut = read(Cursor::new(bytes.clone()));
    assert!(cut.input.damage.is_some() && cut.read_error.is_none(), "{:?}", cut.input.damage);
    let failed = read(Cursor::new(bytes).chain(Reset));
    assert!(failed.input.damage.is_some());
    assert_eq!(failed.read_error, Some(ErrorKind::ConnectionReset));
}
