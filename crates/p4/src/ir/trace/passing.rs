//! Packets of flows with different senders, and their passes through a switch: before the queue, behind it, and back.

use crate::Gress;
use crate::ir::interpreter::PacketFate;
use crate::ir::variable::{Input, NOTES};
use queuescope_wire::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A pass of a packet through a half of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passing {
    /// The half.
    pub gress: Gress,
    /// Whether it is a copy or a packet that comes back.
    pub is_back: bool,
    /// Its note so far.
    pub note: [u16; NOTES],
    /// When it arrives.
    pub now: Nanos,
    /// Its flow: what it sends, and how, follows from this number.
    pub flow: u32,
    /// Whether it goes in the other direction, without data.
    pub is_reverse: bool,
    /// Whether it is a SYN.
    pub is_syn: bool,
    /// The receive window in its header.
    pub window: u16,
    /// The packets that it finds in the queue.
    pub depth: u32,
}

/// The flows.
const FLOWS: u32 = 40;
/// The passes after which a copy comes back.
const LAG: usize = 3;
/// The packets of eight round trips in a row of a flow that pulses.
const PULSES: [u64; 8] = [16, 16, 16, 16, 16, 16, 22, 10];

/// Gives each pass of some packets to `step`, which returns what happens to it: `count` passes, which depend on `seed` alone, and on what `step`
/// returns. Times begin at 10 s.
///
/// A fifth of the flows pulse, as BBR does. A fifth have no TCP. The others send more and more, and then half of it. Queues grow for some 60 round
/// trips, and become empty. Some flows begin with a SYN; some begin again.
pub fn passing(seed: u64, count: usize, mut step: impl FnMut(&Passing) -> PacketFate) {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0xa19);
    let begin = 10_000_000_000;
    let mut next: BinaryHeap<_> =
        (0..FLOWS).map(|flow| Reverse((begin + u64::from(random.next_u32()) % 400_000, flow))).collect();
    let mut sent = vec![0u64; FLOWS as usize];
    let mut back: VecDeque<(usize, Passing)> = VecDeque::new();
    let mut passes = 0;
    while passes < count {
        let passing = match back.front() {
            Some((due, _)) if *due <= passes => back.pop_front().map(|(_, passing)| passing),
            _ => None,
        };
        let passing = passing.unwrap_or_else(|| {
            let Some(Reverse((now, flow))) = next.pop() else { unreachable!("each flow goes on") };
            let number = sent[flow as usize];
            sent[flow as usize] += 1;
            let (packet, wait) = packet(now, flow, number, random.next_u64());
            next.push(Reverse((now + wait, flow)));
            packet
        });
        passes += 1;
        let fate = step(&passing);
        let again = Passing { is_back: true, note: fate.note, ..passing };
        if fate.fed_back || fate.recirculated {
            back.push_back((passes + LAG, again));
        }
        if passing.gress == Gress::Egress || fate.dropped || fate.recirculated {
            continue;
        }
        if passes < count {
            passes += 1;
            let leaving = Passing { gress: Gress::Egress, is_back: false, ..again };
            let fate = step(&leaving);
            if fate.fed_back {
                back.push_back((
                    passes + LAG,
                    Passing { gress: Gress::Ingress, is_back: true, note: fate.note, ..leaving },
                ));
            }
        }
    }
}

/// The packet of a flow with this number, and the time until the next one.
fn packet(now: u64, flow: u32, number: u64, random: u64) -> (Passing, u64) {
    let rtt = 100_000 + u64::from(flow) * 3_000;
    let round = number / 20;
    let packets = match flow % 5 {
        0 => PULSES[(now / rtt % 8) as usize],
        4 => 12,
        _ => 6 + round % 24,
    };
    // A SYN each 1500 packets or so, for most flows.
    let is_syn = flow % 5 != 4 && flow % 8 != 1 && number.is_multiple_of(1_500 + u64::from(flow));
    let is_reverse = !is_syn && random.is_multiple_of(5);
    let depth = (now >> 17) % 64 * 5 + (random >> 8) % 4;
    let wait = match () {
        () if is_syn => rtt,
        () if is_reverse => 1,
        () => rtt / packets - (random >> 16) % 64,
    };
    let packet = Passing {
        gress: Gress::Ingress,
        is_back: false,
        note: [0; NOTES],
        now: Nanos(now),
        flow,
        is_reverse,
        is_syn,
        window: (random >> 32) as u16 >> (random >> 60),
        depth: depth as u32,
    };
    (packet, wait)
}

impl Passing {
    /// Whether it has a TCP header.
    pub fn is_tcp(&self) -> bool {
        self.flow % 5 != 4
    }

    /// Whether it has data.
    pub fn has_data(&self) -> bool {
        !self.is_tcp() || !self.is_syn && !self.is_reverse
    }

    /// As a program takes it.
    pub fn input(&self, input: Input) -> u64 {
        let [one, other] = if self.is_reverse { [1, 0] } else { [0, 1] };
        let ends = [0x0a00_0000 | self.flow, 0xc0a8_0107];
        let ports = [self.flow, 443];
        let switch_ports = [4 + self.flow % 3, self.flow / 8 % 2];
        let tcp = |value: u64| if self.is_tcp() { value } else { 0 };
        // Some flows have IPv6, whose lengths are without its header.
        let is_v6 = self.flow % 7 == 6;
        let ip_header = if is_v6 { 0 } else { 20 };
        u64::from(match input {
            Input::Port => switch_ports[other],
            Input::ArrivalPort => switch_ports[one],
            Input::Source => ends[one],
            Input::Destination => ends[other],
            Input::Ports => ports[one] << 16 | ports[other],
            Input::Protocol if self.is_tcp() => 6,
            Input::Protocol => 17,
            Input::IpWords => ip_header / 4,
            Input::TcpWords => return tcp(8),
            Input::TcpFlags => return tcp(if self.is_syn { 2 } else { 0x10 }),
            Input::Window => return tcp(self.window.into()),
            Input::TcpChecksum => return tcp((self.now.0 >> 3) & 0xffff),
            Input::IpLength if self.has_data() => ip_header + 1000 + self.flow,
            Input::IpLength => ip_header + 32,
            Input::QueueLength => self.depth,
            Input::FedBack => self.is_back.into(),
            Input::Arrived | Input::Enqueued | Input::Dequeued => return self.now.0,
            Input::Note(slot) => return self.note.get(usize::from(slot)).copied().unwrap_or(0).into(),
            _ => 0,
        })
    }
}
