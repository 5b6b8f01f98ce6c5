//! What `live` does to flows, and how that changes while it runs.
//!
//! A file that is looked at is the one way to change it: any editor, shell or program writes one, no terminal is needed, and what is
//! asked stands somewhere. It holds the options themselves, so that there is nothing else to learn or to parse.

mod file;

use crate::args::{ActingArgs, PolicyArgs};
use crate::capture::noted;
use anyhow::{Context, Result};
use file::{PolicyFile, cannot_act};
use queuescope_live::{Acted, Acting, Action, Probe, Victim, Weigh};
use queuescope_queue::{Curve, Response};
use queuescope_report::format;
use queuescope_report::model::Skipped;
use queuescope_wire::Nanos;

/// What is done, and what came of it.
pub struct Acts {
    file: Option<PolicyFile>,
    /// Times that it held what cannot be done, or could not be read, and why when that was last.
    refused: (u64, String),
    /// Whether that is what the file holds, and whether it was told.
    is_refused: bool,
    is_news: bool,
    /// What was asked for last.
    acting: Option<Acting>,
    /// Who looks on wants no packet to be changed, and how often that was wanted.
    is_paused: bool,
    pauses: u64,
    acted: Acted,
}

/// What is done now, as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Doing {
    /// What is asked for, in words.
    pub policy: String,
    /// Whether it is done.
    pub mode: Mode,
    /// What became of packets since the beginning.
    pub acted: Acted,
    /// Flows that were acted on in the last second, by the digests of their five-tuples, with the probability by which a packet
    /// of theirs is chosen.
    pub chosen: Vec<(u64, f64)>,
    /// Whether the policy's file says something else, which cannot be done.
    pub is_refused: bool,
}

/// Whether packets are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are only counted.
    Dry,
    /// They are.
    Real,
    /// They were, and may be again.
    Paused,
}

/// For how long a flow that was acted on is shown.
const SHOWN: Nanos = Nanos(1_000_000_000);

impl Acts {
    /// Begins to act as asked.
    ///
    /// # Errors
    /// If the file cannot be read or means nothing, and those of the kernel.
    pub fn begin(args: &ActingArgs, probe: &mut Probe) -> Result<Self> {
        let (file, written) = args.policy_file.as_deref().map(PolicyFile::open).transpose()?.unzip();
        let mut acts = Self {
            file,
            refused: (0, String::new()),
            is_refused: false,
            is_news: false,
            acting: None,
            is_paused: false,
            pauses: 0,
            acted: Acted::default(),
        };
        let asked = acts.ask(written.as_ref().unwrap_or(&args.policy), probe);
        match &args.policy_file {
            Some(file) => asked.with_context(|| cannot_act(file))?,
            None => asked?,
        }
        Ok(acts)
    }

    /// Looks whether it is to be done otherwise. What cannot be done is noted, and what was done before goes on.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn look(&mut self, probe: &mut Probe) -> Result<()> {
        self.acted = probe.acted()?;
        let Some(written) = self.file.as_mut().and_then(PolicyFile::changed) else { return Ok(()) };
        let asked = written.and_then(|policy| self.ask(&policy, probe));
        self.is_refused = asked.is_err();
        if let Err(why) = asked {
            self.refused = (self.refused.0 + 1, format!("{why:#}"));
            self.is_news = true;
        }
        Ok(())
    }

    /// Changes packets no more, or again; what is only counted goes on.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn pause(&mut self, probe: &mut Probe) -> Result<()> {
        self.is_paused = !self.is_paused;
        self.pauses += u64::from(self.is_paused);
        self.put(self.acting.as_ref(), probe)
    }

    /// What is done at `now`, if anything is asked for.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn doing(&self, probe: &Probe, now: Nanos) -> Result<Option<Doing>> {
        let Some(acting) = &self.acting else { return Ok(None) };
        let mode = match acting.dry {
            true => Mode::Dry,
            false if self.is_paused => Mode::Paused,
            false => Mode::Real,
        };
        let is_late = |victim: &Victim| victim.until.saturating_add(SHOWN) >= now;
        // Of the whole queue every packet is met, and no flow is remembered for that.
        let is_of_flows = mode != Mode::Paused && acting.weigh != Weigh::Queue;
        let victims = if is_of_flows { probe.victims()? } else { Vec::new() };
        let victims = victims.into_iter().filter(is_late);
        let chosen = victims.map(|victim| (victim.digest, probability(acting, &victim))).filter(|(_, p)| *p > 0.0);
        Ok(Some(Doing {
            policy: words(acting),
            mode,
            acted: self.acted,
            chosen: chosen.collect(),
            is_refused: self.is_refused,
        }))
    }

    fn ask(&mut self, policy: &PolicyArgs, probe: &mut Probe) -> Result<()> {
        let acting = policy.acting();
        // What cannot be done is refused also while nothing is.
        acting.as_ref().map(Acting::steps).transpose()?;
        self.put(acting.as_ref(), probe)?;
        self.acting = acting;
        Ok(())
    }

    fn put(&self, acting: Option<&Acting>, probe: &mut Probe) -> Result<()> {
        match acting.filter(|acting| acting.dry || !self.is_paused) {
            Some(acting) => probe.act(acting)?,
            None => probe.rest()?,
        }
        Ok(())
    }

    /// What was done when it was looked at last.
    pub fn acted(&self) -> Acted {
        self.acted
    }

    /// What was wrong with the file since this was asked before, in a line.
    pub fn news(&mut self) -> Option<String> {
        let is_news = std::mem::take(&mut self.is_news);
        is_news.then(|| format!("the policy's file is refused, and what was done before goes on: {}", self.why()))
    }

    fn why(&self) -> &str {
        self.refused.1.lines().next().unwrap_or_default()
    }

    /// Times that the file held what cannot be done, or could not be read.
    pub fn refused(&self) -> u64 {
        self.refused.0
    }

    /// What was done to packets, and what would have been.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let acted = &self.acted;
        let (refused, first) = (&self.refused.0, self.why());
        let why = format!(
            "times that the policy's file held what cannot be done, or could not be read; what was done before went on: {first}"
        );
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
            noted("policy_refused", *refused, &why),
        ];
        notes.into_iter().flatten()
    }
}

