//! P4air with queues by group and by round-trip time.

use super::returned::returned_by_rtt;
use super::{Flows, Queued, Registers, Share, egress, ingress, packet_time};
use crate::{Act, Aspect, Field, Match, Micro, Op, Program};
use queuescope_queue::{P4airParams, ShareForm};

/// Why it does not count as one that fits.
const REFUSED: &str = "only its steps are placed: there is no program of it to compile, and the compiler finds no placement for that of p4air";

/// The bits of a flow's place in the order of its group: its class of round-trip times, and bits of its hash.
const CLASS_BITS: u32 = 8;
const HASH_BITS: u32 = 8;
/// The bits of a round-trip time, and those behind its leading one that its class has.
const RTT_BITS: u32 = 20;
const BEHIND: u32 = 3;
/// Bits of fractions of a nanosecond.
const FRACTION: u32 = 16;

/// P4air by round-trip time: as [`p4air`](super::p4air), and the queue of a flow follows from its group and its round-trip time,
/// L4S flows are a group that is marked, and shares have two parts.
///
/// Models [`P4air`](queuescope_queue::P4air) with [`P4airParams::by_rtt`]. The control plane reads the groups and the round-trip
/// times of flows from their registers, divides the queues of each port, and writes a range of round-trip times for each queue
/// into a table. So the registers that divide the queues in the data plane are not there: the flows and the room of each group,
/// the bounds, gained queues, and the queue of each flow. A copy of a packet never comes back a second time, and no packet is
/// delayed. Round-trip times have 20 bits here, up to 1.07 s; in the model they have 32.
///
/// The sum of a share has four more bits, for sixteenths of a packet, which its rounding needs.
pub fn p4air_by_rtt(dimensions: Flows) -> Program {
    let about = "groups flows by their congestion control and RTT, and slows down or marks those above their share";
    let mut program = Program::new("p4air-by-rtt", about);
    let p = &mut program;
    let registers = Registers::new(p, dimensions, &P4airParams::by_rtt().fingerprint);
    let ingress = ingress(p, &registers, None);
    let to = egress(p, &registers, &ingress);
    returned_by_rtt(p, &registers, &ingress, to);
    p.of(Aspect::Metric).control_plane("remove flows that have ended", false);
    p.of(Aspect::Reaction).control_plane("divide the queues by group and round-trip time", false);
    p.refused = Some(REFUSED.to_owned());
    program
}

/// The flow's group: that of scalable flows from the first packet with ECT(1) behind slow start.
pub(super) fn group(p: &mut Program, r: &Registers, entry: Field) -> Field {
    let ecn = p.header("ECN field", 2);
    let group = "group; scalable, if it is long-lived and the packet has ECT(1)";
    p.update(r.group.at(entry), group, &[Micro::Condition, Micro::Condition, Micro::Update], &[ecn])
}

/// The flow's share of the link in a round trip: in packets, the sum of two shifted round-trip times, and of two others in bytes.
pub(super) fn share(p: &mut Program, r: &Registers, rtt: Field, group: Field) -> Share {
    let all = p.read(r.all_flows, "long-lived flows", &[]);
    let key_bits = r.dimensions.flow_bits();
    // The link needs less time for a byte than for a packet, so bytes have other shifts, which change at other numbers of flows.
    let packet = P4airParams::default().packet.0;
    let mut sum_of = |unit: &str, part_bits: u32, times: u64| {
        let shifts = Match::of_ranges(part_ranges(key_bits, times), key_bits, 2 * 7);
        let name = format!("shifts for both parts of the {unit}, and with one flow more");
        let shifts = p.compute(&name, Op::Table(shifts), &[all], 2 * 7);
        let parts = ["larger", "smaller"].map(|part| {
            let actions = Match::of_all(6 + 1 + 1, 6);
            let name = format!("{part} part of the {unit} = RTT shifted, an action for each");
            p.compute(&name, Op::Table(actions), &[rtt, shifts, group], part_bits)
        });
        p.simple(&format!("share in {unit} = sum of both parts"), &parts, part_bits)
    };
    Share { packets: sum_of("packets", RTT_BITS + 4, 1), bytes: Some(sum_of("bytes", 32, packet)) }
}

/// Numbers of flows with the same two shifts, with one flow more, too. `times` is how many units of the share a packet has.
fn part_ranges(flow_bits: u32, times: u64) -> Vec<(u64, u64)> {
    let most = (1u64 << flow_bits) - 1;
    // In a fraction of a nanosecond, so that the time for a byte is not rounded: all shifts are as much larger.
    let unit_time = (packet_time() << FRACTION) / times;
    let parts = |flows: u64| ShareForm::parts(unit_time, flows.max(1));
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut last = None;
    for flows in 0..=most {
        let now = (parts(flows), parts(flows + 1));
        match ranges.last_mut().filter(|_| last == Some(now)) {
            Some((_, end)) => *end = flows,
            None => ranges.push((flows, flows)),
        }
        last = Some(now);
    }
    ranges
}

