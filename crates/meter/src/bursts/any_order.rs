//! Bursts where packets of several queues overtake one another.

use super::tests::{Summary, departures, tracked};
use proptest::prelude::*;
use queuescope_wire::Departure;
use std::collections::BTreeMap;

/// The definition where packets may overtake one another. A burst lasts until the last packet that waited for at least half of tau and came
/// before all packets that left since the end of the burst and waited for less (so it overtook none of them). The burst is over when a
/// packet of it that is still in the queue would have waited for longer than any other packet of it.
fn reference_in_any_order(departures: &[Departure], is_victim: &[bool], tau: u64) -> Vec<Summary> {
    let (mut bursts, mut ended, mut at) = (Vec::new(), None::<u64>, 0);
    let wait = |n: usize| departures[n].sojourn().0;
    let is_hit = |n: &usize| is_victim[*n] && wait(*n) >= tau;
    while let Some(first) = (at..departures.len()).find(is_hit) {
        let came = departures[first].enqueued.0;
        let start = ended.map_or(came, |ended| came.max(ended + 1));
        let (mut last, mut longest) = (first, wait(first));
        loop {
            let end = departures[last].dequeued.0;
            let is_part = |n: usize| {
                let between = &departures[last + 1..n];
                let mut calm = between.iter().filter(|other| other.sojourn().0 * 2 < tau);
                let came = departures[n].enqueued;
                wait(n) * 2 >= tau && came.0 <= end + tau && calm.all(|calm| came < calm.enqueued)
            };
            let is_over = |n: usize| departures[n].dequeued.0 > end + tau + longest;
            let next = (last + 1..departures.len()).find(|n| is_part(*n) || is_over(*n));
            let Some(next) = next.filter(|next| is_part(*next)) else { break };
            longest = (last + 1..=next).map(wait).filter(|wait| wait * 2 >= tau).fold(longest, u64::max);
            last = next;
        }
        at = last + 1;
        let members: Vec<_> = departures[..=last].iter().filter(|d| d.dequeued.0 >= start).collect();
        let mut flows = BTreeMap::new();
        members.iter().for_each(|d| *flows.entry(d.packet.flow.0).or_default() += d.packet.size.0);
        let hit = (first..=last).filter(is_hit).count() as u64;
        ended = Some(departures[last].dequeued.0);
        bursts.push((start, departures[last].dequeued.0, hit, members.len() as u64, flows));
    }
    bursts
}

/// All packets of several queues of an interface, in the order of departure.
fn merged(queues: &[Vec<(u64, u64, u32)>]) -> Vec<Departure> {
    let mut all: Vec<_> = queues.iter().flat_map(|queue| departures(queue)).collect();
    all.sort_by_key(|departure| departure.dequeued);
    all
}

#[test]
fn packets_that_pass_a_congested_class_do_not_end_its_burst() {
    // A class sends one of the packets that came together every 100 ns; others pass it without waiting.
    let slow: Vec<_> = (0..200).map(|_| (0, 100, 0)).collect();
    let fast: Vec<_> = (0..900).map(|n| (21, 1, 1 + n % 3)).collect();
    let all = merged(&[slow, fast]);
    let all_victims = vec![true; all.len()];
    let (bursts, _) = tracked(&all, &all_victims, 100, true);
    assert!(matches!(bursts.as_slice(), [(0, 19_900, 199, ..)]), "{bursts:?}");
    assert!(
        tracked(&all, &all_victims, 100, false).0.len() > 150,
        "analysed as one queue, each passing packet ends the burst"
    );
}

#[test]
fn a_short_congestion_of_another_class_does_not_end_a_burst() {
    // One class waits throughout. In another, a packet waits for less than half of tau, and the next one, which came later, for more.
    let slow: Vec<_> = (0..20).map(|_| (0, 100, 0)).collect();
    let fast = [(410, 60, 1), (10, 1, 1)];
    let all = merged(&[slow, fast.to_vec()]);
    for victims in [[true, true], [true, false]] {
        let is_victim: Vec<_> = all.iter().map(|departure| victims[departure.packet.flow.0 as usize]).collect();
        let (bursts, _) = tracked(&all, &is_victim, 100, true);
        assert!(matches!(bursts.as_slice(), [(0, 1_900, 19, 22, _)]), "{bursts:?}");
    }
}

proptest! {
    #[test]
    fn bursts_of_several_queues_match_the_definition(
        queues in prop::collection::vec(prop::collection::vec((0..60u64, 1..90u64, 0..5u32), 0..80), 1..4),
        tau in 2..200u64, victims in prop_oneof![Just(31), 0..31u32]
    ) {
        let all = merged(&queues);
        let is_victim: Vec<_> = all.iter().map(|departure| victims >> departure.packet.flow.0 & 1 == 1).collect();
        let (bursts, _) = tracked(&all, &is_victim, tau, true);
        prop_assert_eq!(bursts, reference_in_any_order(&all, &is_victim, tau));
    }
}
