//! Packets on their way: what a queue does not see of them, in slots that are used again.

use queuescope_queue::{Headers, Host};
use queuescope_wire::{Class, Ecn, Family, FlowId, FlowKey, PacketId};

/// Packets on their way.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<OnItsWay>,
    free: Vec<u32>,
    sent: u64,
}

/// What is known of a packet beside what queues see.
#[derive(Debug, Clone, Copy)]
pub struct OnItsWay {
    /// What switches see of it.
    pub headers: Headers,
    /// Its flow; another flow has it when this one is over.
    pub flow: FlowId,
    /// The number of its connection, or of its source of datagrams.
    pub number: u64,
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
}

/// The port of every server.
const SERVER: u16 = 5001;
/// Ports of clients, after which they begin anew.
const FIRST_CLIENT: u64 = 1024;
const CLIENTS: u64 = 64_512;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl OnItsWay {
    /// Whose packet it is, as a capture would show it: hosts have addresses from 10.0.0.0 on, in the order of nodes, and
    /// connections a port each.
    pub fn key(&self) -> FlowKey {
        let hosts = [self.headers.source, self.headers.destination];
        let key = key(hosts, self.number, if self.headers.tcp.is_some() { TCP } else { UDP });
        if matches!(self.owner, Owner::Sender(_)) {
            FlowKey { src_port: key.dst_port, dst_port: key.src_port, ..key }
        } else {
            key
        }
    }
}

/// Whose packets are of the TCP connection of this number, as its data would be captured.
pub(crate) fn connection_key(hosts: [Host; 2], number: u64) -> FlowKey {
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
    pub fn insert(&mut self, packet: OnItsWay) -> PacketId {
        let number = self.sent << SLOT;
        self.sent += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                PacketId(number | u64::from(slot))
            }
            None => {
                let slot = self.slots.len();
                // Whoever runs the simulation stops at MOST; one event sends no more than the margin.
                debug_assert!(slot < 1 << SLOT);
                self.slots.push(packet);
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
    pub fn at(&mut self, id: PacketId) -> &mut OnItsWay {
        &mut self.slots[slot(id)]
    }

    /// It is there, or lost.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> OnItsWay {
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