/// With which probability a packet of a flow is chosen, or one beyond its limit is dropped.
fn probability(acting: &Acting, victim: &Victim) -> f64 {
    let weight = match acting.weigh {
        Weigh::Bytes | Weigh::Queue => victim.weight as f64,
        Weigh::Share => victim.share as f64 / 65_536.0,
    };
    acting.curve.probability(weight, acting.threshold)
}

/// `mark linear:20.0 kB from 30.0 kB`.
fn words(acting: &Acting) -> String {
    let action = match acting.action {
        Action::Respond(Response::MarkOnly) => "mark".to_owned(),
        Action::Respond(Response::MarkOrDrop) => "mark or drop".to_owned(),
        Action::Respond(Response::Drop) => "drop".to_owned(),
        Action::Limit { rate, .. } => format!("limit to {}", format::rate(rate.bits_per_second() as f64)),
    };
    let curve = match &acting.curve {
        Curve::Threshold => String::new(),
        Curve::Linear { full } => format!(" linear:{}", format::bytes(*full as u64)),
        Curve::Squared { full } => format!(" squared:{}", format::bytes(*full as u64)),
        // The command line has one step at most.
        Curve::Steps(steps) => format!(" {}", format::percent(steps.probability(f64::MAX))),
    };
    let of = if acting.weigh == Weigh::Queue { " any flow" } else { "" };
    let from = match acting.threshold as u64 {
        0 => String::new(),
        threshold => format!(" from {}", format::bytes(threshold)),
    };
    action + &curve + of + &from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_told_in_words() {
        let told = |text: &str| words(&PolicyArgs::read(text).unwrap().acting().unwrap());
        assert_eq!(told("--mark=linear:20kB --threshold 30kB"), "mark linear:20.0 kB from 30.0 kB");
        assert_eq!(told("--mark=1/16 --drop"), "mark or drop 6.2 %");
        assert_eq!(told("--drop=queue --threshold 1MB"), "drop any flow from 1.00 MB");
        assert_eq!(told("--limit 10Mbit/s"), "limit to 10.0 Mb/s");
    }

    #[test]
    fn a_flow_is_chosen_by_its_weight() {
        let chosen = |text: &str, weight| {
            let victim = Victim { digest: 1, until: Nanos(0), weight, share: 32_768 };
            probability(&PolicyArgs::read(text).unwrap().acting().unwrap(), &victim)
        };
        assert_eq!([chosen("--mark --threshold 5kB", 4_999), chosen("--mark --threshold 5kB", 5_000)], [0.0, 1.0]);
        assert_eq!(chosen("--mark=linear:20kB --threshold 5kB", 10_000), 0.25);
        let share = Acting { weigh: Weigh::Share, threshold: 0.5, ..Acting::default() };
        assert_eq!(probability(&share, &Victim { digest: 1, until: Nanos(0), weight: 0, share: 32_768 }), 1.0);
    }
}
