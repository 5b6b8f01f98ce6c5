//! Violations of the order of packets in a cut.
//!
//! A cut has the order that `append_visible` gives records. A captured packet is recorded some time after it passed, so a cut can have it at a host that it came to, and not at one that
//! it had passed before: there it was recorded behind the cut. [`violations`] counts such packets. They are recognised as [`journey`](crate::journey) does; which host a packet
//! passed first is known by its time to live, by packets of its connection in both directions, or by the clocks as far as the coordinator knows them.

use crate::answer::{AskError, Asked, IpcLimits, Merged, RowsError};
use crate::journey::{IDENTITY, Passage, Passages, why_missing};
use crate::protocol::{ClockOffset, CutResponse, QueryRequest, QueryResponse, State};
use queuescope_log::{Number, Schema};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// What an answer may have.
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 30, rows: 1 << 24 };

/// A packet's identity: the values of [`IDENTITY`].
type Packet = Vec<u128>;

/// A packet at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// When, by the clock of the host, nanoseconds since 1970.
    pub at: Nanos,
    /// Its time to live; 0 if that is not known.
    pub ttl: u8,
    /// Whether its record is in the cut.
    pub is_in_cut: bool,
}

/// The packets of a host near a cut.
#[derive(Debug, Clone, Default)]
pub struct HostSightings {
    /// The host.
    pub name: String,
    /// How far its clock is ahead of the coordinator's, if that is known.
    pub clock: Option<ClockOffset>,
    /// The packets that it recorded once.
    pub packets: BTreeMap<Packet, Sighting>,
    /// Those that look alike: they are not counted otherwise.
    pub alike: u64,
}

/// Violations of the order of packets in a cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations {
    /// Packets near the cut that several hosts recorded.
    pub packets: u64,
    /// Packets that a host has in the cut and another, which they passed before, has behind it: with the names of the two.
    pub violated: BTreeMap<(String, String), u64>,
    /// Packets that one host has in the cut and another has behind it, and of which the order of these hosts is not known.
    pub undecided: u64,
    /// Packets of which a host recorded several that look alike.
    pub alike: u64,
    /// Hosts whose packets are missing or incomplete, and why.
    pub missing: Vec<String>,
}

/// Why violations are not counted.
#[derive(Debug, thiserror::Error)]
pub enum ViolationsError<E> {
    /// A call failed.
    #[error(transparent)]
    Call(E),
    /// The question is wrong; not expected.
    #[error(transparent)]
    Ask(AskError),
    /// An answer cannot be read.
    #[error("an answer cannot be read: {0}")]
    Rows(RowsError),
}

/// Counts violations among the packets that hosts recorded at most `around` before or after a cut. `ask` puts a question to the coordinator; each host has `within` to answer.
///
/// # Errors
/// Fails if a call fails.
pub async fn violations<E>(
    cut: &CutResponse,
    around: Nanos,
    within: Nanos,
    mut ask: impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
) -> Result<Violations, ViolationsError<E>> {
    let (mut hosts, mut missing) = (Vec::new(), BTreeSet::new());
    let schemas = [Schema::packet(), Schema::queued()];
    for member in cut.members.iter().filter(|member| member.state() == State::Answered) {
        let Some(schema) = schemas.iter().find(|schema| schema.name() == member.schema) else { continue };
        let Some(time) = schema.time().map(|id| &schema.attribute(id).name) else { continue };
        let mut rows = async |of_cut: bool| {
            let request = QueryRequest {
                select: format!("min({time}),max(ttl),count"),
                group: IDENTITY.join(","),
                from: Some(member.at.saturating_sub(around.0)),
                to: Some(member.at.saturating_add(around.0)),
                members: vec![member.name.clone()],
                within: within.0 / 1_000_000,
                schema: schema.name().to_owned(),
                cut: of_cut.then_some(cut.cut),
                // All of them must be recorded.
                at: (!of_cut).then_some(member.at.saturating_add(around.0)),
                ..QueryRequest::default()
            };
            let asked = Asked::of_request(&request).map_err(ViolationsError::Ask)?;
            let answer = ask(request).await.map_err(ViolationsError::Call)?;
            missing.extend(answer.members.iter().filter_map(why_missing));
            Merged::decode(&answer.rows, &asked, LIMITS).map_err(ViolationsError::Rows)
        };
        let of_cut: BTreeSet<Packet> = rows(true).await?.groups.into_iter().map(|(packet, _)| packet).collect();
        let all = rows(false).await?;
        let mut host = HostSightings { name: member.name.clone(), clock: member.clock, ..HostSightings::default() };
        for (packet, values) in all.groups {
            let [at, ttl, count] = [0, 1, 2].map(|place| whole(values.get(place)));
            if count == 1 {
                let is_in_cut = of_cut.contains(&packet);
                let ttl = u8::try_from(ttl).unwrap_or(0);
                host.packets.insert(packet, Sighting { at: Nanos(at), ttl, is_in_cut });
            } else {
                host.alike += count;
            }
        }
        hosts.push(host);
    }
    Ok(Violations { missing: missing.into_iter().collect(), ..count(&hosts) })
}

