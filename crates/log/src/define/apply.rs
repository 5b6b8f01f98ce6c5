//! Adds definitions to a log.

use super::resolve::{Step, order};
use super::{Definitions, TriggerDefinition};
use crate::derive::State;
use crate::expr::{AggregateId, DnfError, NameError};
use crate::log::{FilterId, Log};
use crate::schema::AttributeId;
use crate::trigger::{Alert, Monitor, Trigger, TriggerError, TriggerId};
use std::collections::BTreeMap;

/// Why definitions could not be added to a log. Nothing was added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// They are for records of another schema.
    #[error("the definitions are for records of `{defined}`, and the log has `{log}`: read them with its schema")]
    OtherSchema {
        /// The schema that they were read with.
        defined: String,
        /// The schema of the log.
        log: String,
    },
    /// The name cannot be used, for example because the log has an aggregate of this name.
    #[error("{0}: use another name, or remove the other one")]
    Name(NameError),
    /// A filter exceeds the limits.
    #[error("the filter `{filter}`: {error}")]
    Filter {
        /// Its name.
        filter: String,
        /// Which limit it exceeds.
        error: DnfError,
    },
}

impl From<NameError> for ApplyError {
    /// Its text has the cause, so it must not be a source as well.
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// The ids that definitions got in a log, by their names.
///
/// ```
/// use queuescope_log::{Definitions, Log, Memory, Options, Schema, departure};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// let mut definitions = Definitions::new(log.schema());
/// definitions.add_filter("--filter", "late=delay > 1ms")?;
/// definitions.add_aggregate("--aggregate", "late_packets=count@late")?;
/// let defined = definitions.apply(&log)?;
/// log.append(&[0; departure::SIZE]);
/// let aggregate = defined.aggregate("late_packets").ok_or("not defined")?;
/// assert_eq!(log.snapshot().value(aggregate).map(|value| value.to_f64()), Some(0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Defined {
    filters: BTreeMap<String, FilterId>,
    aggregates: BTreeMap<String, AggregateId>,
    triggers: Vec<(String, Trigger)>,
    /// Indexes that were not there before.
    indexes: Vec<AttributeId>,
}

/// A monitor, and the names of its triggers.
#[derive(Debug)]
pub struct NamedMonitor<'a> {
    /// The monitor. Triggers that are added to it directly have no name.
    pub monitor: Monitor<'a>,
    names: BTreeMap<TriggerId, String>,
}

impl Definitions {
    /// Adds all definitions to a log. They cover all records that are in it, as with
    /// [`Log::add_filter`](Log::add_filter).
    ///
    /// # Errors
    /// Fails if one cannot be added; the log then stays as it was.
    pub fn apply(&self, log: &Log) -> Result<Defined, ApplyError> {
        self.apply_from(log, |_| None)
    }

    /// Like [`apply`](Self::apply), with the states of aggregates over records before those of the log, by name, where they are known
    /// ([`Log::add_aggregate_from`]).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_from(&self, log: &Log, before: impl Fn(&str) -> Option<State>) -> Result<Defined, ApplyError> {
        if !log.schema().is_compatible(&self.schema) {
            let [defined, log] = [&self.schema, log.schema()].map(|schema| schema.name().to_owned());
            return Err(ApplyError::OtherSchema { defined, log });
        }
        let mut defined = Defined::default();
        match self.add_to(log, &before, &mut defined) {
            Ok(()) => Ok(defined),
            Err(error) => {
                defined.remove(log);
                Err(error)
            }
        }
    }

    fn add_to(
        &self,
        log: &Log,
        before: &impl Fn(&str) -> Option<State>,
        defined: &mut Defined,
    ) -> Result<(), ApplyError> {
        defined.indexes = self.indexes.iter().copied().filter(|index| log.add_index(*index)).collect();
        // The ids in the log, by the indices here, which expressions use.
        let mut ids: Vec<Option<AggregateId>> = vec![None; self.aggregates.len()];
        // Reading the text has already refused circles.
        for step in order(self).unwrap_or_default() {
            match step {
                Step::Filter(at) => {
                    let filter = &self.filters[at];
                    // All aggregates that it names were added before it.
                    let expression = filter.expression.clone().with_aggregates(&|id| ids[id.0 as usize].unwrap_or(id));
                    let dnf = expression.dnf(&log.scope());
                    let dnf = dnf.map_err(|error| ApplyError::Filter { filter: filter.name.clone(), error })?;
                    defined.filters.insert(filter.name.clone(), log.add_filter(dnf));
                }
                Step::Aggregate(at) => {
                    let aggregate = &self.aggregates[at];
                    let filter = aggregate.filter.as_ref().and_then(|name| defined.filters.get(name)).copied();
                    let names = [aggregate.name.as_str()];
                    let id = match before(&aggregate.name) {
                        Some(state) => log.add_aggregate_from(&names, filter, &aggregate.function, state)?,
                        None => log.add_aggregate(&names, filter, &aggregate.function)?,
                    };
                    ids[at] = Some(id);
                    defined.aggregates.insert(aggregate.name.clone(), id);
                }
            }
        }
        defined.triggers.extend(self.triggers.iter().filter_map(|trigger| {
            let TriggerDefinition { name, aggregate, relation, threshold, period, window } = trigger.clone();
            let aggregate = *defined.aggregates.get(&aggregate)?;
            Some((name, Trigger { aggregate, relation, threshold, period, window }))
        }));
        Ok(())
    }
}

impl Defined {
    /// The filter of this name.
    pub fn filter(&self, name: &str) -> Option<FilterId> {
        self.filters.get(name).copied()
    }

    /// The aggregate of this name.
    pub fn aggregate(&self, name: &str) -> Option<AggregateId> {
        self.aggregates.get(name).copied()
    }

    /// All filters, by name.
    pub fn filters(&self) -> impl Iterator<Item = (&str, FilterId)> {
        self.filters.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// All aggregates, by name.
    pub fn aggregates(&self) -> impl Iterator<Item = (&str, AggregateId)> {
        self.aggregates.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// All triggers, with their names.
    pub fn triggers(&self) -> impl Iterator<Item = (&str, &Trigger)> {
        self.triggers.iter().map(|(name, trigger)| (name.as_str(), trigger))
    }

    /// A monitor of the log with the triggers.
    ///
    /// # Errors
    /// Fails if an aggregate was removed since.
    pub fn monitor<'a>(&self, log: &'a Log) -> Result<NamedMonitor<'a>, TriggerError> {
        let mut monitor = Monitor::new(log);
        let mut names = BTreeMap::new();
        for (name, trigger) in &self.triggers {
            names.insert(monitor.add(*trigger)?, name.clone());
        }
        Ok(NamedMonitor { monitor, names })
    }

    /// Removes all definitions from their log.
    pub fn remove(self, log: &Log) {
        for aggregate in self.aggregates.into_values() {
            log.remove_aggregate(aggregate);
        }
        for filter in self.filters.into_values() {
            log.remove_filter(filter);
        }
        for index in self.indexes {
            log.remove_index(index);
        }
    }
}

impl NamedMonitor<'_> {
    /// The name of a trigger.
    pub fn name(&self, trigger: TriggerId) -> Option<&str> {
        self.names.get(&trigger).map(String::as_str)
    }

    /// As [`Monitor::pass`], with the name of each trigger that fires.
    pub fn pass(&mut self, now: u64, mut notify: impl FnMut(&str, Alert)) {
        let names = &self.names;
        self.monitor.pass(now, |alert| notify(names.get(&alert.trigger).map_or("", String::as_str), alert));
    }
}
