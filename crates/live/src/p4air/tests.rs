//! The kernel's programs against the models of this workspace: the kernel runs them on frames that the tests make.

use super::*;
use crate::now;
use aya::programs::{TestRun, TestRunOptions};
use proptest::prelude::*;
use queuescope_sketch::{Fingerprint, FingerprintParams, FlowGroup};
use std::cell::RefCell;

/// The programs of tests: the fingerprint and the division of queues, step by step.
static STEPS: &[u8] = include_bytes_aligned!("../../bpf/fingerprint.bpf.o");
/// The verdicts of a classifier.
const NEXT: u32 = u32::MAX;
const SHOT: u32 = 2;

/// Loads programs that are attached nowhere, or prints why that is impossible.
fn loaded<T>(test: &str, load: impl FnOnce(&Btf) -> Result<T, ProbeError>) -> Option<T> {
    match types().and_then(|types| load(&types)) {
        Ok(loaded) => Some(loaded),
        Err(why) => {
            #[allow(clippy::disallowed_methods, reason = "the environment lists what tests must not skip")]
            let required = std::env::var("QUEUESCOPE_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|required| required == "tcx"), "{test}: {why}");
            println!("skipped: {test}: {why}");
            None
        }
    }
}

/// The programs of tests, whose steps are words.
struct Steps(Ebpf);

impl Steps {
    fn new(test: &str) -> Option<Self> {
        loaded(test, |types| {
            let mut loader = EbpfLoader::new();
            let mut bpf = loader.btf(Some(types)).load(STEPS).map_err(|why| refused("make the maps", &why))?;
            for name in ["fingerprint", "divide"] {
                let program: &mut SchedClassifier = program_of(&mut bpf, name)?;
                program.load().map_err(|why| refused("load", &why))?;
            }
            Ok(Self(bpf))
        })
    }

    fn run(&mut self, name: &str, step: [u32; 4]) -> u32 {
        let mut frame = vec![0; 14];
        step.iter().for_each(|word| frame.extend(word.to_ne_bytes()));
        frame.resize(64, 0);
        let options = TestRunOptions { data_in: Some(&frame), repeat: 1, ..TestRunOptions::new() };
        let program: &mut SchedClassifier = program_of(&mut self.0, name).expect("it is there");
        program.test_run(options).expect("it runs").return_value
    }

    fn division(&self) -> P4airDivision {
        let map: Array<&MapData, [u32; P4airDivision::WORDS]> = of(self.0.map("division")).expect("it is there");
        P4airDivision::from_words(&map.get(&0, 0).expect("it is there"))
    }

    fn divide_anew(&mut self, queues: u32) {
        let words = P4airDivision::new(queues).words();
        let mut map: Array<&mut MapData, [u32; P4airDivision::WORDS]> =
            of(self.0.map_mut("division")).expect("it is there");
        map.set(0, words, 0).expect("it fits");
    }
}

/// A packet: ticks since the last one, the depth that it found, and its share.
fn packets() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    // Phases of steady, growing and pulsing rates, so that each group is reached.
    let phase =
        (1u32..120, 0u32..40, 0u32..3, 1u32..60, 20usize..200).prop_map(|(gap, depth, growth, share, count)| {
            (0..count as u32).map(move |n| (gap + n % 3, depth + n * growth / 8, share)).collect::<Vec<_>>()
        });
    prop::collection::vec(phase, 1..8).prop_map(|phases| phases.concat())
}

