//! The kernel runs the program on frames that the tests make, without a network.

use super::super::acting::{Action, Weigh};
use super::super::{Condition, Device, Field, Never, ProbeParams, types};
use super::*;
use aya::programs::{TestRun, TestRunOptions};
use proptest::prelude::*;
use queuescope_queue::{Curve, Response, Step, Steps};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{ByteCount, FlowKey, Granularity, Nanos, Rate};

/// The verdicts of a classifier: go on with the packet, and drop it.
const NEXT: u32 = u32::MAX;
const SHOT: u32 = 2;

/// A probe that is attached nowhere, in a state as if a packet had left its queue.
struct DetachedProbe(Probe);

impl DetachedProbe {
    fn new(name: &str) -> Option<Self> {
        let made = types().and_then(|types| Probe::load(Device::default(), &types, ProbeParams::default()));
        match made.and_then(|mut probe| probe.act(&Acting::default()).map(|()| probe)) {
            Ok(probe) => Some(Self(probe)),
            Err(why) => {
                #[allow(clippy::disallowed_methods, reason = "the environment lists what tests must not skip")]
                let required = std::env::var("QUEUESCOPE_REQUIRE").unwrap_or_default();
                assert!(!required.split(',').any(|required| required == "tcx"), "{name}: {why}");
                println!("skipped: {name}: {why}");
                None
            }
        }
    }

    /// Sets the action, the queue's depth in bytes, and whether its packets are frames or bare IP packets.
    fn set_action(&mut self, framed: bool, depth: u64, acting: &Acting) {
        self.0.device.framed = framed;
        self.0.act(acting).expect("it can");
        let mut standing: Array<&mut MapData, [u64; 6]> = of(self.0.bpf.map_mut("standing")).expect("it is there");
        standing.set(0, [u64::MAX, depth, 0, 0, 0, 1], 0).expect("it is there");
    }

    /// Adds a flow that is acted on until `until`.
    fn add_victim(&mut self, digest: u64, until: u64, weight: u64, share: u64) {
        let victims = of(self.0.bpf.map_mut("victims"));
        let mut victims: HashMap<&mut MapData, u64, [u64; Victim::WORDS]> = victims.expect("it is there");
        victims.insert(digest, [until, weight, share, 0, 0], 0).expect("there is room");
    }

    /// Runs the program `times` times on a packet of `segments` segments; returns the verdict and the changed packet.
    fn run(&mut self, frame: &[u8], segments: u32, times: u32) -> (u32, Vec<u8>) {
        let mut out = vec![0; frame.len() + 64];
        let mut context = [0; 192];
        context[164..168].copy_from_slice(&segments.to_ne_bytes());
        let program: &mut SchedClassifier = program_of(&mut self.0.bpf, "act").expect("it is there");
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ctx_in: Some(&context),
            repeat: times,
            ..TestRunOptions::new()
        };
        let result = program.test_run(options).expect("it runs");
        out.truncate(result.data_size_out as usize);
        (result.return_value, out)
    }
}

/// Chooses every packet of every flow for this action.
fn always(action: Action) -> Acting {
    Acting { action, weigh: Weigh::Queue, dry: false, ..Acting::default() }
}

const MARK: Action = Action::Respond(Response::MarkOnly);

/// A frame with `tags` VLAN tags and these ECN bits, and a correct checksum.
fn frame(tags: usize, v6: bool, ecn: u8, port: u8) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0, 0, 7]);
    }
    if v6 {
        frame.extend([0x86, 0xdd, 0x6a, 0xb5 & 0xcf | ecn << 4, 0xcd, 0xef, 0, 8, 17, 64]);
        frame.extend([0xfd; 32]);
    } else {
        let header = frame.len() + 2;
        frame.extend([8, 0, 0x45, 0xb8 | ecn, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
        let sum = !sum(&frame[header..]);
        frame[header + 10..header + 12].copy_from_slice(&sum.to_be_bytes());
    }
    frame.extend([0, port, 0, 9, 0, 8, 0, 0]);
    frame
}

/// The sum of a header in ones' complement. A sum of zero is returned as all ones, which is equal to it.
fn sum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    if folded == 0 { 0xffff } else { ((folded & 0xffff) + (folded >> 16)) as u16 }
}

