//! Traffic: flows that are there, and workloads by which flows come and go.

use crate::keys::{Field, Keys, Table, fields};
use crate::link::{LARGEST_PACKET, mbps, ms};
use crate::params::{Control, of_profile};
use crate::scenario::Profile;
use crate::sizes::Sizes;
use crate::value::Frequency;
use queuescope_tcp::{Algorithm, AlgorithmParams, TcpParams};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// A group of flows that are alike, each from a host of its own to a host of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGroup {
    /// What reports call it.
    pub name: String,
    /// Whose version of TCP its hosts have.
    pub profile: Profile,
    /// The sender and receiver of its flows.
    pub stack: TcpParams,
    /// What it sends.
    pub traffic: Traffic,
    /// How many flows.
    pub count: u32,
    /// How many hosts send them, if not one each.
    pub hosts: Option<u32>,
    /// When the first starts.
    pub start: Nanos,
    /// How much later each starts than the one before.
    pub stagger: Nanos,
    /// Each starts later by a time drawn uniformly from zero to this.
    pub spread: Nanos,
    /// When they stop, if before the end.
    pub stop: Option<Nanos>,
    /// How much each sends, if it ends.
    pub bytes: Option<ByteCount>,
    /// Its round-trip time without queueing, if it is to be longer than its path's.
    pub rtt: Option<Nanos>,
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

/// What a flow sends.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are a few of them in a scenario")]
pub enum Traffic {
    /// As much as a congestion control allows.
    Tcp(AlgorithmParams),
    /// At a rate of its own.
    Udp(Udp),
}

/// Packets at a rate, perhaps on and off.
#[derive(Debug, Clone, PartialEq)]
pub struct Udp {
    /// The rate while it is on, in IP packets.
    pub rate: Rate,
    /// The size of an IP packet.
    pub packet: ByteCount,
    /// How long it is on.
    pub on: Nanos,
    /// How long it is off; zero: never.
    pub off: Nanos,
    /// Whether these are means of exponential times, not the times themselves.
    pub random: bool,
}

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

/// The packets of a capture, at the times at which they were captured; they heed no congestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// The file, relative to the scenario.
    pub file: String,
    /// Times between packets are divided by this.
    pub speedup: f64,
}

fields!(tables: FlowGroup, Workload, Poisson, Incast, Bursts, Capture; choices:);

/// Where a group or a workload stands: what it takes from the rest of the scenario.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub profile: Profile,
    pub stack: TcpParams,
    pub from: String,
    pub to: String,
}

/// More flows than this fit into no memory.
const MOST_FLOWS: u32 = 1_000_000;
/// A year, in which nothing is simulated.
const LONGEST: Nanos = ms(365 * 86_400_000);

impl FlowGroup {
    pub(crate) fn fresh_at(index: usize, setting: &Setting) -> Self {
        Self {
            name: format!("flows{}", index + 1),
            profile: setting.profile,
            stack: setting.stack,
            traffic: Traffic::Tcp(Algorithm::Cubic.params(setting.profile.of_algorithm())),
            count: 1,
            hosts: None,
            start: Nanos::ZERO,
            stagger: Nanos::ZERO,
            spread: Nanos::ZERO,
            stop: None,
            bytes: None,
            rtt: None,
            from: setting.from.clone(),
            to: setting.to.clone(),
            class: 0,
            l4s: false,
            reference: None,
            base: setting.stack,
        }
    }
}

