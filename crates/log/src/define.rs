//! Definitions: named filters, aggregates, triggers and indexes of a log, as a text that people write and that is kept beside the log.
//!
//! `parameter` replaces the parameters of a text. `read` (TOML) and `single` (arguments of a command) take the text apart; `resolve` finds out what the
//! parts mean and how they depend on each other; `apply` adds them to a log, each after what it depends on.

mod apply;
mod condition;
mod function;
mod parameter;
mod part;
mod read;
mod resolve;
mod single;
mod work;

pub use apply::{ApplyError, Defined, NamedMonitor};
pub use parameter::fill_parameters;
pub use read::{AggregateTable, FilterTable, Tables, TriggerTable};
pub use work::SHORTEST_PERIOD;

use crate::derive::Function;
use crate::expr::{Expr, Number, Relation, Scope};
use crate::schema::{AttributeId, Schema};
use part::Parts;
use queuescope_text::{Source, TextError};
use std::fmt::Write;

/// The period of a trigger that gives none, in nanoseconds: 1 ms, as in the paper (section 5.2).
pub const DEFAULT_PERIOD: u64 = 1_000_000;

/// The longest text, in bytes.
const LONGEST_TEXT: usize = 1 << 18;

/// Filters, aggregates, triggers and indexes over records of one schema. `docs/reference/definitions.md` describes the syntax.
///
/// ```
/// # use queuescope_log::{Definitions, Schema};
/// let text = r#"
///     [[filter]]
///     name = "off_path"
///     expression = "switch_1 == 7 or switch_2 == 7"
///     [[aggregate]]
///     name = "strays"
///     function = "count"
///     filter = "off_path"
///     [[trigger]]
///     name = "path"
///     condition = "strays > 0"
/// "#;
/// let definitions = Definitions::parse("path.toml", text, Schema::packet())?;
/// assert_eq!(definitions.triggers()[0].period, 1_000_000);
/// # Ok::<_, queuescope_log::TextError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Definitions {
    schema: Schema,
    indexes: Vec<AttributeId>,
    filters: Vec<FilterDefinition>,
    /// In the order of the ids that expressions use for them.
    aggregates: Vec<AggregateDefinition>,
    triggers: Vec<TriggerDefinition>,
}

/// A filter with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterDefinition {
    /// Its name.
    pub name: String,
    /// The text as it was written, without surrounding blanks.
    pub text: String,
    /// The records that it matches. Ids of aggregates in it are indices of [`Definitions::aggregates`].
    pub expression: Expr,
}

/// An aggregate with a name.
#[derive(Debug, Clone)]
pub struct AggregateDefinition {
    /// Its name, also in expressions.
    pub name: String,
    /// What it computes.
    pub function: Function,
    /// The filter whose records it covers; `None`: all records.
    pub filter: Option<String>,
}

/// A trigger with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerDefinition {
    /// Its name.
    pub name: String,
    /// The aggregate that it checks.
    pub aggregate: String,
    /// The relation of the aggregate to `threshold` with which the trigger fires.
    pub relation: Relation,
    /// The number that the aggregate is compared with, in the unit of its attribute.
    pub threshold: Number,
    /// How often it is checked, in nanoseconds; [`SHORTEST_PERIOD`] or more.
    pub period: u64,
    /// The length of the window before now that it covers, in nanoseconds; `None`: all records.
    pub window: Option<u64>,
}

/// Construction from texts.
impl Definitions {
    /// No definitions yet, for records of a schema.
    pub fn new(schema: &Schema) -> Self {
        let schema = schema.clone();
        Self { schema, indexes: Vec::new(), filters: Vec::new(), aggregates: Vec::new(), triggers: Vec::new() }
    }

    /// Reads definitions from TOML; `name` names the text in errors.
    ///
    /// # Errors
    /// Returns what is wrong with the text, and where.
    pub fn parse(name: &str, text: &str, schema: &Schema) -> Result<Self, TextError> {
        let mut definitions = Self::new(schema);
        definitions.add_text(name, text)?;
        Ok(definitions)
    }

    /// Adds the definitions of another text, which may refer to existing ones. If anything is wrong, nothing is added.
    ///
    /// # Errors
    /// Returns what is wrong with the text, and where; also if a name exists already.
    pub fn add_text(&mut self, name: &str, text: &str) -> Result<(), TextError> {
        self.add_text_with(name, text, &[])
    }

    /// Adds the definitions of a text with parameters. Parameters that `values` does not set have the defaults of the text.
    ///
    /// # Errors
    /// As [`add_text`](Self::add_text); also if a parameter has no value, or if `values` names an unknown parameter. Other errors show the
    /// text with the values in it.
    pub fn add_text_with(&mut self, name: &str, text: &str, values: &[(&str, &str)]) -> Result<(), TextError> {
        let text = fill_parameters(name, text, values)?;
        let parts = read::parts(name, &text)?;
        self.add(vec![Source { name: name.to_owned(), text: text.into_owned() }], &parts)
    }

    /// Adds the definitions of tables within another TOML text, in which errors show them.
    ///
    /// # Errors
    /// As [`add_text`](Self::add_text).
    pub fn add_tables(&mut self, name: &str, text: &str, tables: Tables) -> Result<(), TextError> {
        self.add(vec![Source { name: name.to_owned(), text: text.to_owned() }], &tables.parts(text))
    }

