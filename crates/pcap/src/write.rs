//! The writers: pcapng with comments, and plain pcap.

use std::io::{self, Write};

use queuescope_wire::Nanos;

/// Writes pcapng (draft-ietf-opsawg-pcapng), little-endian and in nanoseconds.
pub struct PcapngWriter<W: Write> {
    out: W,
    /// The snapshot lengths of the interfaces described so far.
    snaplens: Vec<u32>,
    /// The current block.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file with a section that names `application` as its writer. Writes are small, so `out` should be
    /// buffered.
    ///
    /// Each block is a single write, so that an implementation of `Write` may treat it as a unit.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self { out, snaplens: Vec::new(), block: Vec::new() };
        writer.begin(0x0a0d_0d0a);
        writer.words(&[0x1a2b_3c4d, 0x0000_0001, u32::MAX, u32::MAX]);
        writer.option(4, application.as_bytes());
        writer.option(0, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface with a LINKTYPE_ and a snapshot length (bytes, 0 for no limit); returns its number.
    pub fn interface(&mut self, link: u32, snaplen: u32) -> io::Result<u32> {
        self.named_interface(link, snaplen, "")
    }

    /// Describes an interface with a name.
    pub fn named_interface(&mut self, link: u32, snaplen: u32, name: &str) -> io::Result<u32> {
        if link > u32::from(u16::MAX) {
            return Err(invalid(format!("the link type {link} is larger than pcapng can store")));
        }
        let number = u32::try_from(self.snaplens.len()).map_err(|_| invalid("too many interfaces".to_owned()))?;
        self.begin(1);
        self.words(&[link, snaplen]);
        if !name.is_empty() {
            self.option(2, name.as_bytes());
        }
        self.option(9, &[9]);
        self.option(0, &[]);
        self.end()?;
        self.snaplens.push(snaplen);
        Ok(number)
    }

    /// Writes a packet, cut to the interface's snapshot length. A comment of more than 65,535 bytes is cut too.
    pub fn packet(
        &mut self,
        interface: u32,
        time: Nanos,
        original_len: u32,
        data: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let Some(&snaplen) = self.snaplens.get(interface as usize) else {
            return Err(invalid(format!("interface {interface} was not described before its packet")));
        };
        let (data, captured) = cut(data, snaplen)?;
        self.begin(6);
        self.words(&[interface, (time.0 >> 32) as u32, time.0 as u32, captured, original_len]);
        self.block.extend_from_slice(data);
        self.pad();
        if let Some(comment) = comment {
            self.option(1, whole_characters(comment, usize::from(u16::MAX)));
            self.option(0, &[]);
        }
        self.end()
    }

    /// Writes the counters of an interface. They must follow its packets, where other programs expect them.
    pub fn statistics(&mut self, interface: u32, counted: &Statistics) -> io::Result<()> {
        if interface as usize >= self.snaplens.len() {
            return Err(invalid(format!("interface {interface} was not described before its statistics")));
        }
        let halves = |time: Nanos| [(time.0 >> 32) as u32, time.0 as u32];
        let [high, low] = halves(counted.until);
        self.begin(5);
        self.words(&[interface, high, low]);
        for (code, time) in [(2, counted.from), (3, counted.until)] {
            let [high, low] = halves(time).map(u32::to_le_bytes);
            self.option(code, &[high, low].concat());
        }
        for (code, count) in [(4, counted.received), (7, counted.dropped), (8, counted.delivered)] {
            self.option(code, &count.to_le_bytes());
        }
        self.option(0, &[]);
        self.end()
    }

    /// The underlying writer.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Flushes and returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.words(&[kind, 0]);
    }

    fn words(&mut self, words: &[u32]) {
        for word in words {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.block.len() + 4).map_err(|_| invalid("a block over 4 GiB".to_owned()))?;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.words(&[length]);
        self.out.write_all(&self.block)
    }
}

/// Counters of an interface during a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When capturing began.
    pub from: Nanos,
    /// When it ended.
    pub until: Nanos,
    /// Packets that passed the interface (`isb_ifrecv`).
    pub received: u64,
    /// Packets among them that the operating system dropped for lack of room (`isb_osdrop`).
    pub dropped: u64,
    /// Packets that the capturing program received (`isb_usrdeliv`).
    pub delivered: u64,
}

/// Writes pcap (draft-ietf-opsawg-pcap), little-endian and in nanoseconds.
pub struct PcapWriter<W: Write> {
    out: W,
    snaplen: u32,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file with a LINKTYPE_ and a snapshot length (bytes, 0 for no limit).
    pub fn new(mut out: W, link: u32, snaplen: u32) -> io::Result<Self> {
        if link > u32::from(u16::MAX) {
            return Err(invalid(format!("the link type {link} is larger than pcap can store")));
        }
        // Readers apply the snapshot length literally, so 0 would mean no bytes; tcpdump writes this value for "all".
        let written_snaplen = if snaplen == 0 { 262_144 } else { snaplen };
        for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, written_snaplen, link] {
            out.write_all(&u32::to_le_bytes(word))?;
        }
        Ok(Self { out, snaplen })
    }

    /// Writes a packet, cut to the snapshot length.
    pub fn packet(&mut self, time: Nanos, original_len: u32, data: &[u8]) -> io::Result<()> {
        let (data, captured) = cut(data, self.snaplen)?;
        let seconds = u32::try_from(time.0 / 1_000_000_000)
            .map_err(|_| invalid(format!("{} ns is after 2106, the last year that pcap can store", time.0)))?;
        let mut header = [0; 16];
        let words = [seconds, (time.0 % 1_000_000_000) as u32, captured, original_len];
        for (field, word) in header.chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        self.out.write_all(&header)?;
        self.out.write_all(data)
    }

    /// Flushes and returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The part of a packet that is kept, and its length.
fn cut(data: &[u8], snaplen: u32) -> io::Result<(&[u8], u32)> {
    let kept = if snaplen == 0 { data } else { &data[..data.len().min(snaplen as usize)] };
    let length = u32::try_from(kept.len()).map_err(|_| invalid("a packet over 4 GiB".to_owned()))?;
    Ok((kept, length))
}

/// The first bytes of a text, at most `most`, without breaking a character.
fn whole_characters(text: &str, most: usize) -> &[u8] {
    let end = (0..=text.len().min(most)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text.as_bytes()[..end]
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
