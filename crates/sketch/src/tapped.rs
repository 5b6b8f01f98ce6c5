//! ConQuest on a switch beside a router (Chen et al., CoNEXT 2019, section 6): taps give it each packet twice, on its way into the router and on its
//! way out.

mod waiting;

use crate::{ConQuest, ConQuestParams, Estimator, Expiry, ParamsError, Passes, Weights};
use queuescope_wire::Nanos;
use waiting::Waiting;

/// ConQuest for a router that cannot run it, as a switch does it that sees copies of packets from taps.
///
/// A packet from a link into the router waits in a table, indexed by a hash of the fields that the router leaves unchanged. When it comes from the link out, its delay
/// is known, and the snapshots give the part of the queue that its flow had. A packet that was not seen on its way in is counted in the snapshots,
/// but its flow is not looked up (section 6.2).
///
/// It is the reference of the program `conquest-legacy` in `queuescope-p4`, packet by packet, and has its limits:
///
/// - A packet waits at one place, which its hash gives. If another packet waits there, and has not expired, the insertion fails, and the packet counts as unseen when it
///   leaves. A second packet with the same digest fails, too. (`queuescope tap` keeps both, and matches them in order.)
/// - Times are compared as 32 bits of nanoseconds, which wrap every 4.3 s. When they wrap, every waiting packet may be replaced. One that never left
///   takes its place again, for the longest delay, each 4.3 s after it came.
/// - A packet that came at a time of 0 modulo 2^32 ns is not found.
///
/// On a computer with memory, `queuescope_meter::tap` is better: it loses no packet to a collision.
///
/// ```
/// use queuescope_sketch::{TappedConQuest, TappedConQuestParams, Verdict};
/// use queuescope_wire::Nanos;
///
/// let mut switch = TappedConQuest::new(TappedConQuestParams { threshold: 50_000, ..TappedConQuestParams::default() })?;
/// // Packets of one flow come every 10 us, and leave 3 ms later.
/// let time = |packet: u64| Nanos(5_000_000_000 + packet * 10_000);
/// let digest = |packet: u64| packet.wrapping_mul(0x9e37_79b9_7f4a_7c15);
/// let mut last = Verdict::Unseen;
/// for packet in 0..1_000 {
///     switch.came(digest(packet), time(packet));
///     if let Some(before) = packet.checked_sub(300) {
///         last = switch.left(digest(before), 7, 1_500, time(packet));
///     }
/// }
/// let Verdict::Heavy { delay, estimate } = last else { panic!("{last:?}") };
/// println!("waited {delay}, beside {estimate} bytes of its flow");
/// assert_eq!(delay, Nanos(3_000_000));
/// # Ok::<(), queuescope_sketch::TappedError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TappedConQuest {
    params: TappedConQuestParams,
    waiting: Waiting,
    flows: ConQuest,
    stats: TappedStats,
}

/// The parameters of [`TappedConQuest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TappedConQuestParams {
    /// The snapshots.
    pub sketch: ConQuestParams,
    /// Which windows count. [`Estimator::Outer`] by default; section 3.3 rounds inwards, which finds half of the flows. A switch cannot do [`Estimator::Overlap`].
    pub estimator: Estimator,
    /// The number of packets that can wait: a power of two, 2 to 2^16: a Tofino has no room for more in a stage.
    pub slots: u32,
    /// The longest time that a packet can be in the router, at most [`LONGEST`](Self::LONGEST). A waiting packet may be replaced when it is older.
    pub max_delay: Nanos,
    /// `tau`: flows of packets that waited no longer are not reported.
    pub tau: Nanos,
    /// The least bytes of a flow in the queue with which it is reported.
    pub threshold: u32,
}

/// What is known of a packet that left the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was not seen on its way in, or is no longer known.
    Unseen,
    /// It waited no longer than `tau`.
    Short {
        /// Its time in the router.
        delay: Nanos,
    },
    /// Its flow has less of the queue than the threshold.
    Light {
        /// Its time in the router.
        delay: Nanos,
        /// The bytes of its flow that left while it waited.
        estimate: u32,
    },
    /// Its flow has at least as much of the queue: it is reported.
    Heavy {
        /// Its time in the router.
        delay: Nanos,
        /// The bytes of its flow that left while it waited.
        estimate: u32,
    },
}

/// Packets by what became of them. Each counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TappedStats {
    /// On their way in: waiting for their second appearance.
    pub inserted: u64,
    /// On their way in: another packet had their place.
    pub occupied: u64,
    /// On their way out: [`Verdict::Unseen`].
    pub unseen: u64,
    /// On their way out: [`Verdict::Short`].
    pub short: u64,
    /// On their way out: [`Verdict::Light`].
    pub light: u64,
    /// On their way out: [`Verdict::Heavy`].
    pub heavy: u64,
}

