//! How far the integers are from the real program: the same packets pass both, and find the same queues.

use super::*;
use crate::{
    Dropped, Egress, FlowTable, GroupActions, Headers, Host, Ingress, MarkReason, Outlet, P4air, P4airParams, Pipeline,
    Port, Sink,
};
use queuescope_sketch::FlowGroup;
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::{Departure, FlowId, Nanos, Packet, QueueId};

struct NoSink;

impl Sink for NoSink {
    fn dropped(&mut self, _: &Dropped) {}
    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

const FLOWS: u64 = 48;
const MS: u64 = 1_000_000;

/// A flow: what it sends in each round trip, and how long that is.
struct Sender {
    rtt: u64,
    kind: u64,
    next: u64,
    begin: u64,
    sent: u64,
}

impl Sender {
    /// Packets of a round trip. A third pulses, as BBR does; a third grows, and halves after a loss; the others send as much in each.
    fn packets(&self) -> u64 {
        let round = (self.next - self.begin) / self.rtt;
        match self.kind % 3 {
            0 => [16, 16, 16, 16, 16, 16, 22, 10][(round % 8) as usize],
            1 => 8 + round % 40,
            _ => 10,
        }
    }

    /// The queue that its packets find, which has a few packets of noise besides: it grows for many round trips or for eight, or not at all.
    fn depth(&self) -> u64 {
        match self.kind % 6 {
            1 => self.next / MS % 3_000 / 4,
            4 => (self.next - self.begin) / self.rtt % 9 * 12,
            _ => 20,
        }
    }
}

/// Both programs.
struct Both {
    real: P4air,
    switch: SwitchP4air,
}

impl Both {
    fn new() -> Self {
        let rate = "100mbps".parse().expect("a rate");
        let table = FlowTable::Hashed { entries: 1 << 16, seed: 0 };
        // Without actions, which would change what senders send.
        let params = P4airParams { actions: GroupActions::IDLE, table, ..P4airParams::default() };
        let outlet = Outlet { rate, overhead: 0, queue: QueueId(0), seed: 0 };
        let switch = SwitchP4airParams { p4air: params.clone(), rate, ..SwitchP4airParams::default() };
        Self {
            real: P4air::new(params, &[outlet]).expect("the port is there"),
            switch: SwitchP4air::new(switch).expect("a switch can have these"),
        }
    }

    /// A packet, and its copies at once.
    fn pass(&mut self, flow: u64, syn: bool, now: Nanos, depth: u32) {
        let flags = if syn { Flags::SYN } else { Flags::ACK };
        let tcp = Segment { flags, length: if syn { 0 } else { 1448 }, ..Segment::default() };
        let (id, reverse) = (FlowId(flow as u32), FlowId(flow as u32 + 10_000));
        let mut packet = Packet { flow: id, ..Packet::default() };
        let mut headers = Headers { tcp: Some(tcp), queue_depth: depth, ..Headers::plain(Host(1), Host(2), reverse) };
        if let Ingress::Enqueue(_) = self.real.ingress(Port(0), &mut packet, &mut headers, now, &mut NoSink) {
            let mut departure = Departure { packet, enqueued: now, dequeued: now, ..Departure::default() };
            if self.real.egress(Port(0), &mut departure, &mut headers, &mut NoSink) == Egress::SendAndFeedBack {
                headers.fed_back = true;
                self.real.ingress(Port(0), &mut packet, &mut headers, now, &mut NoSink);
            }
        }
        let packet = SwitchPacket {
            arrived: now,
            flow: hash(flow),
            reverse: hash(flow + 10_000),
            has_data: !syn,
            tcp: Some(SwitchTcp { syn, ack: !syn, window: 0 }),
            ..SwitchPacket::default()
        };
        let mut note = SwitchNote::default();
        let fate = self.switch.before_the_queue(&packet, &mut note, false);
        if fate.copied {
            self.come_back(&packet, note);
        }
        if !fate.dropped && self.switch.behind_the_queue(depth, &mut note) {
            self.come_back(&packet, note);
        }
    }

    fn come_back(&mut self, packet: &SwitchPacket, mut note: SwitchNote) {
        while self.switch.before_the_queue(packet, &mut note, true).recirculated {}
    }

