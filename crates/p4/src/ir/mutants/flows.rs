//! Packets that show a difference between P4air and a mutant.

use super::super::builder::SwitchProgram;
use super::super::hash::Polynomial;
use super::super::interpreter::Interpreter;
use super::super::variable::{Input, ones};
use super::packets::Numbers;
use crate::Gress;
use std::collections::BTreeSet;

/// The words of each register: two ports, with eight queues and eight groups, and all flows.
const WORDS: u64 = 128;
/// The flows that packets have.
const FLOWS: [u64; 4] = [0, 1, 64, 127];

/// As [`is_caught`](super::packets::is_caught). Registers, notes and headers take values at which the program decides.
pub(super) fn is_caught(program: &SwitchProgram, mutant: &SwitchProgram, packets: usize) -> bool {
    let [mut one, mut other] = [program, mutant].map(|it| Interpreter::new(it, WORDS).with_hash(hash));
    let mut numbers = Numbers::new();
    let flows = range_ends(program);
    (0..packets).any(|packet| {
        let pass = Pass::of(packet);
        let values: Vec<_> = program.inputs().map(|input| (input, pass.input(input, &mut numbers))).collect();
        let value = |wanted: Input| values.iter().find(|(input, _)| *input == wanted).map_or(0, |(_, value)| *value);
        let state = State { now: value(Input::Arrived) >> 10 & ones(32), flows: &flows, pass, value: &value };
        for (register, words) in program.registers.iter().zip(&mut one.registers) {
            let is_of_place = ["newest_flow", "gained_takes"].contains(&&*register.name);
            let reached = if is_of_place { (0..16).collect() } else { FLOWS.to_vec() };
            for place in reached {
                words[place as usize] = state.word(&register.name, &mut numbers) & ones(register.bits);
            }
        }
        other.registers.clone_from(&one.registers);
        let gress = if pass == Pass::Egress { Gress::Egress } else { Gress::Ingress };
        let run = |interpreter: &mut Interpreter<'_>| interpreter.run_at(gress, &value, &mut |_| 0);
        run(&mut one) != run(&mut other) || one.registers != other.registers
    })
}

/// What a packet does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Traffic,
    Ack,
    Group,
    Other,
    Egress,
}

/// A hash of few values, which differs for both directions and for polynomials.
fn hash(polynomial: Polynomial, input: &dyn Fn(Input) -> u64) -> u64 {
    let own = Polynomial::ALL.iter().position(|it| *it == polynomial).unwrap_or(0) as u64;
    FLOWS[((input(Input::Source) + 2 * input(Input::Destination)) ^ own) as usize % 4]
}

/// The numbers of flows at which the share changes.
fn range_ends(program: &SwitchProgram) -> Vec<u64> {
    let tables = program.choices.iter().filter(|table| table.name == "share_of_flow");
    tables.flat_map(|table| &table.entries).flat_map(|(ranges, _)| [ranges[0].0, ranges[0].1]).collect()
}

/// The changes of groups.
const MOVES: [[u64; 2]; 6] = [[0, 1], [1, 2], [1, 4], [2, 3], [2, 4], [3, 4]];

impl Pass {
    fn of(packet: usize) -> Self {
        [Self::Traffic, Self::Egress, Self::Ack, Self::Group, Self::Traffic, Self::Other][packet % 6]
    }

    /// A value of an input.
    fn input(self, input: Input, numbers: &mut Numbers) -> u64 {
        let any = numbers.next();
        let among = |count: u64| (any >> 8 & 0xff_ffff) % count;
        let pair = MOVES[among(6) as usize];
        match (input, self) {
            (Input::FedBack, Self::Group | Self::Other) => 1,
            (Input::FedBack, _) => 0,
            // Notes begin as zero.
            (Input::Note(_), Self::Traffic | Self::Ack) => 0,
            // Without data.
            (Input::IpWords, Self::Ack) => 5,
            (Input::TcpWords, Self::Ack) => 8,
            (Input::IpLength, Self::Ack) => 52,
            (Input::TcpFlags, Self::Ack) => [16, 16, 16, 0][among(4) as usize],
            (Input::Note(8), Self::Group) => 1,
            (Input::Note(8), _) => 2 + among(5),
            (Input::Note(5), Self::Group) => pair[0],
            // Often the next group, so that there are many changes of groups that exist.
            (Input::Note(9), Self::Group) => 1 + among(4),
            (Input::Note(10), Self::Group) => 0,
            (Input::Note(9), _) => 1 + among(4),
            (Input::Note(10), _) => 1 + among(4),
            (Input::Note(4), Self::Egress) => [0, 1, 2, 2, 2, 2][among(6) as usize],
            (Input::Port | Input::ArrivalPort | Input::Source | Input::Destination, _) => among(2),
            (Input::IpWords, _) => [0, 5][among(2) as usize],
            (Input::TcpWords, _) => [0, 5, 8, 8, 8, 15, 4][among(7) as usize],
            // Many are as long as their headers.
            (Input::IpLength, _) if any & 1 == 0 => 1000,
            (Input::IpLength, _) => among(24) * 4 + u64::from(any & 14 == 0),
            (Input::TcpFlags, _) => [0, 2, 16, 16, 16, 18, 13, 16][among(8) as usize],
            (Input::QueueLength, _) => {
                [among(64), 4090 + among(12), among(1 << 19), 65_536 + among(2)][(any & 3) as usize]
            }
            (Input::Note(0), _) => FLOWS[among(4) as usize],
            (Input::Note(1 | 2), _) => {
                [among(16), 20 + among(60), 65_500 + among(36), 100 + among(30)][(any & 3) as usize]
            }
            (Input::Note(3), _) => among(6),
            (Input::Note(4 | 7), _) => among(3),
            (Input::Note(5), _) => among(5),
            (Input::Note(6), _) => among(8),
            (Input::Note(11), _) => among(12) + if any & 7 == 0 { 248 } else { 0 },
            (Input::Window, _) => among(1 << 16) >> (any >> 40 & 15),
            _ => numbers.of(input.bits()),
        }
    }
}