/// The offset and the version of the outermost IP header, if all of it is in the frame; written in the simplest way.
fn header(frame: &[u8], framed: bool) -> Option<(usize, u8)> {
    let mut at = 0;
    let mut kind = match frame[0] >> 4 {
        4 => [8, 0],
        6 => [0x86, 0xdd],
        _ => [0, 0],
    };
    if framed {
        kind = [frame[12], frame[13]];
        at = 14;
        for _ in 0..2 {
            if kind == [0x81, 0] || kind == [0x88, 0xa8] {
                kind = [*frame.get(at + 2)?, *frame.get(at + 3)?];
                at += 4;
            }
        }
    }
    let version = frame.get(at)? >> 4;
    let there = match (kind, version) {
        ([8, 0], 4) => at + 20,
        ([0x86, 0xdd], 6) => at + 40,
        _ => return None,
    };
    (there <= frame.len()).then_some((at, version))
}

/// The frame after marking, except for its checksum; none if it cannot be marked, or has a mark already.
fn marked(frame: &[u8], framed: bool) -> Option<Vec<u8>> {
    let (at, version) = header(frame, framed)?;
    let shift = if version == 4 { 0 } else { 4 };
    let mut marked = frame.to_vec();
    marked[at + 1] |= 3 << shift;
    let ecn = frame[at + 1] >> shift & 3;
    (ecn != 0 && ecn != 3).then_some(marked)
}

fn key(frame: &[u8]) -> FlowKey {
    Parser::new(Tunnel::Outer).parse(LinkType::Ethernet, frame.len() as u32, frame).key
}

fn digest(frame: &[u8]) -> u64 {
    Granularity::FiveTuple.project(&key(frame)).digest()
}

#[test]
fn a_mark_changes_two_bits_and_the_checksum() {
    let Some(mut probe) = DetachedProbe::new("a_mark_changes_two_bits_and_the_checksum") else { return };
    probe.set_action(true, 1, &always(MARK));
    for (tags, v6, ecn) in (0..3)
        .flat_map(|tags| [false, true].map(|v6| (tags, v6)))
        .flat_map(|(tags, v6)| (0..4).map(move |ecn| (tags, v6, ecn)))
    {
        let before = frame(tags, v6, ecn, 1);
        let counted = probe.0.acted().unwrap();
        let (verdict, after) = probe.run(&before, 0, 1);
        let expected = frame(tags, v6, if ecn == 0 { 0 } else { 3 }, 1);
        assert_eq!((verdict, after), (NEXT, expected), "{tags} {v6} {ecn}");
        let now = probe.0.acted().unwrap();
        let counts = [
            now.unmarkable - counted.unmarkable,
            now.marked - counted.marked,
            now.marked_before - counted.marked_before,
        ];
        assert_eq!(counts, [u64::from(ecn == 0), u64::from(ecn == 1 || ecn == 2), u64::from(ecn == 3)]);
    }
    // Each segment of a super-packet has the mark.
    let counted = probe.0.acted().unwrap();
    probe.run(&frame(0, false, 2, 1), 40, 1);
    assert_eq!(probe.0.acted().unwrap().marked_wire, counted.marked_wire + 40);
    // More tags than the program follows.
    assert_eq!(probe.run(&frame(3, false, 2, 1), 0, 1), (NEXT, frame(3, false, 2, 1)));
}

