//! Artificial incasts among background flows.

use super::random::Random;
use queuescope_meter::Share;
use queuescope_wire::{Family, FlowKey};

/// A burst that consists mostly of one incast.
pub struct Incast {
    pub flows: Vec<(FlowKey, Share)>,
    pub victim: u128,
    pub port: u16,
    pub family: Family,
    /// The bytes of the incast.
    pub bytes: u64,
    /// Whether the senders are in one subnet (/24, or /64 for IPv6).
    pub rack: bool,
}

impl Incast {
    /// `sources` senders have 40 to 90 % of the bytes, each 70 to 130 % of an even share. In half of the seeds, all addresses are in
    /// one data centre (a /16, or a /48 for IPv6), otherwise anywhere; in half of these, the senders are in one rack. A quarter of the seeds
    /// is IPv6.
    ///
    /// The background is 10 to 400 flows with sizes by Pareto (1.2). A quarter of them goes to the victim's own subnet, a twentieth to the
    /// victim itself, and a quarter to 20 servers; more than half go to well-known ports, some to the incast's port.
    pub fn new(sources: u64, seed: u64) -> Self {
        let random = &mut Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ sources);
        let family = if random.below(4) == 0 { Family::V6 } else { Family::V4 };
        let site = (random.below(2) == 0).then(|| random.address(family));
        let host = |random: &mut Random| {
            let address = random.address(family);
            site.map_or(address, |site| join(family, site, address, [16, 48]))
        };
        let (victim, subnet) = (host(random), host(random));
        let rack = random.below(2) == 0;
        let port = [50_010, 443, 9_092, 2_049][random.below(4) as usize];
        let mut senders = std::collections::BTreeSet::new();
        while (senders.len() as u64) < sources {
            let address = host(random);
            senders.insert(if rack { join(family, subnet, address, [24, 64]) } else { address });
        }
        let tcp = |src, dst, src_port, dst_port| FlowKey {
            src,
            dst,
            src_port,
            dst_port,
            protocol: 6,
            family,
            ..FlowKey::default()
        };
        let mut flows = Vec::new();
        let mut bytes = 0.0;
        for src in senders {
            let size = 50_000.0 * (0.7 + 0.6 * random.part());
            flows.push((tcp(src, victim, 32_768 + random.below(28_000) as u16, port), size));
            bytes += size;
        }
        let servers: Vec<_> = (0..20).map(|_| host(random)).collect();
        let mut others = Vec::new();
        for _ in 0..10 + random.below(390) {
            let src = host(random);
            let dst = match random.below(20) {
                0..5 => join(family, victim, host(random), [24, 64]),
                5 => victim,
                6..11 => servers[random.below(20) as usize],
                _ => host(random),
            };
            let (dst_port, protocol) = match random.below(10) {
                0..3 => (443, 6),
                3 => (443, 17),
                4 => (53, 17),
                5 => (if dst == victim { 22 } else { port }, 6),
                _ => (1_024 + random.below(60_000) as u16, 6),
            };
            let dst_port = if dst == victim && dst_port == port { 22 } else { dst_port };
            let key = FlowKey { protocol, ..tcp(src, dst, 32_768 + random.below(28_000) as u16, dst_port) };
            others.push((key, (1.0 - random.part()).powf(-1.0 / 1.2).min(10_000.0)));
        }
        let part = 0.4 + 0.5 * random.part();
        let background: f64 = others.iter().map(|(_, size)| size).sum();
        let scale = bytes * (1.0 - part) / part / background;
        let share = |size: f64| {
            let bytes = size as u64 + 64;
            Share { bytes, packets: bytes.div_ceil(1_500), peak: 0 }
        };
        let mut flows: Vec<_> = flows.into_iter().map(|(key, size)| (key, share(size))).collect();
        let bytes = flows.iter().map(|(_, share)| share.bytes).sum();
        flows.extend(others.into_iter().map(|(key, size)| (key, share(size * scale))));
        Self { flows, victim, port, family, bytes, rack }
    }
}

impl Random {
    fn address(&mut self, family: Family) -> u128 {
        match family {
            Family::V6 => 0x2000 << 112 | u128::from(self.next() >> 3) << 64 | u128::from(self.next()),
            _ => u128::from(self.next() as u32),
        }
    }
}

/// An address with the first bits of one address and the remaining bits of another.
fn join(family: Family, first: u128, last: u128, lengths: [u32; 2]) -> u128 {
    let spare = if family == Family::V6 { 128 - lengths[1] } else { 32 - lengths[0] };
    first >> spare << spare | last & ((1 << spare) - 1)
}
