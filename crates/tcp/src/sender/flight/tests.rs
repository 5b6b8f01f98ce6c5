//! Compares the scoreboard with a plain one that walks all segments for each question.

use super::*;
use proptest::prelude::*;

/// RFC 6675 literally, on a vector.
#[derive(Debug, Default)]
struct Plain {
    segments: Vec<PlainSegment>,
    una: u64,
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct PlainSegment {
    seq: u64,
    bytes: u64,
    sacked: bool,
    /// Marked for good by a timeout.
    condemned: bool,
    repeated: bool,
}

impl Plain {
    fn lost(&self, place: usize) -> bool {
        let segment = &self.segments[place];
        let above = self.segments[place + 1..].iter().filter(|above| above.sacked).count();
        !segment.sacked && (segment.condemned || above >= DUPLICATES)
    }

    fn in_network(&self) -> u64 {
        let counts = |place: &usize| {
            let segment = &self.segments[*place];
            !segment.sacked && (!self.lost(*place) || segment.repeated)
        };
        (0..self.segments.len()).filter(counts).map(|place| self.segments[place].bytes).sum()
    }

    fn next_lost(&self) -> Option<u64> {
        let found = (0..self.segments.len()).find(|&place| self.lost(place) && !self.segments[place].repeated);
        found.map(|place| self.segments[place].seq)
    }

    fn acknowledge(&mut self, ack: u64) -> u64 {
        let fresh = |segment: &&PlainSegment| segment.seq < ack && !segment.sacked;
        let delivered = self.segments.iter().filter(fresh).map(|segment| segment.bytes).sum();
        // Arrivals above a segment stay counted: a cumulative ACK never covers the arrivals above a hole without the
        // hole.
        self.segments.retain(|segment| segment.seq >= ack);
        self.una = self.una.max(ack);
        delivered
    }

    fn sack(&mut self, start: u64, end: u64) -> u64 {
        let mut delivered = 0;
        for segment in &mut self.segments {
            if segment.seq >= start && segment.seq + segment.bytes <= end && !segment.sacked {
                segment.sacked = true;
                segment.condemned = false;
                segment.repeated = false;
                delivered += segment.bytes;
            }
        }
        delivered
    }
}

/// Events; numbers count segments from the first unacknowledged one, or from 0.
#[derive(Debug, Clone, Copy)]
enum Event {
    Send(u32),
    Repeat,
    Acknowledge(usize),
    Sack(usize, usize),
    Timeout,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1_u32..1_500).prop_map(Event::Send),
        3 => Just(Event::Repeat),
        2 => (0_usize..6).prop_map(Event::Acknowledge),
        6 => (1_usize..40, 1_usize..6).prop_map(|(from, count)| Event::Sack(from, count)),
        1 => Just(Event::Timeout),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn the_ring_agrees_with_a_walk_over_all_segments(events in prop::collection::vec(event(), 1..200)) {
        let mut flight = Flight::new(1, 1_000);
        let mut plain = Plain { una: 1, next: 1, ..Plain::default() };
        for event in events {
            let mut tally = Tally::default();
            match event {
                Event::Send(bytes) => {
                    flight.push(SentSegment::new(plain.next, bytes, false));
                    let segment =
                        PlainSegment { seq: plain.next, bytes: u64::from(bytes), sacked: false, condemned: false, repeated: false };
                    plain.segments.push(segment);
                    plain.next += u64::from(bytes);
                }
                Event::Repeat => {
                    let seq = plain.next_lost();
                    prop_assert_eq!(flight.next_lost(), seq);
                    if let Some(seq) = seq {
                        prop_assert!(flight.repeat(seq, 0, |_| ()).is_some());
                        plain.segments.iter_mut().find(|segment| segment.seq == seq).unwrap().repeated = true;
                    }
                }
                Event::Acknowledge(segments) => {
                    // A receiver's ACK continues past data that it already has.
                    let mut place = segments.min(plain.segments.len());
                    while plain.segments.get(place).is_some_and(|segment| segment.sacked) {
                        place += 1;
                    }
                    let ack = plain.segments.get(place).map_or(plain.next, |segment| segment.seq);
                    let delivered = plain.acknowledge(ack);
                    flight.acknowledge(ack, &mut tally);
                    prop_assert_eq!(tally.delivered, delivered);
                }
                Event::Sack(from, count) => {
                    let until = (from + count).min(plain.segments.len());
                    if from >= until {
                        continue;
                    }
                    let start = plain.segments[from].seq;
                    let end = plain.segments[until - 1].seq + plain.segments[until - 1].bytes;
                    let delivered = plain.sack(start, end);
                    flight.sack(start, end, &mut tally);
                    flight.judge();
                    prop_assert_eq!(tally.delivered, delivered);
                }
                Event::Timeout => {
                    for segment in plain.segments.iter_mut().filter(|segment| !segment.sacked) {
                        segment.condemned = true;
                        segment.repeated = false;
                    }
                    flight.lose_late(false, |_| true);
                }
            }
            // The plain scoreboard forgets a loss when arrivals above it are acknowledged. The ring does not need to:
            // those are acknowledged together with what is below them.
            prop_assert_eq!(flight.in_network(), plain.in_network());
            prop_assert_eq!(flight.una(), plain.una);
        }
    }
}