#[test]
fn the_kernel_finds_the_groups_that_the_fingerprint_finds() {
    let Some(steps) = Steps::new("the_kernel_finds_the_groups_that_the_fingerprint_finds") else { return };
    let (steps, seen) = (RefCell::new(steps), RefCell::new([false; 6]));
    let params = FingerprintParams::default();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 200, ..ProptestConfig::default() });
    let check = |start: u32, with_syn: bool, rtt: u32, packets: &[(u32, u32, u32)]| {
        let mut steps = steps.borrow_mut();
        let params = FingerprintParams { default_rtt: Nanos(u64::from(rtt) << 10), ..params };
        // The clock may wrap.
        let mut ticks = u64::from(u32::MAX - 5_000) + u64::from(start);
        let at = |ticks: u64| Nanos(ticks << 10);
        steps.run("fingerprint", [u32::from(!with_syn), ticks as u32, rtt, 0]);
        let mut flow = match with_syn {
            true => Fingerprint::with_syn(at(ticks)),
            false => Fingerprint::without_handshake(at(ticks), &params),
        };
        for (gap, depth, share) in packets {
            ticks += u64::from(*gap);
            flow.on_packet(*depth, *share, at(ticks), &params);
            let group = steps.run("fingerprint", [2, ticks as u32, *depth, *share]);
            let expected = FlowGroup::ALL.iter().position(|one| *one == flow.group()).expect("it is one");
            seen.borrow_mut()[expected] = true;
            prop_assert_eq!(group as usize, expected, "{:?}", flow);
        }
        Ok(())
    };
    let random = runner
        .run(&(0u32..10_000, any::<bool>(), 1u32..2_000, packets()), |(start, with_syn, rtt, packets)| {
            check(start, with_syn, rtt, &packets)
        });
    random.unwrap_or_else(|error| panic!("{error}"));
    // A queue that grows in each round trip, and BBR's cycle.
    let growing: Vec<_> = (0..2_000u32).map(|n| (10, n / 40, 50)).collect();
    let cycle = [125, 75, 100, 100, 100, 100, 100, 100];
    let rounds = [100; 5].into_iter().chain(cycle.into_iter().cycle().take(48));
    let pulsing: Vec<_> =
        rounds.flat_map(|count| (0..count).map(move |n| (if n == 0 { 2_000 - count + 1 } else { 1 }, 3, 90))).collect();
    for packets in [growing, pulsing] {
        check(0, false, 1_000, &packets).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(seen.into_inner()[1..], [true; 5], "each group of TCP is reached");
}

/// What happens to the division, by the flow's number.
#[derive(Debug, Clone, Copy)]
enum Event {
    Moves(usize, u32),
    Ends(usize),
    Sends(usize),
}

/// A flow of the model.
#[derive(Debug, Clone, Copy)]
struct Placed {
    group: u32,
    queue: u32,
}

const NO_QUEUE: u32 = 255;
/// The first group of long-lived flows, and the number that stands for none.
const LONG_LIVED: u32 = 2;
const NONE: u32 = 6;

/// A packet of a flow, as the program handles it.
fn send(steps: &mut Steps, flow: &mut Placed) {
    if flow.group >= LONG_LIVED && steps.run("divide", [2, flow.group, flow.queue, 0]) == 0 {
        flow.queue = steps.run("divide", [3, flow.group, flow.queue, 0]);
    }
}

