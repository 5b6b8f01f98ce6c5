//! The shares of clients at one bottleneck of 50 Mb/s. As in figure 4, client 0 sends at R0 and client 1 at 40 Mb/s.

use super::{Clients, abc, goodputs, switch};
use crate::pipelines::driver::{Switch, headers, packet};
use proptest::prelude::*;
use queuescope_queue::{
    Abc, AbcParams, ActivityAqm, ActivityAqmParams, Aggregates, Contract, DropReason, Egress, Headers, Host, Ingress,
    MeterParams, Others, Pipeline, Port, QueueLength, RateMeter, Sink, activity,
};
use queuescope_wire::{Class, Departure, Nanos, Packet, Rate};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

/// The capacity of the bottleneck, in Mb/s of payload.
const CAPACITY: f64 = 4170.0 * super::PAYLOAD / 1e6;

/// The goodputs from 1 s to 5 s at constant rates. The meters are unbiased from the start, so this is the steady state.
fn steady(params: AbcParams, rates: &[f64]) -> Vec<f64> {
    measured(abc(params), rates, 5)
}

fn measured<P: Pipeline>(mut switch: Switch<P>, rates: &[f64], end: u64) -> Vec<f64> {
    let (from, to) = (Nanos(SECOND), Nanos(end * SECOND));
    Clients::new(rates, 5).send(&mut switch, to);
    switch.run_until(to);
    switch.check();
    goodputs(&switch, rates.len() as u32, from, to)
}

/// The goodputs with tail drop and the same buffer.
fn without_abc(rates: &[f64]) -> Vec<f64> {
    steady(AbcParams { ports: Vec::new(), ..AbcParams::default() }, rates)
}

#[test]
fn without_abc_goodput_is_in_proportion_to_the_sending_rate() {
    for rate in [20.0, 40.0, 60.0, 80.0, 100.0] {
        let goodput = without_abc(&[rate, 40.0]);
        let expected = CAPACITY * rate / (rate + 40.0);
        // Arrivals at constant rates find the full queue in patterns. The proportion is exact only for random arrivals.
        assert!((goodput[0] - expected).abs() < 3.0, "{rate}: {goodput:?}, not {expected}");
        assert!((goodput[0] + goodput[1] - CAPACITY).abs() < 0.3, "{goodput:?}");
    }
}

#[test]
fn with_abc_the_heavier_client_gets_less() {
    for rate in [5.0, 10.0, 20.0, 30.0, 50.0, 60.0, 80.0, 100.0] {
        let goodput = steady(AbcParams::default(), &[rate, 40.0]);
        let least = f64::min(rate, 40.0);
        let (lighter, heavier) = if rate < 40.0 { (goodput[0], goodput[1]) } else { (goodput[1], goodput[0]) };
        // Nearly all packets of the lighter client pass. The heavier client gets the rest.
        assert!(lighter > 0.9 * least, "{rate}: {goodput:?}");
        assert!(heavier < CAPACITY - 0.9 * least + 0.3, "{rate}: {goodput:?}");
        // The link is full.
        let full = CAPACITY.min(rate + 40.0);
        assert!((lighter + heavier - full).abs() < 0.5, "{rate}: {goodput:?}");
    }
    let equal = steady(AbcParams::default(), &[40.0, 40.0]);
    assert!((equal[0] - equal[1]).abs() < 4.0, "{equal:?}");
}

/// A light client among three heavy ones loses almost nothing, although the load is three times the capacity.
#[test]
fn a_light_client_is_protected() {
    let rates = [2.0, 50.0, 50.0, 50.0];
    let goodput = steady(AbcParams::default(), &rates);
    assert!(goodput[0] > 1.99, "{goodput:?}");
    let without = without_abc(&rates);
    assert!(without[0] < 0.8, "{without:?}");
}

