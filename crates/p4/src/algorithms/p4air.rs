//! P4air: flows grouped by their congestion control (Turkovic and Kuipers, ICNP 2020).

mod by_rtt;
mod returned;
#[cfg(test)]
mod tests;

use super::p4air_program::REJECTED;
use crate::{Act, Aspect, Field, Gress, Match, Micro, Op, Program, Register};
pub use by_rtt::p4air_by_rtt;
use queuescope_queue::P4airParams;
use queuescope_sketch::FingerprintParams;
use queuescope_wire::Rate;
use std::collections::BTreeSet;

/// The dimensions of P4air.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flows {
    /// Flows that the registers hold, by hash. Source: 2^16 (section IV-C); 2^10 to 2^13 in table I. At least eight for
    /// each queue.
    pub flows: u64,
    /// Queues of each port. Source: 32.
    pub queues: u32,
    /// Ports. Source: 24.
    pub ports: u64,
}

impl Default for Flows {
    fn default() -> Self {
        Self { flows: 1 << 16, queues: u32::from(P4airParams::default().queues), ports: 24 }
    }
}

impl Flows {
    /// Bits that number the flows, rounded up.
    fn flow_bits(self) -> u32 {
        self.flows.max(2).next_power_of_two().ilog2()
    }

    /// Bits that number the queues of a port, rounded up.
    fn queue_bits(self) -> u32 {
        self.queues.max(2).next_power_of_two().ilog2()
    }

    /// Bits of a number of flows in one queue, if flows are spread over the queues of a port.
    fn each_bits(self) -> u32 {
        self.flow_bits().saturating_sub(self.queue_bits()).max(3)
    }
}

/// The parts of the memory, as in table I.
const ALPHA: &str = "alpha";
const BETA: &str = "beta";
const REALLOCATION: &str = "reallocation";

/// The groups of long-lived flows.
const GROUPS: [&str; 4] = ["delay-based", "loss-delay", "loss-based", "model-based"];

/// The rate for which the table of shares is sized, in bits per second. Others take as many ranges, or a few more.
const RATE: u64 = 10_000_000_000;

/// P4air: the fingerprint of each flow on both sides of the queue, the division of a port's queues among the groups, and
/// the actions on flows above their share.
///
/// Models [`P4air`](queuescope_queue::P4air) with its defaults. Table I gives the sizes of its registers; section III-D
/// has only their sums (119 bits a flow for statistics, 8 for group and queue), so the division into words is ours.
/// A register is reached once, which changes this:
///
/// - *A group or a gained queue* is written by a copy of the packet that goes back. There, the end of slow start and a
///   change of queue take effect at once. The copy changes the group only if it is still the one that the packet had.
/// - *A queue that moves* takes a second pass of the copy: the first pass changes the rooms of the groups and compares
///   all of them. Another copy may come between the two passes.
/// - *A flow's new queue* follows from its hash: table I has no memory for an index in turn for each group, which only packets
///   that need it may advance.
/// - *The newest flow of a queue* is one flow's number in ingress, and comes with the packet. After that flow has moved, the
///   next packet's flow follows. There, it is the flow that was assigned last.
/// - *A packet is of one flow.* An ACK without data is of the flow in the other direction, which it may slow down. There, data
///   with an ACK may do both. So the first packet of data ends the round trip of the handshake, and not its last ACK.
/// - *The window's scale* is the same for all flows: no register holds it.
///
/// Narrower words change this: times wrap after 17 s, the longest RTT is 1.07 s, counts stop at 65 535 packets and depths
/// at 4095. One bit says that a flow is above its share, until the round trip ends; there, an ACK uses the previous round trip,
/// too. Rooms have a sign and stop at the largest number. The number of flows that move to a gained queue has a sign, too:
/// it says whether the queue is the first or the last of its group. Flows per queue are `flows / queues + 1`; there, they
/// have two thresholds. Group 0 is mice and ants; the protocol separates them.
///
/// The program that is run and printed, [`p4air_with`](super::p4air_with), has words of 8, 16 and 32 bits, and one result for each access. So it
/// is described apart: table I counts bits.
///
/// Not counted: which of several results a register access has, and the container space of the packet's fields.
pub fn p4air(dimensions: Flows) -> Program {
    let about = "groups flows by their congestion control, and slows down those above their share";
    let mut program = Program::new("p4air", about);
    let p = &mut program;
    let registers = Registers::new(p, dimensions, &P4airParams::default().fingerprint);
    let division = Division::new(p, dimensions);
    let ingress = ingress(p, &registers, Some(&division));
    let to = egress(p, &registers, &ingress);
    returned::returned(p, &registers, &division, &ingress, to);
    p.of(Aspect::Metric).control_plane("remove flows that have ended", false);
    p.refused = Some(REJECTED.to_owned());
    program
}

