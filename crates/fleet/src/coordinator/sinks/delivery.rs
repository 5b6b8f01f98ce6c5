//! What a sink sends next: its position, repeats, pauses and counts, without clocks, files and connections.

use super::position::{Position, digest};
use super::repeats::Repeats;
use crate::agent::Backoff;
use crate::protocol::Alert;
use queuescope_wire::Nanos;
use std::collections::VecDeque;
use std::mem;

/// Alerts that are remembered to recognise repeats: some 2 MB.
const REMEMBERED: usize = 16_384;
/// Alerts that are read together. Each can have a megabyte.
const READ: usize = 32;
/// The longest pause that a receiver can ask for.
const LONGEST_PAUSE: Nanos = Nanos(3_600_000_000_000);

/// The stored alerts.
pub(super) trait Stored {
    /// The number of the first alert that is kept; that of the next one if none is.
    fn first(&self) -> u64;
    /// The number of the last alert.
    fn count(&self) -> u64;
    /// Alerts from a number on, at most `most`, as far as they are kept.
    fn from(&self, number: u64, most: usize) -> Vec<Alert>;
}

/// How a sink's alerts are put together.
#[derive(Debug, Clone)]
pub(super) struct DeliveryParams {
    /// Equal alerts within this time are sent once; 0 sends all.
    pub once: Nanos,
    /// Repeats are recognised among this many alerts, at least 1, and then begin again: a restart reads no more than these.
    pub among: u64,
    /// The most alerts that wait: when there are more, the oldest are left out.
    pub backlog: u64,
    /// The most alerts that are sent together, at least 1.
    pub batch: usize,
    /// The most bytes of text in alerts that are sent together; a single alert can have more.
    pub batch_bytes: usize,
    /// Pauses after failures.
    pub backoff: Backoff,
}

/// An alert to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outgoing {
    /// The alert.
    pub alert: Alert,
    /// Equal alerts that were left out since the last one that was sent.
    pub repeats: u64,
    /// The last number that is done with when this alert is: repeats follow it.
    pub(super) through: u64,
    /// Repeats that follow it.
    pub(super) followers: u64,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Send [`Delivery::waiting`].
    Send,
    /// Wait until this time.
    Pause(Nanos),
    /// Wait until an alert comes.
    Idle,
}

/// What became of alerts that were sent together: the receiver took some, and then this happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    /// The number of alerts that it took, if not all.
    pub taken: usize,
    /// What happened to the others.
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// There were no others.
    All,
    /// The receiver does not want them, and will not want them later.
    Refused(String),
    /// It may work later.
    Failed {
        /// What failed.
        why: String,
        /// The pause that the receiver asked for.
        after: Option<Nanos>,
    },
}

/// What a sink did since the coordinator started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinkStats {
    /// Alerts that the receiver took.
    pub sent: u64,
    /// Attempts that failed and were or will be made again.
    pub retried: u64,
    /// Alerts that the receiver refused, which are not sent again.
    pub refused: u64,
    /// Alerts that were not sent because they repeat one that was.
    pub repeats: u64,
    /// Alerts that were left out because more waited than the limit allows.
    pub left_out: u64,
}

/// A sink's queue. [`next`](Self::next) says what to do; [`done`](Self::done) takes what became of it.
#[derive(Debug)]
pub(super) struct Delivery {
    params: DeliveryParams,
    backoff: Backoff,
    position: u64,
    since: u64,
    repeats: Repeats,
    /// Alerts after the position. They stay the same until they are done with, so that a receiver recognises what it gets again.
    held: VecDeque<Outgoing>,
    /// Alerts up to this number are sent one by one, because the receiver refused them together.
    singly: u64,
    not_before: Nanos,
    stats: SinkStats,
    trouble: Option<Trouble>,
    notes: Vec<String>,
    is_saved: bool,
}

/// What went wrong since the receiver last took all alerts of an attempt.
#[derive(Debug, Default)]
struct Trouble {
    failures: u64,
    refused: u64,
    left_out: u64,
}

