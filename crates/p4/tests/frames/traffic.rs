//! Whole frames of all kinds for a program, with what BMv2 would measure of each.

use super::build::Intrinsics;
use super::model::{Arrival, sum};
use queuescope_p4::ir::{Input, Leaving, PacketFate, SwitchProgram, passing, wandering};

/// Ports 0 to 6 have an address each.
pub const PORTS: u16 = 7;

/// The address behind a port.
pub fn address(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 1, port as u8]
}

/// What a frame is made of.
struct Packet {
    to: u16,
    ecn: u8,
    identification: u16,
    source: u32,
    destination: u32,
    ports: u32,
    protocol: u8,
    flags: u8,
    window: u16,
    /// Of the frame.
    size: usize,
}

/// How a frame differs from a plain one of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    V4,
    V6,
    Tagged,
    TaggedV6,
    /// An IPv4 header with an option.
    Options,
    /// A fragment that is not the first one.
    Fragment,
    /// The checksum of the IPv4 header is this, by choice of the identification.
    Checksum(u16),
    /// Cut behind this many bytes.
    Cut(usize),
    /// The same, of IPv6.
    CutV6(usize),
    /// Behind a VLAN tag.
    CutTagged(usize),
    Arp,
    /// Two VLAN tags.
    TwoTags,
    /// An address that no port has.
    Unknown,
}

/// The form of the frame of a number: every other one is plain.
fn form(number: usize) -> Form {
    const ODD: [Form; 32] = [
        Form::V6,
        Form::Tagged,
        Form::TaggedV6,
        Form::Options,
        Form::V6,
        Form::Fragment,
        Form::Checksum(0),
        Form::Arp,
        Form::V6,
        Form::Checksum(1),
        Form::Cut(33),
        Form::TwoTags,
        Form::V6,
        Form::Checksum(2),
        Form::CutV6(53),
        Form::Unknown,
        Form::Tagged,
        Form::CutTagged(37),
        Form::Cut(14),
        Form::CutTagged(17),
        Form::TaggedV6,
        Form::Checksum(0xfffe),
        Form::Cut(36),
        Form::CutV6(56),
        Form::Options,
        Form::Cut(34),
        Form::CutTagged(18),
        Form::Cut(20),
        Form::V6,
        Form::CutV6(54),
        Form::Tagged,
        Form::CutV6(30),
    ];
    if number.is_multiple_of(2) { Form::V4 } else { ODD[number / 2 % ODD.len()] }
}

impl Packet {
    fn frame(&self, form: Form) -> Vec<u8> {
        let to = if form == Form::Unknown { [2, 0, 0, 0, 9, 9] } else { address(self.to) };
        let mut frame = [&to[..], &[2, 0, 0, 0, 2, 1]].concat();
        match form {
            Form::Arp => return [&frame[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[7; 36]].concat(),
            Form::Tagged | Form::TaggedV6 | Form::CutTagged(_) => frame.extend([0x81, 0, 0x60, 5]),
            Form::TwoTags => frame.extend([0x81, 0, 0, 5, 0x81, 0, 0, 6]),
            _ => {}
        }
        let is_v6 = matches!(form, Form::V6 | Form::TaggedV6 | Form::CutV6(_));
        if is_v6 {
            self.v6(&mut frame);
        } else {
            self.v4(&mut frame, form);
        }
        if let Form::Cut(at) | Form::CutV6(at) | Form::CutTagged(at) = form {
            frame.truncate(at);
        }
        frame
    }

    /// The data behind an IP header: TCP with an option of 12 bytes, or UDP, or something else.
    fn transport(&self, length: usize, is_v6: bool) -> Vec<u8> {
        let mut data = vec![0; length.max(32)];
        data[..4].copy_from_slice(&self.ports.to_be_bytes());
        for (number, byte) in data.iter_mut().enumerate().skip(32) {
            *byte = number as u8;
        }
        if self.protocol == 17 {
            let length = data.len() as u16;
            data[4..6].copy_from_slice(&length.to_be_bytes());
        }
        if self.protocol != 6 {
            return data;
        }
        data[12] = 8 << 4;
        data[13] = self.flags;
        data[14..16].copy_from_slice(&self.window.to_be_bytes());
        let [source, destination] = [self.source, self.destination].map(|address| Self::bytes_of(address, is_v6));
        let pseudo = [source, destination, (data.len() as u32).to_be_bytes().to_vec(), vec![0, 0, 0, 6]];
        let checksum = !sum(&[&pseudo.concat()[..], &data].concat());
        data[16..18].copy_from_slice(&checksum.to_be_bytes());
        data
    }

    fn bytes_of(address: u32, is_v6: bool) -> Vec<u8> {
        let prefix: &[u8] = if is_v6 { &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] } else { &[] };
        [prefix, &address.to_be_bytes()].concat()
    }

