//! Triggers: conditions over aggregates that are looked at again and again.
//!
//! A [`Monitor`] has the triggers and is called with the time, as often as the shortest of their periods. A pass takes
//! one snapshot. It works out each aggregate that a trigger of the pass is about once, from where the pass before ended
//! on; a window slides by whole passes.

use crate::derive::{AggregateState, State, Tail, Tallies};
use crate::expr::{AggregateId, Number, Orderings, Relation};
use crate::log::{Log, Snapshot};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A condition over an aggregate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trigger {
    /// Which of an aggregate's values.
    pub aggregate: AggregateId,
    /// How it compares when the trigger fires,
    pub relation: Relation,
    /// with this.
    pub threshold: Number,
    /// How often it is looked at, in nanoseconds.
    pub period: u64,
    /// Of the records of which time is meant, in nanoseconds before now: whole periods, so that it is rounded up to
    /// such. `None`: of all.
    pub window: Option<u64>,
}

/// A trigger of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerId(u64);

/// A trigger fired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alert {
    /// Which.
    pub trigger: TriggerId,
    /// When, by the time that the pass was called with.
    pub at: u64,
    /// The aggregate's value.
    pub value: Number,
    /// How many records the log had: those before this position were seen.
    pub position: u64,
    /// Whether it did not fire when it was looked at before.
    pub new: bool,
}

/// Why there is no such trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// The aggregate is not there.
    #[error("there is no such aggregate in the log; it may have been removed")]
    NoAggregate,
    /// The period is zero.
    #[error("a trigger's period is longer than nothing")]
    NoPeriod,
    /// The window is many periods.
    #[error("a window is {MOST_PERIODS} periods at most: make the period longer")]
    LongWindow,
}

/// Periods of a window, at most: each has a state of its own.
const MOST_PERIODS: u64 = 1 << 16;

/// Periods of a trigger's window, if it can have them.
pub(crate) fn periods(period: u64, window: Option<u64>) -> Result<Option<usize>, TriggerError> {
    if period == 0 {
        return Err(TriggerError::NoPeriod);
    }
    match window.map(|window| window.div_ceil(period).max(1)) {
        Some(periods) if periods > MOST_PERIODS => Err(TriggerError::LongWindow),
        periods => Ok(periods.map(|periods| periods as usize)),
    }
}

/// Triggers over the aggregates of a log. It holds no records between its passes. Of those that came and were
/// [released](Log::release) between two of them, a window knows nothing; what is asked of all records still counts them.
#[derive(Debug)]
pub struct Monitor<'a> {
    log: &'a Log,
    /// What the pass before worked out of the last chunk.
    tail: Arc<Mutex<Tail>>,
    tallies: Tallies,
    last: u64,
    /// Triggers of the same aggregate, period and window.
    watches: Vec<Watch>,
}

/// An aggregate that is worked out again each period, and the triggers over it.
#[derive(Debug)]
struct Watch {
    id: AggregateId,
    aggregate: Arc<AggregateState>,
    value: usize,
    period: u64,
    window: Option<Window>,
    /// When it is looked at next.
    due: u64,
    /// Its value when it was looked at, and how many records there were.
    known: Option<(u64, Number)>,
    /// For a count: how much was counted then.
    tally: Option<Tally>,
    /// Whether all triggers were looked at, and whether any of them fired then.
    looked: bool,
    firing: bool,
    triggers: Vec<Watched>,
}

/// What one of the tallies was.
#[derive(Debug, Clone, Copy)]
struct Tally {
    /// Of which tail.
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

/// The last periods, and what the aggregate is of all of them: two stacks, so that what leaves need not be taken out of
/// a state, which a maximum could not do.
#[derive(Debug)]
struct Window {
    periods: usize,
    /// Of each of the earlier periods and all between it and the later ones; the last is the earliest.
    earlier: Vec<State>,
    later: VecDeque<State>,
    /// Of all later ones.
    sum: State,
    /// How many records were taken in.
    position: u64,
}

impl<'a> Monitor<'a> {
    /// A monitor without triggers.
    pub fn new(log: &'a Log) -> Self {
        Self { log, tail: Arc::default(), tallies: Tallies::default(), last: 0, watches: Vec::new() }
    }

