//! INT headers in a packet: the shim, and the metadata header with the stack of hops.

use super::hop::Within;
use super::{Hop, Instructions, MalformedInt, WORD};
use crate::parse::bytes::chunk;

/// The version of metadata headers that is read.
const VERSION: u8 = 2;
/// Bytes of a metadata header.
const HEADER: usize = 12;

/// The shim behind TCP or UDP (INT section 5.7.2), and the header behind it.
///
/// ```
/// use queuescope_wire::telemetry::{IntHeader, IntHeaders, Next};
///
/// let payload = [
///     0x14, 5, 0x12, 0xb5, // INT-MD before the payload of UDP port 4789, 5 words
///     0x20, 0, 2, 7, 0x90, 0, 0, 0, 0, 0, 0, 0, // node and queue
///     0, 0, 0, 8, 1, 0, 0, 40, // node 8, queue 1
///     0xca, 0xfe, // the payload
/// ];
/// let headers = IntHeaders::read(&payload)?;
/// assert_eq!(headers.next, Next::UdpPayload { port: 4789 });
/// assert_eq!((headers.length(), headers.missing), (24, 0));
/// let IntHeader::Md(md) = headers.header else { return Ok(()) };
/// assert_eq!(md.hops().len(), 1);
/// # Ok::<(), queuescope_wire::telemetry::MalformedInt>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntHeaders<'a> {
    /// What follows the INT headers, and what they replaced.
    pub next: Next,
    /// The header behind the shim.
    pub header: IntHeader<'a>,
    /// Words of 4 bytes behind the shim, as it states them.
    pub words: u8,
    /// Bytes behind the shim that were not captured.
    pub missing: usize,
}

/// What follows the INT headers (NPT of the shim, INT section 5.7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// NPT 0: the payload of TCP or UDP. The UDP port does not mark INT.
    Unchanged {
        /// The DSCP before INT was inserted, if the source stored it. It is 0 otherwise.
        dscp: u8,
    },
    /// NPT 1: the payload of UDP, whose destination port was replaced.
    UdpPayload {
        /// The destination port before INT was inserted.
        port: u16,
    },
    /// NPT 2: the transport header; a UDP header was inserted before INT.
    Transport {
        /// The IP protocol before INT was inserted.
        protocol: u8,
    },
    /// NPT 3, which has no meaning yet.
    Unknown {
        /// The last two bytes of the shim.
        value: u16,
    },
}

/// The header behind a shim, by its type (INT section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntHeader<'a> {
    /// Type 1: instructions and the metadata of each hop.
    Md(IntMd<'a>),
    /// Type 3: instructions; each node sends its metadata in a report.
    Mx(IntMx<'a>),
    /// Type 2: from source to sink. INT does not define its form yet.
    Destination(&'a [u8]),
    /// A reserved type.
    Unread {
        /// The type: 0, or 4 to 15.
        int_type: u8,
        /// The bytes behind the shim.
        bytes: &'a [u8],
    },
}

/// The header of INT-MD (INT section 5.8) with the metadata stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntMd<'a> {
    /// D: the sink discards the packet, which is a copy or a probe.
    pub discard: bool,
    /// E: a node added no metadata, because the allowed number of hops was reached.
    pub hops_exceeded: bool,
    /// M: a node added no metadata, because the packet would have exceeded the MTU.
    pub mtu_exceeded: bool,
    /// Hop ML: words of 4 bytes that each hop adds. The source may add more.
    pub hop_words: u8,
    /// Hops that may still add metadata.
    pub remaining_hops: u8,
    /// Which baseline metadata each hop adds.
    pub instructions: Instructions,
    /// Domain Specific ID; 0 is the default.
    pub domain: u16,
    /// DS Instruction: which domain specific metadata each hop, or the source, adds. The domain defines them.
    pub domain_instructions: u16,
    /// DS Flags, which the domain defines.
    pub domain_flags: u16,
    /// What was captured of the stack.
    pub stack: &'a [u8],
    /// Words of 4 bytes in the stack, as the header states them.
    pub stack_words: usize,
}

/// The header of INT-MX (INT section 5.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntMx<'a> {
    /// D: the sink discards the packet, which is a copy or a probe.
    pub discard: bool,
    /// Which baseline metadata each node reports.
    pub instructions: Instructions,
    /// Domain Specific ID; 0 is the default.
    pub domain: u16,
    /// DS Instruction, which the domain defines.
    pub domain_instructions: u16,
    /// DS Flags, which the domain defines.
    pub domain_flags: u16,
    /// What was captured of the metadata that the source inserted, whose form the domain defines.
    pub source_inserted: &'a [u8],
}

