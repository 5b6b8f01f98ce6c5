//! Options for keeping packets in a folder, and for derived data.

use queuescope_archive::{Durability, Full, Retention};
use queuescope_log::AttributeId;
use queuescope_wire::ByteCount;

/// How packets are kept in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepOptions {
    /// When a packet counts as kept, and the next one is read.
    pub durability: Durability,
    /// Limit of memory: three eighths are for the latest packets, as much for writing them in Parquet.
    pub memory: ByteCount,
    /// What happens to packets when memory is full because the disk does not keep up.
    pub full: Full,
    /// Which packets to keep, by age and size, when others come; the oldest volumes are removed first.
    pub keep: Retention,
    /// Attributes to index, so that packets with a rare value are found fast.
    pub indexes: Vec<AttributeId>,
}

impl Default for KeepOptions {
    /// A gigabyte of memory; no packet is left out or removed, and a packet counts as kept at once.
    fn default() -> Self {
        Self {
            durability: Durability::Relaxed,
            memory: ByteCount(1_000_000_000),
            full: Full::Wait,
            keep: Retention::default(),
            indexes: Vec::new(),
        }
    }
}

/// What to compute over packets while they are recorded, and to keep with the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Derived {
    /// Named filters, which aggregates can refer to: `web=tcp port 443`.
    pub filters: Vec<String>,
    /// Named aggregates, over all packets or those of a filter: `bytes=sum(length)@web`.
    pub aggregates: Vec<String>,
    /// Named triggers, which fire when an aggregate passes a threshold: `busy=bytes > 100MB@10ms/1s`.
    pub triggers: Vec<String>,
    /// Further definitions, and indexes, from a file.
    pub definitions: Option<DefinitionsFile>,
}

/// A text with filters, aggregates, triggers and indexes, such as a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsFile {
    /// The name of the text in errors.
    pub name: String,
    /// The text in TOML.
    pub text: String,
    /// Values of its parameters, by name.
    pub values: Vec<(String, String)>,
}
