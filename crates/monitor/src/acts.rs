//! Acting on flows while a queue is watched: marking, dropping and limiting, and how the policy changes meanwhile.
//!
//! The policy changes through a file, and only through it. Any editor, shell or program can write a file, no terminal is needed, and
//! the current policy can be read there. The file holds command-line options, so there is no other format to learn or to parse.

mod file;
mod never;
mod session;
mod stop_reason;
mod words;

use crate::error::ActError;
use file::{PolicyContent, PolicyFile, cannot_act};
use never::Exemptions;
pub use never::flows;
use queuescope_ingest::notes::noted;
use queuescope_live::{Acted, Acting, Never, Probe, Victim, Weigh, now};
use queuescope_report::model::{self, Skipped};
use queuescope_wire::Nanos;
pub(crate) use session::Session;
use std::path::PathBuf;
use stop_reason::StopReason;
use words::{probability, words};

/// The action for flows that contribute, or the file that holds it.
#[derive(Debug, Clone, Default)]
pub struct ActingOptions {
    /// The action, if the command line has one.
    pub acting: Option<Acting>,
    /// Bounds on acting that no policy file can lift.
    pub bounds: ActingBounds,
    /// The policy file, and the parser of its text.
    pub file: Option<(PathBuf, PolicyReader)>,
}

/// Bounds on acting: exempt flows and a time limit.
#[derive(Debug, Clone, Default)]
pub struct ActingBounds {
    /// Expressions for the flows that are never acted on.
    pub never: Vec<String>,
    /// Acting ends after this time.
    pub act_for: Option<Nanos>,
}

/// The content of a policy file.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `off`: no action is taken, even if the file also names one.
    pub off: bool,
    /// The action.
    pub acting: Option<Acting>,
    /// Bounds on acting, in addition to those of the whole run.
    pub bounds: ActingBounds,
}

/// Parses the text of a policy file. The error is the message for the user.
pub type PolicyReader = fn(&str) -> Result<Policy, String>;

/// The current action, its state, and the counts of its outcomes.
pub struct Acts {
    file: Option<PolicyFile>,
    bounds: Bounds,
    /// The requested action, and the time at which it ends.
    requested: Option<(Acting, Nanos)>,
    /// Why there is no acting, if an action was requested earlier or may be requested later.
    stop_reason: Option<StopReason>,
    /// Changes since `news` was called last.
    news: Vec<model::Acting>,
    /// Whether the user paused acting with a key, and how often.
    is_paused: bool,
    pauses: u64,
    /// The time at which the kernel's lease was renewed last; none while the kernel does not act.
    renewed: Option<Nanos>,
    counts: Counts,
    acted: Acted,
}

/// The flows that any of these expressions names and those of the user's SSH session, as the kernel stores them; and that session.
pub(crate) fn exempt_flows(never: &[String]) -> Result<(Never, Option<Session>), ActError> {
    let session = Session::find();
    let mut exempt = never::exemptions(never)?;
    exempt.extend(session.iter().flat_map(Session::exemptions));
    Ok((Never::new(exempt)?, session))
}

/// Bounds for the whole run.
#[derive(Debug, Default)]
struct Bounds {
    session: Option<Session>,
    never: Exemptions,
    /// The end of the command line's `--act-for`.
    ends: Nanos,
    /// The start of the time in reports.
    origin: Nanos,
}

/// How often acting stopped, resumed and so on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Times that acting stopped because the policy file was missing, empty, invalid or said `off`.
    pub stopped: u64,
    /// Of those, times that the policy file could not be read or was invalid.
    pub refused: u64,
    /// Times that acting resumed.
    resumed: u64,
    /// Times that `--act-for` ended acting.
    over: u64,
    /// Times that the kernel's lease ran out before it was renewed.
    lapsed: u64,
}

