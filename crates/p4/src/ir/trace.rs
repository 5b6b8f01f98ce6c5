//! Packets for a [`TestBuild`], with what the interpreter expects of each.

mod passing;
mod sighting;

use super::builder::SwitchProgram;
use super::interpreter::PacketFate;
use super::parsed::ParsedFrame;
use super::print::TestBuild;
use super::table::TableEntries;
use super::validate::has_note;
use super::variable::{Input, Operand};
use crate::Gress;
use crate::algorithms::{EGRESS_TAP, INGRESS_TAP};
pub use passing::{Passing, passing};
use queuescope_wire::{ByteCount, Departure, Ecn, FlowId, Nanos, Packet};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
pub use sighting::{Sighting, Tap, sightings};

/// Packets, and what becomes of them.
///
/// ```
/// use queuescope_p4::algorithms::executable;
/// use queuescope_p4::ir::Trace;
///
/// let programs = executable()?;
/// let pie_dp = programs.iter().find(|program| program.name() == "pie-dp").expect("it is one of them");
/// let trace = Trace::new(pie_dp, 1, 500);
/// assert_eq!(trace.packets.len(), 500);
/// assert!(trace.dropped > 0);
/// # Ok::<(), queuescope_p4::ir::InvalidProgram>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The packets, in the order in which they are sent.
    pub packets: Vec<TracePacket>,
    /// How many of them the packet generator would send.
    pub generated: usize,
    /// How many of the others the program drops.
    pub dropped: usize,
    /// How many of the others it marks.
    pub marked: usize,
    /// How many of the others it reports.
    pub reported: usize,
}

/// A packet as Ethernet frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePacket {
    /// When it leaves the queue.
    pub time: Nanos,
    /// As it is sent.
    pub sent: Vec<u8>,
    /// As it comes back: with the decisions and the words of the registers.
    pub expected: Vec<u8>,
}

/// A packet that leaves a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// The port that it leaves by.
    pub port: u16,
    /// When it leaves.
    pub now: Nanos,
    /// How long it waited.
    pub sojourn: Nanos,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Its flow.
    pub flow: u32,
    /// Its length in bytes.
    pub size: u16,
}

impl Trace {
    /// `count` packets, which depend on the program and `seed` alone. Their sojourn times [wander](wandering).
    pub fn new(program: &SwitchProgram, seed: u64, count: usize) -> Self {
        if program.is_off_path {
            return Self::of_taps(program, &sightings(seed, count));
        }
        let mut build = TestBuild::new(program);
        if has_note(program) {
            return Self::with_notes(&mut build, seed, count);
        }
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let has_generated = program.variables.iter().any(|it| it.input == Some(Input::Generated));
        let has_activities = program.variables.iter().any(|it| it.input == Some(Input::HasActivity));
        let has_lengths = program.variables.iter().any(|it| it.input == Some(Input::IpLength));
        let mut trace = Self::default();
        for (number, packet) in wandering(seed, count.saturating_mul(EVERY)).step_by(EVERY).enumerate() {
            // Where packets do something before the queue, too, every other one is for that, and some of these are copies that come back.
            let is_before = program.statements.is_empty() || program.has_ingress() && number % 2 == 1;
            let gress = if is_before { Gress::Ingress } else { Gress::Egress };
            let [has_activity, malformed, activity] = activity_header(number as u64);
            let is_generated = has_generated && gress == Gress::Egress && number % GENERATED == GENERATED - 1;
            let input = |input| match input {
                Input::Generated => u64::from(is_generated),
                Input::FedBack => u64::from(number % 8 == 3),
                Input::HasActivity => has_activity,
                Input::Malformed => malformed,
                Input::Activity => activity,
                // The windows of ABC's edge are seconds.
                Input::Arrived if has_lengths => packet.input(input) << 10,
                // A packet for 20 us, so that the average of RED comes to its thresholds.
                Input::QueueLength if !has_activities => packet.sojourn.0 / 20_000,
                input => packet.input(input),
            };
            let numbers: Vec<_> = (0..build.random()).map(|_| u64::from(random.next_u32())).collect();
            trace.push(packet.now, build.run(gress, &input, &numbers), is_generated);
        }
        trace
    }

