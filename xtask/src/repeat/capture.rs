//! A pcap file in memory: the positions of times and addresses, and copies of the file with these shifted.

use super::addresses;
use super::shift::{self, Flow};
use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;

/// Length of the header before the first record (pcap, draft-ietf-opsawg-pcap section 4).
pub const GLOBAL_HEADER: usize = 24;
/// Length of the header before each packet.
const RECORD_HEADER: usize = 16;

/// A capture to repeat.
pub struct Capture {
    bytes: Vec<u8>,
    byte_order: ByteOrder,
    /// Units of the second word of a time per second: a million or a thousand million.
    ticks_per_second: u64,
    packets: Vec<Packet>,
    words: Vec<Word>,
    /// The time from one repetition to the next, in ticks: the span of the capture and one mean gap.
    period: u64,
    latest: u64,
    flows: BTreeSet<Flow>,
    without_addresses: u64,
}

/// A record's offset, and its time in ticks.
struct Packet {
    at: usize,
    time: u64,
}

/// The part of an address that is shifted: 32 bits, in network order in the file.
struct Word {
    at: usize,
    value: u32,
}

#[derive(Debug, Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn read(self, bytes: &[u8], at: usize) -> Option<u32> {
        let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(word),
            Self::Big => u32::from_be_bytes(word),
        })
    }

    fn write(self, bytes: &mut [u8], at: usize, value: u32) {
        let word = match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        };
        bytes[at..at + 4].copy_from_slice(&word);
    }
}

impl Capture {
    /// Finds every record with its time and addresses.
    pub fn parse(mut bytes: Vec<u8>) -> anyhow::Result<Self> {
        let (byte_order, ticks_per_second) = match bytes.get(..4) {
            Some([0xd4, 0xc3, 0xb2, 0xa1]) => (ByteOrder::Little, 1_000_000),
            Some([0xa1, 0xb2, 0xc3, 0xd4]) => (ByteOrder::Big, 1_000_000),
            Some([0x4d, 0x3c, 0xb2, 0xa1]) => (ByteOrder::Little, 1_000_000_000),
            Some([0xa1, 0xb2, 0x3c, 0x4d]) => (ByteOrder::Big, 1_000_000_000),
            Some([0x0a, 0x0d, 0x0d, 0x0a]) => bail!("it is pcapng; convert it by 'editcap -F nsecpcap IN OUT'"),
            _ => bail!("it is not a pcap file (decompress it first if it is compressed, for example with 'xz -dc')"),
        };
        // The upper bits contain the length of a frame check sequence, which does not belong to the link type.
        let link_type = byte_order.read(&bytes, 20).context("it ends within its header")? & 0xffff;
        let mut packets = Vec::new();
        let mut words = Vec::new();
        let mut flows = BTreeSet::new();
        let mut without_addresses = 0;
        let mut at = GLOBAL_HEADER;
        while at < bytes.len() {
            let field = |offset| byte_order.read(&bytes, at + offset);
            let record = field(0).zip(field(4)).zip(field(8).filter(|_| at + RECORD_HEADER <= bytes.len()));
            let Some(((seconds, ticks), length)) = record else { break };
            let data = at + RECORD_HEADER;
            let Some(frame) = data.checked_add(length as usize).and_then(|end| bytes.get(data..end)) else { break };
            packets.push(Packet { at, time: u64::from(seconds) * ticks_per_second + u64::from(ticks) });
            match addresses::find(link_type, frame) {
                Some(found) => {
                    let [source, destination] = found.words.map(|offset| Word {
                        at: data + offset,
                        value: ByteOrder::Big.read(frame, offset).expect("addresses are found within the frame"),
                    });
                    flows.insert(Flow::new(source.value, destination.value, found.rest));
                    words.extend([source, destination]);
                }
                None => without_addresses += 1,
            }
            at = data + frame.len();
        }
        if at < bytes.len() {
            eprintln!("repeat: the last {} bytes are not a complete packet and are left out", bytes.len() - at);
            bytes.truncate(at);
        }
        ensure!(!packets.is_empty(), "it has no packets");
        let earliest = packets.iter().map(|packet| packet.time).min().unwrap_or(0);
        let latest = packets.iter().map(|packet| packet.time).max().unwrap_or(0);
        let span = latest - earliest;
        let gap = (span / (packets.len() as u64 - 1).max(1)).max(1);
        let period = span + gap;
        Ok(Self { bytes, byte_order, ticks_per_second, packets, words, period, latest, flows, without_addresses })
    }

    /// Checks that `times` repetitions have distinct flows, and times that pcap can represent.
    pub fn check(&self, times: u64) -> anyhow::Result<()> {
        let seconds = u128::from(times - 1) * u128::from(self.period) + u128::from(self.latest);
        let seconds = seconds / u128::from(self.ticks_per_second);
        ensure!(
            seconds <= u128::from(u32::MAX),
            "{times} repetitions of {:.3} s each pass the year 2106, where pcap's time ends; take fewer, or a part of \
             the capture",
            self.period as f64 / self.ticks_per_second as f64,
        );
        shift::check(&self.flows, times)
    }