#[test]
fn three_arrivals_above_make_a_loss() {
    let mut flight = Flight::new(1, 1_000);
    for number in 0..10 {
        flight.push(SentSegment::new(1 + 1_000 * number, 1_000, false));
    }
    let mut tally = Tally::default();
    // 2 and 5 are missing: 3, 4, 6 arrive.
    flight.acknowledge(2_001, &mut tally);
    flight.sack(3_001, 5_001, &mut tally);
    assert_eq!((flight.judge(), flight.in_network()), (0, 6_000));
    flight.sack(6_001, 7_001, &mut tally);
    assert_eq!((flight.judge(), flight.in_network()), (1_000, 4_000));
    assert_eq!(flight.next_lost(), Some(2_001));
    assert!(flight.repeat(2_001, 0, |_| ()).is_some());
    assert_eq!((flight.next_lost(), flight.in_network()), (None, 5_000));
    flight.sack(7_001, 9_001, &mut tally);
    assert_eq!((flight.judge(), flight.next_lost()), (1_000, Some(5_001)));
    // 2 was retransmitted, 5 is lost, 9 is in flight: 2 and 9 are in the network.
    assert_eq!(flight.in_network(), 2_000);
}

#[test]
fn guesses_stand_for_arrivals_until_the_hole_is_filled() {
    let mut flight = Flight::new(1, 1_000);
    for number in 0..10 {
        flight.push(SentSegment::new(1 + 1_000 * number, 1_000, false));
    }
    let mut tally = Tally::default();
    for _ in 0..3 {
        flight.guess_arrival(1_000, &mut tally);
    }
    assert_eq!((tally.delivered, flight.in_network()), (3_000, 7_000));
    flight.lose_first();
    assert!(flight.repeat(1, 0, |_| ()).is_some());
    assert_eq!(flight.in_network(), 7_000);
    // The first four arrive, of which three were guessed.
    let mut tally = Tally::default();
    flight.acknowledge(4_001, &mut tally);
    assert_eq!((tally.acked, tally.delivered, flight.in_network()), (4_000, 1_000, 6_000));
}

#[test]
fn many_holes_cost_little() {
    // Every other of 20 000 segments is missing, and each ACK reports one more: quadratic work would take minutes.
    let mut flight = Flight::new(0, 1);
    for number in 0..20_000 {
        flight.push(SentSegment::new(number, 1, false));
    }
    let mut lost = 0;
    for number in (1..20_000).step_by(2) {
        let mut tally = Tally::default();
        flight.sack(number, number + 1, &mut tally);
        lost += flight.judge();
        while let Some(seq) = flight.next_lost() {
            flight.repeat(seq, 0, |_| ());
        }
    }
    // The last two holes have fewer than three arrivals above them.
    assert_eq!(lost, 9_998);
    assert_eq!(flight.in_network(), 10_000);
}

#[test]
fn segments_sent_before_a_timeout_give_no_round_trip_time_and_later_ones_do() {
    let first_is_clean = |flight: &mut Flight, ack: u64| {
        let mut tally = Tally::default();
        flight.acknowledge(ack, &mut tally);
        tally.first_is_clean
    };
    let mut flight = Flight::new(1, 1_000);
    for number in 0..4 {
        flight.push(SentSegment::new(1 + 1_000 * number, 1_000, false));
    }
    assert!(first_is_clean(&mut flight, 1_001));
    flight.lose_late(false, |_| true);
    for seq in [1_001, 2_001] {
        assert!(flight.repeat(seq, 0, |_| ()).is_some());
    }
    for number in 4..8 {
        flight.push(SentSegment::new(1 + 1_000 * number, 1_000, false));
    }
    assert!(!first_is_clean(&mut flight, 2_001), "sent again");
    // The first segment after the timeout is the fifth, regardless of the third and the fourth.
    assert!(first_is_clean(&mut flight, 5_001));
    assert!(flight.repeat(5_001, 0, |_| ()).is_some());
    assert!(!first_is_clean(&mut flight, 6_001), "sent again");
    assert!(first_is_clean(&mut flight, 7_001));
    // Segments sent before a timeout do not count, not even those sent once.
    flight.lose_late(false, |_| true);
    assert!(!first_is_clean(&mut flight, 8_001));
}
