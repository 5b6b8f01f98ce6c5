//! Packets that show a difference between a program and a mutant.

use super::super::builder::SwitchProgram;
use super::super::hash::Polynomial;
use super::super::interpreter::Interpreter;
use super::super::variable::{Input, ones};
use crate::Gress;
use queuescope_queue::{DropSchedule, SwitchMeterParams};
use queuescope_wire::Nanos;

/// Random numbers (xorshift64*, Vigna 2016), of which many are at the ends of their range.
pub(super) struct Numbers(u64);

impl Numbers {
    pub fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number of `bits` bits: any, a small one, a large one, or one beside the middle.
    pub fn of(&mut self, bits: u32) -> u64 {
        let any = self.next();
        let small = any >> 8 & 3;
        let number = match any & 7 {
            0 => small,
            1 => ones(bits).wrapping_sub(small),
            2 => (1u64 << (bits - 1)).wrapping_sub(2).wrapping_add(small),
            3 => any >> (64 - bits) >> ((any >> 16) % u64::from(bits)),
            _ => any >> (64 - bits),
        };
        number & ones(bits)
    }
}

/// Whether packets show a difference in what happens to them, or in a register. Registers and random numbers take any values.
pub(super) fn is_caught(program: &SwitchProgram, mutant: &SwitchProgram, packets: usize) -> bool {
    // Off the path, a register counts eight fates.
    let entries = if program.is_off_path { 8 } else { 2 };
    let (mut one, mut other) = (Interpreter::new(program, entries), Interpreter::new(mutant, entries));
    let mut numbers = Numbers::new();
    let has_schedule = program.registers.iter().any(|register| register.name == "last_below");
    let schedule = has_schedule.then(|| DropSchedule::new(DropSchedule::LONGEST));
    // PrintQueue compares times with those of earlier packets, and levels: numbers of few bits meet.
    let is_printqueue = program.name.starts_with("printqueue");
    (0..packets).any(|packet| {
        let few = |bits: u32| if is_printqueue && packet / 4 % 8 != 0 { bits.min(4) } else { bits };
        // Some times are around the middle of their range.
        let middle = if is_printqueue && packet / 4 % 8 == 1 { (1 << 31) - 8 } else { 0 };
        if packet % 4 == 0 {
            for (register, words) in program.registers.iter().zip(&mut one.registers) {
                words.iter_mut().for_each(|word| *word = numbers.of(few(register.bits)) + middle);
            }
            other.registers.clone_from(&one.registers);
        }
        let inputs = program.variables.iter().filter_map(|it| it.input);
        // Few ports and flows, so that packets meet what others left, and times before the queue with their highest bit alone.
        let is_off_path = program.is_off_path;
        let bits = |input| match input {
            Input::ArrivalPort | Input::IpLength if is_off_path => 2,
            Input::Identification | Input::Sequence | Input::Acknowledgement => 1,
            Input::Arrived if is_off_path => input.bits(),
            Input::Port if is_printqueue => 2,
            Input::Port | Input::Source | Input::Destination | Input::Ports | Input::Protocol | Input::ArrivalPort => 1,
            // The epochs of ABC are in the higher bits.
            Input::Arrived if program.name != "abc-edge" => 32,
            input => few(input.bits()),
        };
        let inputs = inputs.map(|input| (input, numbers.of(bits(input))));
        let inputs: Vec<_> = inputs.collect();
        // Most sojourn times are short.
        // Most compare sojourn times of 32 bits with constants.
        let compares_times = !["pie", "egress-pi", "printqueue"].iter().any(|name| program.name.starts_with(name));
        let widths = if compares_times { 25 } else { 24 };
        let width = 8 + (numbers.next() % widths) as u32;
        let sojourn = numbers.of(width);
        let dequeued = inputs.iter().find(|(input, _)| *input == Input::Dequeued).map_or(0, |(_, value)| *value);
        // Many packets leave at the start of a window, and some where the highest of 32 bits changes.
        let dequeued = match dequeued >> 45 {
            _ if !compares_times => dequeued + middle,
            0 | 1 => dequeued & !0xffff,
            2 => dequeued & !0xffff_ffff | 1 << 31 | dequeued & 0x1_ffff,
            _ => dequeued,
        };
        if let Some(schedule) = &schedule
            && packet % 4 == 2
        {
            // Around the end of the table, and around the numbers that are due there.
            let elapsed =
                u64::from(schedule.end()) + ((numbers.next() % 3) << schedule.tail()) + numbers.next() % 4 - 2;
            let count = u64::from(schedule.due(elapsed as u32)) + numbers.next() % 3 - 1;
            let words = [(dequeued >> 10).wrapping_sub(elapsed) & ones(32), count];
            for interpreter in [&mut one, &mut other] {
                interpreter.registers.iter_mut().zip(words).for_each(|(register, word)| register.fill(word));
            }
        }
        // The same of packets from taps.
        let arrived = match inputs.iter().find(|(input, _)| *input == Input::Arrived).map_or(0, |(_, value)| *value) {
            time if time >> 46 == 0 => time & !0xffff,
            // Where 32 bits wrap, where the highest of them changes, and in the last window before.
            time if time >> 45 == 2 => time & !0xffff_ffff | time & 0x7_ffff,
            time if time >> 45 == 3 => time & !0xffff_ffff | 1 << 31 | time & 0x3_ffff,
            time if time >> 45 == 4 => time | 0xffff_0000,
            time => time,
        };
        let read = |input| match input {
            Input::Dequeued => dequeued,
            Input::Arrived if is_off_path => arrived,
            Input::Enqueued => dequeued.wrapping_sub(sojourn) & ones(48),
            // Most queues are short, and some as long as ABC distinguishes.
            Input::QueueLength => match inputs.iter().find(|(it, _)| *it == input).map_or(0, |(_, value)| *value) {
                length if length & 0x300 == 0 => 508 + (length & 7),
                length => length & if length & 0xc00 == 0 { ones(19) } else { 63 },
            },
            _ => inputs.iter().find(|(it, _)| *it == input).map_or(0, |(_, value)| *value),
        };
        if packet % 4 == 0 && program.name.starts_with("abc") {
            near_the_limits(program, &mut one, &read, &mut numbers);
            other.registers.clone_from(&one.registers);
        }
        if packet % 4 == 0 && is_off_path {
            waiting(&mut one.registers[0], &read, arrived, sojourn, &mut numbers);
            other.registers.clone_from(&one.registers);
        }
        let random = [numbers.of(32), numbers.of(32)];
        let gresses = if program.has_ingress() { &[Gress::Ingress, Gress::Egress][..] } else { &[Gress::Egress] };
        let run = |interpreter: &mut Interpreter<'_>| {
            let mut drawn = 0;
            let mut random = |bits| {
                drawn += 1;
                random[drawn % 2] & ones(bits)
            };
            gresses.iter().map(|gress| interpreter.run_at(*gress, &read, &mut random)).collect::<Vec<_>>()
        };
        run(&mut one) != run(&mut other) || one.registers != other.registers
    })
}

