//! The packets that are on their way, byte by byte, in places that are used again.

use queuescope_wire::FlowKey;
use queuescope_wire::parse;

/// A packet on its way.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// From its IP header on; longer than it.
    bytes: Vec<u8>,
    length: usize,
    /// What its headers say, as it came.
    pub(crate) seen: Option<parse::Frame>,
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
        &self.bytes[..self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    /// All the room there is, for one that is read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// So much of it was filled.
    pub(crate) fn filled(&mut self, length: usize) {
        self.length = length;
    }
}

/// All of them, by number.
#[derive(Debug)]
pub(crate) struct Frames {
    places: Vec<Frame>,
    free: Vec<u32>,
    room: usize,
}

impl Frames {
    /// For packets of at most so many bytes.
    pub fn new(room: usize) -> Self {
        Self { places: Vec::new(), free: Vec::new(), room }
    }

    /// A place for another; it stays free until it is [taken](Self::take).
    pub fn fresh(&mut self) -> (u32, &mut Frame) {
        let number = match self.free.last() {
            Some(number) => *number,
            None => {
                let number = self.places.len() as u32;
                self.places.push(Frame { bytes: vec![0; self.room], ..Frame::default() });
                self.free.push(number);
                number
            }
        };
        (number, &mut self.places[number as usize])
    }

    /// The last one that was fresh is in use.
    pub fn take(&mut self) {
        self.free.pop();
    }

    pub fn at(&mut self, number: u32) -> &mut Frame {
        &mut self.places[number as usize]
    }

    /// It is on its way no more.
    pub fn leave(&mut self, number: u32) {
        self.free.push(number);
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
