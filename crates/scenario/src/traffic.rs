//! Traffic: flows that are there.

use crate::keys::{Field, Keys, Table, fields};
use crate::link::{LARGEST_PACKET, mbps, ms};
use crate::params::{ACTIVITY, Control, of_profile, optional};
use crate::profile::Profile;
use crate::value::names;
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
    /// The activity that its senders write into their packets themselves, as if they were edges of an ABC domain.
    pub activity: Option<f64>,
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
    /// How packets are apart.
    pub spacing: Spacing,
}

/// How packets are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    Even,
    /// Each later by a random part of the gap.
    Jittered,
    /// By exponential gaps.
    Poisson,
}

names! {
    Spacing, "a spacing": "even" = Spacing::Even, "jittered" = Spacing::Jittered, "poisson" = Spacing::Poisson;
}
fields!(tables: FlowGroup; choices:);

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
pub(crate) const LONGEST: Nanos = ms(365 * 86_400_000);

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
            activity: None,
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
        stack_keys(&mut self.stack, &mut self.base, self.profile != before, self.profile, counts_marks, keys);
        common_keys(&mut self.class, &mut self.l4s, &mut self.reference, self.stack.ecn, keys);
        optional(
            keys,
            "activity",
            &mut self.activity,
            &ACTIVITY,
            "The activity that senders write into data themselves, which is an edge's to write (ABC).",
        );
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
pub(crate) fn common_keys<K: Keys>(
    class: &mut u8,
    l4s: &mut bool,
    reference: &mut Option<Rate>,
    ecn: bool,
    keys: &mut K,
) {
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
pub(crate) fn stack_keys<K: Keys>(
    stack: &mut TcpParams,
    base: &mut TcpParams,
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
        Self {
            rate: mbps(1),
            packet: ByteCount(1500),
            on: ms(1000),
            off: Nanos::ZERO,
            random: false,
            spacing: Spacing::Even,
        }
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
        keys.key(
            "spacing",
            &mut self.spacing,
            "How packets are apart: evenly, each later by a random part of the gap, or by exponential gaps.",
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
