//! The simplest congestion control, for tests: slow start, additive increase, half at congestion (RFC 5681).

use queuescope_tcp::congestion::Ns3;
use queuescope_tcp::{Ack, Congestion, CongestionControl, EcnUse, Phase};
use queuescope_wire::{Nanos, Rate};

#[derive(Debug, Clone)]
pub struct Reno {
    pub mss: u64,
    pub window: u64,
    pub threshold: u64,
    pub fixed: bool,
    pub ecn: EcnUse,
    pub rate: Option<Rate>,
    pub rules_recovery: bool,
    /// The events that it received, in order.
    pub acks: Vec<Ack>,
    pub congestions: Vec<(Nanos, Congestion)>,
    pub timeouts: Vec<Nanos>,
    pub recovered: Vec<Nanos>,
    pub idle: Vec<u32>,
    pub held: Vec<u64>,
    pub restarts: Vec<u64>,
}

impl Reno {
    pub fn new(mss: u32, segments: u64) -> Self {
        let mss = u64::from(mss);
        Self {
            mss,
            window: segments * mss,
            threshold: u64::MAX,
            fixed: false,
            ecn: EcnUse::Classic,
            rate: None,
            rules_recovery: false,
            acks: Vec::new(),
            congestions: Vec::new(),
            timeouts: Vec::new(),
            recovered: Vec::new(),
            idle: Vec::new(),
            held: Vec::new(),
            restarts: Vec::new(),
        }
    }

    /// A window that never changes.
    pub fn fixed(mss: u32, segments: u64) -> Self {
        Self { fixed: true, ..Self::new(mss, segments) }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.acks.push(*ack);
        if self.fixed || !matches!(ack.phase, Phase::Open | Phase::Loss) || !ack.window_limited {
            return;
        }
        if self.window < self.threshold {
            self.window += ack.acked.min(2 * self.mss);
        } else {
            self.window += self.mss * ack.acked / self.window.max(1);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
        self.congestions.push((now, *congestion));
        self.threshold = (congestion.in_flight / 2).max(2 * self.mss);
        if !self.fixed {
            self.window = self.threshold;
        }
    }

    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos) {
        self.timeouts.push(now);
        self.threshold = (congestion.in_flight / 2).max(2 * self.mss);
        if !self.fixed {
            self.window = self.mss;
        }
    }

    fn on_recovered(&mut self, now: Nanos) {
        self.recovered.push(now);
    }

    fn on_idle(&mut self, timeouts: u32, floor: u64, _now: Nanos) {
        self.idle.push(timeouts);
        let halved = self.window.checked_shr(timeouts).unwrap_or(0);
        self.window = halved.max(floor).min(self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> u64 {
        self.threshold
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn rules_recovery(&self) -> bool {
        self.rules_recovery
    }

    fn ecn(&self) -> EcnUse {
        self.ecn
    }
}

impl Ns3 for Reno {
    fn forget_timeouts(&mut self) {}

    fn hold(&mut self, bytes: u64) {
        self.held.push(bytes);
    }

    fn restart(&mut self, initial_window: u64) {
        self.restarts.push(initial_window);
        self.window = initial_window;
    }
}
