//! Bursts where packets of several queues overtake one another.

use super::tests::{Told, departures, tracked};
use proptest::prelude::*;
use queuescope_wire::Departure;
use std::collections::BTreeMap;

/// The definition where packets may overtake one another. What left between two packets of a burst that waited for long is part
/// of it if all of that overtook the second.
fn reference_in_any_order(departures: &[Departure], tau: u64) -> Vec<Told> {
    let (mut bursts, mut ended, mut at) = (Vec::new(), None::<u64>, 0);
    let wait = |n: usize| departures[n].sojourn().0;
    while let Some(first) = (at..departures.len()).find(|n| wait(*n) >= tau) {
        let came = departures[first].enqueued.0;
        let start = ended.map_or(came, |ended| came.max(ended + 1));
        let (mut last, mut longest) = (first, wait(first));
        at = loop {
            let end = departures[last].dequeued.0;
            let is_over = |n: usize| wait(n) * 2 < tau && departures[n].dequeued.0 > end + tau + longest;
            let Some(next) = (last + 1..departures.len()).find(|n| wait(*n) * 2 >= tau || is_over(*n)) else {
                break departures.len();
            };
            let between = &departures[last + 1..next];
            let overtook = between.iter().all(|other| other.enqueued > departures[next].enqueued);
            if wait(next) * 2 < tau || !overtook || departures[next].enqueued.0 > end + tau {
                break next;
            }
            (last, longest) = (next, longest.max(wait(next)));
        };
        let members: Vec<_> = departures[..=last].iter().filter(|d| d.dequeued.0 >= start).collect();
        let mut flows = BTreeMap::new();
        members.iter().for_each(|d| *flows.entry(d.packet.flow.0).or_default() += d.packet.size.0);
        let hit = (first..=last).filter(|n| wait(*n) >= tau).count() as u64;
        ended = Some(departures[last].dequeued.0);
        bursts.push((start, departures[last].dequeued.0, hit, members.len() as u64, flows));
    }
    bursts
}

/// All packets of several queues on one interface, in the order of departure.
fn merged(queues: &[Vec<(u64, u64, u32)>]) -> Vec<Departure> {
    let mut all: Vec<_> = queues.iter().flat_map(|queue| departures(queue)).collect();
    all.sort_by_key(|departure| departure.dequeued);
    all
}

#[test]
fn what_passes_a_class_that_is_congested_does_not_cut_its_burst() {
    // A class sends a packet each 100 ns of those that came at once; others pass it without a wait.
    let slow: Vec<_> = (0..200).map(|_| (0, 100, 0)).collect();
    let fast: Vec<_> = (0..900).map(|n| (21, 1, 1 + n % 3)).collect();
    let all = merged(&[slow, fast]);
    let everybody = vec![true; all.len()];
    let (bursts, _) = tracked(&all, &everybody, 100, true);
    assert!(matches!(bursts.as_slice(), [(0, 19_900, 199, ..)]), "{bursts:?}");
    assert!(
        tracked(&all, &everybody, 100, false).0.len() > 150,
        "as if there were one queue, it is cut by each that passes"
    );
}

proptest! {
    #[test]
    fn bursts_of_several_queues_are_those_of_the_definition(
        queues in prop::collection::vec(prop::collection::vec((0..60u64, 1..90u64, 0..5u32), 0..80), 1..4),
        tau in 2..200u64
    ) {
        let all = merged(&queues);
        let (bursts, _) = tracked(&all, &vec![true; all.len()], tau, true);
        prop_assert_eq!(bursts, reference_in_any_order(&all, tau));
    }
}
