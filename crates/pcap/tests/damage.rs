//! Damaged files: everything before the damage is read, then an error gives its position. Files that cannot be opened.

use crate::common;
use std::fs;
use std::io::{self, Cursor, Read, Write};

use crate::common::{Fields, Owned, drain, gzip, reader, xz, zstd};
use queuescope_pcap::{CaptureReader, Compression, Damage, OpenError};

/// A small capture of each kind, and where each of its packets ends.
fn small_captures() -> Vec<(Vec<u8>, Vec<usize>, Vec<usize>)> {
    let mut captures = Vec::new();
    for big_endian in [false, true] {
        let mut capture = Fields::new(big_endian).pcap_header(0xa1b2_c3d4, 65_535, 1);
        let mut ends = Vec::new();
        for index in 0..5_u32 {
            let data = vec![index as u8; index as usize * 7];
            capture = capture.word(index).word(index).word(index * 7).word(index * 7).raw(&data);
            ends.push(capture.bytes.len());
        }
        let clean = [vec![24], ends.clone()].concat();
        captures.push((capture.bytes, ends, clean));

        let (mut clean, mut ends) = (Vec::new(), Vec::new());
        let mut capture = Fields::new(big_endian).section();
        clean.push(capture.bytes.len());
        capture = capture.interface(1, 0, |options| options.option(9, &[9]));
        clean.push(capture.bytes.len());
        for index in 0..5_u32 {
            capture = capture.enhanced(0, index.into(), 100, &vec![index as u8; index as usize * 7]);
            clean.push(capture.bytes.len());
            ends.push(capture.bytes.len());
            if index == 2 {
                capture = capture.block(5, |body| body.word(0).double(0));
                clean.push(capture.bytes.len());
            }
        }
        captures.push((capture.bytes, ends, clean));
    }
    captures
}

#[test]
fn a_file_cut_anywhere_gives_exactly_its_whole_packets() {
    for (bytes, ends, clean) in small_captures() {
        let whole = common::read_all(&bytes);
        assert_eq!(whole.len(), ends.len());
        for length in 0..=bytes.len() {
            let opened = CaptureReader::new(Cursor::new(bytes[..length].to_vec()), "cut");
            if length < clean[0] {
                let error = opened.unwrap_err();
                match length {
                    0 => assert!(matches!(error, OpenError::Empty { .. }), "{error}"),
                    1..4 => assert!(matches!(error, OpenError::NotCapture { .. }), "{error}"),
                    _ => assert!(matches!(error, OpenError::TruncatedHeader { .. }), "{length}: {error}"),
                }
                continue;
            }
            let (records, error) = drain(&mut opened.unwrap());
            let expected = ends.iter().filter(|&&end| end <= length).count();
            assert_eq!(records, whole[..expected]);
            if clean.contains(&length) {
                assert!(error.is_none(), "{length}");
            } else {
                let error = error.unwrap();
                let start = clean.iter().filter(|&&end| end < length).max().unwrap();
                assert_eq!(error.offset, *start as u64);
                assert_eq!(error.record, expected as u64 + 1);
                assert!(matches!(error.damage, Damage::Cut { found, .. } if found == (length - start) as u64));
            }
        }
    }
}

/// Found by fuzzing: to judge the time of the last packet, the reader looks behind it, where the checksum is wrong. The error that ends the reading is
/// the same as without that.
#[test]
fn looking_ahead_does_not_change_the_error() {
    let mut capture = Fields::new(false).pcap_header(0xa1b2_c3d4, 65_535, 1);
    for second in [10, 11, 1_000] {
        capture = capture.word(second).word(0).word(4).word(4).raw(&[1; 4]);
    }
    let mut compressed = gzip(&capture.bytes);
    let checksum = compressed.len() - 8;
    compressed[checksum] ^= 1;
    let [kept, corrected] = [false, true].map(|corrects| {
        let mut reader = reader(&compressed);
        if corrects {
            reader.correct_times();
        }
        let (records, error) = drain(&mut reader);
        (records.len(), error.expect("the checksum is wrong").to_string())
    });
    assert_eq!(kept, corrected);
    assert!(kept.0 == 3 && kept.1.contains("incorrect data check"), "{kept:?}");
}

