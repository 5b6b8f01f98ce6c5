//! ConQuest on a switch beside a router.

use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::{ConQuestLegacyParams, conquest_legacy_with};
use queuescope_p4::ir::{Input, Interpreter, PacketFate, PacketReport, Polynomial, Sighting, Tap, sightings};
use queuescope_queue::ConQuestAqm;
use queuescope_sketch::{
    ConQuest, ConQuestParams, Estimator, Expiry, Passes, TappedConQuest, TappedConQuestParams, TappedStats, Verdict,
};
use queuescope_wire::{FlowId, Nanos};
use std::sync::LazyLock;

/// Few places, so that packets collide, and delays that some packets exceed.
fn small() -> ConQuestLegacyParams {
    let usual = ConQuestLegacyParams::default();
    let expiry = Expiry::Clean { passes: Passes::None };
    let sketch = ConQuestParams { window: Nanos(1 << 17), expiry, ..usual.tapped.sketch.clone() };
    let tapped = TappedConQuestParams { sketch, slots: 1 << 10, threshold: 6_000, ..usual.tapped };
    ConQuestLegacyParams { tapped, ..usual }
}

/// The columns of the Rust type, in place of the hashes of flows.
fn its_columns(polynomial: Polynomial, input: &dyn Fn(Input) -> u64) -> u64 {
    static SKETCH: LazyLock<ConQuest> = LazyLock::new(|| ConQuest::new(small().tapped.sketch).expect("it is valid"));
    let row = Polynomial::ALL.iter().position(|it| *it == polynomial).expect("it is one of them");
    SKETCH.columns(key(input(Input::Source) as u32 & 0xff_ffff)).nth(row).expect("there are two rows") as u64
}

fn key(flow: u32) -> u64 {
    ConQuestAqm::key(FlowId(flow))
}

/// What identifies a packet, as the Rust type takes it: the place and the digest of the program.
fn packet(input: &dyn Fn(Input) -> u64) -> u64 {
    let [.., of_slot, of_digest] = Polynomial::ALL;
    of_slot.hash_packet(input) << 32 | of_digest.hash_packet(input)
}

/// The registers: those of the match, the count of packets, the snapshots, and the fates.
const WAITING: usize = 0;
const SNAPSHOTS: usize = 2;

/// How many sightings differ, and what the Rust type counted. `start` moves all times.
fn compare(params: &ConQuestLegacyParams, seen: &[Sighting], start: u64) -> (usize, TappedStats) {
    let program = conquest_legacy_with(params).expect("a switch can do this");
    let mut rust = TappedConQuest::new(params.tapped.clone()).expect("they are valid");
    let mut interpreter = Interpreter::new(&program, u64::MAX).with_hash(its_columns);
    let sketch = &params.tapped.sketch;
    let (window, columns) = (sketch.window.0, sketch.columns as u64);
    let generated = sketch.expiry == Expiry::Clean { passes: Passes::Generated };
    let (mut different, mut now, mut cleaned, mut skipped) = (0, None, 0, [0u64; 2]);
    for (number, sighting) in seen.iter().enumerate() {
        let sighting = Sighting { time: Nanos(sighting.time.0 + start - 10_000_000_000), ..*sighting };
        // The Rust type cleans when the next packet leaves.
        if sighting.tap == Tap::Out && sighting.is_ip {
            let next = sighting.time.0 / window;
            for past in now.unwrap_or(next)..next {
                for _ in cleaned..if generated { columns } else { 0 } {
                    let input = |input| match input {
                        Input::Generated => 1,
                        Input::Arrived => past * window,
                        _ => 0,
                    };
                    let fate = interpreter.run_at(Gress::Ingress, &input, &mut |_bits| 0);
                    assert_eq!(fate, PacketFate::default(), "generated packets go no further");
                }
                cleaned = 0;
            }
            (now, cleaned) = (Some(next), cleaned + 1);
        }
        let port = match sighting.tap {
            Tap::In => params.ingress[number % params.ingress.len()],
            Tap::Out => params.egress,
            Tap::Other => 0,
        };
        let input = |input| sighting.input(port, input);
        let fate = interpreter.run_at(Gress::Ingress, &input, &mut |_bits| 0);
        let identity = packet(&input);
        let verdict = match sighting.tap {
            Tap::Other => {
                skipped[0] += 1;
                Verdict::Unseen
            }
            _ if !sighting.is_ip => {
                skipped[1] += 1;
                Verdict::Unseen
            }
            Tap::In => {
                rust.came(identity, sighting.time);
                Verdict::Unseen
            }
            Tap::Out => {
                let size = input(Input::IpLength) as u32;
                rust.left(identity, key(sighting.packet.flow), size, sighting.time)
            }
        };
        let reported = match verdict {
            Verdict::Heavy { delay, estimate } => {
                Some(PacketReport { port: params.collector, delay: delay.0 as u32, estimate })
            }
            _ => None,
        };
        let place = (identity >> 32) as usize % params.tapped.slots as usize;
        let is_same = fate == PacketFate { reported, ..PacketFate::default() }
            && place_is_that_of(&rust, &interpreter, place)
            && counts_are_those_of(&rust, &interpreter, sighting.packet.flow);
        different += usize::from(!is_same);
    }
    different +=
        (0..params.tapped.slots as usize).filter(|place| !place_is_that_of(&rust, &interpreter, *place)).count();
    different += (0..sketch.columns).filter(|column| !column_is_that_of(&rust, &interpreter, *column)).count();
    let TappedStats { inserted, occupied, unseen, short, light, heavy } = *rust.stats();
    let fates = [skipped[0], skipped[1], inserted, occupied, unseen, short, light, heavy];
    let last = program.registers().len() - 1;
    different += usize::from(interpreter.words(last) != Some(&fates[..]));
    (different, *rust.stats())
}

