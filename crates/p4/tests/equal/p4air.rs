//! P4air.

use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::p4air_with;
use queuescope_p4::ir::{Input, Interpreter, PacketFate, Passing, Polynomial, SwitchProgram, passing};
use queuescope_queue::{
    FlowAction, FlowTable, GroupActions, P4airParams, RegisterOf, ShareForm, SwitchNote, SwitchP4air,
    SwitchP4airParams, SwitchPacket, SwitchRegister, SwitchTcp,
};
use queuescope_sketch::{FingerprintParams, Rise};
use queuescope_wire::Nanos;

/// Few entries, so that flows share some; short delays and round-trip times, so that much happens.
fn params() -> SwitchP4airParams {
    let table = FlowTable::Hashed { entries: 128, seed: 0 };
    let fingerprint = FingerprintParams { default_rtt: Nanos(200_000), ..FingerprintParams::default() };
    let p4air = P4airParams { table, fingerprint, delay_passes: 2, ..P4airParams::default() };
    SwitchP4airParams { p4air, ..SwitchP4airParams::default() }
}

/// What the Rust type does, as a fate, with the note as slots.
fn rust_fate(switch: &mut SwitchP4air, pass: &Passing) -> PacketFate {
    let input = |input| pass.input(input);
    let mut note = note_of(pass.note);
    if pass.gress == Gress::Egress {
        let fed_back = switch.behind_the_queue(pass.depth, &mut note);
        return PacketFate { fed_back, note: slots(note), ..PacketFate::default() };
    }
    let flags = input(Input::TcpFlags);
    let tcp = SwitchTcp { syn: flags & 2 != 0, ack: flags & 16 != 0, window: input(Input::Window) as u16 };
    let hash = |polynomial: Polynomial, input: &dyn Fn(Input) -> u64| polynomial.hash(input);
    let packet = SwitchPacket {
        port: input(Input::Port) as u16,
        arrival_port: input(Input::ArrivalPort) as u16,
        arrived: pass.now,
        flow: Polynomial::Ethernet.hash(&input) as u32,
        reverse: Polynomial::reversed(hash, Polynomial::Ethernet, &input) as u32,
        has_data: pass.has_data(),
        tcp: pass.is_tcp().then_some(tcp),
    };
    let fate = switch.before_the_queue(&packet, &mut note, pass.is_back);
    PacketFate {
        dropped: fate.dropped,
        fed_back: fate.copied,
        recirculated: fate.recirculated,
        queue: fate.queue,
        window: fate.window.map(|window| [window, checksum(input(Input::TcpChecksum), input(Input::Window), window)]),
        note: slots(note),
        ..PacketFate::default()
    }
}

/// The checksum of the same header with another window: the sum of all 16-bit words, of which the header has the window and a rest.
fn checksum(before: u64, old: u64, new: u16) -> u16 {
    let fold = |mut sum: u64| {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    };
    // In numbers modulo 2^16 - 1, where 0xffff is the zero of a sum of something.
    let rest = (2 * 0xffff - before - old) % 0xffff;
    !(fold(if rest == 0 { 0xffff } else { rest } + u64::from(new)) as u16)
}

fn slots(note: SwitchNote) -> [u16; 12] {
    let SwitchNote { entry, sent, before, each, round, group, queue, is_newest, request, to, giver, passes } = note;
    let bytes = [round, group, queue, is_newest, request, to, giver, passes].map(u16::from);
    let [round, group, queue, is_newest, request, to, giver, passes] = bytes;
    [entry, sent, before, each, round, group, queue, is_newest, request, to, giver, passes]
}

fn note_of(slots: [u16; 12]) -> SwitchNote {
    let [entry, sent, before, each, bytes @ ..] = slots;
    let [round, group, queue, is_newest, request, to, giver, passes] = bytes.map(|slot| slot as u8);
    SwitchNote { entry, sent, before, each, round, group, queue, is_newest, request, to, giver, passes }
}

/// How often each thing happened.
#[derive(Debug, Default)]
struct Acts {
    dropped: u32,
    delayed: u32,
    windows: u32,
    /// Copies of each request.
    copies: [u32; 6],
    /// Copies to each group.
    groups: [u32; 5],
}

/// How many passes differ, and what happened.
fn compare(program: &SwitchProgram, params: &SwitchP4airParams, seed: u64, count: usize) -> (usize, Acts) {
    let mut rust = SwitchP4air::new(params.clone()).expect("a switch can have these");
    let mut ours = Interpreter::new(program, u64::MAX);
    let (mut different, mut acts, mut passes) = (0, Acts::default(), 0u32);
    passing(seed, count, |pass| {
        passes += 1;
        if passes.is_multiple_of(2_000) {
            remove(&mut rust, &mut ours, pass);
        }
        let expected = rust_fate(&mut rust, pass);
        let fate = ours.run_at(pass.gress, &|input| pass.input(input), &mut |_| 0);
        different += usize::from(fate != expected || !words_are_same(&rust, &ours, pass, fate.note[0]));
        acts.dropped += u32::from(fate.dropped && !pass.is_back);
        acts.delayed += u32::from(fate.recirculated && !pass.is_back);
        acts.windows += u32::from(fate.window.is_some());
        if pass.is_back {
            acts.copies[usize::from(pass.note[8])] += 1;
            if pass.note[8] == 1 {
                acts.groups[usize::from(pass.note[9])] += 1;
            }
        }
        fate
    });
    different += (0..SwitchRegister::ALL.len())
        .filter(|register| {
            let ours = ours.words(*register).expect("it is there");
            !rust.words(*register).expect("it is there").iter().copied().map(u64::from).eq(ours.iter().copied())
        })
        .count();
    (different, acts)
}

