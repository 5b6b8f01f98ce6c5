//! Triggers: conditions over aggregates that are checked periodically.
//!
//! A [`Monitor`] has the triggers. The caller runs its passes with the current time, as often as the shortest period. A pass takes
//! one snapshot. It computes each aggregate that its triggers need once, continuing where the previous pass ended;
//! a window slides by whole passes.

use crate::derive::{AggregateState, State, Tail, Tallies};
use crate::expr::{AggregateId, Number, Orderings, Relation};
use crate::log::{Log, Snapshot};
use std::cmp::Ordering;
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
    /// When the next check is due.
    next: u64,
    /// One for each watch: all that a pass reads of most watches, in few cache lines.
    checks: Vec<Check>,
    /// Triggers of the same aggregate, period and window.
    watches: Vec<Watch>,
}

/// When a watch is checked, and whether that needs more than a look at its tally.
#[derive(Debug)]
struct Check {
    /// The time of the next check.
    due: u64,
    period: u64,
    /// The place of the watch's tally, if it counts all records.
    place: usize,
    /// Below this tally no trigger fires, because none did at the last check and no threshold is reached. For tallies of the same start as those of
    /// the monitor.
    calm: u64,
}

/// An aggregate that is computed in each period, and the triggers over it.
#[derive(Debug)]
struct Watch {
    id: AggregateId,
    aggregate: Arc<AggregateState>,
    value: usize,
    window: Option<Window>,
    /// Its value when it was last computed, and the number of records then.
    last_value: Option<(u64, Number)>,
    /// For a count: the tally then.
    tally: Option<Tally>,
    /// Values with which no trigger fires, if none fired at the last check: those between the nearest thresholds.
    calm: Option<Between>,
    triggers: Vec<Watched>,
}

/// All numbers, or those above a limit, below another, or both.
#[derive(Debug, Clone, Copy, Default)]
struct Between {
    low: Option<Number>,
    high: Option<Number>,
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
        let (tail, tallies) = (Arc::default(), Tallies::default());
        Self { log, tail, tallies, last: 0, next: 0, checks: Vec::new(), watches: Vec::new() }
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
        let joins = |(check, watch): &(&mut Check, &mut Watch)| {
            let same_window = match (&watch.window, periods) {
                (None, None) => true,
                (Some(window), Some(periods)) => window.periods == periods,
                _ => false,
            };
            watch.id == id && check.period == period && same_window
        };
        let found = self.checks.iter_mut().zip(&mut self.watches).find(joins);
        match found {
            Some((check, watch)) => {
                watch.triggers.push(watched);
                watch.calm = None;
                check.calm = 0;
            }
            None => {
                let window = periods.map(|periods| Window::new(periods, aggregate, snapshot.len()));
                let (aggregate, triggers) = (Arc::clone(aggregate), vec![watched]);
                self.checks.push(Check { due: 0, period, place: 0, calm: 0 });
                self.watches.push(Watch {
                    id,
                    aggregate,
                    value,
                    window,
                    last_value: None,
                    tally: None,
                    calm: None,
                    triggers,
                });
                self.next = 0;
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
        let mut watches = self.watches.iter();
        self.checks.retain(|_| watches.next().is_some_and(|watch| !watch.triggers.is_empty()));
        self.watches.retain(|watch| !watch.triggers.is_empty());
        self.next = self.checks.iter().map(|check| check.due).min().unwrap_or_default();
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
    #[inline]
    pub fn due(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.next)
    }

    /// Checks the triggers whose period is over at `now`, in nanoseconds of any clock, and passes an [`Alert`] to `notify` for each that
    /// fires. Missed periods are not made up for.
    pub fn pass(&mut self, now: u64, mut notify: impl FnMut(Alert)) {
        if self.is_empty() || self.next > now {
            return;
        }
        let snapshot = self.log.snapshot_with(Arc::clone(&self.tail));
        let begun = self.tallies.begun;
        snapshot.tallies(&mut self.tallies);
        let continued = self.tallies.begun == begun;
        let tallies = &self.tallies;
        let mut next = u64::MAX;
        for (check, watch) in self.checks.iter_mut().zip(&mut self.watches) {
            if check.due <= now {
                let missed = check.missed(now);
                if !continued || tallies.counts.get(check.place).is_none_or(|count| *count >= check.calm) {
                    watch.look(now, missed, &snapshot, tallies, &mut notify);
                    (check.place, check.calm) = watch.calm_tally(tallies.begun);
                }
            }
            next = next.min(check.due);
        }
        self.next = next;
    }
}

impl Check {
    /// Sets the time of the next check. Returns the number of periods that passed without a check before this one.
    fn missed(&mut self, now: u64) -> u64 {
        let missed = (now - self.due) / self.period;
        // In step with the previous due time, unless that is long over.
        let next = self.due.saturating_add(self.period);
        self.due = if next > now { next } else { now.saturating_add(self.period) };
        missed
    }
}

impl Watch {
    fn look(
        &mut self,
        now: u64,
        missed: u64,
        snapshot: &Snapshot<'_>,
        tallies: &Tallies,
        notify: &mut impl FnMut(Alert),
    ) {
        if let (Some(window), Some(_)) = (&mut self.window, self.last_value) {
            window.miss(missed, &self.aggregate);
        }
        let position = snapshot.len();
        let value = self.value(snapshot, tallies);
        let same = self.last_value.replace((position, value)).is_some_and(|(_, before)| before == value);
        if self.calm.is_some_and(|calm| same || calm.contains(value)) {
            return;
        }
        let mut fired = false;
        let mut calm = Between::default();
        for watched in &mut self.triggers {
            let ordering = value.compare(watched.threshold);
            let fires = watched.orderings.contains(ordering);
            if fires {
                notify(Alert { trigger: watched.id, at: now, value, position, new: !watched.fired });
            }
            watched.fired = fires;
            fired |= fires;
            calm.narrow(watched.threshold, ordering);
        }
        self.calm = (!fired).then_some(calm);
    }

