//! Rates and averages with exponential decay: TDRM-UTEMA and UTEMA (time-dependent rate measurement and averaging by an
//! unbiased time-exponential moving average; section 3.2 of the paper and its reference 24).
//!
//! A sample of age `t` has the weight `e^(-t / M)`, where M is the memory. Unbiased means that the sum is divided by
//! the sum of all weights since the start, so that no zeros are assumed before it.

use super::Activity;
use queuescope_wire::{ByteCount, Nanos, Rate};

/// The parameters of a rate measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterParams {
    /// M: the time constant of the decay. 3 s by default (the paper's M_AM). At least 1 ns.
    pub memory: Nanos,
    /// The shortest time by which bytes are divided. 30 ms by default.
    ///
    /// The paper does not define the rate after the first packet of an aggregate, when no time has passed yet. Here the
    /// bytes of that packet are taken to have come in this time. Only the first 30 ms of an aggregate depend on it.
    pub least_time: Nanos,
}

impl Default for MeterParams {
    fn default() -> Self {
        Self { memory: Nanos(3_000_000_000), least_time: Nanos(30_000_000) }
    }
}

/// The rate of an aggregate, by TDRM-UTEMA.
///
/// ```
/// use queuescope_queue::{MeterParams, RateMeter};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let (mut meter, params) = (RateMeter::default(), MeterParams::default());
/// // 1250 bytes each 10 ms for a minute are 1 Mb/s.
/// let rate = (0..6_000).map(|n| meter.record(ByteCount(1250), Nanos(n * 10_000_000), &params)).last();
/// println!("{rate:?} bit/s");
/// assert!(rate.is_some_and(|rate| (rate / 1e6 - 1.0).abs() < 0.01));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RateMeter {
    /// S, in bits.
    bits: f64,
    /// T, in seconds: the weighted time, `(1 - e^(-(t - t0) / M)) M`.
    seconds: f64,
    /// Time of the last packet; `None` before the first packet, which defines the start t0.
    last: Option<Nanos>,
}

impl RateMeter {
    /// Records a packet. Returns the rate including it, in bit/s.
    #[inline]
    pub fn record(&mut self, size: ByteCount, now: Nanos, params: &MeterParams) -> f64 {
        if let Some(last) = self.last {
            let lost = forgotten(now.saturating_sub(last), params.memory);
            self.bits -= self.bits * lost;
            self.seconds += (params.memory.0 as f64 * 1e-9 - self.seconds) * lost;
        }
        self.last = Some(now);
        self.bits += size.0 as f64 * 8.0;
        self.bits / self.seconds.max(params.least_time.0.max(1) as f64 * 1e-9)
    }

    /// When the last packet came.
    pub fn last(&self) -> Option<Nanos> {
        self.last
    }
}

/// An average of samples with exponential decay, by UTEMA.
#[derive(Debug, Clone, Copy, Default)]
pub struct Average {
    /// S and N of the paper.
    sum: f64,
    count: f64,
    last: Nanos,
}

impl Average {
    /// Adds a sample.
    #[inline]
    pub fn record(&mut self, sample: f64, now: Nanos, memory: Nanos) {
        let lost = forgotten(now.saturating_sub(self.last), memory);
        self.sum += sample - self.sum * lost;
        self.count += 1.0 - self.count * lost;
        self.last = now;
    }

