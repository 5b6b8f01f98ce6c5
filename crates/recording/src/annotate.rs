//! Copies a capture, with a comment on each packet.

use queuescope_meter::Contribution;
use queuescope_pcap::{PcapngWriter, Record};
use queuescope_queue::DropReason;
use queuescope_wire::{Departure, Nanos, Packet};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;

/// Writes packets in the order in which they came, each as soon as its outcome is known. Its bytes are kept
/// until then: memory is bounded by the packets that wait in the queue.
pub struct Annotator<W: Write> {
    writer: PcapngWriter<W>,
    /// Interface and link type in the input, and the interface in the output.
    interfaces: Vec<(u32, u32, u32)>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    interface: u32,
    time: Nanos,
    original_len: u32,
    data: Vec<u8>,
    /// The packets of the frame: several if a super-packet was split, none if it was left out.
    packets: Range<u64>,
    /// How many of them have neither left nor been dropped yet, and how many were dropped.
    unknown: u64,
    dropped: u64,
    comment: String,
}

impl<W: Write> Annotator<W> {
    /// Starts the file.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn new(out: W) -> io::Result<Self> {
        let application = concat!("queuescope ", env!("CARGO_PKG_VERSION"));
        Ok(Self { writer: PcapngWriter::new(out, application)?, interfaces: Vec::new(), waiting: VecDeque::new() })
    }

    /// Call this for each frame, read at `time`, with the packets that it becomes. A frame without packets is written in its place among the others.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn read(&mut self, record: &Record<'_>, time: Nanos, packets: Range<u64>) -> io::Result<()> {
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
            unknown: packets.end - packets.start,
            dropped: 0,
            comment: if packets.is_empty() { LEFT_OUT.to_owned() } else { String::new() },
            packets,
        });
        self.write()
    }

    /// Call this when a packet leaves the queue.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn departed(&mut self, departure: &Departure, part: Contribution) -> io::Result<()> {
        let comment = if departure.sojourn() == Nanos::ZERO {
            "queuescope: did not wait".to_owned()
        } else {
            let share = if part.total > 0 { part.own as f64 / part.total as f64 * 100.0 } else { 0.0 };
            let backlog = departure.backlog_in;
            format!(
                "queuescope: waited {} behind {} in {} packet{} (and the one being sent); own flow {share:.1} % of what left meanwhile",
                departure.sojourn(),
                backlog.bytes,
                backlog.packets,
                if backlog.packets == 1 { "" } else { "s" }
            )
        };
        self.known(departure.packet, comment)
    }

    /// Call this when a packet leaves the queue whose arrival was not seen.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn passed(&mut self, packet: Packet) -> io::Result<()> {
        self.known(packet, UNSEEN_ARRIVAL.to_owned())
    }

    /// Call this when a packet is dropped.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn dropped(&mut self, packet: Packet, reason: DropReason) -> io::Result<()> {
        if let Some(waiting) = self.of(packet) {
            waiting.dropped += 1;
        }
        self.known(packet, format!("queuescope: dropped, {}", reason.name()))
    }

    /// The output.
    pub fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Ends the file, and returns the output.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn finish(self) -> io::Result<W> {
        debug_assert!(self.waiting.is_empty(), "every packet left or was dropped");
        self.writer.finish()
    }

    fn known(&mut self, packet: Packet, comment: String) -> io::Result<()> {
        if let Some(waiting) = self.of(packet) {
            waiting.unknown -= 1;
            waiting.comment = comment;
        }
        self.write()
    }

    /// The frame of this packet, if it was read.
    fn of(&mut self, packet: Packet) -> Option<&mut Waiting> {
        let position = self.waiting.partition_point(|waiting| waiting.packets.end <= packet.id.0);
        self.waiting.get_mut(position).filter(|waiting| waiting.packets.contains(&packet.id.0))
    }

    /// Writes the frames whose outcome is known, up to the first of which it is not.
    fn write(&mut self) -> io::Result<()> {
        while self.waiting.front().is_some_and(|waiting| waiting.unknown == 0) {
            let Some(waiting) = self.waiting.pop_front() else { break };
            let Waiting { interface, time, original_len, data, packets, dropped, mut comment, .. } = waiting;
            let count = packets.end - packets.start;
            if count > 1 && dropped > 0 {
                comment = format!("queuescope: {dropped} of its {count} segments dropped; of the last, {comment}");
            }
            self.writer.packet(interface, time, original_len, &data, Some(&comment))?;
        }
        Ok(())
    }
}

/// The comment on a packet that was in the queue before the measurement began.
const UNSEEN_ARRIVAL: &str = "queuescope: its arrival was not seen, so it is not known how long it waited";

/// The comment on a frame that did not enter the queue.
const LEFT_OUT: &str = "queuescope: left out by --input";

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_pcap::CaptureReader;
    use queuescope_wire::{ByteCount, Class, Ecn, FlowId, PacketId};
    use std::io::Cursor;

    /// Otherwise an interface that is full when it is watched would get no file, and memory would grow.
    #[test]
    fn packets_whose_arrival_was_not_seen_hold_up_no_others() {
        let mut annotator = Annotator::new(Vec::new()).unwrap();
        let data = [0; 60];
        for number in 0..3 {
            let time = Nanos(1_000_000_000 + number);
            let record = Record { time: Some(time), link: 1, interface: 0, original_len: 60, data: &data };
            annotator.read(&record, time, number..number + 1).unwrap();
        }
        let packet = |number| Packet {
            id: PacketId(number),
            flow: FlowId(0),
            size: ByteCount(60),
            class: Class(0),
            ecn: Ecn::NotEct,
        };
        annotator.passed(packet(0)).unwrap();
        // A packet that was never read is no frame's.
        annotator.passed(packet(7)).unwrap();
        assert_eq!(annotator.waiting.len(), 2);
        annotator.dropped(packet(1), DropReason::Overlimit).unwrap();
        annotator.passed(packet(2)).unwrap();
        let file = annotator.finish().unwrap();
        assert!(file.windows(23).any(|part| part == b"its arrival was not see"));
        let mut reader = CaptureReader::new(Cursor::new(file), "annotated").unwrap();
        let mut packets = 0;
        while reader.next_record().unwrap().is_some() {
            packets += 1;
        }
        assert_eq!(packets, 3);
    }
}
