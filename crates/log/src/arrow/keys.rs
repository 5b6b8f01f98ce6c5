//! Keys of an attribute from the values of an Arrow column.

use super::column::{Column, ColumnError, Form};
use crate::columns::Keys;
use crate::schema::{AttributeId, Kind, Reader, Schema};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StringArray};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Reads the keys of an attribute from the column that holds its bytes.
///
/// ```
/// use queuescope_log::arrow::{Column, KeyReader};
/// use queuescope_log::{Schema, departure};
///
/// let schema = Schema::departure();
/// let length = schema.find("length").ok_or("unknown attribute")?;
/// let values = Column::new(length, schema).array(&[0; departure::SIZE], departure::SIZE);
/// let mut reader = KeyReader::new(length, schema).ok_or("it is in several columns")?;
/// assert_eq!(reader.keys(&values)?.get(0), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KeyReader {
    stored: AttributeId,
    column: Column,
    /// How the key follows from that of the column's attribute, if it is a view of it.
    view: Option<View>,
    is_narrow: bool,
    /// The last dictionary, and its keys.
    known: Option<(StringArray, Arc<[u128]>)>,
}

/// An attribute that is part of another one.
#[derive(Debug)]
struct View {
    stored: Reader,
    own: Reader,
    /// Bytes of a record, of which only the stored attribute is used.
    record: Vec<u8>,
    /// The last keys: of the stored attribute, and of this one.
    last: Option<(u128, u128)>,
}

impl KeyReader {
    /// A reader of an attribute; `None` if its bytes are in several columns, or if it has no key.
    ///
    /// # Panics
    /// Panics if the attribute belongs to another schema.
    pub fn new(id: AttributeId, schema: &Schema) -> Option<Self> {
        let attribute = schema.attribute(id);
        let bytes = attribute.place.offset..attribute.place.end();
        let mut stored = schema
            .iter()
            .filter(|(_, other)| !other.view && other.place.offset < bytes.end && bytes.start < other.place.end());
        // Attributes of a few bits share bytes with others.
        let stored = match attribute.view {
            false => id,
            true => stored.next().filter(|_| stored.next().is_none())?.0,
        };
        let holds = schema.attribute(stored);
        if !attribute.is_comparable() || !holds.is_comparable() {
            return None;
        }
        let view = (stored != id).then(|| View {
            stored: schema.reader(stored),
            own: schema.reader(id),
            record: vec![0; schema.record_size()],
            last: None,
        });
        let is_narrow = attribute.place.bits <= 64;
        Some(Self { stored, column: Column::new(stored, schema), view, is_narrow, known: None })
    }

    /// The attribute whose column it reads.
    pub fn stored(&self) -> AttributeId {
        self.stored
    }

    /// The key of each value of the column. Texts may be a dictionary, or one for each record.
    ///
    /// # Errors
    /// Fails if the column is of another type, or has values that the attribute cannot have.
    pub fn keys(&mut self, array: &dyn Array) -> Result<Keys, ColumnError> {
        let column = &self.column;
        let is_plain_text = column.check(array)?;
        let reader = column.reader;
        macro_rules! narrow {
            ($kind:ty, $bits:ty) => {{
                let values = array.as_primitive::<$kind>().values();
                let bits = |value: &<$kind as ArrowPrimitiveType>::Native| <$bits>::from_ne_bytes(value.to_ne_bytes());
                if matches!(column.attribute.kind, Kind::Signed | Kind::Float) {
                    let low = crate::schema::low_bits(column.attribute.place.bits);
                    let key = |value| reader.key_of_bits(u128::from(bits(value)) & low) as u64;
                    self.narrow(values.iter().map(key).collect())
                } else {
                    let highest = column.attribute.highest_key();
                    let all = values.iter().fold(0, |all, value| all | u64::from(bits(value)));
                    if u128::from(all) > highest {
                        return Err(column.wrong("has numbers of too many bits".to_owned()));
                    }
                    self.narrow(values.iter().map(|value| u64::from(bits(value))).collect())
                }
            }};
        }
        Ok(super::column::primitive!(
            column.form,
            narrow,
            match column.form {
                Form::Bool => {
                    let values = array.as_boolean().values();
                    self.narrow(values.iter().map(u64::from).collect())
                }
                Form::Text if is_plain_text => {
                    let texts = array.as_string::<i32>();
                    let (mut last, mut keys) = ("", Vec::with_capacity(texts.len()));
                    for text in texts.iter().flatten() {
                        // Records are sorted so that equal values are often adjacent.
                        let key = match keys.last() {
                            Some(key) if last == text => *key,
                            _ => column.key_of(text)?,
                        };
                        last = text;
                        keys.push(key);
                    }
                    self.wide(keys)
                }
                Form::Text => {
                    let texts = array.as_dictionary::<Int32Type>();
                    let keys = self.dictionary(texts.values().as_string::<i32>())?;
                    let codes: Vec<_> = texts.keys().values().iter().map(|code| *code as u32).collect();
                    if codes.iter().any(|code| *code as usize >= keys.len()) {
                        return Err(self.column.wrong("refers to texts that are not there".to_owned()));
                    }
                    Keys::Coded { codes, keys }
                }
                _ => {
                    let bytes = array.as_fixed_size_binary();
                    let key = |bytes: &[u8]| bytes.iter().fold(0, |key, byte| key << 8 | u128::from(*byte));
                    self.wide(bytes.iter().map(|bytes| key(bytes.unwrap_or_default())).collect())
                }
            }
        ))
    }

