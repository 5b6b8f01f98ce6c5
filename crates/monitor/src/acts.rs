//! What is done to flows while a queue is watched, and how that changes.
//!
//! A file that is looked at is the one way to change it: any editor, shell or program writes one, no terminal is needed, and what is
//! asked stands somewhere. It holds the options themselves, so that there is nothing else to learn or to parse.

mod file;
mod never;
mod rest;
mod session;
mod words;

use crate::error::ActError;
use file::{PolicyFile, Says, cannot_act};
use never::Terms;
use queuescope_ingest::notes::noted;
use queuescope_live::{Acted, Acting, Never, Probe, Victim, Weigh, now};
use queuescope_report::model::{self, Skipped};
use queuescope_wire::Nanos;
use rest::Rest;
use session::Session;
use std::path::PathBuf;
use words::{probability, words};

/// What is to be done to flows that contribute, or where that is written.
#[derive(Debug, Clone, Default)]
pub struct ActingOptions {
    /// What is done, if it is known.
    pub acting: Option<Acting>,
    /// What bounds it, whatever a file says.
    pub bounds: ActingBounds,
    /// A file that says what is done, and what reads its text.
    pub file: Option<(PathBuf, PolicyReader)>,
}

/// What bounds acting.
#[derive(Debug, Clone, Default)]
pub struct ActingBounds {
    /// Expressions about flows that are never acted on.
    pub never: Vec<String>,
    /// After this time nothing is done any more.
    pub act_for: Option<Nanos>,
}

/// What a policy file says.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Nothing is to be done, whatever stands beside it.
    pub off: bool,
    /// What is done.
    pub acting: Option<Acting>,
    /// What bounds it, beside what bounds the whole run.
    pub bounds: ActingBounds,
}

/// Reads the text of a policy file; an error says why it cannot.
pub type PolicyReader = fn(&str) -> Result<Policy, String>;

/// What is done, and what came of it.
pub struct Acts {
    file: Option<PolicyFile>,
    bounds: Bounds,
    /// What is asked for, and when its time is over.
    asked: Option<(Acting, Nanos)>,
    /// Why nothing is done, where something was or may be asked for.
    rest: Option<Rest>,
    /// What changed since it was asked for last.
    news: Vec<model::Acting>,
    /// Who looks on wants no packet to be changed, and how often that was wanted.
    is_paused: bool,
    pauses: u64,
    /// Whether the kernel acts, and when it was asked to last.
    put: Option<Nanos>,
    counts: Counts,
    acted: Acted,
}

/// What holds for the whole run.
#[derive(Debug, Default)]
struct Bounds {
    session: Option<Session>,
    never: Terms,
    /// When the time of the command line is over.
    ends: Nanos,
    /// Times are counted from here.
    origin: Nanos,
}

/// What happened to acting.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Times that it stopped since the file was not there, empty, unclear or said so.
    pub stopped: u64,
    /// Of those, times that the file could not be read or understood.
    pub refused: u64,
    /// Times that it began again.
    resumed: u64,
    /// Times that --act-for ended it.
    over: u64,
    /// Times that the kernel was not asked again in time.
    lapsed: u64,
}

/// What is done now, as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Doing {
    /// What is asked for, in words; or why nothing is done.
    pub policy: String,
    /// Whether it is done.
    pub mode: Mode,
    /// What became of packets since the beginning.
    pub acted: Acted,
    /// Flows that were acted on in the last second, by the digests of their five-tuples, with the probability by which a packet
    /// of theirs is chosen.
    pub chosen: Vec<(u64, f64)>,
}

/// Whether packets are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are only counted.
    Dry,
    /// They are.
    Real,
    /// They were, and may be again, by a key.
    Paused,
    /// They are not: the policy file or a time limit says so.
    Stopped,
}

/// For how long a flow that was acted on is shown.
const SHOWN: Nanos = Nanos(1_000_000_000);
/// For how long the kernel acts before it has to be asked again: when this process is stopped or hangs, nobody would see the policy file.
const LEASE: Nanos = Nanos(2_000_000_000);

impl Acts {
    /// Begins to act as asked; times are counted from `origin`, and `note` hears what is remarkable at once.
    ///
    /// # Errors
    /// If the file cannot be read or means nothing, and those of the kernel.
    pub fn begin(
        options: &ActingOptions,
        probe: &mut Probe,
        origin: Nanos,
        note: &dyn Fn(&str),
    ) -> Result<Self, ActError> {
        let opened = options.file.as_ref().map(|(path, reader)| PolicyFile::open(path, *reader));
        let (file, says) = opened.transpose()?.unzip();
        let is_acting = options.acting.is_some() || file.is_some();
        let mut acts = Self {
            bounds: Bounds::begin(&options.bounds, is_acting, origin, note)?,
            file,
            asked: None,
            rest: None,
            news: Vec::new(),
            is_paused: false,
            pauses: 0,
            put: None,
            counts: Counts::default(),
            acted: Acted::default(),
        };
        match (says, &options.file) {
            (Some(Says::Policy(policy)), Some((path, _))) => {
                acts.ask(policy.acting, &policy.bounds, probe).map_err(|why| cannot_act(path, why))?;
            }
            (Some(says), _) => acts.follow(says, probe)?,
            (None, _) => acts.ask(options.acting.clone(), &ActingBounds::default(), probe)?,
        }
        Ok(acts)
    }

