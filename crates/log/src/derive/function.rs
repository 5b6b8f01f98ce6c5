//! Functions over records: their states, and how states of parts become one.

use super::{deviation, mean};
use crate::columns::{Keys, Selected};
use crate::expr::Number;
use crate::schema::{AttributeId, Kind, Reader, Schema};
use std::fmt;
use std::sync::Arc;

/// The state of an aggregate over some records: four words, whose meaning depends on the function.
pub type State = [u128; 4];

/// A function that takes records in any order and in any parts: it can join the states of parts.
///
/// ```
/// use queuescope_log::{Commutative, Function, Number, State};
/// use std::sync::Arc;
///
/// /// The number of records whose first byte is odd.
/// struct OddFirst;
///
/// impl Commutative for OddFirst {
///     fn empty(&self) -> State {
///         [0; 4]
///     }
///     fn add(&self, state: &mut State, record: &[u8]) {
///         state[0] += u128::from(record[0] % 2);
///     }
///     fn join(&self, state: &mut State, other: &State) {
///         state[0] += other[0];
///     }
///     fn value(&self, state: &State, _value: usize) -> Number {
///         Number::Unsigned(state[0])
///     }
/// }
///
/// let mut state = OddFirst.empty();
/// OddFirst.add(&mut state, &[3, 0]);
/// assert_eq!(OddFirst.value(&state, 0), Number::Unsigned(1));
/// let function = Function::User(Arc::new(OddFirst)); // for `Log::add_aggregate`
/// # let _ = function;
/// ```
pub trait Commutative: Send + Sync {
    /// The state of no records.
    fn empty(&self) -> State;
    /// Adds a record.
    fn add(&self, state: &mut State, record: &[u8]);
    /// Adds the state of other records.
    fn join(&self, state: &mut State, other: &State);
    /// The number of its values; at least one.
    fn values(&self) -> usize {
        1
    }
    /// One of its values. It is defined even without records.
    fn value(&self, state: &State, value: usize) -> Number;
}

/// What an aggregate computes. A sum, a minimum, a maximum, a mean and a deviation have the unit of their attribute: nanoseconds for
/// times, bytes for sizes.
///
/// ```
/// use queuescope_log::{Function, Log, Memory, Options, Schema, departure};
/// use queuescope_wire::{Departure, FlowKey, Nanos};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 100, memory: Memory::Lazy })?;
/// let delay = log.schema().find("delay").ok_or("unknown attribute")?;
/// let mean = log.add_aggregate(&["mean_delay"], None, &Function::Mean(delay))?;
/// let mut record = [0; departure::SIZE];
/// for delay in [1_000, 4_000] {
///     departure::fill(&mut record, &Departure { dequeued: Nanos(delay), ..Departure::default() }, &FlowKey::default());
///     log.append(&record);
/// }
/// let value = log.snapshot().value(mean).ok_or("the aggregate is gone")?;
/// println!("the mean is {} ns", value.to_f64());
/// assert_eq!(value.to_f64(), 2_500.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub enum Function {
    /// The number of records.
    Count,
    /// The sum of an attribute; zero without records. Whole numbers saturate at 128 bits.
    Sum(AttributeId),
    /// The lowest value of an attribute; without records, the highest possible value.
    Min(AttributeId),
    /// The highest value of an attribute; without records, the lowest possible value.
    Max(AttributeId),
    /// The mean of an attribute; zero without records.
    Mean(AttributeId),
    /// The standard deviation of an attribute over these records, not an estimate for others from them (the population standard
    /// deviation); zero without records. Of whole numbers of at most 64 bits it is computed from exact sums and rounded once, at the end;
    /// of others each record is rounded (Welford's method).
    Deviation(AttributeId),
    /// The number of distinct values of an attribute: exact up to [`Distinct::EXACT_VALUES`](queuescope_wire::Distinct::EXACT_VALUES), above that an estimate
    /// with a relative standard error of [`Distinct::STANDARD_ERROR`](queuescope_wire::Distinct::STANDARD_ERROR). Only queries compute it: its state is too
    /// large for an aggregate of a log.
    Distinct(AttributeId),
    /// A function of the caller.
    User(Arc<dyn Commutative>),
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(f, "Count"),
            Self::Sum(id) => write!(f, "Sum({id:?})"),
            Self::Min(id) => write!(f, "Min({id:?})"),
            Self::Max(id) => write!(f, "Max({id:?})"),
            Self::Mean(id) => write!(f, "Mean({id:?})"),
            Self::Deviation(id) => write!(f, "Deviation({id:?})"),
            Self::Distinct(id) => write!(f, "Distinct({id:?})"),
            Self::User(_) => write!(f, "User"),
        }
    }
}

