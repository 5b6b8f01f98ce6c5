//! Which hosts' traffic is metered together (an aggregate), and the contract of each aggregate.

use super::{AbcError, MeterParams, RateMeter, activity};
use crate::Host;
use crate::hash_to_queues::digest;
use hashbrown::HashTable;
use queuescope_wire::{ByteCount, Class, Nanos, Rate};

/// The aggregates of an edge node, and the hosts that belong to each.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregates {
    /// The contract of each aggregate.
    pub contracts: Vec<Contract>,
    /// Source hosts, each with the index of its aggregate in `contracts`.
    pub hosts: Vec<(Host, u32)>,
    /// How the node treats hosts that are not among `hosts`.
    pub others: Others,
}

/// The contract of an aggregate: its traffic descriptor (section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// R_r: the rate at which its activity is 0. Of two aggregates that compete, one with twice the reference rate can
    /// send twice as much at the same activity. 10 kb/s by default.
    pub reference: Rate,
    /// Its delay class, which the edge writes into its packets. 0 by default.
    pub class: Class,
}

/// What an edge does with packets of hosts that have no contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Each such host is an aggregate of its own.
    EachHost {
        /// The contract of each of these hosts.
        contract: Contract,
        /// How many such hosts the node remembers at a time. A host that was silent for five memories makes room for
        /// the next one. If no host was silent that long, the next one is metered together with all others that find no
        /// room.
        most: u32,
    },
    /// All these hosts together are one aggregate.
    Together(Contract),
    /// These packets come from inside the domain, where another edge has metered them. They keep their activity.
    Inside,
}

/// 10 kb/s in class 0.
impl Default for Contract {
    fn default() -> Self {
        Self { reference: Rate::from_bits_per_second(10_000).expect("not zero"), class: Class(0) }
    }
}

/// Each source host is an aggregate of its own (section 5.2).
impl Default for Aggregates {
    fn default() -> Self {
        let others = Others::EachHost { contract: Contract::default(), most: 4096 };
        Self { contracts: Vec::new(), hosts: Vec::new(), others }
    }
}

/// Memories of silence after which an aggregate's rate has decayed to less than a hundredth.
const SILENT_MEMORIES: u64 = 5;
/// How many aggregates are examined to find one that makes room.
const MAX_EXAMINED: usize = 8;

/// The meters of all aggregates.
#[derive(Debug)]
pub(super) struct AggregateMeters {
    params: MeterParams,
    others: Others,
    /// Indexes into `meters`, by host.
    hosts: HashTable<(Host, u32)>,
    meters: Vec<AggregateMeter>,
    /// Index of the first meter that was created for a host without a contract. The meter before it is shared by all
    /// hosts that find no room.
    first_implicit: usize,
    /// Where the search for an aggregate that makes room continues.
    cursor: usize,
    /// Aggregates that made room, and packets that were metered with others for lack of room.
    pub replaced: u64,
    pub crowded: u64,
}

#[derive(Debug, Clone, Copy)]
struct AggregateMeter {
    contract: Contract,
    rate: RateMeter,
    /// The host, for a meter that was created for a host without a contract.
    host: Host,
}

impl AggregateMeters {
    pub fn new(aggregates: &Aggregates, params: MeterParams) -> Result<Self, AbcError> {
        let meter = |contract: Contract| AggregateMeter { contract, rate: RateMeter::default(), host: Host(0) };
        let mut meters = aggregates.contracts.iter().copied().map(meter).collect::<Vec<_>>();
        let mut hosts = HashTable::with_capacity(aggregates.hosts.len());
        for (host, aggregate) in &aggregates.hosts {
            if *aggregate as usize >= meters.len() {
                return Err(AbcError::Aggregate { host: host.0, aggregate: *aggregate, contracts: meters.len() });
            }
            if find(&hosts, *host).is_some() {
                return Err(AbcError::HostTwice { host: host.0 });
            }
            insert(&mut hosts, *host, *aggregate);
        }
        match aggregates.others {
            Others::EachHost { contract, .. } | Others::Together(contract) => meters.push(meter(contract)),
            Others::Inside => {}
        }
        let first_implicit = meters.len();
        Ok(Self {
            params,
            others: aggregates.others,
            hosts,
            meters,
            first_implicit,
            cursor: 0,
            replaced: 0,
            crowded: 0,
        })
    }

    /// Records a packet of `host`. Returns its activity and its contract, or `None` if the host is not metered here.
    #[inline]
    pub fn record(&mut self, host: Host, size: ByteCount, now: Nanos) -> Option<(f64, Contract)> {
        let place = match find(&self.hosts, host) {
            Some(place) => place as usize,
            None => self.meter_of_new_host(host, now)?,
        };
        let meter = &mut self.meters[place];
        let rate = meter.rate.record(size, now, &self.params);
        Some((activity(rate, meter.contract.reference), meter.contract))
    }

