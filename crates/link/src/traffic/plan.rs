//! Plans which flows start when, before the first starts.

use super::options::TrafficOptions;
use queuescope_ingest::read_text;
use queuescope_live::traffic::{LARGEST, Start};
use queuescope_sim::workload::{
    Arrivals, Empirical, Interpolation, Pairs, Random, Sizes, SizesError, Workload, WorkloadError, WorkloadParams,
    merge,
};
use queuescope_wire::{ByteCount, Nanos, UnitError};
use std::io;
use std::path::Path;

/// Flows of several kinds, and their congestion controls.
#[derive(Debug)]
pub struct TrafficPlan {
    kinds: Vec<FlowKind>,
    /// The congestion controls; if empty, the kernel's default.
    pub congestion: Vec<String>,
    seed: u64,
}

/// A kind of flows: the sizes that the options give, or one of the bursts.
#[derive(Debug)]
struct FlowKind {
    name: String,
    params: WorkloadParams,
    /// Indices of the plan's congestion controls that its flows take in turn.
    congestion: Vec<usize>,
}

impl TrafficPlan {
    /// Plans the flows that the options describe.
    ///
    /// # Errors
    /// Fails if the options are not valid.
    pub fn new(wanted: &TrafficOptions) -> Result<Self, PlanError> {
        let mut congestion = wanted.congestion.clone();
        let mut kinds = Vec::new();
        let sizes = sizes(&wanted.sizes)?;
        let arrivals = match (wanted.rate, wanted.every) {
            (Some(rate), _) => Some(Arrivals::at_load(1.0, rate, sizes.mean())),
            (_, Some(Nanos(0))) => return Err(PlanError::Endless),
            (_, Some(every)) => Some(Arrivals::Poisson { rate: 1.0 / every.as_secs_f64() }),
            _ => None,
        };
        let arrivals = arrivals.map(|arrivals| match (wanted.periodic, wanted.every, arrivals.mean_rate()) {
            (true, Some(every), _) => Arrivals::Periodic { every, jitter: Nanos::ZERO },
            (true, None, Some(rate)) => Arrivals::Periodic { every: Nanos((1e9 / rate) as u64), jitter: Nanos::ZERO },
            _ => arrivals,
        });
        if let Some(arrivals) = arrivals {
            let mut params = WorkloadParams::new(arrivals, Some(sizes), PAIR);
            params.flows = wanted.count.map(Into::into);
            kinds.push(FlowKind { name: wanted.sizes.clone(), params, congestion: (0..congestion.len()).collect() });
        }
        for burst in &wanted.bursts {
            let arrivals = Arrivals::Periodic { every: burst.every, jitter: Nanos::ZERO };
            let mut params = WorkloadParams::new(arrivals, Some(Sizes::constant(burst.size)?), PAIR);
            params.start = Nanos(burst.every.0 / 2);
            let own = burst.congestion.as_ref().map(|name| {
                let known = congestion.iter().position(|other| other == name);
                vec![known.unwrap_or_else(|| {
                    congestion.push(name.clone());
                    congestion.len() - 1
                })]
            });
            let turn = own.unwrap_or_else(|| (0..wanted.congestion.len()).collect());
            kinds.push(FlowKind { name: burst.name.clone(), params, congestion: turn });
        }
        if wanted.congestion.is_empty() && !congestion.is_empty() && kinds.iter().any(|kind| kind.congestion.is_empty())
        {
            return Err(PlanError::Congestion);
        }
        kinds.iter_mut().for_each(|kind| kind.params.until = Some(wanted.duration));
        Ok(Self { kinds, congestion, seed: wanted.seed })
    }

    /// The names of the kinds.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }

    /// All flows, in order of their start times.
    ///
    /// # Errors
    /// Fails if the flows of a kind are not valid.
    pub fn starts(&self) -> Result<impl Iterator<Item = Start> + use<>, PlanError> {
        let mut seeds = Random::new(self.seed);
        let workloads: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| Workload::new(&kind.params, seeds.below(u64::MAX)))
            .collect::<Result<_, WorkloadError>>()?;
        let mut turns: Vec<_> = self.kinds.iter().map(|kind| kind.congestion.clone().into_iter().cycle()).collect();
        Ok(merge(workloads).map(move |(class, flow)| {
            let bytes = flow.bytes.unwrap_or_default().min(LARGEST);
            Start {
                at: flow.at,
                bytes,
                class,
                congestion: turns[class].next().unwrap_or_default(),
                ends: None,
                stop: Nanos::MAX,
            }
        }))
    }
}

