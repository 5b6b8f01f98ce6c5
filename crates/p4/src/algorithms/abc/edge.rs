//! The edge: meters the rate of each aggregate, and writes its activity into its packets.

use super::super::pie_data_plane::read;
use super::{Arrivals, SOURCE, change, core};
use crate::ir::{
    ActionTable, AluExpression, AluOutput, AluTerm, Builder, Comparison, Condition, Input, InvalidProgram, MatchTable,
    Operand, Operation, RegisterArray, SwitchProgram, TableEntries, Unit, Variable,
};
use crate::{Aspect, Program};
use queuescope_queue::{SwitchAqmParams, SwitchMeterParams, switch_log2_blocks};
use queuescope_wire::{Nanos, Rate};
use std::ops::RangeInclusive;

/// The bits of a source address that name its aggregate.
const AGGREGATE_BITS: u32 = 12;
/// The logarithms of windows in nanoseconds.
const WINDOWS: RangeInclusive<u32> = SwitchMeterParams::TICK_BITS..=32;
/// The bits of the time of arrival, and of a register of epochs.
const TIME_BITS: u32 = 48;
const EPOCH_BITS: u32 = 16;
/// The longest silence that a register of epochs distinguishes.
const LONGEST: u64 = (1 << EPOCH_BITS) - 1;
/// Even and odd epochs.
const PARITIES: [&str; 2] = ["even", "odd"];

/// The parameters of the edge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbcEdgeParams {
    /// How rates are measured, and the reference rate of hosts that have no other.
    pub meter: SwitchMeterParams,
    /// Source hosts with other reference rates.
    pub contracts: Vec<(u32, Rate)>,
    /// The ports at which packets of the domain arrive: these keep the activity that they have. All others are outside.
    pub inside: Vec<u16>,
    /// The AQM of each port, behind the queue, as in [the core](super::abc_core_with). An edge in front of a bottleneck has one (section 3.1).
    /// None by default: a Tofino has no room for both, and no mean.
    pub aqm: Option<SwitchAqmParams>,
}

/// The edge with its default parameters, as steps.
pub fn abc_edge() -> Program {
    abc_edge_with(&AbcEdgeParams::default()).expect("the default parameters fit").steps()
}

/// The edge: before the queue, meters the rate of each aggregate, and writes the activity `log2(rate / reference)` into a header. A packet that
/// comes from outside the domain with such a header, or from anywhere with a malformed one, is dropped and counted. Packets that are not IP
/// pass without a header.
///
/// Models a [`SwitchMeter`](queuescope_queue::SwitchMeter) for each of 4096 aggregates: source hosts, those whose addresses agree in the last 12
/// bits together. The length is that in the IP header, because a Tofino does not know that of the frame before the queue. A sum of weighted bytes
/// stops at 2^32, that is 1 Gb/s for the default memory: a faster aggregate counts as one with a rate between 1 Gb/s and its own. After 2^16
/// epochs, or those of 48 bits of nanoseconds, the number of an epoch comes again: an aggregate that was silent for that long counts as one that was not.
/// The length is the sender's statement: a sender that writes a shorter one is metered less.
///
/// # Errors
/// Fails if the window is not from 2^20 to 2^32 ns, the shortest time is longer than it, or a host or port is listed twice.
pub fn abc_edge_with(params: &AbcEdgeParams) -> Result<SwitchProgram, InvalidProgram> {
    const NAME: &str = "abc-edge";
    let meter = &params.meter;
    if !WINDOWS.contains(&meter.window) {
        let why = "must be 1.07 ms to 8.76 s: its half-life is rounded to 2^20 to 2^32 ns";
        return Err(InvalidProgram::of_parameter(NAME, "memory", why));
    }
    if meter.least_time.0 > 1 << meter.window {
        let why = format!("must be at most {}, the length of a window with this memory", Nanos(1 << meter.window));
        return Err(InvalidProgram::of_parameter(NAME, "least-time", &why));
    }
    params.aqm.iter().try_for_each(|aqm| core::check(NAME, aqm))?;
    let mut p = Builder::new(NAME, "meters activity before the queue, and writes it into packets", SOURCE);
    let arrivals = Arrivals::new(&mut p);
    let [arrived, source, length] = [Input::Arrived, Input::Source, Input::IpLength].map(|input| p.input(input));
    arrivals.check(&mut p, [1, 0], &params.inside, |p, outside| {
        p.when(Condition::compare(outside, Comparison::Equal, 1), |p| {
            let times = Times::new(p, meter, arrived);
            let sums = sums(p, meter, &times, source.slice(0, AGGREGATE_BITS), length);
            p.of(Aspect::Reaction);
            let activity = activity(p, params, source, sums);
            p.push_activity(activity);
        });
    });
    if let Some(aqm) = &params.aqm {
        core::behind_the_queue(&mut p, aqm, arrivals.has_activity);
    }
    p.build()
}

