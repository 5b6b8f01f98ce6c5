//! Conditions of statements.

use super::variable::Operand;

/// How two numbers are compared, as unsigned ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// What decides whether statements are executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A comparison of two values.
    Compare {
        /// The left value.
        left: Operand,
        /// How they are compared.
        comparison: Comparison,
        /// The right value.
        right: Operand,
    },
    /// All of them hold.
    All(Vec<Condition>),
    /// At least one of them holds.
    Any(Vec<Condition>),
}

impl Comparison {
    /// Whether it holds.
    pub(crate) fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }

    /// Its sign.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Condition {
    /// A comparison.
    pub fn compare(left: impl Into<Operand>, comparison: Comparison, right: impl Into<Operand>) -> Self {
        Self::Compare { left: left.into(), comparison, right: right.into() }
    }

    /// Whether it holds.
    pub(crate) fn holds(&self, read: &impl Fn(Operand) -> u64) -> bool {
        match self {
            Self::Compare { left, comparison, right } => comparison.holds(&read(*left), &read(*right)),
            Self::All(parts) => parts.iter().all(|part| part.holds(read)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(read)),
        }
    }

    /// The values that it compares.
    pub(crate) fn comparisons(&self) -> Vec<(Operand, Operand)> {
        match self {
            Self::Compare { left, right, .. } => vec![(*left, *right)],
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::comparisons).collect(),
        }
    }
}