    /// Adds a trigger, which is looked at first in the next pass. A window begins now, unless another trigger of the
    /// aggregate has the same, which it shares.
    ///
    /// # Errors
    /// If it cannot be.
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
                watch.looked = false;
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
                    known: None,
                    tally: None,
                    looked: false,
                    firing: false,
                    triggers,
                });
            }
        }
        Ok(TriggerId(self.last))
    }

    /// Takes a trigger away; whether it was there.
    pub fn remove(&mut self, trigger: TriggerId) -> bool {
        let before = self.len();
        for watch in &mut self.watches {
            watch.triggers.retain(|watched| watched.id != trigger);
        }
        self.watches.retain(|watch| !watch.triggers.is_empty());
        self.len() < before
    }

    /// How many triggers there are.
    pub fn len(&self) -> usize {
        self.watches.iter().map(|watch| watch.triggers.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// When the next pass has something to do; `None` without triggers.
    pub fn due(&self) -> Option<u64> {
        self.watches.iter().map(|watch| watch.due).min()
    }

    /// Looks at the triggers whose period is over at `now`, in nanoseconds of whichever clock, and tells those that
    /// fire. A period that was missed is not made up for.
    pub fn pass(&mut self, now: u64, mut tell: impl FnMut(Alert)) {
        if self.watches.iter().all(|watch| watch.due > now) {
            return;
        }
        let snapshot = self.log.snapshot_with(Arc::clone(&self.tail));
        snapshot.tallies(&mut self.tallies);
        for watch in self.watches.iter_mut().filter(|watch| watch.due <= now) {
            // In step with what was due, unless that is long over.
            let next = watch.due.saturating_add(watch.period);
            if watch.looked_at() {
                let missed = (now - watch.due) / watch.period;
                watch.window.iter_mut().for_each(|window| window.miss(missed, &watch.aggregate));
            }
            watch.due = if next > now { next } else { now.saturating_add(watch.period) };
            watch.look(now, &snapshot, &self.tallies, &mut tell);
        }
    }
}

impl Watch {
    /// Whether it was looked at before.
    fn looked_at(&self) -> bool {
        self.known.is_some()
    }

    fn look(&mut self, now: u64, snapshot: &Snapshot<'_>, tallies: &Tallies, tell: &mut impl FnMut(Alert)) {
        let position = snapshot.len();
        let value = self.value(snapshot, tallies);
        let same = self.known.replace((position, value)).is_some_and(|(_, before)| before == value);
        if same && self.looked && !self.firing {
            return;
        }
        (self.looked, self.firing) = (true, false);
        for watched in &mut self.triggers {
            let fires = watched.orderings.contains(value.compare(watched.threshold));
            if fires {
                tell(Alert { trigger: watched.id, at: now, value, position, new: !watched.fired });
            }
            watched.fired = fires;
            self.firing |= fires;
        }
    }

    /// What the aggregate is now.
    fn value(&mut self, snapshot: &Snapshot<'_>, tallies: &Tallies) -> Number {
        let end = snapshot.len();
        if self.window.is_none()
            && let Some((position, value)) = self.known
            && position == end
        {
            return value;
        }
        let more = self.counted(snapshot, tallies);
        let function = &self.aggregate.function;
        match (&mut self.window, self.known, more) {
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

    /// For a count: how much was counted since it was looked at before, if that is known.
    fn counted(&mut self, snapshot: &Snapshot<'_>, tallies: &Tallies) -> Option<u64> {
        // The aggregate is not looked at if that is not needed: it may be far away.
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

    /// So many periods were over without being looked at. What came meanwhile is counted to the last of them.
    fn miss(&mut self, periods: u64, aggregate: &AggregateState) {
        if periods >= self.periods as u64 {
            // Nothing of what there was is in it any more.
            self.earlier.clear();
            self.later.clear();
            self.sum = aggregate.function.empty();
            return;
        }
        for _ in 0..periods {
            self.slide(aggregate.function.empty(), aggregate);
        }
    }

    /// Takes in what a period brought, lets go of the one that is too long ago, and tells what is left.
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
