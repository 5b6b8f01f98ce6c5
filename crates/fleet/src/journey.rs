//! Who delayed a packet: its way through the queues of several hosts and switches, and which flows made it wait in each.
//!
//! Hosts with records of queues (schema `queued`) contribute hops. A packet is recognised by what no router changes: addresses, ports,
//! protocol, the identification of IPv4, sequence and acknowledgement numbers, and the length of its payload. The wait in a queue is a difference of two
//! times of one clock. Times between hops compare two clocks, whose distance is bounded by packets that passed both ([`Passages`]).

mod ask;
mod clocks;
mod culprits;
mod find;
mod flow;
mod identity;
mod order;
mod show;
mod show_waits;
mod visit;
mod waits;
mod when;

pub use clocks::{DRIFT_PPM, Offset, Passage, Passages};
pub use culprits::{Culprit, CulpritKind, HopCulprits};
pub use identity::{CaptureError, PacketDigest, PacketIdentity};
pub use order::Gap;
pub use show::write_journey;
pub use show_waits::write_waits;
pub use visit::VisitedQueue;
pub use waits::{LongestWait, QueueWaits, Waits, WaitsRequest, waits};
pub use when::{WhenAsked, WhenError};

use crate::answer::{AskError, IpcLimits, RowsError};
use crate::protocol::{Member, QueryRequest, QueryResponse};
pub(crate) use ask::why_missing;
use ask::{Asking, Question};
use order::in_order;
use queuescope_log::Schema;
use queuescope_wire::{ByteCount, Nanos};
pub(crate) use visit::IDENTITY;
use visit::{VISIT, Visit, identity_expression, packet_text, visits_of};

/// The most visits of one packet to a host's queues: more are other packets that look the same.
const VISITS: u64 = 100;
/// The longest time, in nanoseconds, between the departures of a packet from two queues.
const APART: u64 = 60_000_000_000;
/// What an answer may have.
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 28, rows: 1 << 20 };

/// Which packet's way is wanted.
#[derive(Debug, Clone, Default)]
pub struct JourneyRequest {
    /// Which packet.
    pub packet: PacketChoice,
    /// Only packets that match this expression.
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

/// How a packet is chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum PacketChoice {
    /// The one that waited longest in one queue.
    #[default]
    LongestWait,
    /// The one with this identity.
    Identity(PacketIdentity),
    /// The one with this digest.
    Digest(PacketDigest),
    /// The one of this flow that was in a queue at this time, or else the next of it that left one. The flow has its name or a part of it; the time is by the clock of each host.
    OfFlow {
        /// The flow.
        flow: String,
        /// The time, since 1970.
        at: Nanos,
    },
}

/// The way of a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Journey {
    /// The packet, as text: `src_ip 10.0.0.1, ...`.
    pub packet: String,
    /// Its digest.
    pub digest: PacketDigest,
    /// Its visits to queues, in order.
    pub hops: Vec<JourneyHop>,
    /// What is known of the time between each hop and the next.
    pub gaps: Vec<Gap>,
    /// The index of the hop at which it waited longest.
    pub blamed: usize,
    /// What is missing: hosts that did not answer, and why.
    pub missing: Vec<String>,
    /// What hosts left out of their records, in the times of the question.
    pub notes: Vec<String>,
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
         reports of switches (--int) or a table of departures (--departures)"
    )]
    NoQueues,
    /// No packet matches.
    #[error("no packet in a queue {what}{}", reach_text(.reach, .missing))]
    NotFound {
        /// What was looked for: `matches`, `has the digest ...`.
        what: String,
        /// What each host has records of.
        reach: Vec<String>,
        /// Hosts that did not answer, and why.
        missing: Vec<String>,
    },
    /// No flow has the text in its name.
    #[error(
        "no flow has a name with '{text}' in it{}; names are as analyze prints them: 10.0.0.1:443 > 10.0.0.2:50010 tcp",
        if *is_searched { "" } else { " among the flows with most packets: there are too many, so give the whole name, or a shorter time" }
    )]
    NoFlow {
        /// The text.
        text: String,
        /// Whether all flows were searched.
        is_searched: bool,
    },
    /// Several flows have the text in their names.
    #[error("{flows} flows have '{text}' in their names; name one:\n  {}{}", some.join("\n  "), if *flows > some.len() { "\n  ..." } else { "" })]
    SeveralFlows {
        /// The text.
        text: String,
        /// Their number.
        flows: usize,
        /// The names of some.
        some: Vec<String>,
    },
    /// Too many packets to look for a digest among.
    #[error(
        "no packet among those that were compared has the digest {digest}, and {} have more packets than can be compared: give a shorter time with --from and --to",
        hosts.join(", ")
    )]
    TooMany {
        /// The digest.
        digest: PacketDigest,
        /// Hosts with more packets.
        hosts: Vec<String>,
    },
    /// Packets wait for a range of time.
    #[error("packets wait for a range of time, and {} is a moment: write --at FROM..TO", queuescope_log::date_text(*at))]
    Moment {
        /// The moment.
        at: Nanos,
    },
}

fn reach_text(reach: &[String], missing: &[String]) -> String {
    let mut text = String::new();
    if !reach.is_empty() {
        text += &format!("; there are records of queues of {}", reach.join(", "));
    }
    if !missing.is_empty() {
        text += &format!("; without {}", missing.join(", "));
    }
    text
}

/// Finds the way of a packet. `members` are all hosts; `ask` puts a question to the coordinator.
///
/// # Errors
/// Fails if no host records a queue, if the packet is not found, or if a call fails.
pub async fn journey<E>(
    request: &JourneyRequest,
    members: &[Member],
    mut ask: impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
) -> Result<Journey, JourneyError<E>> {
    let hosts = with_queues(members);
    if hosts.is_empty() {
        return Err(JourneyError::NoQueues);
    }
    let mut asking = Asking { flows: request.flows, within: request.within, ..Asking::default() };
    let identity = asking.find(&hosts, request, &mut ask).await?;
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
        let visits = asking.rows(host, question, &mut ask).await?;
        let (of_host, others) = visits_of(&visits.groups);
        alike += others + visits.left_out;
        for visit in of_host {
            let culprits = asking.culprits(host, &visit, &mut ask).await?;
            hops.push(hop(host, &visit, culprits));
        }
    }
    let passages = asking.passages(&identity, &hops, &mut ask).await?;
    let (hops, gaps) = in_order(hops, &passages);
    let blamed = (0..hops.len()).max_by_key(|at| (hops[*at].wait(), usize::MAX - at));
    let Some(blamed) = blamed else { return Err(asking.not_found(&hosts, request, &mut ask).await?) };
    let (notes, missing) = (asking.notes(), asking.missing.into_iter().collect());
    let (packet, digest) = (packet_text(&identity), PacketDigest::of(&identity));
    Ok(Journey { packet, digest, hops, gaps, blamed, missing, notes, alike })
}

/// The hosts that record queues.
fn with_queues(members: &[Member]) -> Vec<&str> {
    let of_queues = members.iter().filter(|member| member.schema == Schema::queued().name());
    of_queues.map(|member| member.name.as_str()).collect()
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
