//! What a person sees of a queue while it is watched: the last seconds, the flows in it, and its bursts.
//!
//! A `View` is told what happens and is asked for nothing else: it reads no clock and knows no terminal. So tests draw it, too.

mod acting;
mod draw;
mod flows;
mod history;
mod job;
mod screen;
#[cfg(test)]
mod tests;

pub use screen::{Screen, give_up};

use super::acts::{Doing, Mode};
use acting::{ActingNow, ActingShot};
use flows::{FlowRow, FlowsNow};
use history::{History, Moment, SHIFT, slice_of};
use queuescope_analysis::Show;
use queuescope_live::{Counters, Slice};
use queuescope_report::model::{self, Owner};
use queuescope_wire::{FlowKey, Granularity, Nanos};
use std::collections::{BTreeMap, VecDeque};
use std::mem;

/// Bursts that are remembered.
const BURSTS: usize = 64;
/// Letters of a filter.
const FILTER: usize = 64;

/// What is shown of a queue. Its memory does not grow: some seconds of slices, 2048 flows, 64 bursts.
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
    /// What cannot be written, in a line.
    unwritten: Option<String>,
    /// Acting is to pause, or to go on.
    wants_other: bool,
    origin: Nanos,
    is_coloured: bool,
    sort: Sort,
    filter: String,
    /// A filter is being typed.
    is_typing: bool,
    /// It is said whose flows are.
    with_owners: bool,
    frozen: Option<Shot>,
    /// Who looks on wants no more.
    pub is_over: bool,
}

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A letter.
    Char(char),
    /// The end of what is typed.
    Enter,
    /// What is typed is not wanted.
    Escape,
    /// The last letter is not wanted.
    Back,
    /// Ctrl-C, which is no signal while keys are read one by one.
    Interrupt,
    /// None, but all has to be drawn anew: the terminal has another size, or was somebody else's.
    Anew,
}

/// What comes first in the list of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Share,
    Growth,
    Delay,
    Name,
}

/// A burst as a line tells it.
#[derive(Debug, Clone)]
struct BurstRow {
    number: u64,
    start: u64,
    length: u64,
    peak_delay: u64,
    peak_depth: u64,
    drops: u64,
    /// Its heaviest flow.
    culprit: Option<model::Culprit>,
}

/// All that is shown at one time.
#[derive(Debug, Clone)]
struct Shot {
    since: Nanos,
    /// Slice by slice, up to the last whole one.
    moments: Vec<Moment>,
    flows: Vec<FlowRow>,
    /// Bytes that were told in the last second, of all flows.
    told: u64,
    counters: Counters,
    lost: u64,
    acting: Option<ActingShot>,
    unwritten: Option<String>,
    /// The last first.
    bursts: Vec<BurstRow>,
}

impl View {
    /// Of an interface that is watched since `origin`; its queue is congested from `tau` on. Flows are told apart at a granularity,
    /// and listed if `show` lists them.
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
            unwritten: None,
            wants_other: false,
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

    /// The queue is congested from this delay on, which may change.
    pub fn congested_from(&mut self, tau: Nanos) {
        self.tau = tau;
    }

    /// When the slice began that a time is in, as it is to be summed up.
    pub fn slice_start(at: Nanos) -> Nanos {
        Nanos(slice_of(at) << SHIFT)
    }

    /// What is summed up of all queues, those of earlier calls among them.
    pub fn slices(&mut self, slices: &[Slice]) {
        self.history.slices(slices);
    }

    /// A packet left that had waited; `key` has all fields, `digest` is what the kernel knows its flow by.
    pub fn departed(&mut self, key: &FlowKey, digest: u64, bytes: u64, delay: Nanos, at: Nanos) {
        let flow = self.flows.departed(key, bytes, delay, at);
        if self.acting.mode().is_some() {
            self.flows.known_by(digest, flow);
        }
    }

    /// What is done to flows at `now`, if anything is.
    pub fn acting(&mut self, doing: Option<Doing>, now: Nanos) {
        self.acting.told(doing, now);
    }

    /// What cannot be written while all else goes on, each with its file and the reason.
    pub fn unwritten(&mut self, each: &[String]) {
        self.unwritten = (!each.is_empty()).then(|| each.join("  "));
    }

    /// Whether acting is to pause, or to go on; once for each time that it was asked for.
    pub fn takes_other(&mut self) -> bool {
        mem::take(&mut self.wants_other)
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

    /// What was counted since the beginning.
    pub fn counters(&mut self, counters: Counters) {
        self.counters = counters;
    }

    /// How many packets a link lost that had left its queue, since the beginning.
    pub fn lost(&mut self, packets: u64) {
        self.lost = packets;
    }

    /// Who sends flows, of those of which that is known.
    pub fn owners(&mut self, owners: BTreeMap<FlowKey, Owner>) {
        self.owners = owners;
    }

    /// A key was pressed at `now`.
    pub fn key(&mut self, key: Key, now: Nanos) {
        match key {
            Key::Interrupt => self.is_over = true,
            Key::Anew => {}
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
            Key::Char('p') => self.wants_other ^= self.may_pause(),
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

    /// What changes no packet needs no pause.
    fn may_pause(&self) -> bool {
        matches!(self.acting.mode(), Some(Mode::Real | Mode::Paused))
    }

    fn shot(&self, now: Nanos) -> Shot {
        let acting = self.acting.shot();
        let chosen = acting.as_ref().map_or(&[][..], |acting| &acting.doing.chosen);
        let (flows, told) = self.flows.rows(now, &self.owners, chosen);
        Shot {
            since: now.saturating_sub(self.origin),
            moments: self.history.until(now),
            flows,
            told,
            counters: self.counters,
            lost: self.lost,
            acting,
            unwritten: self.unwritten.clone(),
            bursts: self.bursts.iter().cloned().collect(),
        }
    }

    /// Those flows whose names or owners have what was typed, in the order that was asked for.
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
