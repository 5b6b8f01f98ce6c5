//! Whose traffic is metered together, and what it was promised.

use super::{AbcError, MeterParams, RateMeter, activity};
use crate::Host;
use crate::hash_to_queues::digest;
use hashbrown::HashTable;
use queuescope_wire::{ByteCount, Class, Nanos, Rate};

/// Who belongs to which aggregate at an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregates {
    /// What each aggregate was promised.
    pub contracts: Vec<Contract>,
    /// Source hosts and their aggregates, by number in `contracts`.
    pub hosts: Vec<(Host, u32)>,
    /// Whoever is not among `hosts`.
    pub others: Others,
}

/// What an aggregate was promised: its traffic descriptor (section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// R_r: the rate at which its activity is 0. Of two aggregates that compete, one with twice the reference rate can send
    /// twice as much at the same activity. 10 kb/s by default.
    pub reference: Rate,
    /// Its delay class, which the edge writes into its packets. 0 by default.
    pub class: Class,
}

/// What an edge does with packets of hosts that it has no contract for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Each such host is an aggregate of its own.
    EachHost {
        /// What each was promised.
        contract: Contract,
        /// So many are remembered at a time. One that was silent for five memories makes room for the next; if there is none,
        /// the next is metered together with all others that find no room.
        most: u32,
    },
    /// They are one aggregate.
    Together(Contract),
    /// They come from inside the domain, where another edge has metered them: their packets are left as they are.
    Inside,
}

/// 10 kb/s in class 0.
impl Default for Contract {
    fn default() -> Self {
        Self { reference: Rate::from_bits_per_second(10_000).expect("not zero"), class: Class(0) }
    }
}

/// Each source host by itself (section 5.2).
impl Default for Aggregates {
    fn default() -> Self {
        let others = Others::EachHost { contract: Contract::default(), most: 4096 };
        Self { contracts: Vec::new(), hosts: Vec::new(), others }
    }
}

/// An aggregate that was silent for so many memories counts for less than a hundredth of what it was.
const FORGOTTEN: u64 = 5;
/// Aggregates that are looked at, for one to make room.
const LOOKED_AT: usize = 8;

/// The meters of all aggregates.
#[derive(Debug)]
pub(super) struct Meters {
    params: MeterParams,
    others: Others,
    /// Places in `meters`, by host.
    hosts: HashTable<(Host, u32)>,
    meters: Vec<Meter>,
    /// The first of `meters` that is of a host without a contract of its own; before it is the one for all others.
    first_learnt: usize,
    /// Whose turn it is to make room.
    hand: usize,
    /// Aggregates that made room, and packets that were metered with others for lack of it.
    pub replaced: u64,
    pub crowded: u64,
}

#[derive(Debug, Clone, Copy)]
struct Meter {
    contract: Contract,
    rate: RateMeter,
    /// Of one that was learnt.
    host: Host,
}

impl Meters {
    pub fn new(aggregates: &Aggregates, params: MeterParams) -> Result<Self, AbcError> {
        let meter = |contract: Contract| Meter { contract, rate: RateMeter::default(), host: Host(0) };
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
        let first_learnt = meters.len();
        Ok(Self { params, others: aggregates.others, hosts, meters, first_learnt, hand: 0, replaced: 0, crowded: 0 })
    }

    /// A packet of `host` comes: its activity and its contract; none if it is not metered here.
    #[inline]
    pub fn record(&mut self, host: Host, size: ByteCount, now: Nanos) -> Option<(f64, Contract)> {
        let place = match find(&self.hosts, host) {
            Some(place) => place as usize,
            None => self.other(host, now)?,
        };
        let meter = &mut self.meters[place];
        let rate = meter.rate.record(size, now, &self.params);
        Some((activity(rate, meter.contract.reference), meter.contract))
    }

