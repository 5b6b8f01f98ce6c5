//! The view of a queue while it is watched: the last seconds, the flows in the queue, and its bursts.
//!
//! A `View` only receives events: it reads no clock and knows no terminal. So tests can draw it.

mod acting;
mod draw;
mod flows;
mod history;
mod job;
mod screen;
#[cfg(test)]
mod tests;

pub use screen::{Screen, give_up};

use super::acts::{ActingStatus, Mode};
use acting::{ActingNow, ActingShot};
use flows::{FlowRow, FlowsNow};
use history::{History, Moment, SHIFT, slice_of};
use queuescope_analysis::Show;
use queuescope_live::{Counters, Slice};
use queuescope_report::model::{self, Owner};
use queuescope_wire::{FlowKey, Granularity, Nanos};
use std::collections::{BTreeMap, VecDeque};
use std::mem;

/// The maximum number of remembered bursts.
const BURSTS: usize = 64;
/// The maximum number of letters in a filter.
const FILTER: usize = 64;

/// What a view shows of a queue. Its memory is bounded: 17 s of slices, 2048 flows, 64 bursts.
pub struct View {
    interface: String,
    tau: Nanos,
    history: History,
    flows: FlowsNow,
    owners: BTreeMap<FlowKey, Owner>,
    bursts: VecDeque<BurstRow>,
    counters: Counters,
    /// Packets that were lost behind the queue.
    lost: u64,
    acting: ActingNow,
    /// The state of P4air: headings, and the text beside each.
    p4air: Vec<(&'static str, String)>,
    /// One line on what cannot be written.
    unwritten: Option<String>,
    /// The user has asked to pause or resume acting.
    wants_pause_or_resume: bool,
    origin: Nanos,
    is_coloured: bool,
    sort: Sort,
    filter: String,
    /// Whether a filter is being typed.
    is_typing: bool,
    /// Whether owners are shown beside flows.
    with_owners: bool,
    frozen: Option<ViewSnapshot>,
    /// Whether the user ended the view.
    pub is_over: bool,
}

/// A pressed key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A letter.
    Char(char),
    /// Completes the filter.
    Enter,
    /// Discards the filter.
    Escape,
    /// Deletes the last letter.
    Back,
    /// Ctrl-C, which raises no signal in raw mode.
    Interrupt,
    /// Not a key: the view must be drawn again, because the terminal has another size or was used by another program.
    Redraw,
}

/// The order of the list of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Share,
    Growth,
    Delay,
    Name,
}

/// A burst as one line shows it.
#[derive(Debug, Clone)]
struct BurstRow {
    number: u64,
    start: u64,
    length: u64,
    peak_delay: u64,
    peak_depth: u64,
    drops: u64,
    /// The heaviest flow of the burst.
    culprit: Option<model::Culprit>,
}

/// Everything that is shown at one moment.
#[derive(Debug, Clone)]
struct ViewSnapshot {
    since: Nanos,
    /// The slices up to the last complete one.
    moments: Vec<Moment>,
    flows: Vec<FlowRow>,
    /// The bytes of all flows in the last second.
    bytes_last_second: u64,
    counters: Counters,
    lost: u64,
    acting: Option<ActingShot>,
    p4air: Vec<(&'static str, String)>,
    unwritten: Option<String>,
    /// The newest burst first.
    bursts: Vec<BurstRow>,
}

impl View {
    /// Creates a view of an interface that is watched since `origin` and whose queue is congested above `tau`. `granularity` defines the
    /// flows, and `show` selects the ones that are listed.
    pub fn new(
        interface: &str,
        tau: Nanos,
        granularity: Granularity,
        show: Option<Show>,
        origin: Nanos,
        is_coloured: bool,
    ) -> Self {
        Self {
            interface: interface.to_owned(),
            tau,
            history: History::new(origin),
            flows: FlowsNow::new(granularity, show),
            owners: BTreeMap::new(),
            bursts: VecDeque::new(),
            counters: Counters::default(),
            lost: 0,
            acting: ActingNow::default(),
            p4air: Vec::new(),
            unwritten: None,
            wants_pause_or_resume: false,
            origin,
            is_coloured,
            sort: Sort::Share,
            filter: String::new(),
            is_typing: false,
            with_owners: true,
            frozen: None,
            is_over: false,
        }
    }

    /// Sets the sojourn time above which the queue is congested.
    pub fn congested_from(&mut self, tau: Nanos) {
        self.tau = tau;
    }

    /// The start of the slice that contains `at`.
    pub fn slice_start(at: Nanos) -> Nanos {
        Nanos(slice_of(at) << SHIFT)
    }

    /// Adds the sums of slices of all queues. A later call replaces a slice that an earlier one contained.
    pub fn slices(&mut self, slices: &[Slice]) {
        self.history.slices(slices);
    }

