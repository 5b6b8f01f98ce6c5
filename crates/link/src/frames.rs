//! The packets that are on their way, byte by byte, in places that are used again.

use crate::connections::Window;
use queuescope_wire::FlowKey;
use queuescope_wire::parse;

/// A packet on its way.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// From its IP header on.
    bytes: Vec<u8>,
    /// What its headers say, as it came.
    pub(crate) seen: Option<parse::Frame>,
    /// The window that its TCP header told as it came, if that may be changed.
    pub(crate) window: Option<Window>,
    /// The end that it is for.
    pub(crate) to: u32,
}

impl Frame {
    /// Whose it is.
    pub fn key(&self) -> FlowKey {
        self.seen.map(|seen| seen.key).unwrap_or_default()
    }

    /// What its headers say, as it came.
    pub fn headers(&self) -> Option<parse::Frame> {
        self.seen
    }

    /// It, from its IP header on, as it came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    places: Vec<Frame>,
    free: Vec<u32>,
}

impl Frames {
    /// Another, which is for that end; its number.
    pub fn insert(&mut self, bytes: &[u8], seen: parse::Frame, window: Option<Window>, to: u32) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(Frame::default());
            self.places.len() as u32 - 1
        });
        let frame = &mut self.places[number as usize];
        // Memory is as large as the packets that were there were.
        frame.bytes.clear();
        frame.bytes.extend_from_slice(bytes);
        (frame.seen, frame.window, frame.to) = (Some(seen), window, to);
        number
    }

    pub fn at(&mut self, number: u32) -> &mut Frame {
        &mut self.places[number as usize]
    }

    /// It is on its way no more.
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }
}
