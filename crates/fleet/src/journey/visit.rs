//! A packet's visit to a queue, as a group of records.

use queuescope_log::{Group, Schema, queued};
use queuescope_wire::{ByteCount, Family, FlowKey, Granularity, Nanos, PacketId};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What identifies a packet.
pub const IDENTITY: [&str; 9] =
    ["src_ip", "dst_ip", "src_port", "dst_port", "protocol", "ip_id", "tcp_seq", "tcp_ack", "payload_length"];
/// What identifies a flow: the first of these.
pub const FLOW: [&str; 5] = ["src_ip", "dst_ip", "src_port", "dst_port", "protocol"];
/// What a queue did to a packet.
pub const VISIT: [&str; 10] =
    ["enqueued", "dequeued", "packet", "backlog_in", "dropped", "ttl", "times", "queue", "switch", "egress_port"];

/// A queue of a host's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitedQueue {
    /// The switch that reported; 0 if the queue is of the host itself.
    pub switch: u32,
    /// The port of the switch; 0 if it is not known.
    pub port: u16,
    /// The queue of the port or host.
    pub queue: u16,
}

/// What a queue did to a packet.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// The queue.
    pub queue: VisitedQueue,
    /// When it came.
    pub enqueued: Nanos,
    /// When it left or was dropped.
    pub dequeued: Nanos,
    /// Its number in its stream, from 0.
    pub packet: PacketId,
    /// Bytes in the queue when it came.
    pub backlog: ByteCount,
    /// The schema's number of the reason why it was dropped.
    pub dropped: u8,
    /// Its time to live.
    pub ttl: u8,
    /// Whether the times are of the queue's clock.
    pub is_timed: bool,
}

impl Visit {
    /// The visit of a group by [`VISIT`].
    fn of(keys: &[u128]) -> Option<Self> {
        let [enqueued, dequeued, packet, backlog, dropped, ttl, times, queue, switch, port] = *keys else {
            return None;
        };
        Some(Self {
            queue: VisitedQueue { switch: switch as u32, port: port as u16, queue: queue as u16 },
            enqueued: Nanos(enqueued as u64),
            dequeued: Nanos(dequeued as u64),
            packet: PacketId((packet as u64).saturating_sub(1)),
            backlog: ByteCount(backlog as u64),
            dropped: dropped as u8,
            ttl: ttl as u8,
            is_timed: times == 0,
        })
    }

    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped != queued::LEFT
    }
}

impl VisitedQueue {
    /// An expression that matches the packets of this queue.
    pub fn expression(&self) -> String {
        let Self { switch, port, queue } = self;
        format!("queue == {queue} and switch == {switch} and egress_port == {port}")
    }
}

/// The visits of a packet to a host: the longest one to each queue. Others are of packets that look the same; returns their number.
pub fn visits_of(visits: &[Group]) -> (Vec<Visit>, u64) {
    let mut longest: BTreeMap<VisitedQueue, Visit> = BTreeMap::new();
    let mut others = 0;
    for visit in visits.iter().filter_map(|(keys, _)| Visit::of(keys)) {
        let wait = |visit: &Visit| visit.dequeued.saturating_sub(visit.enqueued);
        match longest.get(&visit.queue) {
            Some(known) => {
                others += 1;
                if wait(&visit) > wait(known) {
                    longest.insert(visit.queue, visit);
                }
            }
            None => _ = longest.insert(visit.queue, visit),
        }
    }
    (longest.into_values().collect(), others)
}

/// The text of an attribute's value.
pub fn value_text(name: &str, key: u128) -> String {
    let schema = Schema::queued();
    schema.find(name).map_or_else(String::new, |id| schema.attribute(id).text_of(key))
}

/// An expression that matches the packets with an identity.
pub fn identity_expression(identity: &[u128]) -> String {
    let terms = IDENTITY.iter().zip(identity).map(|(name, key)| format!("{name} == {}", value_text(name, *key)));
    terms.collect::<Vec<_>>().join(" and ")
}

/// An expression that matches the packets of the flow of an identity, and those of the way back.
pub fn both_ways_expression(identity: &[u128]) -> String {
    let [src_ip, dst_ip, src_port, dst_port, protocol] = flow_texts(identity);
    format!(
        "protocol == {protocol} and ((src_ip == {src_ip} and dst_ip == {dst_ip} and src_port == {src_port} and dst_port == {dst_port}) or \
         (src_ip == {dst_ip} and dst_ip == {src_ip} and src_port == {dst_port} and dst_port == {src_port}))"
    )
}

/// An expression that matches the packets of a flow, from the values of [`FLOW`].
pub fn flow_expression(keys: &[u128]) -> String {
    let terms = FLOW.iter().zip(flow_texts(keys)).map(|(name, text)| format!("{name} == {text}"));
    terms.collect::<Vec<_>>().join(" and ")
}

/// The name of a flow as `analyze` prints it, from the values of [`FLOW`].
pub fn flow_text(keys: &[u128]) -> String {
    let [src, dst, .., protocol] = flow_texts(keys);
    let (Ok(from), Ok(to)) = (src.parse(), dst.parse()) else { return format!("{src} > {dst} {protocol}") };
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let number = |at: usize| keys.get(at).copied().unwrap_or(0);
    Granularity::FiveTuple.name(&FlowKey {
        src: bits(from),
        dst: bits(to),
        src_port: number(2) as u16,
        dst_port: number(3) as u16,
        protocol: number(4) as u8,
        family: if from.is_ipv6() { Family::V6 } else { Family::V4 },
        ..FlowKey::default()
    })
}

fn flow_texts(keys: &[u128]) -> [String; 5] {
    std::array::from_fn(|at| keys.get(at).map_or_else(String::new, |key| value_text(FLOW[at], *key)))
}

/// A packet for people: what it does not have is left out.
pub fn packet_text(identity: &[u128]) -> String {
    let known = IDENTITY.iter().zip(identity).filter(|(_, key)| **key != 0);
    known.map(|(name, key)| format!("{name} {}", value_text(name, *key))).collect::<Vec<_>>().join(", ")
}