#[test]
fn each_action_is_taken_and_counted_also_in_a_dry_run() {
    let Some(mut probe) = DetachedProbe::new("each_action_is_taken_and_counted_also_in_a_dry_run") else { return };
    let limit = Action::Limit { rate: Rate::from_bits_per_second(1_000).unwrap(), burst: ByteCount(0) };
    let either = Action::Respond(Response::MarkOrDrop);
    let (capable, not) = (frame(0, false, 1, 1), frame(0, false, 0, 1));
    let marked = frame(0, false, 3, 1);
    let table: [Row<'_>; 10] = [
        (MARK, &capable, false, NEXT, &marked, Acted { marked: 1, marked_wire: 1, ..Acted::default() }),
        (MARK, &capable, true, NEXT, &capable, Acted { would_mark: 1, ..Acted::default() }),
        (MARK, &not, false, NEXT, &not, Acted { unmarkable: 1, ..Acted::default() }),
        (either, &capable, false, NEXT, &marked, Acted { marked: 1, marked_wire: 1, ..Acted::default() }),
        (either, &not, false, SHOT, &not, Acted { dropped: 1, ..Acted::default() }),
        (either, &not, true, NEXT, &not, Acted { would_drop: 1, ..Acted::default() }),
        (Action::Respond(Response::Drop), &capable, false, SHOT, &capable, Acted { dropped: 1, ..Acted::default() }),
        (Action::Respond(Response::Drop), &capable, true, NEXT, &capable, Acted { would_drop: 1, ..Acted::default() }),
        // The first packet is within the limit, whatever its size; the next would have to wait for an hour.
        (limit, &capable, false, NEXT, &capable, Acted { spared: 1, ..Acted::default() }),
        (limit, &capable, false, SHOT, &capable, Acted { limited: 1, ..Acted::default() }),
    ];
    for (n, (action, before, dry, verdict, after, outcome)) in table.into_iter().enumerate() {
        if n < 9 {
            probe.set_action(true, 1, &Acting { dry, ..always(action) });
        }
        let counted = probe.0.acted().unwrap();
        let met = Acted { met: 1, ..outcome };
        assert_eq!(probe.run(before, 0, 1), (verdict, after.to_vec()), "{n}");
        assert_eq!(difference(probe.0.acted().unwrap(), counted), met, "{n}");
    }
    probe.set_action(true, 1, &Acting { dry: true, ..always(limit) });
    assert_eq!(probe.run(&capable, 0, 2), (NEXT, capable.clone()));
    assert_eq!(probe.0.acted().unwrap().would_limit, 1);
    // Packets that did not reach the queue are not stamped.
    let acted = probe.0.acted().unwrap();
    assert_eq!(probe.0.counters().unwrap().stamped, acted.met - acted.dropped - acted.limited);
    probe.0.rest().unwrap();
    assert_eq!(probe.run(&capable, 0, 1), (NEXT, capable));
    assert_eq!(probe.0.acted().unwrap(), acted);
}

/// The action, the packet, whether it is a dry run; the verdict, the packet afterwards, and the counts.
type Row<'a> = (Action, &'a [u8], bool, u32, &'a [u8], Acted);

fn difference(now: Acted, before: Acted) -> Acted {
    Acted {
        met: now.met - before.met,
        spared: now.spared - before.spared,
        marked: now.marked - before.marked,
        would_mark: now.would_mark - before.would_mark,
        marked_before: now.marked_before - before.marked_before,
        unmarkable: now.unmarkable - before.unmarkable,
        dropped: now.dropped - before.dropped,
        would_drop: now.would_drop - before.would_drop,
        limited: now.limited - before.limited,
        would_limit: now.would_limit - before.would_limit,
        marked_wire: now.marked_wire - before.marked_wire,
        expired: now.expired - before.expired,
        victims: now.victims - before.victims,
        full: now.full - before.full,
        exempt: now.exempt - before.exempt,
    }
}

#[test]
fn only_flows_that_contribute_are_acted_on_and_only_for_a_time() {
    let Some(mut probe) = DetachedProbe::new("only_flows_that_contribute_are_acted_on_and_only_for_a_time") else {
        return;
    };
    let acting = Acting { weigh: Weigh::Bytes, threshold: 1000.0, ..always(MARK) };
    probe.set_action(true, u64::MAX, &acting);
    let (flow, other, past) = (frame(0, true, 1, 1), frame(0, true, 1, 2), frame(1, false, 1, 3));
    probe.add_victim(digest(&flow), u64::MAX, 1000, 0);
    probe.add_victim(digest(&past), 1, 1000, 0);
    let mut changed = [&flow, &other, &past].map(|frame| probe.run(frame, 0, 1).1 != *frame);
    assert_eq!(changed, [true, false, false]);
    let acted = probe.0.acted().unwrap();
    assert_eq!((acted.met, acted.marked, acted.expired), (1, 1, 1));
    // A weight below the threshold, and then shares as weights.
    probe.add_victim(digest(&flow), u64::MAX, 999, u64::MAX);
    changed[0] = probe.run(&flow, 0, 1).1 != flow;
    assert!(!changed[0] && probe.0.acted().unwrap().spared == 1);
    probe.set_action(true, 0, &Acting { weigh: Weigh::Share, threshold: 0.25, ..acting });
    for (share, chosen) in [(16_383, false), (16_384, true), (70_000, true)] {
        probe.add_victim(digest(&flow), u64::MAX, 0, share);
        assert_eq!(probe.run(&flow, 0, 1).1 != flow, chosen, "{share}");
    }
    assert_eq!(probe.0.victims().unwrap().len(), 2);
}

