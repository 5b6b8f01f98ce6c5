//! Packets in flight: the fields that queues do not see, in slots that are reused.

use queuescope_queue::{Headers, Host};
use queuescope_wire::{Class, Ecn, Family, FlowId, FlowKey, PacketId};

/// Packets in flight. The fields that each link needs are separate from those that only end hosts and programs read, so that as many as
/// possible stay in the caches.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<InFlight>,
    headers: Vec<Headers>,
    free: Vec<u32>,
    sent: u64,
}

/// The fields of a packet that queues do not see.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    /// Its flow; the id is reused when the flow is over.
    pub flow: FlowId,
    /// The number of its connection, or of its source of datagrams; for a packet from outside, its tag.
    pub number: u32,
    /// The group of flows that it belongs to, a number chosen by the code that added the flows.
    pub group: u32,
    /// The source host and the destination host.
    pub hosts: [Host; 2],
    /// Bytes from the network header on.
    pub bytes: u32,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Its class of service, which a switch on its path may have written.
    pub class: Class,
    /// Its route, and the number of links behind it.
    pub(crate) route: u32,
    pub(crate) hop: u16,
    /// Its owner: a connection, or a source of datagrams.
    pub(crate) owner: Owner,
}

/// What a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The receiver of a connection.
    Receiver(u32),
    /// The sender of a connection.
    Sender(u32),
    /// The counters of a source of datagrams.
    Datagrams(u32),
    /// Nothing: a copy that a switch fed back.
    Switch,
    /// A host outside the simulation.
    Outside,
}

/// The port of every server.
const SERVER: u16 = 5001;
/// Ports of clients; after the last they start again.
const FIRST_CLIENT: u64 = 1024;
const CLIENTS: u64 = 64_512;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl InFlight {
    /// Its tag, if it came from outside: [`Self::key`] means nothing then.
    #[inline]
    pub fn foreign(&self) -> Option<u32> {
        matches!(self.owner, Owner::Outside).then_some(self.number)
    }

    /// Its flow key, as a capture would show it: hosts have addresses from 10.0.0.0 on, in the order of nodes, and each
    /// connection has a port.
    pub fn key(&self) -> FlowKey {
        let kind = kind_of(self.flow);
        let key = key(self.hosts, u64::from(self.number), if kind == Kind::Datagrams { UDP } else { TCP });
        if kind == Kind::Acknowledgements {
            FlowKey { src_port: key.dst_port, dst_port: key.src_port, ..key }
        } else {
            key
        }
    }
}

/// The kind of a flow's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data of a connection.
    Data,
    /// The receiver's acknowledgements.
    Acknowledgements,
    /// Datagrams.
    Datagrams,
}

/// Flow ids of datagrams are in the upper half of the range, those of connections in the lower half.
const FIRST_DATAGRAM_FLOW: u32 = 1 << 31;

/// The flow id for packets of one kind, of the connection or flow of datagrams with this number. Numbers of
/// connections start again after 2^30: by then nothing refers to the first ones.
#[inline]
pub(crate) fn flow_id(number: u64, kind: Kind) -> FlowId {
    let connection = ((number as u32) & ((1 << 30) - 1)) << 1;
    FlowId(match kind {
        Kind::Data => connection,
        Kind::Acknowledgements => connection | 1,
        Kind::Datagrams => FIRST_DATAGRAM_FLOW.wrapping_add(number as u32),
    })
}

fn kind_of(flow: FlowId) -> Kind {
    match (flow.0 >= FIRST_DATAGRAM_FLOW, flow.0 & 1) {
        (true, _) => Kind::Datagrams,
        (false, 0) => Kind::Data,
        (false, _) => Kind::Acknowledgements,
    }
}

/// The flow key of the TCP connection with this number, as a capture of its data would show it: hosts have addresses from 10.0.0.0
/// on, senders a port for each connection, and receivers port 5001.
pub fn connection_key(hosts: [Host; 2], number: u64) -> FlowKey {
    key(hosts, number, TCP)
}

fn key([source, destination]: [Host; 2], number: u64, protocol: u8) -> FlowKey {
    let address = |host: Host| u128::from(10u32 << 24 | host.0 & 0xff_ffff);
    FlowKey {
        src: address(source),
        dst: address(destination),
        src_port: (FIRST_CLIENT + number % CLIENTS) as u16,
        dst_port: SERVER,
        protocol,
        family: Family::V4,
        ..FlowKey::default()
    }
}

/// The most packets that one event can send: no simulation has a window of a million segments.
const MARGIN: usize = 1 << 20;

/// The number of links behind a packet whose slot is free. No route is as long.
const GONE: u16 = u16::MAX;

/// Bits of a [`PacketId`] for the slot; the other bits are the number of the packet in the order of sending.
const SLOT: u32 = 24;

impl Packets {
    /// The most packets that can be in flight.
    pub const MOST: usize = (1 << SLOT) - MARGIN;

    /// Adds a new packet.
    #[inline]
    pub fn insert(&mut self, packet: InFlight, headers: Headers) -> PacketId {
        let number = self.sent << SLOT;
        self.sent += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                self.headers[slot as usize] = headers;
                PacketId(number | u64::from(slot))
            }
            None => {
                let slot = self.slots.len();
                // The simulation stops at MOST, and one event sends no more than the margin.
                debug_assert!(slot < 1 << SLOT);
                self.slots.push(packet);
                self.headers.push(headers);
                PacketId(number | slot as u64)
            }
        }
    }

    /// Whether there is no room for the packets of another event.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.slots.len() >= Self::MOST && self.free.len() < MARGIN
    }

    /// A packet in flight.
    #[inline]
    pub fn at(&mut self, id: PacketId) -> &mut InFlight {
        &mut self.slots[slot(id)]
    }

    /// A packet in flight, and the headers that end hosts and programs see.
    #[inline]
    pub fn whole(&mut self, id: PacketId) -> (&mut InFlight, &Headers) {
        (&mut self.slots[slot(id)], &self.headers[slot(id)])
    }

    /// The headers that end hosts and programs see.
    #[inline]
    pub fn headers(&mut self, id: PacketId) -> &mut Headers {
        &mut self.headers[slot(id)]
    }

    /// Removes a packet that was delivered or lost. Its headers can be read until another packet is inserted.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> InFlight {
        self.free.push(slot(id) as u32);
        let packet = &mut self.slots[slot(id)];
        let removed = *packet;
        packet.hop = GONE;
        removed
    }

    /// Whether a packet may be in flight. False if it never was, or if it was removed and no other packet has its slot.
    #[inline]
    pub fn has(&self, id: PacketId) -> bool {
        self.slots.get(slot(id)).is_some_and(|packet| packet.hop != GONE)
    }

    /// The number of packets in flight.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// The number of a packet in the order of sending, from 0.
#[inline]
pub fn number(id: PacketId) -> u64 {
    id.0 >> SLOT
}

/// The slot of a packet, which is reused when the packet is gone.
#[inline]
pub(crate) fn slot(id: PacketId) -> usize {
    (id.0 & ((1 << SLOT) - 1)) as usize
}
