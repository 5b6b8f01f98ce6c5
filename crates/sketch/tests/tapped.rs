//! ConQuest on a switch beside a router: the cases of section 6.2, and any packets against a plain model.

use proptest::prelude::*;
use queuescope_sketch::{
    ConQuest, ConQuestParams, Estimator, TappedConQuest, TappedConQuestParams, TappedError, TappedStats, Verdict,
};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Four places, delays of up to 1 ms, and reports from 2000 bytes on of packets that waited more than 0.1 ms.
fn params() -> TappedConQuestParams {
    let sketch = ConQuestParams { window: Nanos(100_000), ..TappedConQuestParams::default().sketch };
    TappedConQuestParams {
        sketch,
        estimator: Estimator::Inner,
        slots: 4,
        max_delay: Nanos(1_000_000),
        tau: Nanos(100_000),
        threshold: 2_000,
    }
}

fn switch() -> TappedConQuest {
    TappedConQuest::new(params()).expect("they are valid")
}

/// A packet at a place.
fn packet(place: u64, digest: u64) -> u64 {
    place << 32 | digest
}

/// Microseconds after a second.
fn at(micros: u64) -> Nanos {
    Nanos(1_000_000_000 + micros * 1_000)
}

/// By hand: the windows are 100 us. The third packet leaves at 450 us, and came at 50 us. Windows 1 to 3 are between, of which four snapshots keep
/// the last two that are complete: [200, 300) and [300, 400). One packet of its flow left in each.
#[test]
fn a_packet_that_is_seen_twice_has_its_delay_and_the_bytes_of_its_flow() {
    let mut switch = switch();
    for (number, came) in [(0, 0), (1, 20), (2, 50)] {
        assert!(switch.came(packet(number, 7), at(came)));
    }
    assert_eq!(switch.left(packet(0, 7), 1, 1_500, at(80)), Verdict::Short { delay: Nanos(80_000) });
    assert_eq!(
        switch.left(packet(1, 7), 1, 600, at(250)),
        Verdict::Light { delay: Nanos(230_000), estimate: 0 },
        "the packet before left in the window in which this one came"
    );
    switch.left(packet(3, 7), 1, 1_400, at(399));
    assert_eq!(switch.left(packet(2, 7), 1, 1_500, at(450)), Verdict::Heavy { delay: Nanos(400_000), estimate: 2_000 });
    let stats = TappedStats { inserted: 3, occupied: 0, unseen: 1, short: 1, light: 1, heavy: 1 };
    assert_eq!(*switch.stats(), stats);
}

/// It was dropped, or left by another link: its place is free when the longest delay is over, and not earlier.
#[test]
fn a_packet_that_is_not_seen_on_its_way_out_expires() {
    let mut switch = switch();
    assert!(switch.came(packet(2, 5), at(0)));
    assert!(!switch.came(packet(2, 6), at(1_000)), "it is as old as the longest delay");
    assert_eq!(switch.slot(2), Some((5, 1_000_000_000)));
    assert!(switch.came(packet(2, 6), Nanos(at(1_000).0 + 1)));
    assert_eq!(switch.slot(2), Some((6, 1_001_000_001)));
    assert_eq!(switch.left(packet(2, 5), 1, 100, at(1_100)), Verdict::Unseen);
    assert_eq!(switch.slot(2), Some((6, 1_001_000_001)), "another packet's entry stays");
}

/// It came by a link without a tap. It counts in the snapshots: the packet behind it finds its bytes.
#[test]
fn a_packet_that_is_not_seen_on_its_way_in_counts_in_the_snapshots() {
    let mut switch = switch();
    switch.came(packet(0, 9), at(10));
    assert_eq!(switch.left(packet(1, 4), 3, 2_500, at(150)), Verdict::Unseen);
    assert_eq!(switch.left(packet(0, 9), 3, 100, at(210)), Verdict::Heavy { delay: Nanos(200_000), estimate: 2_500 });
}

/// The second of two packets at a place is not inserted, so it is unseen on its way out. When the first has left, the place is free at once.
#[test]
fn a_collision_loses_the_second_packet() {
    let mut switch = switch();
    assert!(switch.came(packet(1, 10), at(0)));
    assert!(!switch.came(packet(1, 11), at(1)));
    assert_eq!(switch.left(packet(1, 10), 1, 100, at(2)), Verdict::Short { delay: Nanos(2_000) });
    assert_eq!(switch.slot(1), Some((0, u32::MAX)));
    assert_eq!(switch.left(packet(1, 11), 1, 100, at(3)), Verdict::Unseen);
    assert!(switch.came(packet(1, 11), at(4)));
    assert_eq!((switch.stats().inserted, switch.stats().occupied), (2, 1));
}

