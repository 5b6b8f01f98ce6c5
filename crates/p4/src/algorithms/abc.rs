//! ABC (Menth et al., Future Internet 2019, section 3): activity metered at the edge, and its use in the core.

use super::PORTS;
use crate::{Act, Aspect, Field, Gress, Micro, Op, Program, Special};
use queuescope_queue::ActivityAqmParams;

/// How many aggregates an edge meters.
const AGGREGATES: u64 = 4096;

/// The edge: meters the rate of each aggregate, and writes its activity, log2(rate / reference), into the packet.
///
/// Models the metering of [`Abc`](queuescope_queue::Abc), a [`RateMeter`](queuescope_queue::RateMeter) for each
/// aggregate. Those keep three real numbers per aggregate (bits, the time that counts, the time of the last packet);
/// here a special unit keeps one average. Aggregates that share an entry of the array are metered together here; there
/// each has its own entry.
pub fn abc_edge() -> Program {
    let mut program = Program::new("abc-edge", "meters activity, and writes it into packets");
    let p = &mut program;
    p.at(Gress::Ingress).of(Aspect::Metric);
    let source = p.header("source address", 32);
    let size = p.header("length", 16);
    let index = p.compute("aggregate", Op::Hash, &[source], 12);
    let rate = p.register("rate", 32, AGGREGATES);
    let average = [Micro::Special(Special::Average)];
    let rate = p.update(rate.at(index), "rate by time-exponential average", &average, &[size]);
    p.of(Aspect::Reaction);
    // The highest bit of the rate and the eleven below it: a 2048th of an octave.
    let log = Op::Function { name: "log2(rate / reference)", special: None, bits: 16 };
    let activity = p.compute("activity", log, &[rate], 16);
    p.act("activity into the packet", Act::Rewrite, &[activity]);
    program
}

/// The core: drops before the queue if the queue is longer than max(Q_min, Q_base - gamma (A - A_avg)), where A_avg
/// averages the accepted packets.
///
/// Models the decision of [`Abc`](queuescope_queue::Abc), an [`ActivityAqm`](queuescope_queue::ActivityAqm) for each
/// port. Its average consists of a sum, a count and a time in real numbers; here it is a special unit's. It may count
/// the length of the queue itself; here the switch provides the length.
pub fn abc_core() -> Program {
    let mut program = Program::new("abc-core", "drops at the door, by activity and the length of the queue");
    let p = &mut program;
    p.at(Gress::Ingress).of(Aspect::Metric);
    let activity = p.header("activity", 16);
    let length = p.queue_state("the length of the queue", 19);
    p.of(Aspect::Reaction);
    let average = p.register("average activity", 32, PORTS);
    let before = p.read(average, "average activity", &[]);
    let accepted = accepts(p, activity, before, length);
    p.update(
        average,
        "average, with this packet's activity",
        &[Micro::Special(Special::Average)],
        &[activity, accepted],
    );
    p.act("drop", Act::Drop, &[accepted]);
    program
}

fn accepts(p: &mut Program, activity: Field, average: Field, length: Field) -> Field {
    let above = p.simple("activity - average", &[activity, average], 32);
    // 16 packets: a shift.
    let gamma = ActivityAqmParams::default().gamma;
    let lower = p.compute("gamma (activity - average)", Op::MultiplyBy(gamma), &[above], 32);
    let threshold = p.simple("Q_base - that", &[lower], 32);
    let threshold = p.simple("Q_min at least", &[threshold], 32);
    p.compare("queue length <= threshold", &[length, threshold])
}
