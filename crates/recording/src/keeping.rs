//! How packets are kept in a folder, and what is worked out of them.

use queuescope_archive::{Durability, Full, Retention};
use queuescope_log::AttributeId;
use queuescope_wire::ByteCount;

/// How packets are kept in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keeping {
    /// When a packet counts as kept, and the next is read.
    pub durability: Durability,
    /// Memory at most: three eighths of it for packets that came last, as much for writing them in Parquet.
    pub memory: ByteCount,
    /// What becomes of packets when memory is full, since the disk does not keep up.
    pub full: Full,
    /// Which packets stay, by age and size, when others come; the oldest volumes go first.
    pub keep: Retention,
    /// Attributes to make indexes of, so that few packets with a value are found fast among many.
    pub indexes: Vec<AttributeId>,
}

impl Default for Keeping {
    /// A gigabyte of memory; no packet is left out or taken away, and one counts as kept at once.
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

/// What is worked out of packets while they are recorded, and kept with the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Derived {
    /// Filters by a name, which aggregates can be of: `web=tcp port 443`.
    pub filters: Vec<String>,
    /// Aggregates by a name, of all packets or of a filter's: `bytes=sum(length)@web`.
    pub aggregates: Vec<String>,
    /// Triggers by a name, which fire when an aggregate is so: `busy=bytes > 100MB@10ms/1s`.
    pub triggers: Vec<String>,
    /// More of all that, and indexes, as a file has them.
    pub definitions: Option<DefinitionsFile>,
}

/// A text with filters, aggregates, triggers and indexes, such as a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsFile {
    /// What errors call it.
    pub name: String,
    /// What it says, in TOML.
    pub text: String,
    /// Values of its parameters, by their names.
    pub values: Vec<(String, String)>,
}
