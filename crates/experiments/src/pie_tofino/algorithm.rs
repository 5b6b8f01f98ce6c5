//! The algorithms, and their scenarios.

use queuescope_queue::PieGains;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Cp,
    Dp,
    Table,
    CpPublished,
    DpPublished,
    TablePublished,
    Rfc,
    Ns3,
    /// Our own; only where it is slow enough for real hosts.
    EgressPi,
}

impl Algorithm {
    /// The paper's algorithms.
    pub const ALL: [Self; 8] = [
        Self::Cp,
        Self::Dp,
        Self::Table,
        Self::CpPublished,
        Self::DpPublished,
        Self::TablePublished,
        Self::Rfc,
        Self::Ns3,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cp => "PIE_CP",
            Self::Dp => "PIE_DP",
            Self::Table => "PIE_TABLE",
            Self::CpPublished => "PIE_CP, published",
            Self::DpPublished => "PIE_DP, published",
            Self::TablePublished => "PIE_TABLE, published",
            Self::Rfc => "PIE, RFC scaling",
            Self::Ns3 => "PIE, ns-3 3.31 scaling",
            Self::EgressPi => "Egress PI",
        }
    }

    /// The lines of `[link]` that configure it, and whether it may drop.
    pub fn text(self, act: bool) -> String {
        let program = |name: &str, more: &str| format!("[link.pipeline.{name}]\nact = {act}\n{more}");
        match self {
            Self::Cp => program("pie-cp", ""),
            Self::CpPublished => program("pie-cp", "decay = \"as-published\"\n"),
            Self::Dp => program("pie-dp", ""),
            Self::DpPublished => program("pie-dp", "trend = \"as-published\"\n"),
            Self::Table => program("pie-table", ""),
            Self::TablePublished => program("pie-table", "layout = \"as-published\"\ntrend = \"as-published\"\n"),
            Self::Rfc => reference("rfc", act, 1),
            Self::Ns3 => reference("ns3-old", act, 1),
            Self::EgressPi => "[link.pipeline.egress-pi]\n".to_owned(),
        }
    }

    /// The same with all times `times` times longer, a power of two: a delay weighs less by that factor.
    pub fn slower(self, times: u32) -> String {
        let PieGains { alpha, beta } = PieGains::tofino();
        let [alpha, beta] = [alpha, beta].map(|gain| gain / f64::from(times));
        let gains = format!("gains = {{ alpha = {alpha:?}, beta = {beta:?} }}\n");
        let us = |time: u32| time * times;
        let target = format!("target = \"{}us\"\n", us(125));
        let update = format!("update = \"{}us\"\n", us(117));
        let more = match self {
            Self::Rfc => return reference("rfc", true, times),
            Self::Ns3 => return reference("ns3-old", true, times),
            Self::EgressPi => return self.text(true) + &egress_pi(times / 2),
            Self::Cp | Self::CpPublished => format!("period = \"{0}us\"\nlatency = \"{0}us\"\n{gains}", us(125)),
            Self::Dp | Self::DpPublished => {
                let less = times.ilog2();
                format!("{update}alpha-shift = {}\nbeta-shift = {}\n", 9 - less, 19 - less)
            }
            Self::Table | Self::TablePublished => format!("{update}max-delay = \"{}us\"\n{gains}", us(500)),
        };
        self.text(true) + &target + &more
    }
}

/// Which form of the authors' programs is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the paper states the algorithms.
    Stated,
    /// As the authors published them.
    Published,
}

impl Form {
    pub const BOTH: [Self; 2] = [Self::Stated, Self::Published];

    pub fn name(self) -> &'static str {
        match self {
            Self::Stated => "as stated",
            Self::Published => "as published",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Stated => Self::Published,
            Self::Published => Self::Stated,
        }
    }

    /// PIE_CP, PIE_DP, PIE_TABLE.
    pub fn programs(self) -> [Algorithm; 3] {
        match self {
            Self::Stated => [Algorithm::Cp, Algorithm::Dp, Algorithm::Table],
            Self::Published => [Algorithm::CpPublished, Algorithm::DpPublished, Algorithm::TablePublished],
        }
    }

    /// The paper's five algorithms.
    pub fn algorithms(self) -> [Algorithm; 5] {
        let [cp, dp, table] = self.programs();
        [cp, dp, table, Algorithm::Rfc, Algorithm::Ns3]
    }
}

/// Egress PI with all times `times` times longer, a power of two. It distinguishes delays up to 1 ms from the target: a
/// target of that size would leave no range above it.
fn egress_pi(times: u32) -> String {
    let [target, calm, short] = [125, 94, 31].map(|time| time * times);
    let less = times.ilog2();
    format!(
        "target = \"{target}us\"\nupdate = \"{target}us\"\ncalm = \"{calm}us\"\nshort = \"{short}us\"\n\
         alpha-shift = {}\nbeta-shift = {}\n",
        9 - less,
        17 - less
    )
}