/// The current state of acting, for display.
#[derive(Debug, Clone, PartialEq)]
pub struct ActingStatus {
    /// The policy in words, or why there is no acting.
    pub policy: String,
    /// Whether packets are changed.
    pub mode: Mode,
    /// Outcomes of packets since the start.
    pub acted: Acted,
    /// Flows that were acted on in the last second: the digest of the five-tuple, and the probability that a packet of the flow is
    /// chosen.
    pub chosen: Vec<(u64, f64)>,
}

/// Whether acting changes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Dry run: packets are only counted.
    Dry,
    /// Packets are changed.
    Real,
    /// A key has paused acting and can resume it.
    Paused,
    /// The policy file or a time limit has stopped acting.
    Stopped,
}

/// How long a flow stays in the view after it was acted on.
const SHOWN: Nanos = Nanos(1_000_000_000);
/// How long the kernel acts without a renewal. If this process is stopped or hangs, nothing reads the policy file any more, so acting
/// must end.
const LEASE: Nanos = Nanos(2_000_000_000);

impl Acts {
    /// Starts to act as `options` request. Reports count time from `origin`. `note` receives what the user should know at once.
    ///
    /// # Errors
    /// Fails if the policy file cannot be read or is invalid, or if the kernel refuses.
    pub fn new(
        options: &ActingOptions,
        probe: &mut Probe,
        origin: Nanos,
        note: &dyn Fn(&str),
    ) -> Result<Self, ActError> {
        let opened = options.file.as_ref().map(|(path, reader)| PolicyFile::open(path, *reader));
        let (file, content) = opened.transpose()?.unzip();
        let is_acting = options.acting.is_some() || file.is_some();
        let mut acts = Self {
            bounds: Bounds::new(&options.bounds, is_acting, origin, note)?,
            file,
            requested: None,
            stop_reason: None,
            news: Vec::new(),
            is_paused: false,
            pauses: 0,
            renewed: None,
            counts: Counts::default(),
            acted: Acted::default(),
        };
        match (content, &options.file) {
            (Some(PolicyContent::Policy(policy)), Some((path, _))) => {
                acts.apply(policy.acting, &policy.bounds, probe).map_err(|why| cannot_act(path, why))?;
            }
            (Some(content), _) => acts.follow(content, probe)?,
            (None, _) => acts.apply(options.acting.clone(), &ActingBounds::default(), probe)?,
        }
        Ok(acts)
    }

