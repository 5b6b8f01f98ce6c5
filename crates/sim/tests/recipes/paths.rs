//! Path conformance.

use crate::recipes::networks::{MS, checks, stray};
use crate::recipes::watch::{host, log, run, seeds, watch};
use queuescope_log::Number;

/// Among the checked switches the right one raises an alert within a millisecond; and the packets are the right ones.
fn strays_are_found(count: u32) {
    let checks = checks(count);
    for seed in seeds() {
        let network = stray(seed, true, &checks);
        let (switch, hosts) = (network.switches[0], network.hosts.clone());
        let seen = watch(network);
        assert_eq!(seen.names(), [format!("path_{}", switch.0)], "seed {seed}");
        let expression = format!("switch_2 == {} and hops >= 2", switch.0);
        let flows = seen.ask(&expression, (0, u64::MAX), &["src_ip", "dst_ip"], &["count", "min(ts)"]);
        let [(ends, values)] = flows.as_slice() else { panic!("seed {seed}: {flows:?}") };
        assert_eq!((host(ends[0]), host(ends[1])), hosts[0], "seed {seed}");
        assert!(values[0] > 0 && seen.alerts[0].1.0.saturating_sub(values[1]) <= MS, "seed {seed}: {flows:?}");
        let clean = watch(stray(seed, false, &checks));
        assert!(clean.alerts.is_empty() && clean.log.snapshot().len() > 50, "seed {seed}: {:?}", clean.alerts);
    }
}

#[test]
fn one_check_finds_strays() {
    strays_are_found(1);
}

#[test]
fn ten_checks_find_strays() {
    strays_are_found(10);
}

/// The same with a hundred checks, over all seeds one after another in one log, so that the checks are added once. Runs without the
/// fault raise no alert; with it the right one of the hundred has a higher count each time.
#[test]
fn a_hundred_checks_find_strays() {
    let (checks, log) = (checks(100), log());
    let defined = checks.apply(&log).unwrap_or_else(|error| panic!("{error}"));
    let mut monitor = defined.monitor(&log).unwrap_or_else(|error| panic!("{error}"));
    let (mut later, mut strays) = (0, 0);
    for (seed, fault) in seeds().map(|seed| (seed, false)).chain(seeds().map(|seed| (seed, true))) {
        let mut network = stray(seed, fault, &checks);
        let mut highest = strays;
        run(&mut network.simulation, (network.end, network.look), later, (&log, &mut monitor), |name, alert| {
            assert_eq!(name, format!("path_{}", network.switches[0].0), "seed {seed}");
            let Number::Unsigned(value) = alert.value else { panic!("a count is whole") };
            highest = highest.max(value);
        });
        assert_eq!(fault, highest > strays, "seed {seed}");
        (later, strays) = (later + network.end.0 + MS, highest);
    }
}