    /// Whether a flow is in the same group.
    fn is_same(&self, flow: u64) -> bool {
        let group = self.real.group(FlowId(flow as u32)).and_then(FlowGroup::long_lived).map_or(0, |group| group + 1);
        usize::from(self.switch.group_and_queue(hash(flow))[0]) == group
    }

    /// The queues of a group, of both.
    fn queues(&self, group: usize) -> [i64; 2] {
        let real = self.real.queues_of(Port(0), FlowGroup::LONG_LIVED[group]).map_or(0, |(queues, _)| queues.len());
        [real as i64, self.switch.sizes(0)[group].into()]
    }
}

/// A hash without collisions of these flows.
fn hash(flow: u64) -> u32 {
    (flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// What is measured at the end of each second.
#[derive(Debug, Default)]
struct Distance {
    flows: u32,
    same: u32,
    /// Long-lived flows of the real program at the end, by group.
    groups: [usize; GROUPS],
    /// The queues by which the groups differ.
    queues: i64,
    counted: i64,
    /// The largest error of a round-trip time, in units of 1024 ns.
    rtt: u64,
    /// The most flows in a queue.
    fullest: u32,
}

fn measure(seed: u64) -> Distance {
    let mut both = Both::new();
    let mut senders: Vec<_> = (0..FLOWS)
        .map(|flow| {
            let begin = 1_000 * MS + (flow * 7 + seed * 13) % 97 * 20 * MS;
            let rtt = (20 + (flow * 11 + seed * 5) % 60) * MS;
            Sender { rtt, kind: flow + seed, next: begin, begin, sent: 0 }
        })
        .collect();
    let mut distance = Distance::default();
    let mut second = 4;
    loop {
        let flow = (0..senders.len()).min_by_key(|flow| senders[*flow].next).expect("there are flows");
        let sender = &mut senders[flow];
        let now = sender.next;
        if now / 1_000 / MS == second {
            second += 1;
            distance.flows += FLOWS as u32;
            distance.same += (0..FLOWS).filter(|flow| both.is_same(*flow)).count() as u32;
            for group in 0..GROUPS {
                let [real, switch] = both.queues(group);
                distance.queues += (real - switch).abs();
                distance.counted += real;
            }
        }
        if second == 60 {
            break;
        }
        let syn = sender.sent == 0;
        sender.sent += 1;
        let depth = sender.depth() + u64::from(hash(now) >> 30);
        sender.next += if syn { sender.rtt } else { sender.rtt / sender.packets() };
        both.pass(flow as u64, syn, Nanos(now), depth as u32);
    }
    let mut in_queue = [0; 32];
    for flow in 0..FLOWS {
        let [group, queue] = both.switch.group_and_queue(hash(flow));
        if group > 0 {
            distance.groups[usize::from(group) - 1] += 1;
            in_queue[usize::from(queue)] += 1;
        }
        let entry = usize::from(both.switch.params.entry(hash(flow)));
        let own = u64::from(both.switch.words[RTT][entry]);
        let real = both.real.rtt(FlowId(flow as u32)).map_or(0, |rtt| rtt.0 >> 10);
        distance.rtt = distance.rtt.max(own.abs_diff(real));
    }
    distance.fullest = in_queue.into_iter().max().unwrap_or(0);
    distance
}

/// Of 48 flows in each of 56 seconds, with five seeds.
#[test]
fn the_integers_find_the_groups_of_the_real_program() {
    let all: Vec<_> = (0..5).map(measure).collect();
    all.iter().for_each(|distance| println!("{distance:?}"));
    let sum = |of: &dyn Fn(&Distance) -> f64| all.iter().map(of).sum::<f64>();
    let same = sum(&|it| it.same.into()) / sum(&|it| it.flows.into());
    let queues = sum(&|it| it.queues as f64) / sum(&|it| it.counted as f64);
    println!(
        "{:.1} % of flows are in the same group; {:.1} % of queues are of another one",
        100.0 * same,
        50.0 * queues
    );
    assert!(all.iter().all(|it| it.groups.iter().all(|flows| *flows > 0)), "each group has flows");
    assert!(all.iter().all(|it| it.rtt <= 1), "{all:?}");
    assert!(same > 0.92, "{same}");
    assert!(queues < 0.1, "{queues}");
}
