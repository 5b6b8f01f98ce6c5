//! The owners of flows: the local processes that send the packets in the queue.

use queuescope_ingest::notes::noted;
use queuescope_live::capabilities::Seer;
use queuescope_live::{OwnerCounts, Owners};
use queuescope_report::model::{Burst, Culprit, Culprits, Owner, Report, Skipped};
use queuescope_wire::{FlowKey, Granularity, Nanos};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest wait for missing answers at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Finds the processes, containers and services that send the observed flows.
pub struct FlowOwners {
    /// None if the kernel does not allow to look for owners.
    owners: Option<Owners>,
    granularities: Vec<Granularity>,
}

impl FlowOwners {
    /// Looks for owners in the network namespace of this thread. `granularities` define flows. `seer` can look at the processes of other
    /// users.
    pub fn new(interface: &str, granularities: Vec<Granularity>, seer: Option<Seer>) -> Self {
        Self { owners: Owners::seen_by(interface, seer).ok(), granularities }
    }

    /// Called for each packet that was handed over; `key` has all fields.
    pub fn seen(&mut self, key: &FlowKey, now: Nanos) {
        if let Some(owners) = &mut self.owners {
            owners.seen(key, now);
        }
    }

    /// Takes the answers that are ready.
    pub fn look(&mut self) {
        if let Some(owners) = &mut self.owners {
            owners.look();
        }
    }

    /// Waits for the missing answers.
    pub fn settle(&mut self) {
        if let Some(owners) = &mut self.owners {
            owners.settle(PATIENCE);
        }
    }

    /// The owners of flows at the first granularity.
    pub fn first(&self) -> BTreeMap<FlowKey, Owner> {
        match (&self.owners, self.granularities.first()) {
            (Some(owners), Some(first)) => {
                owners.by(*first).into_iter().map(|(flow, owner)| (flow, for_expressions(&owner))).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// Adds owners to the culprits of bursts.
    pub fn bursts(&self, bursts: &mut [Burst]) {
        if !bursts.is_empty() {
            self.name(bursts.iter_mut().flat_map(|burst| &mut burst.culprits));
        }
    }

    /// Adds owners to the culprits of a report.
    pub fn report(&self, report: &mut Report) {
        let bursts = report.bursts.iter_mut().flat_map(|burst| &mut burst.culprits);
        self.name(bursts.chain(&mut report.culprits));
    }

    /// Looks up only the flows in `culprits`: to look up all known flows would take longer than the rest of the work on a burst.
    fn name<'a>(&self, culprits: impl Iterator<Item = &'a mut Culprits>) {
        let Some(owners) = &self.owners else { return };
        let key = |culprit: &Culprit| FlowKey::named(&culprit.flow).map(|(_, key)| key);
        let mut culprits: Vec<_> = culprits.collect();
        for granularity in &self.granularities {
            let name = granularity.to_string();
            let meant = culprits.iter_mut().filter(|culprits| culprits.granularity == name);
            let listed: Vec<_> = meant.flat_map(|culprits| &mut culprits.flows).collect();
            let known = owners.among(*granularity, &listed.iter().filter_map(|culprit| key(culprit)).collect());
            for culprit in listed {
                culprit.owner = key(culprit).and_then(|key| known.get(&key)).map(|owner| for_expressions(owner));
            }
        }
    }

    /// Notes on owners that could not be found.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let OwnerCounts { hidden, failed } = self.owners.as_ref().map(Owners::counts).unwrap_or_default();
        let notes = [
            noted("owners_hidden", hidden, HIDDEN),
            noted("owners_failed", failed, FAILED),
            noted("owners_unknown", self.owners.is_none().into(), UNKNOWN),
            self.stopped(),
        ];
        notes.into_iter().flatten()
    }

    /// A note if the search for owners has stopped.
    pub fn stopped(&self) -> Option<Skipped> {
        noted("owners_stopped", self.owners.as_ref().is_some_and(Owners::has_stopped).into(), STOPPED)
    }
}

const HIDDEN: &str = "flows of which the user and the cgroup are known but not the process: it is another user's, and access to its files \
                      takes the rights that `queuescope doctor owners` lists";
const FAILED: &str = "times that the kernel did not answer which socket a flow belongs to";
const STOPPED: &str =
    "the thread that looks for owners has stopped because of a fault in queuescope; later flows have no owner";
const UNKNOWN: &str = "the kernel does not allow to look up sockets (netlink sock_diag); no flow has an owner";

fn for_expressions(owner: &queuescope_live::Owner) -> Owner {
    let queuescope_live::Owner { pid, command, cgroup, container, unit, uid } = owner.clone();
    Owner { pid, command, cgroup, container, unit, uid }
}
