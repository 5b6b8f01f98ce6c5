//! How long the machine limited the traffic, and neither the link nor the senders did.
//!
//! A link that packets reach as fast as it sends is full. If a link is not full, either the senders do not want to send more, or the machine
//! lacks the time to move more. This module assumes the second for an interval in which no link was full, and either the thread that moves
//! packets did nothing else, or no processor was idle while that thread moved many packets. In both cases that thread, or a sender
//! or receiver, had to wait for a processor.

use queuescope_sim::{LinkId, Simulation};
use queuescope_wire::{ByteCount, Nanos};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The length of an interval that is judged as a whole. Idle time is known to 10 ms.
const INTERVAL: Nanos = Nanos(250_000_000);
/// A link is full if it sends this share of its capacity.
const FULL_SHARE: f64 = 0.95;
/// A thread that moves packets for this share of the time does nothing else.
const BUSY_SHARE: f64 = 0.9;
/// A thread that moves packets for this share of the time moves many packets.
const MANY_SHARE: f64 = 0.25;
/// The processors are used up if at most this share of their time is idle. Idle time is not known more exactly.
const IDLE_SHARE: f64 = 0.05;

/// The time in which the machine held packets back, since the run began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeldBack {
    /// The time in which links sent something, in whole intervals of a quarter of a second.
    pub observed: Nanos,
    /// Of that, the time in which no link was full and the machine had no time left.
    pub held_back: Nanos,
    /// The fullest link in the last such interval.
    pub link: Option<LinkId>,
    /// How many bytes the fullest link could have sent in that time.
    pub capacity: ByteCount,
    /// How many bytes it sent in that time, with the link's overhead of each packet.
    pub sent: ByteCount,
    /// How long the thread moved packets in that time.
    pub moving: Nanos,
    /// The idle time of all processors in that time; `None` if the kernel does not report it.
    pub idle: Option<Nanos>,
}

/// Observes the load of the machine while packets move.
#[derive(Debug)]
pub(crate) struct LoadMonitor {
    processors: u64,
    /// `/proc/uptime`, from which idle time is read.
    uptime: Option<File>,
    start: LoadSnapshot,
    /// How long packets were moved since the interval began.
    moving: Nanos,
    held_back: HeldBack,
}

/// The state at the beginning of an interval.
#[derive(Debug, Default)]
struct LoadSnapshot {
    at: Nanos,
    idle: Option<Nanos>,
    /// The bytes that each measured link has sent.
    sent: Vec<ByteCount>,
}

/// The measurements of one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LoadInterval {
    length: Nanos,
    /// The bytes that the fullest link sent, and those that it could have sent.
    sent: ByteCount,
    capacity: ByteCount,
    moving: Nanos,
    /// Summed over all processors.
    idle: Option<Nanos>,
    processors: u64,
}

impl LoadInterval {
    /// Whether the machine limited how much was sent.
    fn is_held_back(&self) -> bool {
        let share = |part: Nanos, of: Nanos| part.0 as f64 / of.0.max(1) as f64;
        let is_full = self.sent.0 as f64 >= FULL_SHARE * self.capacity.0 as f64;
        let moving = share(self.moving, self.length);
        let all = Nanos(self.length.0.saturating_mul(self.processors));
        let is_used_up = self.idle.is_some_and(|idle| share(idle, all) <= IDLE_SHARE);
        !is_full && (moving >= BUSY_SHARE || (moving >= MANY_SHARE && is_used_up))
    }
}

impl HeldBack {
    fn add(&mut self, link: LinkId, interval: &LoadInterval) {
        self.observed = self.observed.saturating_add(interval.length);
        if !interval.is_held_back() {
            return;
        }
        // The sum is unknown if one interval is.
        let idle = if self.held_back == Nanos::ZERO { Some(Nanos::ZERO) } else { self.idle };
        self.idle = idle.zip(interval.idle).map(|(all, one)| all.saturating_add(one));
        self.held_back = self.held_back.saturating_add(interval.length);
        self.moving = self.moving.saturating_add(interval.moving);
        self.link = Some(link);
        self.capacity += interval.capacity;
        self.sent += interval.sent;
    }
}

