//! What becomes of whole frames, by the interpreter and by a second parser and deparser: those that leave the switch, byte by byte.

use super::build::Intrinsics;
use queuescope_p4::Gress;
use queuescope_p4::ir::{Input, Interpreter, NOTES, PacketFate, ParsedFrame, SwitchProgram};
use std::collections::{BTreeMap, VecDeque};

/// A frame that comes to the switch.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The port that it comes in by.
    pub port: u16,
    pub frame: Vec<u8>,
    pub intrinsics: Intrinsics,
}

/// How often each thing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acts {
    /// Frames that left as they came.
    pub unchanged: usize,
    /// Frames that leave the parser alone: neither IPv4 nor IPv6, or cut short.
    pub unparsed: usize,
    /// Those among them that left.
    pub passed: usize,
    /// Frames to an address that no port has.
    pub unknown: usize,
    /// Others that did not leave, without generated ones.
    pub dropped: usize,
    /// Frames of IPv4, and of IPv6.
    pub marked: [usize; 2],
    pub copies: usize,
    pub recirculated: usize,
    pub windows: usize,
    pub pushed: usize,
    pub stripped: usize,
    pub generated: usize,
    /// Frames with a VLAN tag and an IP header.
    pub tagged: usize,
    pub v6: usize,
}

/// A program with its registers, and its table of addresses.
pub struct Model<'a> {
    program: &'a SwitchProgram,
    pub interpreter: Interpreter<'a>,
    ports: BTreeMap<[u8; 6], u16>,
    pub acts: Acts,
}

/// A pass of a frame through the switch.
struct Pass {
    frame: Vec<u8>,
    note: [u16; NOTES],
    is_back: bool,
}

impl<'a> Model<'a> {
    pub fn new(program: &'a SwitchProgram, ports: impl IntoIterator<Item = ([u8; 6], u16)>) -> Self {
        let interpreter = Interpreter::new(program, u64::MAX);
        Self { program, interpreter, ports: ports.into_iter().collect(), acts: Acts::default() }
    }

    /// The port that a frame leaves by, if its address has one.
    pub fn port_of(&self, frame: &[u8]) -> Option<u16> {
        self.ports.get(frame.get(..6)?).copied()
    }

    /// What leaves the switch.
    pub fn frame(&mut self, arrival: &Arrival) -> Option<(u16, Vec<u8>)> {
        let mut passes = VecDeque::from([Pass { frame: arrival.frame.clone(), note: [0; NOTES], is_back: false }]);
        let mut left = None;
        while let Some(pass) = passes.pop_front() {
            let out = self.pass(arrival, pass, &mut passes);
            assert!(out.is_none() || left.is_none(), "a copy left");
            left = left.or(out);
        }
        let found = Found::of(self.program, &arrival.frame);
        self.acts.unparsed += usize::from(!found.is_seen());
        self.acts.generated += usize::from(found.is_generated);
        self.acts.tagged += usize::from(found.is_tagged && found.ip.is_some());
        self.acts.v6 += usize::from(matches!(found.ip, Some((_, false))));
        match &left {
            Some((_, frame)) => {
                let is_same = *frame == arrival.frame;
                self.acts.unchanged += usize::from(is_same);
                self.acts.passed += usize::from(!found.is_seen());
                assert!(is_same || found.is_seen(), "it is left alone");
                assert_checksums(frame, &Found::of(self.program, frame));
            }
            None if self.port_of(&arrival.frame).is_none() => self.acts.unknown += 1,
            None => self.acts.dropped += usize::from(!found.is_generated),
        }
        left
    }

    fn pass(&mut self, arrival: &Arrival, pass: Pass, passes: &mut VecDeque<Pass>) -> Option<(u16, Vec<u8>)> {
        let port = self.port_of(&pass.frame)?;
        let found = Found::of(self.program, &pass.frame);
        let begin = pass.frame.clone();
        let mut frame = pass.frame;
        let mut note = pass.note;
        let mut activity = None;
        if found.is_seen() && self.program.has_ingress() {
            let fate = self.run(Gress::Ingress, arrival, port, &found, note, pass.is_back, None);
            note = fate.note;
            let again = Pass { frame: begin.clone(), note, is_back: true };
            if fate.fed_back {
                self.acts.copies += 1;
                passes.push_back(Pass { frame: begin, ..again });
            }
            if fate.recirculated {
                self.acts.recirculated += 1;
                passes.push_back(Pass { frame: arrival.frame.clone(), note, is_back: true });
                return None;
            }
            if fate.dropped {
                return None;
            }
            activity = fate.pushed;
            self.change(&mut frame, &found, &fate);
        }
        if found.is_seen() {
            let fate = self.run(Gress::Egress, arrival, port, &found, note, pass.is_back, activity);
            // Headers are where they were, or four bytes further.
            let moved = Found::of(self.program, &frame);
            self.change(&mut frame, &moved, &fate);
            if fate.fed_back {
                self.acts.copies += 1;
                passes.push_back(Pass { frame: frame.clone(), note: fate.note, is_back: true });
            }
            if fate.dropped {
                return None;
            }
        }
        Some((port, frame))
    }

