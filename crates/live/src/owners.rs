//! Whose flows are: which process, container or unit of this machine sends them.
//!
//! No packet says it. So the kernel is asked for the socket of a flow (`sock_diag`), and all processes are looked at for who has that
//! socket open (`/proc`). That is done by a thread of its own, beside the packets, and only for flows that are named here.

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

/// Flows that are remembered.
const FLOWS: usize = 4096;
/// Flows that are asked about at once.
const AT_ONCE: usize = 256;
/// What is known of a flow is asked again after so long, since ports are used again. Who is not known may be soon.
const AGAIN: Nanos = Nanos(10_000_000_000);
const SOON: Nanos = Nanos(1_000_000_000);
/// A flow of which nothing was heard for so long is forgotten first, if there is no room.
const IDLE: Nanos = Nanos(60_000_000_000);
/// After it has looked, the thread rests for so many times as long: it takes no more than a twentieth of a processor.
const REST: u64 = 19;

/// Finds out whose flows are, of the network namespace in which it was made.
///
/// It needs no privilege to find sockets, their users and cgroups; `cap_sys_ptrace` and `cap_dac_read_search` to find processes of
/// other users. What a
/// look costs is in `docs/reference/live.md`; looks take a twentieth of a processor at most, however many flows are named.
///
/// Only flows of TCP and UDP whose socket is in this network namespace have an owner: not what is forwarded, also for containers
/// with a namespace of their own. Of sockets that share a port (`SO_REUSEPORT`) the kernel tells one. A socket that was gone before
/// the first look is not found. Memory does not grow: 4096 flows.
#[derive(Debug)]
pub struct Owners {
    flows: FlowTable<FlowKey>,
    /// By flow id.
    known: Vec<Known>,
    /// What is to be asked next.
    waiting: Vec<(FlowId, FlowKey)>,
    thread: Asker,
    counts: OwnerCounts,
}

/// What is remarkable about the answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnerCounts {
    /// Flows with a socket of which no process was found, while there were some that this user may not look at.
    pub hidden: u64,
    /// Questions that the kernel did not answer.
    pub failed: u64,
}

/// What is known of a flow.
#[derive(Debug)]
struct Known {
    flow: FlowKey,
    /// When it is asked next.
    next: Nanos,
    /// Who it is, if that was found out.
    owner: Option<Arc<Owner>>,
    is_hidden: bool,
}

/// The thread that asks.
#[derive(Debug)]
struct Asker {
    asks: Sender<Asked>,
    answers: Receiver<Answers>,
    is_busy: bool,
    /// When it has rested.
    ready: Nanos,
    /// Whether it has ended, which it never does by itself.
    is_gone: bool,
}

/// Flows that are asked about at once.
type Asked = Vec<(FlowId, FlowKey)>;

/// What came of a look.
struct Answers {
    of: Vec<(FlowId, FlowKey, Answer)>,
    failed: u64,
    /// When it was done, and how long it took.
    done: Nanos,
    took: Nanos,
}

impl Owners {
    /// For flows that leave by an interface of the network namespace that this thread is in.
    ///
    /// # Errors
    /// If there is no such interface, or sockets cannot be asked for.
    pub fn new(interface: &str) -> Result<Self, ProbeError> {
        Self::seen_by(interface, None)
    }

