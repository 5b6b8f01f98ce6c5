//! Captures made by hand, field by field, so that the reader is not only tested against our own writer.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use queuescope_pcap::{CaptureReader, ReadError, Record};

/// A record that is not borrowed from its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub time: Option<u64>,
    pub link: u32,
    pub interface: u32,
    pub original_len: u32,
    pub data: Vec<u8>,
}

impl From<Record<'_>> for Owned {
    fn from(record: Record<'_>) -> Self {
        let Record { time, link, interface, original_len, data } = record;
        Self { time: time.map(|time| time.0), link, interface, original_len, data: data.to_vec() }
    }
}

/// A reader over bytes in memory.
pub fn reader(bytes: &[u8]) -> CaptureReader {
    CaptureReader::new(Cursor::new(bytes.to_vec()), "test").unwrap()
}

/// All packets of a reader, and the error it ends with.
pub fn drain(reader: &mut CaptureReader) -> (Vec<Owned>, Option<ReadError>) {
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record.into()),
            Ok(None) => return (records, None),
            Err(error) => {
                assert!(reader.next_record().unwrap().is_none(), "there is nothing after an error");
                return (records, Some(error));
            }
        }
    }
}

/// All packets of an undamaged capture.
pub fn read_all(bytes: &[u8]) -> Vec<Owned> {
    let (records, error) = drain(&mut reader(bytes));
    assert!(error.is_none(), "{}", error.unwrap());
    records
}

/// The shared captures, if they are available.
pub fn shared_data() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if path.is_dir() {
        return Some(path.to_owned());
    }
    println!("skipped: there is no directory of shared captures");
    None
}

/// Writes fields in one byte order.
#[derive(Debug, Clone)]
pub struct Fields {
    pub big_endian: bool,
    pub bytes: Vec<u8>,
}

impl Fields {
    pub fn new(big_endian: bool) -> Self {
        Self { big_endian, bytes: Vec::new() }
    }

    pub fn half(mut self, value: u16) -> Self {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn word(mut self, value: u32) -> Self {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn double(mut self, value: u64) -> Self {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    pub fn padded(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub fn option(self, code: u16, value: &[u8]) -> Self {
        self.half(code).half(value.len() as u16).padded(value)
    }

    /// The header of a pcap file.
    pub fn pcap_header(self, magic: u32, snaplen: u32, network: u32) -> Self {
        self.word(magic).half(2).half(4).word(0).word(0).word(snaplen).word(network)
    }

    /// A pcapng block around a body.
    pub fn block(self, kind: u32, body: impl FnOnce(Self) -> Self) -> Self {
        let body = body(Self::new(self.big_endian)).bytes;
        let length = body.len() as u32 + 12;
        self.word(kind).word(length).raw(&body).word(length)
    }

    pub fn section(self) -> Self {
        self.block(0x0a0d_0d0a, |body| body.word(0x1a2b_3c4d).half(1).half(0).double(u64::MAX))
    }

    pub fn interface(self, link: u16, snaplen: u32, options: impl FnOnce(Self) -> Self) -> Self {
        self.block(1, |body| options(body.half(link).half(0).word(snaplen)))
    }

    pub fn enhanced(self, interface: u32, ticks: u64, original_len: u32, data: &[u8]) -> Self {
        self.block(6, |body| {
            let body = body.word(interface).word((ticks >> 32) as u32).word(ticks as u32);
            body.word(data.len() as u32).word(original_len).padded(data)
        })
    }
}

/// Compressed with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compressed with zstd, with a checksum.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compressed with xz.
pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
