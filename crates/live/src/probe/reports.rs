//! Reading the reports of packets that left or were dropped, from memory that the kernel's programs write (`bpf/report.h`).

use super::{Left, lacks};
use crate::ProbeError;
use aya::maps::Map;
use memmap2::{MmapOptions, MmapRaw};
use queuescope_wire::{Ecn, Nanos};
use rustix::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The reports that the kernel keeps, at most; the bytes of one, and of the headers of its packet.
const REPORTS: usize = 1 << 15;
const SIZE: usize = 64;
const HEADERS: usize = 128;
/// The offset of a report's number, which the kernel writes last.
const NUMBER: usize = 56;
/// The places of flows, and that of a packet without one.
const PLACES: usize = 1 << 15;
const NO_PLACE: u32 = u32::MAX;
/// Flags of a report.
const IS_STAMPED: u8 = 1;
const IS_FRAMED: u8 = 2;
const IS_CONTRIBUTING: u8 = 4;
const HAS_HEADERS: u8 = 8;
const IS_DROPPED: u8 = 16;
const HAS_ECN: u8 = 32;

/// The reports, and the flows that they name.
#[derive(Debug)]
pub struct Reports {
    reports: MmapRaw,
    headers: MmapRaw,
    /// The number of reports that were read.
    read: u64,
    /// The digest and the headers of the flow at each place of the kernel's table: reports name flows by these.
    flows: Vec<Option<(u64, Box<[u8]>)>>,
}

impl Reports {
    /// Maps the memory of the reports and of their headers.
    pub fn new(reports: Option<&Map>, headers: Option<&Map>) -> Result<Self, ProbeError> {
        let reports = mapped(reports, REPORTS * SIZE)?;
        let headers = mapped(headers, REPORTS * HEADERS)?;
        Ok(Self { reports, headers, read: 0, flows: vec![None; PLACES] })
    }

    /// The number of reports that were read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Whether there is a report that was not read.
    pub fn is_ready(&self) -> bool {
        self.number(self.read as usize % REPORTS).load(Ordering::Acquire) == self.read as u32 + 1
    }

    /// Passes the next report to `each`; returns whether there was one.
    pub fn next(&mut self, each: impl FnOnce(Left<'_>)) -> bool {
        if !self.is_ready() {
            return false;
        }
        let slot = self.read as usize % REPORTS;
        let mut report = [0; SIZE];
        copy(&self.reports, slot * SIZE, &mut report);
        let report = Report(report);
        let (digest, place) = (report.word(16), report.half(48));
        let (queue, flags, captured) = (report.0[52], report.0[53], usize::from(report.0[54]));
        let mut own = [0; HEADERS];
        if flags & HAS_HEADERS != 0 {
            copy(&self.headers, slot * HEADERS, &mut own);
            if place != NO_PLACE {
                self.flows[place as usize % PLACES] = Some((digest, own[..captured.min(HEADERS)].into()));
            }
        }
        let known = || self.flows[place as usize % PLACES].as_ref().filter(|(of, _)| *of == digest);
        let headers = match flags & HAS_HEADERS != 0 {
            true => &own[..captured.min(HEADERS)],
            // A flow whose place was taken by another has none. Its packets are parsed as packets without headers, which is counted.
            false => known().map_or(&[][..], |(_, headers)| headers),
        };
        let (dequeued, waited) = (report.word(0), report.word(8));
        each(Left {
            enqueued: Nanos(dequeued - waited.min(dequeued)),
            is_stamped: flags & IS_STAMPED != 0,
            dequeued: Nanos(dequeued),
            digest,
            flow: u64::from(report.half(24)),
            all: u64::from(report.half(28)),
            bytes: report.half(32),
            packets: report.half(36),
            backlog: report.half(40),
            length: report.half(44),
            queue: u32::from(queue),
            is_dropped: flags & IS_DROPPED != 0,
            ecn: (flags & HAS_ECN != 0).then(|| Ecn::from_bits(report.0[55])),
            framed: flags & IS_FRAMED != 0,
            contributing: flags & IS_CONTRIBUTING != 0,
            headers,
        });
        self.read += 1;
        true
    }

    /// The number of the report in a slot.
    fn number(&self, slot: usize) -> &AtomicU32 {
        assert!(slot < REPORTS);
        // SAFETY: the number is within the map, which lives as long as `self`, and aligned. The kernel changes it, but as a whole.
        #[allow(unsafe_code, reason = "the kernel shares this memory")]
        unsafe {
            AtomicU32::from_ptr(self.reports.as_mut_ptr().add(slot * SIZE + NUMBER).cast())
        }
    }
}

/// The bytes of a report.
struct Report([u8; SIZE]);

impl Report {
    fn word(&self, at: usize) -> u64 {
        self.0[at..].first_chunk().copied().map_or(0, u64::from_ne_bytes)
    }

    fn half(&self, at: usize) -> u32 {
        self.0[at..].first_chunk().copied().map_or(0, u32::from_ne_bytes)
    }
}

/// Maps the values of a map.
fn mapped(map: Option<&Map>, bytes: usize) -> Result<MmapRaw, ProbeError> {
    let Some(Map::Array(map)) = map else { return Err(lacks("find the reports of the probe")) };
    let map = MmapOptions::new().len(bytes).map_raw_read_only(map.fd().as_fd().as_raw_fd());
    map.map_err(|why| ProbeError::System { what: "the reports of the probe", why })
}

/// Copies bytes from a map.
fn copy(from: &MmapRaw, at: usize, to: &mut [u8]) {
    assert!(at + to.len() <= from.len());
    // SAFETY: the bytes are within the map. The kernel wrote them before the number of their report, which was read before, and writes there again
    // only when it has learned that the report was read.
    #[allow(unsafe_code, reason = "the kernel shares this memory")]
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr().add(at), to.as_mut_ptr(), to.len());
    }
}
