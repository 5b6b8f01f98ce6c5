//! The owners of flows: the local processes, containers or units that send them.
//!
//! Packets do not carry their owner. So a thread beside the packets asks the kernel for the socket of a flow (`sock_diag`), and
//! searches the open files of all processes for that socket (`/proc`). It does so only for the flows that are named here.

mod address;
mod cgroup;
mod owner;
mod process;
mod socket;

pub use owner::Owner;

use crate::capabilities::Seer;
use crate::probe::index;
use crate::{ProbeError, now};
use owner::Answer;
pub(crate) use process::Holders;
use queuescope_wire::{FlowId, FlowKey, FlowTable, Granularity, Nanos};
use socket::Sockets;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// The maximum number of remembered flows.
const FLOWS: usize = 4096;
/// The maximum number of flows per lookup.
const AT_ONCE: usize = 256;
/// The time after which a known flow is looked up again, because ports are reused. Unknown flows are looked up again sooner.
const AGAIN: Nanos = Nanos(10_000_000_000);
const SOON: Nanos = Nanos(1_000_000_000);
/// Flows that were idle for longer are forgotten first when there is no room.
const IDLE: Nanos = Nanos(60_000_000_000);
/// After a lookup, the thread pauses for this many times the duration of the lookup. So it uses at most a twentieth of a processor.
const PAUSE: u64 = 19;

/// Finds the owners of flows in the network namespace in which it was created.
///
/// Finding sockets, their users and their cgroups needs no privilege. Finding the processes of other users needs `cap_sys_ptrace`
/// and `cap_dac_read_search`. `docs/reference/live.md` has the cost of a lookup. Lookups use at most a twentieth of a processor, however many
/// flows are named.
///
/// Only TCP and UDP flows whose socket is in this network namespace have an owner. Forwarded flows have none, not even those of local
/// containers with a network namespace of their own. If sockets share a port (`SO_REUSEPORT`), the kernel names one of them. A
/// socket that closed before the first lookup is not found. Memory is bounded: 4096 flows.
#[derive(Debug)]
pub struct Owners {
    flows: FlowTable<FlowKey>,
    /// Indexed by flow id.
    known: Vec<FlowEntry>,
    /// The flows of the next lookup.
    waiting: Vec<(FlowId, FlowKey)>,
    thread: LookupThread,
    counts: OwnerCounts,
}

/// How many lookups failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnerCounts {
    /// Flows with a socket but without a process, while there were processes that this user may not examine.
    pub hidden: u64,
    /// Requests that the kernel did not answer.
    pub failed: u64,
}

/// What is known of the owner of a flow.
#[derive(Debug)]
struct FlowEntry {
    flow: FlowKey,
    /// The time of the next lookup.
    next: Nanos,
    /// The owner, if it was found.
    owner: Option<Arc<Owner>>,
    is_hidden: bool,
}

/// The thread that performs lookups.
#[derive(Debug)]
struct LookupThread {
    requests: Sender<LookupRequest>,
    answers: Receiver<Answers>,
    is_busy: bool,
    /// The end of the thread's pause.
    ready: Nanos,
    /// Whether the thread has ended, which happens only by a panic.
    is_gone: bool,
}

/// The flows of a lookup.
type LookupRequest = Vec<(FlowId, FlowKey)>;

/// The result of a lookup.
struct Answers {
    of: Vec<(FlowId, FlowKey, Answer)>,
    failed: u64,
    /// When the lookup ended, and how long it took.
    done: Nanos,
    took: Nanos,
}

impl Owners {
    /// For flows that leave by an interface of the network namespace of this thread.
    ///
    /// # Errors
    /// Fails if the interface does not exist or the kernel does not allow to look up sockets.
    pub fn new(interface: &str) -> Result<Self, ProbeError> {
        Self::seen_by(interface, None)
    }

