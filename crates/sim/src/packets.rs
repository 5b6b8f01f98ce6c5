//! Packets on their way: what a queue does not see of them, in slots that are used again.

use queuescope_queue::{Headers, Host};
use queuescope_wire::{Class, Ecn, Family, FlowId, FlowKey, PacketId};

/// Packets on their way. What each link needs of them is apart from what only ends and programs read, so that as many as
/// possible stay in the caches.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<InFlight>,
    headers: Vec<Headers>,
    free: Vec<u32>,
    sent: u64,
}

/// What is known of a packet beside what queues see.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    /// Its flow; another flow has it when this one is over.
    pub flow: FlowId,
    /// The number of its connection, or of its source of datagrams; of a packet from outside, its tag.
    pub number: u32,
    /// The group of flows that it is of, by the number that whoever added the flows gave it.
    pub group: u32,
    /// Who sent it, and who is to get it.
    pub hosts: [Host; 2],
    /// Bytes, from the network header on.
    pub bytes: u32,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Its class of service, which a switch on its way may have written.
    pub class: Class,
    /// Which way it takes, and how far along it is: the number of links behind it.
    pub(crate) route: u32,
    pub(crate) hop: u16,
    /// Who it is for: a connection, or a source of datagrams.
    pub(crate) owner: Owner,
}

/// To whom a packet is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The receiver of a connection.
    Receiver(u32),
    /// The sender of a connection.
    Sender(u32),
    /// Who counts what a source of datagrams sent.
    Datagrams(u32),
    /// Nobody: a copy that a switch fed back.
    Switch,
    /// Whoever is outside.
    Outside,
}

/// The port of every server.
const SERVER: u16 = 5001;
/// Ports of clients, after which they begin anew.
const FIRST_CLIENT: u64 = 1024;
const CLIENTS: u64 = 64_512;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl InFlight {
    /// Its tag, if it came from outside: [`Self::key`] says nothing of it then.
    #[inline]
    pub fn foreign(&self) -> Option<u32> {
        matches!(self.owner, Owner::Outside).then_some(self.number)
    }

    /// Whose packet it is, as a capture would show it: hosts have addresses from 10.0.0.0 on, in the order of nodes, and
    /// connections a port each.
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

/// What the packets of a flow are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data of a connection.
    Data,
    /// What its receiver answers.
    Acknowledgements,
    /// Datagrams.
    Datagrams,
}

/// Flow ids of datagrams are in the upper half of all, those of connections in the lower.
const FIRST_DATAGRAM_FLOW: u32 = 1 << 31;

/// The flow of the packets of one kind of the connection, or of the flow of datagrams, with this number. Numbers of
/// connections begin anew after 2^30: by then nothing knows of the first.
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

/// Whose packets are of the TCP connection of this number, as its data would be captured: hosts have addresses from 10.0.0.0
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

/// Packets that one event can send at most: a window of a million segments is none of this world.
const MARGIN: usize = 1 << 20;

/// Bits of a [`PacketId`] that name the slot; the others are the number of the packet in the order of sending.
const SLOT: u32 = 24;

impl Packets {
    /// The most packets that can be on their way.
    pub const MOST: usize = (1 << SLOT) - MARGIN;

    /// A new packet.
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
                // Whoever runs the simulation stops at MOST; one event sends no more than the margin.
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

    /// A packet on its way.
    #[inline]
    pub fn at(&mut self, id: PacketId) -> &mut InFlight {
        &mut self.slots[slot(id)]
    }

    /// A packet on its way, and what its ends and programs see of it.
    #[inline]
    pub fn whole(&mut self, id: PacketId) -> (&mut InFlight, &Headers) {
        (&mut self.slots[slot(id)], &self.headers[slot(id)])
    }

    /// What its ends and programs see of it.
    #[inline]
    pub fn headers(&mut self, id: PacketId) -> &mut Headers {
        &mut self.headers[slot(id)]
    }

    /// It is there, or lost. Its headers can be read until another is inserted.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> InFlight {
        self.free.push(slot(id) as u32);
        self.slots[slot(id)]
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// The number of a packet in the order of sending, from 0.
#[inline]
pub fn number(id: PacketId) -> u64 {
    id.0 >> SLOT
}

/// The slot of a packet, which another has when it is gone.
#[inline]
pub(crate) fn slot(id: PacketId) -> usize {
    (id.0 & ((1 << SLOT) - 1)) as usize
}
