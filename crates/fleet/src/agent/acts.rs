//! Actions on flows that this host sends: what the coordinator asks for, within the limits of the host's owner.
//!
//! [`Acts`] decides, without clocks and connections; an [`Actor`] does it. An action ends when its time ends, when the coordinator does not
//! hold it any more, when the stream ends, and when nothing has come from the coordinator for [`LEASE`].

mod counts;

pub use counts::ActCounts;

use crate::act::{LEASE, Minute, Order};
use crate::protocol::{self, ActState, Acted};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Changes the packets of flows.
pub trait Actor: Send + fmt::Debug {
    /// Begins an action.
    ///
    /// # Errors
    /// Fails if the host's owner does not allow it, or if the kernel refuses. Then nothing is changed.
    fn begin(&mut self, id: u64, order: &Order) -> Result<(), ActorError>;

    /// Gives an action another time, from now on.
    ///
    /// # Errors
    /// Fails if the kernel refuses. Then the action ends as before.
    fn extend(&mut self, id: u64, time: Nanos) -> Result<(), ActorError>;

    /// Ends an action.
    ///
    /// # Errors
    /// Fails if the kernel refuses. The action then ends with its time, or because it is not renewed.
    fn end(&mut self, id: u64) -> Result<(), ActorError>;

    /// The packets of an action so far.
    fn touched(&self, id: u64) -> Touched;

    /// Is called several times a second while there are actions: an actor ends them all if the calls stop.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    fn renew(&mut self) -> Result<(), ActorError>;
}

/// Why an actor did not act.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActorError {
    /// The owner of the host does not allow it.
    #[error("{0}")]
    NotAllowed(String),
    /// The kernel refuses.
    #[error("{0}")]
    Failed(String),
}

/// The packets of an action; a super-packet counts as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Packets that were changed or dropped, or would be in a dry run.
    pub touched: u64,
    /// All packets of the flow.
    pub packets: u64,
}

/// What the owner of a host allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActLimits {
    /// The longest time of an action.
    pub longest: Nanos,
    /// The most actions in a minute; new times of earlier ones count.
    pub per_minute: u32,
    /// The most actions at the same time.
    pub most: usize,
    /// Whether all actions are dry runs.
    pub dry: bool,
}

impl Default for ActLimits {
    /// Dry runs of at most five minutes, 30 in a minute, and 16 at the same time.
    fn default() -> Self {
        Self { longest: Nanos(300_000_000_000), per_minute: 30, most: 16, dry: true }
    }
}

/// What happened to an action, for the host's own log.
pub type ActNote = Box<dyn Fn(&str) + Send>;

/// The actions of a host.
pub struct Acts {
    actor: Option<Box<dyn Actor>>,
    limits: ActLimits,
    note: ActNote,
    open: BTreeMap<u64, Open>,
    /// Actions of the last minute.
    minute: Minute,
    /// When something came from the coordinator last.
    heard: Nanos,
    counts: ActCounts,
}

/// An action in progress.
#[derive(Debug)]
struct Open {
    order: Order,
    program: String,
    until: Nanos,
    reported: Touched,
}

impl Default for Acts {
    /// A host whose owner allows no action.
    fn default() -> Self {
        Self::with(None, ActLimits::default(), Box::new(|_| ()))
    }
}

impl Acts {
    /// A host with an actor. `note` gets what happens.
    pub fn new(actor: Box<dyn Actor>, limits: ActLimits, note: ActNote) -> Self {
        Self::with(Some(actor), limits, note)
    }

    fn with(actor: Option<Box<dyn Actor>>, limits: ActLimits, note: ActNote) -> Self {
        let (minute, counts) = (Minute::new(limits.per_minute), ActCounts::default());
        Self { actor, limits, note, open: BTreeMap::new(), minute, heard: Nanos::ZERO, counts }
    }

    /// What became of all actions so far.
    pub fn counts(&self) -> ActCounts {
        self.counts
    }

    /// Whether an action is in progress.
    pub fn is_acting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Something came from the coordinator.
    pub fn heard(&mut self, now: Nanos) {
        self.heard = self.heard.max(now);
    }

    /// The coordinator asks for an action, or for another time of one that is in progress. Returns the reply.
    pub fn begin(&mut self, now: Nanos, message: &protocol::Act) -> Acted {
        let reply = match self.try_begin(now, message) {
            Ok(reply) => reply,
            Err(Refusal { state, reason }) => {
                // The action that has this number, if there is one, stays as it is.
                if self.counts.refuse(now) {
                    let program = shown(&message.program);
                    (self.note)(&format!("the action {} of the program {program} was refused: {reason}", message.id));
                }
                Acted { id: message.id, state: state.into(), reason, ..Acted::default() }
            }
        };
        if let Some(more) = self.counts.more_refused(now) {
            (self.note)(&format!("{more} more actions were refused in the last minute"));
        }
        reply
    }

