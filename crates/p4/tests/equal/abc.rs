//! ABC: the edge, the core and the exit.

use super::{Leaving, wandering};
use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::{
    AbcCoreParams, AbcEdgeParams, abc_core_with, abc_edge_with, abc_named, abc_strip_with, executable_with,
};
use queuescope_p4::ir::{Input, Interpreter, PacketFate, SwitchProgram};
use queuescope_queue::{
    AbcParams, Activity, ActivityAqmParams, Aggregates, Contract, DelayClass, Host, MeterParams, Others,
    PipelineParams, PortRole, SwitchAqm, SwitchAqmParams, SwitchAverage, SwitchMeter, SwitchMeterParams,
};
use queuescope_wire::{Nanos, Rate};
use std::collections::BTreeMap;

/// A packet with what its parser finds.
#[derive(Clone, Copy)]
struct Arriving {
    packet: Leaving,
    port: u16,
    /// Its activity header; `Err` if that is malformed.
    header: Result<Option<u16>, ()>,
}

impl Arriving {
    fn input(self, input: Input) -> u64 {
        match input {
            Input::ArrivalPort => self.port.into(),
            Input::HasActivity => matches!(self.header, Ok(Some(_))).into(),
            Input::Malformed => self.header.is_err().into(),
            Input::Activity => self.header.ok().flatten().map_or(0, u64::from),
            // Seconds pass, so that epochs do.
            Input::Arrived => self.now().0,
            Input::QueueLength => self.queue().into(),
            input => self.packet.input(input),
        }
    }

    fn now(self) -> Nanos {
        Nanos(self.packet.now.0 * 1024)
    }

    /// Packets in the queue, up to 60.
    fn queue(self) -> u32 {
        (self.packet.sojourn.0 / 500_000) as u32
    }

    fn source(self) -> u32 {
        self.packet.input(Input::Source) as u32
    }
}

