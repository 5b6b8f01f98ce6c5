//! What the evidence says.

use super::{Evidence, FlowRounds, Response};
use queuescope_wire::Nanos;

/// How a flow behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Behaviour {
    /// It sends less after losses, or after marks as after losses.
    LossDriven,
    /// It keeps its own backlog short, and sends less when the queue grows.
    DelayBased,
    /// It sends at a rate that it has measured, and probes with pulses: BBR.
    ModelBased,
    /// It sends a little less for each mark: DCTCP, Prague (L4S).
    Scalable,
    /// Neither losses nor marks nor delay change its rate.
    Unresponsive,
    /// What was seen does not show which of them it is.
    TooLittleEvidence,
}

impl Behaviour {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::LossDriven,
        Self::DelayBased,
        Self::ModelBased,
        Self::Scalable,
        Self::Unresponsive,
        Self::TooLittleEvidence,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::LossDriven => "loss-driven",
            Self::DelayBased => "delay-based",
            Self::ModelBased => "model-based",
            Self::Scalable => "scalable",
            Self::Unresponsive => "unresponsive",
            Self::TooLittleEvidence => "too little evidence",
        }
    }
}

/// Whether a loss-driven flow also reads delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinerKind {
    /// Losses only.
    LossBased,
    /// Losses, and delay as a second sign.
    LossDelay,
}

/// A judgement of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// How it behaves.
    pub behaviour: Behaviour,
    /// Of a loss-driven flow, its finer kind, if the evidence shows one.
    pub finer: Option<FinerKind>,
    /// What it rests on.
    pub evidence: Evidence,
}

impl FlowRounds {
    /// Judges the flow by its last round trips.
    pub fn judge(&self) -> Judgement {
        Evidence::of(self).judge()
    }
}

/// The shortest window of a flow that may be delay-based, in packets.
const SHORT_WINDOW: f64 = 20.0;
/// The most cuts of a window that shrinks gently.
const MOST_CUTS: u32 = 1;

/// The fewest rounds for a name.
const LEAST_ROUNDS: u32 = 100;

impl Evidence {
    /// What the evidence says. If it says two things, it says nothing.
    pub fn judge(&self) -> Judgement {
        let mut names = Behaviour::ALL.into_iter().filter(|behaviour| self.shows(*behaviour));
        let behaviour = match (names.next(), names.next()) {
            (Some(behaviour), None) => behaviour,
            _ => Behaviour::TooLittleEvidence,
        };
        let finer = (behaviour == Behaviour::LossDriven).then(|| self.finer());
        Judgement { behaviour, finer, evidence: *self }
    }

    /// Whether the evidence shows a behaviour.
    fn shows(&self, behaviour: Behaviour) -> bool {
        let known = self.rounds >= LEAST_ROUNDS && self.rtt.is_some();
        match behaviour {
            Behaviour::LossDriven => known && self.is_loss_driven(),
            Behaviour::DelayBased => known && self.is_delay_based(),
            Behaviour::ModelBased => known && self.is_model_based(),
            Behaviour::Scalable => known && self.is_scalable(),
            Behaviour::Unresponsive => self.rounds >= LEAST_ROUNDS && self.is_unresponsive(),
            Behaviour::TooLittleEvidence => false,
        }
    }

    /// It reduces its window at nearly each loss, and grows until the next one.
    fn is_loss_driven(&self) -> bool {
        // Two losses are enough if each halves the window, as nothing else does.
        let two = answers(&self.losses, 2, 0.8) && self.losses.ratio >= 0.25 && self.losses.growth < 4.0;
        let losses = self.grows_to_its_loss()
            || self.dips_after_losses()
            || two
            || answers(&self.losses, 3, 0.85)
            || answers(&self.losses, 8, 0.95);
        let marks = answers(&self.marks, 5, 0.82) && self.l4s < 0.5;
        // A short window is as short because of losses, whatever the control.
        let is_wide = self.window >= 10.0 && (self.high_backlog > 8.0 || self.backlog < 0.7 || self.window >= 25.0);
        let is_steady = self.surges >= 2 && self.surge >= 0.75;
        // What looks like a probe of BBR is a doubt, where it takes several round trips.
        let is_doubtful = self.pulses >= 8 || self.floors >= self.least_floors() || is_steady;
        (losses || marks) && is_wide && !is_doubtful && !self.has_pulses() && !self.ignores_losses()
    }

    /// One loss is enough if it cut the window, and the flow then grew for long, without ever shrinking, far beyond the backlog of a
    /// delay-based one.
    fn grows_to_its_loss(&self) -> bool {
        let cut = self.losses.episodes >= 1 && self.losses.reduced >= 0.99 && (0.3..0.8).contains(&self.losses.ratio);
        let grew = self.quiet_rounds >= 150 && self.quiet_rise >= 0.12 && self.quiet_fall <= 0.1 * self.quiet_rise;
        cut && grew && self.uncaused <= 1 && self.backlog >= 12.0 && self.busy >= 0.9
    }

