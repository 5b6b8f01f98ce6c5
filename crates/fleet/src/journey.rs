//! Who delayed a packet: its way through the queues of several hosts and switches, and which flows made it wait in each.
//!
//! Hosts with records of queues (schema `queued`) contribute hops. A packet is recognised by what no router changes: addresses, ports,
//! protocol, the identification of IPv4, sequence and acknowledgement numbers, and the length of its payload. The wait in a queue is a difference of two
//! times of one clock. Times between hops compare two clocks, whose distance is bounded by packets that passed both ([`Passages`]).

mod ask;
mod clocks;
mod culprits;
mod order;
mod show;
mod visit;

pub use clocks::{DRIFT_PPM, Offset, Passage, Passages};
pub use culprits::{Culprit, CulpritKind, HopCulprits};
pub use order::Gap;
pub use show::write_journey;
pub use visit::VisitedQueue;

use crate::answer::{AskError, IpcLimits, RowsError};
use crate::protocol::{Member, QueryRequest, QueryResponse};
pub(crate) use ask::why_missing;
use ask::{Asking, Question};
use order::in_order;
use queuescope_log::{Group, Number, Schema};
use queuescope_wire::{ByteCount, Nanos};
use std::collections::BTreeSet;
pub(crate) use visit::IDENTITY;
use visit::{VISIT, Visit, identity_expression, packet_text, visits_of};

/// Packets with long waits of each host from which the worst is chosen.
const WORST: u64 = 100;
/// The most visits of one packet to a host's queues: more are other packets that look the same.
const VISITS: u64 = 100;
/// The longest time, in nanoseconds, between the departures of a packet from two queues.
const APART: u64 = 60_000_000_000;
/// What an answer may have.
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 28, rows: 1 << 20 };

/// Which packet's way is wanted.
#[derive(Debug, Clone, Default)]
pub struct JourneyRequest {
    /// Which packets: of those that match, the one that waited longest in one queue.
    pub expression: String,
    /// Only packets that left a queue from this time on, in nanoseconds since 1970,
    pub from: Option<u64>,
    /// and before this one.
    pub to: Option<u64>,
    /// The most flows that are named at each hop.
    pub flows: usize,
    /// How long to wait for each host.
    pub within: Nanos,
}

/// The way of a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Journey {
    /// The packet, as text: `src_ip 10.0.0.1, ...`.
    pub packet: String,
    /// Its visits to queues, in order.
    pub hops: Vec<JourneyHop>,
    /// What is known of the time between each hop and the next.
    pub gaps: Vec<Gap>,
    /// The index of the hop at which it waited longest.
    pub blamed: usize,
    /// What is missing: hosts that did not answer, and why.
    pub missing: Vec<String>,
    /// Further visits of packets that look the same, which were left out.
    pub alike: u64,
}

/// A packet's visit to a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct JourneyHop {
    /// The host that has the record.
    pub member: String,
    /// The queue.
    pub queue: VisitedQueue,
    /// When it came and when it left or was dropped, by the clock of the queue, in nanoseconds since 1970.
    pub enqueued: Nanos,
    /// See `enqueued`.
    pub dequeued: Nanos,
    /// Whether these times are known. If not, only their difference is, and the times are of the arrival of a report.
    pub is_timed: bool,
    /// Bytes in the queue when it came.
    pub backlog: ByteCount,
    /// Its time to live there; 0 if that is not known.
    pub ttl: u8,
    /// Why it was dropped, if it was.
    pub dropped: Option<String>,
    /// Who made it wait.
    pub culprits: HopCulprits,
}

impl JourneyHop {
    /// How long it was there.
    pub fn wait(&self) -> Nanos {
        self.dequeued.saturating_sub(self.enqueued)
    }
}

