//! When flows start.

use super::spans::{Elapsed, OnOffClock};
use super::{OnOff, Random, WorkloadError};
use queuescope_wire::{Nanos, Rate};

/// When flows start.
///
/// ```
/// use queuescope_sim::workload::Arrivals;
///
/// let arrivals = Arrivals::at_load(0.5, "1gbps".parse()?, 125_000.0);
/// assert_eq!(arrivals.mean_rate(), Some(500.0));
/// assert_eq!(arrivals, Arrivals::Poisson { rate: 500.0 });
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Independently of one another: the times between starts are exponential.
    Poisson {
        /// Flows per second, on average; above 0.
        rate: f64,
    },
    /// At a constant interval.
    Periodic {
        /// The interval; above 0.
        every: Nanos,
        /// Each is delayed by up to this, uniformly; at most `every`, so that they stay in order.
        jitter: Nanos,
    },
    /// Many at once: long flows together, or an incast.
    Together {
        /// The number of flows; above 0.
        flows: usize,
        /// The interval between such starts; above 0. `None`: only once.
        every: Option<Nanos>,
        /// Each is delayed by up to this, uniformly and independently; at most `every`.
        spread: Nanos,
    },
    /// Poisson arrivals in bursts, and none in between.
    Bursts {
        /// Flows per second within a burst, on average; above 0.
        rate: f64,
        /// The lengths of bursts, and of the pauses between them.
        periods: OnOff,
    },
}

impl Arrivals {
    /// Poisson arrivals of flows with a mean size (bytes) that offer a share `load` of a link's rate: `load * rate / (8 *
    /// mean)` flows per second. Headers and retransmissions are not included.
    pub fn at_load(load: f64, link: Rate, mean: f64) -> Self {
        Self::Poisson { rate: load * link.bits_per_second() as f64 / (8.0 * mean) }
    }

    /// Flows per second in the long run, unless arrivals end.
    pub fn mean_rate(&self) -> Option<f64> {
        match self {
            Self::Poisson { rate } => Some(*rate),
            Self::Periodic { every, .. } => Some(1.0 / every.as_secs_f64()),
            Self::Together { flows, every, .. } => every.map(|every| *flows as f64 / every.as_secs_f64()),
            Self::Bursts { rate, periods } => Some(rate * periods.share()),
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let rate = |rate: f64| {
            let possible = (1e-9..=1e9).contains(&rate);
            if possible { Ok(()) } else { Err(WorkloadError::Rate { rate: rate.to_string() }) }
        };
        let within = |what, late: Nanos, every: Nanos| {
            if every == Nanos::ZERO {
                Err(WorkloadError::Period)
            } else if late > every {
                Err(WorkloadError::Late { what, late, every })
            } else {
                Ok(())
            }
        };
        match *self {
            Self::Poisson { rate: flows } => rate(flows),
            Self::Periodic { every, jitter } => within("jitter", jitter, every),
            Self::Together { flows: 0, .. } => Err(WorkloadError::NoFlows),
            Self::Together { every: Some(every), spread, .. } => within("spread", spread, every),
            Self::Together { .. } => Ok(()),
            Self::Bursts { rate: flows, periods } => {
                rate(flows)?;
                periods.check(1e9 / flows)
            }
        }
    }
}

impl OnOff {
    /// Checks that something is sent every `gap` nanoseconds of being on, within a reasonable number of periods.
    pub(super) fn check(self, gap: f64) -> Result<(), WorkloadError> {
        let on = self.on.mean();
        if on.0 as f64 * 1e6 < gap || on == Nanos::ZERO { Err(WorkloadError::On { on }) } else { Ok(()) }
    }
}

/// The times at which flows start, in order, each with a number: from 0 on, or within those that start together.
#[derive(Debug, Clone)]
pub(super) struct Starts {
    arrivals: State,
    random: Random,
    count: u64,
}

#[derive(Debug, Clone)]
enum State {
    /// Nanoseconds between starts, on average.
    Poisson {
        gap: f64,
        elapsed: Elapsed,
    },
    Periodic {
        every: u64,
        jitter: u64,
    },
    Together {
        every: Option<u64>,
        spread: u64,
        rounds: u64,
        next: usize,
        late: Vec<(u64, usize)>,
    },
    Bursts {
        gap: f64,
        elapsed: Elapsed,
        clock: OnOffClock,
    },
}

impl Starts {
    pub fn new(arrivals: &Arrivals, mut random: Random) -> Result<Self, WorkloadError> {
        arrivals.check()?;
        let elapsed = Elapsed::default();
        let state = match *arrivals {
            Arrivals::Poisson { rate } => State::Poisson { gap: 1e9 / rate, elapsed },
            Arrivals::Periodic { every, jitter } => State::Periodic { every: every.0, jitter: jitter.0 },
            Arrivals::Together { flows, every, spread } => State::Together {
                every: every.map(|every| every.0),
                spread: spread.0,
                rounds: 0,
                next: flows,
                late: vec![(0, 0); flows],
            },
            Arrivals::Bursts { rate, periods } => {
                State::Bursts { gap: 1e9 / rate, elapsed, clock: OnOffClock::new(periods, random.fork()) }
            }
        };
        Ok(Self { arrivals: state, random, count: 0 })
    }

