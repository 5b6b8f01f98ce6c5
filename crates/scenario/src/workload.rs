//! Workloads: flows that come and go.

use crate::keys::{Keys, Table, fields};
use crate::link::{LARGEST_PACKET, ms};
use crate::params::Control;
use crate::profile::Profile;
use crate::sizes::Sizes;
use crate::traffic::{LONGEST, Setting, common_keys, stack_keys};
use crate::value::Frequency;
use queuescope_tcp::{Algorithm, AlgorithmParams, TcpParams};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// Flows that come and go.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What reports call it.
    pub name: String,
    /// Whose version of TCP its hosts have.
    pub profile: Profile,
    /// The sender and receiver of its flows.
    pub stack: TcpParams,
    /// The congestion control of its flows.
    pub tcp: AlgorithmParams,
    /// How they come.
    pub arrivals: Arrivals,
    /// From when on.
    pub start: Nanos,
    /// Until when, if before the end.
    pub stop: Option<Nanos>,
    /// Between how many pairs of hosts.
    pub hosts: u32,
    /// The switch that its senders are at.
    pub from: String,
    /// The switch that its receivers are at.
    pub to: String,
    /// The class of service of its packets.
    pub class: u8,
    /// Whether its ECN-capable packets are ECT(1), not ECT(0).
    pub l4s: bool,
    /// What each of its hosts was promised by ABC, if not what the program says.
    pub reference: Option<Rate>,
    /// What `stack` is where the table does not say.
    base: TcpParams,
}

/// How the flows of a workload come.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// At random, independently of each other.
    Poisson(Poisson),
    /// Many at once to one receiver.
    Incast(Incast),
    /// Packets in bursts, without TCP.
    Bursts(Bursts),
    /// Flows of datagrams, without TCP.
    Datagrams(Datagrams),
    /// The packets of a capture.
    Capture(Capture),
}

/// Flows that come at random, independently of each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    /// How often.
    pub intensity: Intensity,
    /// How large they are.
    pub sizes: Sizes,
}

/// How often flows come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Intensity {
    /// So that their bytes are this share of the slowest link on their path.
    Load(f64),
    /// So often.
    Rate(Frequency),
}

/// Many senders at once to one receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Incast {
    /// How many.
    pub senders: u32,
    /// How much each sends.
    pub bytes: ByteCount,
    /// From the start of one to the start of the next.
    pub every: Nanos,
    /// Each sender starts later by a time drawn uniformly from zero to this.
    pub jitter: Nanos,
}

/// Packets in bursts, without TCP.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// Packets of a burst.
    pub packets: u32,
    /// The size of an IP packet.
    pub packet: ByteCount,
    /// The mean time from the start of one to the start of the next.
    pub every: Nanos,
    /// The rate within a burst, in IP packets; as fast as the host's link, if not said.
    pub rate: Option<Rate>,
    /// Whether the times between bursts are exponential, not all alike.
    pub random: bool,
}

/// Flows that come at random, perhaps in bursts, and send their bytes as datagrams, whatever becomes of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Datagrams {
    /// How often they come, all pairs of hosts together, in the long run.
    pub intensity: Intensity,
    /// How large they are, without headers.
    pub sizes: Sizes,
    /// The size of an IP packet.
    pub packet: ByteCount,
    /// How fast each flow sends, in IP packets; as fast as the host's link, if not said.
    pub pace: Option<Rate>,
    /// How long flows come.
    pub on: Nanos,
    /// How long none comes; zero: never.
    pub off: Nanos,
    /// Whether these are means of exponential times, not the times themselves.
    pub random: bool,
}

/// The packets of a capture, at the times at which they were captured; they heed no congestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// The file, relative to the scenario.
    pub file: String,
    /// Times between packets are divided by this.
    pub speedup: f64,
}

fields!(tables: Workload, Poisson, Incast, Bursts, Datagrams, Capture; choices:);

