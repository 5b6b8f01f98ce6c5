//! The packets of a capture as cross traffic: sent at their captured times, shifted in time, faster or slower, once or
//! repeatedly.

use crate::Speedup;
use queuescope_wire::{ByteCount, FlowId, Nanos};

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it was captured, since any origin; or when it is sent.
    pub at: Nanos,
    /// Its bytes, from the network header on.
    pub size: ByteCount,
    /// Its flow.
    pub flow: FlowId,
}

/// How a capture is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureParams {
    /// When its first packet is sent.
    pub start: Nanos,
    /// How many times faster than captured.
    pub speedup: Speedup,
    /// What happens after its last packet.
    pub repeat: Repeat,
}

impl Default for CaptureParams {
    /// From time 0 on, at captured speed, once.
    fn default() -> Self {
        Self { start: Nanos::ZERO, speedup: Speedup::NONE, repeat: Repeat::Once }
    }
}

/// What happens after the last packet of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing.
    #[default]
    Once,
    /// It starts again, after the mean time between its packets.
    Forever,
    /// It starts again, this long (captured time) after the last packet.
    After(Nanos),
}

/// The counters of a capture that is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// How often the capture was sent to its end.
    pub rounds: u64,
    /// Packets with a time before that of the previous packet; they are sent together with that one.
    pub backwards: u64,
    /// The largest such difference.
    pub furthest_back: Nanos,
}

/// A capture as cross traffic: an iterator in order of time.
///
/// `open` returns its packets from the first on, each time that it starts: for example a clone of an iterator, or a file that is
/// opened again. If it returns nothing, the traffic ends. A capture whose packets all have the same time is sent once,
/// unless a pause is given: otherwise it would never get beyond that time.
///
/// ```
/// use queuescope_sim::workload::{CaptureParams, Captured, CapturedPacket};
/// use queuescope_wire::{ByteCount, FlowId, Nanos};
///
/// let packet = |at| CapturedPacket { at: Nanos(at), size: ByteCount(500), flow: FlowId(0) };
/// let packets = [packet(7_000), packet(8_000), packet(11_000)];
/// let params = CaptureParams { speedup: "2".parse()?, ..CaptureParams::default() };
/// let sent = Captured::new(params, || Some(packets.into_iter()));
/// let times: Vec<_> = sent.map(|packet| packet.at.0).collect();
/// assert_eq!(times, [0, 500, 2_000]);
/// # Ok::<(), queuescope_sim::SpeedupError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Captured<O, I> {
    params: CaptureParams,
    open: O,
    packets: Option<I>,
    /// Captured time from the very first packet to the first of this round.
    before: Nanos,
    round: Round,
    stats: CaptureStats,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    packets: u64,
    /// When its first packet was captured.
    first: Nanos,
    /// The latest time of a packet, relative to that.
    last: Nanos,
}

impl<I: Iterator<Item = CapturedPacket>, O: FnMut() -> Option<I>> Captured<O, I> {
    /// Sends the packets that `open` returns.
    pub fn new(params: CaptureParams, mut open: O) -> Self {
        let packets = open();
        let (round, stats) = (Round::default(), CaptureStats::default());
        Self { params, open, packets, before: Nanos::ZERO, round, stats }
    }

    /// The counters so far.
    pub fn stats(&self) -> CaptureStats {
        self.stats
    }

    /// When a packet of this round is sent.
    fn sent(&mut self, at: Nanos) -> Nanos {
        if self.round.packets == 0 {
            self.round.first = at;
        }
        self.round.packets += 1;
        let latest = self.round.first.saturating_add(self.round.last);
        if at < latest {
            self.stats.backwards += 1;
            self.stats.furthest_back = self.stats.furthest_back.max(latest - at);
        } else {
            self.round.last = at - self.round.first;
        }
        // The whole span is scaled, not each gap, so no error accumulates.
        let span = self.before.saturating_add(self.round.last);
        self.params.start.saturating_add(self.params.speedup.apply(span))
    }

    /// The time from the first packet of this round, which is over, to the first of the next.
    fn round_time(&self) -> Option<Nanos> {
        let Round { packets, last, .. } = self.round;
        let pause = match self.params.repeat {
            Repeat::Once => return None,
            Repeat::After(pause) => pause,
            Repeat::Forever => Nanos(last.0.checked_div(packets.checked_sub(1)?)?),
        };
        let time = last.saturating_add(pause);
        (packets > 0 && time > Nanos::ZERO).then_some(time)
    }
}

impl<I: Iterator<Item = CapturedPacket>, O: FnMut() -> Option<I>> Iterator for Captured<O, I> {
    type Item = CapturedPacket;

