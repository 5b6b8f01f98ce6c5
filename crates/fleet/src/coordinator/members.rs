//! The members of a fleet: one stream each.

use super::{Coordinator, MeasuredClock, ShownTime};
use crate::clock;
use crate::locked::lock;
use crate::protocol::{
    ClockOffset, Hello, LeftOut, Member, PROTOCOL, State, Status, ToAgent, UploadState, Welcome, to_agent,
};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{oneshot, watch};

/// Messages to an agent that wait to be sent. More mean that it does not read.
const WAITING: usize = 64;
/// A member counts as shedding for so long after the last packet that it did not record.
const SHEDDING: Nanos = Nanos(60_000_000_000);
/// The most characters of a text that an agent says of itself.
const LONGEST: usize = 256;
/// The most reasons for which an agent says that it left something out.
const REASONS: usize = 64;

/// An open stream of an agent. Clones are the same stream.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    /// Sessions have rising numbers: an agent that comes again has another.
    number: u64,
    /// The folder of its alerts and positions.
    store: u64,
    /// The schema of its records.
    schema: String,
    /// Whether it has no part in cuts.
    no_cuts: bool,
    /// Gone when the stream is over: then the agent sees its end.
    to: Mutex<Option<Sender<ToAgent>>>,
    is_over: watch::Sender<bool>,
    /// Where its connection comes from.
    from: Option<SocketAddr>,
    /// Why another stream of the same name took its place.
    replaced: OnceLock<String>,
    /// The first of its alerts that could not be stored; 0: none. Later ones must not be stored before it.
    unstored: AtomicU64,
}

impl Session {
    /// The member's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its number; no other stream has had it.
    pub(super) fn number(&self) -> u64 {
        self.inner.number
    }

    /// Names the folder that it records to.
    pub(super) fn store(&self) -> u64 {
        self.inner.store
    }

    /// The name of the schema of its records.
    pub(super) fn schema(&self) -> &str {
        &self.inner.schema
    }

    /// Whether its log can be frozen.
    pub(super) fn is_in_cuts(&self) -> bool {
        !self.inner.no_cuts
    }

    /// The first alert of this stream that could not be stored, and was not stored since; 0: none.
    pub(super) fn unstored(&self) -> u64 {
        self.inner.unstored.load(Ordering::Relaxed)
    }

    /// This alert could not be stored; 0: it was.
    pub(super) fn set_unstored(&self, sequence: u64) {
        self.inner.unstored.store(sequence, Ordering::Relaxed);
    }

    /// Sends a message, unless too many wait already.
    pub(super) fn send(&self, message: ToAgent) -> bool {
        lock(&self.inner.to).as_ref().is_some_and(|to| to.try_send(message).is_ok())
    }

    /// Why another stream took the place of this one, if one did.
    pub(super) fn replaced(&self) -> Option<&str> {
        self.inner.replaced.get().map(String::as_str)
    }

    /// Another agent has its name now. Returns what people should know: two hosts with one name end each other's streams.
    fn replace(&self, by: Option<SocketAddr>) -> Option<String> {
        let (name, of) =
            (self.name(), |from: Option<SocketAddr>| from.map_or("elsewhere".to_owned(), |from| from.to_string()));
        let why = format!("another agent came as {name}, from {}: each host needs a name of its own", of(by));
        // It is replaced once.
        let _ = self.inner.replaced.set(why);
        let is_elsewhere = self.inner.from.zip(by).is_some_and(|(old, new)| old.ip() != new.ip());
        is_elsewhere.then(|| {
            let (old, new) = (of(self.inner.from), of(by));
            format!("{name} came from {new} while its stream from {old} was open: if these are two hosts, invite one of them by another name")
        })
    }

    /// Returns when the stream is over for the coordinator.
    pub(super) async fn over(&self) {
        // The sender lives as long as this session.
        let _ = self.inner.is_over.subscribe().wait_for(|over| *over).await;
    }
}

/// Why an agent is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// Another version.
    #[error(
        "{name} has version {version} (protocol {protocol}), and this coordinator has {own} (protocol {PROTOCOL}): \
         protocols may differ by one; upgrade the older of the two"
    )]
    Version {
        /// The member.
        name: String,
        /// Its version.
        version: String,
        /// Its protocol.
        protocol: u32,
        /// The version of the coordinator.
        own: &'static str,
    },
    /// Too many members.
    #[error("this coordinator has {most} members already, which is its limit")]
    TooMany {
        /// The limit.
        most: usize,
    },
}

/// All members that there are or have been.
#[derive(Debug)]
pub struct Members {
    most: usize,
    last: u64,
    members: BTreeMap<String, Known>,
    round: Option<Round>,
}

#[derive(Debug)]
struct Known {
    member: Member,
    /// When it last had packets that it did not record, by the steady clock.
    shed_at: Option<Nanos>,
    /// The distance of its clock, since it connected.
    clock: Option<MeasuredClock>,
    session: Option<Session>,
}

