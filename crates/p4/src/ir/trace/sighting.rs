//! Packets as taps beside a router see them.

use super::{Leaving, wandering};
use crate::ir::variable::Input;
use queuescope_wire::Nanos;

/// An appearance of a packet at a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The packet, with its flow and size. Its other fields are those of its departure.
    pub packet: Leaving,
    /// What distinguishes it from all other packets.
    pub number: u32,
    /// Where it appears.
    pub tap: Tap,
    /// When it appears.
    pub time: Nanos,
    /// Whether it has an IP header. Otherwise its fields are zero.
    pub is_ip: bool,
}

/// Where a packet appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tap {
    /// On a link into the router.
    In,
    /// On the link out of it.
    Out,
    /// At a port without a tap.
    Other,
}

impl Sighting {
    /// As a program takes it that came in by a port.
    pub fn input(&self, port: u16, input: Input) -> u64 {
        match input {
            Input::ArrivalPort => port.into(),
            Input::Arrived => self.time.0,
            Input::Generated => 0,
            _ if !self.is_ip => 0,
            Input::Identification => u64::from(self.number & 0xffff),
            Input::Sequence => u64::from(self.number.wrapping_mul(1448)),
            Input::Acknowledgement => u64::from(self.packet.flow.wrapping_mul(77)),
            input => self.packet.input(input),
        }
    }
}

/// What taps see of [`wandering`] packets, in the order of time. They wait up to 3.8 ms; some are lost, come or leave by other links, appear twice at a tap,
/// are in the router for much longer, or are not IP.
pub fn sightings(seed: u64, count: usize) -> Vec<Sighting> {
    let packets = wandering(seed, count.div_ceil(2) + count / 16 + 1);
    let mut seen: Vec<_> =
        packets.enumerate().flat_map(|(number, packet)| appearances(number as u32, packet)).collect();
    seen.sort_by_key(|sighting| sighting.time);
    seen.truncate(count);
    seen
}

fn appearances(number: u32, packet: Leaving) -> Vec<Sighting> {
    let longer = if number % 256 == 100 { 5_000_000 } else { 0 };
    let packet = Leaving { sojourn: Nanos(packet.sojourn.0 / 8 + longer), ..packet };
    let at = |tap, time| Sighting { packet, number, tap, time, is_ip: number % 128 != 50 };
    let (came, left) = (at(Tap::In, packet.now - packet.sojourn), at(Tap::Out, packet.now));
    let other = Sighting { tap: Tap::Other, ..came };
    let later = |sighting: Sighting| Sighting { time: sighting.time + Nanos(3_000), ..sighting };
    match number % 64 {
        3 | 19 | 35 | 51 => vec![came],
        7 | 23 | 39 | 55 => vec![left],
        9 => vec![other, came, left],
        21 => vec![came, left, later(left)],
        37 => vec![came, later(came), left],
        _ => vec![came, left],
    }
}
