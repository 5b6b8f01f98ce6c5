//! The testbed of section 5.2 as scenarios: queue management, senders and link.

use queuescope_sim::workload::Sizes;
use std::fmt::Write;

/// The length of the queue from which on the baseline marks, and the queue's limit, in packets. Source: section 5.2.
const MARKS_FROM: u64 = 4096;
const HOLDS: u64 = 16_384;
/// ConQuest's `tau`, in microseconds, and `w_T`, in packets. Source: section 5.2.
const TAU_US: u64 = 2000;
const WEIGHT: u64 = 512;

/// Median and mean size of the workload's flows, in bytes; both are the paper's. The paper takes them from a measured
/// distribution, which ends somewhere. The lognormal with this median and mean does not end, and one flow in 10^5 would
/// be larger than most bursts. Here it ends at [`LARGEST`], and sigma compensates for the mean that this removes.
const MEDIAN: f64 = 1440.0;
const MEAN: f64 = 38_800.0;
pub const LARGEST: f64 = 1e7;
const POINTS: i32 = 100;
const SMALLEST: f64 = 20.0;

/// A scheme that marks packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Marks every packet that leaves at least `from` packets behind in the queue: the paper's baseline, with its
    /// threshold or another.
    Tail { from: u64 },
    /// The same at random, with a probability that grows with the average length of the queue.
    Red,
    /// ConQuest with this `w_T`, `tau` and curve; the default `tau` is 2 ms.
    ConQuest { weight: u64, tau_us: u64, curve: Curve },
    /// Our scheme: marks flows with much of a standing queue.
    Standing(StandingQueueMark),
}

/// Marks flows with half of what a packet finds, if it waits long and leaves a long queue behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandingQueueMark {
    /// `tau`, in microseconds.
    pub tau_us: u64,
    /// The queue that it leaves behind, in microseconds of the link's time.
    pub behind_us: u64,
    /// The flow's shares of the queue, in percent, from which on it is marked and from which on it is always marked.
    pub share: [u64; 2],
    /// The number of snapshots that can be read, plus the one that is written; and the length of a window in
    /// nanoseconds.
    pub kept: u64,
    pub window_ns: u64,
    pub estimator: &'static str,
}

impl StandingQueueMark {
    /// What `p4 fit conquest-stands --snapshots 8` places: plain sums of whole windows. Six snapshots are read and one
    /// is written. The cleaned one does not exist here, because tags replace cleaning. A window is a slice of the
    /// time's bits.
    pub const PLACED: Self = Self {
        tau_us: TAU_US / 2,
        behind_us: TAU_US / 2,
        share: [50, 50],
        kept: 7,
        window_ns: 1 << 19,
        estimator: "inner",
    };

    /// Marks what leaves a queue of 2 ms behind, however long it waited.
    pub const BEHIND_ONLY: Self = Self::thresholds(0, 2000);

    /// Another `tau`, and another length of the queue behind.
    const fn thresholds(tau_us: u64, behind_us: u64) -> Self {
        Self { tau_us, behind_us, ..Self::PLACED }
    }

    /// Other windows, also rounded inwards.
    const fn windows(kept: u64, window_ns: u64) -> Self {
        Self { kept, window_ns, ..Self::PLACED }
    }

    /// Another estimator, with the paper's snapshots.
    const fn by(estimator: &'static str) -> Self {
        Self { kept: 4, window_ns: 2_000_000, estimator, ..Self::PLACED }
    }

    /// Variants that change one parameter at a time.
    pub const CHOICES: [(&'static str, Self); 12] = [
        ("overlap, 4 snapshots of 2 ms", Self::by("overlap")),
        ("4 snapshots of 2.1 ms", Self::windows(3, 1 << 21)),
        ("4 snapshots of 1.05 ms", Self::windows(3, 1 << 20)),
        ("10 snapshots of 0.52 ms", Self::windows(9, 1 << 19)),
        ("12 snapshots of 0.26 ms", Self::windows(11, 1 << 18)),
        ("tau = 0", Self::thresholds(0, 1000)),
        ("2 ms behind", Self::thresholds(1000, 2000)),
        ("tau = 0, 2 ms behind", Self::BEHIND_ONLY),
        ("both 2 ms", Self::thresholds(2000, 2000)),
        ("both 0.7 ms", Self::thresholds(700, 700)),
        ("three quarters of the queue", Self { share: [75, 75], ..Self::PLACED }),
        ("a probability from a quarter to three quarters", Self { share: [25, 75], ..Self::PLACED }),
    ];
}

/// The curves of section 4.2; full at twice `w_T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    Threshold,
    Linear,
    Squared,
}

