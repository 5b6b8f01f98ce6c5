//! Triggers: conditions over aggregates that are checked periodically.
//!
//! A [`Monitor`] has the triggers. The caller runs its passes with the current time, as often as the shortest period. A pass takes
//! one snapshot. It computes each aggregate that its triggers need once, continuing where the previous pass ended;
//! a window slides by whole passes.

use crate::derive::{AggregateState, State, Tail, Tallies};
use crate::expr::{AggregateId, Number, Orderings, Relation};
use crate::log::{Log, Snapshot};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A condition over an aggregate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trigger {
    /// The aggregate value to check.
    pub aggregate: AggregateId,
    /// The relation of the value to `threshold` with which the trigger fires.
    pub relation: Relation,
    /// The number that the value is compared with, in the unit of the aggregate.
    pub threshold: Number,
    /// How often it is checked, in nanoseconds.
    pub period: u64,
    /// The length of the window before now, in nanoseconds; it is rounded up to whole
    /// periods. `None`: all records.
    pub window: Option<u64>,
}

/// A trigger of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerId(u64);

/// A trigger fired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alert {
    /// The trigger.
    pub trigger: TriggerId,
    /// The time of the pass, as the caller gave it, in nanoseconds.
    pub at: u64,
    /// The aggregate's value.
    pub value: Number,
    /// The number of records in the log: those before this position were included.
    pub position: u64,
    /// Whether it did not fire at the previous check.
    pub new: bool,
}

/// Why a trigger could not be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// The aggregate does not exist.
    #[error("the log does not have this aggregate; it may have been removed")]
    NoAggregate,
    /// The period is zero.
    #[error("a trigger's period must be longer than zero")]
    NoPeriod,
    /// The window has too many periods.
    #[error("a window is {MOST_PERIODS} periods at most: make the period longer")]
    LongWindow,
}

/// The most periods of a window: each has a state of its own.
const MOST_PERIODS: u64 = 1 << 16;

/// The number of periods in a trigger's window, if it is valid.
pub(crate) fn periods(period: u64, window: Option<u64>) -> Result<Option<usize>, TriggerError> {
    if period == 0 {
        return Err(TriggerError::NoPeriod);
    }
    match window.map(|window| window.div_ceil(period).max(1)) {
        Some(periods) if periods > MOST_PERIODS => Err(TriggerError::LongWindow),
        periods => Ok(periods.map(|periods| periods as usize)),
    }
}

/// Triggers over the aggregates of a log. It holds no records between its passes. A window misses records that came and were
/// [released](Log::release) between two passes; triggers over all records still include them.
///
/// ```
/// use queuescope_log::{Function, Log, Memory, Monitor, Number, Options, Relation, Schema, Trigger, departure};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// let packets = log.add_aggregate(&["packets"], None, &Function::Count)?;
/// let mut monitor = Monitor::new(&log);
/// let (relation, threshold) = (Relation::Greater, Number::Unsigned(5));
/// monitor.add(Trigger { aggregate: packets, relation, threshold, period: 1_000_000, window: None })?;
///
/// let mut fired = Vec::new();
/// for millisecond in 0..10 {
///     log.append(&[0; departure::SIZE]);
///     monitor.pass(millisecond * 1_000_000, |alert| fired.push((millisecond, alert.new)));
/// }
/// println!("{fired:?}");
/// assert_eq!(fired[..2], [(5, true), (6, false)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Monitor<'a> {
    log: &'a Log,
    /// The results of the previous pass about the last chunk.
    tail: Arc<Mutex<Tail>>,
    tallies: Tallies,
    last: u64,
    /// Triggers of the same aggregate, period and window.
    watches: Vec<Watch>,
}

/// An aggregate that is computed in each period, and the triggers over it.
#[derive(Debug)]
struct Watch {
    id: AggregateId,
    aggregate: Arc<AggregateState>,
    value: usize,
    period: u64,
    window: Option<Window>,
    /// The time of the next check.
    due: u64,
    /// Its value at the last check, and the number of records then.
    last_check: Option<(u64, Number)>,
    /// For a count: the tally at the last check.
    tally: Option<Tally>,
    /// Whether all triggers were checked, and whether any of them fired then.
    was_checked: bool,
    firing: bool,
    triggers: Vec<Watched>,
}

