//! Errors in a capture file, and their position.

use std::{fmt, io};

use crate::reader::Format;
use queuescope_unpack::Compression;

/// A capture that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file does not exist.
    #[error("cannot open {name}: the file does not exist; check the path")]
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
    #[error("cannot read {name}")]
    Unreadable {
        /// The file.
        name: String,
        /// The error of the system or of the decoder.
        #[source]
        why: io::Error,
    },
    /// It contains no bytes.
    #[error("{name} is empty{}: check that the capture was written", inside(*compression))]
    Empty {
        /// The file.
        name: String,
        /// Its compression.
        compression: Compression,
    },
    /// It does not begin with the magic number of a capture.
    #[error("{name} is not a pcap or pcapng capture{}: it begins with {found}", inside(*compression))]
    NotCapture {
        /// The file.
        name: String,
        /// Its compression.
        compression: Compression,
        /// The first bytes, and the format that they look like.
        found: String,
    },
    /// It ends inside the file header.
    #[error(
        "{name} ends inside its {format} file header, after {found} of {needed} bytes, so it has no packets: \
         capture or copy it again"
    )]
    TruncatedHeader {
        /// The file.
        name: String,
        /// Its format.
        format: Format,
        /// Bytes present.
        found: u64,
        /// Bytes expected.
        needed: u64,
    },
    /// Its header has an unsupported version, or is inconsistent.
    #[error(transparent)]
    Header(#[from] ReadError),
}

/// A damaged capture: what was read before the damage is good. If [`Damage::is_passed`], packets behind the damage were
/// read, too.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} is damaged at byte {offset}{}: {damage} ({format}, in packet {record}; {} can be used). {}",
    stream(format.compression), damage.usable(record.saturating_sub(1)), damage.advice()
)]
pub struct ReadError {
    /// The file.
    pub name: Box<str>,
    /// Its format.
    pub format: Format,
    /// Where the damaged record or block begins, in bytes of the decompressed stream.
    pub offset: u64,
    /// The number of the packet that could not be read, from 1.
    pub record: u64,
    /// What is wrong there. The message contains it, so it is not a `source`.
    pub damage: Damage,
}

/// What is wrong with a record or a block.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends inside a record, block or header.
    #[error("the file ends {found} bytes into {what} of {needed}")]
    Cut {
        /// What it ends inside of.
        what: &'static str,
        /// The length of that, bytes.
        needed: u64,
        /// How many bytes of it are there.
        found: u64,
    },
    /// Zeros where a packet should begin, as a crash or an interrupted copy leaves them.
    #[error("{bytes} bytes are zeros, {behind}")]
    Zeros {
        /// How many zeros.
        bytes: u64,
        /// The zeros, and what is between them and where reading continues, bytes.
        skipped: u64,
        /// What is behind them.
        behind: Behind,
    },
    /// A length that no program writes.
    #[error("{what} claims {claimed} bytes, and the limit is {limit}")]
    TooLong {
        /// What claims it.
        what: &'static str,
        /// The claimed length, bytes.
        claimed: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// A block whose length is impossible for its type.
    #[error("a block of type {kind:#x} has a length of {claimed}, and {why}")]
    BlockLength {
        /// Its type.
        kind: u32,
        /// Its total length, bytes.
        claimed: u32,
        /// Why it is impossible.
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
    /// A packet with more captured bytes than its block has room for.
    #[error("a packet claims {captured} captured bytes in a block with room for {room}")]
    PacketPastBlock {
        /// Captured bytes, as claimed.
        captured: u32,
        /// Bytes that the block can hold.
        room: u32,
    },
    /// A packet on an interface that its section has not described.
    #[error("a packet names interface {interface}, and its section has described {known}")]
    NoInterface {
        /// The interface's number.
        interface: u32,
        /// The number of described interfaces.
        known: u32,
    },
    /// More interfaces than allowed.
    #[error("a section describes more than {limit} interfaces")]
    TooManyInterfaces {
        /// The limit.
        limit: u32,
    },
    /// A section with an unknown byte-order magic.
    #[error("a section has the byte-order magic {found:#010x}")]
    ByteOrder {
        /// The magic as read.
        found: u32,
    },
    /// An unsupported version of the format.
    #[error("its format has version {major}.{minor}, and {known} can be read")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
        /// The supported versions.
        known: &'static str,
    },
    /// An option of an interface with an impossible length.
    #[error("an interface has an option {code} of {length} bytes, and {why}")]
    Option {
        /// The option's number.
        code: u16,
        /// Its length, bytes.
        length: u16,
        /// Why it is impossible.
        why: &'static str,
    },
    /// The system could not continue reading, or the compressed data is damaged.
    #[error("{0}")]
    Io(io::Error),
}

/// What follows zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// The end of the file.
    End,
    /// Bytes in which no packet is found.
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
    /// Whether packets behind the damage are read.
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

/// The first bytes of a file that is not a capture, and the format that they look like.
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
        _ => "an unknown format",
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
