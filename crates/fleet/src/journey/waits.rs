//! Why the packets of a flow, or those of a range of time, waited in each queue of a fleet; or which flows were in each queue at a moment.
//!
//! The client requests the departures of each queue, and asks the log of `queuescope why` about them, as for one packet.

use super::ask::{Asking, Question, whole};
use super::culprits::{HopCulprits, MOST, NUMBERS, number};
use super::visit::{IDENTITY, VISIT, VisitedQueue};
use super::{APART, JourneyError, JourneyRequest, PacketDigest, WhenAsked, with_queues};
use crate::protocol::{ClockOffset, Member, QueryRequest, QueryResponse};
use queuescope_meter::{Culprits, Departed, Dropped};
use queuescope_wire::{Backlog, Class, FlowId, Nanos, PacketId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a queue is, in the records of its packets.
const QUEUE: [&str; 3] = ["switch", "egress_port", "queue"];

/// Which packets' waiting is examined.
#[derive(Debug, Clone, Default)]
pub struct WaitsRequest {
    /// Only packets of this flow: its name as `analyze` prints it, or a part that no other name has.
    pub flow: Option<String>,
    /// Only packets that match this expression.
    pub expression: String,
    /// When, by the clock of each host: only what packets waited in this range; or what was in the queues at this moment. All times if there is none.
    pub at: Option<WhenAsked>,
    /// The most flows that are named of each kind of culprits.
    pub flows: usize,
    /// How long to wait for each host.
    pub within: Nanos,
}

/// Why packets waited, queue by queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// The question in words, as `queuescope why` has it.
    pub question: String,
    /// The queues in which they waited, or which were not empty at the moment.
    pub queues: Vec<QueueWaits>,
    /// The index of the queue in which they waited longest together, or which had most bytes at the moment.
    pub blamed: Option<usize>,
    /// What is missing: hosts that did not answer, and why.
    pub missing: Vec<String>,
    /// What hosts left out of their records, in the times of the question.
    pub notes: Vec<String>,
    /// Packets whose waits are known without their times (reports of some switches): they are not in the answer.
    pub untimed: u64,
}

/// Why packets waited in a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueWaits {
    /// The host that has the records.
    pub member: String,
    /// The queue.
    pub queue: VisitedQueue,
    /// How far the host's clock is ahead of the coordinator's, if it has been measured.
    pub clock: Option<ClockOffset>,
    /// The packets that waited.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their waits; for a range of time, only the parts in it.
    pub waited: Nanos,
    /// The packet that waited longest.
    pub longest: Option<LongestWait>,
    /// Packets of the question that were dropped.
    pub drops: u64,
    /// The moment that the backlog and the original culprits are about.
    pub at: Nanos,
    /// What was in the queue then.
    pub backlog: Backlog,
    /// Who made them wait.
    pub culprits: HopCulprits,
    /// If the queue had too many departures: only this range of time was examined.
    pub part: Option<(Nanos, Nanos)>,
}

/// The packet that waited longest in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestWait {
    /// Its digest, for `fleet why --packet`.
    pub digest: Option<PacketDigest>,
    /// When it came.
    pub enqueued: Nanos,
    /// How long it waited.
    pub wait: Nanos,
}

