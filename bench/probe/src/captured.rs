//! The same packets as captured by `tcpdump` on both sides of the queue.

use crate::road::{Road, within};
use anyhow::{Context, Result, ensure};
use queuescope_pcap::CaptureReader;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::TempDir;

/// The bytes of a flow of TCP that a packet carries: both ports, and sequence numbers from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    pub ports: (u16, u16),
    pub from: u32,
    pub bytes: u32,
}

impl Piece {
    /// Of the headers of a frame with IPv4 without options, and its bytes in all.
    pub fn of(frame: &[u8], length: u32) -> Option<Self> {
        let half = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let ours = half(12)? == 0x0800 && frame.get(14) == Some(&0x45) && frame.get(23) == Some(&6);
        let headers = 34 + u32::from(frame.get(46)? >> 4) * 4;
        let from = u32::from_be_bytes(*frame.get(38..)?.first_chunk()?);
        let bytes = length.checked_sub(headers).filter(|bytes| ours && *bytes > 0)?;
        Some(Self { ports: (half(34)?, half(36)?), from, bytes })
    }
}

/// Running captures on both sides of the queue.
pub struct Captures {
    folder: TempDir,
    sides: [(Child, BufReader<ChildStderr>); 2],
}

/// The times at which pieces arrived at the router and left it. Pieces that arrived or left twice have none.
pub struct Times {
    came: BTreeMap<Piece, Option<u64>>,
    left: BTreeMap<Piece, Option<u64>>,
    /// Packets that a capture missed because it did not keep up.
    pub missed: u64,
}

/// The devices, and the direction of packets there.
const SIDES: [(&str, &str); 2] = [("r0", "in"), ("near0", "out")];

impl Captures {
    pub fn start(road: &Road) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let start = |(device, way): (&'static str, &'static str)| {
            let path = file(folder.path(), device);
            within(&road.router, move || {
                let options = format!("-i {device} -Q {way} -s 80 -B 131072 --time-stamp-precision=nano -n -w");
                let mut command = Command::new("tcpdump");
                command.args(options.split_whitespace()).arg(path).arg("tcp").stderr(Stdio::piped());
                let mut child = command.spawn().context("cannot run tcpdump")?;
                let mut says = BufReader::new(child.stderr.take().context("it says nothing")?);
                let mut line = String::new();
                while !line.contains("listening on") {
                    line.clear();
                    ensure!(says.read_line(&mut line)? > 0, "tcpdump does not listen");
                }
                Ok((child, says))
            })
        };
        let sides = [start(SIDES[0])?, start(SIDES[1])?];
        Ok(Self { folder, sides })
    }

    /// Ends the captures, and reads their files.
    pub fn finish(self) -> Result<Times> {
        let mut missed = 0;
        for (mut child, mut says) in self.sides {
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)?;
            let mut summary = String::new();
            says.read_to_string(&mut summary)?;
            child.wait()?;
            let dropped = summary.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel"));
            missed += dropped.and_then(|count| count.trim().parse::<u64>().ok()).context("tcpdump does not count")?;
        }
        let [came, left] = SIDES.map(|(device, _)| read(&file(self.folder.path(), device)));
        Ok(Times { came: came?, left: left?, missed })
    }
}

impl Times {
    /// The time of a piece in the router, if all its bytes arrived once and left once.
    pub fn delay(&self, piece: Piece) -> Option<u64> {
        let left = (*self.left.get(&piece)?)?;
        // It may have arrived as part of a super-packet.
        let (whole, came) = self.came.range(..=Piece { bytes: u32::MAX, ..piece }).next_back()?;
        let begins = piece.from.wrapping_sub(whole.from);
        let is_part = whole.ports == piece.ports && begins + piece.bytes <= whole.bytes;
        left.checked_sub((*came)?).filter(|_| is_part)
    }
}

fn file(folder: &Path, device: &str) -> PathBuf {
    folder.join(device).with_extension("pcap")
}

fn read(path: &Path) -> Result<BTreeMap<Piece, Option<u64>>> {
    let mut reader = CaptureReader::open(path)?;
    let mut times = BTreeMap::new();
    while let Some(record) = reader.next_record()? {
        let (Some(piece), Some(time)) = (Piece::of(record.data, record.original_len), record.time) else { continue };
        times.entry(piece).and_modify(|time| *time = None).or_insert(Some(time.0));
    }
    once(&mut times);
    Ok(times)
}

/// Removes the times of overlapping pieces, because they cannot be matched.
fn once(times: &mut BTreeMap<Piece, Option<u64>>) {
    let (mut open, mut twice) = (Vec::<Piece>::new(), Vec::new());
    for piece in times.keys() {
        open.retain(|before| before.ports == piece.ports && piece.from.wrapping_sub(before.from) < before.bytes);
        if !open.is_empty() {
            twice.extend(open.iter().copied().chain([*piece]));
        }
        open.push(*piece);
    }
    times.extend(twice.into_iter().map(|piece| (piece, None)));
}