    /// The average. Time alone does not change it. `None` before the first sample.
    #[inline]
    pub fn value(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// `1 - e^(-time / memory)`: the part of the weight that decays in `time`.
#[inline]
fn forgotten(time: Nanos, memory: Nanos) -> f64 {
    let x = time.0 as f64 / memory.0.max(1) as f64;
    if x < 1.0 / 64.0 {
        // Packets are nearly always so close together that the first terms of the series are exact to 15 digits, in a
        // fifth of the time.
        x * (1.0 - x * (1.0 / 2.0 - x * (1.0 / 6.0 - x * (1.0 / 24.0 - x * (1.0 / 120.0 - x / 720.0)))))
    } else {
        -libm::expm1(-x)
    }
}

/// `A = log2(R_m / R_r)`, equation 1.
#[inline]
pub fn activity(rate: f64, reference: Rate) -> f64 {
    libm::log2(rate / reference.bits_per_second() as f64)
}

impl Activity {
    /// The highest number of fraction bits.
    pub const FRACTION_BITS: u8 = 8;

    /// The nearest value with `fraction_bits` fraction bits (at most 8). A value out of range becomes the highest or
    /// lowest one.
    #[inline]
    pub fn nearest(activity: f64, fraction_bits: u8) -> Self {
        let unused = Self::FRACTION_BITS.saturating_sub(fraction_bits);
        let steps = (activity * f64::from(256u16 >> unused)).round() as i32;
        Self(steps.saturating_mul(1 << unused).clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16)
    }

    /// The activity as a floating-point number.
    #[inline]
    pub fn value(self) -> f64 {
        f64::from(self.0) / 256.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REFERENCE: u64 = 10_000;

    fn metered(packets: &[(u64, u64)], params: &MeterParams) -> f64 {
        let mut meter = RateMeter::default();
        packets.iter().map(|(time, size)| meter.record(ByteCount(*size), Nanos(*time), params)).last().unwrap()
    }

    /// By hand, with M = 3 s and R_r = 10 kb/s.
    #[test]
    fn activities_by_hand() {
        let reference = Rate::from_bits_per_second(REFERENCE).unwrap();
        let carried = |rate| Activity::nearest(activity(rate, reference), 8).0;
        let params = MeterParams::default();
        // 12 000 bits in 30 ms: log2 40 = 5.321928.
        assert_eq!(carried(metered(&[(7, 1500)], &params)), 1362);
        // 12 000 (1 + e^(-1/3)) bits in 3 (1 - e^(-1/3)) s = 24 221.81 bit/s: 1.276308.
        let rate = metered(&[(0, 1500), (1_000_000_000, 1500)], &params);
        assert!((rate - 24_221.81).abs() < 0.01, "{rate}");
        assert_eq!(carried(rate), 327);
        // 40 Mb/s in packets of 1500 bytes, for 30 s: log2 4000 = 11.965784.
        let steady = (0..100_000u64).map(|n| (n * 300_000, 1500)).collect::<Vec<_>>();
        let rate = metered(&steady, &params);
        assert!((rate / 40e6 - 1.0).abs() < 1e-4, "{rate}");
        assert_eq!(carried(rate), 3063);
        // 3 s later the old bits have the weight e^-1, and the time counts as nearly 3 s.
        let later = [&steady[..], &[(99_999 * 300_000 + 3_000_000_000, 0)]].concat();
        let rate = metered(&later, &params);
        assert!((rate / (40e6 * (-1f64).exp()) - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn activities_are_rounded_to_the_precision_of_the_header() {
        let carried = |activity, bits| Activity::nearest(activity, bits).0;
        assert_eq!([8, 4, 1, 0].map(|bits| carried(1.276308, bits)), [327, 320, 384, 256]);
        assert_eq!([8, 4, 1, 0].map(|bits| carried(-1.276308, bits)), [-327, -320, -384, -256]);
        assert_eq!(
            [200.0, -200.0, f64::INFINITY, f64::NEG_INFINITY].map(|high| carried(high, 8)),
            [i16::MAX, i16::MIN, i16::MAX, i16::MIN]
        );
        assert_eq!([carried(200.0, 0), carried(f64::NAN, 8), carried(1.3, 200)], [i16::MAX, 0, 333]);
        assert_eq!(Activity(-320).value(), -1.25);
    }

    #[test]
    fn averages_by_hand() {
        let mut average = Average::default();
        assert_eq!(average.value(), None);
        let memory = Nanos(300_000_000);
        average.record(10.0, Nanos(5), memory);
        assert_eq!(average.value(), Some(10.0));
        // (10 e^-1 + 20) / (e^-1 + 1) = 23.678794 / 1.367879.
        average.record(20.0, Nanos(300_000_005), memory);
        assert!((average.value().unwrap() - 17.310586).abs() < 1e-6);
        average.record(-3.0, Nanos(u64::MAX), memory);
        assert_eq!(average.value(), Some(-3.0));
    }

    #[test]
    fn the_series_is_the_exponential() {
        for time in (0..4_000_000).step_by(997).chain([1, 15_624, 15_625, 15_626]) {
            let (part, exact) = (forgotten(Nanos(time), Nanos(1_000_000)), -(-(time as f64) / 1e6).exp_m1());
            assert!((part - exact).abs() <= 1e-14 * exact, "{time}: {part}, not {exact}");
        }
        assert_eq!(forgotten(Nanos::MAX, Nanos(0)), 1.0);
    }

    proptest! {
        /// The sums as the paper defines them, over all packets since the start.
        #[test]
        fn meters_are_the_sums_that_define_them(
            packets in prop::collection::vec((0..2_000_000_000u64, 0..100_000u64), 1..60), memory in 1_000_000..5_000_000_000u64,
            least_time in 1..100_000_000u64, start in 0..1u64 << 60
        ) {
            let params = MeterParams { memory: Nanos(memory), least_time: Nanos(least_time) };
            let (mut meter, mut average, mut time) = (RateMeter::default(), Average::default(), start);
            let mut past: Vec<(u64, f64)> = Vec::new();
            for (gap, size) in packets {
                time += gap;
                past.push((time, size as f64));
                let rate = meter.record(ByteCount(size), Nanos(time), &params);
                average.record(size as f64, Nanos(time), params.memory);

                let weight = |at: u64| (-((time - at) as f64) / memory as f64).exp();
                let sum = past.iter().map(|(at, size)| size * weight(*at)).sum::<f64>();
                let count = past.iter().map(|(at, _)| weight(*at)).sum::<f64>();
                let seconds = (1.0 - weight(past[0].0)) * memory as f64 * 1e-9;
                let expected = sum * 8.0 / seconds.max(least_time as f64 * 1e-9);
                prop_assert!((rate - expected).abs() <= 1e-7 * expected, "{rate}, not {expected}");
                let expected = sum / count;
                prop_assert!((average.value().unwrap() - expected).abs() <= 1e-9 * expected.max(1e-9));
            }
        }
    }
}