    /// The meter of a host that is not known yet.
    fn other(&mut self, host: Host, now: Nanos) -> Option<usize> {
        let common = self.first_learnt.wrapping_sub(1);
        let (contract, most) = match self.others {
            Others::Inside => return None,
            Others::Together(_) => return Some(common),
            Others::EachHost { contract, most } => (contract, most),
        };
        let new = Meter { contract, rate: RateMeter::default(), host };
        let learnt = self.meters.len() - self.first_learnt;
        let place = if learnt < most as usize {
            self.meters.push(new);
            self.meters.len() - 1
        } else if let Some(place) = self.forgotten(learnt, now) {
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

    /// One of a few that has been silent for long, if there is one.
    fn forgotten(&mut self, learnt: usize, now: Nanos) -> Option<usize> {
        let silence = Nanos(self.params.memory.0.saturating_mul(FORGOTTEN));
        for _ in 0..LOOKED_AT.min(learnt) {
            self.hand = (self.hand + 1) % learnt;
            let place = self.first_learnt + self.hand;
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
    hosts.find(hash(host), |(other, _)| *other == host).map(|(_, place)| *place)
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

    fn activity_of(meters: &mut Meters, host: u32, time: u64) -> Option<f64> {
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
        let mut meters = Meters::new(&aggregates, MeterParams::default()).unwrap();
        let first = activity_of(&mut meters, 5, 0).unwrap();
        // Four times the reference rate: lower by 2. A second packet at once: twice the rate.
        let second = activity_of(&mut meters, 6, 0).unwrap();
        assert!((first - 2.0 - second).abs() < 1e-12);
        let third = activity_of(&mut meters, 7, 0).unwrap();
        assert!((second + 1.0 - third).abs() < 1e-12);
        assert_eq!(meters.record(Host(6), ByteCount(1), Nanos(1)).unwrap().1, contract(40_000, 3));
        assert_eq!(activity_of(&mut meters, 8, 0), None);
    }

    #[test]
    fn memory_is_bounded_and_who_finds_no_room_is_metered_with_others() {
        let others = Others::EachHost { contract: Contract::default(), most: 2 };
        let mut meters = Meters::new(&Aggregates { others, ..Aggregates::default() }, MeterParams::default()).unwrap();
        let alone = activity_of(&mut meters, 1, 0).unwrap();
        assert_eq!(activity_of(&mut meters, 2, 0), Some(alone));
        assert_eq!(activity_of(&mut meters, 3, 0), Some(alone));
        let together = activity_of(&mut meters, 4, 0).unwrap();
        assert!((alone + 1.0 - together).abs() < 1e-12);
        assert_eq!((meters.crowded, meters.replaced), (2, 0));
        // 15 s later host 1 has been silent for five memories, host 2 has not.
        activity_of(&mut meters, 2, 1_000_000_000);
        let again = activity_of(&mut meters, 3, 15_000_000_000).unwrap();
        assert!((again - alone).abs() < 1e-12, "a meter that was taken over knows nothing of the past");
        assert_eq!((meters.crowded, meters.replaced, meters.meters.len()), (2, 1, 3));
        activity_of(&mut meters, 1, 15_000_000_000);
        assert_eq!((meters.crowded, meters.replaced), (3, 1));
        assert_eq!(meters.hosts.len(), 2);
    }

    #[test]
    fn all_others_may_be_one() {
        let others = Others::Together(Contract::default());
        let mut meters = Meters::new(&Aggregates { others, ..Aggregates::default() }, MeterParams::default()).unwrap();
        let first = activity_of(&mut meters, 1, 0).unwrap();
        assert!((activity_of(&mut meters, 2, 0).unwrap() - first - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_table_with_mistakes_is_refused() {
        let error = |hosts| {
            let aggregates = Aggregates { contracts: vec![Contract::default()], hosts, others: Others::Inside };
            Meters::new(&aggregates, MeterParams::default()).unwrap_err().to_string()
        };
        assert_eq!(
            error(vec![(Host(5), 1)]),
            "host 5 cannot be of aggregate 1: there are 1 contracts, numbered from 0"
        );
        assert_eq!(error(vec![(Host(5), 0), (Host(5), 0)]), "host 5 is in the table of aggregates twice");
    }
}