    /// The same where a thread sees the processes of all users.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn seen_by(interface: &str, seer: Option<Seer>) -> Result<Self, ProbeError> {
        let sockets = Sockets::new(index(interface)?);
        let sockets = sockets.map_err(|why| ProbeError::System { what: "the sockets of this machine", why })?;
        let begun = Self::asking(move |asked, tell| look(asked, tell, sockets, seer.as_ref()));
        begun.map_err(|why| ProbeError::System { what: "the processes of this machine, by a thread", why })
    }

    /// With a thread that answers so.
    fn asking(look: impl FnOnce(&Receiver<Asked>, &Sender<Answers>) + Send + 'static) -> io::Result<Self> {
        let (asks, asked) = channel();
        let (tell, answers) = channel();
        // It ends when nobody asks any more, and nobody waits for that: it may be looking at a long list.
        thread::Builder::new().name("owners".to_owned()).spawn(move || look(&asked, &tell))?;
        Ok(Self {
            flows: FlowTable::with_limit(FLOWS),
            known: Vec::new(),
            waiting: Vec::new(),
            thread: Asker { asks, answers, is_busy: false, ready: Nanos::ZERO, is_gone: false },
            counts: OwnerCounts::default(),
        })
    }

    /// A packet of a flow was told, at `now` by `CLOCK_MONOTONIC`: it will be asked whose it is. `key` has all fields.
    pub fn seen(&mut self, key: &FlowKey, now: Nanos) {
        let key = Granularity::FiveTuple.project(key);
        let (id, is_new) = self.flows.intern(&key, key.digest(), now);
        if is_new {
            self.known.resize_with(self.known.len().max(id.index() + 1), Known::default);
            self.known[id.index()] = Known { flow: key, ..Known::default() };
            // Idle ones, or if that is not enough, all others.
            self.flows.shrink(FLOWS, [IDLE, SOON, Nanos::ZERO].map(|idle| now.saturating_sub(idle)), |_, _| ());
        }
        let known = &mut self.known[id.index()];
        if now >= known.next && self.waiting.len() < AT_ONCE {
            // Until it is answered.
            known.next = Nanos::MAX;
            self.waiting.push((id, key));
        }
    }

    /// Takes answers that have come, and asks what waits if the thread has rested. It does not wait.
    pub fn look(&mut self) {
        match self.thread.answers.try_recv() {
            Ok(answers) => self.answered(answers),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.thread.is_gone = true,
        }
        self.ask(now());
    }

    /// Waits until all that was seen so far is answered, for so long at most.
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
                Ok(answers) => self.answered(answers),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.thread.is_gone = true;
                    return;
                }
            }
            self.ask(now());
        }
    }

    /// Whose flows are at a granularity: what all flows have in common that are one there. None of a flow of which some part
    /// has no owner that is known.
    pub fn by(&self, granularity: Granularity) -> BTreeMap<FlowKey, Arc<Owner>> {
        self.common(granularity, |_| true)
    }

    /// The same of some flows, by their keys at that granularity.
    pub fn among(&self, granularity: Granularity, flows: &BTreeSet<FlowKey>) -> BTreeMap<FlowKey, Arc<Owner>> {
        self.common(granularity, |flow| flows.contains(flow))
    }

    fn common(&self, granularity: Granularity, is_meant: impl Fn(&FlowKey) -> bool) -> BTreeMap<FlowKey, Arc<Owner>> {
        let mut all: BTreeMap<FlowKey, Option<Arc<Owner>>> = BTreeMap::new();
        for id in self.flows.ids() {
            // Nobody, as long as that is not answered.
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

    /// What was remarkable so far.
    pub fn counts(&self) -> OwnerCounts {
        self.counts
    }

    /// Whether the thread that asks has panicked: who was known by then still is, and nobody else will be.
    pub fn has_stopped(&self) -> bool {
        self.thread.is_gone
    }

    fn ask(&mut self, now: Nanos) {
        if self.waiting.is_empty() || self.thread.is_busy || now < self.thread.ready {
            return;
        }
        // A thread that is gone answers no more: nothing is waited for, and that is found when answers are looked for.
        self.thread.is_busy = self.thread.asks.send(std::mem::take(&mut self.waiting)).is_ok();
    }

    fn answered(&mut self, answers: Answers) {
        self.thread.is_busy = false;
        self.thread.ready = answers.done.saturating_add(Nanos(answers.took.0.saturating_mul(REST)));
        self.counts.failed += answers.failed;
        for (id, flow, answer) in answers.of {
            // Its place may be another's by now.
            if let Some(known) = self.known.get_mut(id.index()).filter(|known| known.flow == flow) {
                let was_hidden = known.is_hidden;
                known.take(answer, answers.done);
                self.counts.hidden += u64::from(known.is_hidden && !was_hidden);
            }
        }
    }
}

impl Default for Known {
    fn default() -> Self {
        Self { flow: FlowKey::default(), next: Nanos::ZERO, owner: None, is_hidden: false }
    }
}

impl Known {
    fn take(&mut self, answer: Answer, now: Nanos) {
        self.is_hidden =
            matches!(answer, Answer::Hidden(_)) && self.owner.as_ref().is_none_or(|owner| owner.pid.is_none());
        match answer {
            // Whoever sent it is who sent it, also when the socket is closed, or another has it now who is not to be seen.
            Answer::Nobody | Answer::Closed(_) | Answer::Hidden(_) if self.owner.is_some() => {}
            Answer::Nobody => {}
            Answer::Closed(owner) | Answer::Hidden(owner) | Answer::Found(owner) => self.owner = Some(Arc::new(owner)),
        }
        self.next = now.saturating_add(if self.owner.is_some() { AGAIN } else { SOON });
    }
}

/// Looks for sockets and at the files of all processes, as is done for flows: how many processes of other users stay closed, though
/// those of some can be seen. Security modules and user namespaces may close single ones whoever asks.
///
/// # Errors
/// If no process of another user can be seen.
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
    let seen = seer.and_then(|seer| seer.holders(sockets.clone()));
    seen.unwrap_or_else(|| Holders::of(sockets))
}