/// The kernel stops acting at the time `until`, unless the caller extends it.
#[test]
fn the_kernel_stops_by_itself() {
    let Some(mut probe) = DetachedProbe::new("the_kernel_stops_by_itself") else { return };
    let frame = frame(0, false, 0, 1);
    let drop = always(Action::Respond(Response::Drop));
    probe.set_action(true, 0, &Acting { until: Nanos(crate::now().0 + 1_000_000_000_000), ..drop.clone() });
    assert_eq!(probe.run(&frame, 0, 1).0, SHOT);
    probe.set_action(true, 0, &Acting { until: crate::now(), ..drop.clone() });
    let before = probe.0.acted().unwrap();
    assert_eq!((probe.run(&frame, 0, 1).0, probe.0.acted().unwrap()), (NEXT, before));
    probe.set_action(true, 0, &drop);
    assert_eq!(probe.run(&frame, 0, 1).0, SHOT);
}

#[test]
fn a_flow_is_not_acted_on_when_its_time_is_over() {
    let Some(mut probe) = DetachedProbe::new("a_flow_is_not_acted_on_when_its_time_is_over") else { return };
    let frame = frame(0, false, 0, 1);
    probe.set_action(true, 0, &Acting { weigh: Weigh::Bytes, ..always(Action::Respond(Response::Drop)) });
    probe.add_victim(digest(&frame), crate::now().0, 1, 1);
    assert_eq!((probe.run(&frame, 0, 1).0, probe.0.acted().unwrap().expired), (NEXT, 1));
    probe.add_victim(digest(&frame), u64::MAX, 1, 1);
    assert_eq!((probe.run(&frame, 0, 1).0, probe.0.acted().unwrap().expired), (SHOT, 1));
}

#[test]
fn an_exempt_flow_is_never_touched_by_any_action() {
    let Some(mut probe) = DetachedProbe::new("an_exempt_flow_is_never_touched_by_any_action") else { return };
    let (exempt, other) = (frame(0, false, 2, 1), frame(0, false, 2, 2));
    probe.0.never(&Never::new([vec![Condition::Within(Field::SourcePort, vec![(1, 1)])]]).unwrap()).unwrap();
    let limit = Action::Limit { rate: Rate::from_bits_per_second(1_000).unwrap(), burst: ByteCount(0) };
    for action in [MARK, Action::Respond(Response::Drop), Action::Respond(Response::MarkOrDrop), limit] {
        for weigh in [Weigh::Queue, Weigh::Bytes, Weigh::Share] {
            probe.set_action(true, 1_000_000, &Acting { weigh, ..always(action) });
            [&exempt, &other]
                .into_iter()
                .for_each(|frame| probe.add_victim(digest(frame), u64::MAX, 1_000_000, 65_536));
            let before = probe.0.acted().unwrap();
            assert_eq!(probe.run(&exempt, 0, 100), (NEXT, exempt.clone()));
            let after = probe.0.acted().unwrap();
            assert_eq!((after.met, after.exempt), (before.met, before.exempt + 100), "{action:?} {weigh:?}");
            probe.run(&other, 0, 100);
            let last = probe.0.acted().unwrap();
            assert_eq!((last.met, last.exempt), (after.met + 100, after.exempt), "{action:?} {weigh:?}");
        }
    }
    let digest_and_exemption = |victim: Victim| (victim.digest, victim.exempt);
    let victims: Vec<_> = probe.0.victims().unwrap().into_iter().map(digest_and_exemption).collect();
    assert!(victims.contains(&(digest(&exempt), true)) && victims.contains(&(digest(&other), false)), "{victims:?}");
}

#[test]
fn the_table_keeps_its_limit_with_a_million_flows() {
    let Some(mut probe) = DetachedProbe::new("the_table_keeps_its_limit_with_a_million_flows") else { return };
    (0..1_000_000).for_each(|flow| probe.add_victim(flow, u64::MAX, 1, 1));
    let known = probe.0.victims().unwrap().len();
    assert!((2048..=4096).contains(&known), "{known}");
}

