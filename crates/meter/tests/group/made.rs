//! Artificial bursts of 10 to 100 000 flows: scans, floods, incasts and background traffic.

use super::random::Random;
use super::reference::Packet;
use queuescope_wire::{Family, FlowKey};

/// Packets in order of departure.
pub struct Made {
    pub packets: Vec<Packet>,
    /// The number of packets after which a flow is idle.
    pub queue: u64,
}

/// A burst of one to five kinds of traffic; each seed gives another one.
pub fn burst(seed: u64) -> Made {
    let random = &mut Random(seed.wrapping_mul(0x9e6c_63d0_876a_3f6b) ^ 0x5bd1);
    // Equally many of each order of magnitude.
    let flows = 10.0 * 10_000f64.powf(random.part());
    let kinds = 1 + random.below(5);
    let parts: Vec<f64> = (0..kinds).map(|_| 0.02 + random.part()).collect();
    let whole: f64 = parts.iter().sum();
    let mut packets = Vec::new();
    for part in parts {
        traffic(random, (flows * part / whole).ceil() as u64, &mut packets);
    }
    mix(random, &mut packets);
    Made { packets, queue: 50 + random.below(5_000) }
}

/// One source that probes `flows` addresses, with a few large transfers.
pub fn scan_beside(flows: u64, seed: u64) -> Vec<Packet> {
    let random = &mut Random(seed);
    let source = random.host();
    let mut packets: Vec<Packet> =
        (0..flows).map(|_| (key(source, random.host(), random.port(), 445, 6), 60)).collect();
    for _ in 0..40 {
        let flow = key(random.host(), random.host(), random.port(), 443, 6);
        packets.extend((0..250).map(|_| (flow, 1_500)));
    }
    mix(random, &mut packets);
    packets
}

/// Some hosts with connections to each other, from and to individual ports.
pub fn peers(seed: u64) -> Vec<Packet> {
    let random = &mut Random(seed ^ 0x9eef);
    let hosts: Vec<_> = (0..3 + random.below(20)).map(|_| (random.host(), random.port())).collect();
    let most = 1 + random.below(40);
    let mut packets = Vec::new();
    for (place, (one, port)) in hosts.iter().enumerate() {
        for (other, _) in &hosts[..place] {
            let flow = key(*other, *one, random.port(), *port, 6);
            packets.extend((0..1 + random.below(most)).map(|_| (flow, 1_000)));
        }
    }
    mix(random, &mut packets);
    packets
}

fn mix(random: &mut Random, packets: &mut [Packet]) {
    for place in (1..packets.len()).rev() {
        packets.swap(place, random.below(place as u64 + 1) as usize);
    }
}

fn traffic(random: &mut Random, flows: u64, packets: &mut Vec<Packet>) {
    let (one, other) = (random.host(), random.host());
    let port = [53, 80, 443, 445, 8_080][random.below(5) as usize];
    let length = [60, 100, 600, 1_500][random.below(4) as usize];
    let most = 1 + random.below(6);
    let kind = random.below(9);
    let v6 = random.below(4) == 0;
    for number in 0..flows {
        let (far, near) = (random.host(), random.port());
        let ours = (one & !0xffff) | u128::from(random.below(1 << 16));
        let theirs = (other & !0xff) | u128::from(random.below(1 << 8));
        let mut flow = match kind {
            // A scan of addresses, and a scan of ports.
            0 => key(one, far, near, port, 6),
            1 => key(one, other, near, 1 + (number % 60_000) as u16, 6),
            // A flood from anywhere, and an incast from a subnet.
            2 => key(far, one, near, port, 17),
            3 => key(theirs, one, near, port, 6),
            // Traffic between two subnets, and to and from one.
            4 => key(ours, theirs, near, random.port(), 6),
            5 => key(ours, far, near, port, 17),
            6 => key(far, theirs, port, near, 6),
            // Traffic among a few hosts.
            7 => key(
                (one & !0xf) | u128::from(random.below(8)),
                (other & !0xf) | u128::from(random.below(8)),
                near,
                port,
                6,
            ),
            _ => key(far, random.host(), near, random.port(), if number % 3 == 0 { 17 } else { 6 }),
        };
        if v6 {
            flow.family = Family::V6;
            flow.src = 0x2001_0db8 << 96 | flow.src << 56 | 1;
            flow.dst = 0x2001_0db8 << 96 | flow.dst << 56 | 2;
        }
        // Most flows are short; some are a hundred times as long.
        let long = if random.below(50) == 0 { random.below(100) } else { 0 };
        packets.extend((0..1 + random.below(most) + long).map(|_| (flow, length)));
    }
}

fn key(src: u128, dst: u128, src_port: u16, dst_port: u16, protocol: u8) -> FlowKey {
    FlowKey { src, dst, src_port, dst_port, protocol, family: Family::V4, ..FlowKey::default() }
}

impl Random {
    fn host(&mut self) -> u128 {
        u128::from(self.next() as u32)
    }

    fn port(&mut self) -> u16 {
        1_024 + self.below(64_000) as u16
    }
}