    /// Returns the meter of a host that has none yet.
    fn meter_of_new_host(&mut self, host: Host, now: Nanos) -> Option<usize> {
        let common = self.first_implicit.wrapping_sub(1);
        let (contract, most) = match self.others {
            Others::Inside => return None,
            Others::Together(_) => return Some(common),
            Others::EachHost { contract, most } => (contract, most),
        };
        let new = AggregateMeter { contract, rate: RateMeter::default(), host };
        let implicit = self.meters.len() - self.first_implicit;
        let place = if implicit < most as usize {
            self.meters.push(new);
            self.meters.len() - 1
        } else if let Some(place) = self.find_silent(implicit, now) {
            let old = self.meters[place].host;
            if let Ok(entry) = self.hosts.find_entry(hash(old), |(host, _)| *host == old) {
                entry.remove();
            }
            self.meters[place] = new;
            self.replaced += 1;
            place
        } else {
            self.crowded += 1;
            return Some(common);
        };
        insert(&mut self.hosts, host, place as u32);
        Some(place)
    }

    /// Returns one of a few meters that has been silent for long, if there is one.
    fn find_silent(&mut self, implicit: usize, now: Nanos) -> Option<usize> {
        let silence = Nanos(self.params.memory.0.saturating_mul(SILENT_MEMORIES));
        for _ in 0..MAX_EXAMINED.min(implicit) {
            self.cursor = (self.cursor + 1) % implicit;
            let place = self.first_implicit + self.cursor;
            let last = self.meters[place].rate.last();
            if last.is_none_or(|last| now.saturating_sub(last) >= silence) {
                return Some(place);
            }
        }
        None
    }
}

#[inline]
fn hash(host: Host) -> u64 {
    digest(u64::from(host.0))
}

#[inline]
fn find(hosts: &HashTable<(Host, u32)>, host: Host) -> Option<u32> {
    hosts.find(hash(host), |(known, _)| *known == host).map(|(_, place)| *place)
}

fn insert(hosts: &mut HashTable<(Host, u32)>, host: Host, place: u32) {
    hosts.insert_unique(hash(host), (host, place), |(host, _)| hash(*host));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap()
    }

    fn activity_of(meters: &mut AggregateMeters, host: u32, time: u64) -> Option<f64> {
        meters.record(Host(host), ByteCount(1500), Nanos(time)).map(|(activity, _)| activity)
    }

    #[test]
    fn hosts_of_an_aggregate_are_metered_together() {
        let contract = |bits, class| Contract { reference: rate(bits), class: Class(class) };
        let aggregates = Aggregates {
            contracts: vec![contract(10_000, 0), contract(40_000, 3)],
            hosts: vec![(Host(5), 0), (Host(6), 1), (Host(7), 1)],
            others: Others::Inside,
        };
        let mut meters = AggregateMeters::new(&aggregates, MeterParams::default()).unwrap();
        let first = activity_of(&mut meters, 5, 0).unwrap();
        // Four times the reference rate is an activity of 2. A second packet at the same time doubles the rate.
        let second = activity_of(&mut meters, 6, 0).unwrap();
        assert!((first - 2.0 - second).abs() < 1e-12);
        let third = activity_of(&mut meters, 7, 0).unwrap();
        assert!((second + 1.0 - third).abs() < 1e-12);
        assert_eq!(meters.record(Host(6), ByteCount(1), Nanos(1)).unwrap().1, contract(40_000, 3));
        assert_eq!(activity_of(&mut meters, 8, 0), None);
    }

    #[test]
    fn memory_is_bounded_and_hosts_without_room_are_metered_together() {
        let others = Others::EachHost { contract: Contract::default(), most: 2 };
        let mut meters =
            AggregateMeters::new(&Aggregates { others, ..Aggregates::default() }, MeterParams::default()).unwrap();
        let alone = activity_of(&mut meters, 1, 0).unwrap();
        assert_eq!(activity_of(&mut meters, 2, 0), Some(alone));
        assert_eq!(activity_of(&mut meters, 3, 0), Some(alone));
        let together = activity_of(&mut meters, 4, 0).unwrap();
        assert!((alone + 1.0 - together).abs() < 1e-12);
        assert_eq!((meters.crowded, meters.replaced), (2, 0));
        // 15 s later host 1 has been silent for five memories, host 2 has not.
        activity_of(&mut meters, 2, 1_000_000_000);
        let again = activity_of(&mut meters, 3, 15_000_000_000).unwrap();
        assert!((again - alone).abs() < 1e-12, "a meter that was taken over starts without history");
        assert_eq!((meters.crowded, meters.replaced, meters.meters.len()), (2, 1, 3));
        activity_of(&mut meters, 1, 15_000_000_000);
        assert_eq!((meters.crowded, meters.replaced), (3, 1));
        assert_eq!(meters.hosts.len(), 2);
    }

    #[test]
    fn hosts_without_a_contract_may_be_one_aggregate() {
        let others = Others::Together(Contract::default());
        let mut meters =
            AggregateMeters::new(&Aggregates { others, ..Aggregates::default() }, MeterParams::default()).unwrap();
        let first = activity_of(&mut meters, 1, 0).unwrap();
        assert!((activity_of(&mut meters, 2, 0).unwrap() - first - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_table_with_mistakes_is_refused() {
        let error = |hosts| {
            let aggregates = Aggregates { contracts: vec![Contract::default()], hosts, others: Others::Inside };
            AggregateMeters::new(&aggregates, MeterParams::default()).unwrap_err().to_string()
        };
        assert_eq!(
            error(vec![(Host(5), 1)]),
            "host 5 cannot be of aggregate 1: there are 1 contracts, numbered from 0"
        );
        assert_eq!(error(vec![(Host(5), 0), (Host(5), 0)]), "host 5 is in the table of aggregates twice");
    }
}
