//! Owners of flows: which process of this machine sends what is in the queue.

use queuescope_ingest::notes::noted;
use queuescope_live::capabilities::Seer;
use queuescope_live::{OwnerCounts, Owners};
use queuescope_report::model::{Burst, Culprit, Culprits, Owner, Report, Skipped};
use queuescope_wire::{FlowKey, Granularity, Nanos};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer is not waited for answers at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Processes, containers and services that send the flows of which packets were handed over.
pub struct FlowOwners {
    /// None if the kernel may not be asked.
    owners: Option<Owners>,
    granularities: Vec<Granularity>,
}

impl FlowOwners {
    /// For an interface of the network namespace that this thread is in, and what a flow is there; `seer` sees processes of other users.
    pub fn new(interface: &str, granularities: Vec<Granularity>, seer: Option<Seer>) -> Self {
        Self { owners: Owners::seen_by(interface, seer).ok(), granularities }
    }

    /// A packet of a flow was told; `key` has all fields.
    pub fn seen(&mut self, key: &FlowKey, now: Nanos) {
        if let Some(owners) = &mut self.owners {
            owners.seen(key, now);
        }
    }

    /// Takes the answers that have come.
    pub fn look(&mut self) {
        if let Some(owners) = &mut self.owners {
            owners.look();
        }
    }

    /// Waits for those that have not.
    pub fn settle(&mut self) {
        if let Some(owners) = &mut self.owners {
            owners.settle(PATIENCE);
        }
    }

    /// Who sends the flows at the first granularity.
    pub fn first(&self) -> BTreeMap<FlowKey, Owner> {
        match (&self.owners, self.granularities.first()) {
            (Some(owners), Some(first)) => {
                owners.by(*first).into_iter().map(|(flow, owner)| (flow, for_expressions(&owner))).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// Says of bursts who is to blame.
    pub fn bursts(&self, bursts: &mut [Burst]) {
        if !bursts.is_empty() {
            self.name(bursts.iter_mut().flat_map(|burst| &mut burst.culprits));
        }
    }

    /// Says it of a whole report.
    pub fn report(&self, report: &mut Report) {
        let bursts = report.bursts.iter_mut().flat_map(|burst| &mut burst.culprits);
        self.name(bursts.chain(&mut report.culprits));
    }

    /// Only flows that are told are looked up: to name all that are known would take longer than all else of a burst.
    fn name<'a>(&self, culprits: impl Iterator<Item = &'a mut Culprits>) {
        let Some(owners) = &self.owners else { return };
        let key = |culprit: &Culprit| FlowKey::named(&culprit.flow).map(|(_, key)| key);
        let mut culprits: Vec<_> = culprits.collect();
        for granularity in &self.granularities {
            let name = granularity.to_string();
            let meant = culprits.iter_mut().filter(|culprits| culprits.granularity == name);
            let told: Vec<_> = meant.flat_map(|culprits| &mut culprits.flows).collect();
            let known = owners.among(*granularity, &told.iter().filter_map(|culprit| key(culprit)).collect());
            for culprit in told {
                culprit.owner = key(culprit).and_then(|key| known.get(&key)).map(|owner| for_expressions(owner));
            }
        }
    }

    /// What was remarkable.
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

    /// That no more owners will be found, if it is so.
    pub fn stopped(&self) -> Option<Skipped> {
        noted("owners_stopped", self.owners.as_ref().is_some_and(Owners::has_stopped).into(), STOPPED)
    }
}

const HIDDEN: &str = "flows of which the user and the cgroup are known but not the process: it is another user's, and to see its files \
                      takes what `queuescope doctor owners` tells";
const FAILED: &str = "times that the kernel did not say whose a flow is";
const STOPPED: &str =
    "the thread that looks for owners has stopped, by a fault of queuescope; flows that were new then have none";
const UNKNOWN: &str =
    "the kernel may not be asked whose flows are (a socket of netlink, sock_diag); no flow has an owner";

fn for_expressions(owner: &queuescope_live::Owner) -> Owner {
    let queuescope_live::Owner { pid, command, cgroup, container, unit, uid } = owner.clone();
    Owner { pid, command, cgroup, container, unit, uid }
}
