//! ABC in integers, as the data plane of a switch computes it: sums, shifts, comparisons and tables of logarithms.
//!
//! [`SwitchMeter`] stands for [`RateMeter`](super::RateMeter) and the logarithm of the rate, [`SwitchAqm`] for
//! [`ActivityAqm`](super::ActivityAqm). The programs `abc-edge` and `abc-core` of `queuescope-p4` do the same, step for
//! step. The prototype of the paper computes both in floating point, in functions that were added to its switch
//! (section 5.1). `docs/explanation/abc.md` states how far the integers are from the real numbers.

use super::{Activity, ActivityAqmParams, MeterParams};
use queuescope_wire::{Nanos, Rate};
use std::ops::RangeInclusive;

#[cfg(test)]
mod tests;

/// The activity of one aggregate, measured with integers.
///
/// UTEMA (section 3.2) divides the bits by the time, both weighted by `e^(-age / M)`. Here the weight is halved at the
/// end of each *window*, of 2^`window` ns. Instead of halving the old sum, a packet counts twice as much as one in the
/// window before. After four windows, which are an *epoch*, a second sum begins with weight 1. So a sum only grows, by
/// one addition for each packet. The rate counts the packets of this epoch, and those of the previous one with a 16th
/// of their weight: at least the last four windows.
///
/// The weighted time is counted in the same way, in ticks of 2^`tick` ns. For a constant rate, both have the same
/// weights, so that the quotient is the rate, from the first packet on.
///
/// An aggregate that sends nothing in a whole epoch starts without history.
///
/// ```
/// use queuescope_queue::{SwitchMeter, SwitchMeterParams};
/// use queuescope_wire::Nanos;
///
/// let (mut meter, params) = (SwitchMeter::default(), SwitchMeterParams::default());
/// // 1250 bytes each 10 ms for a minute are 1 Mb/s, 100 times the reference rate.
/// let activity = (0..6_000).map(|n| meter.record(1250, Nanos(n * 10_000_000), &params)).last();
/// assert!(activity.is_some_and(|activity| (activity.value() - 100f64.log2()).abs() < 0.02));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchMeter {
    epoch: u16,
    /// The weighted bytes of even and odd epochs.
    sums: [u32; 2],
    /// The places at which the time of even and odd epochs begins to count.
    starts: [u32; 2],
}

/// The parameters of a [`SwitchMeter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchMeterParams {
    /// The logarithm of the time in nanoseconds after which a packet has half its weight, 20 to 32. 31 by default: 2.1 s,
    /// a memory of 3.1 s (the paper's M_AM is 3 s).
    pub window: u32,
    /// The shortest time by which bytes are divided. 30 ms by default, as in [`MeterParams`].
    pub least_time: Nanos,
    /// R_r: the rate at which the activity is 0. 10 kb/s by default (section 6.1.3).
    pub reference: Rate,
}

/// The AQM of one port, with integers: it accepts or drops packets by their activity (section 3.3).
///
/// The average of activities takes one access of a register, in which the average is compared and changed: the packet's
/// threshold, `Q > Q_base - gamma (A - A_avg)`, is rearranged, so that a packet is dropped if A_avg is below `A - (Q_base -
/// Q) / gamma`.
///
/// ```
/// use queuescope_queue::{Activity, SwitchAqm, SwitchAqmParams};
///
/// let params = SwitchAqmParams::default();
/// let mut aqm = SwitchAqm::new(&params);
/// assert!(aqm.accepts(Activity(512), 20, &params), "the first packet");
/// assert!(aqm.accepts(Activity(512), 20, &params));
/// assert!(!aqm.accepts(Activity(768), 20, &params), "it is twice as active as the average");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchAqm {
    /// The average, in units of 2^-24 above -128; of the mean, 0 before the first packet.
    average: u32,
}

