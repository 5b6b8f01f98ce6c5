//! Reads schemas that users write in TOML.

use super::kind::{KINDS, Sized};
use super::{Attribute, AttributeId, Kind, LONGEST_NAME, MOST_ATTRIBUTES, MOST_BYTES, Order, Place, Reader, Schema};
use crate::expr::reserved;
use queuescope_text::{Problem, TextError, quoted};
use queuescope_text::{did_you_mean, nearest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The longest text of a schema, in bytes.
const LONGEST_TEXT: usize = 1 << 18;

/// A schema as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: Spanned<String>,
    #[serde(default)]
    doc: String,
    record_size: Option<Spanned<u64>>,
    time: Option<Spanned<String>>,
    #[serde(default)]
    sort: Vec<Spanned<String>>,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    attribute: Vec<Spanned<Written>>,
}

/// An attribute as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    name: Spanned<String>,
    kind: Spanned<String>,
    offset: Option<Spanned<u64>>,
    bit: Option<Spanned<u64>>,
    order: Option<Spanned<Order>>,
    /// The attribute whose bytes it shows in another way.
    view: Option<Spanned<String>>,
    #[serde(default)]
    aliases: Vec<Spanned<String>>,
    #[serde(default)]
    values: BTreeMap<String, Spanned<u64>>,
    #[serde(default)]
    doc: String,
}

impl Schema {
    /// Reads a schema from TOML; `name` names the text in errors. `docs/reference/schemas.md` describes the
    /// format.
    ///
    /// # Errors
    /// Returns what is wrong with it, and where.
    pub fn parse(name: &str, text: &str) -> Result<Self, TextError> {
        let error = |problems| TextError::new(name, text, problems);
        if text.len() > LONGEST_TEXT {
            let problem =
                Problem::new(format!("the schema has {} bytes, and at most {LONGEST_TEXT} are read", text.len()));
            return Err(TextError::new(name, "", vec![problem]));
        }
        let file: File = toml::from_str(text).map_err(|found| error(vec![toml_problem(&found)]))?;
        let mut reading = Reading { order: file.order, ..Reading::default() };
        // Names of schemas do not occur in expressions, so they may have hyphens.
        if let Err(why) = name_problem(&file.name.get_ref().replace('-', "_")) {
            let message = format!("'{}' cannot name a schema: {why}", quoted(file.name.get_ref()));
            reading.problems.push(Problem::new(message).at(file.name.span(), "not possible"));
        }
        if file.attribute.len() > MOST_ATTRIBUTES {
            let message = format!(
                "the schema has {} attributes, and at most {MOST_ATTRIBUTES} are possible",
                file.attribute.len()
            );
            return Err(error(vec![Problem::new(message)]));
        }
        for written in &file.attribute {
            reading.attribute(written);
        }
        reading.check_overlaps();
        let record_size = reading.record_size(file.record_size.as_ref());
        let time = file.time.as_ref().and_then(|time| reading.time(time));
        let sort = file.sort.iter().filter_map(|name| reading.sort(name)).collect();
        if reading.attributes.is_empty() && reading.problems.is_empty() {
            let help = "[[attribute]]\nname = \"length\"\nkind = \"u32\"";
            reading
                .problems
                .push(Problem::new("the schema has no attribute").at(file.name.span(), "this one").help(help));
        }
        if !reading.problems.is_empty() {
            return Err(error(reading.problems));
        }
        let attributes: Vec<_> = reading.attributes.into_iter().map(|(attribute, _)| attribute).collect();
        let readers = attributes.iter().map(|attribute| Reader::new(attribute.kind, attribute.place, record_size));
        Ok(Self {
            text: text.to_owned(),
            name: file.name.into_inner(),
            doc: file.doc,
            record_size,
            readers: readers.collect(),
            attributes,
            time,
            sort,
            names: reading.names.into_iter().map(|(name, (id, _))| (name, id)).collect(),
        })
    }
}

