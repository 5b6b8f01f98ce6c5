//! Who delayed a packet: its way through the queues of several hosts, and what left each queue while it waited there.
//!
//! Hosts with records of queues (schema `queued`) contribute a hop each. A packet is recognised by what no router changes: addresses, ports,
//! protocol, the identification of IPv4, sequence and acknowledgement numbers, and the length of its payload. The wait in a queue is a difference of two
//! times of one clock. Times between hops compare the clocks of two hosts, so they are as good as these agree.

mod show;

pub use show::write_journey;

use crate::answer::{AskError, Asked, IpcLimits, Merged, RowsError};
use crate::protocol::{Member, MemberAnswer, QueryRequest, QueryResponse, State};
use queuescope_log::{Group, Number, Schema};
use queuescope_wire::{ByteCount, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// What identifies a packet.
const IDENTITY: [&str; 9] =
    ["src_ip", "dst_ip", "src_port", "dst_port", "protocol", "ip_id", "tcp_seq", "tcp_ack", "payload_length"];
/// What a queue did to it.
const VISIT: [&str; 6] = ["enqueued", "dequeued", "queue", "packet", "backlog_in", "dropped"];
/// What identifies a flow.
const FLOW: [&str; 5] = ["src_ip", "dst_ip", "src_port", "dst_port", "protocol"];
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
    /// Its visits to queues, in the order of the times at which it came.
    pub hops: Vec<JourneyHop>,
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
    /// The host.
    pub member: String,
    /// The queue of that host.
    pub queue: u64,
    /// When it came and when it left or was dropped, by the host's clock, in nanoseconds since 1970.
    pub enqueued: Nanos,
    /// See `enqueued`.
    pub dequeued: Nanos,
    /// Bytes in the queue when it came.
    pub backlog: ByteCount,
    /// Why it was dropped, if it was.
    pub dropped: Option<String>,
    /// What left while it waited, by flow, most bytes first.
    pub culprits: Vec<Culprit>,
    /// Bytes of flows that are not named.
    pub others: ByteCount,
}

impl JourneyHop {
    /// How long it was there.
    pub fn wait(&self) -> Nanos {
        self.dequeued.saturating_sub(self.enqueued)
    }
}

/// A flow that left a queue while a packet waited there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// The flow, as text.
    pub flow: String,
    /// Its bytes that left.
    pub bytes: ByteCount,
    /// Its packets that left.
    pub packets: u64,
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
        "no host records what a queue does to its packets: queuescope live IFACE --log DIR --credentials DIR does, and sends answers"
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
            expression: expression(&identity),
            select: "count".to_owned(),
            group: VISIT.join(","),
            top: VISITS,
            // It may have left other queues earlier or later than the one that was found.
            span: (request.from.map(|from| from.saturating_sub(APART)), request.to.map(|to| to.saturating_add(APART))),
        };
        let visits = asking.rows(&host.name, question, &mut ask).await?.groups;
        let (of_host, others) = visits_of(visits);
        alike += others;
        for visit in of_host {
            hops.push(asking.hop(&host.name, &visit, &mut ask).await?);
        }
    }
    hops.sort_by_key(|hop| (hop.enqueued, hop.dequeued));
    let blamed = (0..hops.len()).max_by_key(|at| (hops[*at].wait(), usize::MAX - at));
    let missing: Vec<_> = asking.missing.into_iter().collect();
    let Some(blamed) = blamed else { return Err(JourneyError::NotFound { missing }) };
    Ok(Journey { packet: packet_text(&identity), hops, blamed, missing, alike })
}

/// A question to one host.
struct Question {
    expression: String,
    select: String,
    group: String,
    top: u64,
    span: (Option<u64>, Option<u64>),
}

/// A visit to a queue: the values of [`VISIT`].
type Visit = Vec<u128>;

/// The visits of a packet to a host: the longest one to each queue. Others are of packets that look the same; returns their number.
fn visits_of(visits: Vec<Group>) -> (Vec<Visit>, u64) {
    let mut longest: BTreeMap<u128, Visit> = BTreeMap::new();
    let mut others = 0;
    for (visit, _) in visits {
        let wait = |visit: &Visit| visit[1].saturating_sub(visit[0]);
        let queue = visit[2];
        match longest.get(&queue) {
            Some(known) => {
                others += 1;
                if wait(&visit) > wait(known) {
                    longest.insert(queue, visit);
                }
            }
            None => _ = longest.insert(queue, visit),
        }
    }
    (longest.into_values().collect(), others)
}

