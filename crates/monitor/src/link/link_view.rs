//! The view of a link's queue while it carries packets. A thread of its own draws it, so packets do not wait for the terminal.

use crate::error::{ScreenError, ViewError};
use crate::view::{Screen, View};
use queuescope_analysis::{Metered, Show, Watcher};
use queuescope_ingest::Stop;
use queuescope_live::{Counters, Slice, now};
use queuescope_report::model::Burst;
use queuescope_wire::{Departure, FlowKey, Granularity, Nanos};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often keys are read, and how often the view is drawn again.
const KEYS: Duration = Duration::from_millis(50);
const REDRAW: Nanos = Nanos(100_000_000);
/// The number of updates in the channel, and the number of packets in each. If the terminal is slow, packets are left out of the
/// list of flows, but all sums stay complete.
const UPDATES: usize = 4;
const PACKETS: usize = 1 << 16;
/// Slices and bursts that wait for a full channel.
const SLICES: usize = 256;

/// A view of the first queue of a link.
pub struct LinkView {
    /// The channel to the drawing thread, which ends when the channel closes.
    updates: Option<SyncSender<Update>>,
    drawer: Option<JoinHandle<Result<(), ScreenError>>>,
    is_over: Arc<AtomicBool>,
    update: Update,
    /// The start of the link, by the kernel's monotonic clock.
    origin: Nanos,
}

/// What happened since the last update.
#[derive(Default)]
struct Update {
    packets: Vec<DepartedPacket>,
    slices: Vec<Slice>,
    bursts: Vec<Burst>,
    counters: Counters,
    /// Packets that were lost on the link behind its queue, since the start.
    lost: u64,
    tau: Nanos,
    /// What could not be written.
    unwritten: Vec<String>,
}

/// A packet that left the queue.
struct DepartedPacket {
    key: FlowKey,
    bytes: u64,
    delay: Nanos,
    at: Nanos,
}

impl LinkView {
    /// Starts to draw the queue `name`. `granularity` defines its flows, and `show` selects the ones that are listed.
    ///
    /// # Errors
    /// Fails if the terminal cannot be drawn on or the thread cannot start.
    pub fn begin(name: &str, granularity: Granularity, show: Option<Show>, stop: &Stop) -> Result<Self, ViewError> {
        if let Some(obstacle) = Screen::obstacle() {
            return Err(ViewError::Nothing { obstacle });
        }
        let is_coloured = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        let view = View::new(name, Nanos::ZERO, granularity, show, now(), is_coloured);
        let (sender, receiver) = sync_channel(UPDATES);
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, stop) = (Arc::clone(&is_over), stop.clone());
        let draw = move || {
            let drawn = draw(view, &receiver, &stop, &over);
            // Without a view, there is no key to end the session with.
            over.store(true, Ordering::Relaxed);
            drawn
        };
        let drawer = thread::Builder::new().name("view".to_owned()).spawn(draw).map_err(ViewError::Thread)?;
        let (updates, drawer) = (Some(sender), Some(drawer));
        Ok(Self { updates, drawer, is_over, update: Update::default(), origin: now() })
    }

    /// The link starts, at `origin` by the kernel's monotonic clock.
    pub fn begins(&mut self, origin: Nanos) {
        self.origin = origin;
    }

    /// A packet left the queue.
    pub fn departed(&mut self, departure: &Departure, key: FlowKey) {
        let (bytes, delay) = (departure.packet.size.0, departure.sojourn());
        let at = self.origin.saturating_add(departure.dequeued);
        let is_congested = u64::from(delay > self.update.tau);
        let counters = &mut self.update.counters;
        counters.came += 1;
        counters.packets += 1;
        counters.bytes += bytes;
        counters.congested += is_congested;
        let slice = self.slice(at);
        slice.packets += 1;
        slice.bytes += bytes;
        slice.congested += is_congested;
        slice.delay_sum = slice.delay_sum.saturating_add(delay);
        slice.delay_max = slice.delay_max.max(delay);
        let depth = departure.backlog_in;
        slice.backlog_max = slice.backlog_max.max(u32::try_from(depth.bytes.0).unwrap_or(u32::MAX));
        slice.length_max = slice.length_max.max(u32::try_from(depth.packets).unwrap_or(u32::MAX));
        if self.update.packets.len() < PACKETS {
            self.update.packets.push(DepartedPacket { key, bytes, delay, at });
        }
    }

    /// The queue dropped a packet.
    pub fn dropped(&mut self) {
        self.update.counters.came += 1;
        self.update.counters.dropped += 1;
    }

    /// A packet was lost on the link after it left the queue.
    pub fn lost(&mut self) {
        self.update.lost += 1;
    }

    /// The queue marked a packet.
    pub fn marked(&mut self) {
        self.update.counters.marked += 1;
    }

    /// Sends an update with what happened until `now`, the time since the link started, and with what could not be written. If the
    /// channel is full, the update waits.
    pub fn look<W: Watcher>(&mut self, meter: &mut Metered<W>, unwritten: Vec<String>, now: Nanos) {
        self.update.bursts.extend(meter.ended(now));
        self.update.unwritten = unwritten;
        self.send(meter.tau());
    }

    fn send(&mut self, tau: Nanos) {
        self.update.tau = tau;
        // The current slice is incomplete, so the next update contains it again.
        let next = Update {
            slices: self.update.slices.last().copied().into_iter().collect(),
            counters: self.update.counters,
            lost: self.update.lost,
            tau: self.update.tau,
            unwritten: self.update.unwritten.clone(),
            ..Update::default()
        };
        let Some(updates) = &self.updates else { return };
        if let Err(TrySendError::Full(mut update)) = updates.try_send(mem::replace(&mut self.update, next)) {
            update.slices.drain(..update.slices.len().saturating_sub(SLICES));
            update.bursts.drain(..update.bursts.len().saturating_sub(SLICES));
            self.update = update;
        }
    }

    /// Whether the user ended the view.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends the view and restores the terminal.
    ///
    /// # Errors
    /// Returns the error of the drawing thread.
    pub fn end(mut self) -> Result<(), ViewError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), ViewError> {
        self.updates = None;
        let Some(drawer) = self.drawer.take() else { return Ok(()) };
        Ok(drawer.join().map_err(|_| ViewError::Panicked)??)
    }

    /// The slice that contains the time `at`.
    fn slice(&mut self, at: Nanos) -> &mut Slice {
        let start = View::slice_start(at);
        let slices = &mut self.update.slices;
        if slices.last().is_none_or(|last| last.start < start) {
            slices.push(Slice { start, ..Slice::default() });
        }
        let last = slices.len() - 1;
        &mut slices[last]
    }
}