    /// Applies a changed policy file, ends acting whose time is over, and renews the kernel's lease otherwise. An action that the file no
    /// longer names clearly ends.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn look(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        self.acted = probe.acted()?;
        if let Some(content) = self.file.as_mut().and_then(PolicyFile::changed) {
            self.follow(content, probe)?;
        }
        if self.stop_reason.is_none() && self.requested.as_ref().is_some_and(|(_, ends)| now() >= *ends) {
            self.stop(StopReason::Over);
        }
        self.renew(probe)
    }

    /// Reads the counts for the last time and ends acting.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn end(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        (self.file, self.requested) = (None, None);
        self.renew(probe)
    }

    /// Pauses acting that changes packets, or resumes it. A dry run continues.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn pause(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        self.is_paused = !self.is_paused;
        self.pauses += u64::from(self.is_paused);
        self.renew(probe)
    }

    /// The state of acting at `now`; none if no action was ever requested.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn status(&self, probe: &Probe, now: Nanos) -> Result<Option<ActingStatus>, ActError> {
        let stopped = |why: &StopReason| ActingStatus {
            policy: why.to_string(),
            mode: Mode::Stopped,
            acted: self.acted,
            chosen: Vec::new(),
        };
        if let Some(why) = &self.stop_reason {
            return Ok(Some(stopped(why)));
        }
        let Some((acting, _)) = &self.requested else { return Ok(None) };
        let mode = match acting.dry {
            true => Mode::Dry,
            false if self.is_paused => Mode::Paused,
            false => Mode::Real,
        };
        let is_late = |victim: &Victim| !victim.exempt && victim.until.saturating_add(SHOWN) >= now;
        // An action on the whole queue meets every packet, so the kernel remembers no single flows.
        let is_of_flows = mode != Mode::Paused && acting.weigh != Weigh::Queue;
        let victims = if is_of_flows { probe.victims()? } else { Vec::new() };
        let victims = victims.into_iter().filter(is_late);
        let chosen = victims.map(|victim| (victim.digest, probability(acting, &victim))).filter(|(_, p)| *p > 0.0);
        Ok(Some(ActingStatus { policy: words(acting), mode, acted: self.acted, chosen: chosen.collect() }))
    }

    /// Whether acting changes packets now.
    pub fn is_real(&self) -> bool {
        self.renewed.is_some() && self.requested.as_ref().is_some_and(|(acting, _)| !acting.dry)
    }

    /// Applies the content of the policy file.
    fn follow(&mut self, content: PolicyContent, probe: &mut Probe) -> Result<(), ActError> {
        let stop_reason = match content {
            // A file cannot extend the time limit of the command line.
            PolicyContent::Policy(_) if now() >= self.bounds.ends => StopReason::Over,
            PolicyContent::Policy(policy) => match self.apply(policy.acting, &policy.bounds, probe) {
                Ok(()) => return Ok(()),
                Err(why) => StopReason::Unclear(with_causes(&why)),
            },
            PolicyContent::Off => StopReason::Off,
            PolicyContent::Nothing => StopReason::Nothing,
            PolicyContent::Missing => StopReason::Missing,
            PolicyContent::Unclear(why) => StopReason::Unclear(why),
        };
        self.counts.refused += u64::from(matches!(stop_reason, StopReason::Unclear(_)));
        self.counts.stopped += u64::from(self.stop_reason.is_none() && stop_reason != StopReason::Over);
        self.stop(stop_reason);
        self.renew(probe)
    }

    fn apply(&mut self, acting: Option<Acting>, here: &ActingBounds, probe: &mut Probe) -> Result<(), ActError> {
        let Some(acting) = acting else { return Ok(()) };
        // An impossible action is an error even while acting is stopped.
        acting.steps()?;
        let mut never = self.bounds.never.clone();
        never.extend(never::exemptions(&here.never)?);
        let never = Never::new(never)?;
        // The exemptions must be in the kernel before any action.
        probe.never(&never)?;
        let ends = here.act_for.map_or(Nanos::MAX, |time| now().saturating_add(time)).min(self.bounds.ends);
        let is_other = self.requested.as_ref().is_none_or(|(before, _)| *before != acting);
        if let Some(before) = self.stop_reason.take() {
            self.counts.resumed += 1;
            self.report_change(&acting, "resumed", &format!("acting resumed; it had stopped because {before}"));
        } else if is_other && self.requested.is_some() {
            self.report_change(&acting, "changed", "the policy file has changed");
        }
        self.requested = Some((acting, ends));
        self.renew(probe)
    }

    fn stop(&mut self, why: StopReason) {
        if self.stop_reason.as_ref() == Some(&why) {
            return;
        }
        self.counts.over += u64::from(why == StopReason::Over);
        self.news.push(model::Acting {
            time_ns: now().saturating_sub(self.bounds.origin).0,
            active: false,
            for_real: false,
            policy: None,
            reason: why.name().to_owned(),
            meaning: if self.requested.is_some() || self.stop_reason.is_some() {
                format!("acting has stopped: {why}")
            } else {
                format!("acting has not begun: {why}")
            },
        });
        self.stop_reason = Some(why);
    }

    fn report_change(&mut self, acting: &Acting, reason: &str, meaning: &str) {
        self.news.push(model::Acting {
            time_ns: now().saturating_sub(self.bounds.origin).0,
            active: true,
            for_real: !acting.dry,
            policy: Some(words(acting)),
            reason: reason.to_owned(),
            meaning: format!("{meaning}: {}", words(acting)),
        });
    }

    /// Renews the kernel's lease of the requested action, or ends acting in the kernel.
    fn renew(&mut self, probe: &mut Probe) -> Result<(), ActError> {
        let requested =
            self.requested.as_ref().filter(|(acting, _)| self.stop_reason.is_none() && (acting.dry || !self.is_paused));
        let Some((acting, ends)) = requested else {
            if self.renewed.take().is_some() {
                probe.rest()?;
            }
            return Ok(());
        };
        let now = now();
        self.counts.lapsed += u64::from(self.renewed.is_some_and(|before| now >= before.saturating_add(LEASE)));
        probe.act(&Acting { until: now.saturating_add(LEASE).min(*ends), ..acting.clone() })?;
        self.renewed = Some(now);
        Ok(())
    }

    /// Outcomes at the last `look`.
    pub fn acted(&self) -> Acted {
        self.acted
    }

    /// Changes since the last call.
    pub fn news(&mut self) -> Vec<model::Acting> {
        std::mem::take(&mut self.news)
    }

    /// How often acting stopped, resumed and so on, so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Notes on what acting did to packets, and what a dry run would have done.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let acted = &self.acted;
        let Counts { stopped, refused, resumed, over, lapsed } = self.counts;
        let last = self.stop_reason.as_ref().map(|why| format!("; acting is stopped now: {why}")).unwrap_or_default();
        let stops = format!(
            "times that acting stopped because the policy file was removed, emptied, invalid or said off{last}"
        );
        let session = self.bounds.session.map(|session| format!("{session} is never acted on")).unwrap_or_default();
        let notes = [
            noted("marked", acted.marked, "packets (CE) of flows that contribute, before the queue"),
            noted("would_mark", acted.would_mark, "packets that would have been marked; --for-real marks them"),
            noted("marked_before", acted.marked_before, "packets that were chosen for a mark and already had one"),
            noted(
                "unmarkable",
                acted.unmarkable,
                "packets that were chosen for a mark, but are not ECN-capable (both ends need `sysctl net.ipv4.tcp_ecn=1`; --drop drops them) or not IP",
            ),
            noted("dropped", acted.dropped, "packets of flows that contribute, before the queue"),
            noted("would_drop", acted.would_drop, "packets that would have been dropped; --for-real drops them"),
            noted("limited", acted.limited, "packets above their flow's limit, dropped before the queue"),
            noted(
                "would_limit",
                acted.would_limit,
                "packets above their flow's limit that would have been dropped; --for-real drops them",
            ),
            noted("spared", acted.spared, "packets of flows that contribute, neither chosen nor above a limit"),
            noted(
                "no_room_to_act",
                acted.full,
                "times that a flow was not acted on because there was no room to remember it",
            ),
            noted("acting_paused", self.pauses, "times that a key paused acting"),
            noted(
                "exempt",
                acted.exempt,
                "packets of flows that are never acted on (--never, or your SSH session), let through",
            ),
            noted("acting_stopped", stopped, &stops),
            noted("acting_resumed", resumed, "times that acting resumed because the policy file was valid again"),
            noted(
                "policy_refused",
                refused,
                "times that the policy file was invalid or could not be read; acting stopped",
            ),
            noted("acting_over", over, "times that --act-for ended acting"),
            noted(
                "acting_lapsed",
                lapsed,
                "times that the kernel stopped acting because this process did not run for 2 s",
            ),
            noted("ssh_session", self.bounds.session.is_some().into(), &session),
        ];
        notes.into_iter().flatten()
    }
}

impl Bounds {
    fn new(bounds: &ActingBounds, is_acting: bool, origin: Nanos, note: &dyn Fn(&str)) -> Result<Self, ActError> {
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
        let mut exempt = never::exemptions(never)?;
        exempt.extend(session.iter().flat_map(Session::exemptions));
        // Too many exemptions are an error before any action, even if the policy file has no action yet.
        Never::new(exempt.clone())?;
        let ends = act_for.map_or(Nanos::MAX, |time| now().saturating_add(time));
        Ok(Self { session, never: exempt, ends, origin })
    }
}

/// The message of an error and of its causes.
fn with_causes(error: &ActError) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