fn place_is_that_of(rust: &TappedConQuest, ours: &Interpreter<'_>, place: usize) -> bool {
    let (digest, time) = rust.slot(place).expect("it is there");
    let pair = ours.words(WAITING).expect("it is the first")[place];
    pair == u64::from(time) << 32 | u64::from(digest)
}

/// Whether the counts of a flow are the same in all snapshots.
fn counts_are_those_of(rust: &TappedConQuest, ours: &Interpreter<'_>, flow: u32) -> bool {
    let columns: Vec<_> = rust.snapshots().columns(key(flow)).collect();
    let sketch = rust.snapshots().params();
    (0..sketch.snapshots).all(|snapshot| {
        columns.iter().enumerate().all(|(row, column)| count_is_that_of(rust, ours, [snapshot, row], *column))
    })
}

fn column_is_that_of(rust: &TappedConQuest, ours: &Interpreter<'_>, column: usize) -> bool {
    let sketch = rust.snapshots().params();
    (0..sketch.snapshots)
        .all(|snapshot| (0..sketch.rows).all(|row| count_is_that_of(rust, ours, [snapshot, row], column)))
}

fn count_is_that_of(rust: &TappedConQuest, ours: &Interpreter<'_>, [snapshot, row]: [usize; 2], column: usize) -> bool {
    let rows = rust.snapshots().params().rows;
    let words = ours.words(SNAPSHOTS + snapshot * rows + row).expect("a register for each row");
    rust.snapshots().counter(snapshot, row, column).map(u64::from) == words.get(column).copied()
}

#[test]
fn verdicts_and_registers_are_those_of_the_rust_type() {
    for (seed, estimator) in [(1, Estimator::Outer), (2, Estimator::Inner), (3, Estimator::Outer)] {
        let small = small();
        let params = ConQuestLegacyParams { tapped: TappedConQuestParams { estimator, ..small.tapped }, ..small };
        let (different, stats) = compare(&params, &sightings(seed, crate::packets()), 10_000_000_000);
        let TappedStats { inserted, occupied, unseen, short, light, heavy } = stats;
        let all = [inserted, occupied, unseen, short, light, heavy];
        assert!(different == 0 && all.iter().all(|count| *count > 500), "seed {seed}: {different}, {stats:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With any parameters that the program takes, also where times of 32 bits wrap, and where packets clean or generated ones help.
    #[test]
    fn any_parameters_give_the_same(
        [snapshots, slots] in [prop::sample::select(vec![4usize, 8, 16]), prop::sample::select(vec![2usize, 64, 1 << 12])],
        rows in 1usize..=2,
        window in 16u32..=24,
        [generated, outer] in any::<[bool; 2]>(),
        [tau, max_delay] in [0u64..4_000_000, 1u64..6_000_000],
        threshold in 0u32..100_000,
        start in prop_oneof![Just(10_000_000_000), (1u64 << 32) - 8_000_000..1 << 32],
        seed in any::<u64>(),
    ) {
        let passes = if generated { Passes::Generated } else { Passes::None };
        let small = small();
        let window = Nanos(1 << window);
        let sketch = ConQuestParams { snapshots, rows, window, expiry: Expiry::Clean { passes }, ..small.tapped.sketch };
        let (tau, max_delay, slots) = (Nanos(tau), Nanos(max_delay), slots as u32);
        let estimator = if outer { Estimator::Outer } else { Estimator::Inner };
        let tapped = TappedConQuestParams { sketch, estimator, slots, max_delay, tau, threshold };
        let params = ConQuestLegacyParams { tapped, ..small };
        prop_assert_eq!(compare(&params, &sightings(seed, 3_000), start).0, 0);
    }
}
