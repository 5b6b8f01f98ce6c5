//! CoDel (RFC 8289), as in table I and figure 2 of Kunze et al.

use super::common::{PORTS, sojourn_time};
use crate::{Act, Aspect, Gress, Micro, Op, Program, Special};

/// CoDel: behind the queue, drops more and more often while the delay stays above target.
///
/// The program remembers when the delay was last below target, with one write or one read of a register. If that is an
/// interval ago, the delay was above target for an interval. The time of the next drop and the count of drops are a
/// pair of words. The count starts at 1 with each period of dropping (RFC 8289 continues a recent one).
///
/// Models [`Codel`](queuescope_queue::Codel). That type keeps the time of the first possible drop, drops until a packet
/// may depart, checks whether more than a packet is behind it, and can mark; here each departing packet is judged by
/// itself. The root uses ten bits of the count here.
pub fn codel() -> Program {
    let mut program = Program::new("codel", "drops behind the queue, spaced by interval / sqrt(count)");
    let p = &mut program;
    p.at(Gress::Egress).of(Aspect::Metric);
    let now = p.leaving("time of leaving the queue", 48);
    let sojourn = sojourn_time(p);
    let below = p.compare("sojourn < target", &[sojourn]);
    let last_below = p.register("last time below target", 32, PORTS);
    let since = p.write(last_below, "last time below target: read, or now", &[below, now]);
    let long = p.simple("now - last time below target", &[now, since], 32);
    let standing = p.compare("for an interval or longer", &[long]);
    p.of(Aspect::Reaction);
    let control = p.pair("next drop", 32, PORTS);
    let next = p.read(control, "next drop, count", &[standing]);
    let due = p.compare("now >= next drop", &[now, next]);
    let root = Op::Function { name: "1 / sqrt(count)", special: Some(Special::Root), bits: 10 };
    let spacing = p.compute("interval / sqrt(count)", root, &[next, due], 32);
    let later = p.simple("next drop + spacing", &[next, spacing], 32);
    p.update(control, "count + 1", &[Micro::Update], &[later, due]);
    p.act("drop", Act::Drop, &[due, standing]);
    program
}
