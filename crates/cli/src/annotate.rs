//! The capture again, with a comment on each packet.

use queuescope_meter::Contribution;
use queuescope_pcap::{PcapngWriter, Record};
use queuescope_queue::DropReason;
use queuescope_wire::{Departure, Nanos, Packet};
use std::collections::VecDeque;
use std::io::{self, Write};

/// Writes packets in the order in which they came, each as soon as it is known what became of it. Its bytes are kept
/// until then: memory is bounded by what waits in the queue.
pub struct Annotator<W: Write> {
    writer: PcapngWriter<W>,
    /// Interface and link type of the input, and the interface they have here.
    interfaces: Vec<(u32, u32, u32)>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    interface: u32,
    time: Nanos,
    original_len: u32,
    data: Vec<u8>,
    /// The id of the last packet that the frame became; several if a super-packet was split.
    last_id: u64,
    /// How many packets it became, how many of them neither left nor were dropped yet, and how many were dropped.
    count: u32,
    unknown: u32,
    dropped: u32,
    comment: String,
}

impl<W: Write> Annotator<W> {
    /// Starts the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let application = concat!("queuescope ", env!("CARGO_PKG_VERSION"));
        Ok(Self { writer: PcapngWriter::new(out, application)?, interfaces: Vec::new(), waiting: VecDeque::new() })
    }

    /// A frame was read at `time`, which becomes the packets up to `last_id`, `count` of them.
    ///
    /// # Errors
    /// Those of the output.
    pub fn read(&mut self, record: &Record<'_>, time: Nanos, last_id: u64, count: u32) -> io::Result<()> {
        let known = self.interfaces.iter().find(|(old, link, _)| (*old, *link) == (record.interface, record.link));
        let interface = match known {
            Some((.., interface)) => *interface,
            None => {
                let interface = self.writer.interface(record.link, 0)?;
                self.interfaces.push((record.interface, record.link, interface));
                interface
            }
        };
        self.waiting.push_back(Waiting {
            interface,
            time,
            original_len: record.original_len,
            data: record.data.to_vec(),
            last_id,
            count,
            unknown: count,
            dropped: 0,
            comment: String::new(),
        });
        Ok(())
    }

    /// A packet left the queue.
    ///
    /// # Errors
    /// Those of the output.
    pub fn departed(&mut self, departure: &Departure, part: Contribution) -> io::Result<()> {
        let comment = if departure.sojourn() == Nanos::ZERO {
            "queuescope: did not wait".to_owned()
        } else {
            let share = if part.total > 0 { part.own as f64 / part.total as f64 * 100.0 } else { 0.0 };
            let backlog = departure.backlog_in;
            format!(
                "queuescope: waited {} behind {} in {} packets; own flow {share:.1} % of what left meanwhile",
                departure.sojourn(),
                backlog.bytes,
                backlog.packets
            )
        };
        self.known(departure.packet, comment)
    }

    /// A packet was dropped.
    ///
    /// # Errors
    /// Those of the output.
    pub fn dropped(&mut self, packet: Packet, reason: DropReason) -> io::Result<()> {
        let position = self.waiting.partition_point(|waiting| waiting.last_id < packet.id.0);
        if let Some(waiting) = self.waiting.get_mut(position) {
            waiting.dropped += 1;
        }
        self.known(packet, format!("queuescope: dropped, {}", reason.name()))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> io::Result<()> {
        debug_assert!(self.waiting.is_empty(), "every packet left or was dropped");
        self.writer.finish()?.flush()
    }

    fn known(&mut self, packet: Packet, comment: String) -> io::Result<()> {
        let position = self.waiting.partition_point(|waiting| waiting.last_id < packet.id.0);
        if let Some(waiting) = self.waiting.get_mut(position) {
            waiting.unknown -= 1;
            waiting.comment = comment;
        }
        while self.waiting.front().is_some_and(|waiting| waiting.unknown == 0) {
            let Some(waiting) = self.waiting.pop_front() else { break };
            let Waiting { interface, time, original_len, data, count, dropped, mut comment, .. } = waiting;
            if count > 1 && dropped > 0 {
                comment = format!("queuescope: {dropped} of its {count} segments dropped; of the last, {comment}");
            }
            self.writer.packet(interface, time, original_len, &data, Some(&comment))?;
        }
        Ok(())
    }
}
