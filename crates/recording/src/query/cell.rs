//! Values and their forms as text, CSV and JSON.

use super::load::{Loaded, moments};
use super::select::{Groups, Selection};
use queuescope_log::{Attribute, AttributeId, Function, Group, Kind, Number, Schema, date_text};
use queuescope_wire::{Distinct, Nanos};
use serde_json::Value;

/// A value, with what is needed to format it.
pub(super) enum Cell<'a> {
    Key(&'a Attribute, u128),
    /// A number of packets.
    Count(Number),
    /// A number of distinct values: exact, or an estimate.
    Distinct(Number),
    /// A sum, or another result of a function.
    Number(Number),
    /// A point in time, and the time that it counts from in text; `None`: it is a date.
    Time(u64, Option<u64>),
    /// The name of a flow.
    Name(&'a str),
    /// Bytes that cannot be compared.
    Bytes(&'a [u8]),
    /// A function of no packets; the flag says whether its column has numbers.
    Nothing(bool),
}

/// How values of records are shown.
#[derive(Debug)]
pub(super) struct Values<'a> {
    schema: &'a Schema,
    /// The input, if it is one: its points in time count from its first packet, and flows may have names.
    loaded: Option<&'a Loaded>,
    /// Attributes that are points in time; other times are durations.
    moments: Vec<AttributeId>,
}

impl<'a> Values<'a> {
    /// Values of one input.
    pub fn of(loaded: &'a Loaded) -> Self {
        let schema = loaded.held.schema();
        Self { schema, loaded: Some(loaded), moments: moments(schema) }
    }

    /// Values of several inputs with records of a schema: points in time are dates.
    pub fn of_several(schema: &'a Schema) -> Self {
        Self { schema, loaded: None, moments: moments(schema) }
    }

    /// An attribute of a record.
    pub fn of_record(&self, id: AttributeId, record: &'a [u8]) -> Cell<'a> {
        let attribute = self.schema.attribute(id);
        if attribute.is_comparable() {
            self.of_key(id, self.schema.key(id, record))
        } else {
            Cell::Bytes(&record[attribute.place.offset as usize..attribute.place.end() as usize])
        }
    }

    fn of_key(&self, id: AttributeId, key: u128) -> Cell<'a> {
        if let Some(name) = self.loaded.and_then(|loaded| loaded.flow(id, key)) {
            return Cell::Name(name);
        }
        match u64::try_from(key) {
            Ok(at) if self.moments.contains(&id) => Cell::Time(at, self.loaded.map(|loaded| loaded.first.0)),
            _ => Cell::Key(self.schema.attribute(id), key),
        }
    }

    /// A minimum or a maximum is a value of its attribute.
    fn of_function(&self, value: Number, function: &Function) -> Cell<'a> {
        match (function, value) {
            (Function::Min(id) | Function::Max(id), Number::Unsigned(key)) => self.of_key(*id, key),
            (Function::Count, _) => Cell::Count(value),
            (Function::Distinct(_), _) => Cell::Distinct(value),
            _ => Cell::Number(value),
        }
    }

    /// The row of a group, or of all `packets` packets, which have no keys.
    pub fn of_group(&self, selection: &Selection, (keys, values): &Group, packets: u64) -> Vec<Cell<'a>> {
        let of_keys = match selection {
            Selection::Groups(Groups { keys, .. }) => keys.as_slice(),
            Selection::All(_) | Selection::Packets(..) => &[],
        };
        let of_keys = of_keys.iter().zip(keys).map(|((_, by), key)| self.of_key(by.attribute(), *key));
        let cell = |((_, function), value): (&(String, Function), &Number)| match function {
            Function::Min(id) | Function::Max(id) if packets == 0 => {
                let is_name = self.loaded.is_some_and(|loaded| loaded.flow(*id, 0).is_some());
                Cell::Nothing(!is_name && is_number(self.schema.attribute(*id).kind))
            }
            Function::Mean(_) | Function::Deviation(_) if packets == 0 => Cell::Nothing(true),
            _ => self.of_function(*value, function),
        };
        of_keys.chain(selection.functions().iter().zip(values).map(cell)).collect()
    }
}