/// What the time of arrival says.
struct Times {
    /// The number of the window within its epoch.
    window: Operand,
    epoch: Variable,
    /// The lowest bit of the latter.
    parity: Operand,
    /// The time within the window in ticks, with a one before it.
    mark: Variable,
}

impl Times {
    fn new(p: &mut Builder, meter: &SwitchMeterParams, arrived: Variable) -> Self {
        p.comment("The window, the epoch of four windows, and the time within the window. A hash unit moves them to containers of their own.");
        let (window, bits) = (meter.window, SwitchMeterParams::EPOCH_SHIFT);
        let begin = window + bits;
        let of_epoch = arrived.slice(begin, (TIME_BITS - begin).min(EPOCH_BITS));
        let epoch = p.compute("epoch", EPOCH_BITS, Unit::Number, Operation::Gather(of_epoch, 0));
        let within = arrived.slice(meter.tick(), SwitchMeterParams::TICK_BITS);
        let within = p.compute("within", 32, Unit::Number, Operation::Gather(within, 0));
        let one = u64::from(SwitchMeterParams::FIRST);
        let mark = p.compute("mark", 32, Unit::Number, Operation::Or(within.into(), one.into()));
        Self { window: arrived.slice(window, bits), epoch, parity: arrived.slice(begin, 1), mark }
    }
}

