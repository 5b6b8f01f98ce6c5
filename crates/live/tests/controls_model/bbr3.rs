//! BBR version 3 on a simulated path. The program's window and pacing decide what is sent, and program and model get the same ACKs.

use super::{
    APP_LIMITED, CLAMP, CLOCK, Connection, DELIVERED, FOUND_LOST, LIMITED, NEXT, OPEN, OWN, PACING, RANDOM, RECOVERY,
    SAMPLE, SEGMENT, SRTT, WINDOW,
};
use queuescope_tcp::congestion::{Bbr3, Bbr3Params, Bbr3State};
use queuescope_tcp::{Ack, Congestion, CongestionControl, Phase, RateSample};
use queuescope_wire::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::cell::RefCell;
use std::collections::VecDeque;

/// The offset of the bits with the state.
const BITS: usize = OWN + 96;

thread_local! {
    /// The model's random numbers, and how many were drawn.
    static DRAWS: RefCell<(Pcg64Mcg, u64)> = RefCell::new((Pcg64Mcg::seed_from_u64(0), 0));
}

/// The model draws a number below 2, and then one up to 10^9.
fn draw() -> u64 {
    DRAWS.with_borrow_mut(|(random, drawn)| {
        *drawn += 1;
        random.next_u64() % if *drawn % 2 == 1 { 2 } else { 1_000_000_001 }
    })
}

/// A link with a queue. Times are in microseconds.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// The time of a packet on the link, and the round-trip time without a queue.
    packet: u64,
    rtt: u64,
    /// The packets that fit into the queue.
    buffer: u64,
    /// The packets from one that is lost before the queue to the next; 0 if none is.
    loses: u64,
}

/// A packet in flight.
#[derive(Debug, Clone, Copy)]
struct Flying {
    sent: u64,
    /// When its ACK arrives; `None` if it was dropped.
    acked: Option<u64>,
    /// The deliveries when it was sent, the time of the last one, and when the packet that it acknowledged was sent.
    delivered: u32,
    delivered_at: u64,
    first_sent: u64,
    limited: bool,
}

/// A connection over a path.
struct Run {
    path: Path,
    kernel: Connection,
    model: Bbr3,
    flying: VecDeque<Flying>,
    now: u64,
    /// When the next packet may be sent, and when the link is free.
    pace: u64,
    free: u64,
    sent: u64,
    delivered: u32,
    delivered_at: u64,
    first_sent: u64,
    lost: u32,
    smoothed: u64,
    repairs: Option<u64>,
    /// ACKs, and those after which the two were in different states.
    acks: u64,
    apart: u64,
    /// The largest difference of the windows as a part of the model's, where the states are the same; the sums of both.
    difference: f64,
    windows: [f64; 2],
    pacing: f64,
}

impl Run {
    fn new(path: Path, seed: u64) -> Self {
        CLOCK.set(0);
        DRAWS.set((Pcg64Mcg::seed_from_u64(seed), 0));
        RANDOM.set(draw);
        let mut kernel = Connection::established("bbr3", 10, 0, path.rtt as u32, SEGMENT as u32);
        kernel.put(CLAMP, u32::MAX);
        let mut model = Bbr3::new(Bbr3Params::linux(), SEGMENT as u32, 10 * SEGMENT, seed);
        model.on_established(Some(Nanos(path.rtt * 1_000)), Nanos(0));
        Self {
            path,
            kernel,
            model,
            flying: VecDeque::new(),
            now: 0,
            pace: 0,
            free: 0,
            sent: 0,
            delivered: 0,
            delivered_at: 0,
            first_sent: 0,
            lost: 0,
            smoothed: path.rtt,
            repairs: None,
            acks: 0,
            apart: 0,
            difference: 0.0,
            windows: [0.0; 2],
            pacing: 0.0,
        }
    }

    /// Runs until this time.
    fn until(&mut self, end: u64) {
        while self.now < end {
            let room = (self.flying.len() as u64) < u64::from(self.kernel.get(WINDOW));
            let ack = self.flying.iter().find_map(|packet| packet.acked);
            let next = if room { Some(self.pace.max(self.now)) } else { None };
            match (next, ack) {
                (Some(next), ack) if ack.is_none_or(|ack| next <= ack) => self.send(next),
                (_, Some(ack)) => self.receive(ack),
                (_, None) => panic!("all packets in flight were dropped"),
            }
        }
    }