/// A syntax error of TOML as a problem, with the nearest valid name for a wrong key.
pub fn toml_problem(error: &toml::de::Error) -> Problem {
    let message = error.message();
    let quoted_names: Vec<_> = message.split('`').skip(1).step_by(2).collect();
    let help = match quoted_names.split_first() {
        Some((wrong, known)) if message.starts_with("unknown field") => did_you_mean(wrong, known.iter().copied()),
        _ => None,
    };
    Problem::new(message.trim_end()).at(error.span().unwrap_or(0..0), "here").help_if(help)
}

/// A schema that is being read.
#[derive(Default)]
struct Reading {
    order: Order,
    /// With the places where they are written.
    attributes: Vec<(Attribute, Range<usize>)>,
    names: BTreeMap<String, (AttributeId, Range<usize>)>,
    /// The first bit behind the previous attribute that is not a view.
    cursor: u32,
    problems: Vec<Problem>,
}

impl Reading {
    fn attribute(&mut self, written: &Spanned<Written>) {
        let Written { name, kind, order, view, aliases, values, doc, .. } = written.get_ref();
        let id = AttributeId(self.attributes.len() as u16);
        for name in std::iter::once(name).chain(aliases) {
            if self.check_name(name) {
                self.name(name, id);
            }
        }
        let Sized { kind: class, bits } = match Sized::read(kind.get_ref()) {
            Ok(sized) => sized,
            Err(why) => {
                let message = format!("'{}' is not a kind: {why}", quoted(kind.get_ref()));
                let names = ["time", "ipv4", "ipv6", "address", "mac", "bytes16", "size32", "u8", "u16", "u32", "u64"];
                let near = nearest(kind.get_ref(), names.into_iter()).map(|near| format!("did you mean `{near}`? "));
                let help = format!("{}kinds are {KINDS}", near.unwrap_or_default());
                self.problems.push(Problem::new(message).at(kind.span(), "not a kind").help(help));
                return;
            }
        };
        let Some(first) = self.first_bit(written.get_ref(), class, bits) else { return };
        let whole = first % 8 == 0 && bits % 8 == 0;
        let little = order.as_ref().map_or(self.order, |order| *order.get_ref()) == Order::Little;
        let numeric = class.is_number();
        if let Some(order) = order.as_ref().filter(|order| *order.get_ref() == Order::Little && !(whole && numeric)) {
            let message = "only numbers of whole bytes can be little endian";
            self.problems.push(Problem::new(message).at(order.span(), "not here"));
        }
        let order = if little && whole && numeric { Order::Little } else { Order::Big };
        let place = Place { offset: first / 8, bit: (first % 8) as u8, bits, order };
        if class != Kind::Bytes && place.bytes() > 16 {
            let message =
                format!("`{}` touches {} bytes, and at most 16 are read at once", name.get_ref(), place.bytes());
            self.problems.push(Problem::new(message).at(kind.span(), "begin at a whole byte"));
            return;
        }
        let mut attribute = Attribute {
            name: name.get_ref().clone(),
            aliases: aliases.iter().map(|alias| alias.get_ref().clone()).collect(),
            kind: class,
            place,
            view: view.is_some(),
            values: Vec::new(),
            doc: doc.clone(),
        };
        self.values(&mut attribute, values);
        if view.is_none() {
            self.cursor = place.span().1;
        }
        self.attributes.push((attribute, name.span()));
    }

