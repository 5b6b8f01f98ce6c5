//! ECN# (Zhang, Bai and Chen, CoNEXT 2019), which was made for a Tofino.

use super::common::{PORTS, sojourn_time};
use crate::{Act, Aspect, Gress, Micro, Op, Program, Special};

/// ECN#: behind the queue, marks each packet that waited too long, and now and then one of a queue that stands.
///
/// Times of registers are in units of 1024 ns: 32 bits of the switch's 48, as on the authors' switch. They wrap after 73
/// minutes. A register has the time at which the first packet at or above the target left. A packet below the target sets
/// it to 0, which is "none"; the next one at or above the target writes its own time. The time of the next persistent mark
/// and the count of marks are a pair of words; a count of 0 means that there are none. So there are two accesses, and
/// each packet makes both.
///
/// Models [`EcnSharp`](queuescope_queue::EcnSharp). That type has nanoseconds and the exact root. The root uses ten bits
/// of the count here, in the register's own unit, since the count and the time of the next mark are read and written in one
/// access. The authors report a table for the root. A table between reading and writing the pair would be a second access
/// here; how their program avoids that is not modelled.
pub fn ecn_sharp() -> Program {
    let mut program = Program::new("ecn-sharp", "marks bursts at once, and a standing queue now and then");
    let p = &mut program;
    p.at(Gress::Egress).of(Aspect::Metric);
    let left = p.leaving("time of leaving the queue", 48);
    let now = p.slice(left, "now, in units of 1024 ns", 32);
    let sojourn = sojourn_time(p);
    let instant = p.compare("sojourn > instantaneous target", &[sojourn]);
    let below = p.compare("sojourn < persistent target", &[sojourn]);
    let above = p.register("first time above target", 32, PORTS);
    let one_of = [Micro::Condition, Micro::Update];
    let since = p.update(above, "first time above target: none, or now if none", &one_of, &[below, now]);
    let long = p.simple("now - first time above target", &[now, since], 32);
    let stands = p.compare("for longer than an interval", &[long]);
    p.of(Aspect::Reaction);
    let control = p.pair("next mark", 32, PORTS);
    let next = p.read(control, "next mark, count", &[stands, below]);
    let due = p.compare("now >= next mark", &[now, next]);
    let root = Op::Function { name: "1 / sqrt(count)", special: Some(Special::Root), bits: 10 };
    let spacing = p.compute("interval / sqrt(count)", root, &[next, due], 32);
    let later = p.simple("now + spacing", &[now, spacing], 32);
    let first_or_next = [Micro::Condition, Micro::Update];
    let marked = p.update(control, "count: 0, 1 or count + 1", &first_or_next, &[later, due]);
    let ecn = p.header("ECN", 2);
    p.act("mark, if ECN-capable", Act::Mark, &[instant, marked, ecn]);
    program
}