    /// Adds a filter, written as `name=expression`; `option` names the text in errors.
    ///
    /// # Errors
    /// As [`add_text`](Self::add_text).
    pub fn add_filter(&mut self, option: &str, text: &str) -> Result<(), TextError> {
        self.add_singles(&[Single { option, text, kind: SingleKind::Filter }])
    }

    /// Adds an aggregate, written as `name=function` or `name=function@filter`.
    ///
    /// # Errors
    /// As [`add_text`](Self::add_text).
    pub fn add_aggregate(&mut self, option: &str, text: &str) -> Result<(), TextError> {
        self.add_singles(&[Single { option, text, kind: SingleKind::Aggregate }])
    }

    /// Adds a trigger, written as `name=condition`, `name=condition@period` or `name=condition@period/window`.
    ///
    /// # Errors
    /// As [`add_text`](Self::add_text).
    pub fn add_trigger(&mut self, option: &str, text: &str) -> Result<(), TextError> {
        self.add_singles(&[Single { option, text, kind: SingleKind::Trigger }])
    }

    /// Adds several definitions that were written separately. They may refer to each other in any order.
    ///
    /// # Errors
    /// As [`add_text`](Self::add_text).
    pub fn add_singles(&mut self, singles: &[Single<'_>]) -> Result<(), TextError> {
        let source = |single: &Single<'_>| Source { name: single.option.to_owned(), text: single.text.to_owned() };
        let sources: Vec<_> = singles.iter().map(source).collect();
        match single::parts(singles) {
            Ok(parts) => self.add(sources, &parts),
            Err(problems) => Err(TextError::of_sources(sources, problems, 0)),
        }
    }

    fn add(&mut self, sources: Vec<Source>, parts: &Parts) -> Result<(), TextError> {
        match resolve::resolve(self, parts) {
            Ok(all) => {
                *self = all;
                Ok(())
            }
            Err(problems) => Err(TextError::of_sources(sources, problems, 0)),
        }
    }
}

/// A definition that is written separately.
#[derive(Debug, Clone, Copy)]
pub struct Single<'a> {
    /// Names the text in errors: the option that it was given to.
    pub option: &'a str,
    /// The text.
    pub text: &'a str,
    /// What it defines.
    pub kind: SingleKind,
}

/// The kind of a separate definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleKind {
    /// `name=expression`
    Filter,
    /// `name=function[@filter]`
    Aggregate,
    /// `name=condition[@period[/window]]`
    Trigger,
}

/// Access to the definitions.
impl Definitions {
    /// The schema of the records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Attributes with an index.
    pub fn indexes(&self) -> &[AttributeId] {
        &self.indexes
    }

    /// All filters, as they were written.
    pub fn filters(&self) -> &[FilterDefinition] {
        &self.filters
    }

    /// All aggregates, as they were written.
    pub fn aggregates(&self) -> &[AggregateDefinition] {
        &self.aggregates
    }

    /// All triggers, as they were written.
    pub fn triggers(&self) -> &[TriggerDefinition] {
        &self.triggers
    }

    /// Whether nothing is defined.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.filters.is_empty() && self.aggregates.is_empty() && self.triggers.is_empty()
    }

    /// The names that expressions can use: attributes, and aggregates with their indices as ids.
    pub(crate) fn scope(&self) -> Scope<'_> {
        let names = self.aggregates.iter().map(|aggregate| aggregate.name.clone());
        Scope::with_aggregates(&self.schema, (0..).map(crate::expr::AggregateId).zip(names))
    }

    /// As TOML; [`parse`](Self::parse) reads it as the same definitions.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) -> std::fmt::Result {
        if !self.indexes.is_empty() {
            let name = |id: &AttributeId| format!("\"{}\"", self.schema.attribute(*id).name);
            writeln!(to, "index = [{}]", self.indexes.iter().map(name).collect::<Vec<_>>().join(", "))?;
        }
        // Nothing else needs an escape: names are letters, digits and underscores, and expressions contain no quotes.
        for FilterDefinition { name, text, .. } in &self.filters {
            let text = text.replace('\\', "\\\\");
            writeln!(to, "\n[[filter]]\nname = \"{name}\"\nexpression = \"{text}\"")?;
        }
        for AggregateDefinition { name, function, filter } in &self.aggregates {
            writeln!(to, "\n[[aggregate]]\nname = \"{name}\"\nfunction = \"{}\"", function.text(&self.schema))?;
            if let Some(filter) = filter {
                writeln!(to, "filter = \"{filter}\"")?;
            }
        }
        for trigger in &self.triggers {
            let condition = condition::text(trigger, &self.aggregates, &self.schema);
            writeln!(to, "\n[[trigger]]\nname = \"{}\"\ncondition = \"{condition}\"", trigger.name)?;
            writeln!(to, "period = \"{}ns\"", trigger.period)?;
            if let Some(window) = trigger.window {
                writeln!(to, "window = \"{window}ns\"")?;
            }
        }
        Ok(())
    }
}