/// Packets, of which one in 16 has no valid header, and half of the others have one. Activities are around 11.
fn arriving(seed: u64, count: usize) -> impl Iterator<Item = Arriving> {
    wandering(seed, count).enumerate().map(move |(number, packet)| {
        let bits = (number as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let header = match bits >> 60 {
            0 => Err(()),
            1..8 => Ok(Some((10 << 8) + (bits >> 40 & 0x3ff) as u16)),
            _ => Ok(None),
        };
        Arriving { packet, port: (bits >> 50 & 7) as u16, header }
    })
}

/// Whether a program drops and counts a packet whose header is malformed, or that comes from outside.
struct Refusals(BTreeMap<u16, u64>);

impl Refusals {
    /// What happens to a refused packet; none if it is not refused.
    fn of(&mut self, packet: Arriving, is_outside: bool) -> Option<PacketFate> {
        let is_refused = packet.header.is_err() || is_outside && packet.header != Ok(None);
        *self.0.entry(packet.port).or_default() += u64::from(is_refused);
        is_refused.then_some(PacketFate { dropped: true, ..PacketFate::default() })
    }

    /// Whether the first register of a program has these counts.
    fn are_those_of(&self, interpreter: &Interpreter<'_>) -> bool {
        let words = interpreter.words(0).expect("it counts refused packets");
        (0..).zip(words).all(|(port, word)| self.0.get(&port).copied().unwrap_or(0) == *word)
    }
}

fn none(_bits: u32) -> u64 {
    unreachable!("ABC draws no random numbers")
}

/// How many packets differ at the edge, and how many were refused and pushed.
fn compare_edge(params: &AbcEdgeParams, packets: impl Iterator<Item = Arriving>) -> (usize, [usize; 2]) {
    let program = abc_edge_with(params).expect("it fits");
    let mut interpreter = Interpreter::new(&program, u64::MAX);
    let mut meters: BTreeMap<u32, SwitchMeter> = BTreeMap::new();
    let (mut refusals, mut different, mut acts) = (Refusals(BTreeMap::new()), 0, [0; 2]);
    for packet in packets {
        let is_outside = !params.inside.contains(&packet.port);
        let expected = refusals.of(packet, is_outside).unwrap_or_else(|| {
            if !is_outside {
                return PacketFate::default();
            }
            let contract = params.contracts.iter().find(|(host, _)| *host == packet.source());
            let reference = contract.map_or(params.meter.reference, |(_, rate)| *rate);
            let meter = meters.entry(packet.source() & 0xfff).or_default();
            let length = packet.input(Input::IpLength) as u16;
            let activity = meter.record(length, packet.now(), &SwitchMeterParams { reference, ..params.meter });
            PacketFate { pushed: Some(activity.0.cast_unsigned()), ..PacketFate::default() }
        });
        let fate = interpreter.run_at(Gress::Ingress, &|input| packet.input(input), &mut none);
        let words = (1..6).map(|register| interpreter.words(register).expect("a register of the meter"));
        let words: Vec<_> = words.map(|words| words[packet.source() as usize & 0xfff]).collect();
        let meter = meters.get(&(packet.source() & 0xfff));
        let same = meter.is_none_or(|meter| words == meter.words()) && fate == expected;
        different += usize::from(!same);
        acts[0] += usize::from(fate.dropped);
        acts[1] += usize::from(fate.pushed.is_some());
    }
    (different + usize::from(!refusals.are_those_of(&interpreter)), acts)
}

/// How many packets differ in the core, and how many were refused and dropped by the AQM.
fn compare_core(params: &AbcCoreParams, packets: impl Iterator<Item = Arriving>) -> (usize, [usize; 2]) {
    let program = abc_core_with(params).expect("it fits");
    let mut interpreter = Interpreter::new(&program, u64::MAX);
    let mut ports = [SwitchAqm::new(&params.aqm); 4];
    let (mut refusals, mut different, mut acts) = (Refusals(BTreeMap::new()), 0, [0; 2]);
    for packet in packets {
        let refused = refusals.of(packet, params.outside.contains(&packet.port));
        let input = |input| packet.input(input);
        let before = interpreter.run_at(Gress::Ingress, &input, &mut none);
        different += usize::from(before != refused.unwrap_or_default());
        acts[0] += usize::from(before.dropped);
        if before.dropped {
            continue;
        }
        let aqm = &mut ports[usize::from(packet.packet.port)];
        let accepted = match packet.header {
            Ok(Some(activity)) => aqm.accepts(Activity(activity.cast_signed()), packet.queue(), &params.aqm),
            _ => SwitchAqm::accepts_unmetered(packet.queue(), &params.aqm),
        };
        let fate = interpreter.run_at(Gress::Egress, &input, &mut none);
        let words = interpreter.words(1).expect("the averages");
        let same = fate == PacketFate { dropped: !accepted, ..PacketFate::default() }
            && words[usize::from(packet.packet.port)] == aqm.word();
        different += usize::from(!same);
        acts[1] += usize::from(fate.dropped);
    }
    (different + usize::from(!refusals.are_those_of(&interpreter)), acts)
}

#[test]
fn activities_and_registers_are_those_of_the_rust_type() {
    let contracts = vec![(0x0a00_0001, "40kbps".parse().expect("a rate"))];
    let params = AbcEdgeParams { contracts, inside: vec![3, 5], ..AbcEdgeParams::default() };
    for seed in 1..=3 {
        let (different, acts) = compare_edge(&params, arriving(seed, crate::packets()));
        assert!(different == 0 && acts.iter().all(|count| *count > 1_000), "seed {seed}: {different} differ, {acts:?}");
    }
}

#[test]
fn decisions_and_averages_are_those_of_the_rust_type() {
    for average in [SwitchAverage::MEAN, SwitchAverage::MEDIAN] {
        let aqm = SwitchAqmParams { average, ..SwitchAqmParams::default() };
        let params = AbcCoreParams { aqm, outside: vec![3, 5] };
        for seed in 1..=3 {
            let (different, acts) = compare_core(&params, arriving(seed, crate::packets()));
            assert!(
                different == 0 && acts.iter().all(|count| *count > 1_000),
                "seed {seed}: {different} differ, {acts:?}"
            );
        }
    }
}

/// An edge that also drops, like a node of the core: the half behind the queue reads the activity that the half before it has pushed.
#[test]
fn an_edge_may_drop_as_the_core_does() {
    let aqm = SwitchAqmParams::default();
    let params = AbcEdgeParams { aqm: Some(aqm), ..AbcEdgeParams::default() };
    let program = abc_edge_with(&params).expect("it fits");
    let mut interpreter = Interpreter::new(&program, u64::MAX);
    let (mut ports, mut dropped) = ([SwitchAqm::new(&aqm); 4], 0);
    for packet in arriving(1, 20_000).filter(|packet| packet.header == Ok(None)) {
        let before = interpreter.run_at(Gress::Ingress, &|input| packet.input(input), &mut none);
        let activity = before.pushed.expect("it comes from outside");
        let here = Arriving { header: Ok(Some(activity)), ..packet };
        let fate = interpreter.run_at(Gress::Egress, &|input| here.input(input), &mut none);
        let accepted =
            ports[usize::from(packet.packet.port)].accepts(Activity(activity.cast_signed()), packet.queue(), &aqm);
        assert_eq!(fate, PacketFate { dropped: !accepted, ..PacketFate::default() });
        dropped += usize::from(!accepted);
    }
    assert!(dropped > 500, "{dropped}");
}

/// A frame behind its addresses: EtherTypes, an activity header, and the rest.
fn after(frame: &[u8], fate: PacketFate) -> Vec<u8> {
    match fate.pushed {
        Some(activity) => [&[0x88, 0xb5], &activity.to_be_bytes()[..], frame].concat(),
        None if fate.stripped => frame[4..].to_vec(),
        None => frame.to_vec(),
    }
}

/// The header of a frame, as a parser finds it.
fn header(frame: &[u8]) -> Result<Option<u16>, ()> {
    match frame {
        [0x88, 0xb5, high, low, other @ ..] if other.len() >= 2 && other[..2] != [0x88, 0xb5] => {
            Ok(Some(u16::from_be_bytes([*high, *low])))
        }
        [0x88, 0xb5, ..] => Err(()),
        _ => Ok(None),
    }
}

/// Through the edge, two core nodes and the exit: what leaves is what a plain router would have sent, and what has an activity from outside does
/// not come into the domain.
#[test]
fn frames_leave_the_domain_as_they_came() {
    let core = |outside: &[u16]| AbcCoreParams { outside: outside.to_vec(), ..AbcCoreParams::default() };
    let programs: Vec<SwitchProgram> = [
        abc_edge_with(&AbcEdgeParams::default()),
        abc_core_with(&core(&[])),
        abc_core_with(&core(&[])),
        abc_strip_with(&[]),
    ]
    .into_iter()
    .map(|program| program.expect("it fits"))
    .collect();
    let mut nodes: Vec<_> = programs.iter().map(|program| Interpreter::new(program, u64::MAX)).collect();
    let (mut left, mut refused, mut dropped) = (0, 0, 0);
    for packet in arriving(1, 30_000) {
        let payload = [&[0x08, 0x00], &packet.packet.size.to_be_bytes()[..]].concat();
        let sent = match packet.header {
            Ok(None) => payload.clone(),
            Ok(Some(activity)) => [&[0x88, 0xb5], &activity.to_be_bytes()[..], &payload].concat(),
            Err(()) => vec![0x88, 0xb5, 0],
        };
        let mut frame = sent.clone();
        let mut is_dropped = false;
        for (number, node) in nodes.iter_mut().enumerate() {
            for gress in [Gress::Ingress, Gress::Egress] {
                let here = Arriving { header: header(&frame), ..packet };
                let fate = node.run_at(gress, &|input| here.input(input), &mut none);
                is_dropped |= fate.dropped;
                if !is_dropped {
                    frame = after(&frame, fate);
                }
            }
            let is_first = number == 0;
            assert!(!is_first || is_dropped == (packet.header != Ok(None)), "only what has a header is refused");
            if is_dropped {
                refused += usize::from(is_first);
                dropped += usize::from(!is_first);
                break;
            }
            assert_eq!(header(&frame).expect("it is valid").is_some(), number + 1 < programs.len());
        }
        if !is_dropped {
            assert_eq!(frame, payload);
            left += 1;
        }
    }
    assert!(left > 1_000 && refused > 1_000 && dropped > 1_000, "{left}, {refused}, {dropped}");
}

#[test]
fn the_exit_refuses_what_comes_from_outside() {
    let program = abc_strip_with(&[3, 5]).expect("it fits");
    let mut interpreter = Interpreter::new(&program, u64::MAX);
    let mut refusals = Refusals(BTreeMap::new());
    for packet in arriving(2, 10_000) {
        let refused = refusals.of(packet, [3, 5].contains(&packet.port));
        let [before, behind] = [Gress::Ingress, Gress::Egress]
            .map(|gress| interpreter.run_at(gress, &|input| packet.input(input), &mut none));
        assert_eq!(before, refused.unwrap_or_default());
        let stripped = matches!(packet.header, Ok(Some(_)));
        assert_eq!(behind, PacketFate { stripped, ..PacketFate::default() });
    }
    assert!(refusals.are_those_of(&interpreter) && refusals.0.values().sum::<u64>() > 1_000);
}

/// Each role of ABC is a program, and what a program cannot have is named.
#[test]
fn parameters_of_the_rust_type_are_taken_or_refused() {
    let roles = [
        (PortRole { meters: true, ..PortRole::default() }, "abc-edge"),
        (PortRole::edge(ActivityAqmParams::default()), "abc-edge"),
        (PortRole::core(ActivityAqmParams::default()), "abc-core"),
        (PortRole::exit(), "abc-strip"),
    ];
    let with = |role| AbcParams { ports: vec![role], ..AbcParams::default() };
    for (role, name) in roles {
        let program = executable_with(&PipelineParams::Abc(with(role))).expect("it fits").expect("it is a program");
        assert_eq!(program.name(), name);
    }
    assert_eq!(abc_named("abc", &with(PortRole::exit())), Ok(None));
    let core = PortRole::core(ActivityAqmParams::default());
    let odd = PortRole::core(ActivityAqmParams { gamma: 15.0, ..ActivityAqmParams::default() });
    let edge = PortRole { meters: true, ..PortRole::default() };
    let classes = vec![DelayClass::default(), DelayClass { queue: 1, surcharge: 1.0 }];
    let together = Aggregates { others: Others::Together(Contract::default()), ..Aggregates::default() };
    let shared = Aggregates {
        contracts: vec![Contract::default()],
        hosts: vec![(Host(1), 0), (Host(2), 0)],
        ..Aggregates::default()
    };
    let short = MeterParams { memory: Nanos(1_000_000), ..MeterParams::default() };
    for (name, params, error) in [
        ("abc-edge", with(core), "meters: must be true: each role is a program of its own"),
        ("abc-strip", with(PortRole { strips: true, ..core }), "aqm: must be none: the exit does not drop"),
        ("abc-core", with(PortRole::default()), "aqm: must not be none"),
        (
            "abc-core-median",
            with(odd),
            "aqm: must have whole numbers below 512, with gamma a power of two from 4 to 256: a switch shifts",
        ),
        (
            "abc-core",
            AbcParams { classes, ..with(core) },
            "surcharges: must be [0.0]: the programs have one delay class",
        ),
        (
            "abc-edge",
            AbcParams { aggregates: together, ..with(edge) },
            "aggregates: must have each host as an aggregate of its own",
        ),
        (
            "abc-edge",
            AbcParams { aggregates: shared, ..with(edge) },
            "aggregates: must have each host as an aggregate of its own",
        ),
        (
            "abc-edge",
            AbcParams { meter: short, ..with(edge) },
            "memory: must be 1.07 ms to 8.76 s: its half-life is rounded to 2^20 to 2^32 ns",
        ),
    ] {
        let refused = abc_named(name, &params).expect_err("a switch cannot have it").to_string();
        assert_eq!(refused, format!("the program {name}: the parameter {error}"));
    }
}

fn average() -> impl Strategy<Value = SwitchAverage> {
    prop_oneof![
        (1u32..=16).prop_map(|shift| SwitchAverage::Mean { shift }),
        (0u32..1 << 24).prop_map(|step| SwitchAverage::Median { step }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_parameters_give_the_same_at_the_edge(
        (window, least_time) in (20u32..=32).prop_flat_map(|window| (Just(window), 0u64..=1 << window)),
        [reference, other] in prop::array::uniform2(1u64..1_000_000_000_000),
        inside in prop::collection::btree_set(0u16..8, 0..4),
        seed in any::<u64>(),
    ) {
        let [reference, other] = [reference, other].map(|rate| Rate::from_bits_per_second(rate).expect("not zero"));
        let meter = SwitchMeterParams { window, least_time: Nanos(least_time), reference };
        let params = AbcEdgeParams { meter, contracts: vec![(0x0a00_0001, other)], inside: inside.into_iter().collect(), aqm: None };
        prop_assert_eq!(compare_edge(&params, arriving(seed, 2_000)).0, 0);
    }

    #[test]
    fn any_parameters_give_the_same_in_the_core(
        [least, base] in prop::array::uniform2(0u32..=60),
        gamma_shift in 2u32..=8,
        average in average(),
        outside in prop::collection::btree_set(0u16..8, 0..4),
        seed in any::<u64>(),
    ) {
        let aqm = SwitchAqmParams { least, base, gamma_shift, average };
        let params = AbcCoreParams { aqm, outside: outside.into_iter().collect() };
        prop_assert_eq!(compare_core(&params, arriving(seed, 2_000)).0, 0);
    }
}
