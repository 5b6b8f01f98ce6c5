//! Expressions: which records are meant.
//!
//! Text to [`Expr`] (`lex`, `parse`, `operand`, `pcap`), to text again (`print`), to the normal form that indexes and
//! filters work with (`dnf`, `term`), to what decides on a record (`filter`). [`Expr::holds`] decides without any of
//! that, slowly; tests hold the rest against it.
//!
//! The parser is written by hand and not with a combinator library: pcap's words mean something by what stood before
//! them (`tcp port 80 or 443`, `src or dst host`), an attribute decides how the value behind it is read, and an error
//! names what was expected at this very word, with the nearest right name. Each is a line in a recursive descent and
//! a struggle against backtracking in combinators. Operators have three levels only.

mod dnf;
mod filter;
mod lex;
mod named;
mod number;
mod operand;
mod parse;
mod pcap;
mod print;
mod ranges;
pub(crate) mod reserved;
mod scope;
mod term;

pub use dnf::{Dnf, DnfError};
pub use filter::Filter;
pub use number::{Aggregates, NoAggregates, Number, Orderings};
pub use ranges::Ranges;
pub use scope::{AggregateId, Limits, NameError, Scope};
pub use term::{AggregateTest, MaskTest, Predicate, Term};

use crate::{AttributeId, Schema};

/// Which records are meant. Built by [`Scope::parse`], or by hand with [`Expr::all`] and [`Expr::any`].
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// All records, or none.
    Constant(bool),
    /// Those that one attribute decides on.
    Test(Test),
    /// The others.
    Not(Box<Expr>),
    /// Those that are in each; at least two, none of which is of this variant itself.
    All(Vec<Expr>),
    /// Those that are in any; at least two, none of which is of this variant itself.
    Any(Vec<Expr>),
}

/// What is asked of one attribute. Values are keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `attribute < key`.
    Compare {
        /// What is compared.
        attribute: AttributeId,
        /// How.
        relation: Relation,
        /// With what.
        key: u128,
    },
    /// `attribute in {..}`.
    Within {
        /// What is looked up.
        attribute: AttributeId,
        /// Where; not empty.
        ranges: Ranges,
    },
    /// `attribute & mask == value`, and `attribute like 192.*.*.1`.
    Mask {
        /// Whose bits are looked at.
        attribute: AttributeId,
        /// Which bits.
        mask: u128,
        /// What they are.
        value: u128,
        /// Or what they are not.
        equal: bool,
    },
    /// `attribute < AGGREGATE + offset`.
    Aggregate(AggregateTest, Relation),
}

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    AtLeast,
    /// `>`
    Greater,
}

impl Expr {
    /// What is in each of these.
    pub fn all(each: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Vec::new();
        for expr in each {
            match expr {
                Self::All(more) => parts.extend(more),
                other => parts.push(other),
            }
        }
        match parts.pop() {
            None => Self::Constant(true),
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                Self::All(parts)
            }
        }
    }

    /// What is in any of these.
    pub fn any(each: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Vec::new();
        for expr in each {
            match expr {
                Self::Any(more) => parts.extend(more),
                other => parts.push(other),
            }
        }
        match parts.pop() {
            None => Self::Constant(false),
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                Self::Any(parts)
            }
        }
    }

    /// What is not in this one.
    #[allow(clippy::should_implement_trait, reason = "it stands beside `all` and `any`")]
    pub fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Whether a record is meant, found step by step: what [`Filter::matches`] is held against.
    pub fn holds(&self, schema: &Schema, record: &[u8], aggregates: &impl Aggregates) -> bool {
        match self {
            Self::Constant(constant) => *constant,
            Self::Test(test) => test.holds(schema, record, aggregates),
            Self::Not(expr) => !expr.holds(schema, record, aggregates),
            Self::All(each) => each.iter().all(|expr| expr.holds(schema, record, aggregates)),
            Self::Any(each) => each.iter().any(|expr| expr.holds(schema, record, aggregates)),
        }
    }
}

impl Test {
    fn holds(&self, schema: &Schema, record: &[u8], aggregates: &impl Aggregates) -> bool {
        match self {
            Self::Compare { attribute, relation, key } => relation.holds(&schema.key(*attribute, record), key),
            Self::Within { attribute, ranges } => {
                let key = schema.key(*attribute, record);
                ranges.iter().any(|(low, high)| low <= key && key <= high)
            }
            Self::Mask { attribute, mask, value, equal } => (schema.key(*attribute, record) & mask == *value) == *equal,
            Self::Aggregate(test, relation) => {
                let key = schema.key(test.attribute, record);
                let own = Number::of_key(schema.attribute(test.attribute), key);
                relation.orderings().contains(own.compare(aggregates.value(test.aggregate).plus(test.offset)))
            }
        }
    }
}

impl Relation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Less, Self::AtMost, Self::Equal, Self::NotEqual, Self::AtLeast, Self::Greater];

    /// Whether two values are so related.
    pub fn holds<T: Ord>(self, a: &T, b: &T) -> bool {
        self.orderings().contains(a.cmp(b))
    }

    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::AtLeast => ">=",
            Self::Greater => ">",
        }
    }

    /// The orderings of which it is true.
    pub fn orderings(self) -> Orderings {
        match self {
            Self::Less => Orderings::LESS,
            Self::AtMost => Orderings::LESS.union(Orderings::EQUAL),
            Self::Equal => Orderings::EQUAL,
            Self::NotEqual => Orderings::EQUAL.complement(),
            Self::AtLeast => Orderings::LESS.complement(),
            Self::Greater => Orderings::GREATER,
        }
    }

    /// The keys up to `highest` that are so related to `key`.
    pub(crate) fn ranges(self, key: u128, highest: u128) -> Ranges {
        let below = key.checked_sub(1).map(|end| (0, end));
        let above = key.checked_add(1).map(|start| (start, highest));
        let equal = Some((key, key));
        let parts = match self {
            Self::Less => [below, None],
            Self::AtMost => [below, equal],
            Self::Equal => [equal, None],
            Self::NotEqual => [below, above],
            Self::AtLeast => [equal, above],
            Self::Greater => [above, None],
        };
        Ranges::new(parts.into_iter().flatten())
    }
}