    fn set_time(&mut self, now: u64) {
        self.now = now;
        CLOCK.set(now * 1_000);
        self.kernel.set_time(Nanos(now * 1_000));
    }

    fn set_in_flight(&mut self) {
        self.kernel.put(WINDOW + 40, self.flying.len() as u32);
    }

    fn send(&mut self, now: u64) {
        self.set_time(now);
        if self.flying.is_empty() {
            (self.delivered_at, self.first_sent) = (now, now);
            self.kernel.call("cwnd_event", &[0]);
        }
        self.sent += 1;
        // The packet that is on the link is not in the queue.
        let queued = self.free.saturating_sub(now).div_ceil(self.path.packet).saturating_sub(1);
        let is_lost = self.path.loses > 0 && self.sent.is_multiple_of(self.path.loses);
        let acked = (!is_lost && queued < self.path.buffer).then(|| {
            self.free = self.free.max(now) + self.path.packet;
            self.free + self.path.rtt
        });
        self.flying.push_back(Flying {
            sent: now,
            acked,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            limited: self.kernel.get(APP_LIMITED) > 0,
        });
        self.set_in_flight();
        self.kernel.put(NEXT, (self.sent * SEGMENT) as u32);
        let in_flight = self.flying.len() as u64 * SEGMENT;
        self.model.on_sent(SEGMENT, in_flight, Nanos(now * 1_000));
        let rate = u64::from_ne_bytes(self.kernel.memory[PACING..PACING + 8].try_into().expect("eight bytes"));
        self.pace = now + (SEGMENT * 1_000_000).checked_div(rate).unwrap_or(0);
    }

    /// The ACK of the first packet that was not dropped. Those that were dropped before it are found lost.
    fn receive(&mut self, now: u64) {
        self.set_time(now);
        let before = self.flying.len() as u64;
        let dropped = self.flying.iter().take_while(|packet| packet.acked.is_none()).count();
        self.flying.drain(..dropped);
        let Some(packet) = self.flying.pop_front() else { return };
        (self.delivered, self.delivered_at, self.first_sent) = (self.delivered + 1, now, packet.sent);
        self.lost += dropped as u32;
        let limit = self.kernel.get(APP_LIMITED);
        if limit > 0 && self.delivered > limit {
            self.kernel.put(APP_LIMITED, 0);
        }
        let rtt = now - packet.sent;
        self.smoothed = (7 * self.smoothed + rtt) / 8;
        self.kernel.put(SRTT, (8 * self.smoothed) as u32);
        self.kernel.put(DELIVERED, self.delivered);
        self.kernel.put(FOUND_LOST, self.lost);
        self.set_in_flight();
        self.repair(dropped as u64, before, u64::from(packet.delivered));
        let interval = (packet.sent - packet.first_sent).max(now - packet.delivered_at);
        let limited = before >= u64::from(self.kernel.get(WINDOW));
        self.kernel.memory[LIMITED] = u8::from(limited);
        let amount = self.delivered - packet.delivered;
        self.control(amount, interval, rtt, dropped as u32, packet.limited);
        let bytes = |segments: u64| segments * SEGMENT;
        let (in_flight, reached) =
            (bytes(self.flying.len() as u64), bytes(self.sent) - bytes(self.flying.len() as u64));
        let rate = RateSample {
            delivered: bytes(self.delivered.into()),
            prior_delivered: bytes(packet.delivered.into()),
            amount: bytes(amount.into()),
            interval: Nanos(interval * 1_000),
            application_limited: packet.limited,
            lost: bytes(dropped as u64),
        };
        let ack = Ack {
            acked: SEGMENT,
            delivered: SEGMENT,
            in_flight_before: bytes(before),
            in_flight,
            unacknowledged: reached,
            next: bytes(self.sent),
            left_last: bytes(self.sent),
            rtt: Some(Nanos(rtt * 1_000)),
            smoothed_rtt: Nanos(self.smoothed * 1_000),
            phase: if self.repairs.is_some() { Phase::Recovery } else { Phase::Open },
            window: self.model.window(),
            marked: 0,
            counted: Some(SEGMENT),
            window_limited: limited,
            rate: Some(rate),
        };
        self.model.on_ack(&ack, Nanos(now * 1_000));
        self.compare();
    }

