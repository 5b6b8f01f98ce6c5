//! Datagrams at a constant rate, or on and off, without feedback.
//!
//! A source has a clock of its own that runs during on times, and sends by that clock: the rest of a gap at the end of an on time
//! passes in the next on time. So the rate during on times is exact over any number of periods, even if each
//! is shorter than a packet's time. (ns-3's `OnOffApplication` keeps the rest of a gap likewise; it waits for one gap
//! before its first packet, whereas this one sends at once.)

use super::spans::{Elapsed, OnOffClock};
use super::{OnOff, Random, WorkloadError};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// Parameters of a source of datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UdpParams {
    /// Bits per second of packets of `size` during on times.
    pub rate: Rate,
    /// The size of each packet, in the bytes that the rate counts; above 0.
    pub size: ByteCount,
    /// The spacing of packets.
    pub spacing: Spacing,
    /// On and off times; `None`: always on.
    pub on_off: Option<OnOff>,
    /// When it begins.
    pub start: Nanos,
    /// No packet is sent at this time or later, if it is given.
    pub until: Option<Nanos>,
}

/// The spacing of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Even: packet n is sent when `n * size` bytes at the rate have passed, rounded down to a nanosecond.
    #[default]
    Even,
    /// As `Even`, but each packet is delayed by a random part of the gap, drawn uniformly: rate and order stay, and sources of
    /// the same rate do not find a full queue in the same turn for ever.
    Jittered,
    /// Independent exponential gaps: a Poisson process.
    Poisson,
}

impl UdpParams {
    /// A constant rate from time 0 on, without end.
    pub fn constant(rate: Rate, size: ByteCount) -> Self {
        Self { rate, size, spacing: Spacing::Even, on_off: None, start: Nanos::ZERO, until: None }
    }

    /// Bits per second in the long run.
    pub fn mean_rate(&self) -> f64 {
        self.rate.bits_per_second() as f64 * self.on_off.map_or(1.0, OnOff::share)
    }
}

/// A source of datagrams: the time and size of each, in order.
///
/// ```
/// use queuescope_sim::workload::{UdpParams, UdpSource};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let params = UdpParams::constant("1mbps".parse()?, ByteCount(1_250));
/// let packets: Vec<_> = UdpSource::new(&params, 1)?.take(3).collect();
/// assert_eq!(packets[2], (Nanos(20_000_000), ByteCount(1_250)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct UdpSource {
    size: ByteCount,
    gaps: Gaps,
    clock: Option<OnOffClock>,
    random: Random,
    start: Nanos,
    until: Nanos,
}

/// The source's own clock.
#[derive(Debug, Clone)]
enum Gaps {
    Even {
        /// When the next packet is sent: whole nanoseconds, and the rest in units of `1 / rate` nanoseconds, below `rate`.
        next: (u64, u64),
        /// The gap between packets, in the same form.
        gap: (u64, u64),
        rate: u64,
        jittered: bool,
    },
    Poisson {
        /// The mean gap in nanoseconds.
        gap: f64,
        elapsed: Elapsed,
    },
}

impl UdpSource {
    /// A source. The seed matters only if spacing or periods are random.
    ///
    /// # Errors
    /// Fails if packets have 0 bytes, or if an on time is no more than a millionth of the gap between packets.
    pub fn new(params: &UdpParams, seed: u64) -> Result<Self, WorkloadError> {
        if params.size.0 == 0 {
            return Err(WorkloadError::NoBytes);
        }
        let mut random = Random::new(seed);
        let rate = params.rate.bits_per_second();
        let work = u128::from(params.size.0) * 8_000_000_000;
        let gap = work as f64 / rate as f64;
        let clock = match params.on_off {
            None => None,
            Some(periods) => {
                periods.check(gap)?;
                Some(OnOffClock::new(periods, random.fork()))
            }
        };
        let gaps = match params.spacing {
            Spacing::Even | Spacing::Jittered => {
                let jittered = params.spacing == Spacing::Jittered;
                let whole = u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX);
                Gaps::Even { next: (0, 0), gap: (whole, (work % u128::from(rate)) as u64), rate, jittered }
            }
            Spacing::Poisson => Gaps::Poisson { gap, elapsed: Elapsed::default() },
        };
        let until = params.until.unwrap_or(Nanos::MAX);
        Ok(Self { size: params.size, gaps, clock, random, start: params.start, until })
    }
}

impl Iterator for UdpSource {
    type Item = (Nanos, ByteCount);