/// Counts violations among packets of hosts.
pub fn count(hosts: &[HostSightings]) -> Violations {
    let mut seen: BTreeMap<&Packet, u32> = BTreeMap::new();
    hosts.iter().flat_map(|host| host.packets.keys()).for_each(|packet| *seen.entry(packet).or_default() += 1);
    let mut found = Violations {
        packets: seen.values().filter(|hosts| **hosts > 1).count() as u64,
        alike: hosts.iter().map(|host| host.alike).sum(),
        ..Violations::default()
    };
    for has in hosts {
        for lacks in hosts.iter().filter(|lacks| lacks.name != has.name) {
            let mut order = PairOrder { first: lacks, second: has, known: BTreeMap::new() };
            for (packet, sighting) in has.packets.iter().filter(|(_, sighting)| sighting.is_in_cut) {
                let Some(other) = lacks.packets.get(packet).filter(|other| !other.is_in_cut) else { continue };
                match order.is_first(packet, *other, *sighting) {
                    Some(true) => *found.violated.entry((has.name.clone(), lacks.name.clone())).or_default() += 1,
                    Some(false) => {}
                    None => found.undecided += 1,
                }
            }
        }
    }
    found
}

/// Which of two hosts packets pass first.
struct PairOrder<'a> {
    first: &'a HostSightings,
    second: &'a HostSightings,
    /// By connection, in the direction of a packet.
    known: BTreeMap<Vec<u128>, Option<bool>>,
}

/// The place of each part of a connection in the other direction: addresses and ports are exchanged.
const BACK: [usize; 5] = [1, 0, 3, 2, 4];

impl PairOrder<'_> {
    /// Whether a packet passed the first host before the second; none if that is not known.
    fn is_first(&mut self, packet: &Packet, at_first: Sighting, at_second: Sighting) -> Option<bool> {
        let (one, other) = (at_first.ttl, at_second.ttl);
        if one != other && one != 0 && other != 0 {
            // Each router lowers it.
            return Some(one > other);
        }
        let flow = packet.get(..BACK.len())?.to_vec();
        let by_connection = match self.known.get(&flow) {
            Some(known) => *known,
            None => {
                let known = self.passages(&flow).is_first(at_first.at);
                self.known.insert(flow, known);
                known
            }
        };
        by_connection.or_else(|| self.by_clocks(at_first, at_second))
    }

    /// The packets of a connection that both hosts have.
    fn passages(&self, flow: &[u128]) -> Passages {
        let back = BACK.map(|place| flow[place]);
        let of = |flow: &[u128]| {
            let packets = self.first.packets.range(flow.to_vec()..);
            let packets = packets.take_while(|(packet, _)| packet.starts_with(flow));
            let both = packets.filter_map(|(packet, one)| Some((one.at, self.second.packets.get(packet)?.at)));
            both.map(|(one, other)| Passage { first: (one, one), second: (other, other) }).collect()
        };
        Passages { there: of(flow), back: of(&back) }
    }

    /// The same by what the coordinator knows of their clocks.
    fn by_clocks(&self, at_first: Sighting, at_second: Sighting) -> Option<bool> {
        let (first, second) = (self.first.clock.as_ref()?, self.second.clock.as_ref()?);
        let later = i128::from(at_second.at.0) - i128::from(at_first.at.0);
        let [least, most] =
            [i128::from(second.least) - i128::from(first.most), i128::from(second.most) - i128::from(first.least)];
        if later > most {
            Some(true)
        } else if later < least {
            Some(false)
        } else {
            None
        }
    }
}