impl Scheme {
    /// The paper's ConQuest.
    pub const PAPER: Self = Self::ConQuest { weight: WEIGHT, tau_us: TAU_US, curve: Curve::Threshold };
    /// The schemes of all comparisons.
    pub const MAIN: [Self; 4] = [Self::TAIL, Self::Red, Self::PAPER, Self::STANDING];
    /// The paper's baseline.
    pub const TAIL: Self = Self::Tail { from: MARKS_FROM };
    /// The baseline with a threshold near ConQuest's.
    pub const EARLY_TAIL: Self = Self::Tail { from: 1024 };
    /// Our scheme, with half of the paper's `tau`.
    pub const STANDING: Self = Self::Standing(StandingQueueMark::PLACED);
    /// The paper's scheme with half of both thresholds: the effect of a `tau` of 1 ms alone.
    pub const LOWER: Self = Self::ConQuest { weight: WEIGHT / 2, tau_us: TAU_US / 2, curve: Curve::Threshold };
    /// Other thresholds, and other curves.
    pub const OTHERS: [Self; 5] = [
        Self::ConQuest { weight: 128, tau_us: TAU_US, curve: Curve::Threshold },
        Self::ConQuest { weight: 256, tau_us: TAU_US, curve: Curve::Threshold },
        Self::ConQuest { weight: 1024, tau_us: TAU_US, curve: Curve::Threshold },
        Self::ConQuest { weight: WEIGHT, tau_us: TAU_US, curve: Curve::Linear },
        Self::ConQuest { weight: WEIGHT, tau_us: TAU_US, curve: Curve::Squared },
    ];

    /// Its name in tables and plots.
    pub fn name(self) -> String {
        match self {
            Self::TAIL => "tail".to_owned(),
            Self::Tail { from } => format!("tail from {from}"),
            Self::Red => "RED".to_owned(),
            Self::ConQuest { weight, tau_us, curve } => {
                let tau = if tau_us == TAU_US { String::new() } else { format!(", {} ms", tau_us as f64 / 1e3) };
                let curve = match curve {
                    Curve::Threshold => "",
                    Curve::Linear => " linear",
                    Curve::Squared => " squared",
                };
                format!("ConQuest {weight}{tau}{curve}")
            }
            Self::Standing(standing) => standing.name(),
        }
    }

    /// The lines below `[link]`. On a slower link there are fewer packets and the same times.
    fn text(self, bench: &Bench) -> String {
        let packets = |count: u64| count as f64 / bench.slower as f64;
        let red = |thresholds: [f64; 2], more: &str| {
            let [min, max] = thresholds;
            format!(
                "[link.discipline.red]\nthresholds = {{ min = {min:?}, max = {max:?} }}\n{more}wait = false\necn = true\n\
                 at-egress = {}\nhard-drop = false\nmean-packet = \"1500B\"\n",
                bench.at_egress
            )
        };
        let full = packets(MARKS_FROM);
        match self {
            Self::Tail { from } => red([packets(from); 2], "weight = 1.0\nmax-probability = 1.0\ngentle = false\n"),
            Self::Red => red([full / 3.0, full], "weight = 0.002\nmax-probability = 0.1\n"),
            Self::ConQuest { weight, tau_us, curve } => {
                let weight = packets(weight);
                let curve = match curve {
                    Curve::Threshold => String::new(),
                    Curve::Linear => format!("curve = {{ linear = {{ full = {weight:?} }} }}\n"),
                    Curve::Squared => format!("curve = {{ squared = {{ full = {weight:?} }} }}\n"),
                };
                let sketch =
                    if bench.placed { "estimator = \"inner\"\nsnapshots = 3\n" } else { "estimator = \"overlap\"\n" };
                format!("{CONQUEST}{sketch}tau = \"{tau_us}us\"\nthreshold = {weight:?}\n{curve}")
            }
            Self::Standing(standing) => format!("{CONQUEST}{}", standing.text()),
        }
    }
}

const CONQUEST: &str = "[link.pipeline.conquest-aqm]\nresponse = \"mark-only\"\n";

