//! Round-trip times of flows from other sources than the handshake alone (section V, "RTT-estimation algorithm").
//!
//! The handshake's time is too long for ever if another switch delayed it. Three other sources:
//!
//! - *Timestamps* ([`RttSource::Timestamps`]): a whole round trip at the switch, from TCP timestamps (RFC 7323). Data with
//!   the timestamp `u` passes, then an ACK that echoes `u` or a later one and has the timestamp `v`, then data that echoes
//!   `v` or a later one. One such round trip is followed at a time.
//! - *Sequence numbers* ([`RttSource::Sequence`]): the time from data to the ACK of its last byte, as in Chen et al.,
//!   "Measuring TCP round-trip time in the data plane" (SPIN 2020), the paper's reference [9]. That is only the part of the
//!   round trip behind the switch; the part before it is from the handshake: from the SYN-ACK to the next packet of the
//!   flow. A switch of the reference holds many packets of a flow at a time; here one, because one sample in a round trip is
//!   enough.
//! - *Less queueing* ([`RttSource::LessQueueing`]): the handshake's time less what its packets waited in the queues of
//!   switches that run this program: each adds its queueing delay to a field of the packet, as in-band telemetry does (the
//!   paper's reference [31]). An ACK carries that of the last packet of its flow that left the switch, so that switches in
//!   front of this one know what waits behind them.
//!
//! A retransmission after a loss makes a sample by timestamps too long, by the time of the repair; one by sequence numbers
//! is given up if old data passes again, and only new data is watched.

use queuescope_sketch::Ticks;
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::Nanos;

/// Where the round-trip times of flows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttSource {
    /// The handshake: from the SYN to the next packet of the flow (section III-A).
    Handshake,
    /// The handshake, then TCP timestamps in both directions. A flow without them keeps the handshake's time.
    Timestamps(RttFilter),
    /// The handshake, then sequence numbers of data and of ACKs. A flow whose SYN-ACK was not seen keeps the handshake's
    /// time.
    Sequence(RttFilter),
    /// The handshake, less the time that its packets waited in the queues of switches with this program.
    LessQueueing,
}

/// What becomes of the samples of a flow's round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttFilter {
    /// The least one so far is the round-trip time: that without queueing.
    Least,
    /// Each sample moves it by `1 / 2^shift` of the difference: that with queueing.
    Smoothed {
        /// The right shift of the difference: 3 as in TCP's own estimate (RFC 6298).
        shift: u8,
    },
}

impl RttFilter {
    /// The next estimate after a sample.
    #[inline]
    pub(super) fn next(self, estimate: Nanos, sample: Nanos) -> Nanos {
        match self {
            Self::Least => estimate.min(sample),
            Self::Smoothed { shift } => {
                let by = |difference: u64| difference.checked_shr(shift.into()).unwrap_or(0);
                if sample >= estimate {
                    Nanos(estimate.0 + by(sample.0 - estimate.0))
                } else {
                    Nanos(estimate.0 - by(estimate.0 - sample.0))
                }
            }
        }
    }
}

/// What a switch keeps of a flow to measure its round-trip time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RttWatch {
    phase: Phase,
    /// The timestamp or the sequence number that the next packet must reach.
    expected: u32,
    /// The sequence number behind all data so far.
    highest: Option<u32>,
    /// When the watched packet passed, or the SYN-ACK.
    began: Ticks,
    /// The part of the round trip before the switch, in ticks; 0 until it is known.
    before: u32,
    /// In ns: what the flow's last packet waited here.
    pub waited: u32,
    /// In ns: what the SYN waited at the switches behind this one.
    pub waited_behind: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// The SYN-ACK has passed: the next packet of the flow ends the part of the handshake before the switch.
    SynAck,
    /// Data has passed: an ACK must follow.
    Data,
    /// An ACK has passed: data that it released must follow.
    Ack,
}

