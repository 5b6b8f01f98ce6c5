//! The packets on their way through the network, byte by byte. Their memory is reused.

use crate::connections::ReceiveWindow;
use queuescope_wire::FlowKey;
use queuescope_wire::parse;

/// A packet on its way.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// The bytes, with the Ethernet header if the ends have one.
    bytes: Vec<u8>,
    /// Where the IP header begins.
    network: usize,
    /// The parsed headers, as they arrived, from the IP header on.
    pub(crate) seen: Option<parse::Frame>,
    /// The window that its TCP header advertised on arrival, if a program may change it.
    pub(crate) window: Option<ReceiveWindow>,
    /// The index of the end that receives it.
    pub(crate) to: u32,
}

impl Frame {
    /// The flow of the packet.
    pub fn key(&self) -> FlowKey {
        self.seen.map(|seen| seen.key).unwrap_or_default()
    }

    /// The parsed headers, as they arrived, from the IP header on.
    pub fn headers(&self) -> Option<parse::Frame> {
        self.seen
    }

    /// The bytes, from the IP header on, as they arrived.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.network..).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.network..).unwrap_or_default()
    }

    /// All bytes, as an interface carries them.
    pub(crate) fn on_wire(&self) -> &[u8] {
        &self.bytes
    }
}

/// All packets on their way, by slot number.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    places: Vec<Frame>,
    free: Vec<u32>,
}

impl Frames {
    /// Adds a packet for end `to` whose headers from its first byte on are `seen`, and returns its slot.
    pub fn insert(&mut self, bytes: &[u8], seen: parse::Frame, window: Option<ReceiveWindow>, to: u32) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(Frame::default());
            self.places.len() as u32 - 1
        });
        let frame = &mut self.places[number as usize];
        // Reuse the memory of the packet that was here.
        frame.bytes.clear();
        frame.bytes.extend_from_slice(bytes);
        let before = u32::from(seen.link_header);
        frame.network = seen.link_header.into();
        let seen = parse::Frame {
            size: seen.size.saturating_sub(before),
            headers: seen.headers.saturating_sub(seen.link_header),
            link_header: 0,
            ..seen
        };
        (frame.seen, frame.window, frame.to) = (Some(seen), window, to);
        number
    }

    pub fn at(&mut self, number: u32) -> &mut Frame {
        &mut self.places[number as usize]
    }

    /// Frees the slot of a packet that is no longer on its way.
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }
}