    #[inline]
    fn next(&mut self) -> Option<(Nanos, ByteCount)> {
        let own = match &mut self.gaps {
            Gaps::Poisson { gap, elapsed } => elapsed.advance(*gap * self.random.exponential()),
            Gaps::Even { next, gap, rate, jittered } => {
                let own = next.0;
                let late = if *jittered { self.random.below(gap.0.max(1)) } else { 0 };
                let carry = next.1 >= *rate - gap.1;
                next.1 = if carry { next.1 - (*rate - gap.1) } else { next.1 + gap.1 };
                next.0 = own.saturating_add(gap.0).saturating_add(u64::from(carry));
                Nanos(own.saturating_add(late))
            }
        };
        let at = self.clock.as_mut().map_or(own, |clock| clock.at(own)).saturating_add(self.start);
        (at < self.until).then_some((at, self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Span;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap()
    }

    fn source(params: UdpParams, seed: u64) -> impl Iterator<Item = u64> {
        UdpSource::new(&params, seed).unwrap().map(|(at, _)| at.0)
    }

    #[test]
    fn a_constant_rate_is_sent_from_the_start_to_the_end() {
        let params = UdpParams {
            start: Nanos(5_000_000),
            until: Some(Nanos(9_000_000)),
            ..UdpParams::constant(rate(8_000_000), ByteCount(1_000))
        };
        let sent: Vec<_> = UdpSource::new(&params, 0).unwrap().collect();
        let packet = |ms: u64| (Nanos(ms * 1_000_000), ByteCount(1_000));
        assert_eq!(sent, [packet(5), packet(6), packet(7), packet(8)]);
    }

    /// On for 2.5 gaps: alternately two and three packets, not two each time.
    #[test]
    fn the_rest_of_a_gap_is_kept_for_the_next_on_time() {
        let on_off = OnOff { on: Span::Fixed(Nanos(2_500)), off: Span::Fixed(Nanos(7_500)) };
        let params = UdpParams { on_off: Some(on_off), ..UdpParams::constant(rate(8_000_000_000), ByteCount(1_000)) };
        let sent: Vec<_> = source(params, 0).take(8).collect();
        assert_eq!(sent, [0, 1_000, 2_000, 10_500, 11_500, 20_000, 21_000, 22_000]);
        assert!((params.mean_rate() - 2e9).abs() < 1e-3);
        let (packets, last) = source(params, 0).take(1_000_001).enumerate().last().unwrap();
        // 250 packets each 100 periods of 10 us.
        assert_eq!((packets, last), (1_000_000, 4_000_000_000));
        // If no packet fits into an on time, one is sent every few on times.
        let short = OnOff { on: Span::Fixed(Nanos(250)), off: Span::Fixed(Nanos(50)) };
        let sent: Vec<_> = source(UdpParams { on_off: Some(short), ..params }, 0).take(3).collect();
        assert_eq!(sent, [0, 1_200, 2_400]);
    }

    #[test]
    fn a_poisson_source_has_its_rate() {
        let params = UdpParams { spacing: Spacing::Poisson, ..UdpParams::constant(rate(12_000_000), ByteCount(1_500)) };
        let last = source(params, 7).nth(999_999).unwrap() as f64 / 1e9;
        // A gap of 1 ms, a million times: five standard deviations.
        assert!((last / 1_000.0 - 1.0).abs() < 0.005, "{last}");
        assert_ne!(source(params, 7).next(), source(params, 8).next());
    }

    #[test]
    fn jitter_keeps_rate_and_order() {
        let even = UdpParams::constant(rate(7_000_000), ByteCount(1_500));
        let jittered = source(UdpParams { spacing: Spacing::Jittered, ..even }, 7);
        let gap = 1_500 * 8_000 / 7;
        let (mut last, mut late) = (0, 0.0);
        for (on_time, at) in source(even, 0).zip(jittered).take(10_000) {
            assert!((on_time..on_time + gap).contains(&at) && at >= last);
            last = at;
            late += (at - on_time) as f64 / gap as f64;
        }
        // A uniform mean: five standard deviations.
        assert!((late / 10_000.0 - 0.5).abs() < 5.0 / (12.0f64 * 10_000.0).sqrt(), "{late}");
    }

    #[test]
    fn exponential_periods_have_their_share() {
        let on_off = OnOff { on: Span::Exponential(Nanos(100_000_000)), off: Span::Exponential(Nanos(300_000_000)) };
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let constant = UdpParams::constant(rate(12_000_000), ByteCount(1_500));
            let params = UdpParams { spacing, on_off: Some(on_off), ..constant };
            let last = source(params, 3).nth(1_000_000).unwrap() as f64 / 1e9;
            // 10 000 periods of 0.4 s on average: five standard deviations are 5 %.
            assert!((last * params.mean_rate() / 12e9 - 1.0).abs() < 0.05, "{last}");
        }
    }

    #[test]
    fn impossible_sources_say_why() {
        let constant = UdpParams::constant(rate(1_000), ByteCount(1_500));
        let why = |params| UdpSource::new(&params, 0).unwrap_err().to_string();
        assert!(why(UdpParams { size: ByteCount(0), ..constant }).contains("0 bytes"));
        let on_off = OnOff { on: Span::Fixed(Nanos(1)), off: Span::Fixed(Nanos(1)) };
        assert!(why(UdpParams { on_off: Some(on_off), ..constant }).contains("on for 1 ns"));
    }

    proptest! {
        #[test]
        fn an_even_rate_never_drifts(
            bits in prop_oneof![1_000..1_000_000_000_000u64, u64::MAX - 9..u64::MAX], size in 1..100_000u64
        ) {
            for (n, at) in source(UdpParams::constant(rate(bits), ByteCount(size)), 0).take(2_000).enumerate() {
                let exact = n as u128 * u128::from(size) * 8_000_000_000 / u128::from(bits);
                prop_assert_eq!(u128::from(at), exact);
            }
        }

        /// Fixed on and off periods: the packets of the source's own clock, shifted by the pauses before them.
        #[test]
        fn pauses_move_what_comes_after_them(on in 1..10_000u64, off in 0..10_000u64, size in 1..2_000u64) {
            let on_off = OnOff { on: Span::Fixed(Nanos(on)), off: Span::Fixed(Nanos(off)) };
            let constant = UdpParams::constant(rate(7_000_000_000), ByteCount(size));
            let sent = source(UdpParams { on_off: Some(on_off), ..constant }, 0).take(300);
            for (own, at) in source(constant, 0).zip(sent) {
                prop_assert_eq!(at, own + own / on * off);
            }
        }
    }
}
