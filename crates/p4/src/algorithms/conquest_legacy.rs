//! ConQuest on a switch beside a router (Chen et al., CoNEXT 2019, section 6).
//!
//! Taps send copies of the packets on links into the router, and of those on a link out of it, to ports of one pipe of the switch. All are processed before
//! the queue of the switch: there, the port and the time of arrival are known, and a copy has not waited in this switch. Both appearances of a packet reach the same registers,
//! so they have to be in the same half of the pipeline, too.
//!
//! Section 6 cannot act on packets, since the switch has copies only. So the program reports: a copy from the link out whose flow has too much of the queue goes to
//! a collector, with the delay and the estimate in front. All other copies are dropped. A register counts what became of each.

use super::conquest_program::{FOR_SNAPSHOTS, Shape, SnapshotInputs, TIME_BITS, weight};
use crate::ir::{
    AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Half, Input, InvalidProgram,
    MatchTable, Operation, PairAction, PairCondition, PairOutput, Polynomial, RegisterAction, RegisterArray,
    SwitchProgram, TableEntries, Unit, Variable, When,
};
use crate::{Aspect, Program};
use queuescope_sketch::{Estimator, TappedConQuestParams};
use std::collections::BTreeSet;

const NAME: &str = "conquest-legacy";
const SOURCE: &str = "Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019, section 6";
/// What the table of taps says about a port: nothing, or one of these.
pub(crate) const INGRESS_TAP: u64 = 1;
pub(crate) const EGRESS_TAP: u64 = 2;
/// The second word of an empty place: a time that is not before any other.
const NEVER: u64 = u32::MAX as u64;

/// The parameters of ConQuest on a switch beside a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConQuestLegacyParams {
    /// How packets are matched, measured and reported.
    pub tapped: TappedConQuestParams,
    /// The ports to which taps send packets from links into the router.
    pub ingress: Vec<u16>,
    /// The port to which a tap sends packets from the link out of the router.
    pub egress: u16,
    /// The port of the collector of reports.
    pub collector: u16,
}

/// What became of a packet: the words of the register `fates`, in order. The last four are of packets from the link out.
pub const LEGACY_FATES: [&str; 8] =
    ["no tap at its port", "not IP", "inserted", "occupied", "unseen", "short", "light", "reported"];

/// The numbers of fates.
mod fate {
    pub const NOT_IP: u64 = 1;
    pub const INSERTED: u64 = 2;
    pub const OCCUPIED: u64 = 3;
    pub const UNSEEN: u64 = 4;
    pub const SHORT: u64 = 5;
    pub const LIGHT: u64 = 6;
    pub const REPORTED: u64 = 7;
    /// The bits of a number.
    pub const BITS: u32 = 3;
}

/// Three links in, and one out, as in the paper's testbed.
impl Default for ConQuestLegacyParams {
    fn default() -> Self {
        Self { tapped: TappedConQuestParams::default(), ingress: vec![1, 2, 3], egress: 4, collector: 5 }
    }
}

/// ConQuest on a switch beside a router with its default parameters, as steps.
pub fn conquest_legacy() -> Program {
    conquest_legacy_with(&ConQuestLegacyParams::default()).expect("the defaults fit").steps()
}

/// ConQuest on a switch beside a router: matches both appearances of a packet, and reports packets that waited while their flow had much of the queue.
///
/// Models [`TappedConQuest`](queuescope_sketch::TappedConQuest). The length is that in the IP header, since a Tofino does not know that of the frame before its queue: of IPv6,
/// what is behind the header. A packet is known by a hash of [`Input::PACKET`]. `tau`, the threshold and the port of the collector are in a table that a control plane changes while the switch runs, and so are the
/// ports of taps.
///
/// # Errors
/// Names the parameter that the program cannot have, and what is possible.
pub fn conquest_legacy_with(params: &ConQuestLegacyParams) -> Result<SwitchProgram, InvalidProgram> {
    let tapped = &params.tapped;
    check(params)?;
    let shape = Shape::new(NAME, &tapped.sketch)?;
    let about = "measures the queue of a router beside it, by taps, and reports flows that have too much of it";
    let mut p = Builder::new(NAME, about, SOURCE);
    p.off_path().of(Aspect::Metric);
    if shape.has_generator {
        p.generated_every(shape.period());
    }
    let [port, arrived] = [Input::ArrivalPort, Input::Arrived].map(|input| p.input(input));
    let generated = shape.has_generator.then(|| p.input(Input::Generated));
    Input::PACKET.into_iter().filter(|it| *it != Input::IpLength).for_each(|input| _ = p.input(input));
    let length = p.input(Input::IpLength);
    let taps = Taps::new(&mut p, params, port, length);
    let now = p.compute("now", TIME_BITS, Unit::NANOS, Operation::Copy(arrived.slice(0, TIME_BITS)));
    let fate = p.variable("fate", fate::BITS, Unit::Number);
    let came = match_packet(&mut p, tapped, &taps, now, fate);
    let delay = p.compute("delay", TIME_BITS, Unit::NANOS, Operation::Subtract(now.into(), came.into()));
    let cleans = generated.map(|generated| Condition::compare(generated, Comparison::Equal, 1));
    let only = match cleans {
        Some(cleans) => Condition::Any(vec![cleans, taps.are(EGRESS_TAP)]),
        None => taps.are(EGRESS_TAP),
    };
    let passing = SnapshotInputs {
        enqueued: came.into(),
        dequeued: now.into(),
        left: arrived,
        generated,
        unit: Unit::Bytes,
        size: length.into(),
        only: Some(only),
        rounds_outwards: tapped.estimator == Estimator::Outer,
    };
    let estimate = weight(&mut p, &shape, &passing);
    p.of(Aspect::Reaction);
    report(&mut p, params, &taps, [came, delay, estimate, fate]);
    count(&mut p, fate, generated);
    p.build()
}