    /// Like [`new`](Self::new), with a thread that can see the processes of all users.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn seen_by(interface: &str, seer: Option<Seer>) -> Result<Self, ProbeError> {
        let sockets = Sockets::new(index(interface)?);
        let sockets = sockets.map_err(|why| ProbeError::System { what: "the sockets of this machine", why })?;
        let started = Self::with_lookup(move |requests, answers| look(requests, answers, sockets, seer.as_ref()));
        started.map_err(|why| ProbeError::System { what: "the processes of this machine, by a thread", why })
    }

    /// Starts the thread, which runs `look`.
    fn with_lookup(look: impl FnOnce(&Receiver<LookupRequest>, &Sender<Answers>) + Send + 'static) -> io::Result<Self> {
        let (requests, received) = channel();
        let (sender, answers) = channel();
        // The thread ends when the channel closes. Nobody waits for that, because it may be in a long lookup.
        thread::Builder::new().name("owners".to_owned()).spawn(move || look(&received, &sender))?;
        Ok(Self {
            flows: FlowTable::with_limit(FLOWS),
            known: Vec::new(),
            waiting: Vec::new(),
            thread: LookupThread { requests, answers, is_busy: false, ready: Nanos::ZERO, is_gone: false },
            counts: OwnerCounts::default(),
        })
    }

    /// A packet of a flow was handed over at `now` (`CLOCK_MONOTONIC`), so the flow will be looked up. `key` has all fields.
    pub fn seen(&mut self, key: &FlowKey, now: Nanos) {
        let key = Granularity::FiveTuple.project(key);
        let (id, is_new) = self.flows.intern(&key, key.digest(), now);
        if is_new {
            self.known.resize_with(self.known.len().max(id.index() + 1), FlowEntry::default);
            self.known[id.index()] = FlowEntry { flow: key, ..FlowEntry::default() };
            // Remove idle flows, or all others if none is idle.
            self.flows.shrink(FLOWS, [IDLE, SOON, Nanos::ZERO].map(|idle| now.saturating_sub(idle)), |_, _| ());
        }
        let known = &mut self.known[id.index()];
        if now >= known.next && self.waiting.len() < AT_ONCE {
            // No further lookup until this one is answered.
            known.next = Nanos::MAX;
            self.waiting.push((id, key));
        }
    }

    /// Takes the answers that have arrived, and starts the next lookup if the thread's pause is over. Does not block.
    pub fn look(&mut self) {
        match self.thread.answers.try_recv() {
            Ok(answers) => self.take_answers(answers),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.thread.is_gone = true,
        }
        self.start_lookup(now());
    }

    /// Waits until all flows seen so far are looked up, at most for `at_most`.
    pub fn settle(&mut self, at_most: Duration) {
        let end = now().saturating_add(Nanos(at_most.as_nanos() as u64));
        self.look();
        while self.thread.is_busy || !self.waiting.is_empty() {
            let left = end.saturating_sub(now());
            if left == Nanos::ZERO {
                return;
            }
            let rests = if self.thread.is_busy { left } else { left.min(self.thread.ready.saturating_sub(now())) };
            match self.thread.answers.recv_timeout(Duration::from_nanos(rests.0)) {
                Ok(answers) => self.take_answers(answers),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.thread.is_gone = true;
                    return;
                }
            }
            self.start_lookup(now());
        }
    }

    /// The owners of flows at a granularity: what all the five-tuples of a flow have in common. A flow has no owner if one of its
    /// five-tuples has none.
    pub fn by(&self, granularity: Granularity) -> BTreeMap<FlowKey, Arc<Owner>> {
        self.common(granularity, |_| true)
    }

    /// The same for the flows with these keys at that granularity.
    pub fn among(&self, granularity: Granularity, flows: &BTreeSet<FlowKey>) -> BTreeMap<FlowKey, Arc<Owner>> {
        self.common(granularity, |flow| flows.contains(flow))
    }

    fn common(&self, granularity: Granularity, is_meant: impl Fn(&FlowKey) -> bool) -> BTreeMap<FlowKey, Arc<Owner>> {
        let mut all: BTreeMap<FlowKey, Option<Arc<Owner>>> = BTreeMap::new();
        for id in self.flows.ids() {
            // A flow that is not looked up yet has no owner.
            let known = &self.known[id.index()];
            let flow = granularity.project(&known.flow);
            if !is_meant(&flow) {
                continue;
            }
            let common = all.entry(flow).or_insert_with(|| known.owner.clone());
            *common = match (common.take(), &known.owner) {
                (Some(one), Some(other)) if Arc::ptr_eq(&one, other) || one == *other => Some(one),
                (Some(one), Some(other)) => one.common(other).map(Arc::new),
                _ => None,
            };
        }
        all.into_iter().filter_map(|(flow, owner)| Some((flow, owner?))).collect()
    }

    /// How many lookups failed so far.
    pub fn counts(&self) -> OwnerCounts {
        self.counts
    }

    /// Whether the thread has panicked: known owners stay, but no new ones are found.
    pub fn has_stopped(&self) -> bool {
        self.thread.is_gone
    }

    fn start_lookup(&mut self, now: Nanos) {
        if self.waiting.is_empty() || self.thread.is_busy || now < self.thread.ready {
            return;
        }
        // If the thread is gone, `look` finds that out when it reads answers.
        self.thread.is_busy = self.thread.requests.send(std::mem::take(&mut self.waiting)).is_ok();
    }

    fn take_answers(&mut self, answers: Answers) {
        self.thread.is_busy = false;
        self.thread.ready = answers.done.saturating_add(Nanos(answers.took.0.saturating_mul(PAUSE)));
        self.counts.failed += answers.failed;
        for (id, flow, answer) in answers.of {
            // The id may belong to another flow by now.
            if let Some(known) = self.known.get_mut(id.index()).filter(|known| known.flow == flow) {
                let was_hidden = known.is_hidden;
                known.take(answer, answers.done);
                self.counts.hidden += u64::from(known.is_hidden && !was_hidden);
            }
        }
    }
}

