//! Workloads: flows that arrive over time.

use crate::keys::{KeyVisitor, Table, fields};
use crate::link::{LARGEST_PACKET, ms};
use crate::params::Control;
use crate::profile::Profile;
use crate::sizes::Sizes;
use crate::traffic::{LONGEST, TrafficDefaults, common_keys, stack_keys};
use crate::value::Frequency;
use queuescope_tcp::{Algorithm, AlgorithmParams, TcpParams};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// A workload: flows that arrive over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The name in reports.
    pub name: String,
    /// The TCP implementation of its hosts.
    pub profile: Profile,
    /// The TCP parameters of its hosts.
    pub stack: TcpParams,
    /// The congestion control of its flows.
    pub tcp: AlgorithmParams,
    /// How flows arrive.
    pub arrivals: Arrivals,
    /// When arrivals start.
    pub start: Nanos,
    /// When arrivals stop. `None`: at the end of the scenario.
    pub stop: Option<Nanos>,
    /// The number of pairs of hosts.
    pub hosts: u32,
    /// The switch of its senders.
    pub from: String,
    /// The switch of its receivers.
    pub to: String,
    /// The class of service of its packets.
    pub class: u8,
    /// Whether its ECN-capable packets carry ECT(1) instead of ECT(0).
    pub l4s: bool,
    /// ABC's reference rate of each of its hosts. `None`: that of the program.
    pub reference: Option<Rate>,
    /// The default of `stack`.
    base: TcpParams,
}

/// How the flows of a workload arrive.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// A Poisson process.
    Poisson(Poisson),
    /// Many senders at once to one receiver.
    Incast(Incast),
    /// Packets in bursts, without TCP.
    Bursts(Bursts),
    /// Flows of datagrams, without TCP.
    Datagrams(Datagrams),
    /// The packets of a capture.
    Capture(Capture),
}

/// Flows that arrive as a Poisson process.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    /// The rate of arrivals.
    pub intensity: Intensity,
    /// The sizes of flows.
    pub sizes: Sizes,
}

/// The rate at which flows arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Intensity {
    /// The flows' bytes are this share of the rate of the slowest link on their path.
    Load(f64),
    /// This many flows per second.
    Rate(Frequency),
}

/// Many senders at once to one receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Incast {
    /// The number of senders.
    pub senders: u32,
    /// How much each sender sends.
    pub bytes: ByteCount,
    /// The time from the start of one incast to the start of the next.
    pub every: Nanos,
    /// The most random delay of a sender: each starts later by a time drawn uniformly from zero to this.
    pub jitter: Nanos,
}

/// Packets in bursts, without TCP.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// The packets of a burst.
    pub packets: u32,
    /// The size of an IP packet.
    pub packet: ByteCount,
    /// The mean time from the start of one burst to the start of the next.
    pub every: Nanos,
    /// The rate within a burst, including IP headers. `None`: that of the host's link.
    pub rate: Option<Rate>,
    /// Whether the times between bursts are exponentially distributed; otherwise they are equal.
    pub random: bool,
}

/// Flows that arrive at random, optionally with on and off periods, and send their bytes as datagrams without
/// congestion control.
#[derive(Debug, Clone, PartialEq)]
pub struct Datagrams {
    /// The long-term rate of arrivals of all pairs of hosts together.
    pub intensity: Intensity,
    /// The sizes of flows, without headers.
    pub sizes: Sizes,
    /// The size of an IP packet.
    pub packet: ByteCount,
    /// The rate of each flow, including IP headers. `None`: that of the host's link.
    pub pace: Option<Rate>,
    /// The length of a period with arrivals.
    pub on: Nanos,
    /// The length of a period without arrivals; zero: there are none.
    pub off: Nanos,
    /// Whether `on` and `off` are means of exponentially distributed times.
    pub random: bool,
}

/// The packets of a capture at their times in it, without congestion control.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// The file, relative to the scenario.
    pub file: String,
    /// The divisor of the times between packets.
    pub speedup: f64,
}

fields!(tables: Workload, Poisson, Incast, Bursts, Datagrams, Capture; choices:);

impl Workload {
    pub(crate) fn fresh_at(index: usize, setting: &TrafficDefaults) -> Self {
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
        Self::fresh_at(0, &TrafficDefaults::dumbbell())
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("name", &mut self.name, "The name in reports and in `--set`.");
        let before = self.profile;
        keys.key(
            "profile",
            &mut self.profile,
            "The TCP implementation of its hosts, including the congestion control.",
        );
        let mut control = Control::new(self.profile, before, self.tcp);
        keys.key("tcp", &mut control, "The congestion control of its flows.");
        self.tcp = control.params;
        self.arrivals.keys(keys);
        keys.within("start", &mut self.start, Nanos::ZERO..=LONGEST, "When arrivals start.");
        keys.key("stop", &mut self.stop, "When arrivals stop; none: at the end.");
        keys.ensure("stop", self.stop.is_none_or(|stop| stop > self.start), || {
            ("the workload stops before it starts".to_owned(), format!("it starts at {}", self.start))
        });
        keys.within(
            "hosts",
            &mut self.hosts,
            1..=100_000,
            "The number of pairs of hosts; flows of a pair share its links. An incast has a host for each sender.",
        );
        keys.key("from", &mut self.from, "The switch of the senders.");
        keys.key("to", &mut self.to, "The switch of the receivers.");
        let counts_marks = crate::params::counts_marks(&self.tcp);
        stack_keys(&mut self.stack, &mut self.base, self.profile != before, self.profile, counts_marks, keys);
        common_keys(&mut self.class, &mut self.l4s, &mut self.reference, self.stack.ecn, keys);
    }
}