impl Table for FlowGroup {
    fn fresh() -> Self {
        Self::fresh_at(0, &Setting::dumbbell())
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("name", &mut self.name, "What reports and `--set` call the group.");
        let before = self.profile;
        keys.key("profile", &mut self.profile, "Whose version of TCP its hosts have, and its congestion control is.");
        self.traffic.keys(self.profile, before, keys);
        keys.within("count", &mut self.count, 1..=MOST_FLOWS, "How many flows.");
        keys.key("hosts", &mut self.hosts, "How many hosts send them, in turn; none: as many as flows.");
        keys.ensure("hosts", self.hosts.is_none_or(|hosts| (1..=self.count).contains(&hosts)), || {
            ("there are more hosts than flows, or none".to_owned(), format!("`count` is {}", self.count))
        });
        keys.within("start", &mut self.start, Nanos::ZERO..=LONGEST, "When the first flow starts.");
        keys.within(
            "stagger",
            &mut self.stagger,
            Nanos::ZERO..=LONGEST,
            "How much later each flow starts than the one before.",
        );
        keys.within(
            "spread",
            &mut self.spread,
            Nanos::ZERO..=LONGEST,
            "Each flow starts later by a time drawn uniformly from zero to this.",
        );
        keys.key("stop", &mut self.stop, "When the flows stop sending; none: at the end.");
        keys.ensure("stop", self.stop.is_none_or(|stop| stop > self.start), || {
            ("the flows stop before they start".to_owned(), format!("they start at {}", self.start))
        });
        keys.key("bytes", &mut self.bytes, "How much each flow sends; none: it does not end.");
        keys.ensure("bytes", self.bytes != Some(ByteCount(0)), || {
            ("a flow of no bytes is none".to_owned(), "write \"none\" for flows that do not end".to_owned())
        });
        keys.key(
            "rtt",
            &mut self.rtt,
            "The round-trip time without queueing: senders are as much farther away as it is longer than the path's; none: \
             the path's.",
        );
        keys.key("from", &mut self.from, "The switch that the senders are at.");
        keys.key("to", &mut self.to, "The switch that the receivers are at.");
        let counts_marks = self.traffic.counts_marks();
        stack_keys((&mut self.stack, &mut self.base), self.profile != before, self.profile, counts_marks, keys);
        common_keys(&mut self.class, &mut self.l4s, &mut self.reference, self.stack.ecn, keys);
    }
}

impl Traffic {
    fn keys<K: Keys>(&mut self, profile: Profile, before: Profile, keys: &mut K) {
        let (mut tcp, mut udp) = match self {
            Self::Tcp(params) => (Some(Control::of(profile, before, *params)), None),
            Self::Udp(udp) => (None, Some(udp.clone())),
        };
        keys.maybe("tcp", &mut tcp, "The congestion control of TCP flows.");
        keys.maybe("udp", &mut udp, "In place of TCP: a rate, or a table.");
        keys.one_of(&["tcp", "udp"], false);
        *self = match (tcp, udp) {
            (_, Some(udp)) => Self::Udp(udp),
            (Some(tcp), None) => Self::Tcp(tcp.params),
            (None, None) => return,
        };
    }

    fn counts_marks(&self) -> bool {
        matches!(self, Self::Tcp(params) if crate::params::counts_marks(params))
    }
}

/// How the network knows the packets.
fn common_keys<K: Keys>(class: &mut u8, l4s: &mut bool, reference: &mut Option<Rate>, ecn: bool, keys: &mut K) {
    keys.within("class", class, 0..=63, "The class of service, for disciplines with a queue for each.");
    keys.key("l4s", l4s, "Whether ECN-capable packets are ECT(1) (RFC 9331), for a queue of low latency.");
    keys.ensure("l4s", ecn || !*l4s, || {
        ("packets of L4S are ECN-capable".to_owned(), "write `ecn = true` too".to_owned())
    });
    keys.key(
        "reference",
        reference,
        "What each host was promised by ABC: the rate at which its activity is 0; none: as there.",
    );
}

/// The keys of a stack, and of its ECN; `anew` says that the table has another profile than the scenario.
fn stack_keys<K: Keys>(
    (stack, base): (&mut TcpParams, &mut TcpParams),
    anew: bool,
    profile: Profile,
    counts_marks: bool,
    keys: &mut K,
) {
    if anew {
        *base = of_profile(profile);
    }
    keys.inherited(
        "stack",
        stack,
        base,
        "The TCP of its hosts; what is not said is as in `[stack]`, or as in its own profile.",
    );
    let mut ecn = stack.ecn || counts_marks;
    keys.key("ecn", &mut ecn, "Whether packets are ECN-capable; with `dctcp` they are.");
    keys.ensure("ecn", ecn || !counts_marks, || {
        ("this congestion control needs ECN".to_owned(), "take `ecn` away, or write true".to_owned())
    });
    stack.ecn = ecn;
}

