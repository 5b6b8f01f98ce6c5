//! Packets that show a difference between P4air and a mutant.

use super::super::builder::SwitchProgram;
use super::super::hash::Polynomial;
use super::super::interpreter::Interpreter;
use super::super::variable::{Input, ones};
use super::packets::Numbers;
use crate::Gress;

/// The words of each register that packets reach: two ports, with eight queues and eight groups.
const WORDS: u64 = 16;

/// As [`is_caught`](super::packets::is_caught). Registers, notes and headers take values at which the program decides.
pub(super) fn is_caught(program: &SwitchProgram, mutant: &SwitchProgram, packets: usize) -> bool {
    let [mut one, mut other] = [program, mutant].map(|it| Interpreter::new(it, WORDS).with_hash(hash));
    let mut numbers = Numbers::new();
    let flows = range_ends(program);
    (0..packets).any(|_| {
        let values: Vec<_> = program.inputs().map(|input| (input, of_input(input, &mut numbers))).collect();
        let value = |wanted: Input| values.iter().find(|(input, _)| *input == wanted).map_or(0, |(_, value)| *value);
        let now = value(Input::Arrived) >> 10 & ones(32);
        for (register, words) in program.registers.iter().zip(&mut one.registers) {
            for word in words {
                *word = of_register(&register.name, now, &flows, &value, &mut numbers) & ones(register.bits);
            }
        }
        other.registers.clone_from(&one.registers);
        [Gress::Ingress, Gress::Egress].into_iter().any(|gress| {
            let mut run = |interpreter: &mut Interpreter<'_>| interpreter.run_at(gress, &value, &mut |_| 0);
            run(&mut one) != run(&mut other)
        }) || one.registers != other.registers
    })
}

/// A hash of few values, which differs for both directions and for polynomials.
fn hash(polynomial: Polynomial, input: &dyn Fn(Input) -> u64) -> u64 {
    let own = Polynomial::ALL.iter().position(|it| *it == polynomial).unwrap_or(0) as u64;
    input(Input::Source) + 2 * input(Input::Destination) ^ own
}

/// The numbers of flows at which the share changes.
fn range_ends(program: &SwitchProgram) -> Vec<u64> {
    let tables = program.choices.iter().filter(|table| table.name == "share_of_flow");
    tables.flat_map(|table| &table.entries).flat_map(|(ranges, _)| [ranges[0].0, ranges[0].1]).collect()
}

/// A value of an input.
fn of_input(input: Input, numbers: &mut Numbers) -> u64 {
    let any = numbers.next();
    let among = |count: u64| (any >> 8 & 0xff_ffff) % count;
    match input {
        Input::Port | Input::ArrivalPort | Input::Source | Input::Destination | Input::FedBack => among(2),
        Input::IpWords => [0, 5][among(2) as usize],
        Input::TcpWords => [0, 5, 8, 8, 8, 15, 4][among(7) as usize],
        // Many are as long as their headers.
        Input::IpLength => among(24) * 4 + u64::from(any & 7 == 0),
        Input::TcpFlags => [0, 2, 16, 16, 16, 18, 13][among(7) as usize],
        Input::QueueLength => [among(64), 4090 + among(12), among(1 << 19), 65_536 + among(2)][(any & 3) as usize],
        Input::Note(0) => among(4),
        Input::Note(1 | 2) => [among(16), 20 + among(60), 65_500 + among(36), 100 + among(30)][(any & 3) as usize],
        Input::Note(3) => among(6),
        Input::Note(4 | 7) => among(3),
        Input::Note(5 | 10) => among(5),
        Input::Note(6) => among(8),
        Input::Note(8) => among(7),
        Input::Note(9) => among(8),
        Input::Note(11) => among(12) + if any & 7 == 0 { 248 } else { 0 },
        Input::Window => among(1 << 16) >> (any >> 40 & 15),
        input => numbers.of(input.bits()),
    }
}

/// A word of a register.
fn of_register(name: &str, now: u64, flows: &[u64], value: &dyn Fn(Input) -> u64, numbers: &mut Numbers) -> u64 {
    let any = numbers.next();
    let among = |count: u64| (any >> 8 & 0xff_ffff) % count;
    let around = |middle: u64, few: u64| middle.wrapping_sub(few / 2).wrapping_add(among(few));
    match name {
        "round_trip_time" => match any & 7 {
            0 => now | 1 << 31,
            1 | 2 => around(now, 40) | 1 << 31,
            3 => around(1 << 31, 4),
            4 => numbers.of(32),
            _ => among(200),
        },
        "round_end" => match any & 3 {
            0 => around(now, 4),
            1 => around(now.wrapping_add(1 << 31), 4),
            _ => numbers.of(32),
        },
        "sent" | "sent_before" => [among(20), among(100), 65_530 + among(6), numbers.of(16)][(any & 3) as usize],
        "above_share" => among(2),
        "flow_group" => among(5),
        "flow_queue" => among(9),
        // At the ends of ranges, and where each queue takes one more.
        "long_lived_flows" if any & 3 == 0 => around(8 << among(6), 3),
        "long_lived_flows" => {
            let end = flows.get(among(flows.len().max(1) as u64) as usize).copied().unwrap_or(0);
            end.wrapping_add(any >> 40 & 3).wrapping_sub(1)
        }
        // A flow's number, with the mark.
        "newest_flow" => [0, among(4) | 1 << 16, value(Input::Note(0)) | 1 << 16, among(4)][(any & 3) as usize],
        "first_loss_delay" => 3 + among(4),
        "first_loss_based" => 5 + among(3),
        "first_model_based" => 6 + among(3),
        _ if name.ends_with("_room") => around(0, 12),
        "gained_takes" => among(6),
        "depth" | "depth_before" => [among(8), 120 + among(20), 4090 + among(6), among(300)][(any & 3) as usize],
        "aggressiveness" => [among(16), 250 + among(6), 2 + among(3), 10 + among(3)][(any & 3) as usize],
        "since_decrease" | "pulse_left" | "period_left" | "pulses" => {
            [among(6), 253 + among(3), 0, numbers.of(8)][(any & 3) as usize]
        }
        _ => numbers.of(32),
    }
}
