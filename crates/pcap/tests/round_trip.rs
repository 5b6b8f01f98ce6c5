//! The reader and an independent parser agree with the writers.

use crate::common::{Fields, Owned, read_all};
use pcap_parser::{Block, PcapBlockOwned, PcapError};
use proptest::prelude::*;
use queuescope_pcap::{PcapWriter, PcapngWriter, Statistics};
use queuescope_wire::Nanos;

#[derive(Debug, Clone)]
struct Packet {
    interface: prop::sample::Index,
    time: u64,
    longer_by: u32,
    data: Vec<u8>,
    comment: Option<String>,
}

fn packets(latest: u64) -> impl Strategy<Value = Vec<Packet>> {
    let data = prop::collection::vec(any::<u8>(), 0..200);
    let comment = prop::option::of(".{0,40}");
    let packet = (any::<prop::sample::Index>(), 0..=latest, 0..3_000_u32, data, comment)
        .prop_map(|(interface, time, longer_by, data, comment)| Packet { interface, time, longer_by, data, comment });
    prop::collection::vec(packet, 0..40)
}

/// Original length, data, options.
type Parsed = (u32, Vec<u8>, Vec<(u16, Vec<u8>)>);

/// The packets of a capture by an independent parser.
fn parsed(bytes: &[u8]) -> Vec<Parsed> {
    let mut reader = pcap_parser::create_reader(1 << 20, bytes).unwrap();
    let mut packets = Vec::new();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::Legacy(packet) => {
                        packets.push((packet.origlen, packet.data.to_vec(), Vec::new()));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let data = packet.data[..packet.caplen as usize].to_vec();
                        let options = packet
                            .options
                            .iter()
                            .map(|option| (option.code.0, option.value[..usize::from(option.len)].to_vec()));
                        packets.push((packet.origlen, data, options.collect()));
                    }
                    _ => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return packets,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

proptest! {
    #[test]
    fn pcapng_comes_back(
        interfaces in prop::collection::vec((0..=u32::from(u16::MAX), prop_oneof![Just(0), 1..250_u32]), 1..5),
        packets in packets(u64::MAX),
    ) {
        let mut writer = PcapngWriter::new(Vec::new(), "queuescope test").unwrap();
        for (index, (link, snaplen)) in interfaces.iter().enumerate() {
            prop_assert_eq!(writer.interface(*link, *snaplen).unwrap(), index as u32);
        }
        let mut expected = Vec::new();
        for packet in &packets {
            let interface = packet.interface.index(interfaces.len());
            let (link, snaplen) = interfaces[interface];
            let original_len = packet.data.len() as u32 + packet.longer_by;
            let comment = packet.comment.as_deref();
            writer.packet(interface as u32, Nanos(packet.time), original_len, &packet.data, comment).unwrap();
            let kept = if snaplen == 0 { packet.data.len() } else { packet.data.len().min(snaplen as usize) };
            let (time, interface) = (Some(packet.time), interface as u32);
            expected.push(Owned { time, link, interface, original_len, data: packet.data[..kept].to_vec() });
        }
        let bytes = writer.finish().unwrap();
        prop_assert_eq!(read_all(&bytes), expected.clone());
        let parsed = parsed(&bytes);
        prop_assert_eq!(parsed.len(), expected.len());
        for ((length, data, options), (packet, expected)) in parsed.iter().zip(packets.iter().zip(&expected)) {
            prop_assert_eq!((length, data), (&expected.original_len, &expected.data));
            let comment = options.iter().find(|(code, _)| *code == 1).map(|(_, value)| value.as_slice());
            prop_assert_eq!(comment, packet.comment.as_deref().map(str::as_bytes));
        }
    }

    #[test]
    fn pcap_comes_back(link in 0..=u32::from(u16::MAX), snaplen in 0..250_u32, packets in packets(4_294_967_295_999_999_999)) {
        let mut writer = PcapWriter::new(Vec::new(), link, snaplen).unwrap();
        let mut expected = Vec::new();
        for packet in &packets {
            let original_len = packet.data.len() as u32 + packet.longer_by;
            writer.packet(Nanos(packet.time), original_len, &packet.data).unwrap();
            let kept = if snaplen == 0 { packet.data.len() } else { packet.data.len().min(snaplen as usize) };
            let data = packet.data[..kept].to_vec();
            expected.push(Owned { time: Some(packet.time), link, interface: 0, original_len, data });
        }
        let bytes = writer.finish().unwrap();
        prop_assert_eq!(read_all(&bytes), expected.clone());
        let parsed: Vec<_> = parsed(&bytes).into_iter().map(|(length, data, _)| (length, data)).collect();
        let expected: Vec<_> = expected.into_iter().map(|record| (record.original_len, record.data)).collect();
        prop_assert_eq!(parsed, expected);
    }

    /// Hand-made captures, in either byte order and with the usual resolutions.
    #[test]
    fn foreign_captures_are_read(big_endian: bool, nanos: bool, ng: bool, packets in packets(4_294_967_295_999_999)) {
        let tick = if nanos { 1 } else { 1_000 };
        let mut capture = Fields::new(big_endian);
        capture = if ng {
            let resolution: &[u8] = if nanos { &[9] } else { &[6] };
            capture.section().interface(1, 0, |options| options.option(9, resolution).option(0, &[]))
        } else {
            capture.pcap_header(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }, 65_535, 1)
        };
        let mut expected = Vec::new();
        for Packet { time, longer_by, data, .. } in packets {
            let (time, original_len) = (time / tick * tick, data.len() as u32 + longer_by);
            capture = if ng {
                capture.enhanced(0, time / tick, original_len, &data)
            } else {
                let (seconds, rest) = ((time / 1_000_000_000) as u32, (time % 1_000_000_000 / tick) as u32);
                capture.word(seconds).word(rest).word(data.len() as u32).word(original_len).raw(&data)
            };
            expected.push(Owned { time: Some(time), link: 1, interface: 0, original_len, data });
        }
        prop_assert_eq!(read_all(&capture.bytes), expected);
    }
}

