//! How long the machine, and not the link or who sends, decided how much was sent.
//!
//! A link whose packets come as fast as it sends is full. Where it is not, either nobody wants to send more, or the machine has no time to
//! move more. The second is believed of a stretch of time in which no link was full, and either the thread that moves packets did nothing else,
//! or no processor was idle while it moved many: then it, or who sends and receives, had to wait for a processor.

use queuescope_sim::{LinkId, Simulation};
use queuescope_wire::{ByteCount, Nanos};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What is judged as a whole: idle time is known to 10 ms.
const PIECE: Nanos = Nanos(250_000_000);
/// A link that sends this share of what it can is full.
const FULL: f64 = 0.95;
/// A thread that moves packets for this share of the time does nothing else.
const ALL: f64 = 0.9;
/// A thread that moves packets for this share of the time moves many.
const MANY: f64 = 0.25;
/// Of all processors, a share of time that is none: what idle time is known to.
const NONE: f64 = 0.05;

/// The time in which the machine held packets back, since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineLimit {
    /// The time in which links sent something: whole pieces of a quarter of a second.
    pub of: Nanos,
    /// Of that, the time in which no link was full and the machine had no time left.
    pub time: Nanos,
    /// The link that was fullest in the last of it.
    pub link: Option<LinkId>,
    /// What the fullest link could send in that time.
    pub able: ByteCount,
    /// What it sent in it, with what it adds to each packet.
    pub sent: ByteCount,
    /// How long packets were moved in it, by one thread.
    pub moving: Nanos,
    /// How long processors were idle in it, in sum; none if the kernel does not say so.
    pub idle: Option<Nanos>,
}

/// Looks at the machine while packets are moved.
#[derive(Debug)]
pub(crate) struct Watch {
    processors: u64,
    /// What the kernel says of idle time.
    uptime: Option<File>,
    begun: Mark,
    /// How long packets were moved since the piece began.
    moving: Nanos,
    machine_limit: MachineLimit,
}

/// The state at the beginning of a piece.
#[derive(Debug, Default)]
struct Mark {
    at: Nanos,
    idle: Option<Nanos>,
    /// Of each measured link, what it has sent.
    sent: Vec<ByteCount>,
}

/// A piece of time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    length: Nanos,
    /// What the fullest link sent and could have sent.
    sent: ByteCount,
    able: ByteCount,
    moving: Nanos,
    /// Of all processors.
    idle: Option<Nanos>,
    processors: u64,
}

impl Piece {
    /// Whether the machine decided how much was sent.
    fn is_held_back(&self) -> bool {
        let share = |part: Nanos, of: Nanos| part.0 as f64 / of.0.max(1) as f64;
        let is_full = self.sent.0 as f64 >= FULL * self.able.0 as f64;
        let moving = share(self.moving, self.length);
        let all = Nanos(self.length.0.saturating_mul(self.processors));
        let is_used_up = self.idle.is_some_and(|idle| share(idle, all) <= NONE);
        !is_full && (moving >= ALL || (moving >= MANY && is_used_up))
    }
}

impl MachineLimit {
    fn add(&mut self, link: LinkId, piece: &Piece) {
        self.of = self.of.saturating_add(piece.length);
        if !piece.is_held_back() {
            return;
        }
        // What is not known of one piece is not known of all.
        let idle = if self.time == Nanos::ZERO { Some(Nanos::ZERO) } else { self.idle };
        self.idle = idle.zip(piece.idle).map(|(all, one)| all.saturating_add(one));
        self.time = self.time.saturating_add(piece.length);
        self.moving = self.moving.saturating_add(piece.moving);
        self.link = Some(link);
        self.able += piece.able;
        self.sent += piece.sent;
    }
}

