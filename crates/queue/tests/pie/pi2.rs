//! PI2 against values computed by hand.

use crate::pie::{MS, RecordingSink, fire, outlet, packet};
use queuescope_queue::{Discipline, DropReason, Limit, Pi2, Pi2Params};
use queuescope_wire::{Ecn, Nanos};

/// A queue of 99 packets of 1000 bytes. The last sojourn time is 20 ms, and no update has passed yet.
fn queue_at_target(params: Pi2Params) -> (Pi2, RecordingSink) {
    let mut queue = Pi2::new(Pi2Params { limit: Limit::None, ..params }, outlet(8_000_000));
    let mut sink = RecordingSink::default();
    for id in 0..100 {
        queue.enqueue(packet(id, 1000, Ecn::NotEct), Nanos(0), &mut sink);
    }
    queue.dequeue(Nanos(20 * MS), &mut sink);
    (queue, sink)
}

#[test]
fn the_base_moves_linearly_and_is_squared() {
    let (mut queue, _) = queue_at_target(Pi2Params::default());
    // 0.3125 * (20 - 20 ms) + 3.125 * (20 - 0 ms).
    fire(&mut queue, Nanos(32 * MS));
    assert!((queue.base_probability() - 0.0625).abs() < 1e-12);
    assert!((queue.drop_probability() - 0.0625 * 0.0625).abs() < 1e-12);
    assert!((queue.scalable_probability() - 0.125).abs() < 1e-12);
    let mut sink = RecordingSink::default();
    queue.dequeue(Nanos(60 * MS), &mut sink);
    // 0.3125 * (60 - 20 ms) + 3.125 * (60 - 20 ms) more.
    fire(&mut queue, Nanos(64 * MS));
    assert!((queue.base_probability() - (0.0625 + 0.0125 + 0.125)).abs() < 1e-12);
    // The base stops where the classic probability is 25 %.
    queue.dequeue(Nanos(900 * MS), &mut sink);
    fire(&mut queue, Nanos(1_000 * MS));
    assert_eq!((queue.base_probability(), queue.drop_probability(), queue.scalable_probability()), (0.5, 0.25, 1.0));
}

#[test]
fn classic_and_scalable_packets_have_their_own_probabilities() {
    // One update with four times the default beta: p' is 0.0625 * 4 = 0.25.
    let (mut queue, _) = queue_at_target(Pi2Params { beta: 12.5, ..Pi2Params::default() });
    fire(&mut queue, Nanos(32 * MS));
    assert!((queue.base_probability() - 0.25).abs() < 1e-12);
    let mut sink = RecordingSink::default();
    for id in 0..30_000u64 {
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][(id % 3) as usize];
        queue.enqueue(packet(id, 1000, ecn), Nanos(33 * MS), &mut sink);
    }
    let drops = sink.drop_count(DropReason::Early);
    let marks = |kind: u64| sink.marked.iter().filter(|(id, _)| id % 3 == kind).count();
    // 10 000 packets of each codepoint: 625 +- 24 drops, 625 +- 24 classic marks, 5 000 +- 50 scalable marks. The test
    // allows four standard deviations.
    assert!((528..=722).contains(&drops), "{drops}");
    assert!((528..=722).contains(&marks(1)), "{}", marks(1));
    assert!((4_800..=5_200).contains(&marks(2)), "{}", marks(2));
    assert!(sink.dropped.iter().all(|dropped| dropped.packet.id.0 % 3 == 0));
}

#[test]
fn without_ecn_all_packets_are_dropped_with_the_classic_probability() {
    let (mut queue, _) = queue_at_target(Pi2Params { beta: 12.5, ecn: false, ..Pi2Params::default() });
    fire(&mut queue, Nanos(32 * MS));
    let mut sink = RecordingSink::default();
    for id in 0..10_000u64 {
        queue.enqueue(packet(id, 1000, Ecn::Ect1), Nanos(33 * MS), &mut sink);
    }
    assert!((528..=722).contains(&sink.drop_count(DropReason::Early)));
    assert!(sink.marked.is_empty());
}