    fn try_begin(&mut self, now: Nanos, message: &protocol::Act) -> Result<Acted, Refusal> {
        let Some(actor) = self.actor.as_mut() else {
            return Err(Refusal::new("this host allows no actions: its owner starts the agent with --act"));
        };
        let mut order = Order::of_message(message).map_err(|why| Refusal::new(&why.to_string()))?;
        if order.time > self.limits.longest {
            let why = format!("it would take {}, and this host allows {}", order.time, self.limits.longest);
            return Err(Refusal::new(&why));
        }
        order.dry |= self.limits.dry;
        if !self.minute.is_free(now) {
            let why = format!("this host allows {} actions a minute", self.limits.per_minute);
            return Err(Refusal::new(&why));
        }
        let until = now.saturating_add(order.time);
        if let Some(open) = self.open.get_mut(&message.id) {
            let same = |order: &Order| (order.flow, order.action, order.dry);
            if same(&open.order) != same(&order) {
                return Err(Refusal::new("another action has this number"));
            }
            // A shorter time does not cut an action off.
            if until > open.until {
                // It goes on until its earlier end, so it has not failed.
                actor.extend(message.id, order.time).map_err(|why| Refusal::new(&why.to_string()))?;
                open.until = until;
            }
        } else {
            if self.open.len() >= self.limits.most {
                let why = format!("this host allows {} actions at the same time", self.limits.most);
                return Err(Refusal::new(&why));
            }
            // Whatever was renewed last belonged to earlier actions.
            actor.renew()?;
            actor.begin(message.id, &order)?;
            let (program, cause) = (shown(&message.program), shown(&message.cause));
            let what = described(&order);
            (self.note)(&format!("action {} of the program {program}: {what}, because of {cause}", message.id));
            self.open.insert(message.id, Open { order, program, until, reported: Touched::default() });
        }
        self.minute.take(now);
        self.heard(now);
        self.counts.accept(order.dry);
        Ok(self.reply(message.id, now))
    }

    /// The coordinator holds these actions: all others end. Returns what to report.
    pub fn hold(&mut self, ids: &[u64]) -> Vec<Acted> {
        let held: BTreeSet<_> = ids.iter().collect();
        self.end_if(ActState::ActUndone, "the coordinator ended it", |id, _| !held.contains(&id))
    }

    /// Ends what is over. Returns what to report; is called several times a second.
    pub fn tick(&mut self, now: Nanos) -> Vec<Acted> {
        let mut ended = self.end_if(ActState::ActExpired, "", |_, open| open.until <= now);
        if now.saturating_sub(self.heard) >= LEASE {
            let why = format!("nothing came from the coordinator for {LEASE}");
            ended.extend(self.end_if(ActState::ActUndone, &why, |_, _| true));
        }
        if !self.open.is_empty()
            && let Some(Err(why)) = self.actor.as_mut().map(|actor| actor.renew())
        {
            ended.extend(self.end_if(ActState::ActFailed, &why.to_string(), |_, _| true));
        }
        ended
    }

    /// Actions whose packets changed since the last call.
    pub fn news(&mut self, now: Nanos) -> Vec<Acted> {
        let Some(actor) = self.actor.as_ref() else { return Vec::new() };
        let is_news = |(id, open): (&u64, &Open)| (actor.touched(*id) != open.reported).then_some(*id);
        let changed: Vec<_> = self.open.iter().filter_map(is_news).collect();
        changed.into_iter().map(|id| self.reply(id, now)).collect()
    }

    /// The stream ended, or the agent ends: all actions end.
    pub fn end_all(&mut self, why: &str) -> Vec<Acted> {
        self.end_if(ActState::ActUndone, why, |_, _| true)
    }

    /// Ends some actions. Returns what became of them.
    fn end_if(&mut self, state: ActState, why: &str, ends: impl Fn(u64, &Open) -> bool) -> Vec<Acted> {
        let Some(actor) = self.actor.as_mut() else { return Vec::new() };
        let over: Vec<_> = self.open.iter().filter(|(id, open)| ends(**id, open)).map(|(id, _)| *id).collect();
        let over: Vec<_> = over.into_iter().filter_map(|id| Some((id, self.open.remove(&id)?))).collect();
        let end = |(id, open): (u64, Open)| {
            let Touched { touched, packets } = actor.touched(id);
            let (state, reason) = match actor.end(id) {
                Ok(()) => (state, why.to_owned()),
                Err(error) => (ActState::ActFailed, format!("it could not be ended: {error}")),
            };
            let (what, why) = (described(&open.order), if reason.is_empty() { "its time ended" } else { &reason });
            let program = &open.program;
            (self.note)(&format!("action {id} of the program {program} ended ({what}): {why}; {touched} packets"));
            Acted { id, state: state.into(), reason, touched, packets, left: 0 }
        };
        over.into_iter().map(end).collect()
    }

    /// The state of an action in progress.
    fn reply(&mut self, id: u64, now: Nanos) -> Acted {
        let (Some(actor), Some(open)) = (self.actor.as_ref(), self.open.get_mut(&id)) else { return Acted::default() };
        open.reported = actor.touched(id);
        let Touched { touched, packets } = open.reported;
        let state = if open.order.dry { ActState::ActDry } else { ActState::ActApplied };
        let left = open.until.saturating_sub(now).0;
        Acted { id, state: state.into(), reason: String::new(), touched, packets, left }
    }
}

impl fmt::Debug for Acts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { actor, limits, open, counts, .. } = self;
        let mut all = f.debug_struct("Acts");
        all.field("actor", actor).field("limits", limits).field("open", open).field("counts", counts);
        all.finish_non_exhaustive()
    }
}

/// Why an action did not begin.
struct Refusal {
    state: ActState,
    reason: String,
}

impl Refusal {
    fn new(reason: &str) -> Self {
        Self { state: ActState::ActRefused, reason: reason.to_owned() }
    }
}

impl From<ActorError> for Refusal {
    fn from(error: ActorError) -> Self {
        let state = match error {
            ActorError::NotAllowed(_) => ActState::ActRefused,
            ActorError::Failed(_) => ActState::ActFailed,
        };
        Self { state, reason: error.to_string() }
    }
}

/// An action in words.
fn described(order: &Order) -> String {
    let Order { flow, action, time, dry } = order;
    format!("{action} {flow} for {time}{}", if *dry { " (dry run)" } else { "" })
}

/// The beginning of a text of the coordinator, without what controls a terminal.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(256).collect()
}

#[cfg(test)]
mod tests;