/// Every flow goes to the server.
const PAIR: Pairs = Pairs::Fixed { from: 0, to: 1 };

/// The longest file of points, in bytes.
const LONGEST_POINTS: u64 = 1 << 20;

/// Sizes by the name of a distribution, as a list, or from a file.
fn sizes(text: &str) -> Result<Sizes, PlanError> {
    if let Some(named) = Sizes::named(text) {
        return Ok(named);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let mut sizes = text.split(',').map(str::parse).collect::<Result<Vec<ByteCount>, UnitError>>()?;
        sizes.sort_unstable();
        let share = |index: usize| (index + 1) as f64 / sizes.len() as f64;
        let points: Vec<_> = sizes.iter().enumerate().map(|(index, size)| (size.0 as f64, share(index))).collect();
        return Ok(Sizes::empirical(Empirical::new(&points, Interpolation::Step)?));
    }
    let points = read_text(Path::new(text), LONGEST_POINTS);
    let points = points.map_err(|why| PlanError::NoSizes { text: text.to_owned(), why })?;
    let points = Empirical::parse(&points, Interpolation::Linear);
    Ok(Sizes::empirical(points.map_err(|why| PlanError::Points { text: text.to_owned(), why })?))
}

/// Why flows cannot be planned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The sizes are not valid.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// A size is not a number of bytes.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The flows of a kind are not valid.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The text is not the name of a distribution, a list of sizes, or a file.
    #[error(
        "'{text}' is not a distribution ({}), not a list of sizes such as 1kB,10kB, and not a file",
        Sizes::NAMES.join(", ")
    )]
    NoSizes {
        /// The text of the option.
        text: String,
        /// Why the file cannot be read.
        #[source]
        why: io::Error,
    },
    /// A file does not hold points of a distribution.
    #[error("{text}: {why}")]
    Points {
        /// The file.
        text: String,
        /// What is wrong with it.
        why: SizesError,
    },
    /// Flows would start without any time in between.
    #[error("--every 0s never ends: use a longer time")]
    Endless,
    /// Some flows have a congestion control, and others have none.
    #[error("some bursts have a congestion control of their own: set that of the other flows with --congestion")]
    Congestion,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::error::Error;

    /// Options as the command line has them.
    fn plan(words: &str) -> Result<TrafficPlan, PlanError> {
        let mut options = TrafficOptions::default();
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value follows");
            match word {
                "--sizes" => options.sizes = value().to_owned(),
                "--rate" => options.rate = Some(value().parse().unwrap()),
                "--every" => options.every = Some(value().parse().unwrap()),
                "--periodic" => options.periodic = true,
                "--burst" => options.bursts.push(value().parse().unwrap()),
                "--congestion" => options.congestion = value().split(',').map(str::to_owned).collect(),
                "--for" => options.duration = Nanos::read_long(value()).unwrap(),
                "--count" => options.count = Some(value().parse().unwrap()),
                "--seed" => options.seed = value().parse().unwrap(),
                other => panic!("there is no {other}"),
            }
        }
        TrafficPlan::new(&options)
    }

    fn starts(words: &str) -> Vec<Start> {
        plan(words).unwrap().starts().unwrap().collect()
    }

    #[test]
    fn the_schedule_is_reproducible() {
        let fields = |start: &Start| (start.at.0, start.bytes, start.class, start.congestion);
        let both = "--every 20ms --sizes 1kB,10kB --burst 1MB@30ms:bbr --congestion cubic,reno --for 60ms";
        assert_eq!(starts(both).iter().map(fields).collect::<Vec<_>>(), GOLDEN);
        let periodic = starts("--every 10ms --periodic --sizes 5kB --for 35ms").iter().map(fields).collect::<Vec<_>>();
        assert_eq!(
            periodic,
            [(0, 5000, 0, 0), (10_000_000, 5000, 0, 0), (20_000_000, 5000, 0, 0), (30_000_000, 5000, 0, 0)]
        );
        assert_eq!(starts("--every 1ms --count 7").len(), 7);
        let others = starts("--every 20ms --sizes 1kB,10kB --congestion cubic,reno --for 60ms");
        let beside: Vec<_> = starts(both).into_iter().filter(|start| start.class == 0).collect();
        assert_eq!(others, beside, "a burst does not change the other flows");
    }

    /// Time, bytes, kind, congestion control.
    const GOLDEN: [(u64, u64, usize, usize); 6] = [
        (11_074_139, 1_000, 0, 0),
        (15_000_000, 1_000_000, 1, 2),
        (16_596_372, 1_000, 0, 1),
        (19_483_061, 10_000, 0, 0),
        (45_000_000, 1_000_000, 1, 2),
        (52_762_514, 10_000, 0, 1),
    ];

    #[test]
    fn sizes_and_rate_match_the_options() {
        let all = starts("--sizes web-search --rate 1gbit --for 100s --seed 3");
        let named = Sizes::named("web-search").unwrap();
        let mut sizes: Vec<_> = all.iter().map(|start| start.bytes as f64).collect();
        sizes.sort_by(f64::total_cmp);
        let far = |(n, size): (usize, &f64)| ((n as f64 + 0.5) / sizes.len() as f64 - named.cumulative(*size)).abs();
        let distance = sizes.iter().enumerate().map(far).fold(0.0, f64::max);
        // The Kolmogorov-Smirnov test, at a probability of one in a million.
        assert!(distance < 2.7 / (sizes.len() as f64).sqrt(), "{distance} of {}", sizes.len());
        let rate = sizes.iter().sum::<f64>() * 8.0 / 100.0;
        assert!((rate / 1e9 - 1.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn a_file_of_points_and_a_list_are_sizes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, b"1000 0\n1000 0.5\n2000 0.5\n2000 1\n").unwrap();
        for sizes in [&file.path().display().to_string(), "1kB,2kB", "2000B,1000B"] {
            let all = starts(&format!("--sizes {sizes} --every 1ms --for 2s"));
            let small = all.iter().filter(|start| start.bytes == 1000).count();
            assert!(all.iter().all(|start| [1000, 2000].contains(&start.bytes)), "{sizes}");
            assert!((small as f64 / all.len() as f64 - 0.5).abs() < 0.06, "{sizes}: {small}");
        }
    }

    #[test]
    fn errors_name_the_option_that_is_wrong() {
        for (words, expected) in [
            ("--every 1ms --sizes nonsense", "web-search"),
            ("--every 1ms --sizes 0B", "no size is as large as a byte"),
            ("--every 0s", "--every 0s"),
            ("--every 1ms --burst 1kB@1s:reno", "--congestion"),
        ] {
            let error = plan(words).and_then(|plan| plan.starts().map(drop)).unwrap_err();
            let error = format!("{error}: {}", error.source().map_or_else(String::new, ToString::to_string));
            assert!(error.contains(expected), "{words}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
        #[test]
        fn the_same_seed_is_the_same_traffic(seed: u64, every in 1..50u64, burst in 1..200u64) {
            let words = format!("--every {every}ms --burst 1kB@{burst}ms --for 1s --seed {seed}");
            let all = starts(&words);
            prop_assert_eq!(&all, &starts(&words));
            prop_assert!(all.is_sorted_by_key(|start| start.at));
            prop_assert!(all.iter().all(|start| start.at < Nanos(1_000_000_000) && start.bytes > 0));
            let bursts = all.iter().filter(|start| start.class == 1).count() as u64;
            prop_assert_eq!(bursts, (1000 - burst / 2).div_ceil(burst), "{}", burst);
            let other = starts(&format!("--every {every}ms --for 1s --seed {}", seed.wrapping_add(1)));
            prop_assert!(every == 50 || all.len() < 5 || all != other);
        }
    }
}
