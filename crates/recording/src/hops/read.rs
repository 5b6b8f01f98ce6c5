//! From the payload of a datagram to the hops of its packets.

use super::{HopCounts, HopLog, HopOptions, Occupancy, SwitchClock, SwitchHop};
use queuescope_log::packet::{self, Captured, Telemetry, fill_telemetry};
use queuescope_log::queued::Place;
use queuescope_wire::parse::{Frame, LinkType, Tunnel};
use queuescope_wire::telemetry::{
    GroupHeader, Hop, IntHeader, IntParser, Main, MalformedReport, Reports, TelemetryReport,
};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Family, FlowId, Nanos, Packet, PacketId, QueueId};
use std::collections::BTreeMap;

/// Sequence numbers of reports have 22 bits.
const SEQUENCE: u32 = 0x003f_ffff;

/// Reads reports. It knows the clocks of switches, and the numbers of their last reports.
#[derive(Debug)]
pub struct HopReader {
    parser: IntParser,
    unit: Nanos,
    bits: u32,
    occupancy: Occupancy,
    clocks: BTreeMap<u32, SwitchClock>,
    /// The last sequence number of each switch and line card.
    sequences: BTreeMap<(u32, u8), u32>,
    counts: HopCounts,
    headers: Box<[u8; packet::SIZE]>,
    hops: Vec<SwitchHop>,
    path: Vec<packet::Hop>,
}

/// Why a hop is left out.
enum LeftOut {
    NoSwitch,
    NoWait,
    Backwards,
    TooMany,
}

impl HopReader {
    /// Nothing was read yet.
    pub fn new(options: &HopOptions) -> Self {
        Self {
            parser: IntParser::new(options.marks, Tunnel::Outer),
            unit: options.unit,
            bits: options.time_bits,
            occupancy: options.occupancy,
            clocks: BTreeMap::new(),
            sequences: BTreeMap::new(),
            counts: HopCounts::default(),
            headers: Box::new([0; packet::SIZE]),
            hops: Vec::new(),
            path: Vec::new(),
        }
    }

    /// What was read and what was not.
    pub fn counts(&self) -> &HopCounts {
        &self.counts
    }

    pub(super) fn counts_mut(&mut self) -> &mut HopCounts {
        &mut self.counts
    }

    /// Reads the payload of a datagram that came at `arrival`, and passes each hop of its packets on, in the order of the path, with the packet's headers as a
    /// record of the schema `packet`.
    ///
    /// # Errors
    /// Returns the first error of `each`.
    pub fn read<E>(
        &mut self,
        arrival: Nanos,
        payload: &[u8],
        each: &mut impl FnMut(&[u8; packet::SIZE], &SwitchHop) -> Result<(), E>,
    ) -> Result<(), E> {
        self.counts.datagrams += 1;
        let reports = match Reports::read(payload) {
            Ok(reports) => reports,
            Err(MalformedReport::Version { .. }) => {
                self.counts.other_version += 1;
                return Ok(());
            }
            Err(_) => {
                self.counts.malformed += 1;
                return Ok(());
            }
        };
        self.count_lost(*reports.header());
        for report in reports {
            match report {
                Ok(report) => self.report(arrival, &report, each)?,
                Err(_) => self.counts.malformed += 1,
            }
        }
        Ok(())
    }

    /// Counts the datagrams that are missing before this one. Numbers that go back are of datagrams that overtook one another.
    fn count_lost(&mut self, GroupHeader { node, hardware, sequence }: GroupHeader) {
        let is_full = self.sequences.len() >= HopLog::SWITCHES;
        match self.sequences.get_mut(&(node, hardware)) {
            Some(last) => {
                let ahead = sequence.wrapping_sub(*last) & SEQUENCE;
                if (1..=SEQUENCE / 2).contains(&ahead) {
                    self.counts.lost += u64::from(ahead - 1);
                    *last = sequence;
                } else if ahead != 0 {
                    // It was counted as lost, and comes late.
                    self.counts.lost = self.counts.lost.saturating_sub(1);
                }
            }
            None if is_full => {}
            None => _ = self.sequences.insert((node, hardware), sequence),
        }
    }

