//! Real captures: packets, lengths and times agree with Wireshark's tools.

use crate::common;
use std::io::Read;

use crate::common::shared_data;
use queuescope_pcap::{CaptureReader, Compression};

/// File, packets, bytes on the wire, bytes captured, earliest and latest time (ns).
type Golden = (&'static str, u64, u64, u64, u64, u64);

/// Obtained with Wireshark 4.0.17, for each file (those in xz through `xz -dc`):
///
/// ```sh
/// tshark -r - -T fields -e frame.time_epoch -e frame.len -e frame.cap_len   # count, sum, sum, least and greatest
/// capinfos -TmrQcdae -S -N FILE                                             # packets, bytes, earliest, latest: equal
/// ```
///
/// `complex.pcapng` has a simple packet, which has no time, and custom blocks, which tshark lists as frames. Its
/// packets and bytes are from capinfos; the other values are of the frames that have an interface.
#[rustfmt::skip]
const GOLDEN: &[Golden] = &[
    ("formats/bigendian.pcap", 2, 196, 196, 1_335_958_313_152_630_000, 1_335_958_317_529_201_000),
    ("formats/complex.pcapng", 5, 1480, 798, 1_340_954_905_298_858_000, 1_340_954_905_301_858_000),
    ("formats/eth-nanosecond.pcap", 100, 30_960, 5984, 1_095_292_801_000_721_000, 1_095_292_801_028_488_000),
    ("formats/eth.pcapng", 100, 30_960, 5984, 1_095_292_801_000_721_000, 1_095_292_801_028_488_000),
    ("formats/ip4-fragments.pcap", 53, 71_754, 71_754, 1_214_528_320_099_921_000, 1_214_528_320_101_918_000),
    ("formats/ipv6-http.pcap", 81, 40_670, 40_670, 1_147_551_795_526_632_000, 1_147_551_799_429_522_000),
    ("formats/many-interfaces.pcapng", 64, 15_954, 15_954, 1_439_753_725_701_568_000, 1_439_753_728_292_345_000),
    ("formats/mpls-ip.pcap", 10, 1020, 1020, 1_158_800_513_553_886_000, 1_158_800_517_559_193_000),
    ("formats/pppoe.pcap", 65, 5232, 5232, 1_284_385_406_780_560_000, 1_284_385_452_499_560_000),
    ("formats/qinq.pcap", 14, 6199, 6199, 1_362_692_526_869_344_000, 1_362_692_527_080_972_000),
    ("formats/quic-burst.pcapng", 992, 1_340_722, 1_340_722, 1_607_938_456_563_491_709, 1_607_938_456_578_127_089),
    ("formats/raw-ip.pcap", 100, 31_018, 31_018, 1_147_551_795_526_632_000, 1_488_848_077_767_141_000),
    ("formats/sll113.pcap", 518, 451_558, 451_558, 1_465_939_067_790_511_000, 1_465_939_118_808_423_000),
    ("formats/sll2-276.pcap", 6, 552, 552, 1_660_534_249_872_259_000, 1_660_535_793_578_961_000),
    ("formats/vlan.pcap", 395, 138_113, 138_113, 941_826_040_056_226_000, 941_826_044_502_622_000),
    ("formats/vxlan.pcap", 10, 1368, 1368, 1_368_908_504_837_063_000, 1_368_908_507_885_359_000),
    ("pcap/auckland2-2000-part1.pcap.xz", 16_353, 4_607_778, 654_057, 948_764_200_001_914_859, 948_764_243_741_728_635),
    ("pcap/l4s-cubic-fqcodel-wifi.pcap.xz", 77_416, 70_375_919, 8_404_527, 1_628_882_255_980_946_000, 1_628_882_316_260_022_000),
    ("pcap/l4s-prague-dualpi2-wifi.pcap.xz", 54_152, 48_559_714, 5_857_873, 1_628_880_778_492_124_000, 1_628_880_838_778_915_000),
    ("pcap/l4s-skype-fqcodel.pcap.xz", 39_980, 23_057_005, 4_784_103, 1_627_059_382_769_386_000, 1_627_059_448_301_304_000),
    ("pcap/libtrace-ip-in-mpls.pcap.xz", 10_507, 10_665_906, 2_023_252, 1_158_800_513_553_886_000, 1_158_800_539_078_705_000),
    ("pcap/mix-a-ndpi.pcap.xz", 172_220, 106_965_336, 14_755_311, 1_700_000_000_175_737_000, 1_700_000_119_994_619_000),
    ("pcap/mlab-ndt-20210721.pcap.xz", 18_240, 23_391_223, 1_471_040, 1_626_825_601_181_050_000, 1_626_825_611_798_528_000),
    ("pcap/ndpi-firefox-full.pcap.xz", 5441, 4_952_732, 4_952_732, 1_620_927_997_754_367_000, 1_620_927_999_948_696_000),
    ("pcap/ndpi-reddit-s128.pcap.xz", 11_682, 11_578_171, 1_324_887, 1_605_291_684_451_133_000, 1_605_291_698_785_302_000),
    ("pcap/ndpi-tumblr-s128.pcap.xz", 24_745, 24_339_332, 2_864_470, 1_605_292_102_219_041_000, 1_605_292_122_899_206_000),
    ("pcap/ndpi-zoom2-s128.pcap.xz", 11_977, 9_006_840, 1_498_957, 1_642_965_458_402_978_000, 1_642_965_502_810_488_000),
    ("pcap/zeek-echo-1000flows.pcap.xz", 82_582, 5_512_362, 5_512_362, 1_627_225_020_686_470_000, 1_627_225_027_180_797_000),
    ("tappair/NAT_ISP_side.pcap", 210, 83_228, 83_228, 1_253_479_381_731_064_000, 1_253_479_397_128_352_000),
    ("tappair/NAT_home_side.pcap", 134, 78_041, 78_041, 1_253_479_380_269_135_000, 1_253_479_392_292_790_000),
    ("ipfix/netgauze-srv6-ipfix.pcap", 170, 39_476, 39_476, 1_662_710_931_221_239_000, 1_662_711_233_248_425_000),
    ("ipfix/pmacct-401-ipfix-bmp.pcap", 619, 257_692, 257_692, 1_672_534_805_023_000_000, 1_672_534_806_640_000_000),
];

#[test]
fn real_captures_read_as_wireshark_reads_them() {
    let Some(data) = shared_data() else { return };
    for &(file, packets, wire, captured, earliest, latest) in GOLDEN {
        let mut reader = CaptureReader::open(&data.join(file)).unwrap();
        let mut seen = (0, 0, 0, u64::MAX, 0);
        while let Some(record) = reader.next_record().unwrap() {
            seen.0 += 1;
            seen.1 += u64::from(record.original_len);
            seen.2 += record.data.len() as u64;
            if let Some(time) = record.time {
                (seen.3, seen.4) = (seen.3.min(time.0), seen.4.max(time.0));
            }
        }
        assert_eq!(seen, (packets, wire, captured, earliest, latest), "{file}");
        assert_eq!(reader.stats().packets, packets, "{file}");
        assert_eq!(reader.input_read(), data.join(file).metadata().unwrap().len(), "{file}");
        let compression = if file.ends_with(".xz") { Compression::Xz } else { Compression::None };
        assert_eq!(reader.format().compression, compression, "{file}");
    }
}

#[test]
fn no_capture_is_missing_from_the_table() {
    let Some(data) = shared_data() else { return };
    for directory in ["formats", "pcap", "tappair", "ipfix"] {
        for entry in data.join(directory).read_dir().unwrap() {
            let file = format!("{directory}/{}", entry.unwrap().file_name().display());
            let is_capture = [".pcap", ".pcapng", ".pcap.xz"].iter().any(|suffix| file.ends_with(suffix));
            assert!(!is_capture || GOLDEN.iter().any(|golden| golden.0 == file), "{file}");
        }
    }
}

/// Reading a real file that is cut at any length ends without a panic, and a longer part never gives less.
#[test]
fn real_captures_can_be_cut_anywhere() {
    let Some(data) = shared_data() else { return };
    for file in ["formats/complex.pcapng", "formats/bigendian.pcap", "formats/sll2-276.pcap", "formats/vxlan.pcap"] {
        let mut bytes = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "a test reads its input")]
        std::fs::File::open(data.join(file)).unwrap().read_to_end(&mut bytes).unwrap();
        let mut most = 0;
        for length in 24..=bytes.len() {
            let source = std::io::Cursor::new(bytes[..length].to_vec());
            let Ok(mut reader) = CaptureReader::new(source, file) else { continue };
            let (records, _) = common::drain(&mut reader);
            assert!(records.len() >= most);
            most = records.len();
        }
        assert_eq!(most as u64, GOLDEN.iter().find(|golden| golden.0 == file).unwrap().1);
    }
}