impl Drop for LinkView {
    fn drop(&mut self) {
        // Nobody is left to handle an error here; `end` returns it.
        let _ = self.close();
    }
}

/// Draws until the channel closes.
fn draw(mut view: View, updates: &Receiver<Update>, stop: &Stop, is_over: &AtomicBool) -> Result<(), ScreenError> {
    let mut screen = Screen::new()?;
    let mut due = Nanos::ZERO;
    loop {
        match updates.recv_timeout(KEYS) {
            Ok(update) => take(&mut view, update),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        updates.try_iter().for_each(|update| take(&mut view, update));
        let mut is_pressed = false;
        while let Some(key) = screen.keys(Duration::ZERO)? {
            view.key(key, now());
            is_pressed = true;
        }
        if view.is_over || stop.is_requested() {
            is_over.store(true, Ordering::Relaxed);
        }
        if is_pressed || now() >= due {
            due = now().saturating_add(REDRAW);
            screen.draw(&view, now())?;
        }
    }
}

fn take(view: &mut View, update: Update) {
    let Update { packets, slices, bursts, counters, lost, tau, unwritten } = update;
    view.congested_from(tau);
    for DepartedPacket { key, bytes, delay, at } in packets {
        view.departed(&key, 0, bytes, delay, at);
    }
    view.slices(&slices);
    view.counters(counters);
    view.unwritten(&unwritten);
    view.lost(lost);
    bursts.iter().for_each(|burst| view.burst(burst));
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::{Backlog, ByteCount, Class, Ecn, FlowId, Packet, PacketId, QueueId};

    /// A view that is not drawn, and its updates.
    fn shown() -> (LinkView, Receiver<Update>) {
        let (sender, receiver) = sync_channel(1);
        let (is_over, origin) = (Arc::default(), Nanos(1_000_000_000_000));
        let update = Update { tau: Nanos(1_000_000), ..Update::default() };
        (LinkView { updates: Some(sender), drawer: None, is_over, update, origin }, receiver)
    }

    fn departure(at_ms: u64, waited_ms: u64) -> Departure {
        let (flow, class, ecn) = (FlowId(0), Class(0), Ecn::NotEct);
        let packet = Packet { id: PacketId(at_ms), flow, size: ByteCount(1500), class, ecn };
        let backlog = Backlog { packets: waited_ms, bytes: ByteCount(1500 * waited_ms) };
        let [enqueued, dequeued] = [at_ms - waited_ms, at_ms].map(|ms| Nanos(1_000_000 * ms));
        Departure {
            packet,
            queue: QueueId(0),
            enqueued,
            dequeued,
            backlog_in: backlog,
            backlog_out: Backlog::default(),
        }
    }

    #[test]
    fn waiting_updates_are_bounded_and_sums_are_complete() {
        let (mut shown, update) = shown();
        for at in 0..100_000 {
            shown.departed(&departure(at + 10, at % 3), FlowKey::default());
        }
        shown.marked();
        assert_eq!(shown.update.packets.len(), PACKETS);
        // The channel has room for one update, and nobody reads it.
        shown.send(Nanos(1_000_000));
        shown.send(Nanos(1_000_000));
        shown.departed(&departure(100_010, 5), FlowKey::default());
        shown.send(Nanos(1_000_000));
        let first = update.try_recv().expect("an update was sent");
        assert_eq!((first.counters.packets, first.counters.bytes, first.counters.marked), (100_000, 150_000_000, 1));
        // The packets that waited for 2 ms.
        assert_eq!(first.counters.congested, 33_333);
        assert!(update.try_recv().is_err(), "there is room for one");
        shown.send(Nanos(1_000_000));
        let second = update.try_recv().expect("an update was sent");
        assert_eq!((second.packets.len(), second.counters.packets), (1, 100_001));
    }

    #[test]
    fn the_next_update_repeats_the_incomplete_slice() {
        let (mut shown, update) = shown();
        shown.departed(&departure(10, 1), FlowKey::default());
        shown.send(Nanos(1));
        shown.departed(&departure(11, 4), FlowKey::default());
        shown.departed(&departure(500, 2), FlowKey::default());
        let first = update.try_recv().expect("an update was sent").slices;
        shown.send(Nanos(1));
        let second = update.try_recv().expect("an update was sent").slices;
        assert_eq!((first.len(), second.len()), (1, 2));
        assert_eq!((first[0].start, first[0].packets), (second[0].start, 1));
        assert_eq!((second[0].packets, second[0].delay_max, second[0].length_max), (2, Nanos(4_000_000), 4));
        assert!(second[1].start > second[0].start && second[1].packets == 1);
    }
}