    /// Passes of packets through a switch: what one half decides is what the other half and copies find in the note.
    fn with_notes(build: &mut TestBuild<'_>, seed: u64, count: usize) -> Self {
        let mut trace = Self::default();
        passing(seed, count, |pass| {
            let passed = build.run(pass.gress, &|input| pass.input(input), &[]);
            let fate = passed.2;
            trace.push(pass.now, passed, false);
            fate
        });
        trace
    }

    fn push(&mut self, time: Nanos, (sent, expected, fate): (Vec<u8>, Vec<u8>, PacketFate), is_generated: bool) {
        self.generated += usize::from(is_generated);
        self.dropped += usize::from(fate.dropped && !is_generated);
        self.marked += usize::from(fate.marked && !is_generated);
        self.reported += usize::from(fate.reported.is_some());
        let [sent, expected] = [sent, expected].map(|header| frame(&header));
        self.packets.push(TracePacket { time, sent, expected });
    }

    /// Packets from taps, for a program of a switch off the path: every ninth comes from the packet generator in place of a tap. The ports are those of the
    /// program's table, in turn.
    pub fn of_taps(program: &SwitchProgram, sightings: &[Sighting]) -> Self {
        let ports = TapPorts::of(program);
        let has_generated = program.inputs().any(|it| it == Input::Generated);
        let frame = |(number, sighting): (usize, &Sighting)| {
            let inputs = if has_generated && number % GENERATED == GENERATED - 1 {
                ParsedFrame::default().with(Input::Generated, 1).with(Input::Arrived, sighting.time.0)
            } else {
                let port = ports.port(sighting.tap, number);
                let inputs = program.inputs().map(|input| (input, sighting.input(port, input)));
                inputs.fold(ParsedFrame::default(), |frame, (input, value)| frame.with(input, value))
            };
            (sighting.time, inputs)
        };
        Self::of_frames(program, sightings.iter().enumerate().map(frame))
    }

    /// Frames that a switch off the path processes, with their times, ports, and whether they are generated among their inputs.
    pub fn of_frames(program: &SwitchProgram, frames: impl IntoIterator<Item = (Nanos, ParsedFrame)>) -> Self {
        let mut build = TestBuild::new(program);
        let mut trace = Self::default();
        for (time, inputs) in frames {
            let passed = build.run(Gress::Ingress, &|input| inputs.input(input), &[]);
            trace.push(time, passed, inputs.input(Input::Generated) == 1);
        }
        trace
    }
}

/// The ports of taps, by the table that has them.
struct TapPorts {
    ingress: Vec<u16>,
    egress: Vec<u16>,
    other: u16,
}

impl TapPorts {
    fn of(program: &SwitchProgram) -> Self {
        let arrival = program.variables.iter().position(|it| it.input == Some(Input::ArrivalPort));
        let has_port = |key: &Operand| key.variable().is_some_and(|key| Some(key.0) == arrival);
        let table = program.tables.iter().find(|table| table.keys.iter().any(has_port));
        let entries = match table.map(|table| &table.entries) {
            Some(TableEntries::Exact(entries)) => &entries[..],
            _ => &[],
        };
        let of = |role: u64| -> Vec<u16> {
            let ports = entries.iter().filter(|(_, values)| values.first() == Some(&role));
            ports.filter_map(|(keys, _)| keys.first().map(|port| *port as u16)).collect()
        };
        let is_free = |port: &u16| entries.iter().all(|(keys, _)| keys.first() != Some(&u64::from(*port)));
        Self { ingress: of(INGRESS_TAP), egress: of(EGRESS_TAP), other: (0..512).find(is_free).unwrap_or(0) }
    }

    fn port(&self, tap: Tap, number: usize) -> u16 {
        let ports = match tap {
            Tap::In => &self.ingress,
            Tap::Out => &self.egress,
            Tap::Other => &Vec::new(),
        };
        ports.get(number % ports.len().max(1)).copied().unwrap_or(self.other)
    }
}

/// A Python script that sends a trace through BMv2, one packet at a time, and compares what comes back. Its first lines describe its arguments.
pub const REPLAY: &str = include_str!("trace/replay.py");

/// The EtherType of the frames: the second of those for local experiments (IEEE 802).
const ETHER_TYPE: u16 = 0x88b6;

/// The addresses of the frames: locally administered ones. The test build ignores them.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Of this many packets, the last is a generated one, if the program reads whether a packet is.
const GENERATED: usize = 9;