impl Function {
    /// The attribute that it computes with; a count has none, and a function of the caller has whole records.
    pub fn attribute(&self) -> Option<AttributeId> {
        match self {
            Self::Sum(id)
            | Self::Min(id)
            | Self::Max(id)
            | Self::Mean(id)
            | Self::Deviation(id)
            | Self::Distinct(id) => Some(*id),
            Self::Count | Self::User(_) => None,
        }
    }

    /// Whether its value is the same to the last bit in any order of the records: sums of fractions are rounded after each. A function of the
    /// caller does not promise that.
    ///
    /// # Panics
    /// Panics if its attribute belongs to another schema.
    pub fn is_of_any_order(&self, schema: &Schema) -> bool {
        match self {
            Self::Count | Self::Min(_) | Self::Max(_) | Self::Distinct(_) => true,
            Self::Sum(id) | Self::Mean(id) => schema.attribute(*id).kind != Kind::Float,
            Self::Deviation(id) => {
                let attribute = schema.attribute(*id);
                deviation::is_exact(attribute.kind, attribute.place.bits)
            }
            Self::User(_) => false,
        }
    }
}

/// A function together with what it needs of the schema.
#[derive(Debug, Clone)]
pub(crate) enum Working {
    Count,
    Of(Measure, Attribute),
    User(User),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Sum,
    Min,
    Max,
    Mean,
    Deviation,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute {
    reader: Reader,
    kind: Kind,
    bits: u32,
}

#[derive(Clone)]
pub(crate) struct User(Arc<dyn Commutative>);

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User")
    }
}

impl Working {
    /// A function on records of a schema.
    pub fn new(function: &Function, schema: &Schema) -> Self {
        let of = |what, id: AttributeId| {
            let attribute = schema.attribute(id);
            assert!(attribute.is_comparable(), "what has no order has no sum, minimum, maximum, mean or deviation");
            Self::Of(what, Attribute { reader: schema.reader(id), kind: attribute.kind, bits: attribute.place.bits })
        };
        match function {
            Function::Count => Self::Count,
            Function::Sum(id) => of(Measure::Sum, *id),
            Function::Min(id) => of(Measure::Min, *id),
            Function::Max(id) => of(Measure::Max, *id),
            Function::Mean(id) => of(Measure::Mean, *id),
            Function::Deviation(id) => of(Measure::Deviation, *id),
            Function::Distinct(_) => panic!("an aggregate has no count of distinct values: only queries have"),
            Function::User(user) => Self::User(User(Arc::clone(user))),
        }
    }

    /// The state of no records.
    pub fn empty(&self) -> State {
        match self {
            Self::Count => [0; 4],
            Self::Of(Measure::Sum | Measure::Mean, attribute) => [pack(attribute.kind, attribute.zero()), 0, 0, 0],
            Self::Of(Measure::Min, attribute) => [attribute.highest(), 0, 0, 0],
            Self::Of(Measure::Max | Measure::Deviation, _) => [0; 4],
            Self::User(user) => user.0.empty(),
        }
    }

    /// Adds a record.
    #[inline]
    pub fn add(&self, state: &mut State, record: &[u8]) {
        match self {
            Self::Count => state[0] += 1,
            Self::Of(_, attribute) => self.add_key(state, attribute.reader.key(record)),
            Self::User(user) => user.0.add(state, record),
        }
    }

    /// Adds a record whose attribute has this key, for a function of an attribute; others are unchanged.
    #[inline]
    pub fn add_key(&self, state: &mut State, key: u128) {
        let Self::Of(what, attribute) = self else { return };
        match what {
            Measure::Min => state[0] = state[0].min(key),
            Measure::Max => state[0] = state[0].max(key),
            Measure::Sum | Measure::Mean => {
                let sum = unpack(attribute.kind, state[0]).plus(attribute.number(key));
                *state = [pack(attribute.kind, sum), state[1] + 1, 0, 0];
            }
            Measure::Deviation if attribute.is_exact() => deviation::add_whole(state, attribute.number(key)),
            Measure::Deviation => deviation::add(state, attribute.number(key).to_f64()),
        }
    }

    /// Adds the selected records of a batch, whose attribute has these keys. The same as [`add_key`](Self::add_key) for each, with a loop for
    /// each frequent function.
    pub fn add_keys(&self, state: &mut State, keys: &Keys, selected: Selected<'_>) {
        let Self::Of(what, attribute) = self else { return };
        match what {
            Measure::Min => {
                let mut low = state[0];
                keys.each(selected, |key| low = low.min(key));
                state[0] = low;
            }
            Measure::Max => {
                let mut high = state[0];
                keys.each(selected, |key| high = high.max(key));
                state[0] = high;
            }
            Measure::Sum | Measure::Mean if !matches!(attribute.kind, Kind::Signed | Kind::Float) => {
                let mut sum = state[0];
                keys.each(selected, |key| sum = sum.saturating_add(key));
                *state = [sum, state[1] + selected.len() as u128, 0, 0];
            }
            Measure::Sum | Measure::Mean | Measure::Deviation => keys.each(selected, |key| self.add_key(state, key)),
        }
    }

