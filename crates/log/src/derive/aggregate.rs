//! Aggregates: values computed from all records, or from those that a filter matches.

use super::cells::PerChunk;
use super::matches::{Bits, Matches, WORDS, clear_from, clear_to, ones};
use super::reading::Reading;
use super::{CHUNK, CHUNKS, FilterState};
use crate::columns::{Keys, Selected};
use crate::expr::Number;
use crate::schema::{AttributeId, Kind, Reader, Schema};
use crate::store::View;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// What an aggregate computes. A sum, a minimum, a maximum and a mean have the unit of their attribute: nanoseconds for times,
/// bytes for sizes.
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
            Self::User(_) => write!(f, "User"),
        }
    }
}

impl Function {
    /// The attribute that it computes with; a count has none, and a function of the caller has whole records.
    pub fn attribute(&self) -> Option<AttributeId> {
        match self {
            Self::Sum(id) | Self::Min(id) | Self::Max(id) | Self::Mean(id) => Some(*id),
            Self::Count | Self::User(_) => None,
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
            assert!(attribute.is_comparable(), "what has no order has no sum, minimum, maximum or mean");
            Self::Of(what, Attribute { reader: schema.reader(id), kind: attribute.kind, bits: attribute.place.bits })
        };
        match function {
            Function::Count => Self::Count,
            Function::Sum(id) => of(Measure::Sum, *id),
            Function::Min(id) => of(Measure::Min, *id),
            Function::Max(id) => of(Measure::Max, *id),
            Function::Mean(id) => of(Measure::Mean, *id),
            Function::User(user) => Self::User(User(Arc::clone(user))),
        }
    }

    /// The state of no records.
    pub fn empty(&self) -> State {
        match self {
            Self::Count => [0; 4],
            Self::Of(Measure::Sum | Measure::Mean, attribute) => [pack(attribute.kind, attribute.zero()), 0, 0, 0],
            Self::Of(Measure::Min, attribute) => [attribute.highest(), 0, 0, 0],
            Self::Of(Measure::Max, _) => [0; 4],
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
            Measure::Sum | Measure::Mean => keys.each(selected, |key| self.add_key(state, key)),
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
            Self::Count => state[0] += other[0],
            Self::Of(Measure::Min, _) => state[0] = state[0].min(other[0]),
            Self::Of(Measure::Max, _) => state[0] = state[0].max(other[0]),
            Self::Of(Measure::Sum | Measure::Mean, attribute) => {
                let sum = unpack(attribute.kind, state[0]).plus(unpack(attribute.kind, other[0]));
                *state = [pack(attribute.kind, sum), state[1] + other[1], 0, 0];
            }
            Self::User(user) => user.0.join(state, other),
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
                Number::Float(unpack(attribute.kind, state[0]).to_f64() / (state[1].max(1) as f64))
            }
            Self::User(user) => user.0.value(state, value),
        }
    }
}