fn check(params: &ConQuestLegacyParams) -> Result<(), InvalidProgram> {
    let fail = |key: &str, why: &str| Err(InvalidProgram::of_parameter(NAME, key, why));
    let tapped = &params.tapped;
    let TappedConQuestParams { sketch, tau, .. } = tapped;
    if let Err(error) = tapped.check() {
        return fail(&error.field().replace('_', "-"), &error.to_string());
    }
    if *tau > TappedConQuestParams::LONGEST {
        return fail("tau", "must be at most 2.08 s, like the longest delay");
    }
    if tapped.estimator == Estimator::Overlap {
        return fail("estimator", "must be inner or outer: a part of a window takes a product");
    }
    if sketch.rows > FOR_SNAPSHOTS {
        return fail("rows", "must be 1 or 2: the packet's hash takes two more hash functions");
    }
    let named = [("ingress", &*params.ingress), ("egress", &[params.egress]), ("collector", &[params.collector])];
    let is_too_high = |port: &u16| *port >= 1 << Input::ArrivalPort.bits();
    if let Some((key, _)) = named.iter().find(|(_, ports)| ports.iter().any(is_too_high)) {
        return fail(key, "must be 0 to 511");
    }
    let ports: Vec<_> = named.iter().flat_map(|(_, ports)| *ports).collect();
    if params.ingress.is_empty() || ports.iter().collect::<BTreeSet<_>>().len() < ports.len() {
        return fail("ingress", "must be at least one port, all of them other ones than egress and collector");
    }
    Ok(())
}

/// Where a copy comes from.
struct Taps {
    role: Variable,
    length: Variable,
}

impl Taps {
    fn new(p: &mut Builder, params: &ConQuestLegacyParams, port: Variable, length: Variable) -> Self {
        p.comment("Which ports have taps (section 6.1): 1 of links into the router, 2 of the link out of it.");
        let role = p.variable("role", 2, Unit::Number);
        let entry = |port: u16, role| (vec![port.into()], vec![role]);
        let ingress = params.ingress.iter().map(|port| entry(*port, INGRESS_TAP));
        p.look_up(MatchTable {
            name: "taps".into(),
            about: "The link that a port has a tap of: 1 into the router, 2 out of it".into(),
            keys: vec![port.into()],
            entries: TableEntries::Exact(ingress.chain([entry(params.egress, EGRESS_TAP)]).collect()),
            results: vec![role],
            otherwise: vec![0],
        });
        Self { role, length }
    }

    /// The IP packets of taps on this side. No header of IPv4 has a length of zero, and no packet of IPv6 either, except jumbograms.
    fn are(&self, role: u64) -> Condition {
        let is_ip = Condition::compare(self.length, Comparison::NotEqual, 0);
        Condition::All(vec![Condition::compare(self.role, Comparison::Equal, role), is_ip])
    }
}

