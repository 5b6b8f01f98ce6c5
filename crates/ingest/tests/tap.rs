//! Captures on both sides of a router, read by the library: departures, losses, and inputs that are refused.

use queuescope_ingest::Listener;
use queuescope_ingest::tap::{Captures, FinalPass, Ingress, TapError, TapOptions};
use queuescope_log::packet;
use queuescope_pcap::PcapWriter;
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_sim::Output;
use queuescope_wire::{Departure, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet, PacketId};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const FLOW: Granularity = Granularity::FiveTuple;
const ETHERNET: u32 = 1;
/// Packets that came in, one each millisecond, and the one that was lost.
const PACKETS: u64 = 3_000;
const LOST: u64 = 1_234;

/// All events of the queue.
struct Heard {
    flows: Flows,
    departures: Vec<Departure>,
    drops: Vec<Dropped>,
    headers: Vec<PacketId>,
}

impl Output for Heard {
    fn departed(&mut self, departure: &Departure) {
        self.departures.push(*departure);
    }
}

impl Sink for Heard {
    fn dropped(&mut self, dropped: &Dropped) {
        self.drops.push(*dropped);
    }

    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

impl Listener for Heard {
    type Key = MaskedKey;
    type Error = Infallible;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.flows.intern(key, now, |_, _| ())
    }

    fn came(&mut self, packet: PacketId, _: [u8; packet::SIZE]) {
        self.headers.push(packet);
    }
}

/// The queueing delay of a packet: its time in the router beyond the shortest.
fn waited(number: u64) -> Nanos {
    Nanos(number % 7 * 100_000)
}

/// A packet of UDP with a number in it.
fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 8 + 64];
    frame[12] = 8;
    let ip = [0x45, 0, 0, 92, (number >> 8) as u8, number as u8, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    frame[14..34].copy_from_slice(&ip);
    frame[34..42].copy_from_slice(&[4, 0, 0, 80, 0, 72, 0, 0]);
    frame[42..50].copy_from_slice(&number.to_be_bytes());
    frame
}

fn write(path: &Path, packets: impl Iterator<Item = (u64, Nanos)>) -> io::Result<()> {
    let mut writer = PcapWriter::new(Vec::new(), ETHERNET, 0)?;
    for (number, time) in packets {
        let frame = frame(number);
        writer.packet(time, frame.len() as u32, &frame)?;
    }
    std::fs::write(path, writer.finish()?)
}

/// The captures before and behind a router.
fn captures(folder: &TempDir) -> [PathBuf; 2] {
    let [before, behind] = ["before.pcap", "behind.pcap"].map(|name| folder.path().join(name));
    let came = |number: u64| Nanos(1_000_000_000 + 1_000_000 * number);
    write(&before, (0..PACKETS).map(|number| (number, came(number)))).unwrap();
    let left = (0..PACKETS).filter(|number| *number != LOST);
    write(&behind, left.map(|number| (number, came(number) + waited(number)))).unwrap();
    [before, behind]
}

fn open(before: &Path, behind: &Path) -> Result<Captures, TapError> {
    Captures::open(vec![Ingress { path: before.to_owned(), rate: None }], behind, TapOptions::default())
}

#[test]
fn departures_and_losses_reach_a_listener() {
    let folder = TempDir::new().unwrap();
    let [before, behind] = captures(&folder);
    let captures = open(&before, &behind).unwrap();
    let all = captures.length().unwrap();
    let mut read = (0, 0);
    let mut progress = |bytes, _| read = (read.0 + 1, bytes);
    let mut wanted = FinalPass::new(KeyMask::covering(&[FLOW]), FLOW);
    wanted.headers = true;
    let flows = Flows::masked(wanted.mask, &[FLOW], usize::MAX);
    let mut heard = Heard { flows, departures: Vec::new(), drops: Vec::new(), headers: Vec::new() };
    let survey = captures.survey(&mut progress).unwrap();
    let tolerance = survey.tolerance();
    assert!(tolerance < Nanos(50_000), "{tolerance}");
    let tapped = survey.read(&wanted, &mut heard).unwrap();
    assert_eq!(tapped.source().packets, PACKETS);
    drop(tapped);
    assert!(read.0 > 4, "each pass says how far it is");
    assert_eq!(read.1, all, "all passes are read to their end");
    assert_eq!((heard.departures.len(), heard.drops.len()), (PACKETS as usize - 1, 1));
    assert_eq!(heard.headers.len(), PACKETS as usize, "headers come of what left and of what was lost");
    assert_eq!(heard.drops[0].packet.id.0, LOST);
    for departure in &heard.departures {
        let expected = waited(departure.packet.id.0);
        let difference = Nanos(departure.sojourn().0.abs_diff(expected.0));
        assert!(difference <= tolerance, "{} in place of {expected}", departure.sojourn());
    }
}

#[test]
fn invalid_inputs_are_refused() {
    let folder = TempDir::new().unwrap();
    let [before, behind] = captures(&folder);
    let twice = open(&before, &before).unwrap_err();
    assert!(matches!(&twice, TapError::Twice { path } if *path == before), "{twice}");
    let once = open(Path::new("-"), &behind).unwrap_err();
    assert!(matches!(&once, TapError::Once { what } if what == "standard input"), "{once}");
    write(&behind, (PACKETS..2 * PACKETS).map(|number| (number, Nanos(1_000_000 * number)))).unwrap();
    let unmatched = open(&before, &behind).unwrap().survey(&mut |_, _| ()).err().unwrap();
    assert!(std::error::Error::source(&unmatched).is_some(), "{unmatched}");
    assert!(matches!(unmatched, TapError::Unmatched { .. }), "{unmatched}");
}
