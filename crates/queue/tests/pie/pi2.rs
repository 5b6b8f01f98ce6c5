//! PI2 by hand.

use crate::pie::{MS, Told, fire, outlet, packet};
use queuescope_queue::{Discipline, DropReason, Limit, Pi2, Pi2Params};
use queuescope_wire::{Ecn, Nanos};

/// Packets of 1000 bytes wait so that the one that leaves next has waited 120 ms, and updates follow.
fn waiting(params: Pi2Params) -> (Pi2, Told) {
    let mut queue = Pi2::new(Pi2Params { limit: Limit::None, ..params }, outlet(8_000_000));
    let mut told = Told::default();
    for id in 0..100 {
        queue.enqueue(packet(id, 1000, Ecn::NotEct), Nanos(0), &mut told);
    }
    queue.dequeue(Nanos(20 * MS), &mut told);
    (queue, told)
}

#[test]
fn the_base_moves_linearly_and_is_squared() {
    let (mut queue, _) = waiting(Pi2Params::default());
    // 0.3125 * (20 - 20 ms) + 3.125 * (20 - 0 ms).
    fire(&mut queue, Nanos(32 * MS));
    assert!((queue.base_probability() - 0.0625).abs() < 1e-12);
    assert!((queue.drop_probability() - 0.0625 * 0.0625).abs() < 1e-12);
    assert!((queue.scalable_probability() - 0.125).abs() < 1e-12);
    let mut told = Told::default();
    queue.dequeue(Nanos(60 * MS), &mut told);
    // 0.3125 * (60 - 20 ms) + 3.125 * (60 - 20 ms) more.
    fire(&mut queue, Nanos(64 * MS));
    assert!((queue.base_probability() - (0.0625 + 0.0125 + 0.125)).abs() < 1e-12);
    // The base stops where the classic probability is 25 %.
    queue.dequeue(Nanos(900 * MS), &mut told);
    fire(&mut queue, Nanos(1_000 * MS));
    assert_eq!((queue.base_probability(), queue.drop_probability(), queue.scalable_probability()), (0.5, 0.25, 1.0));
}

#[test]
fn classic_and_scalable_packets_meet_their_own_probabilities() {
    // One update, then none: p' is 0.0625 * 4 = 0.25.
    let (mut queue, _) = waiting(Pi2Params { beta: 12.5, ..Pi2Params::default() });
    fire(&mut queue, Nanos(32 * MS));
    assert!((queue.base_probability() - 0.25).abs() < 1e-12);
    let mut told = Told::default();
    for id in 0..30_000u64 {
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][(id % 3) as usize];
        queue.enqueue(packet(id, 1000, ecn), Nanos(33 * MS), &mut told);
    }
    let drops = told.drops(DropReason::Early);
    let marks = |kind: u64| told.marked.iter().filter(|(id, _)| id % 3 == kind).count();
    // 10 000 of each: 625 +- 24 drops and classic marks, 5 000 +- 50 scalable marks; four standard deviations.
    assert!((528..=722).contains(&drops), "{drops}");
    assert!((528..=722).contains(&marks(1)), "{}", marks(1));
    assert!((4_800..=5_200).contains(&marks(2)), "{}", marks(2));
    assert!(told.dropped.iter().all(|dropped| dropped.packet.id.0 % 3 == 0));
}

#[test]
fn without_ecn_all_are_dropped_as_classic() {
    let (mut queue, _) = waiting(Pi2Params { beta: 12.5, ecn: false, ..Pi2Params::default() });
    fire(&mut queue, Nanos(32 * MS));
    let mut told = Told::default();
    for id in 0..10_000u64 {
        queue.enqueue(packet(id, 1000, Ecn::Ect1), Nanos(33 * MS), &mut told);
    }
    assert!((528..=722).contains(&told.drops(DropReason::Early)));
    assert!(told.marked.is_empty());
}