    /// Begins a repair with the first loss, and ends it when what was in flight then has been delivered.
    fn repair(&mut self, lost: u64, before: u64, sent_after: u64) {
        if self.repairs.is_some_and(|end| sent_after >= end) {
            self.repairs = None;
            self.kernel.state(OPEN);
            self.model.on_recovered(Nanos(self.now * 1_000));
        }
        if lost > 0 && self.repairs.is_none() {
            self.repairs = Some(self.delivered.into());
            self.kernel.call("ssthresh", &[]);
            self.kernel.state(RECOVERY);
            let (in_flight, next) = (before * SEGMENT, self.sent * SEGMENT);
            let congestion = Congestion { in_flight, lost: lost * SEGMENT, delivered: SEGMENT, next };
            self.model.on_congestion(&congestion, Nanos(self.now * 1_000));
        }
    }

    /// Gives a rate sample to the program.
    fn control(&mut self, amount: u32, interval: u64, rtt: u64, lost: u32, limited: bool) {
        for (at, value) in [(0, self.delivered - amount), (4, amount), (24, lost), (28, 1)] {
            self.kernel.put(SAMPLE + at, value);
        }
        for (at, value) in [(8, interval), (16, rtt)] {
            self.kernel.memory[SAMPLE + at..SAMPLE + at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        self.kernel.memory[SAMPLE + 32] = u8::from(limited);
        let sample = self.kernel.memory.as_ptr() as u64 + SAMPLE as u64;
        self.kernel.call("cong_control", &[0, 0, sample]);
    }

    fn compare(&mut self) {
        const STATES: [Bbr3State; 7] = [
            Bbr3State::Startup,
            Bbr3State::Drain,
            Bbr3State::Down,
            Bbr3State::Cruise,
            Bbr3State::Refill,
            Bbr3State::Up,
            Bbr3State::ProbeRtt,
        ];
        self.acks += 1;
        let state = STATES[self.kernel.get(BITS) as usize & 7];
        let (window, model) = (f64::from(self.kernel.get(WINDOW)), self.model.window() as f64 / SEGMENT as f64);
        self.windows = [self.windows[0] + window, self.windows[1] + model];
        if state != self.model.state() {
            self.apart += 1;
            return;
        }
        // Rounding of a window to whole segments, twice.
        self.difference = self.difference.max(((window - model).abs() - 2.0) / model);
        let rate = u64::from_ne_bytes(self.kernel.memory[PACING..PACING + 8].try_into().expect("eight bytes")) as f64;
        let paced = self.model.pacing_rate().map_or(0.0, |rate| rate.bits_per_second() as f64 / 8.0);
        self.pacing = self.pacing.max((rate / paced - 1.0).abs());
    }
}

const PATHS: [(u64, u64); 4] = [(1_000, 20_000), (800, 60_000), (400, 10_000), (2_500, 100_000)];

/// Without losses states, windows and pacing are the same but for rounding, through startup, several cycles and two probes of the
/// round-trip time.
#[test]
fn bbr3_without_losses_has_the_same_windows() {
    for (packet, rtt) in PATHS {
        let mut run = Run::new(Path { packet, rtt, buffer: u64::MAX, loses: 0 }, packet);
        run.until(12_000_000);
        let Run { acks, apart, difference, pacing, .. } = run;
        println!("{packet} {rtt}: {acks} ACKs, {apart} in other states, windows {difference}, pacing {pacing}");
        assert!(run.model.stats().probes > 1 && run.model.stats().rtt_probes > 1, "{:?}", run.model.stats());
        assert_eq!(apart, 0, "{packet} {rtt}");
        assert!(difference <= 0.0 && pacing < 0.001, "{packet} {rtt}: {difference} {pacing}");
    }
}

/// With losses the program knows the loss rate of a round trip only at its end, so it may leave a probe later. The mean windows are near
/// one another.
#[test]
fn bbr3_with_losses_has_similar_windows() {
    for (packet, rtt) in PATHS {
        let product = rtt / packet;
        for (buffer, loses) in [(product / 2, 0), (2 * product, 0), (u64::MAX, 200), (u64::MAX, 40)] {
            let mut run = Run::new(Path { packet, rtt, buffer: buffer.max(4), loses }, packet);
            run.until(12_000_000);
            let [kernel, model] = run.windows.map(|sum| sum / run.acks as f64);
            println!("{packet} {rtt} {buffer} {loses}: {kernel} {model}, {} of {} apart", run.apart, run.acks);
            assert!((kernel / model - 1.0).abs() < 0.06, "{packet} {rtt} {buffer} {loses}: {kernel} {model}");
        }
    }
}