    fn report<E>(
        &mut self,
        arrival: Nanos,
        report: &TelemetryReport<'_>,
        each: &mut impl FnMut(&[u8; packet::SIZE], &SwitchHop) -> Result<(), E>,
    ) -> Result<(), E> {
        self.counts.reports += 1;
        let before = self.counts;
        let own = match &report.main {
            Main::Int(own) => Some(own.hop),
            Main::None => None,
            Main::Unread { .. } => {
                self.counts.unread += 1;
                return Ok(());
            }
        };
        let truncated = match report.packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => {
                self.counts.no_packet += 1;
                return Ok(());
            }
            Err(_) => {
                self.counts.malformed += 1;
                return Ok(());
            }
        };
        let parsed = self.parser.parse_truncated(&truncated);
        if parsed.frame.key.family == Family::Link {
            self.counts.not_ip += 1;
            return Ok(());
        }
        self.hops.clear();
        let (size, is_dropped) = (parsed.frame.size, report.flags.dropped);
        let stack = match &parsed.int {
            Ok(Some(headers)) => {
                self.counts.cut += u64::from(headers.missing > 0);
                match headers.header {
                    IntHeader::Md(md) => Some(md.hops()),
                    IntHeader::Mx(_) | IntHeader::Destination(_) | IntHeader::Unread { .. } => None,
                }
            }
            Ok(None) => None,
            Err(_) => {
                self.counts.malformed_int += 1;
                None
            }
        };
        let stacked = stack.clone().map_or(0, Iterator::count);
        // The stack has the last hop first.
        for hop in stack.into_iter().flatten().rev() {
            self.add(arrival, &hop, size, false);
        }
        // A node has its own hop in the report or on the stack. If the report has nothing of it, the stack does.
        if let Some(own) = own.filter(|own| stacked == 0 || is_dropped || has_wait(own)) {
            self.hops.retain(|hop| Some(hop.place.switch) != own.node);
            self.add(arrival, &own, size, is_dropped);
        }
        if self.hops.is_empty() && self.counts == before {
            self.counts.unread += 1;
        }
        let added = parsed.added > 0;
        let data = if added { self.parser.without_int() } else { truncated.bytes };
        fill(&mut self.headers, &mut self.path, (truncated.link, data), &parsed.frame, &self.hops);
        for hop in &self.hops {
            let at = hop.departure.enqueued;
            packet::fill_time(&mut self.headers, at);
            each(&self.headers, hop)?;
        }
        self.counts.hops += self.hops.len() as u64;
        self.counts.untimed += self.hops.iter().filter(|hop| !hop.is_timed).count() as u64;
        Ok(())
    }

    /// Adds a hop of the current packet, or counts why not.
    fn add(&mut self, arrival: Nanos, hop: &Hop<'_>, size: u32, is_dropped: bool) {
        match self.hop(arrival, hop, size, is_dropped) {
            Ok(hop) => self.hops.push(hop),
            Err(LeftOut::NoSwitch) => self.counts.no_switch += 1,
            Err(LeftOut::NoWait) => self.counts.no_wait += 1,
            Err(LeftOut::Backwards) => self.counts.backwards += 1,
            Err(LeftOut::TooMany) => self.counts.too_many += 1,
        }
    }

    fn hop(&mut self, arrival: Nanos, hop: &Hop<'_>, size: u32, is_dropped: bool) -> Result<SwitchHop, LeftOut> {
        let switch = hop.node.ok_or(LeftOut::NoSwitch)?;
        if self.clocks.len() >= HopLog::SWITCHES && !self.clocks.contains_key(&switch) {
            return Err(LeftOut::TooMany);
        }
        let clock = self.clocks.entry(switch).or_insert_with(|| SwitchClock::new(self.unit, self.bits));
        let before = clock.shifts();
        let (enqueued, dequeued, is_timed) = times(clock, arrival, hop, is_dropped)?;
        self.counts.shifted += clock.shifts() - before;
        self.counts.switches = self.clocks.len() as u64;
        let occupancy = u64::from(hop.queue_occupancy.unwrap_or(0));
        let backlog_in = match self.occupancy {
            Occupancy::Bytes(cell) => Backlog { packets: 0, bytes: ByteCount(occupancy.saturating_mul(cell.0)) },
            Occupancy::Packets => Backlog { packets: occupancy, bytes: ByteCount(0) },
        };
        let queue = hop.queue.or(hop.drop_reason.map(|dropped| dropped.queue)).unwrap_or(0);
        let id = PacketId(self.counts.reports.saturating_sub(1));
        let packet = Packet { id, size: ByteCount(size.into()), flow: FlowId(0), class: Class(0), ..Packet::default() };
        let departure = Departure {
            packet,
            queue: QueueId(queue.into()),
            enqueued,
            dequeued,
            backlog_in,
            backlog_out: Backlog::default(),
        };
        let place = Place { switch, port: hop.egress_interface.unwrap_or(0) };
        Ok(SwitchHop { place, departure, is_timed, is_dropped })
    }
}

