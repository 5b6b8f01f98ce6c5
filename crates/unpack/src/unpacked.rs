//! Bytes of a plain or compressed source.
//!
//! The decoders are driven directly rather than through the `Read` adapters of their crates: if a call decodes some
//! bytes and then meets damage, those adapters lose these bytes, but everything before the damage must be delivered.

use std::fmt;
use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use liblzma::stream::{Action, CONCATENATED, Status as XzStatus, Stream as XzStream};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

/// Bytes of the source that are read at once.
const INPUT: usize = 64 << 10;
/// The most memory that an xz decoder may allocate, bytes: four times what `xz -9` needs to decode.
const XZ_MEMORY: u64 = 256 << 20;
/// The length of the longest magic number.
const LONGEST_MAGIC: usize = 6;

/// The compression of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip (RFC 1952), of any number of members.
    Gzip,
    /// Zstandard (RFC 8878), of any number of frames.
    Zstd,
    /// xz, of any number of streams.
    Xz,
}

impl Compression {
    /// By the magic number at the start of `bytes`.
    fn from_magic(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A skippable frame (the second form) may stand before the first one of data.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }
}

/// `plain`, `gzip`, `zstd`, `xz`.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        })
    }
}

/// The bytes of a source, decompressed if they are compressed.
///
/// A read delivers all bytes before damage, and the next one returns the error:
/// [`InvalidData`](io::ErrorKind::InvalidData) if the compressed data is corrupt,
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if it ends too early. It reads no more of the source than it needs,
/// so that it decodes a live pipe as bytes arrive.
pub struct Unpacked {
    input: Input,
    decoder: Decoder,
    /// An error that was met after good bytes; the next call returns it.
    pending: Option<io::Error>,
}

impl Unpacked {
    /// Reads the first bytes of `source` and chooses the decoder by them.
    ///
    /// # Errors
    /// If these bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut input = Input::new(source);
        while input.available().len() < LONGEST_MAGIC && input.fill()? {}
        let decoder = match Compression::from_magic(input.available()) {
            Compression::None => Decoder::Plain,
            Compression::Gzip => Decoder::Gzip(Gzip { inflate: Decompress::new_gzip(15), state: Member::Inside }),
            Compression::Zstd => Decoder::Zstd(Zstd { inner: ZstdDecoder::new()?, hint: 0, more_output: false }),
            Compression::Xz => {
                Decoder::Xz { inner: XzStream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?, ended: false }
            }
        };
        Ok(Self { input, decoder, pending: None })
    }

    /// The compression of the source.
    pub fn compression(&self) -> Compression {
        match self.decoder {
            Decoder::Plain => Compression::None,
            Decoder::Gzip(_) => Compression::Gzip,
            Decoder::Zstd(_) => Compression::Zstd,
            Decoder::Xz { .. } => Compression::Xz,
        }
    }

    /// Bytes of the source that were read and decoded.
    pub fn consumed(&self) -> u64 {
        self.input.consumed()
    }
}

impl Read for Unpacked {
    /// Decodes some bytes into `into`. Returns 0 only at a proper end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let (read, result) = match &mut self.decoder {
            Decoder::Plain => return self.input.read(into),
            Decoder::Gzip(gzip) => gzip.read(&mut self.input, into),
            Decoder::Zstd(zstd) => zstd.read(&mut self.input, into),
            Decoder::Xz { inner, ended } => read_xz(inner, ended, &mut self.input, into),
        };
        match result {
            Err(error) if read == 0 => Err(error),
            Err(error) => {
                self.pending = Some(error);
                Ok(read)
            }
            Ok(()) => Ok(read),
        }
    }
}

enum Decoder {
    Plain,
    Gzip(Gzip),
    Zstd(Zstd),
    Xz { inner: XzStream, ended: bool },
}

/// What a call of a decoder returned: the number of good bytes, and perhaps an error after them.
type Decoded = (usize, io::Result<()>);

struct Gzip {
    inflate: Decompress,
    state: Member,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Inside,
    Ended,
}

impl Gzip {
    fn read(&mut self, input: &mut Input, into: &mut [u8]) -> Decoded {
        loop {
            if input.available().is_empty()
                && let Err(error) = input.fill()
            {
                return (0, Err(error));
            }
            if self.state == Member::Ended {
                match input.available() {
                    [] => return (0, Ok(())),
                    // gzip(1) ignores zeros that a tape or a block device adds as padding.
                    [0, ..] => {
                        input.consume(1);
                        continue;
                    }
                    _ => {
                        self.inflate = Decompress::new_gzip(15);
                        self.state = Member::Inside;
                    }
                }
            }
            let at_end = input.available().is_empty();
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let result = self.inflate.decompress(input.available(), into, FlushDecompress::None);
            input.consume((self.inflate.total_in() - before_in) as usize);
            let made = (self.inflate.total_out() - before_out) as usize;
            match result {
                Err(error) => {
                    let why = error.message().unwrap_or("it does not decode").to_owned();
                    return (made, Err(corrupt("gzip", &why)));
                }
                Ok(Status::StreamEnd) => self.state = Member::Ended,
                Ok(_) if made == 0 && at_end => return (0, Err(cut("gzip"))),
                Ok(_) => {}
            }
            if made > 0 {
                return (made, Ok(()));
            }
        }
    }
}

