//! What a person sees of a link's queue while it carries packets, drawn by a thread of its own: packets do not wait for a terminal.

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

/// How long a key waits, and how often it is drawn.
const KEYS: Duration = Duration::from_millis(50);
const ANEW: Nanos = Nanos(100_000_000);
/// How much is on its way to the drawing thread, and packets in each: if the terminal is slow, more is lost, but not of sums.
const NEWS: usize = 4;
const PACKETS: usize = 1 << 16;
/// Slices and bursts that are kept for it.
const SLICES: usize = 256;

/// A view of the first queue of a link.
pub struct Shown {
    /// Where news go; the thread ends when this is gone.
    teller: Option<SyncSender<News>>,
    drawer: Option<JoinHandle<Result<(), ScreenError>>>,
    is_over: Arc<AtomicBool>,
    news: News,
    /// When the link began, by the kernel's clock.
    origin: Nanos,
}

/// What happened since the last news.
#[derive(Default)]
struct News {
    packets: Vec<Waited>,
    slices: Vec<Slice>,
    bursts: Vec<Burst>,
    counters: Counters,
    /// Packets that were lost on the link, behind its queue, since the beginning.
    lost: u64,
    tau: Nanos,
    /// What cannot be written.
    unwritten: Vec<String>,
}

/// A packet that left.
struct Waited {
    key: FlowKey,
    bytes: u64,
    delay: Nanos,
    at: Nanos,
}

impl Shown {
    /// Draws from now on: a queue of that name, with its flows at a granularity, those that `show` lists.
    ///
    /// # Errors
    /// If the terminal cannot be drawn on.
    pub fn begin(name: &str, granularity: Granularity, show: Option<Show>, stop: &Stop) -> Result<Self, ViewError> {
        if let Some(obstacle) = Screen::obstacle() {
            return Err(ViewError::Nothing { obstacle });
        }
        let is_coloured = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        let view = View::new(name, Nanos::ZERO, granularity, show, now(), is_coloured);
        let (teller, news) = sync_channel(NEWS);
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, asked) = (Arc::clone(&is_over), stop.clone());
        let draw = move || {
            let drawn = draw(view, &news, &asked, &over);
            // Whoever cannot see it cannot end it either.
            over.store(true, Ordering::Relaxed);
            drawn
        };
        let drawer = thread::Builder::new().name("view".to_owned()).spawn(draw).map_err(ViewError::Thread)?;
        let (teller, drawer) = (Some(teller), Some(drawer));
        Ok(Self { teller, drawer, is_over, news: News::default(), origin: now() })
    }

    /// The link begins, at `origin` by the kernel's clock.
    pub fn begins(&mut self, origin: Nanos) {
        self.origin = origin;
    }

    /// A packet left.
    pub fn departed(&mut self, departure: &Departure, key: FlowKey) {
        let (bytes, delay) = (departure.packet.size.0, departure.sojourn());
        let at = self.origin.saturating_add(departure.dequeued);
        let is_congested = u64::from(delay > self.news.tau);
        let counters = &mut self.news.counters;
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
        if self.news.packets.len() < PACKETS {
            self.news.packets.push(Waited { key, bytes, delay, at });
        }
    }

    /// A packet was dropped.
    pub fn dropped(&mut self) {
        self.news.counters.came += 1;
        self.news.counters.dropped += 1;
    }

    /// A packet that had left was lost on the link.
    pub fn lost(&mut self) {
        self.news.lost += 1;
    }

    /// A packet was marked.
    pub fn marked(&mut self) {
        self.news.counters.marked += 1;
    }

    /// Passes on what has happened until `now`, since the link began, and what could not be written, if whoever draws takes it.
    pub fn look<W: Watcher>(&mut self, meter: &mut Metered<W>, unwritten: Vec<String>, now: Nanos) {
        self.news.bursts.extend(meter.ended(now));
        self.news.unwritten = unwritten;
        self.tell(meter.tau());
    }

    fn tell(&mut self, tau: Nanos) {
        self.news.tau = tau;
        // The slice that has begun is sent again with what comes.
        let next = News {
            slices: self.news.slices.last().copied().into_iter().collect(),
            counters: self.news.counters,
            lost: self.news.lost,
            tau: self.news.tau,
            unwritten: self.news.unwritten.clone(),
            ..News::default()
        };
        let Some(teller) = &self.teller else { return };
        if let Err(TrySendError::Full(mut news)) = teller.try_send(mem::replace(&mut self.news, next)) {
            news.slices.drain(..news.slices.len().saturating_sub(SLICES));
            news.bursts.drain(..news.bursts.len().saturating_sub(SLICES));
            self.news = news;
        }
    }

    /// Whether the viewer wants an end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Gives the terminal back.
    ///
    /// # Errors
    /// If it could not be drawn on.
    pub fn end(mut self) -> Result<(), ViewError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), ViewError> {
        self.teller = None;
        let Some(drawer) = self.drawer.take() else { return Ok(()) };
        Ok(drawer.join().map_err(|_| ViewError::Panicked)??)
    }

    /// That which a time is in.
    fn slice(&mut self, at: Nanos) -> &mut Slice {
        let start = View::slice_start(at);
        let slices = &mut self.news.slices;
        if slices.last().is_none_or(|last| last.start < start) {
            slices.push(Slice { start, ..Slice::default() });
        }
        let last = slices.len() - 1;
        &mut slices[last]
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // An error before this has been returned.
        let _ = self.close();
    }
}