    #[allow(clippy::too_many_arguments, reason = "it is what a half of the pipeline knows")]
    fn run(
        &mut self,
        gress: Gress,
        arrival: &Arrival,
        port: u16,
        found: &Found,
        note: [u16; NOTES],
        is_back: bool,
        pushed: Option<u16>,
    ) -> PacketFate {
        let it = &arrival.intrinsics;
        let nanos = |micros: u64| micros.wrapping_mul(1000) & ((1 << 48) - 1);
        let input = |input: Input| match input {
            Input::Port => port.into(),
            Input::ArrivalPort => arrival.port.into(),
            Input::Arrived => nanos(it.ingress_global_timestamp),
            Input::Dequeued => nanos(it.egress_global_timestamp),
            Input::Enqueued => {
                nanos(it.egress_global_timestamp).wrapping_sub(nanos(it.deq_timedelta.into())) & ((1 << 48) - 1)
            }
            Input::Depth | Input::QueueLength => it.enq_qdepth.into(),
            Input::LengthBehind => it.deq_qdepth.into(),
            Input::Length => (arrival.frame.len() as u64) & 0xffff,
            Input::FedBack => is_back.into(),
            Input::Generated => found.is_generated.into(),
            Input::HasActivity => (pushed.is_some() || found.activity.is_some()).into(),
            Input::Activity => pushed.or(found.activity).unwrap_or(0).into(),
            Input::Malformed => found.is_malformed.into(),
            Input::Note(slot) => note[usize::from(slot)].into(),
            input => found.headers.input(input),
        };
        let mut random = it.random.into_iter();
        self.interpreter.run_at(gress, &input, &mut |bits| {
            u64::from(random.next().expect("the header has two")) & (u64::MAX >> (64 - bits))
        })
    }

    /// Does to a frame what the program decides.
    fn change(&mut self, frame: &mut Vec<u8>, found: &Found, fate: &PacketFate) {
        if let (true, Some((at, is_v4))) = (fate.marked && !fate.dropped, found.ip) {
            self.acts.marked[usize::from(!is_v4)] += 1;
            mark(frame, at, is_v4);
        }
        if let (Some([window, _]), Some(at)) = (fate.window, found.tcp) {
            self.acts.windows += 1;
            set_window(frame, at, window);
        }
        if fate.stripped {
            self.acts.stripped += 1;
            frame.drain(12..16);
        }
        if let Some(activity) = fate.pushed {
            self.acts.pushed += 1;
            let header = [[0x88, 0xb5], activity.to_be_bytes()].concat();
            frame.splice(12..12, header);
        }
    }
}

/// Sets CE, and the checksum that the whole header then has.
fn mark(frame: &mut [u8], at: usize, is_v4: bool) {
    if !is_v4 {
        frame[at + 1] |= 0x30;
        return;
    }
    frame[at + 1] |= 3;
    let words = usize::from(frame[at] & 0xf) * 4;
    frame[at + 10..at + 12].fill(0);
    let sum = !sum(&frame[at..at + words]);
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
}

/// Sets the receive window, and the checksum that differs by it. The checksum is computed from all of the other bytes.
fn set_window(frame: &mut [u8], at: usize, window: u16) {
    let before =
        [u16::from_be_bytes([frame[at + 14], frame[at + 15]]), u16::from_be_bytes([frame[at + 16], frame[at + 17]])];
    frame[at + 14..at + 16].copy_from_slice(&window.to_be_bytes());
    // In numbers modulo 2^16 - 1.
    let rest = (2 * 0xffff - u32::from(before[1]) - u32::from(before[0])) % 0xffff;
    let all = sum(&[if rest == 0 { 0xffff } else { rest as u16 }, window].map(u16::to_be_bytes).concat());
    frame[at + 16..at + 18].copy_from_slice(&(!all).to_be_bytes());
}