    fn v4(&self, frame: &mut Vec<u8>, form: Form) {
        let options: &[u8] = if form == Form::Options { &[1, 1, 1, 0] } else { &[] };
        frame.extend([8, 0]);
        let at = frame.len();
        let header = 20 + options.len();
        let data = self.transport(self.size.saturating_sub(at + header), false);
        let length = (header + data.len()) as u16;
        frame.extend([0x40 | (header / 4) as u8, self.ecn]);
        frame.extend(length.to_be_bytes());
        frame.extend(self.identification.to_be_bytes());
        frame.extend(if form == Form::Fragment { [0, 0x10] } else { [0x40, 0] });
        frame.extend([64, self.protocol, 0, 0]);
        frame.extend([self.source, self.destination].into_iter().flat_map(u32::to_be_bytes));
        frame.extend(options);
        if let Form::Checksum(wanted) = form {
            // The identification for which the sum of all words is the complement of the checksum.
            frame[at + 4..at + 6].fill(0);
            let rest = u32::from(sum(&frame[at..]));
            let identification = (u32::from(!wanted) + 0xffff - rest) % 0xffff;
            frame[at + 4..at + 6].copy_from_slice(&(identification as u16).to_be_bytes());
        }
        let checksum = !sum(&frame[at..]);
        frame[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(data);
    }

    fn v6(&self, frame: &mut Vec<u8>) {
        frame.extend([0x86, 0xdd]);
        let data = self.transport(self.size.saturating_sub(frame.len() + 40), true);
        frame.extend([0x60, self.ecn << 4, 0x12, 0x34]);
        frame.extend((data.len() as u16).to_be_bytes());
        frame.extend([self.protocol, 64]);
        for address in [self.source, self.destination] {
            frame.extend(Self::bytes_of(address, true));
        }
        frame.extend(data);
    }
}

/// Every ninth frame is a generated one, for a program that has some.
const GENERATED: usize = 9;

/// The frames for a program, in the order in which they come.
pub fn arrivals(program: &SwitchProgram, seed: u64, count: usize) -> Vec<Arrival> {
    let frames =
        if program.inputs().any(Input::is_note) { of_flows(seed, count) } else { of_queues(program, seed, count) };
    let has = |input| program.inputs().any(|it| it == input);
    let generated = |(number, arrival): (usize, Arrival)| match number % GENERATED {
        8 if has(Input::Generated) => {
            let frame = [&arrival.frame[..12], &[0x88, 0xb5], &[0; 46]].concat();
            Arrival { frame, ..arrival }
        }
        _ if has(Input::HasActivity) => Arrival { frame: with_activity(arrival.frame, number), ..arrival },
        _ => arrival,
    };
    frames.into_iter().enumerate().map(generated).collect()
}

/// The frame with an activity header, for three of eight; with a malformed one for two of 32.
fn with_activity(frame: Vec<u8>, number: usize) -> Vec<u8> {
    let activity = ((10u16 << 8) + (number as u16).wrapping_mul(37) % (4 << 8)).to_be_bytes();
    let header = [&[0x88, 0xb5][..], &activity].concat();
    let [before, behind] = [&frame[..12], &frame[12..]];
    match number % 32 {
        7 => [before, &header[..3]].concat(),
        19 => [before, &header, &header, behind].concat(),
        30 => [before, &[0x81, 0, 0, 5], &header, behind].concat(),
        place if place % 8 < 3 => [before, &header, behind].concat(),
        _ => frame,
    }
}

/// Packets whose sojourn times wander.
fn of_queues(program: &SwitchProgram, seed: u64, count: usize) -> Vec<Arrival> {
    const EVERY: usize = 16;
    let has = |input| program.inputs().any(|it| it == input);
    // Windows of ABC's edge are seconds.
    let shift = if has(Input::IpLength) && has(Input::Arrived) { 10 } else { 0 };
    // A packet in the queue for 20 us, and for a millisecond in ABC.
    let for_packet = if has(Input::HasActivity) { 1_000_000 } else { 20_000 };
    let arrival = |(number, packet): (usize, Leaving)| {
        let random = [1, 2].map(|which| {
            let mixed = ((number as u32 * which) ^ (packet.flow << 20)).wrapping_mul(0x9e37_79b9);
            mixed ^ (mixed >> 15)
        });
        let micros = |input| packet.input(input) / 1000;
        let depth = if has(Input::Depth) { packet.input(Input::Depth) } else { packet.sojourn.0 / for_packet };
        let intrinsics = Intrinsics {
            ingress_global_timestamp: (packet.input(Input::Arrived) << shift) / 1000,
            egress_global_timestamp: micros(Input::Dequeued),
            deq_timedelta: (packet.sojourn.0 / 1000) as u32,
            enq_qdepth: depth as u32 & 0x7_ffff,
            deq_qdepth: packet.input(Input::LengthBehind) as u32,
            random,
        };
        let form = form(number);
        // What is cut short has no checksum to compare.
        let ecn = if matches!(form, Form::Cut(_) | Form::CutTagged(_)) { 0 } else { packet.ecn.bits() };
        let frame = Packet {
            to: packet.port,
            ecn,
            identification: number as u16,
            source: packet.input(Input::Source) as u32,
            destination: packet.input(Input::Destination) as u32,
            ports: packet.input(Input::Ports) as u32,
            protocol: packet.input(Input::Protocol) as u8,
            flags: 0x10,
            window: 1000,
            size: packet.size.into(),
        };
        Arrival { port: packet.input(Input::ArrivalPort) as u16, frame: frame.frame(form), intrinsics }
    };
    wandering(seed, count * EVERY).step_by(EVERY).enumerate().map(arrival).collect()
}

/// Packets of flows with different senders.
fn of_flows(seed: u64, count: usize) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    passing(seed, count, |pass| {
        let number = arrivals.len();
        let of = |input| pass.input(input) as u32;
        let is_v6 = pass.input(Input::IpWords) == 0;
        // One in sixteen has another form.
        let form = match (number % 16, is_v6) {
            (7, _) => form(number / 16 * 2 + 1),
            (_, true) => Form::V6,
            (3, false) => Form::Tagged,
            _ => Form::V4,
        };
        // The length in a header of IPv6 is without it.
        let before = 14 + if form == Form::Tagged { 4 } else { 0 } + if is_v6 { 40 } else { 0 };
        let packet = Packet {
            to: of(Input::Port) as u16,
            ecn: 0,
            identification: number as u16,
            source: of(Input::Source),
            destination: of(Input::Destination),
            ports: of(Input::Ports),
            protocol: of(Input::Protocol) as u8,
            flags: of(Input::TcpFlags) as u8,
            window: of(Input::Window) as u16,
            size: before + of(Input::IpLength) as usize,
        };
        let now = pass.now.0 / 1000;
        let intrinsics = Intrinsics {
            ingress_global_timestamp: now,
            egress_global_timestamp: now,
            enq_qdepth: pass.depth,
            ..Intrinsics::default()
        };
        arrivals.push(Arrival { port: of(Input::ArrivalPort) as u16, frame: packet.frame(form), intrinsics });
        // No pass behind the queue: the model has those.
        PacketFate { dropped: true, ..PacketFate::default() }
    });
    arrivals
}