impl RttWatch {
    /// A packet of the flow, other than a SYN. Returns a sample of the round-trip time, if it ends one.
    #[inline]
    pub fn on_packet(&mut self, source: RttSource, tcp: &Segment, now: Nanos) -> Option<Nanos> {
        let now = Ticks::new(now);
        match source {
            RttSource::Handshake | RttSource::LessQueueing => None,
            RttSource::Timestamps(_) => {
                let stamps = tcp.timestamps.filter(|_| tcp.length > 0)?;
                let sample = match self.phase {
                    Phase::Idle | Phase::SynAck => None,
                    Phase::Data => return None,
                    Phase::Ack if is_before(stamps.echo, self.expected) => return None,
                    Phase::Ack => Some(self.age(now)),
                };
                self.watch(stamps.value, now);
                sample
            }
            RttSource::Sequence(_) => {
                if self.phase == Phase::SynAck {
                    (self.before, self.phase) = (now.since(self.began).max(1), Phase::Idle);
                }
                if tcp.length == 0 {
                    return None;
                }
                let end = tcp.end() as u32;
                let is_new = self.highest.is_none_or(|highest| is_before(highest, end));
                if is_new {
                    self.highest = Some(end);
                }
                match self.phase {
                    // Old data again: the next ACK may be of either packet (Karn's rule).
                    Phase::Data if !is_new => self.phase = Phase::Idle,
                    Phase::Data => {}
                    _ if is_new && self.before > 0 => self.watch(end, now),
                    _ => {}
                }
                None
            }
        }
    }

    /// A packet of the other direction. Returns a sample of the round-trip time, if it ends one.
    #[inline]
    pub fn on_reverse(&mut self, source: RttSource, tcp: &Segment, queueing: u32, now: Nanos) -> Option<Nanos> {
        let now = Ticks::new(now);
        let syn = tcp.flags.contains(Flags::SYN);
        match source {
            RttSource::Handshake => None,
            RttSource::LessQueueing => {
                if syn {
                    self.waited_behind = queueing;
                }
                None
            }
            RttSource::Timestamps(_) => {
                let stamps = tcp.timestamps.filter(|_| !syn)?;
                if self.phase == Phase::Data && !is_before(stamps.echo, self.expected) {
                    (self.phase, self.expected) = (Phase::Ack, stamps.value);
                }
                None
            }
            RttSource::Sequence(_) if syn => {
                if self.before == 0 && self.phase != Phase::SynAck {
                    (self.phase, self.began) = (Phase::SynAck, now);
                }
                None
            }
            RttSource::Sequence(_) => {
                let is_reached = tcp.flags.contains(Flags::ACK) && !is_before(tcp.ack as u32, self.expected);
                if self.phase != Phase::Data || !is_reached {
                    return None;
                }
                self.phase = Phase::Idle;
                Some(self.age(now).saturating_add(Nanos(u64::from(self.before) << 10)))
            }
        }
    }

    fn watch(&mut self, expected: u32, now: Ticks) {
        (self.phase, self.expected, self.began) = (Phase::Data, expected, now);
    }

    fn age(&self, now: Ticks) -> Nanos {
        Nanos(u64::from(now.since(self.began)) << 10)
    }
}

impl RttSource {
    /// What becomes of samples.
    pub(super) fn filter(self) -> Option<RttFilter> {
        match self {
            Self::Handshake | Self::LessQueueing => None,
            Self::Timestamps(filter) | Self::Sequence(filter) => Some(filter),
        }
    }
}

