//! Watching the queues of a link while it carries packets, for meters and for a view.

mod link_view;

pub use link_view::LinkView;

use crate::error::ViewError;
use crate::stopped::Stopped;
use crate::unwritten::Unwritten;
use queuescope_analysis::{Analysis, Known, Meters, Watcher as PacketWatcher};
use queuescope_ingest::Listener;
use queuescope_ingest::records::{as_departure, numbered};
use queuescope_link::{Frame, RunState, Watcher};
use queuescope_live::to_epoch;
use queuescope_pcap::Record;
use queuescope_queue::{Dropped, MarkReason};
use queuescope_sim::{InFlight, LinkId};
use queuescope_wire::{Departure, FlowKey, Flows, Nanos, Packet, QueueId};

/// The link type of packets that start with an IP header.
const RAW: u32 = 101;

/// A session that runs on a link, such as a command. The link calls it regularly. `W` watches the packets of its first queue.
pub trait Session<W: PacketWatcher> {
    /// The error that ends the session.
    type Error: From<W::Error> + From<ViewError>;

    /// Whether the session has ended at `now`, the time since the link started. If `is_over`, the user wants to end it.
    ///
    /// # Errors
    /// An error ends the session.
    fn has_ended(&mut self, now: Nanos, is_over: bool) -> Result<bool, Self::Error>;

    /// What the watcher could not write so far.
    fn unwritten(&mut self, _watcher: &mut W) -> Vec<Unwritten> {
        Vec::new()
    }

    /// Called with what the user should know now.
    fn note(&mut self, _text: &str) {}
}

/// Watches a link until its session has ended.
pub struct WatchedLink<W: PacketWatcher, S: Session<W>> {
    meters: Meters<W>,
    session: S,
    /// The start of the link, since the Unix epoch.
    origin: Nanos,
    failure: Option<S::Error>,
    /// The view, if there is one.
    shown: Option<LinkView>,
    stopped: Stopped,
}

impl<W: PacketWatcher, S: Session<W>> WatchedLink<W, S> {
    /// Creates a watcher for a link that has not started.
    pub fn new(mut meters: Meters<W>, shown: Option<LinkView>, session: S) -> Self {
        if shown.is_some() {
            meters.first.hand_out_bursts();
        }
        Self { meters, session, origin: Nanos::ZERO, failure: None, shown, stopped: Stopped::default() }
    }

    /// Returns the measurements and restores the terminal.
    ///
    /// # Errors
    /// Returns the first error of the session, the watcher or the view.
    pub fn finish(self) -> Result<Meters<W>, S::Error> {
        self.shown.map_or(Ok(()), LinkView::end)?;
        self.failure.map_or(Ok(self.meters), Err)
    }

    /// A packet that entered the link at `came`, the time since the start of the run.
    fn captured<'a>(&self, frame: &'a Frame, came: Nanos) -> Captured<'a> {
        Captured { frame, time: self.origin.saturating_add(came) }
    }
}

impl<W: PacketWatcher, S: Session<W>> Watcher for WatchedLink<W, S> {
    fn begins(&mut self, origin: Nanos) {
        self.origin = Nanos(origin.0.saturating_add(to_epoch()));
        self.meters.first.watcher().starts_at(self.origin);
        self.shown.iter_mut().for_each(|shown| shown.begins(origin));
    }

    fn departed(&mut self, link: LinkId, departure: &Departure, _packet: &InFlight, frame: &Frame) {
        let departure = Departure { packet: numbered(departure.packet), ..*departure };
        let captured = self.captured(frame, departure.enqueued);
        self.meters.left(link, &departure, &captured);
        if let Some(shown) = self.shown.as_mut().filter(|_| self.meters.first.is_seen(link, &departure, &captured)) {
            shown.departed(&departure, frame.key());
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, _packet: &InFlight, frame: &Frame) {
        let came = dropped.enqueued.unwrap_or(dropped.at);
        let dropped = Dropped { packet: numbered(dropped.packet), ..*dropped };
        let captured = self.captured(frame, came);
        self.meters.got_dropped(link, &dropped, &captured);
        let gone = as_departure(dropped.packet, dropped.queue, came, dropped.at);
        if let Some(shown) = self.shown.as_mut().filter(|_| self.meters.first.is_seen(link, &gone, &captured)) {
            shown.dropped();
        }
    }

    fn lost(&mut self, link: LinkId, _packet: &InFlight, _now: Nanos, _frame: &Frame) {
        if let Some(shown) = self.shown.as_mut().filter(|_| self.meters.first.is_of(link)) {
            shown.lost();
        }
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, _: &InFlight, frame: &Frame) {
        let captured = self.captured(frame, now);
        self.meters.got_marked(link, &numbered(*marked), reason, now, &captured);
        let there = as_departure(*marked, QueueId::default(), now, now);
        if let Some(shown) = self.shown.as_mut().filter(|_| self.meters.first.is_seen(link, &there, &captured)) {
            shown.marked();
        }
    }

    fn look(&mut self, now: Nanos) -> RunState {
        if self.failure.is_none() {
            // Readers of what is recorded follow it.
            let written = self.meters.check().and_then(|()| self.meters.first.watcher().hand_over());
            self.failure = written.err().map(S::Error::from);
        }
        let unwritten = self.session.unwritten(self.meters.first.watcher());
        match &mut self.shown {
            Some(shown) => {
                let lines = unwritten.into_iter().map(|unwritten| unwritten.line).collect();
                shown.look(&mut self.meters.first, lines, now);
            }
            // A view shows them itself.
            None => {
                let news = unwritten.into_iter().map(|unwritten| unwritten.news);
                self.stopped.report_new(news, |text| self.session.note(text));
            }
        }
        let is_over = self.shown.as_ref().is_some_and(LinkView::is_over);
        match self.session.has_ended(now, is_over) {
            Ok(false) if self.failure.is_none() => RunState::On,
            Ok(_) => RunState::Over,
            Err(error) => {
                self.failure.get_or_insert(error);
                RunState::Over
            }
        }
    }
}

/// A packet as a capture before the queue would contain it.
struct Captured<'a> {
    frame: &'a Frame,
    /// The capture time since the Unix epoch.
    time: Nanos,
}

impl Known for Captured<'_> {
    fn key(&self) -> FlowKey {
        self.frame.key()
    }

    fn read<W: PacketWatcher>(&self, packet: &Packet, analysis: &mut Analysis<Flows, W>) -> Result<(), W::Error> {
        let Some(seen) = self.frame.headers() else { return Ok(()) };
        let data = self.frame.bytes();
        let original_len = data.len() as u32;
        let record = Record { time: Some(self.time), link: RAW, interface: 0, original_len, data };
        analysis.read(&record, seen, self.time, packet.id.0..packet.id.0 + 1)
    }
}
