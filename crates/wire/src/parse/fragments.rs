//! The flows of datagrams whose later fragments may still come.

use super::network::{Datagram, Network};
use crate::{Family, FlowKey};

/// Datagrams remembered at once. A datagram's fragments follow each other closely, so few are enough.
const SLOTS: usize = 1024;

/// A direct-mapped table: a new datagram takes the place of an old one that falls on the same slot. Nothing else ages,
/// so a later fragment that comes alone may be given to an older datagram with its addresses and identifier.
#[derive(Debug)]
pub(super) struct Fragments {
    slots: Vec<Option<Slot>>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    name: FlowKey,
    key: FlowKey,
}

impl Fragments {
    pub fn new() -> Self {
        Self { slots: vec![None; SLOTS] }
    }

    /// Remembers that the datagram whose first fragment was seen belongs to `key`.
    #[cold]
    pub fn remember(&mut self, network: &Network, datagram: Datagram, key: FlowKey) {
        let name = name(network, datagram);
        if let Some(slot) = self.slots.get_mut(index(&name)) {
            *slot = Some(Slot { name, key });
        }
    }

    /// The flow of a datagram, if its first fragment was seen.
    #[cold]
    pub fn recall(&self, network: &Network, datagram: Datagram) -> Option<FlowKey> {
        let name = name(network, datagram);
        let slot = self.slots.get(index(&name))?.as_ref()?;
        (slot.name == name).then_some(slot.key)
    }
}

/// A datagram in the shape of a key, for the sake of its digest: the ports are the identifier's halves.
fn name(network: &Network, datagram: Datagram) -> FlowKey {
    debug_assert!(network.family != Family::Link);
    FlowKey {
        src: network.src,
        dst: network.dst,
        src_port: (datagram.id >> 16) as u16,
        dst_port: datagram.id as u16,
        protocol: datagram.protocol,
        family: network.family,
        ..FlowKey::default()
    }
}

fn index(name: &FlowKey) -> usize {
    name.digest() as usize % SLOTS
}