/// Lets the packet itself wait in most places of ConQuest beside a router, for a time that is at a limit.
fn waiting(places: &mut [u64], read: &dyn Fn(Input) -> u64, arrived: u64, sojourn: u64, numbers: &mut Numbers) {
    let [.., of_digest] = Polynomial::ALL;
    let digest = of_digest.hash_packet(read);
    for place in places {
        let kind = numbers.next();
        let small = (kind >> 8 & 3).wrapping_sub(1);
        let time = match kind >> 10 & 7 {
            // The longest delay, a window, and tau.
            number @ 0..3 => arrived.wrapping_sub(1 << (18 - 2 * number)).wrapping_add(small),
            3 => arrived.wrapping_add(small),
            4 => small,
            // After the window.
            5 => arrived.wrapping_add(1 << 16),
            _ => arrived.wrapping_sub(sojourn),
        };
        let first = if kind & 3 == 0 { *place } else { digest };
        *place = (time & ones(32)) << 32 | first & ones(32);
    }
}

/// Sets most registers of ABC to words at which the next packet shows a difference.
fn near_the_limits(
    program: &SwitchProgram,
    interpreter: &mut Interpreter<'_>,
    read: &dyn Fn(Input) -> u64,
    numbers: &mut Numbers,
) {
    let (arrived, meter) = (Nanos(read(Input::Arrived)), SwitchMeterParams::default());
    let first = u64::from(SwitchMeterParams::FIRST);
    let window = arrived.0 >> meter.window & 3;
    let place = (arrived.0 >> meter.tick() & (first - 1) | first) << window;
    let activity = |activity: u64| activity << 16 & u64::from(u32::MAX) ^ 1 << 31;
    let behind = 20u64.wrapping_sub(read(Input::QueueLength).min(511)) << 4;
    let limits = [activity(read(Input::Activity)), activity(read(Input::Activity).wrapping_sub(behind))];
    for (register, words) in program.registers.iter().zip(&mut interpreter.registers) {
        for word in words {
            let kind = numbers.next();
            let small = kind >> 8 & 3;
            *word = match (&*register.name, kind & 7) {
                ("last_epoch", 0..6) => u64::from(meter.epoch(arrived)).wrapping_sub(small),
                ("begin_of_even" | "begin_of_odd", 0..3) => place.wrapping_sub(small),
                ("begin_of_even" | "begin_of_odd", 3..6) => (first << 4).wrapping_sub(small << 4),
                ("sum_of_even" | "sum_of_odd", 0..3) => kind >> 55,
                ("average_activity", 0..6) => limits[kind as usize & 1].wrapping_sub(1).wrapping_add(small),
                _ => *word,
            } & ones(register.bits);
        }
    }
}