    /// The next start; `None` if there are no more or they are beyond the range of times.
    pub fn next(&mut self) -> Option<(Nanos, usize)> {
        let number = self.count;
        self.count += 1;
        let random = &mut self.random;
        let at = match &mut self.arrivals {
            State::Poisson { gap, elapsed } => elapsed.advance(*gap * random.exponential()),
            State::Periodic { every, jitter } => {
                Nanos(number.checked_mul(*every)?.checked_add(random.below(jitter.saturating_add(1)))?)
            }
            State::Bursts { gap, elapsed, clock } => clock.at(elapsed.advance(*gap * random.exponential())),
            State::Together { every, spread, rounds, next, late } => {
                if *next == late.len() {
                    if every.is_none() && *rounds > 0 {
                        return None;
                    }
                    for (flow, slot) in late.iter_mut().enumerate() {
                        *slot = (random.below(spread.saturating_add(1)), flow);
                    }
                    late.sort_unstable();
                    (*next, *rounds) = (0, *rounds + 1);
                }
                let (late, flow) = late[*next];
                *next += 1;
                let start = (*rounds - 1).checked_mul(every.unwrap_or(0))?;
                return Some((Nanos(start.checked_add(late)?), flow));
            }
        };
        (at < Nanos::MAX).then_some((at, number as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Span;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn starts(arrivals: &Arrivals, seed: u64) -> impl Iterator<Item = (u64, usize)> {
        let mut starts = Starts::new(arrivals, Random::new(seed)).unwrap();
        std::iter::from_fn(move || starts.next().map(|(at, flow)| (at.0, flow)))
    }

    /// Gaps of a Poisson process are exponential: their mean and standard deviation are equal, and the Kolmogorov-Smirnov
    /// distance is within chance.
    #[test]
    fn poisson_gaps_are_exponential() {
        const FLOWS: usize = 100_000;
        let times: Vec<_> = starts(&Arrivals::Poisson { rate: 2_000.0 }, 1).map(|(at, _)| at).take(FLOWS).collect();
        let mut gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 500_000.0).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.016 && (variance - 1.0).abs() < 0.045, "{mean} {variance}");
        gaps.sort_by(f64::total_cmp);
        let far = |(n, gap): (usize, &f64)| ((n as f64 + 0.5) / gaps.len() as f64 - (1.0 - (-gap).exp())).abs();
        let distance = gaps.iter().enumerate().map(far).fold(0.0, f64::max);
        assert!(distance < 2.7 / (FLOWS as f64).sqrt(), "{distance}");
    }

    #[test]
    fn a_load_is_a_share_of_the_link() {
        let arrivals = Arrivals::at_load(0.2, Rate::from_bits_per_second(10_000_000_000).unwrap(), 38_800.0);
        let Some(rate) = arrivals.mean_rate() else { panic!("it never ends") };
        // ConQuest, section 5.1: a flow each 155 us offers 2 Gb/s.
        assert!((1e6 / rate - 155.2).abs() < 0.01, "{rate}");
    }

    #[test]
    fn periodic_flows_are_late_by_no_more_than_the_jitter() {
        let plain: Vec<_> = starts(&Arrivals::Periodic { every: Nanos(MS), jitter: Nanos(0) }, 1).take(3).collect();
        assert_eq!(plain, [(0, 0), (MS, 1), (2 * MS, 2)]);
        let jitter = Arrivals::Periodic { every: Nanos(MS), jitter: Nanos(MS) };
        let late: Vec<_> = starts(&jitter, 1).take(10_000).map(|(at, flow)| at - flow as u64 * MS).collect();
        assert!(late.iter().all(|late| *late <= MS));
        let mean = late.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean / MS as f64 - 0.5).abs() < 0.015, "{mean}");
    }