    /// A packet left the queue after `delay`. `key` has all fields; `digest` is the kernel's identifier of the flow.
    pub fn departed(&mut self, key: &FlowKey, digest: u64, bytes: u64, delay: Nanos, at: Nanos) {
        let flow = self.flows.departed(key, bytes, delay, at);
        if self.acting.mode().is_some() {
            self.flows.known_by(digest, flow);
        }
    }

    /// The state of acting at `now`; none if no action was requested.
    pub fn acting(&mut self, doing: Option<ActingStatus>, now: Nanos) {
        self.acting.update(doing, now);
    }

    /// The state of P4air: headings, and the text beside each.
    pub fn p4air(&mut self, lines: Vec<(&'static str, String)>) {
        self.p4air = lines;
    }

    /// The files that cannot be written, each with the reason.
    pub fn unwritten(&mut self, each: &[String]) {
        self.unwritten = (!each.is_empty()).then(|| each.join("  "));
    }

    /// Whether the user has asked to pause or resume acting since the last call.
    pub fn takes_pause_request(&mut self) -> bool {
        mem::take(&mut self.wants_pause_or_resume)
    }

    /// A burst has ended.
    pub fn burst(&mut self, burst: &model::Burst) {
        let heaviest = burst.culprits.first().and_then(|culprits| culprits.flows.first());
        self.bursts.truncate(BURSTS - 1);
        self.bursts.push_front(BurstRow {
            number: burst.number,
            start: burst.start_ns,
            length: burst.length_ns,
            peak_delay: burst.peak_delay_ns,
            peak_depth: burst.peak_depth_bytes,
            drops: burst.drops,
            culprit: heaviest.cloned(),
        });
    }

    /// The counters since the start.
    pub fn counters(&mut self, counters: Counters) {
        self.counters = counters;
    }

    /// The number of packets that the link lost behind the queue since the start.
    pub fn lost(&mut self, packets: u64) {
        self.lost = packets;
    }

    /// The known owners of flows.
    pub fn owners(&mut self, owners: BTreeMap<FlowKey, Owner>) {
        self.owners = owners;
    }

    /// A key was pressed at `now`.
    pub fn key(&mut self, key: Key, now: Nanos) {
        match key {
            Key::Interrupt => self.is_over = true,
            Key::Redraw => {}
            _ if self.is_typing => self.typed(key),
            Key::Char('q') => self.is_over = true,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Char('o') => self.with_owners = !self.with_owners,
            Key::Char('f' | ' ') => {
                self.frozen = match self.frozen.take() {
                    Some(_) => None,
                    None => Some(self.shot(now)),
                }
            }
            Key::Char('p') => self.wants_pause_or_resume ^= self.may_pause(),
            Key::Escape => self.filter.clear(),
            Key::Char(_) | Key::Enter | Key::Back => {}
        }
    }

    fn typed(&mut self, key: Key) {
        match key {
            Key::Char(letter) if self.filter.len() < FILTER => self.filter.push(letter),
            Key::Back => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
    }

    /// Only acting that changes packets can be paused.
    fn may_pause(&self) -> bool {
        matches!(self.acting.mode(), Some(Mode::Real | Mode::Paused))
    }

    fn shot(&self, now: Nanos) -> ViewSnapshot {
        let acting = self.acting.shot();
        let chosen = acting.as_ref().map_or(&[][..], |acting| &acting.doing.chosen);
        let (flows, bytes_last_second) = self.flows.rows(now, &self.owners, chosen);
        ViewSnapshot {
            since: now.saturating_sub(self.origin),
            moments: self.history.until(now),
            flows,
            bytes_last_second,
            counters: self.counters,
            lost: self.lost,
            acting,
            p4air: self.p4air.clone(),
            unwritten: self.unwritten.clone(),
            bursts: self.bursts.iter().cloned().collect(),
        }
    }

    /// The flows whose name or owner matches the filter, in the selected order.
    fn chosen<'a>(&self, flows: &'a [FlowRow]) -> Vec<&'a FlowRow> {
        let wanted = self.filter.to_lowercase();
        let mut rows: Vec<_> = flows.iter().filter(|row| row.is_listed && row.has(&wanted)).collect();
        rows.sort_by(|a, b| {
            let order = match self.sort {
                Sort::Share => b.bytes.cmp(&a.bytes),
                Sort::Growth => b.growth().cmp(&a.growth()),
                Sort::Delay => b.delay.cmp(&a.delay),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            order.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Share => Self::Growth,
            Self::Growth => Self::Delay,
            Self::Delay => Self::Name,
            Self::Name => Self::Share,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Growth => "growth",
            Self::Delay => "delay",
            Self::Name => "name",
        }
    }
}
