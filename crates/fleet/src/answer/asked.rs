//! A question: from its text to what is computed.

use super::partial::Partial;
use crate::protocol::{QueryRequest, Question};
use queuescope_ingest::{ExpressionError, expression};
use queuescope_log::{Dnf, Function, GroupKey, Schema, TextError};
use queuescope_recording::query::{Groups, PartLimits, PartQuestion, Records, SelectOptions, Selection, parts};
use std::io;

/// The most bytes of each text of a question.
const MOST_TEXT: usize = 1 << 16;
/// The most columns of an answer.
const MOST_COLUMNS: usize = 64;

/// A question as people write it. Empty texts have the meaning of options that are not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Texts<'a> {
    /// Which packets count: `tcp and length > 1000B`.
    pub expression: &'a str,
    /// The functions over them: `count,sum(length)`.
    pub select: &'a str,
    /// What packets of a group have in common: `dst_ip,ts/100ms`.
    pub group: &'a str,
    /// Only this many groups: those with the highest values of the first function.
    pub top: Option<u64>,
}

/// Which records count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Records must have this time or a later one, in nanoseconds since 1970,
    pub from: u64,
    /// and a time before this one; `u64::MAX` means no end.
    pub to: u64,
    /// Records must have a position before this one, as [`Records`] count positions.
    pub before: Option<u64>,
}

/// A question about records of a schema, without its extent.
#[derive(Debug)]
pub struct Asked {
    schema: Schema,
    expression: Dnf,
    selection: Selection,
    keys: Vec<GroupKey>,
    functions: Vec<Function>,
}

/// Why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The expression is invalid. The error points at the place in its text.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The functions or the groups are invalid. The error points at the place in their text.
    #[error(transparent)]
    Selection(#[from] TextError),
    /// It selects attributes of packets.
    #[error(
        "a query of several hosts computes functions, and packets stay on their hosts: select functions (--select \
         'count,sum(length)'), or group packets (--group dst_ip)"
    )]
    Packets,
    /// No host has such records.
    #[error(
        "hosts have no records of `{name}`: there are packet (captured packets) and queued (packets that went through a queue)"
    )]
    Schema {
        /// The schema of the question.
        name: String,
    },
    /// A text is too long.
    #[error("the text of a question has {bytes} bytes; at most {MOST_TEXT} are read")]
    Length {
        /// Its length.
        bytes: usize,
    },
    /// The answer has too many columns.
    #[error("the answer has {columns} columns; at most {MOST_COLUMNS} are possible")]
    Columns {
        /// Their number.
        columns: usize,
    },
}

/// The schema of the records that a question is about.
pub fn schema_name(request: &QueryRequest) -> &str {
    if request.schema.is_empty() { Schema::packet().name() } else { &request.schema }
}

impl Asked {
    /// Parses a question.
    ///
    /// Intervals of time, such as `ts/10ms`, count from 1970 for all hosts alike.
    ///
    /// # Errors
    /// Returns what is wrong with it, shown in its text.
    pub fn new(texts: &Texts<'_>, schema: &Schema) -> Result<Self, AskError> {
        let Texts { expression: which, select, group, top } = *texts;
        if let Some(text) = [which, select, group].iter().find(|text| text.len() > MOST_TEXT) {
            return Err(AskError::Length { bytes: text.len() });
        }
        let given = |text: &str| (!text.trim().is_empty()).then(|| text.to_owned());
        let mut options = SelectOptions::default();
        options.select = given(select);
        options.group = given(group);
        options.top = top.map(|top| usize::try_from(top).unwrap_or(usize::MAX));
        let expression = expression(schema, which)?;
        let selection = Selection::from_options(&options, schema)?;
        let keys: Vec<_> = match &selection {
            Selection::Packets(..) => return Err(AskError::Packets),
            Selection::All(_) => Vec::new(),
            Selection::Groups(Groups { keys, .. }) => keys.iter().map(|(_, key)| *key).collect(),
        };
        let functions: Vec<_> = selection.functions().iter().map(|(_, function)| function.clone()).collect();
        let columns = keys.len() + functions.len();
        if columns > MOST_COLUMNS {
            return Err(AskError::Columns { columns });
        }
        Ok(Self { schema: schema.clone(), expression, selection, keys, functions })
    }

    /// Parses a question to an agent.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_question(question: &Question, schema: &Schema) -> Result<(Self, Extent), AskError> {
        let Question { expression, select, group, before, from, to, .. } = question;
        let extent = Extent { from: from.unwrap_or(0), to: to.unwrap_or(u64::MAX), before: *before };
        // All groups are needed: those with the highest values of one host may not be those of all.
        Ok((Self::new(&Texts { expression, select, group, top: None }, schema)?, extent))
    }

    /// Parses a question to a coordinator.
    ///
    /// # Errors
    /// As [`new`](Self::new); also if hosts have no records of its schema.
    pub fn of_request(request: &QueryRequest) -> Result<Self, AskError> {
        let QueryRequest { expression, select, group, top, .. } = request;
        let schema = match schema_name(request) {
            name if name == Schema::packet().name() => Schema::packet(),
            name if name == Schema::queued().name() => Schema::queued(),
            name => return Err(AskError::Schema { name: name.to_owned() }),
        };
        Self::new(&Texts { expression, select, group, top: *top }, schema)
    }

    /// The schema of the records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns of the answer.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What packets of a group have in common.
    pub fn keys(&self) -> &[GroupKey] {
        &self.keys
    }

    /// The functions over each group.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The number of groups to return.
    pub(super) fn top(&self) -> Option<usize> {
        match &self.selection {
            Selection::Groups(groups) => groups.top,
            Selection::All(_) | Selection::Packets(..) => None,
        }
    }

    /// The functions, and then the number of packets, which each part has for the foot of the answer.
    pub(super) fn counted(&self) -> Vec<Function> {
        self.functions.iter().cloned().chain([Function::Count]).collect()
    }

    /// Computes the part of some records. `go_on` is called now and then while records are read one by one; once it returns false, the computation
    /// ends with [`io::ErrorKind::Interrupted`].
    ///
    /// # Errors
    /// Fails if it should not go on. What cannot be read is in the answer as damage.
    ///
    /// # Panics
    /// Panics if the records have another schema.
    pub fn evaluate(
        &self,
        records: Records<'_>,
        extent: Extent,
        limits: PartLimits,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Partial> {
        assert!(self.schema.is_compatible(records.schema()), "a question about `{}`", self.schema.name());
        let Extent { from, to, before } = extent;
        let (expression, keys, functions) = (&self.expression, &self.keys[..], &self.functions[..]);
        let question = PartQuestion { expression, from, to, before, keys, functions };
        parts(records, question, limits, go_on).map(Partial::new)
    }
}

impl Default for Extent {
    /// All records.
    fn default() -> Self {
        Self { from: 0, to: u64::MAX, before: None }
    }
}