    /// The place of its tally, and the tally below which its value stays calm; zero if that is not known.
    fn calm_tally(&self, begun: u64) -> (usize, u64) {
        let (None, Some(tally), Some((_, value)), Some(calm)) = (&self.window, self.tally, self.last_value, self.calm)
        else {
            return (0, 0);
        };
        // Its value was computed without a tally if no record came since it was known.
        if tally.begun != begun {
            return (0, 0);
        }
        let more = match (calm.high, value) {
            (None, _) => u64::MAX,
            (Some(Number::Unsigned(high)), Number::Unsigned(value)) => {
                high.saturating_sub(value).try_into().unwrap_or(u64::MAX)
            }
            _ => 0,
        };
        // The same value is calm even if it is a threshold.
        (tally.place, tally.count.saturating_add(more.max(1)))
    }

    /// The aggregate's current value.
    fn value(&mut self, snapshot: &Snapshot<'_>, tallies: &Tallies) -> Number {
        let end = snapshot.len();
        if self.window.is_none()
            && let Some((position, value)) = self.last_value
            && position == end
        {
            return value;
        }
        let more = self.counted(snapshot, tallies);
        let function = &self.aggregate.function;
        match (&mut self.window, self.last_value, more) {
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

impl Between {
    fn contains(&self, value: Number) -> bool {
        self.low.is_none_or(|low| value.compare(low).is_gt())
            && self.high.is_none_or(|high| value.compare(high).is_lt())
    }

    /// Leaves only numbers that compare like the present one with a threshold, which is in this order to it; the present one may be a limit.
    fn narrow(&mut self, threshold: Number, ordering: Ordering) {
        if ordering.is_ge() && self.low.is_none_or(|low| threshold.compare(low).is_gt()) {
            self.low = Some(threshold);
        }
        if ordering.is_le() && self.high.is_none_or(|high| threshold.compare(high).is_lt()) {
            self.high = Some(threshold);
        }
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