impl LoadMonitor {
    /// Starts with no measurements.
    pub fn new() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the kernel reports idle time in a file of /proc")]
        let uptime = File::open("/proc/uptime").ok();
        // This process may use only these processors, so idle time of others says nothing.
        let processors = std::thread::available_parallelism().map_or(1, |all| all.get() as u64);
        Self { processors, uptime, start: LoadSnapshot::default(), moving: Nanos::ZERO, held_back: HeldBack::default() }
    }

    /// The time in which packets were held back so far.
    pub fn held_back(&self) -> HeldBack {
        self.held_back
    }

    /// Records that packets were moved for `time`.
    #[inline]
    pub fn moved(&mut self, time: Nanos) {
        self.moving = self.moving.saturating_add(time);
    }

    /// LinkEnds the interval if it is over at `at`. Call it often.
    #[inline]
    pub fn check(&mut self, at: Nanos, simulation: &Simulation) {
        if at >= self.start.at.saturating_add(INTERVAL) {
            self.judge(at, simulation);
        }
    }

    #[cold]
    fn judge(&mut self, at: Nanos, simulation: &Simulation) {
        let links: Vec<_> = simulation.measured().collect();
        let sent = links.iter().map(|link| {
            let overhead = simulation.topology().link(*link).overhead;
            simulation.link(*link).sent.on_link(overhead)
        });
        let now = LoadSnapshot { at, idle: self.idle(), sent: sent.collect() };
        let before = std::mem::replace(&mut self.start, now);
        let moving = std::mem::take(&mut self.moving);
        // Links restart their counts at the end of a warm-up; that interval is not judged.
        let counted = links.iter().zip(&self.start.sent).zip(&before.sent).filter_map(|((link, now), then)| {
            let capacity = simulation.topology().link(*link).rate.capacity(before.at..at);
            Some((*link, ByteCount(now.0.checked_sub(then.0)?), capacity))
        });
        let share = |(_, sent, capacity): &(LinkId, ByteCount, ByteCount)| sent.0 as f64 / capacity.0.max(1) as f64;
        let Some((link, sent, capacity)) = counted.max_by(|one, other| share(one).total_cmp(&share(other))) else {
            return;
        };
        if sent.0 > 0 {
            let idle = self.start.idle.zip(before.idle).map(|(now, then)| now.saturating_sub(then));
            let length = at.saturating_sub(before.at);
            self.held_back
                .add(link, &LoadInterval { length, sent, capacity, moving, idle, processors: self.processors });
        }
    }

    /// The idle time of all processors since boot, in sum.
    fn idle(&self) -> Option<Nanos> {
        let mut text = [0; 64];
        let length = self.uptime.as_ref()?.read_at(&mut text, 0).ok()?;
        idle_of(text.get(..length)?)
    }
}

/// Reads the second number of `/proc/uptime`, in seconds with two decimals.
fn idle_of(text: &[u8]) -> Option<Nanos> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, hundredths) = text.split_ascii_whitespace().nth(1)?.split_once('.')?;
    let hundredths = seconds.parse::<u64>().ok()?.checked_mul(100)?.checked_add(hundredths.parse().ok()?)?;
    hundredths.checked_mul(10_000_000).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(sent: u64, moving_ms: u64, idle_ms: Option<u64>) -> LoadInterval {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let (sent, capacity) = (ByteCount(sent), ByteCount(1_000));
        LoadInterval { length: ms(100), sent, capacity, moving: ms(moving_ms), idle: idle_ms.map(ms), processors: 2 }
    }

    #[test]
    fn a_link_that_is_not_full_is_held_back_if_the_machine_has_no_time_left() {
        for (interval, is_held_back) in [
            // The thread does nothing else, whatever other threads do.
            (interval(200, 95, Some(100)), true),
            (interval(200, 95, None), true),
            // No processor is idle, and many packets are moved.
            (interval(200, 40, Some(5)), true),
            // There is idle time: the sender does not want to send more.
            (interval(200, 40, Some(60)), false),
            (interval(200, 40, None), false),
            // Other programs use the processors, and few packets need to be moved.
            (interval(200, 5, Some(0)), false),
            // The link is full.
            (interval(990, 100, Some(0)), false),
        ] {
            assert_eq!(interval.is_held_back(), is_held_back, "{interval:?}");
        }
    }

    #[test]
    fn intervals_add_up() {
        let (link, mut all) = (LinkId(3), HeldBack::default());
        for interval in [
            interval(990, 100, Some(0)),
            interval(200, 95, Some(4)),
            interval(300, 97, Some(2)),
            interval(1, 0, Some(9)),
        ] {
            all.add(link, &interval);
        }
        let [observed, held_back, moving, idle] = [400, 200, 192, 6].map(|ms: u64| Nanos(ms * 1_000_000));
        let (capacity, sent) = (ByteCount(2_000), ByteCount(500));
        assert_eq!(all, HeldBack { observed, held_back, link: Some(link), capacity, sent, moving, idle: Some(idle) });
        all.add(link, &interval(200, 95, None));
        all.add(link, &interval(200, 95, Some(7)));
        assert_eq!(all.idle, None, "the sum is unknown if one interval is");
    }

    #[test]
    fn idle_time_is_read() {
        assert_eq!(idle_of(b"1234.56 7890.12\n"), Some(Nanos(7_890_120_000_000)));
        for text in ["", "1.0", "1.0 x", "1.0 2", "1.0 99999999999999999999.00"] {
            assert_eq!(idle_of(text.as_bytes()), None, "{text}");
        }
    }
}