impl Delivery {
    /// Goes on at a position. A new sink begins with the next alert that comes. If the alerts are not those of the position, because their file
    /// was replaced, it begins with the first.
    pub fn open(position: Option<&Position>, alerts: &impl Stored, params: DeliveryParams) -> Self {
        let count = alerts.count();
        // An alert that is not kept any more cannot be compared.
        let is_same =
            |at: &Position| at.position < alerts.first() || last_digest(alerts, at.position).as_ref() == Some(&at.last);
        let mut notes = Vec::new();
        let (position, since) = match position {
            None => (count, count + 1),
            Some(at) if at.position <= count && is_same(at) => (at.position, at.since),
            Some(_) => {
                notes.push("begins with the first alert, because the file of alerts was replaced".to_owned());
                (0, 1)
            }
        };
        let mut repeats = Repeats::new(params.once, REMEMBERED);
        let mut number = since.max(alerts.first());
        while number <= position {
            for alert in alerts.from(number, READ).iter().take_while(|alert| alert.number <= position) {
                repeats.admit(alert);
            }
            number += READ as u64;
        }
        let backoff = params.backoff.clone();
        let (held, stats) = (VecDeque::new(), SinkStats::default());
        Self {
            params,
            backoff,
            position,
            since,
            repeats,
            held,
            singly: 0,
            not_before: Nanos(0),
            stats,
            trouble: None,
            notes,
            is_saved: false,
        }
    }

    /// What to do now. Composes [`waiting`](Self::waiting) if needed.
    pub fn next(&mut self, now: Nanos, alerts: &impl Stored) -> Next {
        self.shorten(alerts.first(), alerts.count());
        if now < self.not_before {
            return Next::Pause(self.not_before);
        }
        if self.held.is_empty() {
            self.compose(alerts);
        }
        if self.held.is_empty() { Next::Idle } else { Next::Send }
    }

    /// The alerts to send together, oldest first.
    pub fn waiting(&mut self) -> &[Outgoing] {
        let most = self.together();
        &self.held.make_contiguous()[..most]
    }

    /// Takes what became of [`waiting`](Self::waiting). `chance` is any number, at random.
    pub fn done(&mut self, now: Nanos, attempt: Attempt, chance: u64) {
        let tried = self.together();
        let taken = match attempt.end {
            AttemptEnd::All => tried,
            _ => attempt.taken.min(tried.saturating_sub(1)),
        };
        self.took(taken);
        match attempt.end {
            AttemptEnd::All => self.recovered(),
            // One of them may be the reason.
            AttemptEnd::Refused(_) if tried - taken > 1 => {
                self.singly = self.held.get(tried - taken - 1).map_or(0, |last| last.alert.number);
            }
            AttemptEnd::Refused(why) => self.refused(now, &why, chance),
            AttemptEnd::Failed { why, after } => self.failed(now, &why, after, chance),
        }
    }

    /// What people should know since the last call: the beginnings and ends of troubles.
    pub fn notes(&mut self) -> Vec<String> {
        mem::take(&mut self.notes)
    }

    /// The position to save, if it changed since [`saved`](Self::saved).
    pub fn unsaved(&self, sink: &str, alerts: &impl Stored) -> Option<Position> {
        if self.is_saved {
            return None;
        }
        let last = if self.position == 0 { None } else { last_digest(alerts, self.position) };
        let (sink, last) = (sink.to_owned(), last.unwrap_or_default());
        Some(Position { sink, position: self.position, since: self.since, last })
    }

    /// The position was saved.
    pub fn saved(&mut self) {
        self.is_saved = true;
    }

    /// The number of the last alert that is done with.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The counts.
    pub fn stats(&self) -> SinkStats {
        self.stats
    }

    /// Whether the last attempt failed or was refused.
    pub fn is_failing(&self) -> bool {
        self.trouble.is_some()
    }

    /// The number of alerts to send together.
    fn together(&self) -> usize {
        match self.held.front() {
            Some(first) if first.alert.number <= self.singly => 1,
            _ => self.held.len(),
        }
    }

    /// Leaves out the oldest alerts if more wait than allowed, or than are kept.
    fn shorten(&mut self, first: u64, count: u64) {
        let to = count.saturating_sub(self.params.backlog).max(first - 1);
        if to <= self.position {
            return;
        }
        let left_out = to - self.position;
        self.stats.left_out += left_out;
        self.begin_after(to);
        let most = self.params.backlog.min(count - to);
        let trouble = self.trouble.get_or_insert_default();
        if trouble.left_out == 0 {
            self.notes.push(format!("leaves out the oldest alerts, because more than {most} wait"));
        }
        trouble.left_out += left_out;
    }