/// The control plane removes the packet's flow.
fn remove(rust: &mut SwitchP4air, ours: &mut Interpreter<'_>, pass: &Passing) {
    let pass = Passing { is_reverse: false, ..*pass };
    let hash = Polynomial::Ethernet.hash(&|input| pass.input(input)) as u32;
    rust.remove(pass.input(Input::Port) as u16, hash);
    for register in 0..SwitchRegister::ALL.len() {
        for (index, word) in rust.words(register).expect("it is there").iter().enumerate() {
            assert!(ours.write(register, index, (*word).into()), "it is there");
        }
    }
}

/// Whether the words of the packet's flow and ports are the same.
fn words_are_same(rust: &SwitchP4air, ours: &Interpreter<'_>, pass: &Passing, entry: u16) -> bool {
    let ports = [Input::Port, Input::ArrivalPort].map(|input| pass.input(input) as usize & 0x7f);
    SwitchRegister::ALL.iter().enumerate().all(|(number, register)| {
        let (rust, ours) = (rust.words(number).expect("it is there"), ours.words(number).expect("it is there"));
        let is_same = |place: usize| u64::from(rust[place]) == ours[place];
        let of_port = |all: usize| ports.into_iter().all(|port| (port * all..(port + 1) * all).all(is_same));
        match register.of {
            RegisterOf::Flow => is_same(usize::from(entry)),
            RegisterOf::Port => of_port(1),
            RegisterOf::Group | RegisterOf::Queue => of_port(rust.len() / 128),
        }
    })
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_type() {
    let params = params();
    let program = p4air_with(&params).expect("a switch can have these");
    for seed in 1..=3 {
        let (different, acts) = compare(&program, &params, seed, crate::packets());
        println!("seed {seed}: {acts:?}");
        assert_eq!(different, 0, "seed {seed}: {acts:?}");
        let Acts { dropped, delayed, windows, copies, groups } = &acts;
        assert!([dropped, delayed, windows].into_iter().all(|count| *count > 20), "{acts:?}");
        assert!(copies[1..].iter().chain(&groups[1..]).all(|count| *count > 0), "{acts:?}");
    }
}

fn action() -> impl Strategy<Value = FlowAction> {
    prop::sample::select(vec![FlowAction::Nothing, FlowAction::Drop, FlowAction::Delay, FlowAction::Window])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// With any parameters that the program takes.
    #[test]
    fn any_parameters_give_the_same(
        queues in prop::sample::select(vec![8u16, 16, 32]),
        entries in prop::sample::select(vec![128u32, 256, 4096]),
        [loss_delay_after, loss_based_after, model_based_after] in [0u8..8, 0u8..20, 0u8..6],
        [rise, reduction_shift, pulse, settled, period] in [1u8..=11, 1u8..=8, 0u8..=3, 0u8..=4, 0u8..=40],
        least_change in 0u32..9,
        sensitivity in -3i8..4,
        rate in 100_000_000u64..100_000_000_000,
        packet in 64u64..9000,
        (delay_passes, least_window, window_scale) in (0u16..12, 0u64..6000, 0u32..=8),
        actions in [action(), action(), action(), action()],
        seed in any::<u64>(),
    ) {
        let fingerprint = FingerprintParams {
            loss_delay_after, loss_based_after, model_based_after,
            rise: Rise::OfPrevious { shift: rise },
            reduction_shift, pulse, settled, period, least_change,
            default_rtt: Nanos(200_000),
            ..FingerprintParams::default()
        };
        let [delay_based, loss_delay, loss_based, model_based] = actions;
        let p4air = P4airParams {
            queues,
            table: FlowTable::Hashed { entries, seed: 0 },
            fingerprint,
            share: ShareForm::Shift { sensitivity },
            packet: queuescope_wire::ByteCount(packet),
            actions: GroupActions { delay_based, loss_delay, loss_based, model_based, ..GroupActions::default() },
            delay_passes,
            least_window: queuescope_wire::ByteCount(least_window),
            ..P4airParams::default()
        };
        let rate = queuescope_wire::Rate::from_bits_per_second(rate).expect("it is above zero");
        let params = SwitchP4airParams { p4air, rate, window_scale };
        let program = p4air_with(&params).expect("a switch can have these");
        prop_assert_eq!(compare(&program, &params, seed, 4_000).0, 0);
    }
}