/// An earlier value of a tally.
#[derive(Debug, Clone, Copy)]
struct Tally {
    /// The start number of its tail.
    begun: u64,
    place: usize,
    count: u64,
}

#[derive(Debug)]
struct Watched {
    id: TriggerId,
    orderings: Orderings,
    threshold: Number,
    fired: bool,
}

/// The last periods, and the aggregate's state over all of them. It has two stacks, so that a period that leaves the window need not be removed from
/// a state, which is impossible for a maximum.
#[derive(Debug)]
struct Window {
    periods: usize,
    /// Of each earlier period, the joined state of it and of all later periods on this stack; the last entry is of the earliest period.
    earlier: Vec<State>,
    later: VecDeque<State>,
    /// The joined state of all later periods.
    sum: State,
    /// How many records were included.
    position: u64,
}

impl<'a> Monitor<'a> {
    /// A monitor without triggers.
    pub fn new(log: &'a Log) -> Self {
        Self { log, tail: Arc::default(), tallies: Tallies::default(), last: 0, watches: Vec::new() }
    }

    /// Adds a trigger, which is first checked in the next pass. A window begins now, unless a trigger of the same
    /// aggregate, period and window exists: then both share it.
    ///
    /// # Errors
    /// Fails if the aggregate does not exist, or if the period or the window is not valid.
    pub fn add(&mut self, trigger: Trigger) -> Result<TriggerId, TriggerError> {
        let Trigger { aggregate: id, relation, threshold, period, window } = trigger;
        let periods = periods(period, window)?;
        let snapshot = self.log.snapshot();
        let (aggregate, value) = snapshot.aggregate(id).ok_or(TriggerError::NoAggregate)?;
        self.last += 1;
        let watched = Watched { id: TriggerId(self.last), orderings: relation.orderings(), threshold, fired: false };
        let joins = |watch: &&mut Watch| {
            let same_window = match (&watch.window, periods) {
                (None, None) => true,
                (Some(window), Some(periods)) => window.periods == periods,
                _ => false,
            };
            watch.id == id && watch.period == period && same_window
        };
        let found = self.watches.iter_mut().find(joins);
        match found {
            Some(watch) => {
                watch.triggers.push(watched);
                watch.was_checked = false;
            }
            None => {
                let window = periods.map(|periods| Window::new(periods, aggregate, snapshot.len()));
                let aggregate = Arc::clone(aggregate);
                let triggers = vec![watched];
                self.watches.push(Watch {
                    id,
                    aggregate,
                    value,
                    period,
                    window,
                    due: 0,
                    last_check: None,
                    tally: None,
                    was_checked: false,
                    firing: false,
                    triggers,
                });
            }
        }
        Ok(TriggerId(self.last))
    }

    /// Removes a trigger; returns whether it existed.
    pub fn remove(&mut self, trigger: TriggerId) -> bool {
        let before = self.len();
        for watch in &mut self.watches {
            watch.triggers.retain(|watched| watched.id != trigger);
        }
        self.watches.retain(|watch| !watch.triggers.is_empty());
        self.len() < before
    }

    /// The number of triggers.
    pub fn len(&self) -> usize {
        self.watches.iter().map(|watch| watch.triggers.len()).sum()
    }

    /// Whether there are no triggers.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// The time of the next pass that has something to do; `None` without triggers.
    pub fn due(&self) -> Option<u64> {
        self.watches.iter().map(|watch| watch.due).min()
    }

    /// Checks the triggers whose period is over at `now`, in nanoseconds of any clock, and passes an [`Alert`] to `notify` for each that
    /// fires. Missed periods are not made up for.
    pub fn pass(&mut self, now: u64, mut notify: impl FnMut(Alert)) {
        if self.watches.iter().all(|watch| watch.due > now) {
            return;
        }
        let snapshot = self.log.snapshot_with(Arc::clone(&self.tail));
        snapshot.tallies(&mut self.tallies);
        for watch in self.watches.iter_mut().filter(|watch| watch.due <= now) {
            // In step with the previous due time, unless that is long over.
            let next = watch.due.saturating_add(watch.period);
            if watch.is_checked() {
                let missed = (now - watch.due) / watch.period;
                watch.window.iter_mut().for_each(|window| window.miss(missed, &watch.aggregate));
            }
            watch.due = if next > now { next } else { now.saturating_add(watch.period) };
            watch.look(now, &snapshot, &self.tallies, &mut notify);
        }
    }
}