/// Parameters that [`TappedConQuest`] cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TappedError {
    /// The dimensions of the snapshots.
    #[error(transparent)]
    Sketch(#[from] ParamsError),
    /// The number of packets that can wait.
    #[error("{slots} packets cannot wait: use a power of two from 2 to 65536, because a place is a slice of a hash")]
    Slots {
        /// The number that was given.
        slots: u32,
    },
    /// The longest delay.
    #[error(
        "the longest delay cannot be {max_delay}: use 1ns to 2.08s; 32 bits of nanoseconds distinguish twice as much"
    )]
    MaxDelay {
        /// The delay that was given.
        max_delay: Nanos,
    },
}

impl TappedError {
    /// The field of [`TappedConQuestParams`] that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Sketch(_) => "sketch",
            Self::Slots { .. } => "slots",
            Self::MaxDelay { .. } => "max_delay",
        }
    }
}

/// Those of the paper's section 6.3: four snapshots of two rows and 64 columns, windows of 1.05 ms (a power of two, for a switch) that generated packets clean, delays of up to
/// four windows, and `tau` = 0.5 ms. The threshold is a tenth of what 10 Gb/s sends in `tau`.
impl Default for TappedConQuestParams {
    fn default() -> Self {
        let sketch = ConQuestParams {
            snapshots: 4,
            rows: 2,
            columns: 64,
            window: Nanos(1 << 20),
            expiry: Expiry::Clean { passes: Passes::Generated },
            weights: Weights::default(),
            seed: 0,
        };
        Self {
            sketch,
            estimator: Estimator::Outer,
            slots: 1 << 16,
            max_delay: Nanos(1 << 22),
            tau: Nanos(500_000),
            threshold: 62_500,
        }
    }
}

impl TappedConQuestParams {
    /// The longest delay that 32 bits of nanoseconds distinguish from a time to come, with the longest window of a switch added: 2.08 s.
    pub const LONGEST: Nanos = Nanos((1 << 31) - (1 << 26) - 1);
    /// The most packets that can wait.
    pub const MOST_SLOTS: u32 = 1 << 16;

    /// Checks the number of packets that can wait and the longest delay. [`TappedConQuest::new`] checks the dimensions of the snapshots, too.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range, and what is possible.
    pub fn check(&self) -> Result<(), TappedError> {
        let Self { slots, max_delay, .. } = *self;
        if !slots.is_power_of_two() || !(2..=Self::MOST_SLOTS).contains(&slots) {
            return Err(TappedError::Slots { slots });
        }
        if max_delay == Nanos::ZERO || max_delay > Self::LONGEST {
            return Err(TappedError::MaxDelay { max_delay });
        }
        Ok(())
    }
}

impl TappedConQuest {
    /// Nothing waits, and the snapshots are empty.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range.
    pub fn new(params: TappedConQuestParams) -> Result<Self, TappedError> {
        params.check()?;
        let flows = ConQuest::new(params.sketch.clone())?;
        let waiting = Waiting::new(params.slots, params.max_delay);
        Ok(Self { params, waiting, flows, stats: TappedStats::default() })
    }

    /// A packet came from a link into the router. `packet` is a hash of what identifies it: the upper half gives its place, and the lower one is
    /// compared. Calls of this and of [`left`](Self::left) are in the order of time. Returns whether it waits now.
    pub fn came(&mut self, packet: u64, now: Nanos) -> bool {
        let inserted = self.waiting.insert(packet, now);
        self.stats.inserted += u64::from(inserted);
        self.stats.occupied += u64::from(!inserted);
        inserted
    }

    /// A packet of `size` bytes came from the link out of the router. `flow` is a digest of its flow.
    pub fn left(&mut self, packet: u64, flow: u64, size: u32, now: Nanos) -> Verdict {
        let Some(delay) = self.waiting.take(packet, now) else {
            self.flows.record(flow, size, now);
            self.stats.unseen += 1;
            return Verdict::Unseen;
        };
        let estimate = self.flows.observe(flow, size, now.saturating_sub(delay), now, self.params.estimator);
        let estimate = u32::try_from(estimate).unwrap_or(u32::MAX);
        if delay <= self.params.tau {
            self.stats.short += 1;
            Verdict::Short { delay }
        } else if estimate < self.params.threshold {
            self.stats.light += 1;
            Verdict::Light { delay, estimate }
        } else {
            self.stats.heavy += 1;
            Verdict::Heavy { delay, estimate }
        }
    }

    /// The parameters.
    pub fn params(&self) -> &TappedConQuestParams {
        &self.params
    }

    /// The counts so far.
    pub fn stats(&self) -> &TappedStats {
        &self.stats
    }

    /// The snapshots.
    pub fn snapshots(&self) -> &ConQuest {
        &self.flows
    }

    /// The digest that waits at a place, and the time at which it came, as a switch's register has them; `None` beyond the last place. An empty place
    /// has the digest 0 and the time 2^32 - 1.
    pub fn slot(&self, slot: usize) -> Option<(u32, u32)> {
        self.waiting.slot(slot)
    }
}

impl Verdict {
    /// The packet's time in the router, if it is known.
    pub fn delay(self) -> Option<Nanos> {
        match self {
            Self::Unseen => None,
            Self::Short { delay } | Self::Light { delay, .. } | Self::Heavy { delay, .. } => Some(delay),
        }
    }
}
