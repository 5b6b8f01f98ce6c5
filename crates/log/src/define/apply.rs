//! Definitions added to a log.

use super::resolve::{Step, order};
use super::{Definitions, TriggerDefinition};
use crate::derive::State;
use crate::expr::{AggregateId, DnfError, NameError};
use crate::log::{FilterId, Log};
use crate::schema::AttributeId;
use crate::trigger::{Alert, Monitor, Trigger, TriggerError, TriggerId};
use std::collections::BTreeMap;

/// Why definitions could not be added to a log. Nothing of them was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// They are about other records.
    #[error("the definitions are about records of `{defined}`, and the log has `{log}`: read them with its schema")]
    OtherSchema {
        /// The schema that they were read with.
        defined: String,
        /// The schema of the log.
        log: String,
    },
    /// The log has an aggregate of this name.
    #[error("{0}: name it otherwise, or take the other one away")]
    Name(#[from] NameError),
    /// A filter asks for too much.
    #[error("the filter `{filter}`: {error}")]
    Filter {
        /// Its name.
        filter: String,
        /// Why it cannot be.
        error: DnfError,
    },
}

/// What definitions have become in a log, by their names.
#[derive(Debug, Clone, Default)]
pub struct Defined {
    filters: BTreeMap<String, FilterId>,
    aggregates: BTreeMap<String, AggregateId>,
    triggers: Vec<(String, Trigger)>,
    /// Indexes that were not there before.
    indexes: Vec<AttributeId>,
}

/// A monitor, and what its triggers are called.
#[derive(Debug)]
pub struct NamedMonitor<'a> {
    /// The monitor. Triggers that are added to it by themselves have no name.
    pub monitor: Monitor<'a>,
    names: BTreeMap<TriggerId, String>,
}

impl Definitions {
    /// Adds all of them to a log. What is known of its records then is known of all, as with
    /// [`Log::add_filter`](Log::add_filter).
    ///
    /// # Errors
    /// If they cannot be added: the log is then as it was.
    pub fn apply(&self, log: &Log) -> Result<Defined, ApplyError> {
        self.apply_from(log, |_| None)
    }

    /// The same, with what aggregates are, by their names, of records before those of the log, where that is known
    /// ([`Log::add_aggregate_from`]).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_from(&self, log: &Log, before: impl Fn(&str) -> Option<State>) -> Result<Defined, ApplyError> {
        if log.schema() != &self.schema {
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
        // By their places here, which expressions name, what they are in the log.
        let mut ids: Vec<Option<AggregateId>> = vec![None; self.aggregates.len()];
        // A circle was refused when the text was read.
        for step in order(self).unwrap_or_default() {
            match step {
                Step::Filter(at) => {
                    let filter = &self.filters[at];
                    // All of its aggregates were added before it.
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

    /// All filters by their names.
    pub fn filters(&self) -> impl Iterator<Item = (&str, FilterId)> {
        self.filters.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// All aggregates by their names.
    pub fn aggregates(&self) -> impl Iterator<Item = (&str, AggregateId)> {
        self.aggregates.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// A monitor of the log that has the triggers.
    ///
    /// # Errors
    /// If an aggregate was taken away since.
    pub fn monitor<'a>(&self, log: &'a Log) -> Result<NamedMonitor<'a>, TriggerError> {
        let mut monitor = Monitor::new(log);
        let mut names = BTreeMap::new();
        for (name, trigger) in &self.triggers {
            names.insert(monitor.add(*trigger)?, name.clone());
        }
        Ok(NamedMonitor { monitor, names })
    }

    /// Takes all of it away from the log that it is in.
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
    /// What a trigger is called.
    pub fn name(&self, trigger: TriggerId) -> Option<&str> {
        self.names.get(&trigger).map(String::as_str)
    }

    /// As [`Monitor::pass`], with the name of each trigger that fires.
    pub fn pass(&mut self, now: u64, mut tell: impl FnMut(&str, Alert)) {
        let names = &self.names;
        self.monitor.pass(now, |alert| tell(names.get(&alert.trigger).map_or("", String::as_str), alert));
    }
}