impl Default for FlowEntry {
    fn default() -> Self {
        Self { flow: FlowKey::default(), next: Nanos::ZERO, owner: None, is_hidden: false }
    }
}

impl FlowEntry {
    fn take(&mut self, answer: Answer, now: Nanos) {
        self.is_hidden =
            matches!(answer, Answer::Hidden(_)) && self.owner.as_ref().is_none_or(|owner| owner.pid.is_none());
        match answer {
            // A known owner stays when the socket is closed, or another process holds it that is hidden.
            Answer::Nobody | Answer::Closed(_) | Answer::Hidden(_) if self.owner.is_some() => {}
            Answer::Nobody => {}
            Answer::Closed(owner) | Answer::Hidden(owner) | Answer::Found(owner) => self.owner = Some(Arc::new(owner)),
        }
        self.next = now.saturating_add(if self.owner.is_some() { AGAIN } else { SOON });
    }
}

/// Performs a lookup as for flows. Returns the number of processes of other users that are hidden although others can be seen:
/// security modules and user namespaces may hide single processes from everyone.
///
/// # Errors
/// Fails if no process of another user can be seen.
pub(crate) fn try_out(seer: Option<&Seer>) -> Result<usize, ProbeError> {
    Sockets::new(0).map_err(|why| ProbeError::System { what: "the sockets of this machine", why })?;
    // No socket has this number.
    match holders(&BTreeSet::from([0]), seer).others() {
        (0, refused) if refused > 0 => {
            let why = format!("permission denied for {refused} processes of other users");
            Err(ProbeError::Refused { what: "look at open files", why })
        }
        (_, refused) => Ok(refused),
    }
}

fn holders(sockets: &BTreeSet<u32>, seer: Option<&Seer>) -> Holders {
    let by_seer = seer.and_then(|seer| seer.holders(sockets.clone()));
    by_seer.unwrap_or_else(|| Holders::find(sockets))
}