    /// Controls that come back within some round trips, such as BIC, still send less for a moment.
    fn dips_after_losses(&self) -> bool {
        let dips = self.losses.episodes >= 6 && self.losses.dipped >= 0.85 && self.losses.dip <= 0.88;
        let is_calm = self.rate_variation <= 0.16 && self.pulses <= 1 && self.drop_rounds * 5 <= self.rounds;
        dips && is_calm && self.losses.growth >= 1.03
    }

    /// Its own backlog stays short without losses, although the link is busy; or its window shrinks gently. A window that is cut without a
    /// loss here shows nothing: the packet may have been lost elsewhere.
    fn is_delay_based(&self) -> bool {
        let has_floors = self.floors > 0 && self.floor_regularity > 0.0;
        // A short window has a short backlog, whatever the control: BBR's, for one.
        if self.quiet_rounds < 150 || has_floors || self.has_pulses() || self.window < SHORT_WINDOW {
            return false;
        }
        let holds = self.busy >= 0.8 && self.backlog >= 0.7 && self.high_backlog <= 9.0 && self.pulses < 3;
        let fell = self.quiet_fall >= 0.3 && self.quiet_fall >= 4.0 * self.quiet_rise;
        let shrinks = self.busy >= 0.95 && self.pulses == 0 && fell && self.uncaused <= MOST_CUTS;
        holds || shrinks
    }

    /// Its rate has pulses that come at a steady distance, or its window has floors at one, or it ignores losses.
    fn is_model_based(&self) -> bool {
        self.has_floors() || self.has_pulses() || self.ignores_losses() && self.rate_variation > 0.08
    }

    /// Floors as those of BBR's probes of the round-trip time.
    fn has_floors(&self) -> bool {
        self.floors > self.least_floors() && self.floor_regularity >= 0.7
    }

    /// With a long round-trip time a floor is few rounds, so that uneven windows may be taken for one.
    fn least_floors(&self) -> u32 {
        if self.rtt.is_some_and(|rtt| rtt.0 > 100_000_000) { 2 } else { 1 }
    }

    /// Pulses as those of BBR's probes for bandwidth: in each eighth round trip, or after some seconds (version 3).
    fn has_pulses(&self) -> bool {
        if self.losses.episodes >= 6 && self.losses.reduced >= 0.75 && self.pulses < 10 {
            return false;
        }
        let seconds = self.rtt.map_or(0.0, Nanos::as_secs_f64) * self.pulse_period;
        let each_cycle = self.pulses >= 4 && (7.0..=10.0).contains(&self.pulse_period) && self.pulse_regularity >= 0.55;
        let slow =
            self.pulses >= 4 && self.pulse_period >= 25.0 && (1.2..8.5).contains(&seconds) && self.backlog <= 0.3;
        let cycles = [8.0, 9.0, 16.0, 17.0];
        let similar = self.pulses >= 3
            && (0.3..0.62).contains(&self.periodicity)
            && cycles.contains(&self.period)
            && self.quiet_rounds >= 200;
        each_cycle || slow || similar
    }

    /// Losses in half of all round trips: a loss-driven flow would then have a window of a few packets.
    fn ignores_losses(&self) -> bool {
        f64::from(self.drop_rounds) >= 0.5 * f64::from(self.rounds) && self.window >= 12.0
    }

    /// Marks in many round trips, and small answers to them.
    fn is_scalable(&self) -> bool {
        if self.capable < 0.5 || self.rate_variation < 0.02 || self.window < 8.0 {
            return false;
        }
        let gentle = self.marks.episodes >= 6
            && self.marks.ratio >= 0.965
            && self.marks.reduced <= 0.3
            && self.marked_rounds >= 0.05;
        let l4s = self.l4s >= 0.5 && self.marks.episodes >= 5 && self.marks.ratio >= 0.8;
        self.marked_rounds >= 0.4 || gentle || l4s
    }

    /// It offers the same rate, whatever is lost of it.
    fn is_unresponsive(&self) -> bool {
        let constant = self.rate_variation <= 0.02 && self.drop_rounds >= 3;
        let noise = 0.05 + 1.5 / libm::sqrt(self.window.max(1.0));
        let much = self.drop_rounds >= 8 && self.rate_variation <= noise.min(0.12);
        // A connection whose handshake was not seen, and that has the link mostly to itself, offers what the link acknowledges. It
        // answers its losses, so that they are rare.
        let is_paced_by_link = self.share > 0.5 && self.drop_rounds * 4 < self.rounds;
        self.rtt.is_none() && (constant || much) && !is_paced_by_link
    }

    fn finer(&self) -> FinerKind {
        if self.uncaused > 0 { FinerKind::LossDelay } else { FinerKind::LossBased }
    }
}

/// Whether nearly all answers are reductions, and the window grew back in between.
fn answers(response: &Response, least: u32, ratio: f64) -> bool {
    response.episodes >= least && response.reduced >= 0.8 && response.ratio <= ratio && response.growth >= 1.04
}