/// A later fragment has no ports, so it belongs to another flow than the first.
#[test]
fn later_fragments_belong_to_another_flow() {
    let Some(mut probe) = DetachedProbe::new("later_fragments_belong_to_another_flow") else { return };
    probe.set_action(true, 0, &Acting { weigh: Weigh::Bytes, ..always(MARK) });
    let whole = frame(0, false, 2, 1);
    let mut later = whole.clone();
    later[21] = 5;
    probe.add_victim(digest(&whole), u64::MAX, 1, 1);
    assert_eq!(probe.run(&later, 0, 1).1, later);
    assert_ne!(probe.run(&whole, 0, 1).1, whole);
    probe.add_victim(digest(&later), u64::MAX, 1, 1);
    assert_ne!(probe.run(&later, 0, 1).1, later);
}

#[test]
fn packets_are_chosen_with_the_probability_of_the_function() {
    let Some(mut probe) = DetachedProbe::new("packets_are_chosen_with_the_probability_of_the_function") else { return };
    const TIMES: u32 = 100_000;
    let not = frame(0, false, 0, 1);
    let step = |from, probability| Step { from, probability };
    let steps = Steps::new([step(10.0, 0.02), step(20.5, 0.9), step(1e6, 0.5), step(1e7, 1.0)]).unwrap();
    let curves =
        [Curve::Threshold, Curve::Linear { full: 40_000.0 }, Curve::Squared { full: 40_000.0 }, Curve::Steps(steps)];
    for curve in curves {
        for depth in [0, 9, 10, 20, 21, 9_999, 10_000, 20_000, 33_333, 50_000, 1_000_000, u64::MAX - 1] {
            let acting = Acting { curve: curve.clone(), threshold: 10_000.0, ..always(MARK) };
            probe.set_action(true, depth, &acting);
            let counted = probe.0.acted().unwrap();
            probe.run(&not, 0, TIMES);
            let chosen = (probe.0.acted().unwrap().unmarkable - counted.unmarkable) as f64;
            let expected = acting.steps().unwrap().probability(depth as f64);
            assert!((expected - curve.probability(depth as f64, 10_000.0)).abs() < 0.02, "{curve:?} {depth}");
            let (mean, variance) = (expected * f64::from(TIMES), expected * (1.0 - expected) * f64::from(TIMES));
            assert!((chosen - mean).abs() <= 6.0 * variance.sqrt(), "{curve:?} {depth}: {chosen}, not {mean}");
        }
    }
    let many = Curve::Steps(Steps::approximate(|_| 0.5, 0.0, 1.0, 63).unwrap());
    let error = probe.0.act(&Acting { curve: many, ..Acting::default() }).unwrap_err().to_string();
    assert_eq!(error, "act on flows: a function of 64 steps does not fit: the kernel's has 63 at most");
}

/// Whenever packets come, the bytes that pass are at most those of the rate, plus the burst and a packet.
#[test]
fn a_limit_holds_over_any_period() {
    let Some(mut probe) = DetachedProbe::new("a_limit_holds_over_any_period") else { return };
    let frame = frame(0, true, 0, 1);
    let (rate, burst) = (Rate::from_bits_per_second(20_000_000).unwrap(), ByteCount(5_000));
    probe.set_action(true, 0, &always(Action::Limit { rate, burst }));
    #[allow(clippy::disallowed_methods, reason = "the limit is by the kernel's clock")]
    let begun = std::time::Instant::now();
    probe.run(&frame, 0, 300_000);
    let lasted = begun.elapsed().as_nanos() as u64;
    let acted = probe.0.acted().unwrap();
    let most = rate.bytes_in(Nanos(lasted)).0 + burst.0 + 2 * frame.len() as u64;
    let passed = acted.spared * frame.len() as u64;
    assert!(passed <= most && acted.limited > 0 && passed >= burst.0, "{passed} of {most}: {acted:?}");
}

/// A frame of IPv4, of IPv6 or of neither, with few different addresses, ports and protocols.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(vec![4u8, 6, 0]);
    let protocol = prop::sample::select(vec![1u8, 6, 17]);
    (kind, protocol, prop::array::uniform4(0..4u8), 0..3usize).prop_map(
        |(kind, protocol, [src, dst, from, to], tags)| {
            let mut made = frame(tags, kind == 6, 2, from);
            let at = 14 + 4 * tags;
            let (protocol_at, src_at, dst_at, ports_at) = if kind == 6 { (6, 23, 39, 40) } else { (9, 15, 19, 20) };
            made[at + protocol_at] = protocol;
            made[at + src_at] = src;
            made[at + dst_at] = dst;
            made[at + ports_at + 3] = to;
            if kind == 0 {
                made[at - 2..at].copy_from_slice(&[8, 6]);
            }
            made
        },
    )
}

