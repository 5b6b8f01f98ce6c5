//! Reports of switches as hops of packets.
//!
//! Input: a byte with options, and then datagrams: the time since the one before and the length, in two bytes each, and the payload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_recording::{HopLog, HopOptions, HopReader, Occupancy};
use queuescope_wire::telemetry::{DscpMark, Marks};
use queuescope_wire::{ByteCount, Nanos};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, mut data)) = input.split_first() else { return };
    let mut options = HopOptions::default();
    options.marks = Marks {
        udp_port: (choice & 1 != 0).then_some(5000),
        dscp: (choice & 2 != 0).then_some(DscpMark { value: 0x17, mask: 0x3f }),
        ..Marks::default()
    };
    options.unit = if choice & 4 != 0 { Nanos(1_000) } else { Nanos(1) };
    options.time_bits = [16, 32, 48, 64][usize::from(choice >> 3 & 3)];
    options.occupancy = if choice & 32 != 0 { Occupancy::Packets } else { Occupancy::Bytes(ByteCount(80)) };
    let mut reader = HopReader::new(&options);
    let mut arrival = Nanos(if choice & 64 != 0 { u64::MAX - 1_000 } else { 1_700_000_000_000_000_000 });
    let (mut datagrams, mut passed) = (0, 0);
    while let Some((&[t0, t1, l0, l1], rest)) = data.split_first_chunk() {
        arrival = arrival.saturating_add(Nanos(u64::from(u16::from_be_bytes([t0, t1])) << 20));
        let length = usize::from(u16::from_be_bytes([l0, l1])).min(rest.len());
        let (payload, rest) = rest.split_at(length);
        data = rest;
        datagrams += 1;
        let read = reader.read(arrival, payload, &mut |_, hop| {
            passed += 1;
            assert!(hop.departure.enqueued <= hop.departure.dequeued);
            assert!(hop.is_timed || hop.departure.dequeued == arrival);
            Ok::<_, ()>(())
        });
        assert_eq!(read, Ok(()));
    }
    let counts = reader.counts();
    assert_eq!((counts.datagrams, counts.hops), (datagrams, passed));
    assert!(counts.untimed <= counts.hops && counts.switches <= HopLog::SWITCHES as u64);
});