    /// Adds a number of records, for a count.
    ///
    /// # Panics
    /// Panics for a function of the caller.
    pub fn add_count(&self, state: &mut State, records: u64) {
        match self {
            Self::Count => state[0] += u128::from(records),
            _ => panic!("a function of the caller needs whole records"),
        }
    }

    /// Adds the state of other records.
    pub fn join(&self, state: &mut State, other: &State) {
        match self {
            Self::Count => state[0] = state[0].saturating_add(other[0]),
            Self::Of(Measure::Min, _) => state[0] = state[0].min(other[0]),
            Self::Of(Measure::Max, _) => state[0] = state[0].max(other[0]),
            Self::Of(Measure::Sum | Measure::Mean, attribute) => {
                let sum = unpack(attribute.kind, state[0]).plus(unpack(attribute.kind, other[0]));
                *state = [pack(attribute.kind, sum), state[1].saturating_add(other[1]), 0, 0];
            }
            Self::Of(Measure::Deviation, attribute) if attribute.is_exact() => {
                deviation::join_whole(state, other, attribute.kind == Kind::Signed);
            }
            Self::Of(Measure::Deviation, _) => deviation::join(state, other),
            Self::User(user) => user.0.join(state, other),
        }
    }

    /// Whether this can be the state of some records, as far as joining and evaluating it needs that: it may come from outside. A function of
    /// the caller has states that only the caller knows.
    pub fn allows(&self, state: &State) -> bool {
        let is_narrow = |word: &u128| *word <= u128::from(u64::MAX);
        match self {
            Self::Count => is_narrow(&state[0]) && state[1..] == [0; 3],
            Self::Of(Measure::Min | Measure::Max, attribute) => state[0] <= attribute.highest() && state[1..] == [0; 3],
            Self::Of(Measure::Sum | Measure::Mean, attribute) => {
                (attribute.kind != Kind::Float || is_narrow(&state[0])) && is_narrow(&state[1]) && state[2..] == [0; 2]
            }
            Self::Of(Measure::Deviation, attribute) => {
                is_narrow(&state[0]) && (attribute.is_exact() || state.iter().all(is_narrow) && state[3] == 0)
            }
            Self::User(_) => false,
        }
    }

    /// The number of its values.
    pub fn values(&self) -> usize {
        match self {
            Self::User(user) => user.0.values().max(1),
            _ => 1,
        }
    }

    /// One of its values.
    pub fn value(&self, state: &State, value: usize) -> Number {
        match self {
            Self::Count => Number::Unsigned(state[0]),
            Self::Of(Measure::Min | Measure::Max, attribute) => attribute.number(state[0]),
            Self::Of(Measure::Sum, attribute) => unpack(attribute.kind, state[0]),
            Self::Of(Measure::Mean, attribute) => {
                Number::Float(mean::value(unpack(attribute.kind, state[0]), state[1].max(1)))
            }
            Self::Of(Measure::Deviation, attribute) if attribute.is_exact() => {
                Number::Float(deviation::value_whole(state, unpack(attribute.kind, state[1])))
            }
            Self::Of(Measure::Deviation, _) => Number::Float(deviation::value(state)),
            Self::User(user) => user.0.value(state, value),
        }
    }
}

impl Attribute {
    fn number(&self, key: u128) -> Number {
        Number::from_key_bits(self.kind, self.bits, key)
    }

    fn is_exact(&self) -> bool {
        deviation::is_exact(self.kind, self.bits)
    }

    fn zero(&self) -> Number {
        match self.kind {
            Kind::Signed => Number::Signed(0),
            Kind::Float => Number::Float(0.0),
            _ => Number::Unsigned(0),
        }
    }

    fn highest(&self) -> u128 {
        crate::schema::low_bits(self.bits)
    }
}

/// A sum as a word. A signed sum saturates at 127 bits.
fn pack(kind: Kind, sum: Number) -> u128 {
    match sum {
        Number::Unsigned(_) if kind == Kind::Signed => i128::MAX as u128,
        Number::Unsigned(sum) => sum,
        Number::Signed(sum) => sum as u128,
        Number::Float(sum) => u128::from(sum.to_bits()),
    }
}

fn unpack(kind: Kind, word: u128) -> Number {
    match kind {
        Kind::Signed => Number::Signed(word as i128),
        Kind::Float => Number::Float(f64::from_bits(word as u64)),
        _ => Number::Unsigned(word),
    }
}