impl<'a> IntHeaders<'a> {
    /// Bytes of the shim.
    pub const SHIM: usize = WORD;

    /// Reads the headers that start with a shim at the start of `data`.
    ///
    /// What is missing at the end of the stack is not an error, because reports cut packets: see `missing`.
    ///
    /// # Errors
    /// Fails if the shim or the metadata header is cut, of another version or inconsistent.
    pub fn read(data: &'a [u8]) -> Result<Self, MalformedInt> {
        let Some(&[first, words, v0, v1]) = chunk(data, 0) else {
            return Err(MalformedInt::CutShim);
        };
        let value = u16::from_be_bytes([v0, v1]);
        let next = match first >> 2 & 0b11 {
            0 => Next::Unchanged { dscp: v1 >> 2 },
            1 => Next::UdpPayload { port: value },
            2 => Next::Transport { protocol: v1 },
            _ => Next::Unknown { value },
        };
        let captured = data.get(Self::SHIM..).unwrap_or_default();
        let stated = usize::from(words) * WORD;
        let body = captured.get(..stated).unwrap_or(captured);
        let header = match first >> 4 {
            1 => IntHeader::Md(IntMd::read(body, stated)?),
            2 => IntHeader::Destination(body),
            3 => IntHeader::Mx(IntMx::read(body, stated)?),
            int_type => IntHeader::Unread { int_type, bytes: body },
        };
        Ok(Self { next, header, words, missing: stated - body.len() })
    }

    /// Bytes from the start of the shim to the end of the headers, as the shim states them.
    pub fn length(&self) -> usize {
        Self::SHIM + usize::from(self.words) * WORD
    }
}

impl<'a> IntMd<'a> {
    /// Reads a header of INT-MD and its stack, which have `stated` bytes together. `data` is what was captured of them.
    /// Whatever carries them (INT section 5.7), they have this form.
    ///
    /// # Errors
    /// Fails if the header is cut, of another version or inconsistent.
    pub fn read(data: &'a [u8], stated: usize) -> Result<Self, MalformedInt> {
        // The other bits are reserved, and ignored.
        let (fields, [first, _, third, fourth], stack) = Fields::read(data, stated)?;
        let md = Self {
            discard: first & 0x08 != 0,
            hops_exceeded: first & 0x04 != 0,
            mtu_exceeded: first & 0x02 != 0,
            hop_words: third & 0x1f,
            remaining_hops: fourth,
            instructions: fields.instructions,
            domain: fields.domain,
            domain_instructions: fields.domain_instructions,
            domain_flags: fields.domain_flags,
            stack,
            stack_words: stated / WORD - HEADER / WORD,
        };
        let (hop_words, needed) = (usize::from(md.hop_words), md.instructions.words());
        if hop_words < needed {
            return Err(MalformedInt::HopTooShort { hop_words, needed });
        }
        let remainder = md.source_only();
        if remainder > 0 && md.domain_instructions == 0 {
            return Err(md.inconsistent(0));
        }
        md.hops_with(remainder).map(|_| md)
    }