impl Table for Udp {
    fn fresh() -> Self {
        Self { rate: mbps(1), packet: ByteCount(1500), on: ms(1000), off: Nanos::ZERO, random: false }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("rate", &mut self.rate, "How fast it sends while it is on, in IP packets.");
        keys.within("packet", &mut self.packet, ByteCount(28)..=LARGEST_PACKET, "The size of an IP packet.");
        keys.within("on", &mut self.on, ms(0)..=LONGEST, "How long it is on.");
        keys.ensure("on", self.on > Nanos::ZERO, || {
            ("it is never on".to_owned(), "write a time above zero".to_owned())
        });
        keys.within("off", &mut self.off, ms(0)..=LONGEST, "How long it is off; zero: never.");
        keys.key(
            "random",
            &mut self.random,
            "Whether `on` and `off` are means of exponential times, not the times themselves.",
        );
    }
}

/// A rate alone says enough.
impl Field for Udp {
    fn blank() -> Self {
        Self::fresh()
    }

    fn read(&mut self, node: &crate::dom::Node, findings: &mut crate::read::Findings) {
        match node.value {
            crate::dom::Raw::Table(_) => crate::read::read_table(self, node, findings),
            _ => self.rate.read(node, findings),
        }
    }

    fn write(&self) -> crate::explain::Written {
        crate::explain::write_table(self)
    }

    fn kind() -> crate::describe::Kind {
        crate::describe::Kind::AnyOf(vec![Rate::kind(), crate::describe::table_kind::<Self>()])
    }
}

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
        stack_keys((&mut self.stack, &mut self.base), self.profile != before, self.profile, counts_marks, keys);
        common_keys(&mut self.class, &mut self.l4s, &mut self.reference, self.stack.ecn, keys);
    }
}

impl Arrivals {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let (mut poisson, mut incast, mut bursts, mut capture) = (None, None, None, None);
        // What is written; a reader finds none of them there, so that it sees what the file says.
        if K::WRITES {
            match &*self {
                Self::Poisson(it) => poisson = Some(it.clone()),
                Self::Incast(it) => incast = Some(it.clone()),
                Self::Bursts(it) => bursts = Some(it.clone()),
                Self::Capture(it) => capture = Some(it.clone()),
            }
        }
        keys.maybe("poisson", &mut poisson, "Flows that come at random, independently of each other.");
        keys.maybe("incast", &mut incast, "Many senders at once to one receiver, again and again.");
        keys.maybe("bursts", &mut bursts, "Packets in bursts, without TCP.");
        keys.maybe("capture", &mut capture, "The packets of a capture at their times; they heed no congestion.");
        keys.one_of(&["poisson", "incast", "bursts", "capture"], true);
        let read = poisson.map(Self::Poisson).or(incast.map(Self::Incast));
        if let Some(read) = read.or(bursts.map(Self::Bursts)).or(capture.map(Self::Capture)) {
            *self = read;
        }
    }
}

impl Table for Poisson {
    fn fresh() -> Self {
        Self { intensity: Intensity::Load(0.5), sizes: Sizes::fresh() }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let (mut load, mut rate) = match self.intensity {
            _ if !K::WRITES => (None, None),
            Intensity::Load(load) => (Some(load), None),
            Intensity::Rate(rate) => (None, Some(rate)),
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
        keys.key("sizes", &mut self.sizes, "How large flows are.");
        self.intensity = match (load, rate) {
            (Some(load), _) => Intensity::Load(load),
            (None, Some(rate)) => Intensity::Rate(rate),
            (None, None) => self.intensity,
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

impl Setting {
    /// That of the default scenario, for the reference.
    pub fn dumbbell() -> Self {
        Self {
            profile: Profile::Linux,
            stack: of_profile(Profile::Linux),
            from: "left".to_owned(),
            to: "right".to_owned(),
        }
    }
}