/// The weighted bytes and the weighted time.
fn sums(
    p: &mut Builder,
    meter: &SwitchMeterParams,
    times: &Times,
    aggregate: Operand,
    length: Variable,
) -> [Variable; 2] {
    let register = |p: &mut Builder, name: String, about: String, bits, initial: u32| {
        let (name, about, initial) = (name.into(), about.into(), initial.into());
        p.register(RegisterArray { name, about, bits, unit: Unit::Number, entries: 1 << AGGREGATE_BITS, initial })
    };
    let size = p.compute("octets", 32, Unit::Number, Operation::Copy(length.into()));
    p.comment("The epochs since the aggregate's last packet.");
    let epochs = register(
        p,
        "last_epoch".into(),
        "The epoch of the aggregate's last packet".into(),
        EPOCH_BITS,
        SwitchMeterParams::NO_EPOCH.into(),
    );
    let store = AluExpression::Term(AluTerm::Value(times.epoch.into()));
    let last = p.variable("last", EPOCH_BITS, Unit::Number);
    p.access(epochs, aggregate, change("store_epoch", store, AluOutput::Before), Some(last));
    let silent = Operation::Subtract(times.epoch.into(), last.into());
    let silent = p.compute("silent", EPOCH_BITS, Unit::Number, silent);
    p.comment("The weight doubles with each window: that of the bytes, of the time, and of the shortest time.");
    let [weighted, place, least] = weighted(p, meter, times, size);
    p.comment("A sum of each epoch. Its time begins with the epoch, or with the first packet.");
    let [first, end] = [SwitchMeterParams::FIRST, SwitchMeterParams::END];
    let sums = [0, 1].map(|parity| {
        let about = format!("Weighted bytes of {} epochs", PARITIES[parity]);
        let register = register(p, format!("sum_of_{}", PARITIES[parity]), about, 32, 0);
        let add = AluExpression::AddSaturating(AluTerm::Word, AluTerm::Value(weighted.into()));
        let set = AluExpression::Term(AluTerm::Value(weighted.into()));
        let what = ["sum", "bytes"];
        let here = [((0, 0), "add", Some(add)), ((1, LONGEST), "start", Some(set))];
        access(p, times, silent, (register, aggregate), (what, parity), &here, 0)
    });
    let starts = [0, 1].map(|parity| {
        let about = format!("Where the time of {} epochs begins to count", PARITIES[parity]);
        let register = register(p, format!("begin_of_{}", PARITIES[parity]), about, 32, first);
        let constant = |value: u32| AluExpression::Term(AluTerm::Value(u64::from(value).into()));
        let here = AluExpression::Term(AluTerm::Value(place.into()));
        let what = ["begin", "time"];
        let here =
            [((0, 0), "keep", None), ((1, 1), "begin", Some(constant(first))), ((2, LONGEST), "join", Some(here))];
        access(p, times, silent, (register, aggregate), (what, parity), &here, end)
    });
    p.comment("The epoch before counts a sixteenth.");
    let shift = SwitchMeterParams::OLDER_SHIFT;
    let [newer, older, start, before] =
        ["newer", "older", "start", "before"].map(|name| p.variable(name, 32, Unit::Number));
    let select = |p: &mut Builder, this: usize| {
        p.set(newer, Operation::Copy(sums[this].into()));
        p.set(older, Operation::ShiftRight(sums[1 - this].into(), shift));
        p.set(start, Operation::Copy(starts[this].into()));
        p.set(before, Operation::ShiftRight(starts[1 - this].into(), shift));
    };
    p.choose(Condition::compare(times.parity, Comparison::Equal, 0), |p| select(p, 0), |p| select(p, 1));
    let bytes = p.compute("bytes", 32, Unit::Number, Operation::AddSaturating(newer.into(), older.into()));
    let span = p.compute("span", 32, Unit::Number, Operation::Subtract(place.into(), start.into()));
    let counted = Operation::Subtract(u64::from(first).into(), before.into());
    let counted = p.compute("counted", 32, Unit::Number, counted);
    let time = p.compute("time", 32, Unit::Number, Operation::Add(span.into(), counted.into()));
    let ticks = p.compute("ticks", 32, Unit::Number, Operation::Maximum(time.into(), least.into()));
    [bytes, ticks]
}

/// The size, the place in the epoch and the shortest time, times the weight of the window.
fn weighted(p: &mut Builder, meter: &SwitchMeterParams, times: &Times, size: Variable) -> [Variable; 3] {
    let results = ["weighted", "place", "least"].map(|name| p.variable(name, 32, Unit::Number));
    let windows = 0..1u64 << SwitchMeterParams::EPOCH_SHIFT;
    let actions = windows.clone().map(|window| {
        let by = window as u32;
        let shifted = |value: Variable| match by {
            0 => Operation::Copy(value.into()),
            by => Operation::ShiftLeft(value.into(), by),
        };
        p.action(format!("weigh_{window}"), |p| {
            p.set(results[0], shifted(size));
            p.set(results[1], shifted(times.mark));
            p.set(results[2], Operation::Copy((u64::from(meter.least_ticks()) << by).into()));
        })
    });
    let actions = actions.collect();
    p.choose_by(ActionTable {
        name: "weight".into(),
        about: "The weight of the window".into(),
        keys: vec![times.window],
        actions,
        entries: windows.map(|window| (vec![(window, window)], window as usize)).collect(),
    });
    results
}

/// What is done after a silence of some epochs: its first and its last length, a verb, and the new word, if it changes.
type After<'a> = ((u64, u64), &'a str, Option<AluExpression>);