/// The registers of flows, in [`ALPHA`] and [`BETA`], and those of each port that do not divide its queues.
struct Registers {
    dimensions: Flows,
    round_trip: Register,
    sent: Register,
    since_decrease: Register,
    since_increase: Register,
    since_pulse: Register,
    pulses: Register,
    above: Register,
    depth: Register,
    aggressiveness: Register,
    group: Register,
    all_flows: Register,
    newest: Register,
}

impl Registers {
    fn new(p: &mut Program, dimensions: Flows, fingerprint: &FingerprintParams) -> Self {
        let Flows { queues, ports, .. } = dimensions;
        let flow = dimensions.flow_bits();
        let flows = 1 << flow;
        let bits = |most: u8| u8::BITS - most.leading_zeros();
        p.part(ALPHA);
        let round_trip = p.pair_of("start of the round trip, RTT", [24, 20], flows);
        let sent = p.pair("packets of the round trip, of the previous one", 16, flows);
        let depth = p.pair("deepest queue of the round trip, of the previous one", 12, flows);
        let aggressiveness = p.register("aggressiveness", 5, flows);
        let pulses = p.register("pulses", 3, flows);
        let since_pulse = p.register("round trips since a pulse", bits(fingerprint.period), flows);
        let since_increase = p.register("round trips since an increase", bits(fingerprint.pulse), flows);
        let since_decrease = p.register("round trips since a decrease", bits(fingerprint.settled), flows);
        let above = p.register("above its share", 1, flows);
        p.part(BETA);
        let group = p.register("group", 3, flows);
        p.part(REALLOCATION);
        Self {
            dimensions,
            all_flows: p.register("long-lived flows", flow, ports),
            newest: p.register("newest flow of each queue", flow, ports * u64::from(queues)),
            round_trip,
            sent,
            since_decrease,
            since_increase,
            since_pulse,
            pulses,
            above,
            depth,
            aggressiveness,
            group,
        }
    }
}

/// The registers that divide the queues of a port among the groups, and a flow's queue.
struct Division {
    queue: Register,
    flows: [Register; 4],
    bounds: [Register; 3],
    room: [Register; 4],
    gained: Register,
}

impl Division {
    fn new(p: &mut Program, dimensions: Flows) -> Self {
        let (flow, queue, each) = (dimensions.flow_bits(), dimensions.queue_bits(), dimensions.each_bits());
        let ports = dimensions.ports;
        p.part(BETA);
        let own_queue = p.register("queue", queue, 1 << flow);
        p.part(REALLOCATION);
        Self {
            queue: own_queue,
            flows: GROUPS.map(|group| p.register(&format!("{group} flows"), flow, ports)),
            bounds: [1, 2, 3].map(|n| p.register(&format!("first queue of {} flows", GROUPS[n]), queue, ports)),
            room: GROUPS.map(|group| p.register(&format!("room for {group} flows"), each, ports)),
            gained: p.register("flows that a gained queue still takes", each, ports * GROUPS.len() as u64),
        }
    }
}