/// A condition for such frames, with values that occur and others that do not.
fn any_condition() -> impl Strategy<Value = Condition> {
    let field = prop::sample::select(vec![
        Field::Source,
        Field::Destination,
        Field::SourcePort,
        Field::DestinationPort,
        Field::Protocol,
        Field::Version,
    ]);
    (field, any::<bool>(), prop::collection::vec((0..20u128, 0..20u128), 0..3), any::<u8>(), 0..6u8, any::<bool>())
        .prop_map(|(field, is_mask, ranges, mask, value, equal)| {
            let base = match field {
                Field::Source | Field::Destination if value % 2 == 0 => 0xffff_0a09_0000,
                Field::Source | Field::Destination => (u128::MAX / 0xff * 0xfd) & !0xff,
                _ => 0,
            };
            match is_mask {
                true => Condition::Bits { field, mask: mask.into(), value: value.into(), equal },
                false => {
                    Condition::Within(field, ranges.iter().map(|(low, size)| (base + low, base + low + size)).collect())
                }
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The kernel exempts exactly the flows that `Never::holds` accepts.
    #[test]
    fn the_kernel_exempts_the_flows_of_the_list(
        terms in prop::collection::vec(prop::collection::vec(any_condition(), 0..4), 0..4),
        frame in any_frame(),
    ) {
        thread_local!(static PROBE: std::cell::RefCell<Option<DetachedProbe>> = DetachedProbe::new("the_kernel_exempts_the_flows_of_the_list").into());
        PROBE.with_borrow_mut(|probe| {
            let Some(probe) = probe.as_mut() else { return Ok(()) };
            let never = Never::new(terms).unwrap();
            probe.0.never(&never).unwrap();
            probe.set_action(true, 1, &always(Action::Respond(Response::Drop)));
            let expected = if never.holds(&key(&frame)) { NEXT } else { SHOT };
            prop_assert_eq!(probe.run(&frame, 0, 1).0, expected);
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any packet is marked if the simple parser of this test finds that it can be marked, and is otherwise unchanged.
    #[test]
    fn any_bytes_are_marked_if_they_are_ip(
        bytes in prop::collection::vec(any::<u8>(), 14..200),
        kinds in prop::collection::vec(prop::sample::select(vec![[0x81, 0], [0x88, 0xa8], [8, 0], [0x86, 0xdd], [8, 6]]), 4),
        version in prop::sample::select(vec![0x45u8, 0x4f, 0x40, 0x60, 0x6f, 0x50]),
        framed: bool,
    ) {
        thread_local!(static PROBE: std::cell::RefCell<Option<DetachedProbe>> = DetachedProbe::new("any_bytes_are_marked_if_they_are_ip").into());
        let mut bytes = bytes;
        // Makes IP more frequent than in random bytes.
        let places = [12, 16, 20, 24].into_iter().zip(&kinds).filter(|_| framed);
        for (place, kind) in places {
            if let Some(two) = bytes.get_mut(place..place + 2) {
                two.copy_from_slice(kind);
            }
            if kind[0] == 8 && kind[1] == 0 || kind[0] == 0x86 {
                if let Some(byte) = bytes.get_mut(place + 2) {
                    *byte = version;
                }
                break;
            }
        }
        if !framed {
            bytes[0] = version;
        }
        // The kernel refuses a test frame that is too short for an IP header of its EtherType, but does not look behind VLAN tags.
        let room = match bytes[12..14] { [8, 0] => 34, [0x86, 0xdd] => 54, _ => 15 };
        prop_assume!(bytes.len() >= room);
        PROBE.with_borrow_mut(|probe| {
            let Some(probe) = probe.as_mut() else { return Ok(()) };
            probe.set_action(framed, 1, &always(MARK));
            let (verdict, after) = probe.run(&bytes, 0, 1);
            prop_assert_eq!(verdict, NEXT);
            let expected = marked(&bytes, framed).unwrap_or_else(|| bytes.clone());
            let mut apart = after.clone();
            if let Some((at, 4)) = header(&bytes, framed) {
                prop_assert_eq!(sum(&after[at..at + 20]) % 0xffff, sum(&bytes[at..at + 20]) % 0xffff);
                apart[at + 10..at + 12].copy_from_slice(&bytes[at + 10..at + 12]);
            }
            prop_assert_eq!(apart, expected);
            Ok(())
        })?;
    }
}