    /// Where an attribute begins, in bits.
    fn first_bit(&mut self, written: &Written, kind: Kind, bits: u32) -> Option<u32> {
        let Written { name, offset, bit, view, .. } = written;
        let base = match (offset, view) {
            (Some(offset), _) if *offset.get_ref() <= MOST_BYTES as u64 => Some(*offset.get_ref() as u32 * 8),
            (Some(offset), _) => {
                let message = format!("`{}` begins behind the largest record, {MOST_BYTES} bytes", name.get_ref());
                self.problems.push(Problem::new(message).at(offset.span(), "too far"));
                return None;
            }
            (None, Some(view)) => Some(self.viewed(view)?),
            (None, None) => None,
        };
        let from = match (bit, base) {
            (Some(bit), _) if *bit.get_ref() > 127 => {
                let message = format!("bit {} of `{}` is out of range", bit.get_ref(), name.get_ref());
                self.problems.push(Problem::new(message).at(bit.span(), "0 to 127"));
                return None;
            }
            (Some(bit), None) => {
                let message = format!("bit {} of what? `{}` has no offset", bit.get_ref(), name.get_ref());
                let help = "give it an `offset` too, or leave `bit` out: it follows the attribute before";
                self.problems.push(Problem::new(message).at(bit.span(), "of which byte?").help(help));
                return None;
            }
            (bit, Some(base)) => base + bit.as_ref().map_or(0, |bit| *bit.get_ref() as u32),
            (None, None) if kind == Kind::Unsigned && !bits.is_multiple_of(8) => self.cursor,
            (None, None) => self.cursor.next_multiple_of(8),
        };
        if kind != Kind::Unsigned && from % 8 != 0 {
            let message = format!("`{}` begins within a byte, which only unsigned numbers can", name.get_ref());
            self.problems.push(Problem::new(message).at(written.kind.span(), "not an unsigned number"));
            return None;
        }
        if from + bits > MOST_BYTES as u32 * 8 {
            let end = (from + bits).div_ceil(8);
            let message = format!("`{}` ends at byte {end}, and a record has at most {MOST_BYTES}", name.get_ref());
            self.problems.push(Problem::new(message).at(name.span(), "too large a record"));
            return None;
        }
        Some(from)
    }

    /// Where the attribute begins of which another is a view.
    fn viewed(&mut self, view: &Spanned<String>) -> Option<u32> {
        let found = self.read(view.get_ref());
        if let Some((attribute, _)) = found {
            return Some(attribute.place.span().0);
        }
        let message = format!("no attribute before this one is named '{}'", quoted(view.get_ref()));
        let help = did_you_mean(view.get_ref(), self.names.keys().map(String::as_str));
        self.problems.push(Problem::new(message).at(view.span(), "unknown name").help_if(help));
        None
    }

    /// The attribute of this name, if it could be read.
    fn read(&self, name: &str) -> Option<&(Attribute, Range<usize>)> {
        self.attributes
            .iter()
            .find(|(attribute, _)| attribute.name == name || attribute.aliases.iter().any(|a| a == name))
    }

    fn values(&mut self, attribute: &mut Attribute, values: &BTreeMap<String, Spanned<u64>>) {
        for (name, value) in values {
            let key = u128::from(*value.get_ref());
            let twice = attribute.values.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            let message = if attribute.kind != Kind::Unsigned {
                "only values of unsigned numbers can have names".to_owned()
            } else if let Err(why) = name_problem(name) {
                format!("'{}' cannot name a value: {why}", quoted(name))
            } else if reserved::is_operator(name) {
                format!("'{name}' cannot name a value: it is a word of expressions")
            } else if twice {
                format!("two values are named '{name}', ignoring case")
            } else if key > attribute.highest_key() {
                format!("{key} is more than `{}` can be: at most {}", attribute.name, attribute.highest_key())
            } else {
                attribute.values.push((name.clone(), key));
                continue;
            };
            self.problems.push(Problem::new(message).at(value.span(), "this value"));
        }
    }

    fn check_name(&mut self, name: &Spanned<String>) -> bool {
        let text = name.get_ref();
        let problem = match name_problem(text) {
            Err(why) => Problem::new(format!("'{}' cannot name an attribute: {why}", quoted(text))),
            Ok(()) if reserved::is_reserved(text) => {
                let message = format!("'{text}' cannot name an attribute: it is a word of expressions");
                Problem::new(message).help(format!("`{text}_` or another name"))
            }
            Ok(()) => return true,
        };
        self.problems.push(problem.at(name.span(), "not possible"));
        false
    }

    fn name(&mut self, name: &Spanned<String>, id: AttributeId) {
        if let Some((_, first)) = self.names.get(name.get_ref()) {
            let problem = Problem::new(format!("two attributes are named '{}'", name.get_ref()));
            self.problems.push(problem.at(name.span(), "again").at(first, "first here"));
            return;
        }
        self.names.insert(name.get_ref().clone(), (id, name.span()));
    }

