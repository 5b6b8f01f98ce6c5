//! The parameters of PIE: those of RFC 8033, each of its options, and the differences of ns-3.

use crate::Limit;
use queuescope_wire::{ByteCount, Draws, Nanos};

/// The parameters of PIE. [`Default`] follows RFC 8033's sections 4, 5.1, 5.4 and 5.5. [`Self::appendix_a`] and
/// [`Self::appendix_b`] follow its pseudocode, [`Self::ns3`] follows ns-3.37.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieParams {
    /// The limit of the queue. Not in the RFC (`TAIL_DROP`); 1000 packets, as in Linux.
    pub limit: Limit,
    /// The target delay. Source: `QDELAY_REF`, section 4.2, 15 ms.
    pub target: Nanos,
    /// The interval between updates of the probability. Source: `T_UPDATE`, section 4.2, 15 ms.
    pub update: Nanos,
    /// The time of the first update; further ones follow each `update`. `None`: one `update` after the first packet
    /// (the RFC leaves it open).
    pub first_update: Option<Nanos>,
    /// The gain for the distance of the delay to its target, in Hz. Source: appendix A, 1/8.
    pub alpha: f64,
    /// The gain for the change of the delay, in Hz. Source: appendix A, 1 + 1/4.
    pub beta: f64,
    /// How the size of an update depends on the current probability.
    pub scaling: PieScaling,
    /// How the delay is measured.
    pub delay: PieDelay,
    /// When the probability decays by 2 %.
    pub decay: PieDecay,
    /// Whether an update raises a probability of at least 10 % by at most 2 %. Source: section 5.5.
    pub cap: bool,
    /// A delay above which each update raises the probability by 2 % more. Not in the RFC; 250 ms in Linux.
    pub raise_above: Option<Nanos>,
    /// How bursts are allowed to pass.
    pub burst: PieBurst,
    /// Whether early drops are off while the delay at the last update was below half of the target and the probability
    /// below 20 %. Source: section 4.1.
    pub spare_below_half: bool,
    /// A queue that holds at most this has no early drops. Source: section 4.1, twice `MEAN_PKTSIZE`.
    pub short_queue: Option<ShortQueue>,
    /// Whether drops are kept from being too close together or too far apart. Source: section 5.4.
    pub derandomise: bool,
    /// ECN-capable packets are marked instead of dropped while the probability is below this. `None`: they are dropped.
    /// Source: `mark_ecnth`, section 5.1, 10 %.
    pub mark_below: Option<f64>,
    /// The probability is scaled by the ratio of a packet's size to this size. Not by default; ns-3 does so if its
    /// limit is in bytes.
    pub scale_to_size: Option<ByteCount>,
    /// When PIE is active.
    pub activation: PieActivation,
    /// The source of random numbers. Its own; those of ns-3 are for comparisons with it.
    pub draws: Draws,
}

/// How the size of an update depends on the current probability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PieScaling {
    /// Down to 1/2048 while the probability is small (section 4.2).
    #[default]
    Rfc8033,
    /// As ns-3 up to 3.31, the `ns3-default` of Kunze et al. (IM 2021): down to 1/32 only, and twice the size from 10 %
    /// on.
    Ns3Old,
    /// No scaling.
    None,
}

/// How the delay is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieDelay {
    /// The sojourn time of the last packet that left (section 4.3).
    Timestamps {
        /// Whether the delay is 0 once the queue is empty, as in Linux and ns-3. The pseudocode keeps the last one, so
        /// that the probability keeps growing while the queue is empty.
        zero_when_empty: bool,
    },
    /// The backlog over the measured departure rate (section 5.2 in the form of appendix B).
    DepartureRate {
        /// The backlog that starts a measurement, and the bytes that must leave to end it. Source: `DQ_THRESHOLD`,
        /// 16384 bytes.
        threshold: ByteCount,
    },
    /// The backlog over the rate of the link.
    LinkRate,
}

/// When an update decays the probability by 2 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PieDecay {
    /// If the current delay and the one before are 0 (section 4.2 and appendix A).
    #[default]
    BothZero,
    /// If both are below half of the target (appendix B).
    BothBelowHalf,
    /// Never.
    None,
}

/// How bursts are allowed to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieBurst {
    /// No burst allowance.
    None,
    /// Nothing is dropped early for this long. The time restarts whenever the probability is 0 and the delay low
    /// (section 4.4).
    Rfc8033(Nanos),
    /// As `Rfc8033`, in ns-3's way: the time starts with the first packet after 1.5 s of calm, and the probability stays 0
    /// meanwhile.
    Ns3(Nanos),
}