/// An access of the register of the even or odd epochs. `here` is what is done in such an epoch. In the other epochs, the word stays, and after a
/// longer silence it becomes `empty`.
fn access(
    p: &mut Builder,
    times: &Times,
    silent: Variable,
    (register, aggregate): (usize, Operand),
    ([what, of], parity): ([&str; 2], usize),
    here: &[After<'_>],
    empty: u32,
) -> Variable {
    let name = |verb: &str| format!("{verb}_{of}_{}", PARITIES[parity]);
    let result = p.variable(format!("{what}_{}", PARITIES[parity]), 32, Unit::Number);
    let emptied = AluExpression::Term(AluTerm::Value(u64::from(empty).into()));
    let there = [((0, 1), "keep", None), ((2, LONGEST), "empty", Some(emptied))];
    let [at_here, at_there] = [parity as u64, 1 - parity as u64].map(|parity| (parity, parity));
    let all = here.iter().map(|it| (at_here, *it)).chain(there.map(|it| (at_there, it)));
    let (mut verbs, mut actions, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (silence, verb, value)) in all {
        let action = verbs.iter().position(|it| *it == verb).unwrap_or_else(|| {
            let action = match value {
                Some(value) => change(name(verb), value, AluOutput::After),
                None => read(name(verb)),
            };
            verbs.push(verb);
            actions
                .push(p.action(name(&format!("do_{verb}")), |p| p.access(register, aggregate, action, Some(result))));
            actions.len() - 1
        });
        entries.push((vec![at, silence], action));
    }
    let about =
        format!("What happens to the {of} of {} epochs, by the epoch and the silence before it", PARITIES[parity]);
    p.choose_by(ActionTable {
        name: format!("{of}_of_{}", PARITIES[parity]).into(),
        about: about.into(),
        keys: vec![times.parity, silent.into()],
        actions,
        entries,
    });
    result
}

/// The logarithm of the quotient of bytes and time, divided by the reference rate.
fn activity(p: &mut Builder, params: &AbcEdgeParams, source: Variable, [bytes, ticks]: [Variable; 2]) -> Variable {
    let bits = Input::Activity.bits();
    let reference = p.variable("reference", bits, Unit::Number);
    let of = |rate| SwitchMeterParams { reference: rate, ..params.meter }.reference_steps().cast_unsigned();
    let contracts = params.contracts.iter();
    p.look_up(MatchTable {
        name: "contracts".into(),
        about: "The logarithm of the reference rate of a source host, in bytes per tick".into(),
        keys: vec![source.into()],
        entries: TableEntries::Exact(
            contracts.map(|(host, rate)| (vec![u64::from(*host)], vec![of(*rate).into()])).collect(),
        ),
        results: vec![reference],
        otherwise: vec![of(params.meter.reference).into()],
    });
    let log = |p: &mut Builder, of: Variable, what: &'static str, about: &'static str| {
        let result = p.variable(format!("log_{what}"), bits, Unit::Number);
        let blocks = switch_log2_blocks();
        p.look_up(MatchTable {
            name: format!("logarithms_of_{what}").into(),
            about: about.into(),
            keys: vec![of.into()],
            entries: TableEntries::Ranges(
                blocks.map(|(low, high, log)| ((low.into(), high.into()), vec![log.into()])).collect(),
            ),
            results: vec![result],
            otherwise: vec![0],
        });
        result
    };
    let of_bytes = log(p, bytes, "bytes", "The logarithm of weighted bytes, with 8 fraction bits");
    let above = p.compute("above", bits, Unit::Number, Operation::SubtractSigned(of_bytes.into(), reference.into()));
    let of_ticks = log(p, ticks, "ticks", "The logarithm of weighted ticks, with 8 fraction bits");
    let own = Operation::SubtractSigned(above.into(), of_ticks.into());
    p.compute("own_activity", bits, Unit::Number, own)
}
