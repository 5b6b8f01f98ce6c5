//! Culprits of the past, while the stream runs, in memory that is fixed from the start.
//!
//! `QueueLog` gives exact answers from all departures. [`QueueMonitor`] gives approximate ones from a megabyte, after PrintQueue (Lei et
//! al., SIGCOMM 2022): its *time windows* are [`queuescope_sketch::Windows`], and its *queue monitor* is here. It answers for any time range
//! of the past:
//!
//! - *direct* culprits, which left while a packet waited: [`QueueMonitor::left_in`] the time that the packet waited;
//! - *indirect* culprits, which left before the packet came, since the queue was last empty: [`QueueMonitor::indirect`];
//! - *original* culprits, which raised the queue to the levels that stood as the packet came: only for the packet that waited longest in
//!   each busy period. This packet's culprits of all kinds are kept with the period: [`QueueMonitor::worst`].
//!
//! It differs from PrintQueue as follows. A *busy period* lasts from when a packet comes to the empty queue until the queue is empty again.
//! Only busy periods in which a packet waited at least `tau` are remembered, each completely: departures from an idle queue delay no
//! packet, and departures that are not stored do not age the others. Start and end of busy periods are kept, so that an indirect query
//! about the past needs no guess. The levels of the queue are kept not at fixed moments but at the worst moment of each period, without
//! a copy at each new maximum.
//!
//! A monitor follows one FIFO queue, or one class of several. The convention for equal times is that of `QueueLog`: a packet that leaves
//! at `t` is still in the queue for a packet that comes at `t`.

mod levels;
mod params;
mod periods;

pub use params::{MonitorError, MonitorParams};
pub use periods::{BusyPeriod, Ranked};

use levels::Levels;
use periods::{KINDS, Periods};
use queuescope_sketch::{Passed, Share, Windows, WindowsStats};
use queuescope_wire::{ByteCount, Departure, FlowId, Nanos};

/// Follows one FIFO queue and remembers the flows that filled it.
#[derive(Debug)]
pub struct QueueMonitor {
    windows: Windows,
    levels: Levels,
    periods: Periods,
    /// The busy period of the last departure.
    now: Option<BusyPeriod>,
    /// Whether its departures are put into the windows; until a packet waits long enough, they are staged.
    recording: bool,
    staged: Vec<Staged>,
    room: usize,
    tau: Nanos,
    stats: MonitorStats,
}

/// The counts of a monitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MonitorStats {
    /// Departures.
    pub departures: u64,
    /// Departures of packets that came before an earlier departure: not a FIFO order. They count in windows, not in levels.
    pub disordered: u64,
    /// Busy periods.
    pub periods: u64,
    /// Busy periods that are remembered, because a packet waited at least tau.
    pub congested: u64,
    /// Busy periods without such a packet that were too long to be staged, so that they take room in the windows.
    pub overlong: u64,
    /// Departures that were put into the windows.
    pub recorded: u64,
    /// The counts of the windows.
    pub windows: WindowsStats,
}

/// The culprits of the packet that waited longest in a busy period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worst {
    /// Direct culprits: flows that left while it waited.
    pub direct: Ranked,
    /// Indirect culprits: flows that left before it came, since the queue was last empty.
    pub indirect: Ranked,
    /// Original culprits: flows that last raised the queue to the levels that stood as it came; bytes are of levels.
    pub original: Ranked,
}

/// A departure of a busy period that may not become congested.
#[derive(Debug, Clone, Copy)]
struct Staged {
    dequeued: Nanos,
    flow: FlowId,
    size: u32,
}

impl QueueMonitor {
    /// Creates an empty monitor.
    ///
    /// # Errors
    /// Fails if the dimensions are out of range.
    pub fn new(params: MonitorParams) -> Result<Self, MonitorError> {
        params.check()?;
        Ok(Self {
            levels: Levels::new(params.levels, params.step),
            periods: Periods::new(params.periods, params.shares, params.parts),
            now: None,
            recording: false,
            staged: Vec::with_capacity(params.staged),
            room: params.staged,
            tau: params.tau,
            stats: MonitorStats::default(),
            windows: Windows::new(params.windows)?,
        })
    }

    /// A packet left the queue. Its `backlog_in` must be exact.
    #[inline]
    pub fn departed(&mut self, departure: &Departure) {
        self.stats.departures += 1;
        let Departure { enqueued, dequeued, .. } = *departure;
        let flow = departure.packet.flow;
        let size = u32::try_from(departure.packet.size.0).unwrap_or(u32::MAX);
        // At equal times, arrivals come before departures: a packet that came as the last one left did not find an empty queue.
        if self.now.as_ref().is_none_or(|period| enqueued > period.end) {
            self.start(enqueued);
        }
        let Some(period) = &mut self.now else { return };
        period.end = period.end.max(dequeued);
        if enqueued >= period.last_came {
            period.last_came = enqueued;
            self.levels.fall_to(departure.backlog_in.bytes.0);
            if departure.sojourn() > period.longest_wait() || period.packets == 0 {
                period.peak(departure);
                self.levels.mark_peak();
            }
            self.levels.raise(departure.backlog_in.bytes.0.saturating_add(u64::from(size)), flow);
        } else {
            self.stats.disordered += 1;
            if departure.sojourn() > period.longest_wait() {
                period.peak(departure);
            }
        }
        period.packets += 1;
        period.bytes += u64::from(size);
        if self.recording {
            self.stats.recorded += 1;
            self.windows.record(flow, size, dequeued);
        } else {
            let congested = departure.sojourn() >= self.tau;
            self.stage(Staged { dequeued, flow, size }, congested);
        }
    }