/// The parameters of a [`SwitchAqm`]. Lengths are in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchAqmParams {
    /// Q_min, below [`SwitchAqmParams::LONGEST`]. 6.
    pub least: u32,
    /// Q_base, below the same. 20.
    pub base: u32,
    /// The logarithm of gamma, 2 to 8. 4, for 16 packets.
    pub gamma_shift: u32,
    /// How the activities of accepted packets are averaged.
    pub average: SwitchAverage,
}

/// An average that one access of a register computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchAverage {
    /// The mean: each accepted packet moves the average towards its activity by this power of two of the difference. So
    /// the memory is a number of packets, not a time. With 10, it is 1024 packets: 0.25 s of the experiment of section 6,
    /// with 4170 packets/s (M_AA is 0.3 s). 1 to 16.
    Mean {
        /// The power of two.
        shift: u32,
    },
    /// The median: each accepted packet moves the average by one step towards its activity, so that it comes to be as
    /// often below as above. A Tofino's register unit can do this, and cannot shift.
    Median {
        /// The step, in units of 2^-24 of activity.
        step: u32,
    },
}

impl Default for SwitchMeterParams {
    fn default() -> Self {
        let MeterParams { least_time, .. } = MeterParams::default();
        Self { window: 31, least_time, reference: super::Contract::default().reference }
    }
}

/// The windows of an epoch: 2^2. A packet in the last one has the weight 2^3.
const WINDOWS: u32 = 4;

impl SwitchMeterParams {
    /// The logarithm of the windows of an epoch.
    pub const EPOCH_SHIFT: u32 = WINDOWS.ilog2();

    /// The logarithm of what an epoch's weights are of those of the next one: 16 times more.
    pub const OLDER_SHIFT: u32 = WINDOWS;

    /// The bits of the time within a window, in ticks.
    pub const TICK_BITS: u32 = 20;

    /// The meter whose windows are closest to those of another meter's memory: a packet has half its weight after `M ln
    /// 2`.
    pub fn nearest(params: &MeterParams, reference: Rate) -> Self {
        let half = params.memory.0.max(1) as f64 * std::f64::consts::LN_2;
        let window = libm::log2(half).round().clamp(0.0, 48.0) as u32;
        Self { window, least_time: params.least_time, reference }
    }

    /// The epoch of a meter before its first packet: the middle of 16 bits, so that the first packet comes after a long silence. Epochs of windows
    /// of 2^31 ns or more are below it.
    pub const NO_EPOCH: u16 = 1 << 15;

    /// The logarithm of a tick in nanoseconds.
    pub fn tick(&self) -> u32 {
        self.window.saturating_sub(Self::TICK_BITS)
    }

    /// The shortest time in ticks; at least one, and at most a window.
    pub fn least_ticks(&self) -> u32 {
        (self.least_time.0 >> self.tick()).clamp(1, Self::FIRST.into()) as u32
    }

    /// The place in an epoch where it begins. The first window is as long as what is before it, so that the place is a
    /// time within a window, with a one before it, times the weight.
    pub const FIRST: u32 = 1 << Self::TICK_BITS;

    /// The place where an epoch ends.
    pub const END: u32 = Self::FIRST << WINDOWS;

    /// The logarithm of a byte per tick, divided by the reference rate, in steps of an activity; subtracted.
    pub fn reference_steps(&self) -> i16 {
        let bits_per_tick = 8e9 / (1u64 << self.tick()) as f64;
        steps(self.reference.bits_per_second() as f64 / bits_per_tick) as i16
    }

    /// The number of an epoch.
    pub fn epoch(&self, now: Nanos) -> u16 {
        // Times have 48 bits.
        ((now.0 & ((1 << 48) - 1)) >> (self.window + Self::EPOCH_SHIFT)) as u16
    }
}

/// A meter before its first packet. Its epoch is far from those of the first minutes.
impl Default for SwitchMeter {
    fn default() -> Self {
        Self { epoch: SwitchMeterParams::NO_EPOCH, sums: [0; 2], starts: [SwitchMeterParams::FIRST; 2] }
    }
}

