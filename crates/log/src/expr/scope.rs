//! The names that an expression can use: a schema's attributes, and aggregates.

use super::parse::Parser;
use super::{Expr, reserved};
use crate::schema::name_problem;
use crate::{Schema, TextError};
use queuescope_text::Problem;

/// The names that an expression can use.
///
/// ```
/// use queuescope_log::{Schema, Scope};
///
/// let mut scope = Scope::new(Schema::packet());
/// scope.add_aggregate("mean_length")?;
/// let expression = scope.parse("tcp and length > mean_length + 100B")?;
/// println!("{}", expression.text(&scope));
///
/// let error = scope.parse("dst_prot == 443").unwrap_err();
/// println!("{error}"); // shows the text, and the nearest name
/// assert!(error.to_string().contains("dst_port"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    schema: &'a Schema,
    aggregates: Vec<(AggregateId, String)>,
    limits: Limits,
}

/// An aggregate that expressions can name, numbered in the order of addition to the [`Scope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateId(pub u32);

/// Limits of expressions. Each has an error of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text.
    pub text: usize,
    /// Nesting depth of parentheses and negations.
    pub depth: usize,
    /// Tests; each element of a set is one.
    pub tests: usize,
    /// Terms of the normal form.
    pub terms: usize,
    /// Steps to find the normal form: predicates that are joined or compared.
    pub steps: usize,
}

impl Default for Limits {
    /// 16 KiB, 64 deep, 4096 tests, 1024 terms, two million steps (some tens of milliseconds): far more than anyone
    /// writes, and far too little to do harm.
    fn default() -> Self {
        Self { text: 1 << 14, depth: 64, tests: 1 << 12, terms: 1 << 10, steps: 2_000_000 }
    }
}

/// Why an aggregate cannot have a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' cannot name an aggregate: {why}")]
pub struct NameError {
    /// The name.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl<'a> Scope<'a> {
    /// The attributes of a schema, and no aggregates.
    pub fn new(schema: &'a Schema) -> Self {
        Self { schema, aggregates: Vec::new(), limits: Limits::default() }
    }

    /// The attributes of a schema, and aggregates in the order of their ids.
    pub(crate) fn with_aggregates(schema: &'a Schema, aggregates: impl Iterator<Item = (AggregateId, String)>) -> Self {
        Self { aggregates: aggregates.collect(), ..Self::new(schema) }
    }

    /// The same names with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Adds an aggregate that expressions can name. A value with that name, such as `TCP` of `protocol`, takes precedence.
    ///
    /// # Errors
    /// Fails if the text is not a valid name, or is taken.
    pub fn add_aggregate(&mut self, name: &str) -> Result<AggregateId, NameError> {
        let taken = if reserved::is_reserved(name) {
            Some("it is a word of expressions".to_owned())
        } else if self.schema.find(name).is_some() {
            Some("an attribute has it".to_owned())
        } else if self.aggregate(name).is_some() {
            Some("another aggregate has it".to_owned())
        } else {
            name_problem(name).err()
        };
        if let Some(why) = taken {
            return Err(NameError { name: name.to_owned(), why });
        }
        let id = AggregateId(self.aggregates.last().map_or(0, |(last, _)| last.0 + 1));
        self.aggregates.push((id, name.to_owned()));
        Ok(id)
    }

    /// The schema.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The aggregate of this name.
    pub fn aggregate(&self, name: &str) -> Option<AggregateId> {
        self.aggregates.iter().find(|(_, other)| other == name).map(|(id, _)| *id)
    }

    /// The name of an aggregate.
    pub fn name(&self, aggregate: AggregateId) -> Option<&str> {
        let found = self.aggregates.binary_search_by_key(&aggregate, |(id, _)| *id).ok()?;
        Some(&self.aggregates[found].1)
    }

    /// The names of all aggregates, in the order of their ids.
    pub fn aggregates(&self) -> impl Iterator<Item = &str> {
        self.aggregates.iter().map(|(_, name)| name.as_str())
    }

    /// Parses an expression; `docs/reference/expressions.md` describes the syntax. An empty text matches every record.
    ///
    /// # Errors
    /// Returns what is wrong with it, and where.
    pub fn parse(&self, text: &str) -> Result<Expr, TextError> {
        self.read(text).map_err(|problem| {
            // A text that is too long is not shown.
            let text = if text.len() > self.limits.text { "" } else { text };
            TextError::new("expression", text, vec![*problem])
        })
    }

    /// Like [`parse`](Self::parse), for an expression that is part of another text.
    pub(crate) fn read(&self, text: &str) -> Result<Expr, Box<Problem>> {
        Parser::parse(self, text)
    }
}
