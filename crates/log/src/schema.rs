//! Schemas of records: typed attributes at fixed places.

mod builtin;
mod date;
pub mod departure;
mod key;
mod kind;
mod literal;
pub mod packet;
pub mod queued;
mod read;

pub use date::{DateError, begins_as_date, date_text, parse_date};
pub use key::{Order, Place, Reader};
pub use kind::Kind;

pub(crate) use date::date_length;
pub(crate) use literal::integer;
pub use read::{name_problem, toml_problem};

use std::collections::BTreeMap;

/// The largest record, in bytes.
const MOST_BYTES: usize = 4096;
/// The most attributes of a schema.
const MOST_ATTRIBUTES: usize = 1024;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 64;
/// The most names that an error lists.
const MOST_LISTED: usize = 24;

/// The latest time that files of records can hold, in nanoseconds since 1970: the last one before the year 2262. Later times would exceed the
/// signed 64 bits of times in Arrow and Parquet, and would be read as times before 1970.
pub const LAST_TIME: u64 = 9_214_646_400_000_000_000 - 1;

/// The schema of records: their size and attributes.
///
/// ```
/// use queuescope_log::Schema;
///
/// let text = r#"
///     name = "probe"
///     time = "seen"
///     [[attribute]]
///     name = "seen"
///     kind = "time"
///     [[attribute]]
///     name = "rtt"
///     kind = "u32"
/// "#;
/// let schema = Schema::parse("probe.toml", text)?;
/// assert_eq!((schema.name(), schema.record_size()), ("probe", 12));
/// let rtt = schema.find("rtt").ok_or("unknown attribute")?;
/// let record = [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0];
/// println!("{} is {}", schema.attribute(rtt).name, schema.attribute(rtt).text_of(schema.key(rtt, &record)));
/// assert_eq!(schema.key(rtt, &record), 256);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    text: String,
    name: String,
    doc: String,
    record_size: usize,
    attributes: Vec<Attribute>,
    readers: Vec<Reader>,
    time: Option<AttributeId>,
    sort: Vec<AttributeId>,
    /// Names and aliases.
    names: BTreeMap<String, AttributeId>,
}

/// One value in every record.
///
/// ```
/// use queuescope_log::Schema;
///
/// let schema = Schema::packet();
/// let protocol = schema.attribute(schema.find("protocol").ok_or("unknown attribute")?);
/// assert_eq!(protocol.key_of("TCP"), Ok(6));
/// assert_eq!(protocol.text_of(17), "UDP");
/// println!("{}: {}", protocol.name, protocol.doc);
/// let error = protocol.key_of("TPC").unwrap_err();
/// println!("{error}");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Its kind.
    pub kind: Kind,
    /// Where it is in the record.
    pub place: Place,
    /// Whether it shows bytes of another attribute in another way.
    pub view: bool,
    /// Names of some values, with their keys; letter case does not matter.
    pub values: Vec<(String, u128)>,
    /// Its meaning, for people.
    pub doc: String,
}

/// An attribute of a schema, by its index in [`Schema::attributes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeId(pub u16);

impl Schema {
    /// The TOML that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether records of both have the same layout and the same meaning: all is equal except the texts for people (`doc`, comments)
    /// and the form of the TOML. One of the two may name more values of an attribute, as a later version does.
    pub fn is_compatible(&self, other: &Self) -> bool {
        let Self { text: _, doc: _, name, record_size, attributes, readers: _, time, sort, names: _ } = self;
        let is_same = |(one, other): (&Attribute, &Attribute)| {
            let Attribute { name, aliases, kind, place, view, values, doc: _ } = one;
            let has_all = |more: &[(String, u128)], fewer: &[(String, u128)]| fewer.iter().all(|it| more.contains(it));
            (name, aliases, kind, place, view) == (&other.name, &other.aliases, &other.kind, &other.place, &other.view)
                && (has_all(values, &other.values) || has_all(&other.values, values))
        };
        (name, record_size, time, sort) == (&other.name, &other.record_size, &other.time, &other.sort)
            && attributes.len() == other.attributes.len()
            && attributes.iter().zip(&other.attributes).all(is_same)
    }

    /// Whether records of `other` begin with records of this schema, and have further attributes behind them, as those of a later version do.
    pub fn is_beginning_of(&self, other: &Self) -> bool {
        let is_there = |attribute: &Attribute| {
            let Attribute { name, aliases, kind, place, view, values, doc: _ } = attribute;
            other.find(name).map(|id| other.attribute(id)).is_some_and(|later| {
                (aliases, kind, place, view) == (&later.aliases, &later.kind, &later.place, &later.view)
                    && values.iter().all(|value| later.values.contains(value))
            })
        };
        (&self.name, &self.time, &self.sort) == (&other.name, &other.time, &other.sort)
            && self.record_size < other.record_size
            && self.attributes.iter().all(is_there)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A description of its records, for people.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// The size of a record in bytes.
    pub fn record_size(&self) -> usize {
        self.record_size
    }

    /// All attributes, indexed by [`AttributeId`].
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// All attributes with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (AttributeId, &Attribute)> {
        self.attributes.iter().enumerate().map(|(index, attribute)| (AttributeId(index as u16), attribute))
    }

    /// An attribute of this schema.
    ///
    /// # Panics
    /// Panics if the id belongs to another schema, and this one has fewer attributes.
    pub fn attribute(&self, id: AttributeId) -> &Attribute {
        &self.attributes[usize::from(id.0)]
    }

    /// The attribute of this name or alias.
    pub fn find(&self, name: &str) -> Option<AttributeId> {
        self.names.get(name).copied()
    }

    /// All names and aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The first names, for an error about an unknown name.
    pub(crate) fn listed(&self) -> String {
        let names = self.attributes.iter().map(|attribute| attribute.name.as_str());
        let shown = names.take(MOST_LISTED).collect::<Vec<_>>().join(", ");
        match self.attributes.len().saturating_sub(MOST_LISTED) {
            0 => format!("there are {shown}"),
            more => format!("there are {shown}, and {more} more"),
        }
    }

    /// The attribute with the time of a record, if it has one.
    pub fn time(&self) -> Option<AttributeId> {
        self.time
    }

    /// The attributes by which archives sort records, so that similar records are adjacent.
    pub fn sort(&self) -> &[AttributeId] {
        &self.sort
    }

    /// A reader of an attribute's keys.
    ///
    /// # Panics
    /// Panics if the id belongs to another schema, and this one has fewer attributes.
    pub fn reader(&self, id: AttributeId) -> Reader {
        self.readers[usize::from(id.0)]
    }

    /// The key of an attribute in a record; see [`Reader::key`].
    pub fn key(&self, id: AttributeId, record: &[u8]) -> u128 {
        self.reader(id).key(record)
    }
}

impl Attribute {
    /// Whether it can be compared: every attribute can, except bytes that are too long for a key.
    pub fn is_comparable(&self) -> bool {
        self.place.bits <= 128
    }

    /// The highest key it can have.
    pub fn highest_key(&self) -> u128 {
        low_bits(self.place.bits)
    }
}

/// A mask of the `count` lowest of 128 bits.
pub(crate) fn low_bits(count: u32) -> u128 {
    if count == 0 { 0 } else { u128::MAX >> (128 - count.min(128)) }
}