/// What ingress knows of a packet. It comes with the packet to egress, and with its copies.
struct Ingress {
    /// The entry of its flow.
    entry: Field,
    group: Field,
    /// The round trip that it ends, if any.
    ended: Field,
    /// How that round trip differs from the one before.
    change: Field,
    pulses: Field,
    queue: Field,
    /// If there is one.
    gained_queue: Option<Field>,
    is_newest: Field,
}

/// Steps before the queue, which follow from a division by registers, or from a table ([`p4air_by_rtt`]).
fn ingress(p: &mut Program, r: &Registers, division: Option<&Division>) -> Ingress {
    p.at(Gress::Ingress).of(Aspect::Metric);
    let tuple = p.header("five-tuple", 104);
    let lengths = p.header("lengths in the headers", 24);
    let flags = p.header("TCP flags", 8);
    let now = p.header("time of arrival / 1024", 24);
    let lengths_without_data = Match::Exact { entries: 16, key_bits: 24, value_bits: 1 };
    let data = p.compute("whether it has data", Op::Table(lengths_without_data), &[lengths], 1);
    let hash = "hash of the flow, of the other direction without data";
    let entry = p.compute(hash, Op::Hash, &[tuple, data], r.dimensions.flow_bits());

    let timing = "RTT, and whether a round trip ends";
    let micros = [Micro::Condition, Micro::Condition, Micro::Update, Micro::Update];
    let timing = p.update(r.round_trip.at(entry), timing, &micros, &[now, flags, data]);
    let ended = p.slice(timing, "whether a round trip ends", 1);
    let rtt = p.slice(timing, "RTT", 20);
    let counts = "packets + 1; or, if it ends, 1, and they are the previous ones";
    let counts = p.update(r.sent.at(entry), counts, &[Micro::Update; 2], &[ended, data]);
    let group = match division {
        Some(_) => p.read(r.group.at(entry), "group", &[]),
        None => by_rtt::group(p, r, entry),
    };

    let change = changes(p, counts);
    let pulses = pulses(p, r, entry, change, ended);

    let sent = p.slice(counts, "packets", 16);
    let Share { packets: share, bytes } = match division {
        Some(_) => Share { packets: share(p, r, rtt, group), bytes: None },
        None => by_rtt::share(p, r, rtt, group),
    };
    let over = p.compute("packets > share; packets >= share", Op::Compare(2), &[sent, share], 2);
    let slow_start = [group, over, ended, change, data, tuple];
    p.act("end of slow start: send a copy back with the delay-based group", Act::FeedBack, &slow_start);
    p.act("drop, if slow start ends at the share", Act::Drop, &slow_start);

    p.of(Aspect::Reaction);
    let above = "whether it was above its share in this round trip; now it is, if so";
    let above = p.update(r.above.at(entry), above, &[Micro::Update], &[over, ended, group, data]);
    let queued = match division {
        Some(division) => queue(p, r, division, entry, [group, data, tuple]),
        None => by_rtt::queue(p, r, entry, [group, data, tuple, rtt]),
    };
    let judged = [group, over, above, data];
    let window = window(p, Share { packets: share, bytes });
    match division {
        Some(_) => actions(p, judged, window),
        None => by_rtt::actions(p, judged, window),
    }
    let Queued { queue, gained_queue, is_newest } = queued;
    Ingress { entry, group, ended, change, pulses, queue, gained_queue, is_newest }
}

/// How a round trip differs from the one before: by an eighth, and for pulses by at least four packets.
fn changes(p: &mut Program, counts: Field) -> Field {
    let sent = p.slice(counts, "packets of the round trip", 16);
    let before = p.slice(counts, "packets of the previous one", 16);
    let eighth = p.slice(before, "an eighth of those", 13);
    let more = p.simple("previous packets + an eighth", &[before, eighth], 17);
    let less = p.simple("previous packets - an eighth", &[before, eighth], 16);
    let more_by_four = p.simple("previous packets + 4", &[before], 17);
    let less_by_four = p.simple("previous packets - 4", &[before], 16);
    let name = "packets: more or less than the previous ones, and by an eighth; for pulses, also by four";
    p.compute(name, Op::Compare(5), &[sent, before, more, less, more_by_four, less_by_four], 5)
}

