//! A host's part of an answer, and its form between hosts.

use super::asked::Asked;
use super::ipc::{IpcError, IpcLimits, Width, frames};
use crate::protocol::Part;
use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use queuescope_log::{Function, GroupPart, Grouping, PartState, State};
use queuescope_recording::query::Parts;
use queuescope_report::format::count;
use queuescope_wire::Distinct;
use std::sync::Arc;

/// Bytes of a key.
const KEY: usize = size_of::<u128>();
/// Bytes of a state.
const STATE: usize = size_of::<State>();
/// The name of the number of matching packets in the metadata of the schema.
const PACKETS: &str = "queuescope.packets";

/// A host's part of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partial {
    /// The groups. Behind the states of the question's functions is that of the number of packets.
    pub groups: Vec<GroupPart>,
    /// The number of matching packets, including those of groups that were left out.
    pub packets: u64,
    /// Records examined.
    pub records: u64,
    /// Groups that were left out because there were too many.
    pub left_out: u64,
    /// What is missing from the records, for people.
    pub notes: Vec<String>,
    /// Why the result is incomplete, if it is.
    pub damage: Option<String>,
}

impl Partial {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { groups, packets, left_out, seen } = parts;
        let mut notes: Vec<_> =
            seen.skipped.iter().map(|note| format!("{} {}", count(note.count), note.meaning)).collect();
        if left_out > 0 {
            notes.push(format!(
                "{} groups were left out, because there were too many: those with the lowest values of the first function. Totals of \
                 other groups of the answer may be too low",
                count(left_out)
            ));
        }
        Self { groups, packets, records: seen.records.unwrap_or(0), left_out, notes, damage: seen.damage }
    }

    /// Its form in an answer to a coordinator.
    ///
    /// # Errors
    /// Returns errors of Arrow, which are not expected.
    pub fn to_part(&self, asked: &Asked) -> Result<Part, ArrowError> {
        Ok(Part {
            groups: self.encode(asked)?,
            records: self.records,
            left_out: self.left_out,
            notes: self.notes.clone(),
            damage: self.damage.clone().unwrap_or_default(),
            complete: None,
            lacks: String::new(),
        })
    }

    /// Reads an agent's answer.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn of_part(part: &Part, asked: &Asked, limits: IpcLimits) -> Result<Self, IpcError> {
        let Part { groups, records, left_out, notes, damage, complete: _, lacks: _ } = part;
        let damage = Some(damage.clone()).filter(|damage| !damage.is_empty());
        let (records, left_out, notes) = (*records, *left_out, notes.clone());
        Ok(Self { records, left_out, notes, damage, ..Self::decode(groups, asked, limits)? })
    }

    /// The groups and the number of packets as an Arrow IPC stream: 16 bytes for each key and 64 for each state, words of 16 bytes with their lowest
    /// byte first; and for states of distinct counts [their bytes](Distinct::to_bytes).
    ///
    /// # Errors
    /// Returns errors of Arrow, which are not expected.
    pub fn encode(&self, asked: &Asked) -> Result<Vec<u8>, ArrowError> {
        let fields = names(asked).into_iter().zip(widths(asked));
        let of_width = |width| match width {
            Width::Bytes(width) => DataType::FixedSizeBinary(width as i32),
            Width::Any => DataType::Binary,
        };
        let fields: Vec<_> = fields.map(|(name, width)| Field::new(name, of_width(width), false)).collect();
        let totals = [(PACKETS.to_owned(), self.packets.to_string())];
        let schema = Arc::new(Schema::new_with_metadata(fields, totals.into()));
        let keys = asked.keys().len();
        let column = |(place, width): (usize, Width)| -> Result<ArrayRef, ArrowError> {
            let Width::Bytes(width) = width else {
                let mut values = BinaryBuilder::new();
                self.groups.iter().for_each(|(_, states)| values.append_value(bytes(&states[place - keys])));
                return Ok(Arc::new(values.finish()));
            };
            let mut values = FixedSizeBinaryBuilder::with_capacity(self.groups.len(), width as i32);
            for (key, states) in &self.groups {
                if place < keys {
                    values.append_value(key[place].to_le_bytes())?;
                } else {
                    values.append_value(bytes(&states[place - keys]))?;
                }
            }
            Ok(Arc::new(values.finish()))
        };
        let columns = widths(asked).enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        writer.write(&RecordBatch::try_new(schema, columns)?)?;
        writer.into_inner()
    }

    /// Reads the groups and the number of packets. All values are checked: they can be [added](super::Merging::add).
    ///
    /// # Errors
    /// Fails if the stream is too long, malformed, the answer to another question, or has values that no records have.
    pub fn decode(bytes: &[u8], asked: &Asked, limits: IpcLimits) -> Result<Self, IpcError> {
        let frames = frames(bytes, limits)?;
        let Some((schema, batches)) = frames.split_first() else { return Err(IpcError::Malformed("it is empty")) };
        schema.check_names(names(asked).iter().map(String::as_str))?;
        let packets = schema.number(PACKETS)?;
        let keys = asked.keys().len();
        let checking = Grouping::new(asked.schema(), asked.keys(), &asked.counted());
        let mut groups = Vec::new();
        for batch in batches {
            let (rows, columns) = batch.columns(widths(asked))?;
            for row in 0..rows {
                let of_keys = columns[..keys].iter().map(|column| column.get(row).map(word));
                let states = columns[keys..].iter().zip(widths(asked).skip(keys));
                let states = states.map(|(column, width)| column.get(row).and_then(|bytes| state(bytes, width)));
                let group = of_keys.collect::<Option<Vec<_>>>().zip(states.collect::<Option<Vec<_>>>());
                let group: Option<GroupPart> =
                    group.filter(|(of_keys, states)| checking.check_part(of_keys, states).is_ok());
                groups.push(group.ok_or(IpcError::Malformed("a group with values that no packets have"))?);
            }
        }
        Ok(Self { groups, packets, ..Self::default() })
    }
}

/// The names of the columns: those of the question, and then the number of packets.
fn names(asked: &Asked) -> Vec<String> {
    let mut names = asked.selection().names(asked.schema());
    names.push("packets".to_owned());
    names
}

/// The widths of the columns.
fn widths(asked: &Asked) -> impl ExactSizeIterator<Item = Width> {
    let of_keys = asked.keys().iter().map(|_| Width::Bytes(KEY));
    let of_functions = asked.functions().iter().map(|function| match function {
        Function::Distinct(_) => Width::Any,
        _ => Width::Bytes(STATE),
    });
    of_keys.chain(of_functions).chain([Width::Bytes(STATE)]).collect::<Vec<_>>().into_iter()
}

/// The form of a state.
fn bytes(state: &PartState) -> Vec<u8> {
    match state {
        PartState::Words(words) => words.map(u128::to_le_bytes).as_flattened().to_vec(),
        PartState::Distinct(distinct) => distinct.to_bytes(),
    }
}

/// A state from its form.
fn state(bytes: &[u8], width: Width) -> Option<PartState> {
    match width {
        Width::Any => Distinct::of_values().read(bytes).ok().map(PartState::Distinct),
        Width::Bytes(_) => {
            let words = [0, 1, 2, 3].map(|place| bytes.get(place * KEY..(place + 1) * KEY).map(word));
            Some(PartState::Words([words[0]?, words[1]?, words[2]?, words[3]?]))
        }
    }
}

fn word(bytes: &[u8]) -> u128 {
    bytes.try_into().map_or(0, u128::from_le_bytes)
}