/// Fails if a checksum in a frame that leaves is wrong. Those of frames that are cut short are not known.
fn assert_checksums(frame: &[u8], found: &Found) {
    let Some((at, is_v4)) = found.ip else { return };
    let header = if is_v4 { usize::from(frame[at] & 0xf) * 4 } else { 40 };
    if let Some(header) = frame.get(at..at + header).filter(|_| is_v4) {
        assert_eq!(sum(header), 0xffff, "{header:02x?}");
    }
    let length = usize::from(u16::from_be_bytes(if is_v4 {
        [frame[at + 2], frame[at + 3]]
    } else {
        [frame[at + 4], frame[at + 5]]
    }));
    let length = if is_v4 { length - header } else { length };
    let (Some(_), Some(data)) = (found.tcp, frame.get(at + header..at + header + length)) else { return };
    let addresses = if is_v4 { at + 12..at + 20 } else { at + 8..at + 40 };
    let pseudo = [&frame[addresses], &[0, 6], &(length as u16).to_be_bytes(), data].concat();
    assert_eq!(sum(&pseudo), 0xffff, "{frame:02x?}");
}

/// The ones' complement sum of words (RFC 1071).
pub fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from));
    words.fold(0u32, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    }) as u16
}

/// What a parser finds in a frame.
#[derive(Debug, Default)]
pub struct Found {
    pub headers: ParsedFrame,
    /// Where the IP header begins, and whether it is IPv4.
    pub ip: Option<(usize, bool)>,
    /// Where the TCP header begins.
    pub tcp: Option<usize>,
    pub is_tagged: bool,
    pub is_generated: bool,
    pub activity: Option<u16>,
    pub is_malformed: bool,
}

impl Found {
    pub fn of(program: &SwitchProgram, frame: &[u8]) -> Self {
        let has = |input| program.inputs().any(|it| it == input);
        let mut found = Self::default();
        let ether_type = |at: usize| frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let is_experiment = ether_type(12) == Some(0x88b5);
        if is_experiment && has(Input::Generated) {
            return Self { is_generated: true, ..found };
        }
        let has_header = is_experiment && has(Input::HasActivity);
        let plain = if has_header {
            let Some(behind) = ether_type(16).filter(|it| *it != 0x88b5) else {
                return Self { is_malformed: true, ..found };
            };
            found.activity = ether_type(14);
            [&frame[..12], &behind.to_be_bytes(), &frame[18..]].concat()
        } else {
            frame.to_vec()
        };
        let moved = if has_header { 4 } else { 0 };
        let of = |at: usize| plain.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        found.headers = ParsedFrame::new(&plain);
        found.is_tagged = of(12) == Some(0x8100) && plain.len() >= 18;
        let at = if found.is_tagged { 18 } else { 14 };
        if found.is_tagged && of(16) == Some(0x88b5) && has(Input::HasActivity) {
            return Self { is_malformed: true, headers: ParsedFrame::default(), ..found };
        }
        match of(at - 2) {
            Some(0x0800) if plain.len() >= at + 20 => {
                found.ip = Some((at + moved, true));
                found.headers = found.headers.with(Input::IpWords, (plain[at] & 0xf).into());
                let is_whole = plain[at] & 0xf == 5 && (plain[at + 6] & 0x1f, plain[at + 7]) == (0, 0);
                if plain[at + 9] == 6 && is_whole {
                    found.tcp(&plain, at + 20, moved);
                }
            }
            Some(0x86dd) if plain.len() >= at + 40 => {
                found.ip = Some((at + moved, false));
                if plain[at + 6] == 6 {
                    found.tcp(&plain, at + 40, moved);
                }
            }
            _ => {}
        }
        found
    }

    fn tcp(&mut self, plain: &[u8], at: usize, moved: usize) {
        let Some(header) = plain.get(at..at + 20) else { return };
        self.tcp = Some(at + moved);
        let word = |at: usize| u64::from(u16::from_be_bytes([header[at], header[at + 1]]));
        let inputs = [
            (Input::TcpWords, u64::from(header[12] >> 4)),
            (Input::TcpFlags, header[13].into()),
            (Input::Window, word(14)),
            (Input::TcpChecksum, word(16)),
        ];
        let headers = std::mem::take(&mut self.headers);
        self.headers = inputs.into_iter().fold(headers, |headers, (input, value)| headers.with(input, value));
    }

    /// Whether the program does anything with it.
    pub fn is_seen(&self) -> bool {
        self.ip.is_some() || self.is_generated || self.is_malformed || self.activity.is_some()
    }
}