/// BwEst: an increase after a settled rate, and then a decrease.
fn pulses(p: &mut Program, r: &Registers, entry: Field, change: Field, ended: Field) -> Field {
    let settled = "round trips since a decrease + 1, or 0; whether they suffice";
    let micros = [Micro::Condition, Micro::Update];
    let settled = p.update(r.since_decrease.at(entry), settled, &micros, &[change, ended]);
    let pulse = "round trips since an increase: 1, + 1, or 0; whether a pulse ends";
    let micros = [Micro::Condition, Micro::Condition, Micro::Update, Micro::Update];
    let pulse = p.update(r.since_increase.at(entry), pulse, &micros, &[change, settled, ended]);
    let apart = "round trips since a pulse + 1, or 0; whether they are too many";
    let apart = p.update(r.since_pulse.at(entry), apart, &[Micro::Condition, Micro::Update], &[pulse, ended]);
    let pulses = "pulses + 1, or from 1 again";
    p.update(r.pulses.at(entry), pulses, &[Micro::Update; 2], &[pulse, apart, ended])
}

/// A flow's share of the link in a round trip.
#[derive(Clone, Copy)]
struct Share {
    packets: Field,
    /// If they do not follow from the packets.
    bytes: Option<Field>,
}

/// The flow's share of the link in a round trip, in packets: the RTT, shifted (section III-D).
fn share(p: &mut Program, r: &Registers, rtt: Field, group: Field) -> Field {
    let all = p.read(r.all_flows, "long-lived flows", &[]);
    let key_bits = r.dimensions.flow_bits();
    let shifts = Match::of_ranges(shift_ranges(key_bits), key_bits, 7);
    let shift = p.compute("shift for the share, and with one flow more", Op::Table(shifts), &[all], 7);
    // The shift, whether one flow more changes it, and whether the flow is one more.
    let actions = Match::of_all(6 + 1 + 1, 6);
    p.compute("share = RTT >> shift, an action for each", Op::Table(actions), &[rtt, shift, group], 20)
}

/// The time that a link needs for a packet, in ns.
fn packet_time() -> u64 {
    let rate = Rate::from_bits_per_second(RATE);
    rate.map_or(1, |rate| rate.time_for(P4airParams::default().packet).0)
}

/// Numbers of flows with the same shift: 2^shift is at most the time between two packets of a flow at its share.
fn shift_ranges(flow_bits: u32) -> Vec<(u64, u64)> {
    let packet_time = packet_time();
    let most = (1u64 << flow_bits) - 1;
    let first_of = |shift: u32| (1u64 << shift).div_ceil(packet_time);
    let firsts = (packet_time.ilog2() + 1..).map(first_of).take_while(|first| *first <= most + 1);
    // With one flow more, the shift changes one flow earlier.
    let mut starts: BTreeSet<u64> = firsts.flat_map(|first| [first - 1, first]).collect();
    starts.insert(0);
    let starts: Vec<u64> = starts.into_iter().filter(|start| *start <= most).collect();
    let ends = starts.iter().skip(1).map(|next| next - 1).chain([most]);
    starts.iter().copied().zip(ends).collect()
}

/// The queue of a packet's flow.
struct Queued {
    queue: Field,
    gained_queue: Option<Field>,
    is_newest: Field,
}