/// What words depend on.
struct State<'a> {
    now: u64,
    /// The numbers of flows at which the share changes.
    flows: &'a [u64],
    pass: Pass,
    value: &'a dyn Fn(Input) -> u64,
}

impl State<'_> {
    /// A word of a register.
    fn word(&self, name: &str, numbers: &mut Numbers) -> u64 {
        let Self { now, flows, pass, value } = *self;
        let any = numbers.next();
        let among = |count: u64| (any >> 8 & 0xff_ffff) % count;
        let around = |middle: u64, few: u64| middle.wrapping_sub(few / 2).wrapping_add(among(few));
        match name {
            "round_trip_time" => match any & 7 {
                0 => now | 1 << 31,
                1 => around(now, 40) | 1 << 31,
                2 => around(1 << 31, 4),
                _ => (any >> 8 & ones(31)) >> (any >> 40 & 31),
            },
            "round_end" => match any & 3 {
                0 => around(now, 4),
                1 => around(now.wrapping_add(1 << 31), 4),
                // The round trip goes on.
                _ => now.wrapping_add(1 + among(1 << 20)),
            },
            "sent" | "sent_before" => match any & 3 {
                0 => among(20),
                1 => 65_530 + among(6),
                _ => among(1 << 16) >> (any >> 40 & 15),
            },
            "above_share" => [1, 1, 0, 2][(any & 3) as usize],
            "flow_group" if pass == Pass::Group && any & 7 != 0 => value(Input::Note(5)),
            "flow_group" if pass == Pass::Ack => [4, 4, 4, 1][(any & 3) as usize],
            "flow_group" => [0, 0, 1, 2, 3, 4, 4, 1][(any & 7) as usize],
            "flow_queue" => among(9),
            "long_lived_flows" if pass == Pass::Group => {
                [among(32), 0x7ffe + among(3), 0xffff, among(32)][(any & 3) as usize]
            }
            "long_lived_flows" => {
                let end = flows.get(among(flows.len().max(1) as u64) as usize).copied().unwrap_or(0);
                end.wrapping_add(any >> 40 & 3).wrapping_sub(1)
            }
            // A flow's number, with the mark.
            "newest_flow" => {
                let flow = FLOWS[among(4) as usize];
                [0, flow | 1 << 16, value(Input::Note(0)) | 1 << 16, flow][(any & 3) as usize]
            }
            "first_loss_delay" => 3 + among(3),
            "first_loss_based" => 4 + among(3),
            "first_model_based" => 5 + among(3),
            _ if name.ends_with("_room") => around(1, 10),
            "gained_takes" => among(6),
            "depth" | "depth_before" => [among(8), 120 + among(20), 4090 + among(6), among(300)][(any & 3) as usize],
            "aggressiveness" => [among(16), 250 + among(6), 2 + among(3), 10 + among(3)][(any & 3) as usize],
            "since_decrease" | "pulse_left" | "period_left" | "pulses" => {
                [among(6), 253 + among(3), 0, numbers.of(8)][(any & 3) as usize]
            }
            _ => numbers.of(16),
        }
    }
}

/// The keys of the table of groups that give a queue, for all rooms of few flows: signs of differences of rooms, whether a group may give, whether
/// it has no room, and the group that has no room.
pub(super) fn keys_of_givers() -> BTreeSet<Vec<u64>> {
    const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
    let mut keys = BTreeSet::new();
    for number in 0..6usize.pow(4) * 16 {
        let (rooms, several) = (number / 16, number % 16);
        let room: [i64; 4] = std::array::from_fn(|group| (rooms / 6usize.pow(group as u32) % 6) as i64 - 2);
        for each in 1..=2 {
            let sign = |is_negative: bool| u64::from(is_negative);
            let less = PAIRS.map(|[one, other]| sign(room[one] < room[other]));
            let gives: [u64; 4] = std::array::from_fn(|group| sign(several >> group & 1 == 1 && room[group] >= each));
            let full = room.map(|room| sign(room < 0));
            let signs = less.into_iter().chain(gives).chain(full);
            keys.extend((1..=4).map(|to| signs.clone().chain([to]).collect::<Vec<_>>()));
        }
    }
    keys
}