impl SwitchMeter {
    /// Records a packet of `length` bytes. Returns the activity with it.
    pub fn record(&mut self, length: u16, now: Nanos, params: &SwitchMeterParams) -> Activity {
        use SwitchMeterParams as P;
        let epoch = params.epoch(now);
        let silent = epoch.wrapping_sub(std::mem::replace(&mut self.epoch, epoch));
        let window = (now.0 >> params.window) as u32 % WINDOWS;
        let weighted = u32::from(length) << window;
        let mark = ((now.0 >> params.tick()) as u32 % P::FIRST) | P::FIRST;
        let place = mark << window;
        let this = usize::from(epoch % 2);
        let older = 1 - this;
        self.sums[this] = if silent == 0 { self.sums[this].saturating_add(weighted) } else { weighted };
        match silent {
            0 => {}
            1 => self.starts[this] = P::FIRST,
            _ => {
                self.starts[this] = place;
                (self.sums[older], self.starts[older]) = (0, P::END);
            }
        }
        let bytes = self.sums[this].saturating_add(self.sums[older] >> P::OLDER_SHIFT);
        let before = P::FIRST.wrapping_sub(self.starts[older] >> P::OLDER_SHIFT);
        let ticks = place.wrapping_sub(self.starts[this]).wrapping_add(before);
        let ticks = ticks.max(params.least_ticks() << window);
        let above = (switch_log2(bytes) as i16).saturating_sub(params.reference_steps());
        Activity(above.saturating_sub(switch_log2(ticks) as i16))
    }

    /// The words of its registers: the epoch, the sums and the starts of even and odd epochs.
    pub fn words(&self) -> [u64; 5] {
        let ([even, odd], [even_start, odd_start]) = (self.sums, self.starts);
        [self.epoch.into(), even.into(), odd.into(), even_start.into(), odd_start.into()]
    }
}

impl Default for SwitchAqmParams {
    fn default() -> Self {
        Self { least: 6, base: 20, gamma_shift: 4, average: SwitchAverage::MEAN }
    }
}

impl SwitchAverage {
    /// The mean over 1024 packets.
    pub const MEAN: Self = Self::Mean { shift: 10 };

    /// The median, in steps of a 64th of an activity, so that 64 packets follow a rate that doubles.
    pub const MEDIAN: Self = Self::Median { step: 1 << 18 };
}

impl SwitchAqmParams {
    /// The longest queue that is distinguished, in packets.
    pub const LONGEST: u32 = (1 << 9) - 1;

    /// The memories that a shift from 1 to 16 comes near.
    pub const MEMORY: RangeInclusive<Nanos> = Nanos(340_000)..=Nanos(22_000_000_000);

    /// The AQM with these parameters; `None` if they are not whole numbers, gamma is not a power of two from 4 to 256,
    /// a length is above [`LONGEST`](Self::LONGEST), or the memory is not one of [`MEMORY`](Self::MEMORY). The memory becomes a number of packets, the
    /// nearest power of two at the 4170 packets/s of section 5.1.
    pub fn nearest(params: &ActivityAqmParams) -> Option<Self> {
        let whole = |length: f64| {
            (length.fract() == 0.0 && (0.0..=Self::LONGEST.into()).contains(&length)).then_some(length as u32)
        };
        let gamma = whole(params.gamma).filter(|gamma| gamma.is_power_of_two() && (4..=256).contains(gamma))?;
        if !Self::MEMORY.contains(&params.memory) {
            return None;
        }
        let packets = params.memory.0 as f64 * 1e-9 * PAPERS_PACKETS;
        let shift = libm::log2(packets).round() as u32;
        Some(Self {
            least: whole(params.least)?,
            base: whole(params.base)?,
            gamma_shift: gamma.ilog2(),
            average: SwitchAverage::Mean { shift },
        })
    }
}

/// The packets/s of the experiment (section 5.1).
const PAPERS_PACKETS: f64 = 4170.0;