/// Finds the queue, which changes if it belongs to another group now.
fn queue(
    p: &mut Program,
    r: &Registers,
    division: &Division,
    entry: Field,
    [group, data, tuple]: [Field; 3],
) -> Queued {
    let bits = r.dimensions.queue_bits();
    let bounds = [1, 2, 3].map(|n| p.read(division.bounds[n - 1], &format!("first queue of {} flows", GROUPS[n]), &[]));
    let range = p.simple("first queue of the group, and their number", &[&bounds[..], &[group]].concat(), 2 * bits);
    let turn = p.slice(entry, "bits of the hash", 7);
    let place =
        p.compute("queue within the group, by hash", Op::Table(Match::of_all(bits + 7, bits)), &[range, turn], bits);
    let other = p.simple("first queue + that", &[range, place], bits);
    let queue = "queue; another one if it is outside the group's";
    let micros = [Micro::Condition, Micro::Condition, Micro::Update];
    let queue = p.update(division.queue.at(entry), queue, &micros, &[range, other, group, data]);
    let newest = "newest flow of the queue: this one, if it is new here or there is none";
    let micros = [Micro::Condition, Micro::Condition, Micro::Update];
    let is_newest = p.update(r.newest.at(queue), newest, &micros, &[entry, group, data]);
    let wanted = p.read(division.gained.at(group), "flows that its gained queue still takes", &[]);
    let gained_queue = p.simple("gained queue: the first or the last", &[wanted, range], bits);
    let elsewhere = p.compare("queue is not the gained one", &[queue, gained_queue]);
    p.act("send a copy back for the gained queue", Act::FeedBack, &[elsewhere, wanted, group, data]);
    p.simple("queue of the packet; those of ants and mice", &[queue, group, tuple], bits);
    Queued { queue, gained_queue: Some(gained_queue), is_newest }
}

/// The receive window of an ACK, at most the share.
fn window(p: &mut Program, share: Share) -> Field {
    let P4airParams { packet, least_window, .. } = P4airParams::default();
    let product = |p: &mut Program| p.compute("share in bytes", Op::MultiplyBy(packet.0 as f64), &[share.packets], 32);
    let bytes = share.bytes.unwrap_or_else(|| product(p));
    let bytes = p.simple(&format!("that, at least {}", least_window.0), &[bytes], 32);
    let window = p.header("receive window", 16);
    p.simple("receive window, at most that", &[window, bytes], 16)
}

/// What is done to a flow above its share, and to its ACKs, which take the lowered window.
fn actions(p: &mut Program, judged: [Field; 4], lower: Field) {
    p.act("drop, if loss-based or loss-delay", Act::Drop, &judged);
    let delay = format!("recirculate, up to {} times, if delay-based", P4airParams::default().delay_passes);
    p.act(&delay, Act::FeedBack, &judged);
    let [group, _, above, data] = judged;
    p.act("window into the ACK, if model-based", Act::Rewrite, &[lower, group, above, data]);
}

/// Steps behind the queue; returns the group that the flow moves to.
fn egress(p: &mut Program, r: &Registers, ingress: &Ingress) -> Field {
    p.at(Gress::Egress).of(Aspect::Metric);
    let Ingress { entry, group, ended, change, pulses, is_newest, .. } = *ingress;
    let fingerprint = P4airParams::default().fingerprint;
    let found = p.leaving("packets in the queue when it came", 19);
    let found = p.simple("packets in the queue, at most 4095", &[found], 12);
    let depths = "deepest queue; if a round trip ends: deepest is the previous one, and now this";
    let micros = [Micro::Condition, Micro::Update, Micro::Update];
    let depths = p.update(r.depth.at(entry), depths, &micros, &[found, ended, group]);
    let before = p.slice(depths, "previous deepest queue", 12);
    let percent = p.slice(before, "a 128th of that", 5);
    let rise = p.simple("previous deepest queue + a 128th", &[before, percent], 13);
    let grown = p.compare("deepest queue > that", &[depths, rise]);
    let pulsing = p.compare(&format!("pulses >= {}", fingerprint.model_based_after), &[pulses]);
    let count = "aggressiveness: + 1 or 0, and 0 at the group's limit";
    let micros = [Micro::Condition, Micro::Update, Micro::Update];
    let reads = [grown, group, change, ended, pulsing];
    let limit = p.update(r.aggressiveness.at(entry), count, &micros, &reads);
    let to = p.simple("next group, by aggressiveness or pulses", &[limit, group, pulsing, ended], 3);
    p.of(Aspect::Reaction);
    let copy = "send a copy back with the next group, if it is the newest or model-based";
    p.act(copy, Act::FeedBack, &[to, is_newest]);
    to
}