/// Performs lookups until the channel closes.
fn look(requests: &Receiver<LookupRequest>, answers: &Sender<Answers>, mut sockets: Sockets, seer: Option<&Seer>) {
    for flows in requests {
        let since = now();
        let mut failed = 0;
        sockets.begin();
        let found: Vec<_> = flows
            .into_iter()
            .map(|(id, flow)| {
                let socket = sockets.find(&flow);
                failed += u64::from(socket.is_err());
                (id, flow, socket.ok().flatten())
            })
            .collect();
        let holders = holders(&found.iter().filter_map(|(_, _, socket)| socket.as_ref()?.number).collect(), seer);
        let mut cgroups = BTreeMap::new();
        let answer = |(id, flow, socket)| (id, flow, Answer::new(socket, &holders, &mut cgroups));
        let of = found.into_iter().map(answer).collect();
        let done = now();
        if answers.send(Answers { of, failed, done, took: done.saturating_sub(since) }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_wire::Prefixes;

    /// Longer than any step of these tests.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_panic_of_the_thread_is_noticed_and_blocks_nothing() {
        let flow = |port| FlowKey { src_port: port, dst_port: 9, protocol: 17, ..FlowKey::default() };
        let owner = Owner { pid: Some(7), ..Owner::default() };
        let known = owner.clone();
        let started = Owners::with_lookup(move |requests, answers| {
            let flows = requests.recv().expect("a flow was seen");
            let of = flows.into_iter().map(|(id, flow)| (id, flow, Answer::Found(known.clone()))).collect();
            answers.send(Answers { of, failed: 0, done: Nanos::ZERO, took: Nanos::ZERO }).expect("the owners exist");
            let _ = requests.recv();
            panic!("the lookup panics here");
        });
        let mut owners = started.expect("there is room for a thread");
        owners.seen(&flow(1), now());
        owners.settle(PATIENCE);
        assert!(!owners.has_stopped());
        owners.seen(&flow(2), now());
        owners.settle(PATIENCE);
        assert!(owners.has_stopped());
        owners.seen(&flow(3), now());
        owners.settle(PATIENCE);
        owners.look();
        let by = owners.by(Granularity::FiveTuple);
        assert!(owners.has_stopped() && by.len() == 1 && *by[&flow(1)] == owner, "{by:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn among_finds_the_same_owners_as_by(
            flows in prop::collection::vec((0..4u16, 0..4u128, prop::option::of(0..3u32)), 1..40),
            wanted in prop::collection::vec((0..4u16, 0..4u128), 0..8),
        ) {
            let key = |port: u16, dst: u128| {
                FlowKey { src: 1, dst, src_port: port + 1, dst_port: 9, protocol: 17, ..FlowKey::default() }
            };
            let pids: BTreeMap<_, _> = flows.iter().map(|(port, dst, pid)| (key(*port, *dst), *pid)).collect();
            let answer = move |flow: &FlowKey| match pids.get(flow) {
                Some(Some(pid)) => Answer::Found(Owner { pid: Some(*pid), ..Owner::default() }),
                _ => Answer::Nobody,
            };
            let started = Owners::with_lookup(move |requests, answers| {
                for flows in requests {
                    let of = flows.into_iter().map(|(id, flow)| (id, flow, answer(&flow))).collect();
                    // The owners may be dropped already.
                    let _ = answers.send(Answers { of, failed: 0, done: Nanos::ZERO, took: Nanos::ZERO });
                }
            });
            let mut owners = started.expect("there is room for a thread");
            flows.iter().for_each(|(port, dst, _)| owners.seen(&key(*port, *dst), Nanos::ZERO));
            owners.settle(PATIENCE);
            for granularity in [Granularity::FiveTuple, Granularity::Destination(Prefixes::WHOLE), Granularity::Dscp] {
                let wanted: BTreeSet<_> =
                    wanted.iter().map(|(port, dst)| granularity.project(&key(*port, *dst))).collect();
                let mut expected = owners.by(granularity);
                expected.retain(|flow, _| wanted.contains(flow));
                prop_assert_eq!(owners.among(granularity, &wanted), expected);
            }
        }
    }
}