struct Asking<'a> {
    request: &'a JourneyRequest,
    missing: BTreeSet<String>,
}

impl Asking<'_> {
    /// A host's answer to a question.
    async fn rows<E>(
        &mut self,
        host: &str,
        question: Question,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Merged, JourneyError<E>> {
        let Question { expression, select, group, top, span: (from, to) } = question;
        let request = QueryRequest {
            expression,
            select,
            group,
            top: Some(top),
            from,
            to,
            members: vec![host.to_owned()],
            within: self.request.within.0 / 1_000_000,
            schema: Schema::queued().name().to_owned(),
            ..QueryRequest::default()
        };
        let asked = Asked::of_request(&request).map_err(JourneyError::Ask)?;
        let answer = ask(request).await.map_err(JourneyError::Call)?;
        self.missing.extend(answer.members.iter().filter_map(why_missing));
        Merged::decode(&answer.rows, &asked, LIMITS).map_err(JourneyError::Rows)
    }

    /// A visit, with what left the queue meanwhile.
    async fn hop<E>(
        &mut self,
        host: &str,
        visit: &Visit,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<JourneyHop, JourneyError<E>> {
        let [enqueued, dequeued, queue, packet, backlog, dropped] = visit[..] else {
            unreachable!("a visit has as many values as the question names")
        };
        let [enqueued, dequeued, queue, packet] = [enqueued, dequeued, queue, packet].map(|value| value as u64);
        let question = Question {
            expression: format!("queue == {queue} and dropped == no and packet != {packet}"),
            select: "sum(length),count".to_owned(),
            group: FLOW.join(","),
            top: LIMITS.rows as u64,
            span: (Some(enqueued.saturating_add(1)), Some(dequeued.saturating_add(1))),
        };
        let culprits = if enqueued < dequeued { self.rows(host, question, ask).await?.groups } else { Vec::new() };
        let mut culprits: Vec<_> = culprits.iter().map(culprit).collect();
        culprits.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.flow.cmp(&b.flow)));
        let others = culprits.split_off(self.request.flows.min(culprits.len()));
        let reason = Schema::queued().find("dropped").map(|id| Schema::queued().attribute(id).text_of(dropped));
        Ok(JourneyHop {
            member: host.to_owned(),
            queue,
            enqueued: Nanos(enqueued),
            dequeued: Nanos(dequeued),
            backlog: ByteCount(backlog as u64),
            dropped: reason.filter(|_| dropped != 0),
            culprits,
            others: ByteCount(others.iter().map(|culprit| culprit.bytes.0).sum()),
        })
    }
}

fn culprit((keys, values): &Group) -> Culprit {
    let whole = |value: &Number| match value {
        Number::Unsigned(value) => u64::try_from(*value).unwrap_or(u64::MAX),
        _ => 0,
    };
    let [bytes, packets] = [0, 1].map(|at| values.get(at).map_or(0, whole));
    let texts: Vec<_> = FLOW.iter().zip(keys).map(|(name, key)| value_text(name, *key)).collect();
    let [src, dst, src_port, dst_port, protocol] = [0, 1, 2, 3, 4].map(|at| texts.get(at).map_or("", String::as_str));
    let flow = format!("{src}:{src_port} > {dst}:{dst_port} {protocol}");
    Culprit { flow, bytes: ByteCount(bytes), packets }
}

fn value_text(name: &str, key: u128) -> String {
    let schema = Schema::queued();
    schema.find(name).map_or_else(String::new, |id| schema.attribute(id).text_of(key))
}

/// An expression that matches the packets with an identity.
fn expression(identity: &[u128]) -> String {
    let terms = IDENTITY.iter().zip(identity).map(|(name, key)| format!("{name} == {}", value_text(name, *key)));
    terms.collect::<Vec<_>>().join(" and ")
}

/// A packet for people: what it does not have is left out.
fn packet_text(identity: &[u128]) -> String {
    let known = IDENTITY.iter().zip(identity).filter(|(_, key)| **key != 0);
    known.map(|(name, key)| format!("{name} {}", value_text(name, *key))).collect::<Vec<_>>().join(", ")
}

/// Why a host's answer is missing or incomplete, if it is.
fn why_missing(member: &MemberAnswer) -> Option<String> {
    let state = match member.state() {
        State::Answered if member.problem.is_empty() => return None,
        State::Answered => "incomplete",
        State::Shedding => "it does not record all packets",
        State::Absent => "absent",
        State::Late => "late",
        State::OtherVersion => "other version",
        State::Failed | State::Unspecified => "failed",
    };
    Some(format!("{} ({state})", member.name))
}
