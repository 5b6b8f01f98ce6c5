//! What can be wrong with a capture file, and where.

use std::{fmt, io};

use crate::reader::Format;
use queuescope_unpack::Compression;

/// A capture that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("cannot open {name}: there is no such file; check the path")]
    Missing {
        /// The path.
        name: String,
    },
    /// The path is a directory.
    #[error("cannot open {name}: it is a directory; name the capture file inside it")]
    Directory {
        /// The path.
        name: String,
    },
    /// The system refused to open or read it, or its compressed data is damaged before the first packet.
    #[error("cannot read {name}: {why}")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system or the decoder said.
        why: io::Error,
    },
    /// There is not one byte in it.
    #[error("{name} is empty{}: was the capture ever written?", inside(*compression))]
    Empty {
        /// The file.
        name: String,
        /// How the emptiness is compressed.
        compression: Compression,
    },
    /// It begins with no magic number of a capture.
    #[error("{name} is not a pcap or pcapng capture{}: it begins with {found}", inside(*compression))]
    NotCapture {
        /// The file.
        name: String,
        /// How it is compressed.
        compression: Compression,
        /// The first bytes, and what they look like.
        found: String,
    },
    /// It ends inside the header that every capture begins with.
    #[error(
        "{name} ends inside its {format} file header, after {found} of {needed} bytes; there are no packets in it: \
         capture or copy it again"
    )]
    TruncatedHeader {
        /// The file.
        name: String,
        /// What it would have been.
        format: Format,
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        needed: u64,
    },
    /// The header is of a version that nothing writes, or contradicts itself.
    #[error(transparent)]
    Header(#[from] ReadError),
}

/// A capture that is damaged: what was read before is good. Packets behind it were read, too, if the damage
/// [is passed](Damage::is_passed).
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} is damaged at byte {offset}{}: {damage} ({format}, in packet {record}; {} can be used). {}",
    stream(format.compression), damage.usable(record.saturating_sub(1)), damage.advice()
)]
pub struct ReadError {
    /// The file.
    pub name: Box<str>,
    /// What it is.
    pub format: Format,
    /// Where the damaged record or block begins, in bytes of the decompressed stream.
    pub offset: u64,
    /// The packet that could not be read, counted from 1.
    pub record: u64,
    /// What is wrong there; the message has it already, so it is no source.
    pub damage: Damage,
}

/// What is wrong with a record or a block.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends inside something.
    #[error("the file ends {found} bytes into {what} of {needed}")]
    Cut {
        /// What it ends inside of.
        what: &'static str,
        /// How long that is, bytes.
        needed: u64,
        /// How much of it there is, bytes.
        found: u64,
    },
    /// Zeros where a packet should begin, as a crash or a copy that was cut short leaves them.
    #[error("{bytes} bytes are zeros, {behind}")]
    Zeros {
        /// How many.
        bytes: u64,
        /// These, and what stands between them and where reading goes on.
        skipped: u64,
        /// What is behind them.
        behind: Behind,
    },
    /// A length that nothing would write.
    #[error("{what} claims {claimed} bytes, and {limit} is the most that is believed")]
    TooLong {
        /// What claims it.
        what: &'static str,
        /// Its claim, bytes.
        claimed: u64,
        /// The bound, bytes.
        limit: u64,
    },
    /// A block whose length cannot be that of such a block.
    #[error("a block of type {kind:#x} has a length of {claimed}, and {why}")]
    BlockLength {
        /// Its type.
        kind: u32,
        /// Its total length, bytes.
        claimed: u32,
        /// What that contradicts.
        why: &'static str,
    },
    /// The two lengths of a block differ.
    #[error("a block of type {kind:#x} begins with a length of {head} and ends with one of {tail}")]
    LengthsDiffer {
        /// Its type.
        kind: u32,
        /// The length at its head, bytes.
        head: u32,
        /// The length at its tail, bytes.
        tail: u32,
    },
    /// More captured bytes than its block has room for.
    #[error("a packet claims {captured} captured bytes in a block with room for {room}")]
    PacketPastBlock {
        /// Captured bytes, as claimed.
        captured: u32,
        /// What the block can hold, bytes.
        room: u32,
    },
    /// A packet of an interface that its section has not described.
    #[error("a packet names interface {interface}, and its section has described {known}")]
    NoInterface {
        /// The number it names.
        interface: u32,
        /// How many there are.
        known: u32,
    },
    /// More interfaces than are believed.
    #[error("a section describes more than {limit} interfaces")]
    TooManyInterfaces {
        /// The bound.
        limit: u32,
    },
    /// A section that says its byte order in no known way.
    #[error("a section has the byte-order magic {found:#010x}")]
    ByteOrder {
        /// What stands there.
        found: u32,
    },
    /// A version of the format that cannot be read.
    #[error("its format has version {major}.{minor}, and {known} can be read")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
        /// The versions that can be.
        known: &'static str,
    },
    /// An option of an interface that cannot be what it says.
    #[error("an interface has an option {code} of {length} bytes, and {why}")]
    Option {
        /// The option's number.
        code: u16,
        /// Its length, bytes.
        length: u16,
        /// What that contradicts.
        why: &'static str,
    },
    /// The system could not read on, or the compressed data is damaged.
    #[error("{0}")]
    Io(io::Error),
}