    /// The position moves past alerts that were not sent. Later ones do not count as repeats of them, or of any before.
    fn begin_after(&mut self, position: u64) {
        self.held.clear();
        self.repeats.clear();
        self.move_to(position);
        self.since = position + 1;
    }

    fn compose(&mut self, alerts: &impl Stored) {
        if (self.position + 1).saturating_sub(self.since) >= self.params.among {
            self.begin_after(self.position);
        }
        let mut bytes = 0;
        loop {
            let from = self.held.back().map_or(self.position, |last| last.through) + 1;
            let more = alerts.from(from, READ);
            if more.first().is_none_or(|first| first.number > from) {
                // There are none, or those between are not kept any more, which the next look counts.
                return;
            }
            for alert in more {
                let (number, size) = (alert.number, alert.member.len() + alert.trigger.len() + alert.detail.len());
                let is_full = self.held.len() >= self.params.batch || bytes + size > self.params.batch_bytes;
                if is_full && !self.held.is_empty() {
                    return;
                }
                match (self.repeats.admit(&alert), self.held.back_mut()) {
                    (Some(repeats), _) => {
                        bytes += size;
                        self.held.push_back(Outgoing { repeats, ..Outgoing::single(alert) });
                    }
                    (None, Some(last)) => {
                        last.through = number;
                        last.followers += 1;
                    }
                    (None, None) => {
                        self.stats.repeats += 1;
                        self.move_to(number);
                    }
                }
            }
        }
    }

    /// The first alerts that are held were taken.
    fn took(&mut self, number: usize) {
        let Some(last) = number.checked_sub(1).and_then(|at| self.held.get(at)) else { return };
        let through = last.through;
        self.stats.sent += number as u64;
        self.stats.repeats += self.held.drain(..number).map(|taken| taken.followers).sum::<u64>();
        self.move_to(through);
        self.backoff = self.params.backoff.clone();
        self.not_before = Nanos(0);
    }

    fn move_to(&mut self, position: u64) {
        self.position = position;
        self.is_saved = false;
    }

    fn recovered(&mut self) {
        // While alerts are sent one by one, the next may be refused again.
        if self.position < self.singly {
            return;
        }
        if let Some(Trouble { failures, refused, left_out }) = self.trouble.take() {
            self.notes.push(format!(
                "takes alerts again: {failures} attempts failed, {refused} alerts were refused, {left_out} were left out"
            ));
        }
    }

    /// The first alert that is held is dropped. Equal alerts after it are tried themselves.
    fn refused(&mut self, now: Nanos, why: &str, chance: u64) {
        let Some(first) = self.held.front() else { return };
        self.begin_after(first.alert.number);
        self.stats.refused += 1;
        // A receiver that refuses everything gets a few requests a second.
        self.not_before = Nanos(now.0.saturating_add(self.params.backoff.clone().pause(chance).0));
        let trouble = self.trouble.get_or_insert_default();
        trouble.refused += 1;
        if trouble.refused == 1 {
            self.notes.push(format!("refused an alert, which is dropped: {why}"));
        }
    }

    fn failed(&mut self, now: Nanos, why: &str, after: Option<Nanos>, chance: u64) {
        self.stats.retried += 1;
        let pause = self.backoff.pause(chance).max(after.unwrap_or_default().min(LONGEST_PAUSE));
        self.not_before = Nanos(now.0.saturating_add(pause.0));
        let trouble = self.trouble.get_or_insert_default();
        trouble.failures += 1;
        if trouble.failures == 1 {
            self.notes.push(format!("took no alerts, and is tried again: {why}"));
        }
    }
}

impl Outgoing {
    /// An alert that nothing repeats.
    pub fn single(alert: Alert) -> Self {
        Self { through: alert.number, alert, repeats: 0, followers: 0 }
    }
}

impl Attempt {
    /// All were taken.
    pub const ALL: Self = Self { taken: usize::MAX, end: AttemptEnd::All };

    /// The receiver wants none of them.
    pub fn refused(why: impl Into<String>) -> Self {
        Self { taken: 0, end: AttemptEnd::Refused(why.into()) }
    }

    /// Some were taken, and the next failed.
    pub fn failed(taken: usize, why: impl Into<String>) -> Self {
        Self { taken, end: AttemptEnd::Failed { why: why.into(), after: None } }
    }
}

fn last_digest(alerts: &impl Stored, number: u64) -> Option<String> {
    alerts.from(number, 1).first().map(digest)
}