#[test]
fn queues_are_divided_so_that_each_has_about_as_many_flows() {
    let Some(steps) = Steps::new("queues_are_divided_so_that_each_has_about_as_many_flows") else { return };
    let steps = RefCell::new(steps);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 60, ..ProptestConfig::default() });
    let event = prop_oneof![
        3 => (0usize..40, LONG_LIVED..NONE).prop_map(|(flow, group)| Event::Moves(flow, group)),
        1 => (0usize..40).prop_map(Event::Ends),
        3 => (0usize..40).prop_map(Event::Sends),
    ];
    let result = runner.run(&(4u32..30, prop::collection::vec(event, 1..120)), |(queues, events)| {
        let steps = &mut *steps.borrow_mut();
        steps.divide_anew(queues);
        let mut flows: Vec<Option<Placed>> = vec![None; 40];
        for event in events {
            match event {
                Event::Moves(number, to) => {
                    let before = flows[number].unwrap_or(Placed { group: NONE, queue: NO_QUEUE });
                    if before.group == to {
                        continue;
                    }
                    steps.run("divide", [1, before.group, before.queue, 0]);
                    steps.run("divide", [0, before.group, to, 0]);
                    flows[number] = Some(Placed { group: to, queue: NO_QUEUE });
                }
                Event::Ends(number) => {
                    let Some(before) = flows[number].take() else { continue };
                    steps.run("divide", [1, before.group, before.queue, 0]);
                    steps.run("divide", [0, before.group, NONE, 0]);
                }
                Event::Sends(number) => {
                    if let Some(flow) = &mut flows[number] {
                        send(steps, flow);
                    }
                }
            }
            let division = steps.division();
            let mut next = 0;
            for group in P4airGroup::LONG_LIVED {
                let range = division.queues(group);
                prop_assert!(range.start == next && range.end > range.start && range.end <= queues, "{division:?}");
                next = range.end;
                let expected = flows.iter().flatten().filter(|flow| flow.group == group as u32).count();
                prop_assert_eq!(division.flows(group) as usize, expected);
            }
            prop_assert_eq!(next, queues);
            for (queue, count) in division.in_queues().iter().enumerate() {
                let expected = flows.iter().flatten().filter(|flow| flow.queue as usize == queue).count();
                prop_assert_eq!(*count as usize, expected, "{:?}", division);
            }
        }
        // Once each flow has sent some packets, it is in a queue of its group, and no queue of a group has many more flows than another.
        for _ in 0..8 {
            flows.iter_mut().flatten().for_each(|flow| send(steps, flow));
        }
        let division = steps.division();
        for flow in flows.iter().flatten() {
            let group = P4airGroup::ALL[flow.group as usize];
            prop_assert!(division.queues(group).contains(&flow.queue), "{flow:?} {division:?}");
        }
        let all = flows.iter().flatten().count() as u32;
        prop_assert!(division.flows_per_queue * queues >= all, "{division:?}");
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// P4air, attached nowhere, with queues if `real`.
fn detached(test: &str, real: bool) -> Option<P4air> {
    loaded(test, |types| {
        let rate = Rate::from_bits_per_second(12_000_000).expect("it is above zero");
        let (params, interface) = (P4airParams::new(rate), String::new());
        let until = Nanos(if real { u64::MAX } else { 0 });
        let mut p4air =
            P4air { bpf: made(types)?, params, namespace: 0, index: 0, framed: true, interface, until, shaped: None };
        p4air.write_division()?;
        p4air.configure_for(if real { shaper::HANDLE } else { 0 })?;
        p4air.load(types)?;
        Ok(p4air)
    })
}

fn run(p4air: &mut P4air, name: &str, frame: &[u8]) -> (u32, Vec<u8>) {
    let mut out = vec![0; frame.len() + 64];
    let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), repeat: 1, ..TestRunOptions::new() };
    let program: &mut SchedClassifier = program_of(&mut p4air.bpf, name).expect("it is there");
    let result = program.test_run(options).expect("it runs");
    out.truncate(result.data_size_out as usize);
    (result.return_value, out)
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// A frame of TCP from port 1 to port 2, or back, with correct checksums.
fn frame(back: bool, flags: u8, window: u16, options: &[u8], data: usize) -> Vec<u8> {
    let (src, dst) = if back { (2u8, 1u8) } else { (1, 2) };
    let length = (20 + 20 + options.len() + data) as u16;
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 9, 0, src, 10, 9, 0, dst]);
    let sum = !checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let at = frame.len();
    frame.extend([0, src, 0, dst, 0, 0, 0, 1, 0, 0, 0, 1, ((20 + options.len()) / 4 * 16) as u8, flags]);
    frame.extend(window.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(options);
    frame.resize(frame.len() + data, 7);
    let sum = !tcp_sum(&frame);
    frame[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The sum of TCP with its pseudo-header, which is all ones if the checksum is right.
fn tcp_sum(frame: &[u8]) -> u16 {
    let mut summed = frame[26..34].to_vec();
    summed.extend([0, 6]);
    summed.extend(((frame.len() - 34) as u16).to_be_bytes());
    summed.extend(&frame[34..]);
    checksum(&summed)
}

/// The sum in ones' complement.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |word: &[u8]| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0));
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn a_slow_start_ends_with_one_drop_and_an_end_frees_the_share() {
    let test = "a_slow_start_ends_with_one_drop_and_an_end_frees_the_share";
    for real in [true, false] {
        let Some(mut p4air) = detached(test, real) else { return };
        assert_eq!(run(&mut p4air, "p4air", &frame(false, SYN, 1000, &[], 0)).0, NEXT);
        assert_eq!(run(&mut p4air, "p4air", &frame(false, ACK, 1000, &[], 0)).0, NEXT);
        let flow = p4air.flows().expect("it can").remove(0);
        assert!(flow.group == P4airGroup::Mouse && flow.rtt.is_some() && flow.packets == 0, "{flow:?}");
        assert_eq!((flow.key.src, flow.key.dst_port, flow.key.protocol), (0x0a09_0001, 2, 6));
        // The handshake took some microseconds, so that its share is a packet.
        let data = frame(false, ACK, 1000, &[], 1448);
        let verdicts: Vec<_> = (0..4).map(|_| run(&mut p4air, "p4air", &data).0).collect();
        let counters = p4air.counters().expect("it can");
        assert_eq!(counters.slow_start_share + counters.slow_start_less, 1, "{counters:?}");
        assert_eq!(counters.moves, [1, 0, 0, 0]);
        let shots = verdicts.iter().filter(|verdict| **verdict == SHOT).count() as u64;
        assert_eq!((shots, counters.dropped), (counters.dropped, if real { counters.slow_start_share } else { 0 }));
        assert_eq!(p4air.division().expect("it can").flows(P4airGroup::DelayBased), 1);
        run(&mut p4air, "p4air", &frame(false, FIN | ACK, 1000, &[], 0));
        assert_eq!(p4air.division().expect("it can").flows(P4airGroup::DelayBased), 0);
        assert_eq!((p4air.flows().expect("it can"), p4air.counters().expect("it can").ended), (vec![], 1));
    }
}

#[test]
fn a_window_is_lowered_by_the_scale_of_the_handshake_and_the_checksum_stays_right() {
    let test = "a_window_is_lowered_by_the_scale_of_the_handshake_and_the_checksum_stays_right";
    for (real, scale) in [(true, Some(7u8)), (true, Some(2)), (true, None), (false, Some(7))] {
        let Some(mut p4air) = detached(test, real) else { return };
        // Delay-based flows, where each flow begins, get the action.
        p4air.params.actions = [P4airAction::Window; 4];
        p4air.configure_for(if real { shaper::HANDLE } else { 0 }).expect("it can");
        run(&mut p4air, "p4air", &frame(false, SYN, 1000, &[], 0));
        if let Some(scale) = scale {
            // The largest segment, two bytes of padding, the scale and a byte of padding.
            let options = [2, 4, 5, 0xb4, 1, 1, 3, 3, scale, 1, 1, 1];
            run(&mut p4air, "acks", &frame(true, SYN | ACK, 65_000, &options, 0));
        }
        send_above_share(&mut p4air);
        let ack = frame(true, ACK, 60_001, &[], 0);
        assert_eq!(tcp_sum(&ack), 0xffff);
        let (verdict, after) = run(&mut p4air, "acks", &ack);
        let counters = p4air.counters().expect("it can");
        let window = u16::from_be_bytes([after[48], after[49]]);
        assert_eq!((verdict, tcp_sum(&after), after.len()), (NEXT, 0xffff, ack.len()));
        match (real, scale) {
            (true, Some(scale)) => {
                assert_eq!((counters.lowered, counters.would_lower), (1, 0));
                // Two segments at least.
                let bytes = u64::from(window) << scale;
                assert!((2896 - 128..60_001 << scale).contains(&bytes), "{window} {scale}");
                let rest = |frame: &[u8]| [&frame[..48], &frame[52..]].concat();
                assert_eq!(rest(&after), rest(&ack));
            }
            (false, _) => assert_eq!((counters.would_lower, after == ack), (1, true)),
            (true, None) => assert_eq!((counters.unscaled, after == ack), (1, true)),
        }
    }
}

/// Ends the handshake of a flow that has begun after 20 ms, in which its share is 30 packets, and sends more. Returns how many packets were dropped.
fn send_above_share(p4air: &mut P4air) -> u64 {
    let since = now();
    while now() < since.saturating_add(Nanos(20_000_000)) {
        std::thread::yield_now();
    }
    run(p4air, "p4air", &frame(false, ACK, 1000, &[], 0));
    let data = frame(false, ACK, 1000, &[], 1448);
    let mut dropped = 0;
    while p4air.counters().expect("it can").above_share == 0 {
        assert!(now() < since.saturating_add(Nanos(60_000_000_000)), "the flow never sends more than its share");
        dropped += (0..100).filter(|_| run(p4air, "p4air", &data).0 == SHOT).count() as u64;
    }
    dropped
}

#[test]
fn packets_above_the_share_are_dropped_or_delayed_by_the_action() {
    let test = "packets_above_the_share_are_dropped_or_delayed_by_the_action";
    for action in [P4airAction::Drop, P4airAction::Delay, P4airAction::Nothing] {
        let Some(mut p4air) = detached(test, true) else { return };
        p4air.params.actions = [action; 4];
        p4air.configure_for(shaper::HANDLE).expect("it can");
        run(&mut p4air, "p4air", &frame(false, SYN, 1000, &[], 0));
        let shots = send_above_share(&mut p4air);
        let counters = p4air.counters().expect("it can");
        let of_action = shots - counters.slow_start_share;
        assert_eq!(shots, counters.dropped, "{counters:?}");
        match action {
            // The first packet above the share of each round trip.
            P4airAction::Drop => assert_eq!((of_action, counters.delayed), (counters.above_share, 0)),
            P4airAction::Delay => assert!(of_action == 0 && counters.delayed >= counters.above_share, "{counters:?}"),
            _ => assert_eq!((of_action, counters.delayed), (0, 0)),
        }
    }
}

#[test]
fn frames_that_are_not_plain_or_cut_off_pass_as_ants() {
    let Some(mut p4air) = detached("frames_that_are_not_plain_or_cut_off_pass_as_ants", true) else { return };
    let whole = frame(false, ACK, 1000, &[], 100);
    let mut arp = whole.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut fragment = whole.clone();
    fragment[20] = 0x20;
    let mut with_options = whole.clone();
    with_options[14] = 0x46;
    for frame in [&arp, &fragment, &with_options] {
        let (verdict, after) = run(&mut p4air, "p4air", frame);
        assert_eq!((verdict, &after), (NEXT, frame));
        assert_eq!(run(&mut p4air, "acks", frame).0, NEXT);
    }
    assert_eq!(p4air.counters().expect("it can").other, 3);
    // The kernel runs no program on a frame that does not have its whole IP header.
    for length in 34..whole.len() {
        for name in ["p4air", "acks"] {
            let (verdict, after) = run(&mut p4air, name, &whole[..length]);
            assert!([NEXT, SHOT].contains(&verdict) && after == whole[..length], "{length}");
        }
    }
}

#[test]
fn a_full_line_of_the_table_counts_flows_without_room() {
    let Some(mut p4air) = detached("a_full_line_of_the_table_counts_flows_without_room", false) else { return };
    // Ten times as many flows as there is room for.
    for port in 0..80_000u32 {
        let mut syn = frame(false, SYN, 1000, &[], 0);
        syn[29] = (port >> 14) as u8;
        syn[34..36].copy_from_slice(&(port as u16 & 0x3fff).to_be_bytes());
        run(&mut p4air, "p4air", &syn);
    }
    let counters = p4air.counters().expect("it can");
    let flows = p4air.flows().expect("it can").len() as u64;
    assert_eq!(flows + counters.full, 80_000, "{counters:?}");
    assert_eq!(flows, 8 * 1024);
    assert_eq!(u64::from(p4air.division().expect("it can").flows(P4airGroup::Mouse)), flows);
}