    /// The hops, the last one first. If the source added metadata of its own (`domain_instructions`), they are taken to
    /// be shorter than those of a hop; for longer ones use [`hops_with`](Self::hops_with).
    ///
    /// Hops that were not captured entirely are missing at the end: [`hop_count`](Self::hop_count) counts all.
    pub fn hops(&self) -> Hops<'a> {
        self.hops_of(self.source_only())
    }

    /// The hops, the last one first, if the source added `source_only` words of 4 bytes to those of a hop. The domain
    /// defines that number: the header does not have it.
    ///
    /// # Errors
    /// Fails if the length of the stack contradicts this number.
    pub fn hops_with(&self, source_only: usize) -> Result<Hops<'a>, MalformedInt> {
        let hops = self.stack_words.checked_sub(source_only).ok_or_else(|| self.inconsistent(source_only))?;
        let whole = match usize::from(self.hop_words) {
            0 => hops == 0 && source_only == 0,
            // The source's own metadata are a part of its hop.
            words => hops % words == 0 && (hops > 0 || source_only == 0),
        };
        if whole { Ok(self.hops_of(source_only)) } else { Err(self.inconsistent(source_only)) }
    }

    /// The number of hops in the stack, as the header states it, under the assumption of [`hops`](Self::hops).
    pub fn hop_count(&self) -> usize {
        self.stack_words.checked_div(usize::from(self.hop_words)).unwrap_or(0)
    }

    /// Words beyond whole hops.
    fn source_only(&self) -> usize {
        self.stack_words.checked_rem(usize::from(self.hop_words)).unwrap_or(0)
    }

    fn hops_of(&self, source_only: usize) -> Hops<'a> {
        let hop = usize::from(self.hop_words) * WORD;
        let stated = self.stack_words.saturating_sub(source_only) * WORD;
        let count = stated.checked_div(hop).unwrap_or(0);
        let last = hop + source_only * WORD;
        // The oldest hop, that of the source, is the last of the stack, and has its own metadata, too.
        let whole = if self.stack.len() >= stated + source_only * WORD {
            count
        } else {
            self.stack.len().checked_div(hop).unwrap_or(0).min(count.saturating_sub(1))
        };
        Hops { instructions: self.instructions, stack: self.stack, hop, last, count, left: 0..whole }
    }

    fn inconsistent(&self, source_only: usize) -> MalformedInt {
        let hop_words = usize::from(self.hop_words);
        MalformedInt::Stack { stack_words: self.stack_words, hop_words, source_only }
    }
}

impl<'a> IntMx<'a> {
    /// Reads a header of INT-MX and what the source inserted behind it, which have `stated` bytes together. `data` is what
    /// was captured of them.
    ///
    /// # Errors
    /// Fails if the header is cut or of another version.
    pub fn read(data: &'a [u8], stated: usize) -> Result<Self, MalformedInt> {
        let (fields, [first, ..], source_inserted) = Fields::read(data, stated)?;
        Ok(Self {
            discard: first & 0x08 != 0,
            instructions: fields.instructions,
            domain: fields.domain,
            domain_instructions: fields.domain_instructions,
            domain_flags: fields.domain_flags,
            source_inserted,
        })
    }
}

/// The words that the headers of INT-MD and INT-MX have in common.
struct Fields {
    instructions: Instructions,
    domain: u16,
    domain_instructions: u16,
    domain_flags: u16,
}

impl Fields {
    /// Reads a header of which `data` was captured. Returns also its first word and what follows it.
    fn read(data: &[u8], stated: usize) -> Result<(Self, [u8; WORD], &[u8]), MalformedInt> {
        if stated < HEADER {
            return Err(MalformedInt::TooShort { words: stated / WORD });
        }
        let data = data.get(..stated).unwrap_or(data);
        let cut = MalformedInt::CutHeader { bytes: data.len() };
        let (&[f0, f1, f2, f3, b0, b1, d0, d1, i0, i1, g0, g1], rest) =
            data.split_first_chunk::<HEADER>().ok_or(cut)?;
        if f0 >> 4 != VERSION {
            return Err(MalformedInt::Version { version: f0 >> 4 });
        }
        let fields = Self {
            instructions: Instructions(u16::from_be_bytes([b0, b1])),
            domain: u16::from_be_bytes([d0, d1]),
            domain_instructions: u16::from_be_bytes([i0, i1]),
            domain_flags: u16::from_be_bytes([g0, g1]),
        };
        Ok((fields, [f0, f1, f2, f3], rest))
    }
}

/// The hops of a stack, from the last node that added its metadata to the source. Reversed, they are in the order of the
/// path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hops<'a> {
    instructions: Instructions,
    stack: &'a [u8],
    /// Bytes of a hop, and of the oldest one.
    hop: usize,
    last: usize,
    /// Hops in the stack, captured or not.
    count: usize,
    /// Those that are left.
    left: std::ops::Range<usize>,
}

impl<'a> Hops<'a> {
    fn get(&self, index: usize) -> Option<Hop<'a>> {
        let length = if index + 1 == self.count { self.last } else { self.hop };
        let raw = self.stack.get(index * self.hop..)?.get(..length)?;
        Hop::read(self.instructions, raw, Within::Stack)
    }
}

impl<'a> Iterator for Hops<'a> {
    type Item = Hop<'a>;

    fn next(&mut self) -> Option<Hop<'a>> {
        let index = self.left.next()?;
        self.get(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl DoubleEndedIterator for Hops<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let index = self.left.next_back()?;
        self.get(index)
    }
}

impl ExactSizeIterator for Hops<'_> {}
impl std::iter::FusedIterator for Hops<'_> {}