/// Of this many wandering packets, the first is taken, so that a short trace covers many updates of a controller: its packets are 130 us apart.
const EVERY: usize = 16;

/// Whether the packet of a number has an activity header, whether that is malformed, and its activity: between 10 and 14.
fn activity_header(number: u64) -> [u64; 3] {
    match number % 16 {
        3 | 10 => [0, 1, 0],
        place if place / 2 % 2 == 0 && place < 12 => [1, 0, (10 << 8) + number * 37 % (4 << 8)],
        _ => [0; 3],
    }
}

/// A header behind that of Ethernet.
fn frame(header: &[u8]) -> Vec<u8> {
    [&ADDRESSES, &ETHER_TYPE.to_be_bytes()[..], header].concat()
}

impl Leaving {
    /// As the disciplines of `queuescope-queue` take it.
    pub fn departure(self) -> Departure {
        let (flow, size) = (FlowId(self.flow), ByteCount(self.size.into()));
        let packet = Packet { flow, size, ecn: self.ecn, ..Packet::default() };
        let enqueued = self.now.saturating_sub(self.sojourn);
        Departure { packet, enqueued, dequeued: self.now, ..Departure::default() }
    }

    /// As a program takes it.
    pub fn input(self, input: Input) -> u64 {
        match input {
            Input::Port => u64::from(self.port),
            Input::Enqueued => self.now.saturating_sub(self.sojourn).0,
            Input::Dequeued => self.now.0,
            Input::Generated => 0,
            Input::Ecn => u64::from(self.ecn.bits()),
            Input::Source => u64::from(0x0a00_0000 | self.flow),
            Input::Destination => 0xc0a8_0107,
            Input::Ports => u64::from(self.flow) << 16 | 443,
            Input::Protocol if self.flow.is_multiple_of(3) => 17,
            Input::Protocol => 6,
            Input::Length => u64::from(self.size),
            Input::Arrived => self.now.saturating_sub(self.sojourn).0,
            Input::FedBack => 0,
            // 80 bytes in 64 ns: 10 Gb/s.
            Input::Depth => (self.sojourn.0 / 64).min((1 << 19) - 1),
            Input::ArrivalPort => u64::from(self.flow % 5),
            Input::IpLength => u64::from(self.size) - 14,
            // A packet in the queue for each millisecond.
            Input::QueueLength => self.sojourn.0 / 1_000_000,
            // Less than that, or more, by what came since.
            Input::LengthBehind => (self.sojourn.0 / 1_000_000 + u64::from(self.size) % 32).saturating_sub(16),
            Input::HasActivity | Input::Malformed | Input::Activity | Input::Note(_) => 0,
            // An IPv4 header without options, and a TCP header with 12 bytes of them.
            Input::IpWords => 5,
            Input::TcpWords if self.input(Input::Protocol) == 6 => 8,
            Input::TcpFlags if self.input(Input::Protocol) == 6 => 1 << 4,
            Input::TcpWords | Input::TcpFlags | Input::Window | Input::TcpChecksum => 0,
            // What only taps read.
            Input::Identification | Input::Sequence | Input::Acknowledgement => 0,
        }
    }
}

/// Packets of four ports, 8 us apart on average, from 10 s on. Their sojourn times wander between 0 and 30 ms, so that the probability of a controller takes all values.
pub fn wandering(seed: u64, count: usize) -> impl Iterator<Item = Leaving> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
    let (mut level, mut now) = (100_000u64, 10_000_000_000);
    (0..count).map(move |_| {
        let bits = random.next_u64();
        let step = bits % 40_000;
        level =
            (level + step).saturating_sub(bits >> 20 & 0x7fff).min(30_000_000) + u64::from(bits >> 60 == 0) * 90_000;
        if bits >> 52 & 0xff == 0 {
            level /= 8;
        }
        now += bits >> 24 & 0x3fff;
        let ecn = Ecn::from_bits((bits >> 50 & 3) as u8);
        // Half of the packets are of two flows.
        let flow = (bits >> 32 & if bits >> 38 & 1 == 0 { 1 } else { 63 }) as u32;
        let size = 64 + (bits >> 6 & 0x7ff).min(1436) as u16;
        Leaving { port: (bits >> 40 & 3) as u16, now: Nanos(now), sojourn: Nanos(level), ecn, flow, size }
    })
}
