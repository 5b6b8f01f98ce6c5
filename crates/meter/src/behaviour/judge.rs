//! What the evidence says.

use super::{Evidence, FlowRounds, Response};

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
        let answers = |response: &Response, least: u32| {
            response.episodes >= least && response.reduced >= 0.8 && response.ratio <= 0.88 && response.growth >= 1.08
        };
        let by_losses = answers(&self.losses, 3);
        let by_marks = answers(&self.marks, 5) && self.marks.ratio <= 0.82 && self.l4s < 0.5;
        (by_losses || by_marks) && self.floors == 0 && self.pulses * 4 < self.losses.episodes + self.marks.episodes
    }

    /// Its own backlog stays short without losses, although the link is busy; or it gives the queue back at the same short delay.
    fn is_delay_based(&self) -> bool {
        let calm = self.quiet_rounds >= 150 && self.pulses < 2 && self.floors == 0 && self.busy >= 0.8;
        let holds = self.backlog >= 0.7 && self.high_backlog <= 9.0;
        calm && holds
    }

    /// Its rate has pulses that come at a steady distance, or its window has floors at one.
    fn is_model_based(&self) -> bool {
        let pulses = self.pulses >= 4 && self.pulse_regularity >= 0.6 && self.pulse_period >= 5.0;
        let second = self.floor_period.0 as f64 / 1e9;
        let floors = self.floors >= 2 && (4.0..11.5).contains(&second);
        pulses || floors
    }

    /// Marks in many round trips, and small answers to them.
    fn is_scalable(&self) -> bool {
        if self.capable < 0.5 || self.rate_variation < 0.02 || self.window < 8.0 {
            return false;
        }
        let gentle = self.marks.episodes >= 8 && self.marks.ratio >= 0.88;
        let l4s = self.l4s >= 0.5 && self.marks.episodes >= 5 && self.marks.ratio >= 0.75;
        self.marked_rounds >= 0.4 || gentle || l4s
    }

    /// It offers the same rate, whatever is lost of it.
    fn is_unresponsive(&self) -> bool {
        let noise = 0.05 + 1.5 / libm::sqrt(self.window.max(1.0));
        self.drop_rounds >= 8 && self.rate_variation <= noise.min(0.12) && self.rtt.is_none()
    }

    fn finer(&self) -> FinerKind {
        if self.uncaused > 0 { FinerKind::LossDelay } else { FinerKind::LossBased }
    }
}
