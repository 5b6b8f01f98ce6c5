//! A thread that reads ahead calls the listener as the reader without it does.

use crate::aqm::capture;
use queuescope_ingest::{Listener, OpenedCapture, Queue, Stop};
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_sim::Output;
use queuescope_wire::{Departure, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet};
use std::io::{Cursor, Write, pipe};
use std::os::fd::AsRawFd;
use std::thread;

/// Keeps departures, and fails when it is to hand over as many times as `hand_overs`.
struct Kept {
    flows: Flows,
    departures: Vec<Departure>,
    drops: Vec<u64>,
    hand_overs: u32,
}

impl Kept {
    fn new(hand_overs: u32) -> Self {
        let flows = Flows::new(&[Granularity::FiveTuple], usize::MAX);
        Self { flows, departures: Vec::new(), drops: Vec::new(), hand_overs }
    }
}

impl Output for Kept {
    fn departed(&mut self, departure: &Departure) {
        self.departures.push(*departure);
    }
}

impl Sink for Kept {
    fn dropped(&mut self, dropped: &Dropped) {
        self.drops.push(dropped.packet.id.0);
    }

    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

impl Listener for Kept {
    type Key = MaskedKey;
    type Error = &'static str;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.flows.intern(key, now, |_, _| ())
    }

    fn wants_frames(&self) -> bool {
        false
    }

    fn hand_over(&mut self) -> Result<(), &'static str> {
        self.hand_overs = self.hand_overs.checked_sub(1).ok_or("the disk is full")?;
        Ok(())
    }
}

/// Packets of flows that take turns, a hundred in a row of each.
fn file() -> Vec<u8> {
    capture((0..9_000).map(|n| (1_700_000_000_000_000 + n * 900, (n / 100 % 3) as u16, 1_500, 0)))
}

fn replayed(capture: OpenedCapture, kept: &mut Kept, ahead: bool) -> Result<String, &'static str> {
    let mask = KeyMask::covering(&[Granularity::FiveTuple]);
    let read = capture.reads_ahead(ahead).replay(&Queue::default(), mask, kept, &mut |_, _| ())?;
    Ok(format!("{:?} {} {}", read.skipped, read.packets, read.bytes))
}

/// Frames that are left out may be the last before the reader waits. Ids of packets are their numbers in the file all the same.
#[test]
fn packets_that_are_chosen_from_a_pipe_keep_their_numbers() {
    let rate = "10mbps".parse().unwrap();
    let only = Some("src_port != 1");
    let mut expected = Kept::new(u32::MAX);
    let opened = OpenedCapture::from_reader(Cursor::new(file()), "made", rate, only).unwrap();
    let source = replayed(opened, &mut expected, false).unwrap();
    assert!(expected.departures.len() > 2_000 && expected.departures.len() < 9_000, "{}", expected.departures.len());
    for ahead in [true, false] {
        let (end, mut begin) = pipe().unwrap();
        let (bytes, stop) = (file(), Stop::manual().unwrap());
        let writer = thread::spawn(move || bytes.chunks(501).for_each(|piece| begin.write_all(piece).unwrap()));
        let path = format!("/proc/self/fd/{}", end.as_raw_fd());
        let opened = OpenedCapture::open(path.as_ref(), rate, only, Some(&stop)).unwrap();
        let mut kept = Kept::new(u32::MAX);
        assert_eq!(replayed(opened, &mut kept, ahead).unwrap(), source);
        assert_eq!((&kept.departures, &kept.drops), (&expected.departures, &expected.drops));
        writer.join().unwrap();
    }
}

/// The thread may wait for a pipe that nobody closes.
#[test]
fn an_error_of_the_listener_ends_the_run_at_once() {
    let rate = "10mbps".parse().unwrap();
    for ahead in [true, false] {
        let (end, mut begin) = pipe().unwrap();
        begin.write_all(&file()[..30_000]).unwrap();
        let path = format!("/proc/self/fd/{}", end.as_raw_fd());
        let stop = Stop::manual().unwrap();
        let opened = OpenedCapture::open(path.as_ref(), rate, None, Some(&stop)).unwrap();
        assert_eq!(replayed(opened, &mut Kept::new(0), ahead), Err("the disk is full"));
    }
}