#[test]
fn a_higher_reference_rate_earns_more() {
    let contract =
        |kbps: u64| Contract { reference: Rate::from_bits_per_second(kbps * 1000).unwrap(), class: Class(0) };
    let aggregates = Aggregates {
        contracts: vec![contract(20), contract(10)],
        hosts: vec![(Host(0), 0), (Host(1), 1)],
        others: Others::Together(contract(10)),
    };
    // At 60 and 40 Mb/s the second client would be favoured. With twice the reference rate, the first counts as 30
    // Mb/s.
    let goodput = steady(AbcParams { aggregates, ..AbcParams::default() }, &[60.0, 40.0]);
    assert!(goodput[0] > 44.0 && goodput[1] < 5.0, "{goodput:?}");
}

/// ABC with the exact activities of the meter, which a header cannot carry.
struct Unrounded {
    aqm: ActivityAqm,
    meters: BTreeMap<u32, RateMeter>,
    queued: u64,
}

impl Pipeline for Unrounded {
    fn ingress(
        &mut self,
        _: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        _: &mut impl Sink,
    ) -> Ingress {
        let meter = self.meters.entry(headers.source.0).or_default();
        let rate = meter.record(packet.size, now, &MeterParams::default());
        let activity = activity(rate, Contract::default().reference);
        let params = ActivityAqmParams::default();
        if !self.aqm.accepts(activity, self.queued, &params) {
            return Ingress::Drop(DropReason::Activity);
        }
        if self.queued < 24 {
            self.aqm.accepted(activity, now, &params);
            self.queued += 1;
        }
        Ingress::Enqueue(0)
    }

    fn egress(&mut self, _: Port, departure: &mut Departure, _: &mut Headers, _: &mut impl Sink) -> Egress {
        self.queued = departure.backlog_out.packets;
        Egress::Send
    }
}

fn unrounded() -> Switch<Unrounded> {
    switch(Unrounded { aqm: ActivityAqm::default(), meters: BTreeMap::new(), queued: 0 })
}

/// With 8 fraction bits, rounding the activity has no visible effect on the shares.
#[test]
fn eight_fraction_bits_give_the_same_shares_as_exact_activities() {
    for rates in [[30.0, 40.0], [38.0, 40.0], [40.0, 40.0], [42.0, 40.0]] {
        let exact = measured(unrounded(), &rates, 5);
        // Equal rates get unequal shares by chance.
        for (bits, tolerance) in [(8, if rates[0] == rates[1] { 4.0 } else { 0.3 }), (4, 4.0)] {
            let goodput = steady(AbcParams { fraction_bits: bits, ..AbcParams::default() }, &rates);
            assert!((goodput[0] - exact[0]).abs() < tolerance, "{bits} bits: {goodput:?}, not {exact:?}");
        }
    }
    // Integers do not distinguish 38 from 40 Mb/s: the heavier client gets as much as the lighter one.
    let integers = steady(AbcParams { fraction_bits: 0, ..AbcParams::default() }, &[38.0, 40.0]);
    assert!((integers[0] - integers[1]).abs() < 4.0, "{integers:?}");
}

/// The shares with a register for the queue length, as on a software switch, are close to those with the exact length.
#[test]
fn a_register_for_the_queue_length_changes_shares_little() {
    for rates in [[30.0, 40.0], [60.0, 40.0], [100.0, 40.0]] {
        let counted = steady(AbcParams::default(), &rates);
        let register = steady(AbcParams { queue_length: QueueLength::Register, ..AbcParams::default() }, &rates);
        assert!((counted[0] - register[0]).abs() < 2.0, "{rates:?}: {counted:?}, {register:?}");
    }
}