    /// Reports attributes that share bits without being views.
    fn check_overlaps(&mut self) {
        let mut own: Vec<_> = self.attributes.iter().filter(|(attribute, _)| !attribute.view).collect();
        own.sort_by_key(|(attribute, _)| attribute.place.span());
        // The one that reaches furthest so far.
        let mut furthest: Option<&(Attribute, Range<usize>)> = None;
        for each in own {
            let (first, end) = each.0.place.span();
            if let Some(before) = furthest.filter(|before| before.0.place.span().1 > first) {
                let (low, high) = (before.0.place, each.0.place);
                let message = format!(
                    "`{}` (bytes {} to {}) overlaps `{}` (bytes {} to {})",
                    each.0.name,
                    high.offset,
                    high.end() - 1,
                    before.0.name,
                    low.offset,
                    low.end() - 1
                );
                let help =
                    format!("move it, or if it shows the same bytes in another way, view = \"{}\"", before.0.name);
                self.problems.push(Problem::new(message).at(&each.1, "this").at(&before.1, "and this").help(help));
            }
            if furthest.is_none_or(|before| before.0.place.span().1 < end) {
                furthest = Some(each);
            }
        }
    }

    fn record_size(&mut self, written: Option<&Spanned<u64>>) -> usize {
        let last = self.attributes.iter().max_by_key(|(attribute, _)| attribute.place.end());
        let needed = last.map_or(0, |(attribute, _)| attribute.place.end() as usize);
        let Some(written) = written else { return needed };
        let size = *written.get_ref();
        if size > MOST_BYTES as u64 {
            let message = format!("a record of {size} bytes is too large: at most {MOST_BYTES}");
            self.problems.push(Problem::new(message).at(written.span(), "too large"));
        } else if let Some((attribute, span)) = last.filter(|_| size < needed as u64) {
            let message = format!("`{}` ends at byte {needed}, and a record has {size}", attribute.name);
            self.problems.push(Problem::new(message).at(written.span(), "too small").at(span, "for this"));
        }
        size.min(MOST_BYTES as u64) as usize
    }

    fn time(&mut self, written: &Spanned<String>) -> Option<AttributeId> {
        let (id, kind, span) = self.named(written)?;
        if kind == Kind::Time {
            return Some(id);
        }
        let message =
            format!("`{}` is {}, and a record's time must have the kind `time`", written.get_ref(), kind.describe());
        self.problems.push(Problem::new(message).at(written.span(), "not a time").at(span, "kind = \"time\"?"));
        None
    }

    /// The attribute to sort by.
    fn sort(&mut self, written: &Spanned<String>) -> Option<AttributeId> {
        let (id, _, span) = self.named(written)?;
        if self.read(written.get_ref()).is_some_and(|(attribute, _)| attribute.is_comparable()) {
            return Some(id);
        }
        let message = format!("`{}` has more than 16 bytes, which have no order", written.get_ref());
        self.problems.push(Problem::new(message).at(written.span(), "cannot be sorted by").at(span, "too long"));
        None
    }

    /// The attribute of a name, its kind, and where it is written; `None` if it could not be read.
    fn named(&mut self, written: &Spanned<String>) -> Option<(AttributeId, Kind, Range<usize>)> {
        let name = written.get_ref();
        let Some((id, _)) = self.names.get(name) else {
            let help = did_you_mean(name, self.names.keys().map(String::as_str));
            let message = format!("no attribute is named '{}'", quoted(name));
            self.problems.push(Problem::new(message).at(written.span(), "unknown name").help_if(help));
            return None;
        };
        let (attribute, span) = self.read(name)?;
        Some((*id, attribute.kind, span.clone()))
    }
}

/// Why a text is not a valid name.
pub fn name_problem(name: &str) -> Result<(), String> {
    let head = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !head || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') {
        return Err("a name is letters, digits and underscores, and does not begin with a digit".to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("it is longer than {LONGEST_NAME} letters"));
    }
    Ok(())
}