impl SwitchAqm {
    /// The average of a port before its first packet: none for the mean. The median begins at an activity of 0, and takes
    /// 64 packets for each doubling of the rate to come near.
    pub fn new(params: &SwitchAqmParams) -> Self {
        match params.average {
            SwitchAverage::Mean { .. } => Self { average: 0 },
            SwitchAverage::Median { .. } => Self { average: above_lowest(0) },
        }
    }

    /// Whether a packet that finds `queue` packets is accepted. If so, it is averaged.
    pub fn accepts(&mut self, activity: Activity, queue: u32, params: &SwitchAqmParams) -> bool {
        let queue = queue.min(SwitchAqmParams::LONGEST);
        let behind = (params.base as i16).wrapping_sub(queue as i16) << (8 - params.gamma_shift);
        let level = if queue <= params.least { 0 } else { above_lowest(activity.0.saturating_sub(behind)) };
        let (before, own) = (self.average, above_lowest(activity.0));
        let is_below = before < level;
        match params.average {
            SwitchAverage::Mean { .. } if before == 0 => self.average = own,
            _ if is_below => {}
            SwitchAverage::Mean { shift } => {
                let change = (i64::from(own) - i64::from(before)) >> shift;
                self.average = (i64::from(before) + change) as u32;
            }
            SwitchAverage::Median { step } if before < own => self.average = before.saturating_add(step),
            SwitchAverage::Median { step } => self.average = before.saturating_sub(step),
        }
        let is_first = before == 0 && matches!(params.average, SwitchAverage::Mean { .. });
        is_first || !is_below
    }

    /// Whether a packet without activity is accepted: up to Q_base. It is not averaged.
    pub fn accepts_unmetered(queue: u32, params: &SwitchAqmParams) -> bool {
        queue.min(SwitchAqmParams::LONGEST) <= params.base
    }

    /// The average; `None` before the first packet.
    pub fn average(&self) -> Option<f64> {
        (self.average != 0).then(|| f64::from(self.average) / f64::from(1 << 24) - 128.0)
    }

    /// The word of its register.
    pub fn word(&self) -> u64 {
        self.average.into()
    }
}

/// An activity as the register of averages has it: in units of 2^-24 above the lowest.
fn above_lowest(activity: i16) -> u32 {
    u32::from(activity.cast_unsigned()) << 16 ^ 1 << 31
}

/// The bits of a number behind its highest bit that its logarithm depends on.
const MANTISSA_BITS: u32 = 7;

/// The logarithm of a number in steps of an activity, 2^-8. Numbers that agree in their highest bit and the seven behind it
/// have the same: that of their geometric mean. That of 0 is 0.
pub fn switch_log2(number: u32) -> u16 {
    let Some((low, high)) = number.checked_ilog2().map(|log| block(number, log.saturating_sub(MANTISSA_BITS))) else {
        return 0;
    };
    // Below 2^8, blocks are single numbers.
    let middle = if low == high { f64::from(low) } else { libm::sqrt(f64::from(low) * (f64::from(high) + 1.0)) };
    steps(middle) as u16
}

/// The table of [`switch_log2`]: each block of numbers that have the same logarithm, with its first and its last one.
pub fn switch_log2_blocks() -> impl Iterator<Item = (u32, u32, u16)> {
    let next = |(_, high): &(u32, u32)| {
        let number = high.checked_add(1)?;
        Some(block(number, number.ilog2().saturating_sub(MANTISSA_BITS)))
    };
    std::iter::successors(Some((1, 1)), next).map(|(low, high)| (low, high, switch_log2(low)))
}

/// The numbers that differ from a number in its lowest bits only.
fn block(number: u32, bits: u32) -> (u32, u32) {
    let low = number >> bits << bits;
    (low, low | ((1 << bits) - 1))
}

/// The nearest number of steps of an activity.
fn steps(number: f64) -> f64 {
    (libm::log2(number) * 256.0).round()
}
