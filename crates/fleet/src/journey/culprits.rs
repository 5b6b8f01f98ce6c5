//! Who made a packet wait in a queue: its direct, indirect and original culprits, as `queuescope why` has them.
//!
//! The client requests the departures since the queue was last empty, from the packet backwards, and gives them to the same log that `why` uses.

use super::ask::{Asking, Question};
use super::visit::{FLOW, Visit, VisitedQueue, flow_text};
use super::{APART, JourneyError};
use crate::protocol::{QueryRequest, QueryResponse};
use queuescope_log::Group;
use queuescope_meter::{Culprits, Departed, Dropped, QueueLog, Ranking};
use queuescope_wire::{ByteCount, Class, FlowId, Nanos, PacketId};
use std::collections::BTreeMap;

/// The most departures of a queue that the client requests.
pub const MOST: usize = 200_000;
/// What a departure is: these, and then the flow.
const DEPARTURE: [&str; 4] = ["dequeued", "enqueued", "packet", "occupied"];

/// Who made a packet wait in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HopCulprits {
    /// What left while it waited. Of a packet that was dropped: what was in the queue.
    pub direct: CulpritKind,
    /// What left before that, since the queue was last empty.
    pub indirect: CulpritKind,
    /// What raised the queue to the levels that it had when the packet came.
    pub original: CulpritKind,
    /// When the queue had last been empty, by the clock of the queue.
    pub since: Nanos,
    /// Whether all departures since then are known. If not, the oldest are missing in `indirect`, and `original` attributes their levels to later ones.
    pub is_complete: bool,
}

/// The culprits of one kind, most bytes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CulpritKind {
    /// The heaviest flows.
    pub flows: Vec<Culprit>,
    /// Bytes of flows that are not named.
    pub others: ByteCount,
}

/// A flow that made a packet wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// The flow, as text.
    pub flow: String,
    /// Its bytes in the queue and on the link.
    pub bytes: ByteCount,
    /// Its packets.
    pub packets: u64,
}

impl CulpritKind {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.others.0 == 0
    }
}

impl Asking {
    /// Who made a packet wait at a visit to a queue.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub async fn culprits<E>(
        &mut self,
        host: &str,
        visit: &Visit,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<HopCulprits, JourneyError<E>> {
        if !visit.is_timed {
            return Ok(HopCulprits::default());
        }
        let came = came(visit);
        let after = if visit.is_dropped() { visit.dequeued.0 } else { visit.dequeued.0.saturating_add(1) };
        let (known, is_complete) = self.history(host, visit.queue, (came, after), came, ask).await?;
        Ok(known.culprits(visit, self.flows, is_complete))
    }

    /// The departures of a queue from the time when it was last empty before `from`, until `to`; and those afterwards of packets that had come by `stood`. Also returns whether
    /// these are all.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub async fn history<E>(
        &mut self,
        host: &str,
        queue: VisitedQueue,
        (from, to): (u64, u64),
        stood: u64,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<(Departures, bool), JourneyError<E>> {
        let mut known = Departures::default();
        let of_queue = format!("{} and dropped == no and times == queue", queue.expression());
        let standing = format!("{of_queue} and enqueued <= {stood}");
        let rows = self.departures(host, standing, (to, to.saturating_add(APART)), ask).await?;
        let mut is_complete = known.add(&rows);
        let (mut start, mut end) = (from, to);
        loop {
            let rows = self.departures(host, of_queue.clone(), (start, end), ask).await?;
            is_complete &= known.add(&rows);
            let oldest = known.oldest_arrival(from);
            if oldest >= start || !is_complete || known.list.len() >= MOST {
                is_complete &= oldest >= start;
                break;
            }
            // The queue was not empty at `oldest`. Twice the time, so that a long period needs few questions.
            end = start;
            start = oldest.min(end.saturating_sub(to.saturating_sub(end).max(1)));
        }
        Ok((known, is_complete))
    }

