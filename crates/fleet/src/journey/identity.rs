//! What identifies a packet on its way, and its digest.

use super::visit::{IDENTITY, packet_text};
use queuescope_ingest::CaptureInput;
use queuescope_ingest::records::Frames;
use queuescope_log::{Schema, packet};
use queuescope_wire::Nanos;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use sha2::{Digest, Sha256};
use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;
use std::str::FromStr;

/// What no router changes of a packet: addresses, ports, protocol, the identification of IPv4, sequence and acknowledgement numbers, and the length of its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketIdentity(pub(super) Vec<u128>);

impl PacketIdentity {
    /// The identity of a packet with these headers, which are a record of the schema `packet`.
    pub fn of_headers(headers: &[u8; packet::SIZE]) -> Self {
        let schema = Schema::packet();
        Self(IDENTITY.iter().filter_map(|name| schema.find(name)).map(|id| schema.key(id, headers)).collect())
    }

    /// Reads the identity of a packet of a capture, by its number, counted from 1; and its time, if the capture has one for it.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if it has fewer packets.
    pub fn in_capture(path: &Path, number: NonZeroU64) -> Result<(Self, Option<Nanos>), CaptureError> {
        let unread = |why: String| CaptureError::Unread { path: path.display().to_string(), why };
        let mut input = CaptureInput::open(path, None).map_err(|error| CaptureError::Open(Box::new(error)))?;
        let mut frames = Frames::default();
        let mut parser = Parser::new(Tunnel::Outer);
        let mut packets = 0;
        while let Some(frame) = input.reader.next_record().map_err(|error| unread(error.to_string()))? {
            packets += 1;
            if packets == number.get() {
                let time = frames.time(&frame);
                let parsed = parser.parse(LinkType::from_dlt(frame.link), frame.original_len, frame.data);
                return Ok((Self::of_headers(frames.fill(&frame, time, &parsed)), time));
            }
        }
        Err(CaptureError::NoPacket { path: path.display().to_string(), number, packets })
    }

    /// The digest.
    pub fn digest(&self) -> PacketDigest {
        PacketDigest::of(&self.0)
    }
}

impl fmt::Display for PacketIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&packet_text(&self.0))
    }
}

/// A digest of what identifies a packet: the same at each host. It is written as 16 hexadecimal digits.
///
/// ```
/// use queuescope_fleet::journey::PacketDigest;
///
/// let digest: PacketDigest = "00c0ffee00c0ffee".parse()?;
/// assert_eq!(digest.to_string(), "00c0ffee00c0ffee");
/// assert!("4711".parse::<PacketDigest>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketDigest(u64);

impl PacketDigest {
    /// The first 64 bits of SHA-256 over the values of an identity.
    pub(super) fn of(identity: &[u128]) -> Self {
        let mut hash = Sha256::new();
        identity.iter().for_each(|value| hash.update(value.to_le_bytes()));
        let digest: [u8; 32] = hash.finalize().into();
        Self(digest.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }
}

impl fmt::Display for PacketDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for PacketDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_digest = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = u64::from_str_radix(text, 16).ok().filter(|_| is_digest);
        digest.map(Self).ok_or_else(|| {
            format!("'{text}' is not the digest of a packet, which has 16 hexadecimal digits, as fleet why prints it")
        })
    }
}

/// Why a packet is not in a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The capture cannot be opened.
    #[error(transparent)]
    Open(Box<dyn std::error::Error + Send + Sync>),
    /// A part of it cannot be read.
    #[error("{path}: {why}")]
    Unread {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// It has fewer packets.
    #[error("{path}: there is no packet {number}; it has {packets}")]
    NoPacket {
        /// The file.
        path: String,
        /// The number that was wanted.
        number: NonZeroU64,
        /// The number of its packets.
        packets: u64,
    },
}