/// Of two packets with the same digest, the first is matched with the first to leave, and the second is unseen.
#[test]
fn the_second_of_two_equal_packets_is_unseen() {
    let mut switch = switch();
    assert!(switch.came(packet(1, 10), at(0)) && !switch.came(packet(1, 10), at(5)));
    assert_eq!(switch.left(packet(1, 10), 1, 100, at(50)), Verdict::Short { delay: Nanos(50_000) });
    assert_eq!(switch.left(packet(1, 10), 1, 100, at(55)), Verdict::Unseen);
}

/// A packet that leaves too late has no delay, and its place is free.
#[test]
fn a_packet_that_leaves_too_late_is_unseen() {
    let mut switch = switch();
    switch.came(packet(3, 1), at(0));
    assert_eq!(switch.left(packet(3, 1), 1, 100, Nanos(at(1_000).0 + 1)), Verdict::Unseen);
    assert_eq!(switch.slot(3), Some((0, u32::MAX)));
}

#[test]
fn delays_are_right_where_times_of_32_bits_wrap() {
    let (mut switch, wrap) = (switch(), 1 << 32);
    switch.came(packet(0, 1), Nanos(wrap - 50_000));
    switch.came(packet(1, 2), Nanos(wrap - 40_000));
    assert_eq!(switch.left(packet(0, 1), 1, 100, Nanos(wrap + 30_000)), Verdict::Short { delay: Nanos(80_000) });
    assert!(switch.came(packet(1, 3), Nanos(wrap + 40_000)), "every entry may be replaced at the wrap");
    assert_eq!(switch.left(packet(1, 2), 1, 100, Nanos(wrap + 50_000)), Verdict::Unseen);
    assert!(switch.came(packet(2, 4), Nanos(wrap * 2)), "an empty place is free at any time");
    assert_eq!(switch.left(packet(2, 4), 1, 100, Nanos(wrap * 2 + 9)), Verdict::Unseen, "it came at 0");
}

#[test]
fn errors_name_the_parameter() {
    let error = |params| TappedConQuest::new(params).expect_err("it is not valid").to_string();
    assert_eq!(
        error(TappedConQuestParams { slots: 1000, ..params() }),
        "1000 packets cannot wait: use a power of two from 2 to 65536, because a place is a slice of a hash"
    );
    assert_eq!(
        error(TappedConQuestParams { max_delay: Nanos(1 << 31), ..params() }),
        "the longest delay cannot be 2.15 s: use 1ns to 2.08s; 32 bits of nanoseconds distinguish twice as much"
    );
    let sketch = ConQuestParams { rows: 9, ..params().sketch };
    let error = TappedConQuest::new(TappedConQuestParams { sketch, ..params() }).expect_err("it is not valid");
    assert!(matches!(error, TappedError::Sketch(_)), "{error}");
}

proptest! {
    /// With a map in place of the register: each place has at most one packet, with its exact time.
    #[test]
    fn verdicts_are_those_of_a_plain_model(
        steps in prop::collection::vec((any::<bool>(), 0u64..8, 1u64..4, 0u64..300_000), 1..400),
        slots in prop::sample::select(vec![2u32, 4, 8]),
    ) {
        let params = TappedConQuestParams { slots, ..params() };
        let mut switch = TappedConQuest::new(params.clone()).expect("they are valid");
        let mut waiting: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut flows = ConQuest::new(params.sketch.clone()).expect("they are valid");
        let mut now = 100;
        for (comes, place, digest, wait) in steps {
            now += wait;
            // Not beyond the first wrap.
            if now >= 1 << 32 { break }
            let (key, place) = (packet(place, digest), place % u64::from(slots));
            if comes {
                let is_free = waiting.get(&place).is_none_or(|(_, came)| now - came > params.max_delay.0);
                if is_free {
                    waiting.insert(place, (digest, now));
                }
                prop_assert_eq!(switch.came(key, Nanos(now)), is_free);
                continue;
            }
            let came = waiting.get(&place).filter(|(other, _)| *other == digest).map(|(_, came)| *came);
            if came.is_some() {
                waiting.remove(&place);
            }
            let flow = digest;
            let expected = match came.map(|came| now - came).filter(|delay| *delay <= params.max_delay.0) {
                None => {
                    flows.record(flow, 700, Nanos(now));
                    Verdict::Unseen
                }
                Some(waited) => {
                    let estimate = flows.observe(flow, 700, Nanos(now - waited), Nanos(now), Estimator::Inner) as u32;
                    let delay = Nanos(waited);
                    match (delay > params.tau, estimate >= params.threshold) {
                        (false, _) => Verdict::Short { delay },
                        (true, false) => Verdict::Light { delay, estimate },
                        (true, true) => Verdict::Heavy { delay, estimate },
                    }
                }
            };
            prop_assert_eq!(switch.left(key, flow, 700, Nanos(now)), expected);
        }
    }
}
