//! The guarantee of cuts, in a simulation of hosts, messages and faults: all that happens follows from a seed.

mod network;

use network::{Fault, Fleet, Outcome};

/// Seeds for each set of faults.
const SEEDS: u64 = 400;

fn run(fault: Fault, seeds: std::ops::Range<u64>) -> Outcome {
    seeds.map(|seed| Fleet::new(seed, fault).run()).sum()
}

#[test]
fn no_effect_is_in_a_cut_without_its_cause() {
    let outcome = run(Fault::None, 0..SEEDS);
    assert_eq!(outcome.violations, 0, "{outcome:?}");
    // The simulation had what the guarantee is about: cuts with effects of other hosts, and faults.
    assert!(outcome.cuts > 20 * SEEDS && outcome.effects > 100 * SEEDS, "{outcome:?}");
    assert!(outcome.void > SEEDS && outcome.crashes > SEEDS && outcome.missing > SEEDS, "{outcome:?}");
    assert_eq!(outcome.frozen_at_the_end, 0, "{outcome:?}");
}

/// Coordinators and members with a mistake: the simulation must find each.
#[test]
fn mistakes_are_found() {
    let mistakes = [
        Fault::ThawsOneEarly,
        Fault::ThawsEachEarly,
        Fault::IgnoresLapses,
        Fault::TakesOldReplies,
        Fault::DoesNotFreeze,
        Fault::HasNoLease,
    ];
    for mistake in mistakes {
        let outcome = run(mistake, 0..SEEDS);
        assert!(outcome.violations > 0 || outcome.frozen_at_the_end > 0, "{mistake:?} was not found: {outcome:?}");
    }
}