impl Arrivals {
    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        let (mut poisson, mut incast, mut bursts, mut datagrams, mut capture) = (None, None, None, None, None);
        // Only a writer needs the current value. For a reader all keys start absent, so that it can check what the file
        // has.
        if K::WRITES {
            match &*self {
                Self::Poisson(it) => poisson = Some(it.clone()),
                Self::Incast(it) => incast = Some(it.clone()),
                Self::Bursts(it) => bursts = Some(it.clone()),
                Self::Datagrams(it) => datagrams = Some(it.clone()),
                Self::Capture(it) => capture = Some(it.clone()),
            }
        }
        keys.maybe("poisson", &mut poisson, "Flows that arrive as a Poisson process.");
        keys.maybe("incast", &mut incast, "Many senders at once to one receiver, repeatedly.");
        keys.maybe("bursts", &mut bursts, "Packets in bursts, without TCP.");
        keys.maybe(
            "datagrams",
            &mut datagrams,
            "Flows of datagrams without congestion control, optionally with on and off periods.",
        );
        keys.maybe("capture", &mut capture, "The packets of a capture at their times, without congestion control.");
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

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        self.intensity.keys(keys);
        keys.key("sizes", &mut self.sizes, "The sizes of flows.");
    }
}

impl Intensity {
    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        let (mut load, mut rate) = match *self {
            _ if !K::WRITES => (None, None),
            Self::Load(load) => (Some(load), None),
            Self::Rate(rate) => (None, Some(rate)),
        };
        keys.maybe(
            "load",
            &mut load,
            "The rate of arrivals by load: the flows' bytes are this share of the rate of the slowest link on their path.",
        );
        keys.ensure("load", load.is_none_or(|load| load > 0.0 && load <= 10.0), || {
            (
                "the load is out of bounds".to_owned(),
                "use a number above 0 and up to 10: 0.8 is 80 % of the link".to_owned(),
            )
        });
        keys.maybe("rate", &mut rate, "The rate of arrivals in flows per second.");
        keys.ensure("rate", rate.is_none_or(|rate| rate.0 <= 1e7), || {
            ("flows arrive too often".to_owned(), "use at most 10000000 per second".to_owned())
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

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("senders", &mut self.senders, 1..=100_000, "The number of senders.");
        keys.within("bytes", &mut self.bytes, ByteCount(1)..=ByteCount(1 << 40), "How much each sender sends.");
        keys.within(
            "every",
            &mut self.every,
            Nanos(1_000)..=LONGEST,
            "The time from the start of one incast to the start of the next.",
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

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("packets", &mut self.packets, 1..=10_000_000, "The packets of a burst.");
        keys.within("packet", &mut self.packet, ByteCount(28)..=LARGEST_PACKET, "The size of an IP packet.");
        keys.within(
            "every",
            &mut self.every,
            Nanos(1_000)..=LONGEST,
            "The mean time from the start of one burst to the start of the next.",
        );
        keys.key("rate", &mut self.rate, "The rate within a burst; none: that of the host's link.");
        keys.key("random", &mut self.random, "Whether `every` is the mean of exponentially distributed times.");
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

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        self.intensity.keys(keys);
        keys.key("sizes", &mut self.sizes, "The sizes of flows.");
        keys.within("packet", &mut self.packet, ByteCount(29)..=LARGEST_PACKET, "The size of an IP packet.");
        keys.key("pace", &mut self.pace, "The rate of a flow, including IP headers; none: that of the host's link.");
        keys.within(
            "on",
            &mut self.on,
            Nanos(1)..=LONGEST,
            "The length of a period with arrivals, separate for each pair of hosts.",
        );
        keys.within(
            "off",
            &mut self.off,
            Nanos::ZERO..=LONGEST,
            "The length of a period without arrivals; zero: there are none.",
        );
        keys.key("random", &mut self.random, "Whether `on` and `off` are means of exponentially distributed times.");
    }
}

impl Table for Capture {
    fn fresh() -> Self {
        Self { file: String::new(), speedup: 1.0 }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("file", &mut self.file, "A capture (pcap, pcapng, also compressed), relative to the scenario.");
        keys.required("file");
        keys.ensure("file", !self.file.is_empty(), || {
            ("the path of the capture is empty".to_owned(), "name a file, relative to the scenario".to_owned())
        });
        keys.within("speedup", &mut self.speedup, 1e-6..=1e6, "The divisor of the times between packets.");
    }
}
