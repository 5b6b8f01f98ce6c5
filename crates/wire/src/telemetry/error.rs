//! What can be wrong with reports and headers.

/// Why a report cannot be read. `at` is an offset in the payload of the datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MalformedReport {
    /// The payload ends within the group header.
    #[error("the group header of telemetry reports has 8 bytes, but the payload has only {bytes}")]
    CutGroup {
        /// Bytes of the payload.
        bytes: usize,
    },
    /// The version is not supported.
    #[error(
        "telemetry reports of version {version} cannot be read, only those of version 2: \
         check the port, or configure the switch to send version 2"
    )]
    Version {
        /// The version in the group header.
        version: u8,
    },
    /// There is no report behind the group header.
    #[error("there is no telemetry report behind the group header")]
    NoReport,
    /// The payload ends within the first word of a report.
    #[error("the first word of the telemetry report at byte {at} has 4 bytes, but only {bytes} are left")]
    CutHeader {
        /// Where the report starts.
        at: usize,
        /// Bytes that are left.
        bytes: usize,
    },
    /// A report is longer than what is left of the payload.
    #[error("the telemetry report at byte {at} states {stated} bytes behind its first word, but only {bytes} are left")]
    CutReport {
        /// Where the report starts.
        at: usize,
        /// Bytes behind its first word, as it states them. A report up to the end of the payload has at least 1020.
        stated: usize,
        /// Bytes that are left.
        bytes: usize,
    },
    /// The metadata are longer than their report.
    #[error(
        "the telemetry report at byte {at} has {bytes} bytes behind its first word: \
         too few for 8 bytes and {metadata} words of metadata"
    )]
    MetadataTooLong {
        /// Where the report starts.
        at: usize,
        /// MD Length, in words of 4 bytes.
        metadata: usize,
        /// Bytes behind the first word of the report.
        bytes: usize,
    },
    /// There are fewer metadata than the bitmap states.
    #[error("RepMdBits of the telemetry report at byte {at} need {needed} words of metadata, but it has {metadata}")]
    MetadataTooShort {
        /// Where the report starts.
        at: usize,
        /// MD Length, in words of 4 bytes.
        metadata: usize,
        /// Words that the bitmap needs.
        needed: usize,
    },
    /// A part of a report is longer than what is left of the report.
    #[error(
        "the part (TLV) at byte {at} of a telemetry report is longer than the {bytes} bytes that are left of the report"
    )]
    CutTlv {
        /// Where the part starts.
        at: usize,
        /// Bytes that are left of the report.
        bytes: usize,
    },
}

/// Why the INT headers of a packet cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MalformedInt {
    /// The captured bytes end before or within the shim header.
    #[error("the captured bytes end before the end of the INT shim header")]
    CutShim,
    /// The captured bytes end within the metadata header.
    #[error("the captured bytes end within the INT metadata header: it has 12 bytes, but only {bytes} are left")]
    CutHeader {
        /// Bytes that are left.
        bytes: usize,
    },
    /// The shim's length is too short for the header.
    #[error("the INT shim header states {words} words, but the INT metadata header alone has 3")]
    TooShort {
        /// The length in words of 4 bytes.
        words: usize,
    },
    /// The headers are longer than the packet, by its own length.
    #[error("the INT headers would end at byte {end}, but the packet ends at byte {packet}: are these INT headers?")]
    TooLong {
        /// Offset of the end of the headers in the frame.
        end: usize,
        /// Offset of the end of the packet in the frame.
        packet: usize,
    },
    /// The version is not supported.
    #[error("INT metadata headers of version {version} cannot be read, only those of version 2")]
    Version {
        /// The version in the header.
        version: u8,
    },
    /// The length of a hop's metadata is too short for its instructions.
    #[error("the INT instructions need {needed} words at each hop, but the header states {hop_words}")]
    HopTooShort {
        /// Hop ML, in words of 4 bytes.
        hop_words: usize,
        /// Words that the instructions need.
        needed: usize,
    },
    /// The length of the stack is not that of whole hops.
    #[error(
        "the INT metadata stack has {stack_words} words, which is not a number of hops with {hop_words} words each \
         and {source_only} words of the source"
    )]
    Stack {
        /// The length of the stack, in words of 4 bytes.
        stack_words: usize,
        /// Hop ML, in words of 4 bytes.
        hop_words: usize,
        /// Words that only the source adds.
        source_only: usize,
    },
}
