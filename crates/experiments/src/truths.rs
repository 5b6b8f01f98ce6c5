//! The truth about every departure of a capture that is replayed, or of a scenario's link: what sketches are held against.

use crate::error::{Error, Result};
use queuescope_ingest::{Listener, OpenedCapture, Queue};
use queuescope_meter::Truths;
use queuescope_queue::{Dropped, Headers, Limit, MarkReason, Sink};
use queuescope_run::{check_room, metered_link};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, InFlight, LinkId, Observer, Output, Speedup, build};
use queuescope_wire::{Departure, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet, Rate};
use std::convert::Infallible;
use std::path::Path;

/// What is a flow: in the paper, a five-tuple.
const FLOW: [Granularity; 1] = [Granularity::FiveTuple];
/// What left a queue, and for how long packets came.
#[derive(Debug)]
pub struct Left {
    /// The departures.
    pub truths: Truths,
    /// Flows.
    pub flows: u64,
    /// Bytes that left.
    pub bytes: u64,
    /// Of the link.
    pub rate: Rate,
    /// From the first packet to the last, or the time that was simulated.
    pub time: Nanos,
}

/// Replays a capture through a FIFO without a limit.
///
/// # Errors
/// If it cannot be read to its end.
pub fn of_capture(file: &Path, rate: Rate, speedup: Speedup) -> Result<Left> {
    let mut queue = Queue::default();
    queue.limit = Limit::None;
    queue.speedup = speedup;
    let capture = OpenedCapture::open(file, rate, None, None)?;
    let mut recorder = Recorder::new(None);
    let Ok(source) = capture.replay(&queue, KeyMask::covering(&FLOW), &mut recorder, &mut |_, _| ());
    if let Some(damage) = source.input.damage {
        return Err(Error::Damaged { file: file.display().to_string(), damage });
    }
    let (first, last) = source.span;
    Ok(recorder.left(rate, last.saturating_sub(first)))
}

/// Simulates a scenario, and records what leaves the first link that it watches.
///
/// # Errors
/// If it cannot be.
pub fn of_scenario(scenario: &Scenario) -> Result<Left> {
    let Built { mut simulation, meters, .. } = build(scenario, &Files::default())?;
    let (link, _) = metered_link(None, &simulation, &meters)?;
    let mut recorder = Recorder::new(Some(link));
    simulation.run_until(scenario.duration, &mut recorder);
    check_room(&simulation)?;
    let rate = simulation.topology().link(link).rate.mean();
    Ok(recorder.left(rate, scenario.duration))
}

struct Recorder {
    /// The link that counts, of a simulation.
    link: Option<LinkId>,
    mask: KeyMask,
    flows: Flows,
    truths: Truths,
    bytes: u64,
}

impl Recorder {
    fn new(link: Option<LinkId>) -> Self {
        let (mask, flows) = (KeyMask::covering(&FLOW), Flows::new(&FLOW, usize::MAX));
        Self { link, mask, flows, truths: Truths::default(), bytes: 0 }
    }

    fn record(&mut self, departure: &Departure) {
        self.bytes += departure.packet.size.0;
        self.truths.departed(self.flows.level(0).digest(departure.packet.flow), departure);
    }

    fn left(self, rate: Rate, time: Nanos) -> Left {
        Left { flows: self.flows.len() as u64, truths: self.truths, bytes: self.bytes, rate, time }
    }
}

/// A queue without a limit drops and marks nothing.
impl Sink for Recorder {
    fn dropped(&mut self, _dropped: &Dropped) {}

    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {}
}

impl Output for Recorder {
    fn departed(&mut self, departure: &Departure) {
        self.record(departure);
    }
}

impl Listener for Recorder {
    type Key = MaskedKey;
    type Error = Infallible;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.flows.intern(key, now, |_, _| {})
    }
}

impl Observer for Recorder {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        if Some(link) == self.link {
            let flow = self.flows.intern(&self.mask.mask(&packet.key()), departure.dequeued, |_, _| {});
            self.record(&Departure { packet: Packet { flow, ..departure.packet }, ..*departure });
        }
    }
}
