//! The ConQuest snapshots (Chen et al., CoNEXT 2019, sections 3 and 4.1).

use super::common::{PORTS, sojourn_time};
use crate::{Act, Aspect, Field, Gress, Micro, Op, Packets, Program};

/// The dimensions of the snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshots {
    /// `h`: how many snapshots there are. One is written, one is cleaned, and the others are read. At least 3. Source:
    /// 4.
    pub snapshots: u32,
    /// `R`: rows of each snapshot. Source: 2.
    pub rows: u32,
    /// `C`: columns of a row. Source: 2048.
    pub columns: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { snapshots: 4, rows: 2, columns: 2048 }
    }
}

/// ConQuest behind the queue, with the mark for flows above a threshold (section 4.2).
///
/// Time decides which snapshot is written, read or cleaned. Each packet reaches each snapshot once in any case, and the
/// sum may need any of them. The snapshot being cleaned is reached at another entry than the flow's: the next one by a
/// count of packets (section 3.4). So the entries are computed in a stage of their own ("the memory addresses to use",
/// section 4.1).
///
/// Models [`ConQuestAqm`](queuescope_queue::ConQuestAqm) as in the paper: windows are rounded inwards
/// (`Estimator::Inner`; the overlap of a window with a delay would need a product), and cleaned entry by entry
/// (`Expiry::Clean`). A curve other than the threshold would be a table of the weight.
pub fn conquest(dimensions: Snapshots) -> Program {
    let about = "marks flows that have too much of the queue";
    measured(Program::new("conquest", about), dimensions, |p, flow, long| {
        let heavy = p.compare("bytes in the queue >= threshold", &[flow]);
        p.act("mark", Act::Mark, &[heavy, long]);
    })
}

/// ConQuest with the mark for flows that have half of a standing queue. A packet is marked if its flow has at least
/// half as many packets as the packet found, it waited longer than `tau`, and it leaves a long queue behind. Counts are
/// in packets. The lengths of the queue come with the packet, and half of one is a shift, so this takes no more
/// registers and no more stages.
///
/// Models [`ConQuestAqm`](queuescope_queue::ConQuestAqm) with `ShareOfQueue` from 1/2 on, and `behind`. That type
/// divides: own / found is at least 1/2 exactly if own is at least half of found, rounded up. A share of nothing is 0,
/// so something must have been found. It knows lengths of queues in packets and bytes. A Tofino counts cells of 80
/// bytes. The snapshots there would count cells too, by a shift of the packet's length before the snapshots and beside
/// the hashes.
pub fn conquest_standing(dimensions: Snapshots) -> Program {
    let about = "marks flows that have half of a queue which stands";
    measured(Program::new("conquest-stands", about), dimensions, |p, flow, long| {
        let found = p.leaving("packets in the queue when it came", 19);
        let behind = p.leaving("bytes in the queue behind it", 26);
        let any = p.compare("found > 0", &[found]);
        let more = p.simple("found + 1", &[found], 19);
        let half = p.slice(more, "half of what it found, rounded up", 18);
        let stands = p.compare("behind it >= threshold", &[behind]);
        let heavy = p.compare("packets in the queue >= half of what it found, rounded up", &[flow, half]);
        p.act("mark", Act::Mark, &[heavy, any, long, stands]);
    })
}

/// A program that measures the flow's part of the queue, and acts if the packet waited longer than `tau`.
fn measured(mut program: Program, dimensions: Snapshots, act: impl FnOnce(&mut Program, Field, Field)) -> Program {
    let p = &mut program;
    let Snapshots { snapshots, rows, columns } = dimensions;
    p.at(Gress::Egress).of(Aspect::Metric);
    let flow = p.header("five-tuple", 104);
    let left = p.leaving("time of leaving the queue", 48);
    let size = p.header("length", 16);
    let window = p.slice(left, "window", snapshots.next_power_of_two().ilog2());
    let sojourn = sojourn_time(p);
    let indexes: Vec<_> =
        (0..rows).map(|row| p.compute(&format!("hash of row {}", row + 1), Op::Hash, &[flow], 16)).collect();
    let count = p.register("packets", 32, PORTS);
    let count = p.update(count, "packets + 1", &[Micro::Update], &[]);
    let next = p.slice(count, "the next to clean", 16);
    let entries = "entries: the next to clean of the snapshot that is cleaned, by hash of others";
    let entries = p.simple(entries, &[&indexes[..], &[window, next]].concat(), 16 * rows * snapshots);
    let mut counts = Vec::new();
    for snapshot in 1..=snapshots {
        let of_rows: Vec<_> = (1..=rows)
            .map(|row| {
                let register = p.register(&format!("snapshot {snapshot} row {row}"), 32, columns);
                let name = format!("snapshot {snapshot} row {row}: add, read or clean");
                let entry = p.slice(entries, &format!("entry of snapshot {snapshot} row {row}"), 16);
                p.update(register.at(entry), &name, &[Micro::Update], &[window, size])
            })
            .collect();
        counts.push(of_rows);
    }
    // The minimum over the rows; a single row needs no comparison.
    let least: Vec<_> = counts
        .into_iter()
        .enumerate()
        .map(|(n, rows)| tree(p, rows, &format!("least of snapshot {}", n + 1)))
        .collect();
    let sum = sum_of_read(p, &least, [left, sojourn]);
    let long = p.of(Aspect::Reaction).compare("sojourn > tau", &[sojourn]);
    act(p, sum, long);
    program
}