/// Prints the tables of `docs/explanation/abc.md`. Each figure is from a minute of simulated time.
#[test]
#[ignore = "prints tables, for a minute"]
fn tables() {
    let minute = |params: AbcParams, rates: &[f64]| measured(abc(params), rates, 61);
    println!("R0: without ABC; with ABC; with the register");
    for rate in [5.0, 10.0, 20.0, 30.0, 38.0, 40.0, 42.0, 45.0, 50.0, 60.0, 80.0, 100.0] {
        let rates = [rate, 40.0];
        let without = minute(AbcParams { ports: Vec::new(), ..AbcParams::default() }, &rates);
        let with = minute(AbcParams::default(), &rates);
        let register = minute(AbcParams { queue_length: QueueLength::Register, ..AbcParams::default() }, &rates);
        println!("{rate}: {without:.1?} {with:.1?} {register:.1?}");
    }
    println!("R0: unrounded; 8, 6, 4, 2, 0 bits");
    for rate in [30.0, 36.0, 38.0, 39.0, 40.0, 41.0, 42.0, 44.0, 50.0] {
        let exact = measured(unrounded(), &[rate, 40.0], 61);
        let rounded = [8, 6, 4, 2, 0]
            .map(|bits| minute(AbcParams { fraction_bits: bits, ..AbcParams::default() }, &[rate, 40.0])[0]);
        println!("{rate}: {:.1} {rounded:.1?}", exact[0]);
    }
    println!("least time: goodput of a client that starts a second after one of 40 Mb/s, in its first 0.1, 1 and 3 s");
    for least_time in [1_000_000, 30_000_000, 300_000_000] {
        let meter = MeterParams { least_time: Nanos(least_time), ..MeterParams::default() };
        let mut node = abc(AbcParams { meter, ..AbcParams::default() });
        Clients::new(&[40.0], 5).send(&mut node, Nanos(5 * SECOND));
        for n in 0..4 * 3454 {
            let time = Nanos(SECOND + n * SECOND / 3454);
            node.offer(time, 0, packet(1_000_000 + n, 1, 1500), headers(1, 0));
        }
        node.run_until(Nanos(5 * SECOND));
        let first =
            [SECOND / 10, SECOND, 3 * SECOND].map(|time| goodputs(&node, 2, Nanos(SECOND), Nanos(SECOND + time))[1]);
        println!("{} ms: {first:.1?}", least_time / 1_000_000);
    }
}

proptest! {
    /// The counted length is exact and stays within the buffer. The register is too high only after the queue has
    /// dropped.
    #[test]
    fn the_counted_length_is_exact(
        arrivals in prop::collection::vec((0..500_000u64, 0..4u32), 0..300), buffer in 1..40u64, register in any::<bool>()
    ) {
        let queue_length = if register { QueueLength::Register } else { QueueLength::Counted { buffer: buffer.min(24) } };
        let mut switch = abc(AbcParams { queue_length, ..AbcParams::default() });
        let mut time = 0;
        for (id, (gap, host)) in arrivals.into_iter().enumerate() {
            time += gap;
            switch.offer(Nanos(time), 0, packet(id as u64, host, 1500), headers(host, 0));
            let drops = switch.log.dropped_for(DropReason::Overlimit);
            switch.run_until(Nanos(time));
            let (known, waiting) = (switch.program.queue_length(Port(0)), switch.backlog(0).packets);
            if !register {
                prop_assert_eq!(known, waiting);
                prop_assert!(waiting <= buffer);
            } else if switch.log.dropped_for(DropReason::Overlimit) > drops {
                prop_assert!(known > waiting);
            } else {
                prop_assert!(known >= waiting);
            }
        }
        switch.run_out();
        let stats = *switch.program.stats();
        prop_assert_eq!(stats.metered, stats.accepted + stats.dropped + stats.overlimit);
        prop_assert_eq!(stats.dropped, switch.log.dropped_for(DropReason::Activity) as u64);
        let by_queue = switch.log.dropped.len() as u64 - stats.dropped - stats.overlimit;
        prop_assert_eq!(stats.accepted, switch.log.sent.len() as u64 + by_queue);
        prop_assert!(register || by_queue == 0);
        let ids = switch.log.sent.iter().map(|sent| sent.departure.packet.id.0).collect::<Vec<_>>();
        prop_assert!(ids.is_sorted());
    }
}

#[test]
fn two_runs_give_the_same_result() {
    let run = || {
        let mut switch = abc(AbcParams::default());
        Clients::new(&[60.0, 40.0], 8).send(&mut switch, Nanos(2 * SECOND));
        switch.run_out();
        (*switch.program.stats(), switch.program.average_activity(Port(0)))
    };
    let (stats, average): (_, Option<f64>) = run();
    assert_eq!((stats, average), run());
    // Both clients' activities are near log2 of 4000 to 6000.
    assert!((11.5..12.8).contains(&average.unwrap()), "{average:?}");
    assert!(Abc::new(AbcParams::default(), &[]).is_err());
}