impl Cell<'_> {
    /// The text for people.
    pub fn text(&self) -> String {
        match self {
            Self::Key(attribute, key) => attribute.text_of(*key),
            Self::Time(at, Some(first)) => since(*at, *first),
            Self::Time(at, None) => date_text(Nanos(*at)),
            Self::Name(name) => printable(name),
            Self::Distinct(number) if is_estimate(*number) => format!("~{}", Self::Count(*number).text()),
            Self::Number(number) | Self::Count(number) | Self::Distinct(number) => match number {
                Number::Unsigned(number) => number.to_string(),
                Number::Signed(number) => number.to_string(),
                Number::Float(number) => format!("{number:.3}"),
            },
            Self::Bytes(bytes) => hex(bytes),
            Self::Nothing(_) => "-".to_owned(),
        }
    }

    /// Whether it is set to the right.
    pub fn is_number(&self) -> bool {
        match self {
            Self::Key(attribute, _) => is_number(attribute.kind),
            Self::Number(_) | Self::Count(_) | Self::Distinct(_) | Self::Time(..) => true,
            Self::Nothing(is_number) => *is_number,
            Self::Bytes(_) | Self::Name(_) => false,
        }
    }

    /// The JSON form.
    pub fn json(&self) -> Value {
        match self {
            Self::Key(attribute, key) if is_number(attribute.kind) => {
                let value = Number::of_key(attribute, *key);
                if attribute.place.bits > EXACT_BITS { decimal(value) } else { number(value) }
            }
            Self::Key(attribute, key) => attribute.text_of(*key).into(),
            Self::Count(value) | Self::Distinct(value) => number(*value),
            Self::Number(value) => decimal(*value),
            Self::Time(at, _) => at.to_string().into(),
            Self::Name(name) => (*name).into(),
            Self::Bytes(bytes) => hex(bytes).into(),
            Self::Nothing(_) => Value::Null,
        }
    }

    /// The CSV form: numbers without units.
    pub fn plain(&self) -> String {
        let number = match self {
            Self::Key(attribute, key) if is_number(attribute.kind) => Some(Number::of_key(attribute, *key)),
            Self::Count(number) | Self::Distinct(number) | Self::Number(number) => Some(*number),
            _ => None,
        };
        // Most cells are whole numbers.
        match number {
            Some(Number::Unsigned(number)) => return number.to_string(),
            Some(Number::Signed(number)) => return number.to_string(),
            _ => {}
        }
        match self.json() {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

/// Whether a number of distinct values is an estimate.
pub(super) fn is_estimate(distinct: Number) -> bool {
    matches!(distinct, Number::Unsigned(count) if count > Distinct::EXACT_VALUES.into())
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Size | Kind::Time)
}

/// The widest integers that are JSON numbers: readers that take them for doubles have these exactly.
const EXACT_BITS: u32 = 53;

/// An integer of at most [`EXACT_BITS`], or a fraction, as a JSON number.
fn number(number: Number) -> Value {
    let exact = match number {
        Number::Unsigned(number) => u64::try_from(number).ok().map(Value::from),
        Number::Signed(number) => i64::try_from(number).ok().map(Value::from),
        Number::Float(number) => Some(Value::from(number)),
    };
    exact.unwrap_or_else(|| decimal(number))
}

/// An integer as a string of its digits; a fraction as a JSON number.
fn decimal(number: Number) -> Value {
    match number {
        Number::Unsigned(number) => number.to_string().into(),
        Number::Signed(number) => number.to_string().into(),
        Number::Float(number) => Value::from(number),
    }
}

/// A name from a file, with escapes so that it cannot control the terminal.
fn printable(name: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escaped).collect()
}

/// Seconds since the first packet.
fn since(at: u64, first: u64) -> String {
    let (sign, apart) = if at < first { ("-", first - at) } else { ("", at - first) };
    format!("{sign}{}.{:09}s", apart / 1_000_000_000, apart % 1_000_000_000)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
