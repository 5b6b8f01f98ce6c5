//! Captures with holes of zeros and with wrong clocks, sent through a queue as `queuescope analyze` does.
//!
//! Packets arrive and depart in order of time, each one departs or is dropped, and the counts and notes of the report add
//! up. In a capture whose times are near one another, all packets behind a hole are found.
//!
//! The first [`OPTIONS`] bytes are options. What follows is a capture file, or, if the second bit of the first byte is set,
//! describes one: [`ITEM`] bytes for each packet or hole. Missing bytes are 0.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_ingest::{Listener, OpenedCapture, Queue};
use queuescope_pcap::Record;
use queuescope_queue::{Dropped, Limit, MarkReason, Sink};
use queuescope_scenario::Overhead;
use queuescope_sim::Output;
use queuescope_wire::parse::Frame;
use queuescope_wire::{ByteCount, Departure, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet, Rate};
use std::convert::Infallible;
use std::io::Cursor;
use std::ops::Range;

/// Bytes of the options, and of a packet or hole.
const OPTIONS: usize = 8;
const ITEM: usize = 8;
/// An input is abandoned after this many packets or bytes: a few bytes can be decompressed to gigabytes.
const ENOUGH: u64 = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let (given, rest) = data.split_at(data.len().min(OPTIONS));
    let mut options = [0; OPTIONS];
    options[..given.len()].copy_from_slice(given);
    let built = (options[0] & 2 != 0).then(|| Built::new(rest, options[0]));
    let bytes = built.as_ref().map_or(rest, |built| &built.bytes).to_vec();
    let rate = Rate::from_bits_per_second(1 << (options[1] & 63)).expect("it is above 0");
    let only = [None, None, Some("tcp"), Some("length > 100")][usize::from(options[2] & 3)];
    let Ok(capture) = OpenedCapture::from_reader(Cursor::new(bytes), "fuzz", rate, only) else {
        assert!(built.is_none(), "it has a header");
        return;
    };
    let queue = queue(&options);
    let flows = [Granularity::FiveTuple];
    let mask = queue.mask(&flows);
    let mut seen = Seen { is_fifo: queue.is_fifo(), ..Seen::new(mask, &flows) };
    let Ok(source) = capture.replay(&queue, mask, &mut seen, &mut |_, _| ()) else { return };
    let Seen { frames, left_out, packets, departed, dropped, bytes, span, .. } = seen;
    let note = |reason: &str| {
        let mut notes = source.skipped.iter().filter(|note| note.reason == reason);
        let count = notes.next().map_or(0, |note| note.count);
        assert!(notes.next().is_none(), "one note of a kind");
        count
    };
    assert_eq!(source.packets, frames.len() as u64 - left_out);
    assert_eq!(departed + dropped, packets);
    assert_eq!(source.bytes, bytes);
    assert!(source.span.0 <= source.span.1);
    if let Some((first, last)) = span {
        assert!(source.span.0 <= first && last <= source.span.1);
    }
    assert!(source.skipped.iter().all(|note| note.count > 0 && !note.meaning.is_empty()));
    let wrong = ["clock_steps", "time_outliers", "untimed", "time_out_of_range"].map(note);
    assert!(wrong.iter().sum::<u64>() <= frames.len() as u64);
    assert!(note("time_ran_back") <= source.packets);
    assert!(note("zeros") == 0 || source.input.damage.is_some());
    let Some(Built { packets, holes, zeros, is_exact: true, .. }) = built else { return };
    assert_eq!(frames, packets, "no packet is lost");
    assert_eq!(note("zeros"), holes);
    assert_eq!(source.input.damage.is_some(), holes > 0, "{:?}", source.input.damage);
    if holes > 0 {
        let meaning = source.skipped.iter().find(|note| note.reason == "zeros").map(|note| note.meaning.clone());
        let digits: String = meaning.into_iter().flat_map(|text| text.chars().collect::<Vec<_>>()).collect();
        let total = digits.split_once('(').map(|(_, text)| text.chars().take_while(|sign| *sign != ' '));
        let total: String = total.into_iter().flatten().filter(char::is_ascii_digit).collect();
        assert_eq!(total, zeros.to_string(), "{digits}");
    }
});

