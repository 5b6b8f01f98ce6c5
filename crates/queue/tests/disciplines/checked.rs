//! [`Checked`] names each broken rule. Each test breaks one.

use queuescope_queue::{Checked, Discipline, DropReason, Dropped, Fifo, MarkReason, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Ecn, Nanos, Packet, PacketId, QueueId};

/// How a FIFO breaks the rules.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    Twice,
    Unknown,
    DropsDeparted,
    Resizes,
    Loses,
    WrongTime,
    WrongBacklog,
    Reorders,
    Queues,
    MarksNotEct,
    StuckTimer,
    PollsForEver,
}

#[derive(Debug)]
struct Faulty {
    fault: Fault,
    fifo: Fifo,
    last: Option<Departure>,
}

impl Discipline for Faulty {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        if self.fault == Fault::MarksNotEct {
            sink.marked(&Packet { ecn: Ecn::Ce, ..packet }, MarkReason::Early, now);
        }
        if self.fault != Fault::Loses || packet.id.0 < 2 {
            self.fifo.push(packet, now);
        }
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        match self.last {
            Some(last) if self.fault == Fault::Twice => return Some(Departure { dequeued: now, ..last }),
            Some(last) if self.fault == Fault::DropsDeparted => {
                sink.dropped(&Dropped::from_queue(last.packet, QueueId(0), last.enqueued, now, DropReason::Early));
            }
            _ => {}
        }
        let first = self.fifo.pop()?;
        let second = if self.fault == Fault::Reorders { self.fifo.pop() } else { None };
        if second.is_some() {
            self.fifo.push_behind(first.packet, first.enqueued, first.backlog_in);
        }
        let mut left = second.unwrap_or(first).depart(QueueId(0), now, self.fifo.backlog());
        match self.fault {
            Fault::Unknown => left.packet.id = PacketId(99),
            Fault::Resizes => left.packet.size = ByteCount(1),
            Fault::WrongTime => left.enqueued = Nanos(7),
            Fault::WrongBacklog => left.backlog_in.packets += 1,
            Fault::Queues => left.queue = QueueId(left.packet.id.0 as u16),
            _ => {}
        }
        self.last = Some(left);
        Some(left)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn polls_when_empty(&self) -> bool {
        self.fault == Fault::PollsForEver
    }

    fn next_timer(&self) -> Option<Nanos> {
        (self.fault == Fault::StuckTimer).then_some(Nanos(10))
    }

    fn is_fifo(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "faulty"
    }
}

struct Ignore;

impl Sink for Ignore {
    fn dropped(&mut self, _: &Dropped) {}
    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

/// Three packets come and leave, then the empty queue is polled, and a timer fires.
fn drive(fault: Fault) {
    let mut queue = Checked::new(Faulty { fault, fifo: Fifo::default(), last: None });
    for id in 0..3 {
        let packet = Packet { id: PacketId(id), size: ByteCount(1_000), ..Packet::default() };
        queue.enqueue(packet, Nanos(id), &mut Ignore);
    }
    for at in 3..7 {
        let left = queue.dequeue(Nanos(at), &mut Ignore);
        assert_eq!(left.is_some(), at < 6);
    }
    queue.on_timer(Nanos(10));
}

/// The panic of a run with a fault.
fn message(fault: Fault) -> String {
    let panic = std::panic::catch_unwind(|| drive(fault)).expect_err("a broken rule is a panic");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn each_broken_rule_is_named() {
    drive(Fault::None);
    for (fault, rule) in [
        (Fault::Twice, "it departs Packet { id: PacketId(0)"),
        (Fault::Unknown, "it departs Packet { id: PacketId(99)"),
        (Fault::DropsDeparted, "it drops Packet { id: PacketId(0)"),
        (Fault::Resizes, "size: ByteCount(1), "),
        (Fault::Loses, "its backlog is 2 packets of 2000 bytes after enqueue, but 3 packets of 3000 bytes have come"),
        (Fault::WrongTime, "with the times (Nanos(7), Nanos(3)), but it came and left at (Nanos(0), Nanos(3))"),
        (Fault::WrongBacklog, "with backlog_in Backlog { packets: 1, "),
        (Fault::Reorders, "is_fifo is true, but it departs Packet { id: PacketId(0)"),
        (Fault::Queues, "it uses the queue ids 0 to 1, but queues() is 1"),
        (Fault::MarksNotEct, "which is not ECN-capable"),
        (Fault::StuckTimer, "on_timer(10 ns) leaves next_timer at 10 ns: it must be later, or None"),
        (Fault::PollsForEver, "polls_when_empty is still true after a poll"),
    ] {
        let message = message(fault);
        assert!(message.starts_with("the discipline 'faulty' breaks a rule: "), "{fault:?}: {message}");
        assert!(message.contains(rule), "{fault:?}: {message}");
    }
}