#[test]
fn values_that_a_format_cannot_store_are_errors() {
    let mut writer = PcapngWriter::new(Vec::new(), "test").unwrap();
    assert!(writer.packet(0, Nanos(0), 0, b"", None).is_err());
    assert!(writer.interface(65_536, 0).is_err());
    assert!(PcapWriter::new(Vec::new(), 65_536, 0).is_err());
    let mut writer = PcapWriter::new(Vec::new(), 1, 0).unwrap();
    assert!(writer.packet(Nanos(4_294_967_296_000_000_000), 0, b"").is_err());
}

#[test]
fn a_comment_too_long_is_cut_between_characters() {
    let mut writer = PcapngWriter::new(Vec::new(), "test").unwrap();
    writer.interface(1, 0).unwrap();
    writer.packet(0, Nanos(1), 4, b"data", Some(&"µ".repeat(40_000))).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(read_all(&bytes).len(), 1);
    let (_, _, options) = &parsed(&bytes)[0];
    let comment = std::str::from_utf8(&options[0].1).unwrap();
    assert_eq!(comment.len(), 65_534);
}

#[test]
fn statistics_have_the_documented_layout() {
    let mut writer = PcapngWriter::new(Vec::new(), "queuescope test").unwrap();
    assert!(writer.statistics(0, &Statistics::default()).is_err(), "there is no interface yet");
    let interface = writer.named_interface(1, 96, "eth0").unwrap();
    writer.packet(interface, Nanos(5), 3, &[1, 2, 3], None).unwrap();
    let (from, until) = (Nanos((1 << 32) + 7), Nanos(2 << 32));
    writer.statistics(interface, &Statistics { from, until, received: 9, dropped: 2, delivered: 7 }).unwrap();
    let bytes = writer.finish().unwrap();
    let words: Vec<_> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    // The block (draft-ietf-opsawg-pcapng, section 4.6): type, length, interface, time; start, end, received, dropped by the system,
    // delivered, each an option of eight bytes; the end of options, and the length again.
    let option = |code: u32| code | 8 << 16;
    let block =
        [5, 88, 0, 2, 0, option(2), 1, 7, option(3), 2, 0, option(4), 9, 0, option(7), 2, 0, option(8), 7, 0, 0, 88];
    assert_eq!(words[words.len() - block.len()..], block);
    let named = [1u32, 40, 1, 96, 2 | 4 << 16, u32::from_le_bytes(*b"eth0"), 9 | 1 << 16, 9, 0, 40];
    assert!(words.windows(named.len()).any(|window| window == named), "{words:?}");
    let mut reader = queuescope_pcap::CaptureReader::new(std::io::Cursor::new(bytes), "test").unwrap();
    assert_eq!(reader.next_record().unwrap().map(|record| record.data.to_vec()), Some(vec![1, 2, 3]));
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!((reader.stats().unknown_blocks, reader.stats().custom_blocks), (0, 0));
}

/// Returns at most `at_once` bytes per read, and counts the reads.
struct Slow {
    bytes: std::io::Cursor<Vec<u8>>,
    at_once: usize,
    reads: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl std::io::Read for Slow {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let at_once = into.len().min(self.at_once);
        self.bytes.read(&mut into[..at_once])
    }
}

proptest! {
    #[test]
    fn has_next_is_true_only_without_a_read(
        packets in packets(1 << 60), at_once in 1..2_000_usize, is_legacy: bool, corrects: bool,
    ) {
        let bytes = if is_legacy {
            let mut writer = PcapWriter::new(Vec::new(), 1, 0).unwrap();
            for Packet { time, data, .. } in &packets {
                writer.packet(Nanos(*time), data.len() as u32, data).unwrap();
            }
            writer.finish().unwrap()
        } else {
            let mut writer = PcapngWriter::new(Vec::new(), "queuescope test").unwrap();
            writer.interface(1, 0).unwrap();
            for Packet { time, data, comment, .. } in &packets {
                writer.packet(0, Nanos(*time), data.len() as u32, data, comment.as_deref()).unwrap();
            }
            writer.finish().unwrap()
        };
        let reads = std::sync::Arc::default();
        let length = bytes.len();
        let slow = Slow { bytes: std::io::Cursor::new(bytes), at_once, reads: std::sync::Arc::clone(&reads) };
        let mut reader = queuescope_pcap::CaptureReader::new(slow, "test").unwrap();
        if corrects {
            reader.correct_times();
        }
        let count = || reads.load(std::sync::atomic::Ordering::Relaxed);
        let (mut found, mut without) = (0, 0);
        loop {
            let (has_next, before) = (reader.has_next(), count());
            let next = reader.next_record().unwrap().is_some();
            prop_assert!(!has_next || next);
            // Where times are corrected, the packets behind are not always needed.
            let is_silent = count() == before;
            prop_assert!(if corrects { !has_next || is_silent } else { has_next == is_silent }, "packet {}", found);
            if !next {
                break;
            }
            found += 1;
            without += u64::from(has_next);
        }
        prop_assert_eq!(found, packets.len());
        // The first bytes are read to detect the format, the others when they are needed. After that, everything is in
        // memory.
        let ahead = if corrects { 3 } else { 1 };
        prop_assert!(at_once < length || without + ahead >= found as u64);
    }
}