impl Attribute {
    fn number(&self, key: u128) -> Number {
        Number::from_key_bits(self.kind, self.bits, key)
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

/// An aggregate, and its state for each chunk.
#[derive(Debug)]
pub(crate) struct AggregateState {
    pub function: Working,
    /// The filter whose records it covers; `None`: all records.
    pub filter: Option<Arc<FilterState>>,
    chunks: PerChunk<State>,
    before: Mutex<Before>,
}

/// The states of an aggregate over all records before some chunks, including records that left memory.
#[derive(Debug)]
struct Before {
    /// Before each floor that readers may have.
    floors: BTreeMap<u64, State>,
    /// Up to the furthest position of any reader, and where the last reader was that was not so far.
    ahead: (u64, State),
    behind: (u64, State),
}

impl AggregateState {
    /// An aggregate over some blocks; `state` covers all records before the position of a floor.
    pub fn new(
        function: Working,
        filter: Option<Arc<FilterState>>,
        blocks: Range<usize>,
        floor: u64,
        state: State,
    ) -> Self {
        let first = (floor / CHUNK, state);
        let before = Before { floors: BTreeMap::from([first]), ahead: first, behind: first };
        // A count is the number of the filter's matches.
        let blocks = if matches!(function, Working::Count) { blocks.start..blocks.start } else { blocks };
        Self { function, filter, chunks: PerChunk::new(blocks), before: Mutex::new(before) }
    }

    /// The filter whose matches it counts, if that is all that it does.
    pub fn counted(&self) -> Option<&FilterState> {
        matches!(self.function, Working::Count).then_some(self.filter.as_deref()).flatten()
    }

    /// Computes its state for a whole chunk, if that is not known.
    pub fn fill(&self, chunk: u64, view: View<'_>) {
        if let Some(filter) = &self.filter {
            filter.fill(chunk, view);
        }
        if !matches!(self.function, Working::Count) && self.chunks.look(chunk as usize, |_| ()).is_none() {
            let bits = match &self.filter {
                Some(filter) => filter.known(chunk, Matches::bits).unwrap_or([0; WORDS]),
                None => [u64::MAX; WORDS],
            };
            let state = self.of_bits(chunk, &bits, view);
            self.chunks.set(chunk as usize, state);
        }
    }

    /// Its state over some records of the view.
    pub fn over(&self, positions: Range<u64>, reading: &Reading) -> State {
        let (mut at, mut state) = (positions.start, self.function.empty());
        while at < positions.end {
            let chunk = at / CHUNK;
            let next = ((chunk + 1) * CHUNK).min(positions.end);
            let of_chunk =
                if next - at == CHUNK { self.whole(chunk, reading.view()) } else { self.part(at..next, reading) };
            self.function.join(&mut state, &of_chunk);
            at = next;
        }
        state
    }

    /// Its state over all records before a position of the view, which may be its end, including those before its floor.
    pub fn up_to(&self, end: u64, reading: &Reading) -> State {
        let chunk = end / CHUNK;
        let mut state = self.before(chunk, reading.view());
        if chunk * CHUNK < end {
            let more = self.part(chunk * CHUNK..end, reading);
            self.function.join(&mut state, &more);
        }
        state
    }

    /// Its state over all records before a chunk; it continues from earlier results.
    fn before(&self, chunk: u64, view: View<'_>) -> State {
        let mut before = self.lock();
        let (mut at, mut state) = before.nearest(chunk).unwrap_or((view.first() / CHUNK, self.function.empty()));
        while at < chunk {
            let more = self.whole(at, view);
            self.function.join(&mut state, &more);
            at += 1;
        }
        if at >= before.ahead.0 {
            before.ahead = (at, state);
        } else {
            before.behind = (at, state);
        }
        state
    }

    /// Its state over all records before a floor that was settled.
    pub fn before_floor(&self, floor: u64) -> State {
        let known = self.lock().nearest(floor / CHUNK);
        known.map_or_else(|| self.function.empty(), |(_, state)| state)
    }

    /// Computes its state over all records before a position that will be a floor.
    pub fn settle(&self, floor: u64, view: View<'_>) {
        let state = self.before(floor / CHUNK, view);
        self.lock().floors.insert(floor / CHUNK, state);
    }

    /// Discards what readers do not need whose floor is this one or a later one.
    pub fn forget(&self, floor: u64) {
        let chunk = floor / CHUNK;
        self.lock().floors.retain(|at, _| *at >= chunk);
        self.chunks.forget(chunk as usize / CHUNKS);
        if let Some(filter) = &self.filter {
            filter.forget(floor);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a whole chunk.
    fn whole(&self, chunk: u64, view: View<'_>) -> State {
        self.fill(chunk, view);
        match (&self.function, &self.filter) {
            (Working::Count, None) => [CHUNK.into(), 0, 0, 0],
            (Working::Count, Some(filter)) => [filter.known(chunk, Matches::count).unwrap_or(0).into(), 0, 0, 0],
            _ => self.chunks.look(chunk as usize, |state| *state).unwrap_or_else(|| self.function.empty()),
        }
    }

    /// The state of some records of one chunk.
    fn part(&self, positions: Range<u64>, reading: &Reading) -> State {
        let chunk = positions.start / CHUNK;
        let start = chunk * CHUNK;
        let places = (positions.start - start) as usize..(positions.end - start) as usize;
        if matches!(self.function, Working::Count) {
            let count = self.filter.as_ref().map(|filter| filter.count(chunk, places.clone(), reading).into());
            return [count.unwrap_or(places.len() as u128), 0, 0, 0];
        }
        let mut bits = self.filter.as_ref().map_or([u64::MAX; WORDS], |filter| filter.bits(chunk, reading));
        clear_from(&mut bits, places.end);
        clear_to(&mut bits, places.start);
        self.of_bits(chunk, &bits, reading.view())
    }

    fn of_bits(&self, chunk: u64, bits: &Bits, view: View<'_>) -> State {
        let mut state = self.function.empty();
        let (rows, size) = (view.chunk(chunk), view.size());
        for place in ones(bits) {
            self.function.add(&mut state, &rows[place * size..(place + 1) * size]);
        }
        state
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        self.chunks.heap(|_| 0)
    }
}

impl Before {
    /// The known state of the records before a chunk, or before the nearest earlier one.
    fn nearest(&self, chunk: u64) -> Option<(u64, State)> {
        let floor = self.floors.range(..=chunk).next_back().map(|(at, state)| (*at, *state));
        let others = [self.ahead, self.behind].into_iter().filter(|(at, _)| *at <= chunk);
        floor.into_iter().chain(others).max_by_key(|(at, _)| *at)
    }
}