impl Workload {
    pub(crate) fn fresh_at(index: usize, setting: &Setting) -> Self {
        Self {
            name: format!("workload{}", index + 1),
            profile: setting.profile,
            stack: setting.stack,
            tcp: Algorithm::Cubic.params(setting.profile.of_algorithm()),
            arrivals: Arrivals::Poisson(Poisson::fresh()),
            start: Nanos::ZERO,
            stop: None,
            hosts: 10,
            from: setting.from.clone(),
            to: setting.to.clone(),
            class: 0,
            l4s: false,
            reference: None,
            base: setting.stack,
        }
    }
}

impl Table for Workload {
    fn fresh() -> Self {
        Self::fresh_at(0, &Setting::dumbbell())
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("name", &mut self.name, "What reports and `--set` call the workload.");
        let before = self.profile;
        keys.key("profile", &mut self.profile, "Whose version of TCP its hosts have, and its congestion control is.");
        let mut control = Control::of(self.profile, before, self.tcp);
        keys.key("tcp", &mut control, "The congestion control of its flows.");
        self.tcp = control.params;
        self.arrivals.keys(keys);
        keys.within("start", &mut self.start, Nanos::ZERO..=LONGEST, "From when on flows come.");
        keys.key("stop", &mut self.stop, "Until when flows come; none: until the end.");
        keys.ensure("stop", self.stop.is_none_or(|stop| stop > self.start), || {
            ("the workload stops before it starts".to_owned(), format!("it starts at {}", self.start))
        });
        keys.within(
            "hosts",
            &mut self.hosts,
            1..=100_000,
            "Between how many pairs of hosts; the flows of each share its links. An incast has a host for each sender.",
        );
        keys.key("from", &mut self.from, "The switch that the senders are at.");
        keys.key("to", &mut self.to, "The switch that the receivers are at.");
        let counts_marks = crate::params::counts_marks(&self.tcp);
        stack_keys(&mut self.stack, &mut self.base, self.profile != before, self.profile, counts_marks, keys);
        common_keys(&mut self.class, &mut self.l4s, &mut self.reference, self.stack.ecn, keys);
    }
}

impl Arrivals {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let (mut poisson, mut incast, mut bursts, mut datagrams, mut capture) = (None, None, None, None, None);
        // What is written; a reader finds none of them there, so that it sees what the file says.
        if K::WRITES {
            match &*self {
                Self::Poisson(it) => poisson = Some(it.clone()),
                Self::Incast(it) => incast = Some(it.clone()),
                Self::Bursts(it) => bursts = Some(it.clone()),
                Self::Datagrams(it) => datagrams = Some(it.clone()),
                Self::Capture(it) => capture = Some(it.clone()),
            }
        }
        keys.maybe("poisson", &mut poisson, "Flows that come at random, independently of each other.");
        keys.maybe("incast", &mut incast, "Many senders at once to one receiver, again and again.");
        keys.maybe("bursts", &mut bursts, "Packets in bursts, without TCP.");
        keys.maybe("datagrams", &mut datagrams, "Flows of datagrams, perhaps in bursts; they heed no congestion.");
        keys.maybe("capture", &mut capture, "The packets of a capture at their times; they heed no congestion.");
        keys.one_of(&["poisson", "incast", "bursts", "datagrams", "capture"], true);
        let read = poisson.map(Self::Poisson).or(incast.map(Self::Incast));
        let read = read.or(bursts.map(Self::Bursts)).or(datagrams.map(Self::Datagrams));
        if let Some(read) = read.or(capture.map(Self::Capture)) {
            *self = read;
        }
    }
}

impl Table for Poisson {
    fn fresh() -> Self {
        Self { intensity: Intensity::Load(0.5), sizes: Sizes::fresh() }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        self.intensity.keys(keys);
        keys.key("sizes", &mut self.sizes, "How large flows are.");
    }
}