/// The queue of an analysis.
fn queue(options: &[u8; OPTIONS]) -> Queue {
    let speedup = ["1", "50", "0.1", "999999999.5"][usize::from(options[3] & 3)];
    let overhead = [Overhead::None, Overhead::Ethernet][usize::from(options[3] >> 2 & 1)];
    let limit = match options[4] {
        0 => Limit::None,
        few @ ..64 => Limit::Packets(u64::from(few)),
        some @ ..128 => Limit::Bytes(ByteCount(u64::from(some) << 6)),
        time => Limit::Time(Nanos(1 << (time - 128).min(60))),
    };
    let queue = Queue::default()
        .with_speedup(speedup.parse().expect("it is a speedup"))
        .with_overhead(overhead)
        .with_limit(limit)
        .with_split_gso(options[2] & 4 != 0)
        .with_inner(options[2] & 8 != 0)
        .with_mtu(if options[2] & 16 != 0 { 576 } else { 1500 });
    match options[5] & 7 {
        1 => queue.with_aqm("codel".parse().expect("it is a discipline")),
        2 => queue.with_aqm("fq-codel".parse().expect("it is a discipline")),
        3 => queue.with_aqm("pie".parse().expect("it is a discipline")),
        4 => queue.with_aqm("ecn-sharp".parse().expect("it is a discipline")),
        _ => queue,
    }
}

/// A listener that checks the order of what it receives, and counts.
struct Seen {
    flows: Flows,
    is_fifo: bool,
    /// Length on the wire and captured bytes of each frame.
    frames: Vec<(u32, u32)>,
    left_out: u64,
    packets: u64,
    departed: u64,
    dropped: u64,
    bytes: u64,
    /// The first and the last arrival, and the last departure.
    span: Option<(Nanos, Nanos)>,
    last: Departure,
    interned: Nanos,
}

impl Seen {
    fn new(mask: KeyMask, flows: &[Granularity]) -> Self {
        Self {
            flows: Flows::masked(mask, flows, 1 << 10),
            is_fifo: true,
            frames: Vec::new(),
            left_out: 0,
            packets: 0,
            departed: 0,
            dropped: 0,
            bytes: 0,
            span: None,
            last: Departure::default(),
            interned: Nanos::ZERO,
        }
    }

    fn arrived(&mut self, at: Nanos, packet: &Packet) {
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
        self.bytes += packet.size.0;
    }
}

impl Output for Seen {
    fn departed(&mut self, departure: &Departure) {
        assert!(departure.enqueued <= departure.dequeued);
        assert!(self.last.dequeued <= departure.dequeued, "departures are in order of time");
        if self.is_fifo && self.departed > 0 {
            assert!(self.last.enqueued <= departure.enqueued, "arrivals are in order of time");
            assert!(self.last.packet.id < departure.packet.id);
        }
        self.departed += 1;
        self.arrived(departure.enqueued, &departure.packet);
        self.last = *departure;
    }
}

impl Sink for Seen {
    fn dropped(&mut self, dropped: &Dropped) {
        self.dropped += 1;
        self.bytes += dropped.packet.size.0;
    }

    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

/// The input has too many packets.
#[derive(Debug)]
struct TooMany;

impl From<Infallible> for TooMany {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Listener for Seen {
    type Key = MaskedKey;
    type Error = TooMany;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        assert!(self.interned <= now, "packets arrive in order of time");
        self.interned = now;
        self.flows.intern(key, now, |_, _| ())
    }

