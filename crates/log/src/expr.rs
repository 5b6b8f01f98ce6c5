//! Expressions: which records to select.
//!
//! Text becomes an [`Expr`] (`lex`, `parse`, `operand`, `pcap`), which can be printed as text (`print`) or brought into the normal form that indexes and
//! filters work with (`dnf`, `term`), from which a `filter` is built. [`Expr::holds`] evaluates an expression directly and slowly, without
//! these steps; tests compare the rest with it.
//!
//! The parser is written by hand and not with a combinator library: the meaning of pcap's words depends on the words before
//! them (`tcp port 80 or 443`, `src or dst host`), an attribute decides how the value behind it is read, and an error
//! names what was expected at this very word, with the nearest right name. In a recursive descent each of these is one line;
//! with combinators it would be a struggle against backtracking. Operators have three levels only.

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
pub(crate) use filter::Rule;
pub use number::{Aggregates, NoAggregates, Number, Orderings};
pub use ranges::Ranges;
pub use scope::{AggregateId, Limits, NameError, Scope};
pub use term::{AggregateTest, MaskTest, Predicate, Term};

use crate::{AttributeId, Schema};

/// A condition on records. Built by [`Scope::parse`], or by hand with [`Expr::all`] and [`Expr::any`].
///
/// ```
/// use queuescope_log::{Expr, NoAggregates, Schema, Scope, departure};
///
/// let scope = Scope::new(Schema::departure());
/// let both = Expr::all([scope.parse("delay > 1ms")?, scope.parse("dst_port == 443")?.not()]);
/// assert_eq!(both, scope.parse("delay > 1ms and not dst_port == 443")?);
/// let record = [0; departure::SIZE];
/// assert!(!both.holds(Schema::departure(), &record, &NoAggregates), "its delay is 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// True for all records, or for none.
    Constant(bool),
    /// A test of one attribute.
    Test(Test),
    /// True where the inner expression is false.
    Not(Box<Expr>),
    /// True if all of these are; at least two, none of which is of this variant itself.
    All(Vec<Expr>),
    /// True if any of these is; at least two, none of which is of this variant itself.
    Any(Vec<Expr>),
}

/// A test of one attribute. Values are keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `attribute < key`.
    Compare {
        /// The left side.
        attribute: AttributeId,
        /// The relation.
        relation: Relation,
        /// The right side.
        key: u128,
    },
    /// `attribute in {..}`.
    Within {
        /// The attribute.
        attribute: AttributeId,
        /// The set; not empty.
        ranges: Ranges,
    },
    /// `attribute & mask == value`, and `attribute like 192.*.*.1`.
    Mask {
        /// The attribute.
        attribute: AttributeId,
        /// The bits to test.
        mask: u128,
        /// Their wanted values.
        value: u128,
        /// Whether the bits must be equal to `value`, or must differ.
        equal: bool,
    },
    /// `attribute < AGGREGATE + offset`.
    Aggregate(AggregateTest, Relation),
}

/// A relation between two values.
///
/// ```
/// use queuescope_log::Relation;
///
/// assert!(Relation::AtLeast.holds(&5, &5));
/// let symbols = Relation::ALL.map(Relation::symbol);
/// assert_eq!(symbols, ["<", "<=", "==", "!=", ">=", ">"]);
/// ```
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
    /// True if all of these are.
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

    /// True if any of these is.
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

    /// True where this expression is false.
    #[allow(clippy::should_implement_trait, reason = "it stands beside `all` and `any`")]
    pub fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Evaluates the expression on a record step by step: the reference for [`Filter::matches`].
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
    /// All relations.
    pub const ALL: [Self; 6] = [Self::Less, Self::AtMost, Self::Equal, Self::NotEqual, Self::AtLeast, Self::Greater];

    /// Whether two values have this relation.
    pub fn holds<T: Ord>(self, a: &T, b: &T) -> bool {
        self.orderings().contains(a.cmp(b))
    }

    /// Its symbol in expressions.
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

    /// The orderings for which it is true.
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

    /// The keys up to `highest` that have this relation to `key`.
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