impl StandingQueueMark {
    fn name(self) -> String {
        let named = Self::CHOICES.into_iter().find(|(_, choice)| *choice == self);
        named.map_or_else(|| "standing".to_owned(), |(name, _)| format!("standing, {name}"))
    }

    fn text(self) -> String {
        let Self { tau_us, behind_us, share: [from, full], kept, window_ns, estimator } = self;
        let curve = match full - from {
            0 => String::new(),
            rise => format!("curve = {{ linear = {{ full = {:?} }} }}\n", rise as f64 / 100.0),
        };
        format!(
            "estimator = \"{estimator}\"\nsnapshots = {kept}\nwindow = \"{window_ns}ns\"\nunit = \"share-of-queue\"\n\
             threshold = {:?}\n{curve}tau = \"{tau_us}us\"\nbehind = \"{behind_us}us\"\n",
            from as f64 / 100.0
        )
    }
}

/// What the paper leaves open, and the duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bench {
    pub seconds: u64,
    /// By how many times everything is slower than at 10 Gb/s, and smaller.
    pub slower: u64,
    /// The round-trip time without queues.
    pub rtt_us: u64,
    /// The most that a flow has in flight, in bytes: the buffers of its hosts.
    pub buffers: Option<u64>,
    /// Whether the baselines mark departing packets, by the queue behind them, or arriving ones.
    pub at_egress: bool,
    /// Whether ConQuest is what `p4 fit conquest` places: sums of whole windows, of which two are read and one is
    /// written.
    pub placed: bool,
    /// Whether the distribution of flow sizes has an end.
    pub truncated: bool,
    /// Whether the workload's packets can be marked; those of bursts always can.
    pub marks_workload: bool,
    /// Milliseconds between samples of the queue, if it is sampled.
    pub sampled: Option<u64>,
}

impl Bench {
    pub const FULL: Self = Self {
        seconds: 20,
        slower: 1,
        rtt_us: 1000,
        buffers: Some(64 << 20),
        at_egress: true,
        placed: false,
        truncated: true,
        marks_workload: true,
        sampled: None,
    };
    pub const SMALL: Self = Self { seconds: 3, slower: 20, ..Self::FULL };

    /// A run: flows of one congestion control, and each second one burst of `burst` bytes.
    pub fn scenario(&self, tcp: &str, scheme: Scheme, burst: u64, seed: u64) -> String {
        let Self { seconds, slower, rtt_us, .. } = *self;
        // Hosts are 10 us away on each side.
        let delay = rtt_us / 2 - 20;
        let tcp = match tcp {
            NO_HYSTART => "{ cubic = { slow-start = \"until-loss\" } }".to_owned(),
            tcp => format!("\"{tcp}\""),
        };
        let mut text = format!(
            "seed = {seed}\nduration = \"{seconds}s\"\n\n[access]\nrate = \"{}mbps\"\ndelay = \"10us\"\n\n[link]\n\
             rate = \"{}mbps\"\ndelay = \"{delay}us\"\nlimit = \"{}packets\"\n{}",
            100_000 / slower,
            10_000 / slower,
            HOLDS / slower,
            scheme.text(self)
        );
        // Writing to a string does not fail.
        if let Some(bytes) = self.buffers {
            _ = write!(text, "\n[stack]\nsend-buffer = {bytes}\nreceive-window = {bytes}\n");
        }
        _ = write!(
            text,
            "\n[[flows]]\nname = \"{BURST}\"\ntcp = {tcp}\necn = true\ncount = {seconds}\nhosts = 1\nstart = \"300ms\"\n\
             stagger = \"1s\"\nbytes = \"{}B\"\n\n[[workloads]]\nname = \"{WEB}\"\ntcp = {tcp}\necn = {}\nhosts = 1\n\
             poisson = {{ load = 0.2, sizes = {} }}\n",
            burst / slower,
            self.marks_workload,
            self.sizes()
        );
        if let Some(step) = self.sampled {
            _ = write!(text, "\n[record]\ninterval = \"{step}ms\"\n");
        }
        text
    }

    /// The distribution of sizes: points with straight lines between them if it has an end.
    fn sizes(&self) -> String {
        let smaller = |bytes: f64| (bytes / self.slower as f64).round().max(1.0);
        if !self.truncated {
            return format!("{{ mean = \"{}B\", median = \"{}B\" }}", smaller(MEAN), smaller(MEDIAN));
        }
        let points: Vec<_> =
            points(smaller).iter().map(|(bytes, share)| format!("[\"{bytes}B\", {share:?}]")).collect();
        format!("[{}]", points.join(", "))
    }
}