struct Zstd {
    inner: ZstdDecoder<'static>,
    /// How many bytes the decoder needs next; zero between frames.
    hint: usize,
    /// Whether the last call filled its output, so that there may be more output without further input.
    more_output: bool,
}

impl Zstd {
    fn read(&mut self, input: &mut Input, into: &mut [u8]) -> Decoded {
        loop {
            if input.available().is_empty()
                && !self.more_output
                && let Err(error) = input.fill()
            {
                return (0, Err(error));
            }
            let at_end = input.available().is_empty() && !self.more_output;
            if at_end && self.hint == 0 {
                return (0, Ok(()));
            }
            // Offer exactly what it needs, which is one block: if that block is damaged, those before it are already
            // delivered.
            let offered = input.available().len().min(self.hint.max(1));
            let mut from = InBuffer::around(&input.available()[..offered]);
            let mut to = OutBuffer::around(&mut *into);
            let result = self.inner.run(&mut from, &mut to);
            let (used, made) = (from.pos(), to.pos());
            input.consume(used);
            self.more_output = made == into.len();
            match result {
                Err(error) => return (made, Err(corrupt("zstd", &error.to_string()))),
                Ok(_) if made == 0 && at_end => return (0, Err(cut("zstd"))),
                Ok(hint) => self.hint = hint,
            }
            if made > 0 {
                return (made, Ok(()));
            }
        }
    }
}

fn read_xz(stream: &mut XzStream, ended: &mut bool, input: &mut Input, into: &mut [u8]) -> Decoded {
    while !*ended {
        if input.available().is_empty()
            && let Err(error) = input.fill()
        {
            return (0, Err(error));
        }
        let at_end = input.available().is_empty();
        let (before_in, before_out) = (stream.total_in(), stream.total_out());
        let action = if at_end { Action::Finish } else { Action::Run };
        let result = stream.process(input.available(), into, action);
        input.consume((stream.total_in() - before_in) as usize);
        let made = (stream.total_out() - before_out) as usize;
        match result {
            Err(error) => return (made, Err(xz_error(&error))),
            Ok(XzStatus::StreamEnd) => *ended = true,
            Ok(_) if made == 0 && at_end => return (0, Err(cut("xz"))),
            Ok(_) => {}
        }
        if made > 0 {
            return (made, Ok(()));
        }
    }
    (0, Ok(()))
}

fn xz_error(error: &liblzma::stream::Error) -> io::Error {
    match error {
        liblzma::stream::Error::MemLimit => io::Error::other(format!(
            "its xz dictionary is larger than the limit ({} MiB); decompress it with xz(1) first",
            XZ_MEMORY >> 20
        )),
        liblzma::stream::Error::Mem => {
            io::Error::new(io::ErrorKind::OutOfMemory, "there is not enough memory to decompress its xz data")
        }
        error => corrupt("xz", &error.to_string()),
    }
}

fn corrupt(format: &str, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the {format} data is corrupt ({why})"))
}

fn cut(format: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the {format} data ends too early"))
}

/// The source itself, read in chunks.
struct Input {
    source: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes taken from `source`, including those that are still in `bytes`.
    taken: u64,
}

impl Input {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self { source, bytes: vec![0; INPUT], start: 0, end: 0, taken: 0 }
    }

    fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, count: usize) {
        self.start += count.min(self.end - self.start);
    }

    fn consumed(&self) -> u64 {
        self.taken - (self.end - self.start) as u64
    }

    /// Reads more bytes behind the available ones. Returns false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let read = read_some(&mut self.source, &mut self.bytes[self.end..])?;
        self.end += read;
        self.taken += read as u64;
        Ok(read > 0)
    }

    /// Bypasses the buffer once that is empty: the kernel copies a plain file only once.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.start < self.end {
            let count = into.len().min(self.end - self.start);
            into[..count].copy_from_slice(&self.bytes[self.start..self.start + count]);
            self.start += count;
            return Ok(count);
        }
        let read = read_some(&mut self.source, into)?;
        self.taken += read as u64;
        Ok(read)
    }
}

fn read_some(source: &mut dyn Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
