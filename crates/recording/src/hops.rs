//! Reports of switches (In-band Network Telemetry, INT) as records of the schema `queued`: one for each hop of a packet.
//!
//! `queuescope_wire::telemetry` reads the reports. Here their times become times since 1970, and what a record needs and a report lacks is counted by
//! reason.

mod clock;
mod counts;
mod read;

pub use clock::SwitchClock;
pub use counts::HopCounts;
pub use read::HopReader;

use crate::error::Error;
use crate::queued::QueuedLog;
use crate::recording::Recorded;
use crate::spool::Unwritten;
use queuescope_archive::Recorder;
use queuescope_log::queued::Place;
use queuescope_pcap::Record;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::telemetry::Marks;
use queuescope_wire::{ByteCount, Departure, FlowKey, Nanos};
use std::net::IpAddr;
use std::sync::Arc;

/// A nanosecond's worth of seconds.
const SECOND: u64 = 1_000_000_000;
const UDP: u8 = 17;

/// What a switch did to a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchHop {
    /// The switch and its port.
    pub place: Place,
    /// The packet with its queue, its times and what was in the queue as it came.
    pub departure: Departure,
    /// Whether the times are of the switch's clock. If not, only the wait is known, and the packet is taken to have left when its report arrived.
    pub is_timed: bool,
    /// Whether the switch dropped it.
    pub is_dropped: bool,
}

/// How switches report, and what is taken of them. INT does not fix the units: the operator of the network knows them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HopOptions {
    /// How packets with INT headers are marked.
    pub marks: Marks,
    /// The unit of times and latencies.
    pub unit: Nanos,
    /// The bits of a time, from 16 to 64: it begins again at 0 after the highest one.
    pub time_bits: u32,
    /// The unit of occupancies.
    pub occupancy: Occupancy,
    /// The most datagrams in a second; further ones are counted.
    pub rate: u64,
    /// Datagrams of other hosts are counted and not read; if there are none, those of all are read.
    pub senders: Vec<IpAddr>,
}

impl Default for HopOptions {
    /// Times in nanoseconds with all 64 bits, occupancies in bytes, no marks, and 50 000 datagrams a second of any host.
    fn default() -> Self {
        let (marks, unit, occupancy) = (Marks::default(), Nanos(1), Occupancy::Bytes(ByteCount(1)));
        Self { marks, unit, time_bits: u64::BITS, occupancy, rate: 50_000, senders: Vec::new() }
    }
}

/// What a switch counts in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupancy {
    /// Cells of this size.
    Bytes(ByteCount),
    /// Packets.
    Packets,
}

/// Records what switches report to a folder.
///
/// Its memory is bounded by the number of switches, of which it knows [`SWITCHES`](Self::SWITCHES).
#[derive(Debug)]
pub struct HopLog {
    log: QueuedLog,
    reader: HopReader,
    options: HopOptions,
    parser: Parser,
    /// The second of the last datagram, and the datagrams in it.
    second: (u64, u64),
}

impl HopLog {
    /// The most switches, and line cards of switches, whose reports are read.
    pub const SWITCHES: usize = 4096;

    /// Nothing was reported yet.
    pub fn new(log: QueuedLog, options: HopOptions) -> Self {
        let (reader, parser) = (HopReader::new(&options), Parser::new(Tunnel::Outer));
        Self { log, reader, options, parser, second: (0, 0) }
    }

    /// The recorder, for readers in other threads, which must be gone before [`finish`](Self::finish).
    pub fn recorder(&self) -> Arc<Recorder> {
        self.log.recorder()
    }

    /// Takes the payload of a datagram that came from a host at this time.
    ///
    /// # Errors
    /// Fails if records cannot be kept. What is wrong with a report is counted, and is not an error.
    pub fn datagram(&mut self, from: IpAddr, arrival: Nanos, payload: &[u8]) -> Result<(), Error> {
        let counts = self.reader.counts_mut();
        if !self.options.senders.is_empty() && !self.options.senders.contains(&from.to_canonical()) {
            counts.other_senders += 1;
            return Ok(());
        }
        let second = arrival.0 / SECOND;
        self.second = if self.second.0 == second { (second, self.second.1 + 1) } else { (second, 1) };
        if self.second.1 > self.options.rate {
            counts.over_rate += 1;
            return Ok(());
        }
        self.payload(arrival, payload)
    }

    /// Takes a captured frame, if it is a UDP datagram to this port: the capture is not limited in rate.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn frame(&mut self, record: &Record<'_>, time: Nanos, port: u16) -> Result<(), Error> {
        let frame = self.parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
        let FlowKey { protocol, dst_port, .. } = frame.key;
        if (protocol, dst_port) != (UDP, port) {
            self.reader.counts_mut().other_frames += 1;
            return Ok(());
        }
        self.payload(time, frame.payload(record.data))
    }

    fn payload(&mut self, arrival: Nanos, payload: &[u8]) -> Result<(), Error> {
        let Self { log, reader, .. } = self;
        reader.read(arrival, payload, &mut |headers, hop| log.reported(headers, hop))
    }

    /// What was read and what was not.
    pub fn counts(&self) -> &HopCounts {
        self.reader.counts()
    }

    /// Records that could not be kept, once there is an error.
    pub fn unwritten(&self) -> Option<Unwritten> {
        self.log.unwritten()
    }

    /// Notes in the folder what has been left out so far. Call this now and then.
    pub fn note_left_out(&self, now: Nanos) {
        let totals: Vec<_> = self.counts().notes().collect();
        self.log.left_out(now, Nanos::ZERO, &totals);
    }

    /// Writes the records so far. Call this when the next report may take a while.
    ///
    /// # Errors
    /// Fails if they cannot be kept.
    pub fn hand_over(&self) -> Result<(), Error> {
        self.log.hand_over()
    }

    /// Ends the recording. Its notes say what was not recorded.
    ///
    /// # Errors
    /// Fails if not all records are kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        let notes = self.reader.counts().notes().collect();
        Ok(Recorded { others: notes, ..self.log.finish()? })
    }
}