/// Stores a packet that comes, and finds one that leaves (section 6.2). Returns the time of its arrival: zero if it is not known.
fn match_packet(
    p: &mut Builder,
    tapped: &TappedConQuestParams,
    taps: &Taps,
    now: Variable,
    fate: Variable,
) -> Variable {
    let [.., of_slot, of_digest] = Polynomial::ALL;
    p.comment("What a router does not change of a packet gives its place, and a digest that is compared there.");
    let slot = p.compute("slot", tapped.slots.ilog2(), Unit::Number, Operation::HashPacket(of_slot));
    let digest = p.compute("fingerprint", 32, Unit::Number, Operation::HashPacket(of_digest));
    let waiting = p.register(RegisterArray {
        name: "waiting".into(),
        about: "The digest of a packet in the router, and when it came".into(),
        bits: 64,
        unit: Unit::NANOS,
        entries: tapped.slots.into(),
        initial: NEVER << 32,
    });
    let age = AluExpression::Subtract(AluTerm::Value(now.into()), AluTerm::Word);
    let mut expired = PairCondition::of_word(Half::Second, Comparison::Greater, tapped.max_delay.0);
    expired.condition.left = age;
    let insert = PairAction {
        name: "insert".into(),
        conditions: vec![expired, PairCondition::of_word(Half::Second, Comparison::Greater, now)],
        words: [digest.into(), now.into()],
        output: PairOutput::Changed,
    };
    let take = PairAction {
        name: "take".into(),
        conditions: vec![PairCondition::of_word(Half::First, Comparison::Equal, digest)],
        words: [0.into(), NEVER.into()],
        output: PairOutput::Before(Half::Second),
    };
    let inserted = p.variable("inserted", 1, Unit::Number);
    let came = p.variable("came", TIME_BITS, Unit::NANOS);
    let set = |p: &mut Builder, value: u64| p.set(fate, Operation::Copy(value.into()));
    p.choose(
        taps.are(INGRESS_TAP),
        |p| {
            p.comment("An entry is replaced if its packet came longer ago than the longest delay, or later than now: before times of 32 bits wrapped, or never.");
            p.swap(waiting, slot, insert, inserted);
            let is_inserted = Condition::compare(inserted, Comparison::Equal, 1);
            p.choose(is_inserted, |p| set(p, fate::INSERTED), |p| set(p, fate::OCCUPIED));
        },
        |p| {
            p.choose(
                taps.are(EGRESS_TAP),
                |p| {
                    p.comment("The entry is cleared. It was the packet's if it has its digest.");
                    p.swap(waiting, slot, take, came);
                },
                |p| p.when(Condition::compare(taps.role, Comparison::NotEqual, 0), |p| set(p, fate::NOT_IP)),
            );
        },
    );
    came
}

/// Reports a packet from the link out whose flow has too much of the queue.
fn report(p: &mut Builder, params: &ConQuestLegacyParams, taps: &Taps, [came, delay, estimate, fate]: [Variable; 4]) {
    let tapped = &params.tapped;
    let tau = p.variable("tau", TIME_BITS, Unit::NANOS);
    let threshold = p.variable("threshold", 32, Unit::Bytes);
    let collector = p.variable("collector", Input::ArrivalPort.bits(), Unit::Number);
    p.look_up(MatchTable {
        name: "parameters".into(),
        about: "The longest delay without a report, the least bytes of a flow with one, and the port of the collector"
            .into(),
        keys: Vec::new(),
        entries: TableEntries::Exact(Vec::new()),
        results: vec![tau, threshold, collector],
        otherwise: vec![tapped.tau.0, tapped.threshold.into(), params.collector.into()],
    });
    let set = |p: &mut Builder, value: u64| p.set(fate, Operation::Copy(value.into()));
    let is_seen = Condition::All(vec![
        Condition::compare(came, Comparison::NotEqual, 0),
        Condition::compare(delay, Comparison::LessOrEqual, tapped.max_delay.0),
    ]);
    let is_long = Condition::compare(delay, Comparison::Greater, tau);
    let is_heavy = Condition::compare(estimate, Comparison::GreaterOrEqual, threshold);
    p.comment("Whether the time of its arrival is known, and whether it waited long.");
    let flag = |p: &mut Builder, name: &'static str, condition| {
        let flag = p.variable(name, 1, Unit::Number);
        p.when(condition, |p| p.set(flag, Operation::Copy(1.into())));
        Condition::compare(flag, Comparison::Equal, 1)
    };
    let (is_seen, is_long) = (flag(p, "seen", is_seen), flag(p, "long", is_long));
    p.when(taps.are(EGRESS_TAP), |p| {
        p.choose(
            is_seen,
            |p| {
                p.choose(
                    is_long,
                    |p| {
                        p.choose(
                            is_heavy,
                            |p| {
                                set(p, fate::REPORTED);
                                p.report(collector, delay, estimate);
                            },
                            |p| set(p, fate::LIGHT),
                        );
                    },
                    |p| set(p, fate::SHORT),
                );
            },
            |p| {
                p.comment(
                    "It was not seen on its way in, or failed to be inserted. It counts in the snapshots all the same.",
                );
                set(p, fate::UNSEEN);
            },
        );
    });
}

/// Counts what became of the packet.
fn count(p: &mut Builder, fate: Variable, generated: Option<Variable>) {
    let fates = p.register(RegisterArray {
        name: "fates".into(),
        about: "Packets by what became of them".into(),
        bits: 32,
        unit: Unit::Packets,
        entries: LEGACY_FATES.len() as u64,
        initial: 0,
    });
    let one = AluExpression::AddSaturating(AluTerm::Word, AluTerm::Value(1.into()));
    let count = RegisterAction {
        name: "count_fate".into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: one }],
        output: AluOutput::Nothing,
    };
    match generated {
        Some(generated) => {
            let is_copy = Condition::compare(generated, Comparison::Equal, 0);
            p.when(is_copy, |p| p.access(fates, fate, count, None));
        }
        None => p.access(fates, fate, count, None),
    }
}