/// When a packet came and left, and whether the switch said when; times are in the switch's unit.
fn times(
    clock: &mut SwitchClock,
    arrival: Nanos,
    hop: &Hop<'_>,
    is_dropped: bool,
) -> Result<(Nanos, Nanos, bool), LeftOut> {
    let latency = hop.latency.map(|latency| clock.span(latency));
    Ok(match (hop.ingress_time, hop.egress_time, latency) {
        (Some(came), Some(left), _) => {
            let wait = clock.between(came, left).ok_or(LeftOut::Backwards)?;
            let dequeued = clock.place(left, arrival);
            (dequeued.saturating_sub(wait), dequeued, true)
        }
        (Some(came), None, Some(wait)) => {
            let enqueued = clock.place(came, arrival);
            (enqueued, enqueued.saturating_add(wait), true)
        }
        (None, Some(left), Some(wait)) => {
            let dequeued = clock.place(left, arrival);
            (dequeued.saturating_sub(wait), dequeued, true)
        }
        (None, None, Some(wait)) => (arrival.saturating_sub(wait), arrival, false),
        // What was dropped as it came did not wait.
        (Some(came), None, None) if is_dropped => {
            let at = clock.place(came, arrival);
            (at, at, true)
        }
        (None, None, None) if is_dropped => (arrival, arrival, false),
        _ => return Err(LeftOut::NoWait),
    })
}

/// Whether a node said how long the packet was there.
fn has_wait(hop: &Hop<'_>) -> bool {
    hop.latency.is_some() || (hop.ingress_time.is_some() && hop.egress_time.is_some())
}

/// Fills the record of a packet with its headers and its path.
fn fill(
    headers: &mut [u8; packet::SIZE],
    path: &mut Vec<packet::Hop>,
    (link, data): (LinkType, &[u8]),
    frame: &Frame,
    hops: &[SwitchHop],
) {
    let at = hops.first().map_or(Nanos::ZERO, |hop| hop.departure.enqueued);
    packet::fill(headers, &Captured { at, link, original_len: frame.size, data }, frame, None);
    path.clear();
    path.extend(hops.iter().map(|hop| packet::Hop {
        switch: hop.place.switch,
        queue: u32::try_from(hop.departure.backlog_in.bytes.0).unwrap_or(u32::MAX),
    }));
    if let (Some(first), Some(last)) = (hops.first(), hops.last()) {
        let (ingress, egress) = (first.departure.enqueued, last.departure.dequeued);
        fill_telemetry(headers, &Telemetry { ingress, egress, hops: path });
    }
}
