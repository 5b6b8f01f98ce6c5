//! Traffic: groups of flows with fixed start times.

use crate::keys::{Field, KeyVisitor, Table, fields};
use crate::link::{LARGEST_PACKET, mbps, ms};
use crate::params::{ACTIVITY, Control, optional, tcp_of_profile};
use crate::profile::Profile;
use crate::value::names;
use queuescope_tcp::{Algorithm, AlgorithmParams, TcpParams};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// A group of equal flows, each between its own two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGroup {
    /// The name in reports.
    pub name: String,
    /// The TCP implementation of its hosts.
    pub profile: Profile,
    /// The TCP parameters of its hosts.
    pub stack: TcpParams,
    /// What its flows send.
    pub traffic: Traffic,
    /// The number of flows.
    pub count: u32,
    /// The number of sending hosts. `None`: one host for each flow.
    pub hosts: Option<u32>,
    /// When the first flow starts.
    pub start: Nanos,
    /// The time between the starts of consecutive flows.
    pub stagger: Nanos,
    /// The most random delay of a start: each flow starts later by a time drawn uniformly from zero to this.
    pub spread: Nanos,
    /// When the flows stop sending. `None`: at the end of the scenario.
    pub stop: Option<Nanos>,
    /// How much each flow sends. `None`: without end.
    pub bytes: Option<ByteCount>,
    /// The round-trip time without queueing. `None`: that of the path.
    pub rtt: Option<Nanos>,
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
    /// The activity that its senders write into their packets, as an edge of an ABC domain would.
    pub activity: Option<f64>,
    /// The default of `stack`.
    base: TcpParams,
}

/// What a flow sends.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are a few of them in a scenario")]
pub enum Traffic {
    /// TCP, as much as the congestion control allows.
    Tcp(AlgorithmParams),
    /// UDP, at a given rate.
    Udp(Udp),
}

/// Packets at a rate, optionally with on and off periods.
#[derive(Debug, Clone, PartialEq)]
pub struct Udp {
    /// The rate during on periods, including IP headers.
    pub rate: Rate,
    /// The size of an IP packet.
    pub packet: ByteCount,
    /// The length of an on period.
    pub on: Nanos,
    /// The length of an off period; zero: there are none.
    pub off: Nanos,
    /// Whether `on` and `off` are means of exponentially distributed times.
    pub random: bool,
    /// The gaps between packets.
    pub spacing: Spacing,
}

/// The gaps between packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Equal gaps.
    Even,
    /// Equal gaps, with each packet delayed by a random part of the gap.
    Jittered,
    /// Exponentially distributed gaps.
    Poisson,
}

names! {
    Spacing, "a spacing": "even" = Spacing::Even, "jittered" = Spacing::Jittered, "poisson" = Spacing::Poisson;
}
fields!(tables: FlowGroup; choices:);

/// The defaults that a group or a workload takes from the rest of the scenario.
#[derive(Debug, Clone)]
pub(crate) struct TrafficDefaults {
    pub profile: Profile,
    pub stack: TcpParams,
    pub from: String,
    pub to: String,
}

/// The most flows; more do not fit into memory.
const MOST_FLOWS: u32 = 1_000_000;
/// The latest time in a scenario: a year, longer than any simulation.
pub(crate) const LONGEST: Nanos = ms(365 * 86_400_000);