/// What is behind zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// The end of the file.
    End,
    /// Bytes among which no packet is found.
    Nothing,
    /// Packets, which are read.
    Packets,
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::End => "to its end",
            Self::Nothing => "and no packet is found behind them",
            Self::Packets => "and packets are read behind them",
        })
    }
}

impl Damage {
    /// Whether packets behind it are read.
    pub fn is_passed(&self) -> bool {
        matches!(self, Self::Zeros { behind: Behind::Packets, .. })
    }

    fn usable(&self, before: u64) -> String {
        let packets = packets(before);
        if self.is_passed() {
            format!("{packets} before it and those behind it")
        } else {
            format!("{packets} before it")
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Cut { .. } | Self::Zeros { behind: Behind::End, .. } => {
                "It was cut while it was written or copied: copy it again if there is a whole one."
            }
            Self::Version { .. } => "Convert it with a program that reads it, to pcapng.",
            Self::Io(_) | Self::Zeros { behind: Behind::Packets, .. } => "Copy it again if there is a whole one.",
            _ => "Copy it again if there is a good one, or cut it there.",
        }
    }
}

/// The first bytes of what is not a capture, and what they look like.
pub(crate) fn describe_magic(bytes: &[u8]) -> String {
    let looks_like = match bytes {
        [b'B', b'Z', b'h', ..] => "bzip2: decompress it first",
        [0x04, 0x22, 0x4d, 0x18, ..] => "lz4: decompress it first",
        [b'P', b'A', b'R', b'1', ..] => "Parquet: a table, not a capture",
        [b'P', b'K', 3, 4, ..] => "zip: unpack it first",
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0xfd, b'7', b'z', b'X', ..] => {
            "compressed twice: decompress it once first"
        }
        [0x1f, 0x9d, ..] => "compress: decompress it first",
        [b's', b'n', b'o', b'o', b'p', 0, ..] => "snoop: convert it with editcap",
        [b'R', b'T', b'S', b'S', ..] | [b'G', b'M', b'B', b'U', ..] => "Network Monitor: convert it with editcap",
        [0x1c, 0, 1, 0xac, ..] | [0xac, 1, 0, 0x1c, ..] => "IXIA lcap: convert it with editcap",
        _ if bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => "text",
        _ => "no format that is known here",
    };
    let hex: Vec<_> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{} ({looks_like})", hex.join(" "))
}

fn inside(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "",
        Compression::Gzip => " inside its gzip compression",
        Compression::Zstd => " inside its zstd compression",
        Compression::Xz => " inside its xz compression",
    }
}

fn stream(compression: Compression) -> &'static str {
    if compression == Compression::None { "" } else { " of the decompressed stream" }
}

fn packets(count: u64) -> String {
    match count {
        0 => "no packet".to_owned(),
        1 => "the 1 packet".to_owned(),
        n => format!("the {n} packets"),
    }
}