/// A queue too short for early drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortQueue {
    /// At most this many bytes, without the packet that arrives.
    Bytes(ByteCount),
    /// At most this many packets.
    Packets(u64),
}

/// When PIE is active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PieActivation {
    /// Always.
    #[default]
    Always,
    /// From the time when the queue is a third full until the probability is 0 and the delay low (section 5.3). Always,
    /// if there is no limit.
    ThirdOfLimit,
    /// As ns-3's `ActiveThreshold`: from the time when the delay reaches this until the probability is 0 and the delay
    /// below 1 ms.
    Delay(Nanos),
}

/// RFC 8033's and ns-3's default burst allowance.
const MAX_BURST: Nanos = Nanos(150_000_000);

impl Default for PieParams {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            target: Nanos(15_000_000),
            update: Nanos(15_000_000),
            first_update: None,
            alpha: 0.125,
            beta: 1.25,
            scaling: PieScaling::Rfc8033,
            delay: PieDelay::Timestamps { zero_when_empty: true },
            decay: PieDecay::BothZero,
            cap: true,
            raise_above: None,
            burst: PieBurst::Rfc8033(MAX_BURST),
            spare_below_half: true,
            short_queue: Some(ShortQueue::Bytes(ByteCount(2000))),
            derandomise: true,
            mark_below: Some(0.1),
            scale_to_size: None,
            activation: PieActivation::Always,
            draws: Draws::Own,
        }
    }
}

impl PieParams {
    /// The basic PIE of appendix A, to the letter. The RFC leaves `MEAN_PKTSIZE` open; it is 1000 bytes here.
    pub fn appendix_a() -> Self {
        Self {
            limit: Limit::None,
            delay: PieDelay::Timestamps { zero_when_empty: false },
            cap: false,
            derandomise: false,
            mark_below: None,
            ..Self::default()
        }
    }

    /// PIE with all options, as in appendix B.
    pub fn appendix_b() -> Self {
        Self {
            delay: PieDelay::DepartureRate { threshold: ByteCount(16_384) },
            decay: PieDecay::BothBelowHalf,
            activation: PieActivation::ThirdOfLimit,
            ..Self::default()
        }
    }

    /// `PieQueueDisc` of ns-3.37 with its defaults, including a limit of 25 packets.
    pub fn ns3() -> Self {
        Self::ns3_with_limit(Limit::Packets(25))
    }

    /// As [`ns3`](Self::ns3), with another limit. With a limit in bytes, ns-3 scales the probability by the ratio of a packet's size
    /// to 1000 bytes, and measures a short queue in bytes.
    pub fn ns3_with_limit(limit: Limit) -> Self {
        let mean = ByteCount(1000);
        let in_bytes = matches!(limit, Limit::Bytes(_));
        Self {
            limit,
            first_update: Some(Nanos::ZERO),
            burst: PieBurst::Ns3(MAX_BURST),
            short_queue: Some(if in_bytes { ShortQueue::Bytes(mean + mean) } else { ShortQueue::Packets(2) }),
            derandomise: false,
            mark_below: None,
            scale_to_size: in_bytes.then_some(mean),
            ..Self::default()
        }
    }
}

impl PieScaling {
    /// The divisor of an update while the probability is `probability`.
    #[inline]
    pub fn divisor(self, probability: f64) -> f64 {
        let steps: &[(f64, f64)] = match self {
            Self::Rfc8033 => &[(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)],
            Self::Ns3Old => &[(1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0), (1.0, 0.5), (10.0, 0.125)],
            Self::None => &[],
        };
        steps.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, divisor)| *divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divisor_follows_the_table_of_section_4_2() {
        for (probability, divisor) in [
            (0.0, 2048.0),
            (9.9e-7, 2048.0),
            (1e-6, 512.0),
            (9.9e-6, 512.0),
            (1e-5, 128.0),
            (1e-4, 32.0),
            (1e-3, 8.0),
            (1e-2, 2.0),
            (0.099, 2.0),
            (0.1, 1.0),
            (1.0, 1.0),
        ] {
            assert_eq!(PieScaling::Rfc8033.divisor(probability), divisor, "{probability}");
            assert_eq!(PieScaling::None.divisor(probability), 1.0);
        }
        let old = [0.0, 1e-3, 1e-2, 0.1, 0.5, 1.0].map(|probability| PieScaling::Ns3Old.divisor(probability));
        assert_eq!(old, [32.0, 8.0, 2.0, 0.5, 0.5, 0.125]);
    }
}