impl FlowGroup {
    pub(crate) fn fresh_at(index: usize, setting: &TrafficDefaults) -> Self {
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
        self.traffic.keys(self.profile, before, keys);
        keys.within("count", &mut self.count, 1..=MOST_FLOWS, "The number of flows.");
        keys.key(
            "hosts",
            &mut self.hosts,
            "The number of sending hosts, which take flows in turn; none: one for each flow.",
        );
        keys.ensure("hosts", self.hosts.is_none_or(|hosts| (1..=self.count).contains(&hosts)), || {
            ("`hosts` must be from 1 to the number of flows".to_owned(), format!("`count` is {}", self.count))
        });
        keys.within("start", &mut self.start, Nanos::ZERO..=LONGEST, "When the first flow starts.");
        keys.within(
            "stagger",
            &mut self.stagger,
            Nanos::ZERO..=LONGEST,
            "The time between the starts of consecutive flows.",
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
        keys.key("bytes", &mut self.bytes, "How much each flow sends; none: without end.");
        keys.ensure("bytes", self.bytes != Some(ByteCount(0)), || {
            ("a flow cannot have 0 bytes".to_owned(), "write \"none\" for flows that do not end".to_owned())
        });
        keys.key(
            "rtt",
            &mut self.rtt,
            "The round-trip time without queueing. If it is longer than the path's, the senders are farther away; none: the \
             path's.",
        );
        keys.key("from", &mut self.from, "The switch of the senders.");
        keys.key("to", &mut self.to, "The switch of the receivers.");
        let counts_marks = self.traffic.counts_marks();
        stack_keys(&mut self.stack, &mut self.base, self.profile != before, self.profile, counts_marks, keys);
        common_keys(&mut self.class, &mut self.l4s, &mut self.reference, self.stack.ecn, keys);
        optional(
            keys,
            "activity",
            &mut self.activity,
            &ACTIVITY,
            "The activity that senders write into their data packets, as an edge of an ABC domain would.",
        );
    }
}

impl Traffic {
    fn keys<K: KeyVisitor>(&mut self, profile: Profile, before: Profile, keys: &mut K) {
        let (mut tcp, mut udp) = match self {
            Self::Tcp(params) => (Some(Control::new(profile, before, *params)), None),
            Self::Udp(udp) => (None, Some(udp.clone())),
        };
        keys.maybe("tcp", &mut tcp, "The congestion control of TCP flows.");
        keys.maybe("udp", &mut udp, "UDP instead of TCP: a rate, or a table.");
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

/// The keys that decide how the network treats the packets.
pub(crate) fn common_keys<K: KeyVisitor>(
    class: &mut u8,
    l4s: &mut bool,
    reference: &mut Option<Rate>,
    ecn: bool,
    keys: &mut K,
) {
    keys.within("class", class, 0..=63, "The class of service, for disciplines with a queue for each class.");
    keys.key("l4s", l4s, "Whether ECN-capable packets carry ECT(1), for low-latency queues (L4S, RFC 9331).");
    keys.ensure("l4s", ecn || !*l4s, || {
        ("L4S packets must be ECN-capable".to_owned(), "write `ecn = true` too".to_owned())
    });
    keys.key(
        "reference",
        reference,
        "ABC's reference rate of each host, at which its activity is 0; none: that of the program.",
    );
}

/// The keys of a stack and of its ECN. `other_profile`: the table has another profile than the scenario.
pub(crate) fn stack_keys<K: KeyVisitor>(
    stack: &mut TcpParams,
    base: &mut TcpParams,
    other_profile: bool,
    profile: Profile,
    counts_marks: bool,
    keys: &mut K,
) {
    if other_profile {
        *base = tcp_of_profile(profile);
    }
    keys.inherited(
        "stack",
        stack,
        base,
        "The TCP of its hosts. Defaults are those of `[stack]`, or of its own profile.",
    );
    let mut ecn = stack.ecn || counts_marks;
    keys.key("ecn", &mut ecn, "Whether packets are ECN-capable; always true with `dctcp`.");
    keys.ensure("ecn", ecn || !counts_marks, || {
        ("this congestion control needs ECN".to_owned(), "remove `ecn`, or write true".to_owned())
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

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("rate", &mut self.rate, "The rate during on periods, including IP headers.");
        keys.within("packet", &mut self.packet, ByteCount(28)..=LARGEST_PACKET, "The size of an IP packet.");
        keys.within("on", &mut self.on, ms(0)..=LONGEST, "The length of an on period.");
        keys.ensure("on", self.on > Nanos::ZERO, || {
            ("the on period is zero".to_owned(), "write a time above zero".to_owned())
        });
        keys.within("off", &mut self.off, ms(0)..=LONGEST, "The length of an off period; zero: there are none.");
        keys.key("random", &mut self.random, "Whether `on` and `off` are means of exponentially distributed times.");
        keys.key(
            "spacing",
            &mut self.spacing,
            "The gaps between packets: equal, equal with each packet delayed by a random part of the gap, or exponential.",
        );
    }
}

/// Written as a rate, or as a table.
impl Field for Udp {
    fn blank() -> Self {
        Self::fresh()
    }

    fn read(&mut self, node: &crate::dom::Node, findings: &mut crate::read::Findings) {
        match node.value {
            crate::dom::TomlValue::Table(_) => crate::read::read_table(self, node, findings),
            _ => self.rate.read(node, findings),
        }
    }

    fn write(&self) -> crate::explain::Written {
        crate::explain::write_table(self)
    }

    fn kind() -> crate::describe::ValueKind {
        crate::describe::ValueKind::AnyOf(vec![Rate::kind(), crate::describe::table_kind::<Self>()])
    }
}

impl TrafficDefaults {
    /// The defaults of a dumbbell, for the reference.
    pub fn dumbbell() -> Self {
        Self {
            profile: Profile::Linux,
            stack: tcp_of_profile(Profile::Linux),
            from: "left".to_owned(),
            to: "right".to_owned(),
        }
    }
}