/// Finds why packets waited in the queues of all hosts.
///
/// # Errors
/// Fails if no host records a queue, if no packet waited, if the flow is unknown, or if a call fails.
pub async fn waits<E>(
    request: &WaitsRequest,
    members: &[Member],
    mut ask: impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
) -> Result<Waits, JourneyError<E>> {
    let hosts = with_queues(members);
    if hosts.is_empty() {
        return Err(JourneyError::NoQueues);
    }
    let mut asking = Asking { flows: request.flows, within: request.within, ..Asking::default() };
    let victims = asking.victims(&hosts, request, &mut ask).await?;
    let (mut queues, mut untimed) = (Vec::new(), 0);
    for host in &hosts {
        let clock = members.iter().find(|member| member.name == **host).and_then(|member| member.clock);
        let (found, without_times) = asking.queues(host, &victims, &mut ask).await?;
        untimed += without_times;
        for (queue, mut found) in found {
            if victims.moment.is_some() {
                found.drops = 0;
            }
            if let Some(waits) = asking.queue_waits(host, queue, &victims, found, &mut ask).await? {
                queues.push(QueueWaits { clock, ..waits });
            }
        }
    }
    let rank = |queue: &QueueWaits| (queue.waited, queue.backlog.bytes);
    let blamed = (0..queues.len()).filter(|at| rank(&queues[*at]) > Default::default());
    let blamed = blamed.max_by_key(|at| (rank(&queues[*at]), usize::MAX - at));
    if queues.is_empty() && victims.moment.is_none() {
        let matching = JourneyRequest { expression: request.expression.clone(), ..JourneyRequest::default() };
        let error = asking.not_found(&hosts, &matching, &mut ask).await?;
        let what = format!("{} waited or was dropped{}", victims.whose, victims.when);
        return Err(match error {
            JourneyError::NotFound { reach, missing, .. } => JourneyError::NotFound { what, reach, missing },
            other => other,
        });
    }
    let (notes, missing) = (asking.notes(), asking.missing.into_iter().collect());
    Ok(Waits { question: victims.question, queues, blamed, missing, notes, untimed })
}

/// Which packets are meant.
struct VictimPackets {
    question: String,
    /// `of 10.0.0.1 > 10.0.0.2`, for errors.
    whose: String,
    /// ` from ... to ...`, or nothing.
    when: String,
    /// An expression for them; empty: all.
    expression: String,
    during: Range<Nanos>,
    moment: Option<Nanos>,
}

/// What is known of a queue before its departures are.
struct QueueExtent {
    /// From the first arrival to the last departure of packets that are meant, without its end.
    span: Range<u64>,
    drops: u64,
}