    /// Departures of a queue: those that match, from a time on and before another.
    async fn departures<E>(
        &mut self,
        host: &str,
        expression: String,
        (from, to): (u64, u64),
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<(Vec<Group>, u64), JourneyError<E>> {
        let question = Question {
            expression,
            select: "count".to_owned(),
            group: DEPARTURE.iter().chain(&FLOW).copied().collect::<Vec<_>>().join(","),
            top: MOST as u64,
            span: (Some(from), Some(to)),
        };
        let rows = self.rows(host, question, ask).await?;
        Ok((rows.groups, rows.left_out))
    }
}

/// When a packet came, as the culprits have it: one that was dropped did not wait, whatever it had done before.
fn came(visit: &Visit) -> u64 {
    if visit.is_dropped() { visit.dequeued.0 } else { visit.enqueued.0 }
}

/// The departures of a queue that are known.
#[derive(Default)]
pub struct Departures {
    /// By the time of departure and the number of the packet: that is their order.
    list: BTreeMap<(u64, u64), Departed>,
    flows: BTreeMap<Vec<u128>, FlowId>,
}

impl Departures {
    /// Adds departures; returns whether they are all that there are.
    fn add(&mut self, (groups, left_out): &(Vec<Group>, u64)) -> bool {
        for (keys, _) in groups {
            let [dequeued, enqueued, packet, occupied, ref flow @ ..] = keys[..] else { continue };
            let next = FlowId(u32::try_from(self.flows.len()).unwrap_or(u32::MAX));
            let flow = *self.flows.entry(flow.to_vec()).or_insert(next);
            let departed = Departed {
                packet: number(packet),
                flow,
                class: Class(0),
                size: occupied as u32,
                enqueued: Nanos(enqueued as u64),
                dequeued: Nanos((dequeued as u64).max(enqueued as u64)),
            };
            self.list.insert((departed.dequeued.0, departed.packet.0), departed);
        }
        *left_out == 0 && groups.len() < MOST
    }

    /// The first arrival since the queue was last empty before the packet came, as far as departures are known.
    fn oldest_arrival(&self, came: u64) -> u64 {
        let mut oldest = came;
        for departed in self.list.values().rev() {
            if departed.dequeued.0 < oldest {
                break;
            }
            oldest = oldest.min(departed.enqueued.0);
        }
        oldest
    }

    /// All of them, for questions.
    pub fn log(&self) -> QueueLog {
        let mut log = QueueLog::new();
        for departed in self.list.values() {
            // They are in order, and none leaves before it comes.
            let _ = log.record(departed);
        }
        log
    }

    fn culprits(&self, visit: &Visit, flows: usize, is_complete: bool) -> HopCulprits {
        let log = self.log();
        let packet = PacketId(visit.packet.0 & NUMBERS);
        let found = if visit.is_dropped() {
            let dropped = Dropped { packet, flow: FlowId(u32::MAX), class: Class(0), size: 0, at: visit.dequeued };
            Some(log.of_drop(&dropped))
        } else {
            let own = self.list.get(&(visit.dequeued.0, packet.0));
            own.and_then(|own| log.of_departure(own))
        };
        found.map_or_else(HopCulprits::default, |found| self.named(&found, flows, is_complete))
    }

    /// Culprits with the names of the flows with most bytes.
    pub fn named(&self, found: &Culprits<FlowId>, flows: usize, is_complete: bool) -> HopCulprits {
        let Culprits { direct, indirect, original, standing, .. } = found;
        let names: BTreeMap<_, _> = self.flows.iter().map(|(keys, flow)| (*flow, keys)).collect();
        let name = |flow: FlowId| names.get(&flow).map_or_else(String::new, |keys| flow_text(keys));
        let kind = |ranking: &Ranking<FlowId>| {
            let mut parts = ranking.by(name).parts.into_iter();
            let named: Vec<_> = parts
                .by_ref()
                .take(flows)
                .map(|(flow, amount)| Culprit { flow, bytes: ByteCount(amount.bytes), packets: amount.packets })
                .collect();
            CulpritKind { flows: named, others: ByteCount(parts.map(|(_, amount)| amount.bytes).sum()) }
        };
        let [direct, indirect, original] = [kind(direct), kind(indirect), kind(original)];
        HopCulprits { direct, indirect, original, since: standing.since, is_complete }
    }
}

/// The numbers that a log of departures has room for.
pub const NUMBERS: u64 = u64::MAX >> 8;

/// A packet's number in a log of departures: records count from 1.
pub fn number(packet: u128) -> PacketId {
    PacketId((packet as u64).saturating_sub(1) & NUMBERS)
}
