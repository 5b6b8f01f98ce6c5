//! What the printed parsers find in a frame.

use super::variable::Input;

/// The inputs that a program has from the headers of a frame, as the printed parser finds them: what identifies a flow or a packet, the ECN field and the length.
/// Others are zero, such as the activity, the window and the flags of TCP.
///
/// Ethernet, at most one VLAN tag, and IPv4 or IPv6; TCP and UDP directly behind the IP header, without IPv4 options, and in first fragments only. What is cut short ends the
/// parser, which keeps what it has.
///
/// ```
/// use queuescope_p4::ir::{Input, ParsedFrame};
///
/// let mut frame = vec![0; 12];
/// frame.extend([0x08, 0x00]);
/// // 36 bytes, identification 0x1234, UDP from 10.0.0.1 port 53.
/// frame.extend([0x45, 0, 0, 36, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
/// frame.extend([0, 53, 0x0f, 0xa0, 0, 16, 0xab, 0xcd]);
/// let found = ParsedFrame::new(&frame);
/// assert_eq!(found.input(Input::Identification), 0x1234);
/// assert_eq!(found.input(Input::Sequence), 0x0010_abcd);
/// assert_eq!(found.input(Input::Arrived), 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedFrame {
    found: Vec<(Input, u64)>,
}

const IPV4: u64 = 0x0800;
const IPV6: u64 = 0x86dd;
const VLAN: u64 = 0x8100;
const TCP: u64 = 6;
const UDP: u64 = 17;

impl ParsedFrame {
    /// Parses a frame, from its Ethernet header on.
    pub fn new(frame: &[u8]) -> Self {
        let mut parsed = Self::default();
        // Each header that is cut short ends the parser.
        let _: Option<()> = parsed.ethernet(frame);
        parsed
    }

    /// The same with an input that is not from its headers.
    #[must_use]
    pub fn with(mut self, input: Input, value: u64) -> Self {
        self.found.retain(|(it, _)| *it != input);
        self.found.push((input, value));
        self
    }

    /// The value of an input.
    pub fn input(&self, input: Input) -> u64 {
        self.found.iter().find(|(it, _)| *it == input).map_or(0, |(_, value)| *value)
    }

    fn set(&mut self, input: Input, value: u64) {
        self.found.push((input, value));
    }

    fn ethernet(&mut self, frame: &[u8]) -> Option<()> {
        let header = frame.get(..14)?;
        match number(&header[12..]) {
            VLAN => {
                let tag = frame.get(14..18)?;
                self.network(number(&tag[2..]), &frame[18..])
            }
            ether_type => self.network(ether_type, &frame[14..]),
        }
    }

    fn network(&mut self, ether_type: u64, packet: &[u8]) -> Option<()> {
        match ether_type {
            IPV4 => {
                let header = packet.get(..20)?;
                self.set(Input::Ecn, u64::from(header[1] & 3));
                self.set(Input::IpLength, number(&header[2..4]));
                self.set(Input::Identification, number(&header[4..6]));
                let protocol = self.addresses(header[9], &header[12..16], &header[16..]);
                let is_first = number(&header[6..8]) & 0x1fff == 0;
                if header[0] & 0xf == 5 && is_first { self.transport(protocol, &packet[20..]) } else { None }
            }
            IPV6 => {
                let header = packet.get(..40)?;
                self.set(Input::Ecn, number(&header[..2]) >> 4 & 3);
                self.set(Input::IpLength, number(&header[4..6]));
                let protocol = self.addresses(header[6], &header[20..24], &header[36..]);
                self.transport(protocol, &packet[40..])
            }
            _ => None,
        }
    }

    fn addresses(&mut self, protocol: u8, source: &[u8], destination: &[u8]) -> u64 {
        self.set(Input::Protocol, protocol.into());
        self.set(Input::Source, number(source));
        self.set(Input::Destination, number(destination));
        protocol.into()
    }

    fn transport(&mut self, protocol: u64, data: &[u8]) -> Option<()> {
        if protocol != TCP && protocol != UDP {
            return None;
        }
        self.set(Input::Ports, number(data.get(..4)?));
        if protocol == UDP {
            self.set(Input::Sequence, number(data.get(4..8)?));
            return Some(());
        }
        let numbers = data.get(4..12)?;
        self.set(Input::Sequence, number(&numbers[..4]));
        self.set(Input::Acknowledgement, number(&numbers[4..]));
        Some(())
    }
}

/// Bytes as a number, the highest first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