/// Whether a number is before another; both wrap.
#[inline]
fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_tcp::Timestamps;

    const MS: u64 = 1 << 20;

    fn data(value: u32, echo: u32, seq: u64) -> Segment {
        let timestamps = Some(Timestamps { value, echo });
        Segment { seq, length: 1000, flags: Flags::ACK, timestamps, ..Segment::default() }
    }

    fn ack(value: u32, echo: u32, ack: u64) -> Segment {
        Segment { ack, flags: Flags::ACK, timestamps: Some(Timestamps { value, echo }), ..Segment::default() }
    }

    #[test]
    fn timestamps_give_the_time_from_data_over_its_ack_to_the_data_that_echoes_it() {
        let source = RttSource::Timestamps(RttFilter::Least);
        let mut watch = RttWatch::default();
        assert_eq!(watch.on_packet(source, &data(7, 1, 1), Nanos(0)), None);
        assert_eq!(watch.on_packet(source, &data(8, 1, 1001), Nanos(MS)), None);
        // An ACK of earlier data is not of this one.
        assert_eq!(watch.on_reverse(source, &ack(90, 6, 1), 0, Nanos(2 * MS)), None);
        assert_eq!(watch.on_packet(source, &data(9, 90, 2001), Nanos(3 * MS)), None);
        assert_eq!(watch.on_reverse(source, &ack(100, 7, 1001), 0, Nanos(20 * MS)), None);
        assert_eq!(watch.on_packet(source, &data(10, 99, 3001), Nanos(25 * MS)), None, "an older ACK released it");
        assert_eq!(watch.on_packet(source, &data(11, 100, 4001), Nanos(30 * MS)), Some(Nanos(30 * MS)));
        // That packet is the next that is watched.
        watch.on_reverse(source, &ack(150, 11, 5001), 0, Nanos(50 * MS));
        assert_eq!(watch.on_packet(source, &data(60, 151, 5001), Nanos(57 * MS)), Some(Nanos(27 * MS)));
    }

    #[test]
    fn timestamps_may_wrap() {
        let source = RttSource::Timestamps(RttFilter::Least);
        let mut watch = RttWatch::default();
        watch.on_packet(source, &data(u32::MAX, 1, 1), Nanos(0));
        watch.on_reverse(source, &ack(u32::MAX, 1, 1001), 0, Nanos(MS));
        assert_eq!(watch.on_packet(source, &data(3, 2, 1001), Nanos(2 * MS)), Some(Nanos(2 * MS)));
    }

    #[test]
    fn sequence_numbers_give_the_time_behind_the_switch_and_the_handshake_that_before_it() {
        let source = RttSource::Sequence(RttFilter::Least);
        let mut watch = RttWatch::default();
        let syn_ack = Segment { flags: Flags::SYN | Flags::ACK, ack: 1, ..Segment::default() };
        assert_eq!(watch.on_reverse(source, &syn_ack, 0, Nanos(10 * MS)), None);
        assert_eq!(watch.on_packet(source, &ack(0, 0, 1), Nanos(14 * MS)), None);
        assert_eq!(watch.on_packet(source, &data(0, 0, 1), Nanos(20 * MS)), None);
        assert_eq!(watch.on_packet(source, &data(0, 0, 1001), Nanos(21 * MS)), None);
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 500), 0, Nanos(25 * MS)), None, "not all of it");
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 2001), 0, Nanos(30 * MS)), Some(Nanos((4 + 10) * MS)));
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 3001), 0, Nanos(31 * MS)), None, "nothing is watched");
    }

    #[test]
    fn data_that_passes_twice_gives_no_sample_by_sequence_numbers() {
        let source = RttSource::Sequence(RttFilter::Least);
        let mut watch = RttWatch::default();
        watch.on_reverse(source, &Segment { flags: Flags::SYN | Flags::ACK, ..Segment::default() }, 0, Nanos(0));
        watch.on_packet(source, &data(0, 0, 1), Nanos(MS));
        watch.on_packet(source, &data(0, 0, 1), Nanos(200 * MS));
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 1001), 0, Nanos(201 * MS)), None);
        // Its ACK may be on its way already: old data is not watched.
        watch.on_packet(source, &data(0, 0, 1), Nanos(202 * MS));
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 1001), 0, Nanos(203 * MS)), None);
        watch.on_packet(source, &data(0, 0, 1001), Nanos(204 * MS));
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 2001), 0, Nanos(206 * MS)), Some(Nanos(3 * MS)));
    }

    #[test]
    fn a_flow_whose_syn_ack_was_not_seen_gives_no_sample_by_sequence_numbers() {
        let source = RttSource::Sequence(RttFilter::Least);
        let mut watch = RttWatch::default();
        watch.on_packet(source, &data(0, 0, 1), Nanos(MS));
        assert_eq!(watch.on_reverse(source, &ack(0, 0, 1001), 0, Nanos(2 * MS)), None);
    }

    #[test]
    fn samples_are_filtered_by_their_minimum_or_by_a_shift() {
        assert_eq!(RttFilter::Least.next(Nanos(100), Nanos(90)), Nanos(90));
        assert_eq!(RttFilter::Least.next(Nanos(100), Nanos(190)), Nanos(100));
        let smoothed = RttFilter::Smoothed { shift: 3 };
        assert_eq!(smoothed.next(Nanos(100), Nanos(180)), Nanos(110));
        assert_eq!(smoothed.next(Nanos(100), Nanos(20)), Nanos(90));
        assert_eq!(RttFilter::Smoothed { shift: 200 }.next(Nanos(100), Nanos(20)), Nanos(100));
    }
}