    fn read(&mut self, record: &Record<'_>, _: Frame, _: Nanos, packets: Range<u64>) -> Result<(), TooMany> {
        self.frames.push((record.original_len, record.data.len() as u32));
        self.left_out += u64::from(packets.is_empty());
        self.packets += packets.end - packets.start;
        if self.packets > ENOUGH || self.frames.len() as u64 > ENOUGH { Err(TooMany) } else { Ok(()) }
    }
}

/// A capture that was built from a description.
struct Built {
    bytes: Vec<u8>,
    big_endian: bool,
    is_pcapng: bool,
    /// Length on the wire and captured bytes of each packet.
    packets: Vec<(u32, u32)>,
    holes: u64,
    zeros: u64,
    /// Whether the reader must find all packets.
    is_exact: bool,
}

/// The time of the first packet. None of the two bytes that a capture stores last for a time near it is the first one,
/// so that a packet behind zeros begins in one place only.
const START: u64 = 1_700_000_000;

impl Built {
    fn new(items: &[u8], flags: u8) -> Self {
        let bit = |number: u8| flags >> number & 1 == 1;
        let mut built = Self {
            bytes: Vec::new(),
            big_endian: bit(2),
            is_pcapng: bit(3),
            packets: Vec::new(),
            holes: 0,
            zeros: 0,
            is_exact: !bit(4),
        };
        built.header();
        let mut now = START * 1_000_000;
        // A packet is recognised by four headers in a row.
        let mut in_a_row = 0;
        for given in items.chunks(ITEM) {
            let mut item = [0; ITEM];
            item[..given.len()].copy_from_slice(given);
            let amount = u64::from(u16::from_le_bytes([item[2], item[3]]));
            match item[0] & 7 {
                0 if !built.is_exact || in_a_row >= 4 => {
                    let zeros = 32 + amount as usize;
                    built.bytes.resize(built.bytes.len() + zeros, 0);
                    built.holes += 1;
                    built.zeros += zeros as u64;
                    in_a_row = 0;
                }
                1 if !built.is_exact => built.bytes.extend(&item[1..]),
                2 if !built.is_exact => {
                    // A packet far away, in the past or in the future.
                    let far = amount << (item[1] & 31);
                    let time = if item[1] & 0x80 == 0 { now.saturating_add(far) } else { now.saturating_sub(far) };
                    built.packet(time, &item);
                }
                kind => {
                    let later = amount << (kind & 3);
                    now += if built.is_exact { later } else { later << (item[1] & 15) };
                    now = if built.is_exact { now.min((START + 100) * 1_000_000) } else { now };
                    built.packet(now, &item);
                    in_a_row += 1;
                }
            }
        }
        built
    }

    fn words(&mut self, words: &[u32]) {
        let order = if self.big_endian { u32::to_be_bytes } else { u32::to_le_bytes };
        self.bytes.extend(words.iter().flat_map(|word| order(*word)));
    }

    fn halves(&mut self, halves: &[u16]) {
        let order = if self.big_endian { u16::to_be_bytes } else { u16::to_le_bytes };
        self.bytes.extend(halves.iter().flat_map(|half| order(*half)));
    }

    fn header(&mut self) {
        if self.is_pcapng {
            // A section of unknown length, and an interface for Ethernet.
            self.words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d]);
            self.halves(&[1, 0]);
            self.words(&[u32::MAX, u32::MAX, 28, 1, 20]);
            self.halves(&[1, 0]);
            self.words(&[0, 20]);
        } else {
            self.words(&[0xa1b2_c3d4]);
            self.halves(&[2, 4]);
            self.words(&[0, 0, 65_535, 1]);
        }
    }

    /// A packet at a time in microseconds.
    fn packet(&mut self, time: u64, item: &[u8; ITEM]) {
        let [_, _, _, _, size, shift, flow, protocol] = *item;
        let original = (14 + (u32::from(size) << (shift & 7))).max(60);
        let captured = if shift & 8 == 0 { original.min(60) } else { u32::from(shift >> 4).min(original) };
        let data = frame(flow, protocol, original - 14);
        let data = &data[..captured as usize];
        if self.is_pcapng {
            let padded = captured.next_multiple_of(4);
            self.words(&[6, 32 + padded, 0, (time >> 32) as u32, time as u32, captured, original]);
            self.bytes.extend(data);
            self.bytes.resize(self.bytes.len() + (padded - captured) as usize, 0);
            self.words(&[32 + padded]);
        } else {
            let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
            self.words(&[seconds as u32, micros as u32, captured, original]);
            self.bytes.extend(data);
        }
        self.packets.push((original, captured));
    }
}

/// The first 60 bytes of an Ethernet frame with an IPv4 packet of `length` bytes.
fn frame(flow: u8, protocol: u8, length: u32) -> [u8; 60] {
    let mut frame = [0xee; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, flow & 3]);
    frame[16..18].copy_from_slice(&(length.min(65_535) as u16).to_be_bytes());
    frame[20..22].copy_from_slice(&[0x40, 0]);
    frame[23] = if protocol & 1 == 0 { 6 } else { protocol };
    frame[26..34].copy_from_slice(&[10, 0, 0, flow, 10, 0, 0, 1]);
    // The header of TCP has 20 bytes.
    frame[46] = 0x50;
    frame
}