impl Asking {
    /// The packets that a request means.
    async fn victims<E>(
        &mut self,
        hosts: &[&str],
        request: &WaitsRequest,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<VictimPackets, JourneyError<E>> {
        let (during, moment) = match request.at {
            None => (Nanos::ZERO..Nanos::MAX, None),
            Some(WhenAsked::Range(from, to)) => (from..to, None),
            Some(WhenAsked::Moment(at)) => (at..at.saturating_add(Nanos(1)), Some(at)),
        };
        let given = request.expression.trim();
        if let Some(at) = moment.filter(|_| request.flow.is_some() || !given.is_empty()) {
            return Err(JourneyError::Moment { at });
        }
        let when = request.at.map_or_else(String::new, |at| format!(" {at}"));
        let mut expression = String::new();
        let mut name = None;
        if let Some(flow) = &request.flow {
            let span = request.at.map_or((None, None), |_| (Some(during.start.0), Some(after(during.end))));
            let (found, of_flow) = self.flow(hosts, flow, span, ask).await?;
            (name, expression) = (Some(found), of_flow);
        }
        if !given.is_empty() {
            expression = if expression.is_empty() { given.to_owned() } else { format!("({expression}) and ({given})") };
        }
        let (packets, whose) = match (name, given.is_empty()) {
            (Some(name), true) => (name.clone(), format!("of {name}")),
            (Some(name), false) => {
                (format!("{name}, of which '{given}' holds,"), format!("of {name} of which '{given}' holds"))
            }
            (None, false) => (format!("packets of which '{given}' holds"), format!("of which '{given}' holds")),
            (None, true) => ("packets".to_owned(), "at all".to_owned()),
        };
        let question = match moment {
            Some(_) => format!("who was in the queue{when}"),
            None => format!("why {packets} waited{when}"),
        };
        Ok(VictimPackets { question, whose, when, expression, during, moment })
    }

    /// The queues of a host that such packets waited in, and the number of packets whose times are not known.
    async fn queues<E>(
        &mut self,
        host: &str,
        victims: &VictimPackets,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<(BTreeMap<VisitedQueue, QueueExtent>, u64), JourneyError<E>> {
        let VictimPackets { expression, during, .. } = victims;
        let mut expression = expression.clone();
        if during.end < Nanos::MAX {
            let came = format!("enqueued < {}", during.end.0);
            expression = if expression.is_empty() { came } else { format!("({expression}) and {came}") };
        }
        let question = Question {
            expression,
            select: "count,min(enqueued),max(dequeued)".to_owned(),
            group: QUEUE.iter().chain(&["times", "dropped"]).copied().collect::<Vec<_>>().join(","),
            top: MOST as u64,
            span: (Some(during.start.0), Some(after(during.end))),
        };
        let rows = self.rows(host, question, ask).await?;
        let (mut queues, mut untimed) = (BTreeMap::<VisitedQueue, QueueExtent>::new(), 0);
        for (keys, values) in &rows.groups {
            let [switch, port, queue, times, dropped] = keys[..] else { continue };
            let [count, first, last] = [0, 1, 2].map(|at| whole(values.get(at)));
            if times != 0 {
                untimed += count;
                continue;
            }
            let queue = VisitedQueue { switch: switch as u32, port: port as u16, queue: queue as u16 };
            // No packet yet: any range that is joined to this one is the result.
            let none = Range { start: u64::MAX, end: 0 };
            let extent = queues.entry(queue).or_insert(QueueExtent { span: none, drops: 0 });
            if dropped != u128::from(queuescope_log::queued::LEFT) {
                // Those that came in the range count, whenever they were dropped.
                extent.drops += count;
                continue;
            }
            extent.span = extent.span.start.min(first)..extent.span.end.max(last.saturating_add(1));
        }
        Ok((queues, untimed))
    }

    /// Why packets waited in a queue; none if none did.
    async fn queue_waits<E>(
        &mut self,
        host: &str,
        queue: VisitedQueue,
        victims: &VictimPackets,
        QueueExtent { span, drops }: QueueExtent,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Option<QueueWaits>, JourneyError<E>> {
        let during = &victims.during;
        let whole_span = span.start.max(during.start.0)..span.end.min(during.end.0);
        let mut waits = QueueWaits {
            member: host.to_owned(),
            queue,
            clock: None,
            packets: 0,
            bytes: 0,
            waited: Nanos::ZERO,
            longest: None,
            drops,
            at: Nanos(whole_span.start),
            backlog: Backlog::default(),
            culprits: HopCulprits::default(),
            part: None,
        };
        if whole_span.is_empty() {
            return Ok((drops > 0).then_some(waits));
        }
        let span = self.part_of(host, queue, &victims.expression, whole_span.clone(), ask).await?;
        if span != whole_span {
            waits.part = Some((Nanos(span.start), Nanos(span.end)));
        }
        let (known, is_complete) = self.history(host, queue, (span.start, span.end), span.end, ask).await?;
        let log = known.log();
        let range = Nanos(span.start)..Nanos(span.end);
        let found = match victims.moment {
            Some(at) => {
                let nobody =
                    Dropped { packet: PacketId(NUMBERS), flow: FlowId(u32::MAX), class: Class(0), size: 0, at };
                let mut found = log.of_drop(&nobody);
                found.victims = queuescope_meter::Victims::default();
                Some(found).filter(|found| found.standing.backlog.packets > 0)
            }
            None if victims.expression.is_empty() => log.of_range(range),
            None => {
                let meant = self.meant(host, queue, &victims.expression, &span, ask).await?;
                log.of_victims(|departed| meant.contains(&(departed.dequeued.0, departed.packet.0)), range)
            }
        };
        let Some(found) = found else { return Ok((drops > 0).then_some(waits)) };
        waits.culprits = known.named(&found, self.flows, is_complete);
        let Culprits { victims: waited, standing, .. } = found;
        (waits.packets, waits.bytes, waits.waited) = (waited.packets, waited.bytes, waited.waited);
        (waits.at, waits.backlog) = (standing.at, standing.backlog);
        if let Some(longest) = waited.longest {
            waits.longest = Some(self.longest_wait(host, queue, longest, ask).await?);
        }
        Ok(Some(waits))
    }

    /// The part of a time that has no more departures than the client reads: around the longest wait of a packet that is meant.
    async fn part_of<E>(
        &mut self,
        host: &str,
        queue: VisitedQueue,
        expression: &str,
        span: Range<u64>,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Range<u64>, JourneyError<E>> {
        let of_queue = format!("{} and dropped == no and times == queue", queue.expression());
        let counting = |from: u64, to: u64| Question {
            expression: of_queue.clone(),
            select: "count".to_owned(),
            group: "queue".to_owned(),
            top: 1,
            span: (Some(from), Some(to)),
        };
        // Half of what is read at most: the rest is for what left before, since the queue was last empty.
        let most = MOST as u64 / 2;
        let rows = self.rows(host, counting(span.start, span.end), ask).await?;
        if rows.packets <= most {
            return Ok(span);
        }
        let question = Question {
            expression: if expression.is_empty() { of_queue.clone() } else { format!("({expression}) and {of_queue}") },
            select: "max(delay)".to_owned(),
            group: VISIT.join(","),
            top: 1,
            span: (Some(span.start), Some(span.end)),
        };
        let worst = self.rows(host, question, ask).await?;
        let middle = worst.groups.first().and_then(|(keys, _)| keys.get(1)).map_or(span.start, |left| *left as u64);
        let mut half = (span.end - span.start) / 2;
        loop {
            half /= 2;
            let part = middle.saturating_sub(half).max(span.start)..middle.saturating_add(half.max(1)).min(span.end);
            let rows = self.rows(host, counting(part.start, part.end), ask).await?;
            if rows.packets <= most || half == 0 {
                return Ok(part);
            }
        }
    }

    /// Departures of packets that are meant, each as its time and number.
    async fn meant<E>(
        &mut self,
        host: &str,
        queue: VisitedQueue,
        expression: &str,
        span: &Range<u64>,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<BTreeSet<(u64, u64)>, JourneyError<E>> {
        let of_queue = format!("{} and dropped == no and times == queue", queue.expression());
        let question = Question {
            expression: format!("({expression}) and {of_queue} and enqueued < {}", span.end),
            select: "count".to_owned(),
            group: "dequeued,packet".to_owned(),
            top: MOST as u64,
            span: (Some(span.start), Some(after(Nanos(span.end)))),
        };
        let rows = self.rows(host, question, ask).await?;
        let departures = rows.groups.iter().filter_map(|(keys, _)| {
            let [dequeued, packet] = keys[..] else { return None };
            Some((dequeued as u64, number(packet).0))
        });
        Ok(departures.collect())
    }

    /// The packet that waited longest, with its digest.
    async fn longest_wait<E>(
        &mut self,
        host: &str,
        queue: VisitedQueue,
        longest: Departed,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<LongestWait, JourneyError<E>> {
        let question = Question {
            expression: format!("{} and enqueued == {}", queue.expression(), longest.enqueued.0),
            select: "count".to_owned(),
            group: IDENTITY.iter().chain(&["packet"]).copied().collect::<Vec<_>>().join(","),
            top: MOST as u64,
            span: (Some(longest.dequeued.0), Some(longest.dequeued.0.saturating_add(1))),
        };
        let rows = self.rows(host, question, ask).await?;
        let own = rows.groups.iter().find_map(|(keys, _)| {
            let (packet, identity) = keys.split_last()?;
            (number(*packet) == longest.packet).then(|| PacketDigest::of(identity))
        });
        Ok(LongestWait { digest: own, enqueued: longest.enqueued, wait: longest.sojourn() })
    }
}

/// Until when packets may leave that waited before `end`.
fn after(end: Nanos) -> u64 {
    end.0.saturating_add(APART)
}