    /// The keys of a dictionary. Batches of a column often share theirs, so the last one is kept.
    fn dictionary(&mut self, texts: &StringArray) -> Result<Arc<[u128]>, ColumnError> {
        let is_same = |known: &StringArray| {
            let (one, other) = (known.offsets(), texts.offsets());
            known.values().as_ptr() == texts.values().as_ptr()
                && one.as_ptr() == other.as_ptr()
                && one.len() == other.len()
        };
        if let Some((of, keys)) = &self.known
            && is_same(of)
        {
            return Ok(Arc::clone(keys));
        }
        let keys = texts.iter().map(|text| self.column.key_of(text.unwrap_or_default()));
        let mut keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if let Some(view) = &mut self.view {
            keys.iter_mut().for_each(|key| *key = view.key(*key));
        }
        let keys: Arc<[u128]> = keys.into();
        self.known = Some((texts.clone(), Arc::clone(&keys)));
        Ok(keys)
    }

    fn narrow(&mut self, mut keys: Vec<u64>) -> Keys {
        if let Some(view) = &mut self.view {
            keys.iter_mut().for_each(|key| *key = view.key(u128::from(*key)) as u64);
        }
        Keys::Narrow(keys)
    }

    fn wide(&mut self, mut keys: Vec<u128>) -> Keys {
        if let Some(view) = &mut self.view {
            keys.iter_mut().for_each(|key| *key = view.key(*key));
        }
        if self.is_narrow { Keys::Narrow(keys.into_iter().map(|key| key as u64).collect()) } else { Keys::Wide(keys) }
    }
}

impl View {
    /// The key of this attribute, from that of the stored one.
    fn key(&mut self, stored: u128) -> u128 {
        match self.last {
            Some((of, key)) if of == stored => key,
            _ => {
                self.stored.write(&mut self.record, stored);
                let key = self.own.key(&self.record);
                self.last = Some((stored, key));
                key
            }
        }
    }
}

impl Column {
    /// The key of the value with this text. IPv4 addresses are common, so they have a fast path.
    pub(super) fn key_of(&self, text: &str) -> Result<u128, ColumnError> {
        let address = || ipv4(text.as_bytes());
        let fast = match self.attribute.kind {
            Kind::Ipv4 => address().map(|address| u128::from(address.to_bits())),
            Kind::Address => address().map(|address| address.to_ipv6_mapped().to_bits()),
            _ => None,
        };
        match fast {
            Some(key) => Ok(key),
            None => self.attribute.key_of(text).map_err(|why| self.wrong(format!("is wrong: {why}"))),
        }
    }
}

/// The address with this text, if it is an IPv4 address in its usual form.
fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let (mut address, mut part, mut digits, mut dots) = (0u32, 0u32, 0, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' if digits < 3 && !(digits > 0 && part == 0) => {
                part = part * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && part < 256 && dots < 3 => {
                address = address << 8 | part;
                (part, digits, dots) = (0, 0, dots + 1);
            }
            _ => return None,
        }
    }
    (digits > 0 && part < 256 && dots == 3).then(|| Ipv4Addr::from_bits(address << 8 | part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn addresses_are_those_of_the_standard_library(text in "[0-9]{0,4}(\\.[0-9]{0,4}){2,4}", bits in any::<u32>()) {
            prop_assert_eq!(ipv4(text.as_bytes()), text.parse().ok(), "{}", text);
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(ipv4(address.to_string().as_bytes()), Some(address));
        }
    }
}