/// Answers until nobody asks any more.
fn look(asked: &Receiver<Asked>, tell: &Sender<Answers>, mut sockets: Sockets, seer: Option<&Seer>) {
    for flows in asked {
        let since = now();
        let mut failed = 0;
        sockets.begin();
        let found: Vec<_> = flows
            .into_iter()
            .map(|(id, flow)| {
                let socket = sockets.of(&flow);
                failed += u64::from(socket.is_err());
                (id, flow, socket.ok().flatten())
            })
            .collect();
        let holders = holders(&found.iter().filter_map(|(_, _, socket)| socket.as_ref()?.number).collect(), seer);
        let mut cgroups = BTreeMap::new();
        let answer = |(id, flow, socket)| (id, flow, Answer::of(socket, &holders, &mut cgroups));
        let of = found.into_iter().map(answer).collect();
        let done = now();
        if tell.send(Answers { of, failed, done, took: done.saturating_sub(since) }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_wire::Prefixes;

    /// Longer than anything takes here.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_that_panics_is_noticed_and_nothing_waits_for_it() {
        let flow = |port| FlowKey { src_port: port, dst_port: 9, protocol: 17, ..FlowKey::default() };
        let owner = Owner { pid: Some(7), ..Owner::default() };
        let known = owner.clone();
        let begun = Owners::asking(move |asked, tell| {
            let flows = asked.recv().expect("it is asked");
            let of = flows.into_iter().map(|(id, flow)| (id, flow, Answer::Found(known.clone()))).collect();
            tell.send(Answers { of, failed: 0, done: Nanos::ZERO, took: Nanos::ZERO }).expect("it is waited for");
            let _ = asked.recv();
            panic!("as it looked");
        });
        let mut owners = begun.expect("there is room for a thread");
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
        fn some_flows_have_the_owners_that_they_have_among_all(
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
            let begun = Owners::asking(move |asked, tell| {
                for flows in asked {
                    let of = flows.into_iter().map(|(id, flow)| (id, flow, answer(&flow))).collect();
                    // Who asked may be gone.
                    let _ = tell.send(Answers { of, failed: 0, done: Nanos::ZERO, took: Nanos::ZERO });
                }
            });
            let mut owners = begun.expect("there is room for a thread");
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