    fn next(&mut self) -> Option<CapturedPacket> {
        loop {
            if let Some(packet) = self.packets.as_mut()?.next() {
                let at = self.sent(packet.at);
                if at < Nanos::MAX {
                    return Some(CapturedPacket { at, ..packet });
                }
                self.packets = None;
                return None;
            }
            self.stats.rounds += 1;
            let time = self.round_time();
            self.before = self.before.saturating_add(time.unwrap_or_default());
            self.round = Round::default();
            self.packets = time.and_then(|_| (self.open)());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets(times: &[u64]) -> Vec<CapturedPacket> {
        let packet =
            |(n, at): (usize, &u64)| CapturedPacket { at: Nanos(*at), size: ByteCount(n as u64), flow: FlowId(7) };
        times.iter().enumerate().map(packet).collect()
    }

    fn sent(times: &[u64], params: CaptureParams) -> impl Iterator<Item = u64> {
        let packets = packets(times);
        Captured::new(params, move || Some(packets.clone().into_iter())).map(|packet| packet.at.0)
    }

    #[test]
    fn packets_are_sent_as_captured_moved_and_scaled() {
        let params = CaptureParams { start: Nanos(50), speedup: "2.5".parse().unwrap(), ..CaptureParams::default() };
        let times = [1_000, 1_010, 1_010, 1_100];
        assert_eq!(sent(&times, params).collect::<Vec<_>>(), [50, 54, 54, 90]);
        let first = Captured::new(params, || Some(packets(&times).into_iter())).nth(1);
        assert_eq!(first, Some(CapturedPacket { at: Nanos(54), size: ByteCount(1), flow: FlowId(7) }));
    }

    #[test]
    fn a_capture_that_repeats_goes_on_after_a_pause() {
        let forever = CaptureParams { repeat: Repeat::Forever, ..CaptureParams::default() };
        assert_eq!(sent(&[5, 15, 35], forever).take(7).collect::<Vec<_>>(), [0, 10, 30, 45, 55, 75, 90]);
        let pause = CaptureParams { repeat: Repeat::After(Nanos(70)), ..forever };
        assert_eq!(sent(&[5, 15, 35], pause).take(5).collect::<Vec<_>>(), [0, 10, 30, 100, 110]);
        // Thirds of a nanosecond add up over rounds.
        let third = CaptureParams { speedup: "3".parse().unwrap(), ..forever };
        assert_eq!(sent(&[0, 1], third).take(9).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn a_capture_without_time_or_packets_ends() {
        for repeat in [Repeat::Once, Repeat::Forever, Repeat::After(Nanos(0))] {
            let params = CaptureParams { repeat, ..CaptureParams::default() };
            assert_eq!(sent(&[], params).count(), 0);
            assert_eq!(sent(&[3], params).count(), 1);
            assert_eq!(sent(&[3, 3], params).count(), 2);
        }
        let pause = CaptureParams { repeat: Repeat::After(Nanos(4)), ..CaptureParams::default() };
        assert_eq!(sent(&[3], pause).take(3).collect::<Vec<_>>(), [0, 4, 8]);
        let late = CaptureParams { start: Nanos(u64::MAX - 4), ..pause };
        assert_eq!(sent(&[3], late).count(), 1, "time ends");
        assert_eq!(Captured::new(pause, || None::<std::vec::IntoIter<_>>).count(), 0);
    }

    #[test]
    fn a_clock_that_runs_back_is_counted() {
        let forever = CaptureParams { repeat: Repeat::Forever, ..CaptureParams::default() };
        let times = [100, 130, 110, 125, 140];
        let mut captured = Captured::new(forever, || Some(packets(&times).into_iter()));
        let sent: Vec<_> = captured.by_ref().map(|packet| packet.at.0).take(7).collect();
        assert_eq!(sent, [0, 30, 30, 30, 40, 50, 80]);
        let expected = CaptureStats { rounds: 1, backwards: 2, furthest_back: Nanos(20) };
        assert_eq!(captured.stats(), expected);
    }

    proptest! {
        #[test]
        fn times_never_run_back_and_every_round_is_alike(
            times in prop::collection::vec(0..1_000u64, 2..20), pause in 1..100u64, start in 0..1_000u64
        ) {
            let repeat = Repeat::After(Nanos(pause));
            let params = CaptureParams { start: Nanos(start), repeat, ..CaptureParams::default() };
            let all: Vec<_> = sent(&times, params).take(3 * times.len()).collect();
            prop_assert!(all.is_sorted());
            let (first, rest) = all.split_at(times.len());
            let latest = times.iter().max().unwrap().saturating_sub(times[0]);
            for (n, at) in rest.iter().enumerate() {
                let rounds = 1 + (n / times.len()) as u64;
                prop_assert_eq!(*at, first[n % times.len()] + rounds * (latest + pause));
            }
        }
    }
}