/// A pcap file with bodies that do not compress well, of `count` packets of 100 bytes.
fn noisy(count: u32) -> (Vec<u8>, Vec<Owned>) {
    let mut capture = Fields::new(false).pcap_header(0xa1b2_3c4d, 65_535, 1);
    let mut state = 1_u64;
    for index in 0..count {
        let data: Vec<u8> = (0..100)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 60) as u8
            })
            .collect();
        capture = capture.word(index).word(0).word(100).word(100).raw(&data);
    }
    let records = common::read_all(&capture.bytes);
    assert_eq!(records.len(), count as usize);
    (capture.bytes, records)
}

type Compressor = fn(&[u8]) -> Vec<u8>;
const COMPRESSORS: [(Compression, Compressor); 3] =
    [(Compression::Gzip, gzip), (Compression::Zstd, zstd), (Compression::Xz, xz)];

#[test]
fn compressed_files_are_read_with_all_their_parts() {
    let (bytes, records) = noisy(3_000);
    for (compression, compress) in COMPRESSORS {
        let one = compress(&bytes);
        let parts: Vec<u8> = bytes.chunks(70_001).flat_map(compress).collect();
        for compressed in [one, parts] {
            let length = compressed.len() as u64;
            let mut reader = reader(&compressed);
            assert_eq!(reader.format().compression, compression);
            let (read, error) = drain(&mut reader);
            assert!(error.is_none(), "{}", error.unwrap());
            assert_eq!(read, records);
            assert_eq!(reader.input_read(), length);
        }
    }
    assert_eq!(reader(&gzip(&bytes)).format().to_string(), "pcap, gzip");
    assert_eq!(reader(&bytes).format().to_string(), "pcap");
    // Padding that tapes and tools add.
    assert_eq!(common::read_all(&[gzip(&bytes), vec![0; 512]].concat()), records);
    assert_eq!(common::read_all(&[xz(&bytes), vec![0; 512]].concat()), records);
    let skippable = [vec![0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4], zstd(&bytes)].concat();
    assert_eq!(common::read_all(&skippable), records);
}

#[test]
fn a_compressed_file_that_is_cut_gives_what_it_holds() {
    let (bytes, records) = noisy(3_000);
    for (compression, compress) in COMPRESSORS {
        let compressed = compress(&bytes);
        let mut most = 0;
        for length in (8..compressed.len()).step_by(997).chain([compressed.len() - 1]) {
            let Ok(mut reader) = CaptureReader::new(Cursor::new(compressed[..length].to_vec()), "cut") else {
                continue;
            };
            let (read, error) = drain(&mut reader);
            let error = error.unwrap_or_else(|| panic!("{compression}: no error at {length}"));
            assert!(matches!(error.damage, Damage::Io(_)), "{error}");
            assert!(error.to_string().contains("of the decompressed stream"), "{error}");
            assert_eq!(read, records[..read.len()]);
            assert_eq!(error.offset, 24 + 116 * read.len() as u64);
            assert!(read.len() >= most, "{compression}: less of {length} bytes than of fewer");
            most = read.len();
        }
        // Everything but the checksum is there.
        assert_eq!(most, records.len(), "{compression}");
    }
}

#[test]
fn a_compressed_file_that_is_corrupt_gives_what_is_before() {
    let (bytes, records) = noisy(30_000);
    for (compression, compress) in COMPRESSORS {
        // Parts of known size. The fourth is damaged in its middle.
        let parts: Vec<_> = bytes.chunks(500_000).map(compress).collect();
        let before: usize = parts[..3].iter().map(Vec::len).sum();
        let mut compressed = parts.concat();
        for byte in &mut compressed[before + parts[3].len() / 2..][..40] {
            *byte ^= 0x55;
        }
        let (read, error) = drain(&mut reader(&compressed));
        let error = error.unwrap();
        // Checksums come at the end: until then, corrupt data may decode to garbage, and the packets reveal that first.
        assert!(matches!(error.damage, Damage::Io(_) | Damage::TooLong { .. }), "{error}");
        let intact = 1_500_000 / 116;
        assert!(read.len() >= intact, "{compression}: {} of {intact}", read.len());
        assert_eq!(read[..intact], records[..intact]);
    }
}

