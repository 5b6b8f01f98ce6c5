//! The true values of every departure of a replayed capture or of a scenario's link, with which sketches are compared.

use crate::error::{Error, Result};
use queuescope_ingest::{Listener, OpenedCapture, Queue};
use queuescope_meter::ExactDepartures;
use queuescope_queue::{Dropped, Headers, Limit, MarkReason, Sink};
use queuescope_run::{check_room, metered_link};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, InFlight, LinkId, Observer, Output, Speedup, build};
use queuescope_wire::{Departure, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet, Rate};
use std::convert::Infallible;
use std::path::Path;

/// A flow is a five-tuple, as in the paper.
const FLOW: [Granularity; 1] = [Granularity::FiveTuple];

/// The departures of a queue, and how long packets arrived.
#[derive(Debug)]
pub struct RecordedDepartures {
    /// The departures.
    pub truths: ExactDepartures,
    /// How many flows there are.
    pub flows: u64,
    /// Bytes that left.
    pub bytes: u64,
    /// The rate of the link.
    pub rate: Rate,
    /// The time from the first packet to the last, or the simulated time.
    pub time: Nanos,
}

/// Replays a capture through a FIFO without a limit.
///
/// # Errors
/// Fails if it cannot be read to its end.
pub fn of_capture(file: &Path, rate: Rate, speedup: Speedup) -> Result<RecordedDepartures> {
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
    Ok(recorder.finish(rate, last.saturating_sub(first)))
}

/// Simulates a scenario, and records what leaves the first link that it measures.
///
/// # Errors
/// Fails if it cannot be simulated.
pub fn of_scenario(scenario: &Scenario) -> Result<RecordedDepartures> {
    let Built { mut simulation, meters, .. } = build(scenario, &Files::default())?;
    let (link, _) = metered_link(None, &simulation, &meters)?;
    let mut recorder = Recorder::new(Some(link));
    simulation.run_until(scenario.duration, &mut recorder);
    check_room(&simulation)?;
    let rate = simulation.topology().link(link).rate.mean();
    Ok(recorder.finish(rate, scenario.duration))
}

struct Recorder {
    /// The recorded link of a simulation.
    link: Option<LinkId>,
    mask: KeyMask,
    flows: Flows,
    truths: ExactDepartures,
    bytes: u64,
}

impl Recorder {
    fn new(link: Option<LinkId>) -> Self {
        let (mask, flows) = (KeyMask::covering(&FLOW), Flows::new(&FLOW, usize::MAX));
        Self { link, mask, flows, truths: ExactDepartures::default(), bytes: 0 }
    }

    fn record(&mut self, departure: &Departure) {
        self.bytes += departure.packet.size.0;
        self.truths.departed(self.flows.level(0).digest(departure.packet.flow), departure);
    }

    fn finish(self, rate: Rate, time: Nanos) -> RecordedDepartures {
        RecordedDepartures { flows: self.flows.len() as u64, truths: self.truths, bytes: self.bytes, rate, time }
    }
}

/// A queue without a limit neither drops nor marks.
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