    /// The flows that left in `[from, to)`. With a packet's arrival and departure, these are its direct culprits. Only departures of
    /// congested busy periods are known, and of the current one.
    pub fn left_in(&self, from: Nanos, to: Nanos) -> Passed {
        let mut passed = self.windows.passed(from, to);
        let staged = self.staged.iter().filter(|staged| (from..to).contains(&staged.dequeued));
        let known = passed.flows.len();
        for staged in staged {
            passed.flows.push(Share { flow: staged.flow, bytes: u64::from(staged.size) });
            passed.bytes += u64::from(staged.size);
        }
        if passed.flows.len() > known {
            passed.flows = summed(passed.flows);
        }
        passed
    }

    /// The flows that left before `at`, since the queue was last empty: the indirect culprits of a packet that came at `at`. `None` if `at`
    /// is in no remembered busy period.
    pub fn indirect(&self, at: Nanos) -> Option<Passed> {
        let period = self.period_at(at)?;
        Some(self.left_in(period.start, at))
    }

    /// The remembered busy period that contains a time.
    pub fn period_at(&self, at: Nanos) -> Option<&BusyPeriod> {
        self.now.as_ref().filter(|period| period.contains(at)).or_else(|| self.periods.at(at))
    }

    /// The remembered congested busy periods, oldest first, without the current one.
    pub fn periods(&self) -> impl Iterator<Item = &BusyPeriod> {
        self.periods.iter()
    }

    /// The culprits of the packet that waited longest in the busy period that contains a time: direct, indirect, original. They were found
    /// when that period ended, and do not become coarser with age. `None` if that period is the current one
    /// (see [`worst_so_far`](Self::worst_so_far)) or is not remembered.
    pub fn worst(&self, at: Nanos) -> Option<Worst> {
        let period = self.periods.at(at)?;
        let [direct, indirect, original] = self.periods.culprits(period);
        Some(Worst { direct, indirect, original })
    }

    /// The same for the current busy period.
    pub fn worst_so_far(&mut self) -> Option<Worst> {
        let period = self.now?;
        let [direct, indirect, original] = self.culprits_of(&period);
        Some(Worst { direct, indirect, original })
    }

    /// Departures before this time are forgotten. Until a departure is that old, its flow id must stay valid.
    pub fn since(&self) -> Nanos {
        self.windows.since()
    }

    /// The counts so far.
    pub fn stats(&self) -> MonitorStats {
        MonitorStats { windows: self.windows.stats(), ..self.stats }
    }

    /// The memory of the monitor; from the start, it is what [`MonitorParams::memory`] states.
    pub fn memory(&self) -> ByteCount {
        let staged = self.staged.capacity() * size_of::<Staged>();
        let rest = staged + self.levels.memory() + self.periods.memory();
        ByteCount(self.windows.memory().0 + rest as u64)
    }

    /// A packet came to an empty queue: the busy period before it is over.
    fn start(&mut self, came: Nanos) {
        if let Some(period) = self.now.take() {
            if period.longest_wait() >= self.tau {
                self.stats.congested += 1;
                let culprits = self.culprits_of(&period);
                self.periods.push(period, &culprits);
            } else if self.recording {
                self.stats.overlong += 1;
            }
        }
        self.stats.periods += 1;
        self.recording = false;
        self.staged.clear();
        self.levels.clear();
        self.now = Some(BusyPeriod::new(came));
    }

    /// The culprits of the worst victim of the current busy period.
    fn culprits_of(&mut self, period: &BusyPeriod) -> [Ranked; KINDS] {
        let left_in = |from, to| {
            let Passed { flows, bytes, .. } = self.left_in(from, to);
            Ranked { flows, bytes }
        };
        let direct = left_in(period.victim_came, period.victim_left);
        let indirect = left_in(period.start, period.victim_came);
        let original = Ranked { flows: self.levels.culprits(), bytes: period.victim_met.0 };
        [direct, indirect, original]
    }

    /// Stages a departure of a busy period that is not congested yet.
    #[inline]
    fn stage(&mut self, staged: Staged, congested: bool) {
        if congested || self.staged.len() == self.room {
            self.recording = true;
            self.stats.recorded += self.staged.len() as u64 + 1;
            for staged in self.staged.drain(..) {
                self.windows.record(staged.flow, staged.size, staged.dequeued);
            }
            self.windows.record(staged.flow, staged.size, staged.dequeued);
        } else {
            self.staged.push(staged);
        }
    }
}

/// One share for each flow, largest first.
fn summed(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_unstable_by_key(|share| share.flow);
    shares.dedup_by(|next, sum| {
        let same = next.flow == sum.flow;
        if same {
            sum.bytes = sum.bytes.saturating_add(next.bytes);
        }
        same
    });
    shares.sort_unstable_by_key(|share| (std::cmp::Reverse(share.bytes), share.flow));
    shares
}

/// The bytes of a staged departure.
const STAGED_BYTES: usize = size_of::<Staged>();