/// ConQuest that acts on later packets (section 4.2): a heavy flow is sent back to the ingress, and its packets are
/// dropped before the queue.
///
/// Models [`ConQuestAqm`](queuescope_queue::ConQuestAqm) that acts at ingress. That type holds a flow for a time, and
/// knows the flow of each entry; here an entry is a bit, shared by all flows with the same hash, and nothing resets it.
pub fn conquest_at_ingress(dimensions: Snapshots) -> Program {
    let about = "keeps flows out that have too much of the queue";
    let (mut program, [_, kept_out], _) = sent_back(Program::new("conquest-ingress", about), dimensions);
    program.act("drop", Act::Drop, &[kept_out]);
    program
}

/// The same, where packets of such a flow pass at most at a rate. Each entry has a time beside the bit, as in a
/// [`FlowLimit`](queuescope_queue::FlowLimit).
pub fn conquest_with_feedback(dimensions: Snapshots) -> Program {
    let about = "limits flows that have too much of the queue to a rate";
    let (mut program, [index, kept_out], back) = sent_back(Program::new("conquest-feedback", about), dimensions);
    let p = &mut program;
    let now = p.header("time of arrival", 48);
    let times = p.register("times of flows", 32, 1 << 16);
    let micros = [Micro::Condition, Micro::Condition, Micro::Update, Micro::Update];
    let passes = p.update(times.at(index), "whether it passes, and the time after it", &micros, &[now, kept_out]);
    p.act("drop", Act::Drop, &[passes]);
    p.by(Packets::FedBack);
    p.update(times.at(back), "now, if the flow's time is behind", &micros, &[now]);
    program
}

/// A program that sends heavy flows back. Returns the entry of a packet's flow and whether it is heavy, and the entry of a flow that was sent back.
fn sent_back(program: Program, dimensions: Snapshots) -> (Program, [Field; 2], Field) {
    let mut program = measured(program, dimensions, |p, flow, long| {
        let heavy = p.compare("bytes in the queue >= threshold", &[flow]);
        p.act("send the flow back", Act::FeedBack, &[heavy, long]);
    });
    let p = &mut program;
    let flow = p.header("five-tuple", 104);
    p.at(Gress::Ingress).by(Packets::FedBack);
    let back = p.compute("hash of the flow sent back", Op::Hash, &[flow], 16);
    let heavy = p.register("heavy flows", 1, 1 << 16);
    p.write(heavy.at(back), "the flow is heavy", &[]);
    p.by(Packets::Traffic);
    let index = p.compute("hash of the flow", Op::Hash, &[flow], 16);
    let kept_out = p.read(heavy.at(index), "whether the flow is heavy", &[]);
    (program, [index, kept_out], back)
}

/// The sum of all snapshots that are read. The window bits of the enqueue and dequeue times say which those are, so the
/// first sums may need any of them.
fn sum_of_read(p: &mut Program, counts: &[Field], times: [Field; 2]) -> Field {
    let read = counts.len() - 2;
    let needs = [counts, &times].concat();
    if read == 1 {
        return p.simple("the snapshot that is read", &needs, 32);
    }
    let pairs = (0..read.div_ceil(2)).map(|n| p.simple(&format!("sum of reads {}", n + 1), &needs, 32)).collect();
    tree(p, pairs, "sum")
}

/// Combines all fields into one, two at a time.
fn tree(p: &mut Program, mut fields: Vec<Field>, name: &str) -> Field {
    while fields.len() > 1 {
        fields = fields.chunks(2).map(|two| if two.len() == 2 { p.simple(name, two, 32) } else { two[0] }).collect();
    }
    fields[0]
}

#[cfg(test)]
mod tests {
    use queuescope_queue::Curve;

    /// What [`super::conquest_standing`] compares is equivalent to the division in `ConQuestAqm`.
    #[test]
    fn half_rounded_up_of_something_is_a_share_of_a_half() {
        for (own, found) in (0u32..300).flat_map(|own| (0u32..600).map(move |found| (own, found))) {
            let share = if found == 0 { 0.0 } else { f64::from(own) / f64::from(found) };
            let is_chosen = Curve::Threshold.probability(share, 0.5) == 1.0;
            assert_eq!(found > 0 && own >= (found + 1) >> 1, is_chosen, "{own} of {found}");
        }
    }
}