/// PIE as in ns-3, with the paper's gains and all times `times` times longer.
fn reference(scaling: &str, act: bool, times: u32) -> String {
    let PieGains { alpha, beta } = PieGains::tofino();
    let [alpha, beta] = [alpha, beta].map(|gain| gain / f64::from(times));
    let (target, update) = (125 * times, 117_187 * times);
    // Above 1 nothing is dropped, whatever the probability.
    let mark_below = if act { "\"none\"" } else { "2.0" };
    format!(
        "[link.discipline.pie]\ntarget = \"{target}us\"\nupdate = \"{update}ns\"\nfirst-update = \"0s\"\nalpha = {alpha:?}\nbeta = {beta:?}\n\
         scaling = \"{scaling}\"\nderandomise = false\nburst = \"ns3\"\nshort-queue = {{ packets = {{ count = 2 }} }}\n\
         mark-below = {mark_below}\n"
    )
}

/// Datagrams that do not react to congestion: first more than the link carries, then less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overload {
    /// Rates in Mb/s: of the link, of the overload, and afterwards.
    pub link: u64,
    pub load: u64,
    pub rest: u64,
    /// When the overload ends, in ms.
    pub until: u64,
    /// The duration of the run, in ms.
    pub duration: u64,
    /// How packets are spaced.
    pub spacing: &'static str,
}

impl Overload {
    pub const PAPER: Self =
        Self { link: 10_000, load: 100_000, rest: 5_000, until: 5_000, duration: 14_000, spacing: "jittered" };
    /// Far fewer packets. The delay under overload is nearly the same, and is constant where packets are evenly spaced.
    pub const SMALL: Self = Self { link: 200, load: 400, rest: 10, until: 4_000, duration: 12_500, spacing: "even" };

    /// `queue` has the lines of `[link]` that configure the queue management.
    pub fn scenario(self, queue: &str, seed: u64) -> String {
        let Self { link, load, rest, until, duration, spacing } = self;
        let udp = |rate: u64| format!("udp = {{ rate = \"{rate}mbps\", spacing = \"{spacing}\" }}\necn = true");
        format!(
            "seed = {seed}\nduration = \"{duration}ms\"\n\n[access]\nrate = \"100gbps\"\ndelay = \"1us\"\n\n\
             [link]\nrate = \"{link}mbps\"\ndelay = \"1us\"\nlimit = \"500us\"\n{queue}\n[record]\ninterval = \"1ms\"\n\n\
             [[flows]]\nname = \"overload\"\n{}\nstop = \"{until}ms\"\n\n\
             [[flows]]\nname = \"rest\"\n{}\nstart = \"{until}ms\"\n",
            udp(load),
            udp(rest)
        )
    }
}

/// Flows of CUBIC that start within 10 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Responsive {
    /// The rate of the link, in Mb/s.
    pub link: u64,
    pub flows: u32,
    /// The duration of the run, in ms.
    pub duration: u64,
    /// The warm-up, in ms.
    pub warmup: u64,
    /// The round-trip time without queueing, in us.
    pub round_trip: u64,
    /// The profile of the TCP.
    pub profile: &'static str,
    /// The congestion control.
    pub tcp: &'static str,
    /// The lines of `[link]` that configure the queue management.
    pub queue: String,
    /// The factor by which all times are longer.
    pub times: u32,
}

impl Responsive {
    pub fn new(algorithm: Algorithm, flows: u32, duration: u64) -> Self {
        let (profile, tcp, queue) = ("linux", "\"cubic\"", algorithm.text(true));
        Self { link: 10_000, flows, duration, warmup: 0, round_trip: 350, profile, tcp, queue, times: 1 }
    }

    /// The same on a `link` that real hosts can fill, in Mb/s, with all times except the duration `times` times longer.
    pub fn slower(algorithm: Algorithm, flows: u32, duration: u64, link: u64, times: u32) -> Self {
        Self { link, queue: algorithm.slower(times), times, ..Self::new(algorithm, flows, duration) }
    }

    pub fn scenario(&self, seed: u64) -> String {
        let Self { link, flows, duration, warmup, round_trip, profile, tcp, queue, times } = self;
        let times = u64::from(*times);
        let profile = if *profile == "linux" { String::new() } else { format!("profile = \"{profile}\"\n") };
        // Hosts are 50 us away from their switches.
        let [delay, access, limit] = [round_trip / 2 - 100, 50, 500].map(|time| time * times);
        let spread = 10 * times;
        // Stored runs are identified by their text.
        let host = if times == 1 { "25gbps".to_owned() } else { format!("{}mbps", 25_000 / times) };
        format!(
            "seed = {seed}\nduration = \"{duration}ms\"\nwarmup = \"{warmup}ms\"\n{profile}\n[access]\nrate = \"{host}\"\ndelay = \"{access}us\"\n\n\
             [link]\nrate = \"{link}mbps\"\ndelay = \"{delay}us\"\nlimit = \"{limit}us\"\n{queue}\n\
             [[flows]]\nname = \"flows\"\ntcp = {tcp}\ncount = {flows}\nspread = \"{spread}ms\"\n"
        )
    }
}