/// Empty messages that went out to all, and whose replies are awaited.
#[derive(Debug)]
struct Round {
    /// Its number, which is the time when it began.
    number: u64,
    awaited: BTreeSet<u64>,
    done: oneshot::Sender<()>,
}

impl Members {
    pub fn new(most: usize) -> Self {
        Self { most, last: 0, members: BTreeMap::new(), round: None }
    }

    /// These are members, although they have not come since this coordinator began.
    pub fn expect(&mut self, names: Vec<String>) {
        for name in names {
            let mut member = Member { name: name.clone(), ..Member::default() };
            member.set_state(State::Absent);
            self.members.entry(name).or_insert(Known { member, shed_at: None, clock: None, session: None });
        }
    }

    /// The states of all, by name.
    pub fn list(&self) -> Vec<Member> {
        let now = clock::steady();
        let with_clock = |known: &Known| Member { clock: known.offset(now), ..known.member.clone() };
        self.members.values().map(with_clock).collect()
    }

    /// How far a member's clock is ahead of the coordinator's, if that was measured since it connected.
    pub fn clock(&self, name: &str) -> Option<ClockOffset> {
        self.members.get(name)?.offset(clock::steady())
    }

    /// The open streams of these members, each once, or of all if there are no names; and the names of those that have none.
    pub fn sessions(&self, names: &[String]) -> (Vec<Session>, Vec<String>) {
        let names: BTreeSet<_> = if names.is_empty() { self.members.keys().collect() } else { names.iter().collect() };
        let (mut open, mut absent) = (Vec::new(), Vec::new());
        for name in names {
            match self.members.get(name).and_then(|known| known.session.clone()) {
                Some(session) => open.push(session),
                None => absent.push(name.clone()),
            }
        }
        (open, absent)
    }

    /// Whether a member may have records of a schema: it said so when it came last, or has not come yet.
    pub fn may_have(&self, name: &str, schema: &str) -> bool {
        self.members.get(name).is_none_or(|known| known.member.schema.is_empty() || known.member.schema == schema)
    }

    /// The schema of a member's records; empty if it is not known.
    pub fn schema(&self, name: &str) -> String {
        self.members.get(name).map_or_else(String::new, |known| known.member.schema.clone())
    }

    /// The state of a member; absent if there is none of this name.
    pub fn state(&self, name: &str) -> State {
        self.members.get(name).map_or(State::Absent, |known| known.member.state())
    }

    pub fn status(&mut self, session: &Session, status: Status, now: Nanos) {
        self.with(session, |known| {
            if status.shed > known.member.shed {
                known.shed_at = Some(now);
            }
            (known.member.records, known.member.shed, known.member.waiting) =
                (status.records, status.shed, status.waiting);
            known.member.malformed = status.malformed;
            known.member.uploads = status.uploads.map(|uploads| {
                let trouble = shortened(&uploads.trouble);
                UploadState { trouble, ..uploads }
            });
            known.member.left_out = status.left_out.into_iter().take(REASONS).map(shortened_reason).collect();
            let is_shedding = known.shed_at.is_some_and(|at| now.saturating_sub(at) < SHEDDING);
            known.member.trouble = shortened(&status.trouble);
            known.member.set_state(match (known.member.trouble.is_empty(), is_shedding) {
                (false, _) => State::Failed,
                (true, true) => State::Shedding,
                (true, false) => State::Answered,
            });
        });
    }

    pub fn seen(&mut self, session: &Session, now: Nanos) {
        self.with(session, |known| known.member.seen = now.0);
    }

    /// Empty messages go out to these. The result comes when all have replied; a round that is not over ends.
    pub fn begin_round(&mut self, number: u64, sessions: &[Session]) -> oneshot::Receiver<()> {
        let (done, all) = oneshot::channel();
        self.round = Some(Round { number, awaited: sessions.iter().map(Session::number).collect(), done });
        self.end_round();
        all
    }

    pub fn pong(&mut self, session: &Session, number: u64, now: Nanos) {
        let Some(round) = self.round.as_mut().filter(|round| round.number == number) else { return };
        if round.awaited.remove(&session.number()) {
            self.end_round();
            self.with(session, |known| known.member.round_trip = now.0.saturating_sub(number).max(1));
        }
    }

    /// An empty message of the round came back with what the member's clock showed.
    pub fn shown(&mut self, session: &Session, time: ShownTime) {
        let is_awaited = |round: &Round| round.number == time.sent.0 && round.awaited.contains(&session.number());
        if self.round.as_ref().is_some_and(is_awaited) {
            self.measured(session, time);
        }
    }

    /// A message came back with what the member's clock showed.
    pub fn measured(&mut self, session: &Session, time: ShownTime) {
        self.with(session, |known| known.clock = MeasuredClock::with(known.clock, time));
    }

    fn left_round(&mut self, session: &Session) {
        if self.round.as_mut().is_some_and(|round| round.awaited.remove(&session.number())) {
            self.end_round();
        }
    }