impl Watch {
    /// From the beginning on.
    pub fn new() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the kernel says in a file how long processors were idle")]
        let uptime = File::open("/proc/uptime").ok();
        // Of more than these it is not known that they are used up.
        let processors = std::thread::available_parallelism().map_or(1, |all| all.get() as u64);
        Self { processors, uptime, begun: Mark::default(), moving: Nanos::ZERO, machine_limit: MachineLimit::default() }
    }

    /// What was seen so far.
    pub fn machine_limit(&self) -> MachineLimit {
        self.machine_limit
    }

    /// Packets were moved for so long, until `at`.
    #[inline]
    pub fn moved(&mut self, time: Nanos) {
        self.moving = self.moving.saturating_add(time);
    }

    /// To be called often.
    #[inline]
    pub fn turn(&mut self, at: Nanos, simulation: &Simulation) {
        if at >= self.begun.at.saturating_add(PIECE) {
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
        let now = Mark { at, idle: self.idle(), sent: sent.collect() };
        let before = std::mem::replace(&mut self.begun, now);
        let moving = std::mem::take(&mut self.moving);
        // At the end of a warm-up links count anew, and a piece is lost.
        let counted = links.iter().zip(&self.begun.sent).zip(&before.sent).filter_map(|((link, now), then)| {
            let able = simulation.topology().link(*link).rate.capacity(before.at..at);
            Some((*link, ByteCount(now.0.checked_sub(then.0)?), able))
        });
        let share = |(_, sent, able): &(LinkId, ByteCount, ByteCount)| sent.0 as f64 / able.0.max(1) as f64;
        let Some((link, sent, able)) = counted.max_by(|one, other| share(one).total_cmp(&share(other))) else { return };
        if sent.0 > 0 {
            let idle = self.begun.idle.zip(before.idle).map(|(now, then)| now.saturating_sub(then));
            let length = at.saturating_sub(before.at);
            self.machine_limit.add(link, &Piece { length, sent, able, moving, idle, processors: self.processors });
        }
    }

    /// How long processors have been idle, in sum.
    fn idle(&self) -> Option<Nanos> {
        let mut text = [0; 64];
        let length = self.uptime.as_ref()?.read_at(&mut text, 0).ok()?;
        idle_of(text.get(..length)?)
    }
}

/// The second number of `/proc/uptime`, in seconds with two decimals.
fn idle_of(text: &[u8]) -> Option<Nanos> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, hundredths) = text.split_ascii_whitespace().nth(1)?.split_once('.')?;
    let hundredths = seconds.parse::<u64>().ok()?.checked_mul(100)?.checked_add(hundredths.parse().ok()?)?;
    hundredths.checked_mul(10_000_000).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(sent: u64, moving_ms: u64, idle_ms: Option<u64>) -> Piece {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let (sent, able) = (ByteCount(sent), ByteCount(1_000));
        Piece { length: ms(100), sent, able, moving: ms(moving_ms), idle: idle_ms.map(ms), processors: 2 }
    }

    #[test]
    fn a_link_that_is_not_full_is_held_back_where_the_machine_has_no_time_left() {
        for (piece, is_held_back) in [
            // The thread does nothing else, whatever others do.
            (piece(200, 95, Some(100)), true),
            (piece(200, 95, None), true),
            // No processor is idle, and many packets are moved.
            (piece(200, 40, Some(5)), true),
            // Who sends wants no more: there is time left.
            (piece(200, 40, Some(60)), false),
            (piece(200, 40, None), false),
            // Others use the processors, and few packets are to be moved.
            (piece(200, 5, Some(0)), false),
            // The link is full.
            (piece(990, 100, Some(0)), false),
        ] {
            assert_eq!(piece.is_held_back(), is_held_back, "{piece:?}");
        }
    }

    #[test]
    fn pieces_add_up() {
        let (link, mut all) = (LinkId(3), MachineLimit::default());
        for piece in [piece(990, 100, Some(0)), piece(200, 95, Some(4)), piece(300, 97, Some(2)), piece(1, 0, Some(9))]
        {
            all.add(link, &piece);
        }
        let [of, time, moving, idle] = [400, 200, 192, 6].map(|ms: u64| Nanos(ms * 1_000_000));
        let (able, sent) = (ByteCount(2_000), ByteCount(500));
        assert_eq!(all, MachineLimit { of, time, link: Some(link), able, sent, moving, idle: Some(idle) });
        all.add(link, &piece(200, 95, None));
        all.add(link, &piece(200, 95, Some(7)));
        assert_eq!(all.idle, None, "what is not known of one is not known of all");
    }

    #[test]
    fn idle_time_is_read() {
        assert_eq!(idle_of(b"1234.56 7890.12\n"), Some(Nanos(7_890_120_000_000)));
        for text in ["", "1.0", "1.0 x", "1.0 2", "1.0 99999999999999999999.00"] {
            assert_eq!(idle_of(text.as_bytes()), None, "{text}");
        }
    }
}