    /// Looks whether it is to be done otherwise, and asks the kernel to go on if not. What the file no longer says, or does not say
    /// clearly, is not done.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn look(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        self.acted = probe.acted()?;
        if let Some(says) = self.file.as_mut().and_then(PolicyFile::changed) {
            self.follow(says, probe)?;
        }
        if self.rest.is_none() && self.asked.as_ref().is_some_and(|(_, ends)| now() >= *ends) {
            self.stop(Rest::Over);
        }
        self.put(probe)
    }

    /// The same for the last time: what was done is counted, and nothing is done any longer.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn end(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        (self.file, self.asked) = (None, None);
        self.put(probe)
    }

    /// Changes packets no more, or again; what is only counted goes on.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn pause(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        self.is_paused = !self.is_paused;
        self.pauses += u64::from(self.is_paused);
        self.put(probe)
    }

    /// What is done at `now`, if anything was asked for.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn doing(&self, probe: &Probe, now: Nanos) -> Result<Option<Doing>, ActError> {
        let stopped =
            |why: &Rest| Doing { policy: why.to_string(), mode: Mode::Stopped, acted: self.acted, chosen: Vec::new() };
        if let Some(why) = &self.rest {
            return Ok(Some(stopped(why)));
        }
        let Some((acting, _)) = &self.asked else { return Ok(None) };
        let mode = match acting.dry {
            true => Mode::Dry,
            false if self.is_paused => Mode::Paused,
            false => Mode::Real,
        };
        let is_late = |victim: &Victim| !victim.exempt && victim.until.saturating_add(SHOWN) >= now;
        // Of the whole queue every packet is met, and no flow is remembered for that.
        let is_of_flows = mode != Mode::Paused && acting.weigh != Weigh::Queue;
        let victims = if is_of_flows { probe.victims()? } else { Vec::new() };
        let victims = victims.into_iter().filter(is_late);
        let chosen = victims.map(|victim| (victim.digest, probability(acting, &victim))).filter(|(_, p)| *p > 0.0);
        Ok(Some(Doing { policy: words(acting), mode, acted: self.acted, chosen: chosen.collect() }))
    }

    /// Whether packets are changed now.
    pub fn is_real(&self) -> bool {
        self.put.is_some() && self.asked.as_ref().is_some_and(|(acting, _)| !acting.dry)
    }

    /// Does what the file says from now on.
    fn follow(&mut self, says: Says, probe: &mut Probe) -> Result<(), ActError> {
        let rest = match says {
            // What the command line limits, no file prolongs.
            Says::Policy(_) if now() >= self.bounds.ends => Rest::Over,
            Says::Policy(policy) => match self.ask(policy.acting, &policy.bounds, probe) {
                Ok(()) => return Ok(()),
                Err(why) => Rest::Unclear(with_causes(&why)),
            },
            Says::Off => Rest::Off,
            Says::Nothing => Rest::Nothing,
            Says::Missing => Rest::Missing,
            Says::Unclear(why) => Rest::Unclear(why),
        };
        self.counts.refused += u64::from(matches!(rest, Rest::Unclear(_)));
        self.counts.stopped += u64::from(self.rest.is_none() && rest != Rest::Over);
        self.stop(rest);
        self.put(probe)
    }

    fn ask(&mut self, acting: Option<Acting>, here: &ActingBounds, probe: &mut Probe) -> Result<(), ActError> {
        let Some(acting) = acting else { return Ok(()) };
        // What cannot be done is refused also while nothing is.
        acting.steps()?;
        let mut never = self.bounds.never.clone();
        never.extend(never::terms(&here.never)?);
        let never = Never::new(never)?;
        // Before anything is done that it forbids.
        probe.never(&never)?;
        let ends = here.act_for.map_or(Nanos::MAX, |time| now().saturating_add(time)).min(self.bounds.ends);
        let is_other = self.asked.as_ref().is_none_or(|(before, _)| *before != acting);
        if let Some(before) = self.rest.take() {
            self.counts.resumed += 1;
            self.tell(&acting, "resumed", &format!("acting goes on; it had stopped because {before}"));
        } else if is_other && self.asked.is_some() {
            self.tell(&acting, "changed", "the policy file says something else");
        }
        self.asked = Some((acting, ends));
        self.put(probe)
    }

    fn stop(&mut self, why: Rest) {
        if self.rest.as_ref() == Some(&why) {
            return;
        }
        self.counts.over += u64::from(why == Rest::Over);
        self.news.push(model::Acting {
            time_ns: now().saturating_sub(self.bounds.origin).0,
            acts: false,
            for_real: false,
            policy: None,
            reason: why.name().to_owned(),
            meaning: if self.asked.is_some() || self.rest.is_some() {
                format!("acting has stopped: {why}")
            } else {
                format!("acting has not begun: {why}")
            },
        });
        self.rest = Some(why);
    }

    fn tell(&mut self, acting: &Acting, reason: &str, meaning: &str) {
        self.news.push(model::Acting {
            time_ns: now().saturating_sub(self.bounds.origin).0,
            acts: true,
            for_real: !acting.dry,
            policy: Some(words(acting)),
            reason: reason.to_owned(),
            meaning: format!("{meaning}: {}", words(acting)),
        });
    }

    /// Has the kernel do what is asked for, and only for so long; or nothing.
    fn put(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        let asked = self.asked.as_ref().filter(|(acting, _)| self.rest.is_none() && (acting.dry || !self.is_paused));
        let Some((acting, ends)) = asked else {
            if self.put.take().is_some() {
                probe.rest()?;
            }
            return Ok(());
        };
        let now = now();
        self.counts.lapsed += u64::from(self.put.is_some_and(|before| now >= before.saturating_add(LEASE)));
        probe.act(&Acting { until: now.saturating_add(LEASE).min(*ends), ..acting.clone() })?;
        self.put = Some(now);
        Ok(())
    }

    /// What was done when it was looked at last.
    pub fn acted(&self) -> Acted {
        self.acted
    }

    /// What changed since this was asked before.
    pub fn news(&mut self) -> Vec<model::Acting> {
        std::mem::take(&mut self.news)
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What was done to packets, and what would have been.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let acted = &self.acted;
        let Counts { stopped, refused, resumed, over, lapsed } = self.counts;
        let last = self.rest.as_ref().map(|why| format!("; it is stopped now: {why}")).unwrap_or_default();
        let stops = format!(
            "times that acting stopped, as the policy file was taken away, emptied, not clear or said off{last}"
        );
        let session = self.bounds.session.map(|session| format!("{session} is never acted on")).unwrap_or_default();
        let notes = [
            noted("marked", acted.marked, "packets (CE) of flows that contribute, before the queue"),
            noted("would_mark", acted.would_mark, "packets would have been marked; --for-real does it"),
            noted("marked_before", acted.marked_before, "packets were to be marked, and had been before"),
            noted(
                "unmarkable",
                acted.unmarkable,
                "packets were to be marked, but are not capable of ECN (both ends need `sysctl net.ipv4.tcp_ecn=1`; --drop drops them), or not IP",
            ),
            noted("dropped", acted.dropped, "packets of flows that contribute, before the queue"),
            noted("would_drop", acted.would_drop, "packets would have been dropped; --for-real does it"),
            noted("limited", acted.limited, "packets beyond their flow's limit, dropped before the queue"),
            noted(
                "would_limit",
                acted.would_limit,
                "packets beyond their flow's limit would have been dropped; --for-real does it",
            ),
            noted("spared", acted.spared, "packets of flows that contribute, neither chosen nor beyond a limit"),
            noted(
                "no_room_to_act",
                acted.full,
                "times that a flow was to be acted on and there was no room to remember it",
            ),
            noted("acting_paused", self.pauses, "times that a key paused it"),
            noted(
                "exempt",
                acted.exempt,
                "packets of flows that are never acted on (--never, or your SSH session), let through",
            ),
            noted("acting_stopped", stopped, &stops),
            noted("acting_resumed", resumed, "times that acting went on as the policy file said something clear again"),
            noted(
                "policy_refused",
                refused,
                "times that the policy file held what cannot be done, or could not be read; acting stopped",
            ),
            noted("acting_over", over, "times that --act-for ended acting"),
            noted("acting_lapsed", lapsed, "times that the kernel stopped acting, as this process did not run for 2 s"),
            noted("ssh_session", self.bounds.session.is_some().into(), &session),
        ];
        notes.into_iter().flatten()
    }
}

impl Bounds {
    fn begin(bounds: &ActingBounds, is_acting: bool, origin: Nanos, note: &dyn Fn(&str)) -> Result<Self, ActError> {
        let ActingBounds { never, act_for } = bounds;
        if !is_acting {
            if !never.is_empty() || act_for.is_some() {
                return Err(ActError::NothingToBound);
            }
            return Ok(Self::default());
        }
        let session = Session::find();
        if let Some(session) = &session {
            note(&format!("{session} is never acted on"));
        }
        let mut exempt = never::terms(never)?;
        exempt.extend(session.iter().flat_map(Session::terms));
        // What is too long is refused before anything is done, also where the file asks for nothing.
        Never::new(exempt.clone())?;
        let ends = act_for.map_or(Nanos::MAX, |time| now().saturating_add(time));
        Ok(Self { session, never: exempt, ends, origin })
    }
}

/// An error with what caused it.
fn with_causes(error: &ActError) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