    #[test]
    fn flows_that_start_together_start_once_or_again_and_again() {
        let once = Arrivals::Together { flows: 3, every: None, spread: Nanos(0) };
        assert_eq!(starts(&once, 1).collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2)]);
        let again = Arrivals::Together { flows: 40, every: Some(Nanos(10 * MS)), spread: Nanos(MS) };
        assert_eq!(again.mean_rate(), Some(4_000.0));
        let all: Vec<_> = starts(&again, 1).take(4_000).collect();
        let mut firsts = std::collections::BTreeSet::new();
        for (round, batch) in all.chunks(40).enumerate() {
            let mut flows: Vec<_> = batch.iter().map(|(_, flow)| *flow).collect();
            firsts.insert(flows[0]);
            flows.sort_unstable();
            assert_eq!(flows, (0..40).collect::<Vec<_>>(), "each once");
            let start = round as u64 * 10 * MS;
            assert!(batch.iter().all(|(at, _)| (start..=start + MS).contains(at)));
        }
        assert!(firsts.len() > 30, "each is the first now and then: {firsts:?}");
    }

    #[test]
    fn bursts_are_poisson_within_and_silent_between() {
        let periods = OnOff { on: Span::Fixed(Nanos(10 * MS)), off: Span::Fixed(Nanos(30 * MS)) };
        let bursts = Arrivals::Bursts { rate: 1_000.0, periods };
        assert_eq!(bursts.mean_rate(), Some(250.0));
        let times: Vec<_> = starts(&bursts, 1).map(|(at, _)| at).take(50_000).collect();
        assert!(times.iter().all(|at| at % (40 * MS) < 10 * MS));
        let seconds = times[times.len() - 1] as f64 / 1e9;
        // Within five standard deviations of 50 000 exponential gaps, and a period.
        assert!((seconds - 200.0).abs() < 200.0 * 5.0 / 50_000f64.sqrt() + 0.04, "{seconds}");
        let random = OnOff { on: Span::Exponential(Nanos(10 * MS)), off: Span::Exponential(Nanos(30 * MS)) };
        let last = starts(&Arrivals::Bursts { rate: 1_000.0, periods: random }, 1).nth(200_000).unwrap().0;
        assert!((last as f64 / 1e9 / 800.0 - 1.0).abs() < 0.05, "{last}");
    }

    #[test]
    fn impossible_arrivals_say_why() {
        let why = |arrivals: Arrivals| Starts::new(&arrivals, Random::new(0)).unwrap_err().to_string();
        assert!(why(Arrivals::Poisson { rate: 0.0 }).contains("0 flows a second"));
        assert!(why(Arrivals::Poisson { rate: f64::NAN }).contains("NaN flows a second"));
        assert!(why(Arrivals::Periodic { every: Nanos(0), jitter: Nanos(0) }).contains("a period of 0 s"));
        let jitter = why(Arrivals::Periodic { every: Nanos(MS), jitter: Nanos(2 * MS) });
        assert!(jitter.contains("a jitter of 2.00 ms is longer than the period of 1.00 ms"), "{jitter}");
        assert!(why(Arrivals::Together { flows: 0, every: None, spread: Nanos(0) }).contains("no flow"));
        let never = OnOff { on: Span::Fixed(Nanos(0)), off: Span::Fixed(Nanos(1)) };
        assert!(why(Arrivals::Bursts { rate: 1.0, periods: never }).contains("on for 0 s"));
    }

    fn arrivals() -> impl Strategy<Value = Arrivals> {
        let span = prop_oneof![
            (1..MS).prop_map(|n| Span::Fixed(Nanos(n))),
            (1_000..MS).prop_map(|n| Span::Exponential(Nanos(n)))
        ];
        let periods = (span.clone(), span).prop_map(|(on, off)| OnOff { on, off });
        prop_oneof![
            (1.0..1e9f64).prop_map(|rate| Arrivals::Poisson { rate }),
            (1..MS, 0..=100u64).prop_map(|(every, jitter)| {
                Arrivals::Periodic { every: Nanos(every), jitter: Nanos(every * jitter / 100) }
            }),
            (1..20usize, prop::option::of(1..MS), 0..=100u64).prop_map(|(flows, every, spread)| {
                let spread = Nanos(every.unwrap_or(MS) * spread / 100);
                Arrivals::Together { flows, every: every.map(Nanos), spread }
            }),
            (1e3..1e9f64, periods).prop_map(|(rate, periods)| Arrivals::Bursts { rate, periods }),
        ]
    }

    proptest! {
        #[test]
        fn flows_start_in_order_and_as_the_seed_says(arrivals in arrivals(), seed in 0..u64::MAX) {
            let times: Vec<_> = starts(&arrivals, seed).take(200).collect();
            prop_assert!(times.is_sorted_by_key(|(at, _)| *at));
            prop_assert_eq!(&times, &starts(&arrivals, seed).take(200).collect::<Vec<_>>());
            let once = matches!(arrivals, Arrivals::Together { every: None, .. });
            prop_assert!(once || times.len() == 200);
        }
    }
}