    /// Ends the round if nobody is awaited.
    fn end_round(&mut self) {
        if let Some(round) = self.round.take_if(|round| round.awaited.is_empty()) {
            // The caller may have given up.
            let _ = round.done.send(());
        }
    }

    fn with(&mut self, session: &Session, change: impl FnOnce(&mut Known)) {
        let Some(known) = self.members.get_mut(session.name()) else { return };
        if known.session.as_ref().map(Session::number) == Some(session.number()) {
            change(known);
        }
    }
}

impl Known {
    fn offset(&self, now: Nanos) -> Option<ClockOffset> {
        self.clock.as_ref().filter(|_| self.session.is_some()).map(|clock| clock.offset(now))
    }
}

impl Coordinator {
    /// An agent said hello, over a connection `from` somewhere. Returns its stream, and the messages to it; the first is a welcome. An earlier
    /// stream of the same name ends.
    ///
    /// # Errors
    /// Fails if it has another version, or if there are too many members.
    pub fn attach(
        &self,
        name: &str,
        hello: Hello,
        from: Option<SocketAddr>,
    ) -> Result<(Session, Receiver<ToAgent>), AttachError> {
        let own = env!("CARGO_PKG_VERSION");
        let mut members = lock(&self.shared.members);
        if members.members.len() >= members.most && !members.members.contains_key(name) {
            return Err(AttachError::TooMany { most: members.most });
        }
        let is_near = hello.protocol.abs_diff(PROTOCOL) <= 1;
        let mut member = Member {
            name: name.to_owned(),
            version: shortened(&hello.version),
            source: shortened(&hello.source),
            schema: shortened(&hello.schema),
            seen: clock::wall().0,
            ..Member::default()
        };
        member.set_state(if is_near { State::Answered } else { State::OtherVersion });
        members.last += 1;
        let (to, messages) = channel(WAITING);
        let (name_of, number, is_over) = (name.to_owned(), members.last, watch::Sender::new(false));
        let (to, store, schema) = (Mutex::new(Some(to)), hello.store, member.schema.clone());
        let (replaced, unstored) = (OnceLock::new(), AtomicU64::new(0));
        let inner = Inner {
            name: name_of,
            number,
            store,
            schema,
            no_cuts: hello.no_cuts,
            to,
            is_over,
            from,
            replaced,
            unstored,
        };
        let session = Session { inner: Arc::new(inner) };
        let known = Known { member, shed_at: None, clock: None, session: is_near.then(|| session.clone()) };
        let earlier = members.members.insert(name.to_owned(), known).and_then(|earlier| earlier.session);
        drop(members);
        if let Some(earlier) = earlier {
            if let Some(trouble) = earlier.replace(from) {
                self.troubled(trouble);
            }
            self.is_over(&earlier);
        }
        if !is_near {
            let (version, protocol) = (hello.version, hello.protocol);
            return Err(AttachError::Version { name: name.to_owned(), version, protocol, own });
        }
        let stored = self.shared.alerts.last_of_either(name, hello.store, hello.earlier_store);
        let welcome = Welcome { version: own.to_owned(), protocol: PROTOCOL, stored };
        session.send(ToAgent { message: Some(to_agent::Message::Welcome(welcome)) });
        self.send_program_parts(&session);
        Ok((session, messages))
    }

    /// Ends the membership of a host: its stream, if it has one, and it is missed no more.
    pub fn end(&self, name: &str) {
        let (sessions, _) = lock(&self.shared.members).sessions(&[name.to_owned()]);
        sessions.iter().for_each(|session| self.detach(session));
        lock(&self.shared.members).members.remove(name);
        self.end_programs(name);
    }

    /// Notes that these are members, although they have not come since this coordinator began.
    pub(super) fn expect(&self, names: Vec<String>) {
        lock(&self.shared.members).expect(names);
    }

    /// Ends the streams of all members, and those of alerts.
    pub(super) fn end_all(&self) {
        self.shared.is_ending.send_replace(true);
        let (sessions, _) = lock(&self.shared.members).sessions(&[]);
        sessions.iter().for_each(|session| self.detach(session));
    }

    /// A stream ended.
    pub(super) fn detach(&self, session: &Session) {
        lock(&self.shared.members).with(session, |known| {
            known.session = None;
            known.member.set_state(State::Absent);
        });
        lock(&self.shared.members).left_round(session);
        self.is_over(session);
    }

    /// Nothing more comes from a stream.
    fn is_over(&self, session: &Session) {
        session.inner.is_over.send_replace(true);
        lock(&session.inner.to).take();
        self.left_cut(session);
        lock(&self.shared.questions).gone(session);
        self.left_actions(session);
    }
}

/// A reason from outside, with texts that are not too long.
fn shortened_reason(left_out: LeftOut) -> LeftOut {
    let LeftOut { reason, count, meaning } = left_out;
    LeftOut { reason: shortened(&reason), count, meaning: shortened(&meaning) }
}

/// The beginning of a text from outside, without what controls a terminal.
pub(super) fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}