fn whole(value: Option<&Number>) -> u64 {
    match value {
        Some(Number::Unsigned(value)) => u64::try_from(*value).unwrap_or(u64::MAX),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1_700_000_000_000_000_000;
    const MILLISECOND: u64 = 1_000_000;

    /// Packet `number` of a connection, or of the way back.
    fn packet(connection: u8, is_back: bool, number: u32) -> Packet {
        let (src, dst) = (u128::from(connection), 200 + u128::from(connection));
        let (src, dst) = if is_back { (dst, src) } else { (src, dst) };
        vec![src, dst, src, dst, 6, u128::from(number), 0, 0, 100]
    }

    fn host(name: &str, ahead: i64) -> HostSightings {
        // The coordinator knows each clock to a millisecond.
        let millisecond = MILLISECOND as i64;
        let clock = ClockOffset { least: ahead - millisecond / 2, most: ahead + millisecond / 2 };
        HostSightings { name: name.to_owned(), clock: Some(clock), ..HostSightings::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

        /// Packets pass three hosts in a line, in both directions, and each host records them some time later. What is counted is what a list of all packets
        /// shows, up to packets whose order cannot be known.
        #[test]
        fn violations_are_those_of_a_list_of_all_packets(
            packets in prop::collection::vec((0..3u8, any::<bool>(), 0..40_000u64, prop::array::uniform3(0..8_000u64)), 0..120),
            ahead in prop::array::uniform3(-50_000_000..50_000_000i64), has_routers in any::<bool>(), cut in 10_000..30_000u64,
        ) {
            let mut hosts: Vec<_> = ahead.iter().zip(["a", "b", "c"]).map(|(ahead, name)| host(name, *ahead)).collect();
            let mut expected = 0;
            let mut mixed = 0;
            for (number, (connection, is_back, sent, delays)) in packets.iter().enumerate() {
                let mut seen = Vec::new();
                for place in 0..3u64 {
                    let host = if *is_back { 2 - place } else { place } as usize;
                    // In microseconds; it takes 20 from host to host.
                    let at = sent + 20 * place;
                    let is_in_cut = at + delays[host] <= cut;
                    let clock = START as i64 + (at * 1_000) as i64 + ahead[host];
                    let ttl = if has_routers { 64 - place as u8 } else { 64 };
                    let sighting = Sighting { at: Nanos(clock as u64), ttl, is_in_cut };
                    hosts[host].packets.insert(packet(*connection, *is_back, number as u32), sighting);
                    seen.push(is_in_cut);
                }
                for (later, has) in seen.iter().enumerate() {
                    expected += seen[..later].iter().filter(|earlier| *has && !**earlier).count() as u64;
                    mixed += seen[..later].iter().filter(|earlier| **earlier != *has).count() as u64;
                }
            }
            let found = count(&hosts);
            let violated: u64 = found.violated.values().sum();
            prop_assert_eq!(found.packets, packets.len() as u64);
            prop_assert!(violated <= expected && expected <= violated + found.undecided, "{found:?}: {expected}");
            prop_assert!(violated + found.undecided <= mixed);
            if has_routers {
                prop_assert_eq!((violated, found.undecided), (expected, 0));
            }
            let both_ways = |connection: u8| [false, true].map(|back| packets.iter().any(|(of, is_back, ..)| (*of, *is_back) == (connection, back))) == [true, true];
            if (0..3).all(both_ways) {
                prop_assert_eq!(found.undecided, 0);
            }
        }
    }

    #[test]
    fn without_any_sign_of_the_order_a_packet_is_undecided() {
        let (mut one, mut other) = (host("one", 0), host("other", 0));
        let sighting = |at: u64, is_in_cut| Sighting { at: Nanos(START + at), ttl: 64, is_in_cut };
        one.packets.insert(packet(1, false, 1), sighting(0, false));
        other.packets.insert(packet(1, false, 1), sighting(MILLISECOND / 10, true));
        let found = count(&[one.clone(), other.clone()]);
        assert_eq!((found.packets, found.violated.len(), found.undecided), (1, 0, 1));
        // Ten milliseconds are more than the clocks can differ.
        other.packets.insert(packet(1, false, 1), sighting(10 * MILLISECOND, true));
        let found = count(&[one.clone(), other.clone()]);
        let names = ("other".to_owned(), "one".to_owned());
        assert_eq!((found.violated, found.undecided), (BTreeMap::from([(names, 1)]), 0));
        other.clock = None;
        assert_eq!(count(&[one, other]).undecided, 1);
    }
}