/// The queue of a packet of a long-lived flow, by the table that the control plane writes.
pub(super) fn queue(p: &mut Program, r: &Registers, entry: Field, [group, data, tuple, rtt]: [Field; 4]) -> Queued {
    let bits = r.dimensions.queue_bits();
    // A prefix for each leading one and each value behind it.
    let classes = Match::Range { prefixes: u64::from(RTT_BITS) << BEHIND, key_bits: RTT_BITS, value_bits: CLASS_BITS };
    let class = p.compute("class of the RTT", Op::Table(classes), &[rtt], CLASS_BITS);
    let hash = p.slice(entry, "bits of the hash", HASH_BITS);
    // A range of 16 bits is at most 30 prefixes; on average, it is half as many. The port and the group are whole in each.
    let order_bits = CLASS_BITS + HASH_BITS;
    let port_bits = r.dimensions.ports.max(2).next_power_of_two().ilog2();
    let long_lived = u64::from(r.dimensions.queues.saturating_sub(2));
    let prefixes = r.dimensions.ports * long_lived * u64::from(order_bits);
    let queues = Match::Range { prefixes, key_bits: port_bits + 3 + order_bits, value_bits: bits };
    let place = "queue by port, group, class of the RTT and hash";
    let port = p.header("port that it leaves by", 9);
    let queue = p.compute(place, Op::Table(queues), &[port, group, class, hash], bits);
    let newest = "newest flow of the queue: this one, if there is none";
    let micros = [Micro::Condition, Micro::Update];
    let is_newest = p.update(r.newest.at(queue), newest, &micros, &[entry, group, data]);
    p.simple("queue of the packet; those of ants and mice", &[queue, group, tuple], bits);
    Queued { queue, gained_queue: None, is_newest }
}

/// What is done to a flow above its share, and to its ACKs, which take the lowered window.
pub(super) fn actions(p: &mut Program, judged: [Field; 4], lower: Field) {
    let ecn = p.header("ECN field", 2);
    let [group, over, above, data] = judged;
    let drop = "drop, if loss-based or loss-delay, or scalable and not ECN-capable";
    p.act(drop, Act::Drop, &[group, over, above, data, ecn]);
    p.act("mark, if scalable", Act::Mark, &[group, over, above, data, ecn]);
    p.act("window into the ACK, if model-based or delay-based", Act::Rewrite, &[lower, group, above, data]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fit, Target};
    use queuescope_queue::{FlowAction, GroupActions};
    use queuescope_sketch::FlowGroup;

    #[test]
    fn it_takes_no_more_stages_registers_and_memory_than_p4air() {
        let used = [super::super::p4air(Flows::default()), p4air_by_rtt(Flows::default())].map(|program| {
            let placement = Fit::new(&program, &Target::tofino()).placement.expect("all parts fit a stage");
            let sum = |of: fn(&crate::Used) -> u64| placement.stages.iter().map(|stage| of(&stage.used)).sum::<u64>();
            [placement.stages.len() as u64, sum(|used| used.registers), sum(|used| used.sram), sum(|used| used.tables)]
        });
        let [p4air, by_rtt] = used;
        assert!(by_rtt.iter().zip(&p4air).all(|(by_rtt, p4air)| by_rtt <= p4air), "{by_rtt:?} {p4air:?}");
    }

    /// The words of the registers hold what the parameters ask for.
    #[test]
    fn its_parameters_fit_their_words() {
        let params = P4airParams::by_rtt();
        assert_eq!(params.share, ShareForm::Parts);
        assert!(params.scalable);
        let GroupActions { delay_based, loss_delay, loss_based, model_based, scalable } = params.actions;
        assert_eq!([delay_based, model_based], [FlowAction::Window; 2]);
        assert_eq!([loss_delay, loss_based, scalable], [FlowAction::Drop, FlowAction::Drop, FlowAction::Mark]);
        // Numbers of groups have three bits; 0 is a short-lived flow, and there are no shaped ones.
        assert!(FlowGroup::LONG_LIVED.len() + 1 < 1 << 3);
    }

    #[test]
    fn ranges_of_flows_have_the_same_shifts() {
        for times in [1, 1500] {
            let unit_time = (packet_time() << FRACTION) / times;
            let parts = |flows: u64| [flows.max(1), flows + 1].map(|flows| ShareForm::parts(unit_time, flows));
            let ranges = part_ranges(12, times);
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (0, (1 << 12) - 1));
            for (n, (first, last)) in ranges.iter().copied().enumerate() {
                assert!((first..=last).all(|flows| parts(flows) == parts(first)), "{first} to {last}");
                let next = ranges.get(n + 1).copied();
                assert!(next.is_none_or(|(next, _)| next == last + 1 && parts(next) != parts(last)));
            }
        }
    }
}