    /// The file's own header.
    pub fn header(&self) -> &[u8] {
        &self.bytes[..GLOBAL_HEADER]
    }

    /// All records of one repetition; repetition 0 is the unchanged capture.
    pub fn repetition(&mut self, number: u64) -> &[u8] {
        let later = number * self.period;
        for packet in &self.packets {
            let time = packet.time + later;
            // `check` has ensured that it fits.
            self.byte_order.write(&mut self.bytes, packet.at, (time / self.ticks_per_second) as u32);
            self.byte_order.write(&mut self.bytes, packet.at + 4, (time % self.ticks_per_second) as u32);
        }
        let shift = shift::offset(number);
        for word in &self.words {
            ByteOrder::Big.write(&mut self.bytes, word.at, word.value.wrapping_add(shift));
        }
        &self.bytes[GLOBAL_HEADER..]
    }

    /// Packets in one repetition.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Bytes of one repetition in the file.
    pub fn record_bytes(&self) -> usize {
        self.bytes.len() - GLOBAL_HEADER
    }

    /// Directed five-tuples in one repetition.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Packets of one repetition without an address to shift.
    pub fn without_addresses(&self) -> u64 {
        self.without_addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/formats/");

    fn whole(name: &str, times: u64) -> (Capture, Vec<u8>) {
        let bytes = std::fs::read(format!("{DEMO}{name}")).unwrap();
        let mut capture = Capture::parse(bytes).unwrap();
        capture.check(times).unwrap();
        let mut out = capture.header().to_vec();
        for number in 0..times {
            out.extend_from_slice(capture.repetition(number));
        }
        (capture, out)
    }

    #[test]
    fn the_first_repetition_is_the_capture_itself() {
        for name in ["bigendian.pcap", "ipv6-http.pcap", "sll113.pcap", "pppoe.pcap", "qinq.pcap", "sll2-276.pcap"] {
            let (_, out) = whole(name, 1);
            assert_eq!(out, std::fs::read(format!("{DEMO}{name}")).unwrap(), "{name}");
        }
    }

    #[test]
    fn every_repetition_brings_new_flows() {
        for (name, flows) in [("bigendian.pcap", 1), ("ipv6-http.pcap", 8), ("qinq.pcap", 2), ("sll113.pcap", 0)] {
            let (once, out) = whole(name, 50);
            let again = Capture::parse(out).unwrap();
            assert!(once.flows() >= flows, "{name}: {}", once.flows());
            assert_eq!(again.packets(), 50 * once.packets(), "{name}");
            assert_eq!(again.flows(), 50 * once.flows(), "{name}");
            assert_eq!(again.without_addresses(), 50 * once.without_addresses(), "{name}");
        }
    }

    #[test]
    fn time_goes_on() {
        let mut capture = synthetic([5_000_000, 5_000_400, 5_001_000]);
        capture.check(1_000).unwrap();
        let mut out = capture.header().to_vec();
        for number in 0..1_000 {
            out.extend_from_slice(capture.repetition(number));
        }
        let times: Vec<_> = Capture::parse(out).unwrap().packets.iter().map(|packet| packet.time).collect();
        assert!(times.is_sorted());
        assert_eq!(times[..5], [5_000_000, 5_000_400, 5_001_000, 5_001_500, 5_001_900]);
    }

    #[test]
    fn time_ends_in_2106() {
        let capture = synthetic([0, 1, u64::from(u32::MAX) * 1_000_000]);
        assert!(capture.check(1).is_ok());
        assert!(capture.check(2).unwrap_err().to_string().contains("2106"));
    }

    #[test]
    fn a_packet_cut_short_is_left_out() {
        let mut bytes = std::fs::read(format!("{DEMO}ipv6-http.pcap")).unwrap();
        let whole = Capture::parse(bytes.clone()).unwrap().packets();
        bytes.truncate(bytes.len() - 1);
        assert_eq!(Capture::parse(bytes).unwrap().packets(), whole - 1);
    }

    #[test]
    fn a_file_that_is_not_pcap_is_refused() {
        let refused = |bytes: &[u8]| Capture::parse(bytes.to_vec()).err().unwrap().to_string();
        assert!(refused(b"\x0a\x0d\x0d\x0a").contains("editcap"));
        assert!(refused(b"\xfd7zXZ").contains("xz -dc"));
        assert!(refused(b"").contains("not a pcap"));
        assert!(refused(b"\xd4\xc3\xb2\xa1\x02\x00").contains("ends within"));
        assert!(refused(&[&b"\xd4\xc3\xb2\xa1"[..], &[0; 20]].concat()).contains("no packets"));
    }

    /// Three empty packets at the given microseconds.
    fn synthetic(times: [u64; 3]) -> Capture {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1];
        bytes.resize(GLOBAL_HEADER, 0);
        for time in times {
            for word in [time / 1_000_000, time % 1_000_000, 0, 0] {
                bytes.extend_from_slice(&(word as u32).to_le_bytes());
            }
        }
        Capture::parse(bytes).unwrap()
    }
}