impl Intensity {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let (mut load, mut rate) = match *self {
            _ if !K::WRITES => (None, None),
            Self::Load(load) => (Some(load), None),
            Self::Rate(rate) => (None, Some(rate)),
        };
        keys.maybe(
            "load",
            &mut load,
            "How often: so that the flows' bytes are this share of the slowest link on their path.",
        );
        keys.ensure("load", load.is_none_or(|load| load > 0.0 && load <= 10.0), || {
            (
                "the load is out of bounds".to_owned(),
                "it is above 0, and at most 10: 0.8 is 80 % of the link".to_owned(),
            )
        });
        keys.maybe("rate", &mut rate, "How often: so many flows a second.");
        keys.ensure("rate", rate.is_none_or(|rate| rate.0 <= 1e7), || {
            ("flows come too often".to_owned(), "there are at most 10000000 a second".to_owned())
        });
        keys.one_of(&["load", "rate"], true);
        *self = match (load, rate) {
            (Some(load), _) => Self::Load(load),
            (None, Some(rate)) => Self::Rate(rate),
            (None, None) => *self,
        };
    }
}

impl Table for Incast {
    fn fresh() -> Self {
        Self { senders: 32, bytes: ByteCount(20_000), every: ms(100), jitter: Nanos::ZERO }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.within("senders", &mut self.senders, 1..=100_000, "How many send at once.");
        keys.within("bytes", &mut self.bytes, ByteCount(1)..=ByteCount(1 << 40), "How much each of them sends.");
        keys.within(
            "every",
            &mut self.every,
            Nanos(1_000)..=LONGEST,
            "From the start of one incast to that of the next.",
        );
        keys.within(
            "jitter",
            &mut self.jitter,
            Nanos::ZERO..=LONGEST,
            "Each sender starts later by a time drawn uniformly from zero to this.",
        );
    }
}

impl Table for Bursts {
    fn fresh() -> Self {
        Self { packets: 100, packet: ByteCount(1500), every: ms(100), rate: None, random: false }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.within("packets", &mut self.packets, 1..=10_000_000, "Packets of a burst.");
        keys.within("packet", &mut self.packet, ByteCount(28)..=LARGEST_PACKET, "The size of an IP packet.");
        keys.within(
            "every",
            &mut self.every,
            Nanos(1_000)..=LONGEST,
            "From the start of one burst to that of the next.",
        );
        keys.key("rate", &mut self.rate, "The rate within a burst; none: that of the host's link.");
        keys.key("random", &mut self.random, "Whether `every` is the mean of exponential times, not the time itself.");
    }
}

impl Table for Datagrams {
    fn fresh() -> Self {
        Self {
            intensity: Intensity::Load(0.5),
            sizes: Sizes::fresh(),
            packet: ByteCount(1500),
            pace: None,
            on: ms(1000),
            off: Nanos::ZERO,
            random: false,
        }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        self.intensity.keys(keys);
        keys.key("sizes", &mut self.sizes, "How large flows are.");
        keys.within("packet", &mut self.packet, ByteCount(29)..=LARGEST_PACKET, "The size of an IP packet.");
        keys.key("pace", &mut self.pace, "How fast a flow sends, in IP packets; none: as fast as the host's link.");
        keys.within("on", &mut self.on, Nanos(1)..=LONGEST, "How long flows come, from each pair of hosts by itself.");
        keys.within("off", &mut self.off, Nanos::ZERO..=LONGEST, "How long none comes; zero: never.");
        keys.key(
            "random",
            &mut self.random,
            "Whether `on` and `off` are means of exponential times, not the times themselves.",
        );
    }
}

impl Table for Capture {
    fn fresh() -> Self {
        Self { file: String::new(), speedup: 1.0 }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("file", &mut self.file, "A capture (pcap, pcapng, also compressed), relative to the scenario.");
        keys.required("file");
        keys.ensure("file", !self.file.is_empty(), || {
            ("the path of the capture is empty".to_owned(), "name a file, relative to the scenario".to_owned())
        });
        keys.within("speedup", &mut self.speedup, 1e-6..=1e6, "Times between packets are divided by this.");
    }
}