/// CUBIC whose slow start lasts until a mark or a loss.
pub const NO_HYSTART: &str = "cubic without HyStart";

/// The groups of flows.
pub const BURST: &str = "burst";
pub const WEB: &str = "web";

/// Sigma of the natural logarithm of bytes. With the end at [`LARGEST`], straight lines between the points have the
/// mean.
const SIGMA: f64 = 2.684;

/// Points of the distribution, up to its end, with sizes scaled by `smaller`.
fn points(smaller: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let Ok(sizes) = Sizes::lognormal(MEDIAN.ln(), SIGMA) else { return Vec::new() };
    let (step, whole) = ((LARGEST / SMALLEST).ln() / f64::from(POINTS), sizes.cumulative(LARGEST));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for n in 0..=POINTS {
        let bytes = SMALLEST * (step * f64::from(n)).exp();
        let (size, share) = (smaller(bytes), (sizes.cumulative(bytes) / whole).min(1.0));
        match points.last_mut() {
            // Of points that became equal, the last one has the share of flows that are no larger.
            Some(last) if last.0 >= size => last.1 = share,
            _ => points.push((size, share)),
        }
    }
    if let Some(last) = points.last_mut() {
        last.1 = 1.0;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_p4::algorithms::{Snapshots, conquest_standing};
    use queuescope_p4::{Fit, Grade, Target};
    use queuescope_scenario::Scenario;
    use queuescope_sim::workload::{Empirical, Interpolation};

    /// In the long run the workload matches the paper: 38.8 kB on average, so 155 us between flows at 2 Gb/s.
    #[test]
    fn the_sizes_have_the_papers_mean_and_median() {
        for slower in [1.0, 20.0] {
            let points = points(|bytes| (bytes / slower).round().max(1.0));
            let sizes = Sizes::empirical(Empirical::new(&points, Interpolation::Linear).unwrap());
            assert!((sizes.mean() * slower / MEAN - 1.0).abs() < 0.005, "{}", sizes.mean());
            assert!((sizes.quantile(0.5) * slower / MEDIAN - 1.0).abs() < 0.03, "{}", sizes.quantile(0.5));
            assert!((sizes.mean() * slower * 8.0 / 2e9 / 155e-6 - 1.0).abs() < 0.01);
            assert_eq!(sizes.quantile(1.0) * slower, LARGEST);
        }
    }

    /// Every scheme and variant makes a valid scenario.
    #[test]
    fn each_scheme_is_a_scenario() {
        let choices = StandingQueueMark::CHOICES.map(|(_, choice)| Scheme::Standing(choice));
        let all = Scheme::MAIN.into_iter().chain(Scheme::OTHERS).chain(choices);
        for scheme in all.chain([Scheme::LOWER, Scheme::EARLY_TAIL]) {
            for bench in [Bench::FULL, Bench { truncated: false, buffers: None, sampled: Some(1), ..Bench::SMALL }] {
                for tcp in ["newreno", NO_HYSTART] {
                    let text = bench.scenario(tcp, scheme, 50_000_000, 3);
                    Scenario::parse("test", &text, &[]).unwrap();
                }
            }
        }
    }

    /// The scheme that is described as placed on a switch is the placed one: plain sums, with as many windows to read
    /// as there are snapshots except the written and the cleaned one, each window a slice of the time's bits.
    #[test]
    fn the_standing_mark_is_the_placed_one() {
        let StandingQueueMark { kept, window_ns, estimator, share, .. } = StandingQueueMark::PLACED;
        assert_eq!((kept, estimator, share), (8 - 1, "inner", [50, 50]));
        assert!(window_ns.is_power_of_two());
        let text = Bench::FULL.scenario("newreno", Scheme::STANDING, 50_000_000, 1);
        let scenario = Scenario::parse("test", &text, &[]).unwrap().explain();
        for key in ["snapshots = 7 ", "window = \"524288ns\"", "estimator = \"inner\"", "unit = \"share-of-queue\""] {
            assert!(scenario.contains(key), "{key}: {scenario}");
        }
        let dimensions = Snapshots { snapshots: 8, ..Snapshots::default() };
        let fit = Fit::new(&conquest_standing(dimensions), &Target::tofino());
        assert_eq!((fit.grade(), fit.room), (Grade::Feasible, None));
    }
}