/// Draws until no news can come any more.
fn draw(mut view: View, news: &Receiver<News>, stop: &Stop, is_over: &AtomicBool) -> Result<(), ScreenError> {
    let mut screen = Screen::new()?;
    let mut due = Nanos::ZERO;
    loop {
        match news.recv_timeout(KEYS) {
            Ok(news) => take(&mut view, news),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        news.try_iter().for_each(|news| take(&mut view, news));
        let mut is_pressed = false;
        while let Some(key) = screen.keys(Duration::ZERO)? {
            view.key(key, now());
            is_pressed = true;
        }
        if view.is_over || stop.is_requested() {
            is_over.store(true, Ordering::Relaxed);
        }
        if is_pressed || now() >= due {
            due = now().saturating_add(ANEW);
            screen.draw(&view, now())?;
        }
    }
}

fn take(view: &mut View, news: News) {
    let News { packets, slices, bursts, counters, lost, tau, unwritten } = news;
    view.congested_from(tau);
    for Waited { key, bytes, delay, at } in packets {
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

    /// One that nobody draws, and its news.
    fn shown() -> (Shown, Receiver<News>) {
        let (teller, news) = sync_channel(1);
        let (is_over, origin) = (Arc::default(), Nanos(1_000_000_000_000));
        let news_of = News { tau: Nanos(1_000_000), ..News::default() };
        (Shown { teller: Some(teller), drawer: None, is_over, news: news_of, origin }, news)
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
    fn what_waits_for_who_draws_is_bounded_and_sums_are_not() {
        let (mut shown, news) = shown();
        for at in 0..100_000 {
            shown.departed(&departure(at + 10, at % 3), FlowKey::default());
        }
        shown.marked();
        assert_eq!(shown.news.packets.len(), PACKETS);
        // Nobody takes it, twice.
        shown.tell(Nanos(1_000_000));
        shown.tell(Nanos(1_000_000));
        shown.departed(&departure(100_010, 5), FlowKey::default());
        shown.tell(Nanos(1_000_000));
        let first = news.try_recv().expect("it is told");
        assert_eq!((first.counters.packets, first.counters.bytes, first.counters.marked), (100_000, 150_000_000, 1));
        // Those that waited for 2 ms.
        assert_eq!(first.counters.congested, 33_333);
        assert!(news.try_recv().is_err(), "there is room for one");
        shown.tell(Nanos(1_000_000));
        let second = news.try_recv().expect("it is told");
        assert_eq!((second.packets.len(), second.counters.packets), (1, 100_001));
    }

    #[test]
    fn a_slice_is_told_again_with_what_came_since() {
        let (mut shown, news) = shown();
        shown.departed(&departure(10, 1), FlowKey::default());
        shown.tell(Nanos(1));
        shown.departed(&departure(11, 4), FlowKey::default());
        shown.departed(&departure(500, 2), FlowKey::default());
        let first = news.try_recv().expect("it is told").slices;
        shown.tell(Nanos(1));
        let second = news.try_recv().expect("it is told").slices;
        assert_eq!((first.len(), second.len()), (1, 2));
        assert_eq!((first[0].start, first[0].packets), (second[0].start, 1));
        assert_eq!((second[0].packets, second[0].delay_max, second[0].length_max), (2, Nanos(4_000_000), 4));
        assert!(second[1].start > second[0].start && second[1].packets == 1);
    }
}