/// Why there is no journey.
#[derive(Debug, thiserror::Error)]
pub enum JourneyError<E> {
    /// A call failed.
    #[error(transparent)]
    Call(E),
    /// The expression is wrong.
    #[error("{0}")]
    Ask(AskError),
    /// An answer cannot be read.
    #[error("an answer cannot be read: {0}")]
    Rows(RowsError),
    /// No host records a queue.
    #[error(
        "no host records what a queue does to its packets: queuescope live IFACE --log DIR --credentials DIR does, and so does queuescope agent with \
         reports of switches (--int)"
    )]
    NoQueues,
    /// No packet matches.
    #[error("no packet in a queue matches{}", missing_text(.missing))]
    NotFound {
        /// Hosts that did not answer, and why.
        missing: Vec<String>,
    },
}

fn missing_text(missing: &[String]) -> String {
    if missing.is_empty() { String::new() } else { format!("; without {}", missing.join(", ")) }
}

/// Finds the way of the packet that waited longest, among those that match. `members` are all hosts; `ask` puts a question to the coordinator.
///
/// # Errors
/// Fails if no host records a queue, if no packet matches, or if a call fails.
pub async fn journey<E>(
    request: &JourneyRequest,
    members: &[Member],
    mut ask: impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
) -> Result<Journey, JourneyError<E>> {
    let hosts: Vec<_> = members.iter().filter(|member| member.schema == Schema::queued().name()).collect();
    if hosts.is_empty() {
        return Err(JourneyError::NoQueues);
    }
    let mut asking = Asking { request, missing: BTreeSet::new() };
    // The longest wait of a matching packet in any queue.
    let mut worst: Option<(Number, Group)> = None;
    for host in &hosts {
        let question = Question {
            expression: request.expression.clone(),
            select: "max(delay)".to_owned(),
            group: IDENTITY.join(","),
            top: WORST,
            span: (request.from, request.to),
        };
        let rows = asking.rows(&host.name, question, &mut ask).await?;
        for (keys, values) in rows.groups {
            let wait = values.first().copied().unwrap_or(Number::Unsigned(0));
            if worst.as_ref().is_none_or(|(longest, _)| wait.compare(*longest).is_gt()) {
                worst = Some((wait, (keys, values)));
            }
        }
    }
    let Some((_, (identity, _))) = worst else {
        return Err(JourneyError::NotFound { missing: asking.missing.into_iter().collect() });
    };
    let (mut hops, mut alike) = (Vec::new(), 0);
    for host in &hosts {
        let question = Question {
            expression: identity_expression(&identity),
            // Of many that look alike, the longest ones stay.
            select: "max(delay)".to_owned(),
            group: VISIT.join(","),
            top: VISITS,
            // It may have left other queues earlier or later than the one that was found.
            span: (request.from.map(|from| from.saturating_sub(APART)), request.to.map(|to| to.saturating_add(APART))),
        };
        let visits = asking.rows(&host.name, question, &mut ask).await?;
        let (of_host, others) = visits_of(&visits.groups);
        alike += others + visits.left_out;
        for visit in of_host {
            let culprits = asking.culprits(&host.name, &visit, &mut ask).await?;
            hops.push(hop(&host.name, &visit, culprits));
        }
    }
    let passages = asking.passages(&identity, &hops, &mut ask).await?;
    let (hops, gaps) = in_order(hops, &passages);
    let blamed = (0..hops.len()).max_by_key(|at| (hops[*at].wait(), usize::MAX - at));
    let missing: Vec<_> = asking.missing.into_iter().collect();
    let Some(blamed) = blamed else { return Err(JourneyError::NotFound { missing }) };
    Ok(Journey { packet: packet_text(&identity), hops, gaps, blamed, missing, alike })
}

fn hop(member: &str, visit: &Visit, culprits: HopCulprits) -> JourneyHop {
    let schema = Schema::queued();
    let reason = schema.find("dropped").map(|id| schema.attribute(id).text_of(visit.dropped.into()));
    JourneyHop {
        member: member.to_owned(),
        queue: visit.queue,
        enqueued: visit.enqueued,
        dequeued: visit.dequeued,
        is_timed: visit.is_timed,
        backlog: visit.backlog,
        ttl: visit.ttl,
        dropped: reason.filter(|_| visit.is_dropped()),
        culprits,
    }
}