impl Watch {
    /// Whether it was checked before.
    fn is_checked(&self) -> bool {
        self.last_check.is_some()
    }

    fn look(&mut self, now: u64, snapshot: &Snapshot<'_>, tallies: &Tallies, notify: &mut impl FnMut(Alert)) {
        let position = snapshot.len();
        let value = self.value(snapshot, tallies);
        let same = self.last_check.replace((position, value)).is_some_and(|(_, before)| before == value);
        if same && self.was_checked && !self.firing {
            return;
        }
        (self.was_checked, self.firing) = (true, false);
        for watched in &mut self.triggers {
            let fires = watched.orderings.contains(value.compare(watched.threshold));
            if fires {
                notify(Alert { trigger: watched.id, at: now, value, position, new: !watched.fired });
            }
            watched.fired = fires;
            self.firing |= fires;
        }
    }

    /// The aggregate's current value.
    fn value(&mut self, snapshot: &Snapshot<'_>, tallies: &Tallies) -> Number {
        let end = snapshot.len();
        if self.window.is_none()
            && let Some((position, value)) = self.last_check
            && position == end
        {
            return value;
        }
        let more = self.counted(snapshot, tallies);
        let function = &self.aggregate.function;
        match (&mut self.window, self.last_check, more) {
            (None, Some((_, Number::Unsigned(value))), Some(more)) => Number::Unsigned(value + u128::from(more)),
            (None, ..) => function.value(&snapshot.state(&self.aggregate), self.value),
            (Some(window), _, more) => {
                let state = match more {
                    Some(more) => [more.into(), 0, 0, 0],
                    None => snapshot.state_from(&self.aggregate, window.position),
                };
                window.position = end;
                function.value(&window.slide(state, &self.aggregate), self.value)
            }
        }
    }

    /// For a count: the increase since the last check, if that is known.
    fn counted(&mut self, snapshot: &Snapshot<'_>, tallies: &Tallies) -> Option<u64> {
        // The aggregate's state is not read unless needed: it may be far away in memory.
        let before = self.tally.filter(|tally| tally.begun == tallies.begun);
        let place = before.map(|tally| tally.place).or_else(|| snapshot.tallied(&self.aggregate));
        self.tally = place.map(|place| Tally { begun: tallies.begun, place, count: tallies.counts[place] });
        self.tally.zip(before).map(|(now, before)| now.count - before.count)
    }
}

impl Window {
    fn new(periods: usize, aggregate: &AggregateState, position: u64) -> Self {
        let (earlier, later) = (Vec::new(), VecDeque::new());
        Self { periods, earlier, later, sum: aggregate.function.empty(), position }
    }

    /// Moves past `periods` periods without a check. Records of that time count in the last of them.
    fn miss(&mut self, periods: u64, aggregate: &AggregateState) {
        if periods >= self.periods as u64 {
            // Nothing that was in the window is in it any more.
            self.earlier.clear();
            self.later.clear();
            self.sum = aggregate.function.empty();
            return;
        }
        for _ in 0..periods {
            self.slide(aggregate.function.empty(), aggregate);
        }
    }

    /// Adds the state of a period, removes the oldest period, and returns the state of those that are left.
    fn slide(&mut self, state: State, aggregate: &AggregateState) -> State {
        let function = &aggregate.function;
        self.later.push_back(state);
        function.join(&mut self.sum, &state);
        if self.earlier.len() + self.later.len() > self.periods {
            if self.earlier.is_empty() {
                let mut sum = function.empty();
                while let Some(later) = self.later.pop_back() {
                    function.join(&mut sum, &later);
                    self.earlier.push(sum);
                }
                self.sum = function.empty();
            }
            self.earlier.pop();
        }
        let mut all = self.earlier.last().copied().unwrap_or_else(|| function.empty());
        function.join(&mut all, &self.sum);
        all
    }
}