#[test]
fn bytes_that_a_call_decodes_before_damage_are_delivered() {
    let (bytes, records) = noisy(100);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    encoder.flush().unwrap();
    // A last block of the type that deflate reserves.
    let compressed = [encoder.get_ref().as_slice(), &[0x07]].concat();
    let (read, error) = drain(&mut reader(&compressed));
    assert_eq!(read, records);
    let error = error.unwrap();
    assert!(error.to_string().contains("the gzip data is corrupt"), "{error}");
    assert_eq!(error.offset, bytes.len() as u64);
}

#[test]
fn a_gzip_checksum_is_checked() {
    let (bytes, records) = noisy(100);
    let mut compressed = gzip(&bytes);
    let checksum = compressed.len() - 8;
    compressed[checksum] ^= 1;
    let (read, error) = drain(&mut reader(&compressed));
    assert_eq!(read, records);
    assert!(error.unwrap().to_string().contains("the gzip data is corrupt"));
}

#[test]
fn rubbish_after_compressed_data_is_an_error_after_every_packet() {
    let (bytes, records) = noisy(10);
    for (compression, compress) in COMPRESSORS {
        let (read, error) = drain(&mut reader(&[compress(&bytes), b"rubbish!".to_vec()].concat()));
        assert_eq!(read, records, "{compression}");
        assert!(error.is_some(), "{compression}");
    }
}

#[test]
fn a_source_that_fails_gives_what_came_before() {
    struct Fails(Cursor<Vec<u8>>);
    impl Read for Fails {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            // A byte at a time, and interrupted now and then, like a slow pipe.
            if self.0.position() % 50 == 49 {
                self.0.set_position(self.0.position() + 1);
                let at = self.0.position() as usize - 1;
                into[0] = self.0.get_ref()[at];
                return Ok(1);
            }
            match self.0.read(&mut into[..1])? {
                0 => Err(io::Error::other("the disk is on fire")),
                read => Ok(read),
            }
        }
    }
    let (bytes, records) = noisy(20);
    let mut reader = CaptureReader::new(Fails(Cursor::new(bytes)), "disk.pcap").unwrap();
    let (read, error) = drain(&mut reader);
    assert_eq!(read, records);
    let error = error.unwrap();
    assert_eq!((error.record, error.offset), (21, 24 + 116 * 20));
    assert_eq!(
        error.to_string(),
        "disk.pcap is damaged at byte 2344: the disk is on fire (pcap, in packet 21; the 20 packets before it can be used). \
         Copy it again if there is a whole one."
    );
}

#[test]
fn an_open_error_gives_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str| CaptureReader::open(&directory.path().join(name)).unwrap_err();
    assert!(matches!(open("missing.pcap"), OpenError::Missing { .. }));
    assert!(matches!(open("."), OpenError::Directory { .. }));
    let with = |bytes: &[u8]| {
        fs::write(directory.path().join("file"), bytes).unwrap();
        open("file")
    };
    assert!(matches!(with(b""), OpenError::Empty { .. }));
    assert!(matches!(with(&gzip(b"")), OpenError::Empty { compression: Compression::Gzip, .. }));
    let unreadable = with(&gzip(b"abc")[..9]);
    assert!(matches!(unreadable, OpenError::Unreadable { .. }));
    let cause = std::error::Error::source(&unreadable).expect("it has a cause").to_string();
    assert!(!unreadable.to_string().contains(&cause), "the cause is printed once: {unreadable}: {cause}");
    let text = with(b"time,flow\n1,2\n").to_string();
    assert!(text.contains("74 69 6d 65 2c 66 6c 6f (text)"), "{text}");
    assert!(with(b"BZh91AY&SY").to_string().contains("bzip2: decompress it first"));
    assert!(with(&gzip(&gzip(b"x"))).to_string().contains("compressed twice"));
    assert!(with(&xz(b"\x7fELF")).to_string().contains("inside its xz compression"));
    let cut = with(&Fields::new(true).pcap_header(0xa1b2_c3d4, 0, 1).bytes[..23]).to_string();
    assert!(cut.contains("after 23 of 24 bytes"), "{cut}");
    let cut = with(&Fields::new(true).section().bytes[..27]).to_string();
    assert!(cut.contains("after 27 of 28 bytes"), "{cut}");
}
