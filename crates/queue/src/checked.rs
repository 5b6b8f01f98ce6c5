//! A discipline whose behaviour is checked at each call.

use crate::{Discipline, Dropped, MarkReason, Sink};

use queuescope_wire::{Backlog, Departure, Ecn, Nanos, Packet, PacketId};
use std::collections::BTreeMap;

/// Checks at each call that a discipline keeps the rules of [`Discipline`]. For tests of a discipline: it keeps a copy of
/// each packet in the queue, and otherwise behaves as the discipline does.
///
/// # Panics
///
/// A call panics, and names the discipline and the rule, if the discipline
///
/// - departs or drops a packet that is not in the queue: it departed before, was dropped before, or never came,
/// - changes a packet, except for its ECN codepoint in a reported mark,
/// - departs or drops a packet with a wrong time of arrival or departure, or with a wrong backlog,
/// - departs a packet before an earlier one although [`is_fifo`](Discipline::is_fifo) is true,
/// - uses more queue ids than [`queues`](Discipline::queues),
/// - marks a packet that is not ECN-capable,
/// - has a [`backlog`](Discipline::backlog) that is not the packets in the queue, for example because it lost one,
/// - does not move its timer on in [`on_timer`](Discipline::on_timer),
/// - asks to be polled again after a poll of the empty queue ([`polls_when_empty`](Discipline::polls_when_empty)).
///
/// It also panics if the caller breaks a rule: times that decrease, or a packet whose id is in the queue already.
///
/// ```
/// use queuescope_queue::{Checked, Discipline, DisciplineFactory, Outlet, TailDrop, TailDropParams};
///
/// // In place of `TailDrop::new(params, outlet)`:
/// let checked = |outlet| Checked::new(TailDrop::new(TailDropParams::default(), outlet));
/// let factory = DisciplineFactory::new("checked-tail-drop", checked);
/// # let _ = factory;
/// ```
#[derive(Debug)]
pub struct Checked<D> {
    discipline: D,
    records: Records,
}

/// What is known of the packets in the queue.
#[derive(Debug)]
struct Records {
    name: &'static str,
    is_fifo: bool,
    queues: u16,
    now: Nanos,
    waiting: BTreeMap<PacketId, Record>,
    backlog: Backlog,
    /// The packet that is being enqueued.
    arriving: Option<PacketId>,
    /// The number of packets that came.
    came: u64,
    /// The place in the order of arrival of the last packet that departed.
    last: Option<u64>,
    /// The lowest and the highest queue id of a departure.
    ids: Option<(u16, u16)>,
}

/// A packet in the queue.
#[derive(Debug)]
struct Record {
    /// The packet in its current state, with CE if it was marked.
    packet: Packet,
    came: Nanos,
    /// The backlog that it found.
    backlog: Backlog,
    /// Its place in the order of arrival.
    place: u64,
}

impl<D: Discipline> Checked<D> {
    /// Wraps a discipline whose queue is empty. Messages have its [`name`](Discipline::name).
    pub fn new(discipline: D) -> Self {
        let (name, is_fifo, queues) = (discipline.name(), discipline.is_fifo(), discipline.queues());
        let records = Records {
            name,
            is_fifo,
            queues,
            now: Nanos::ZERO,
            waiting: BTreeMap::new(),
            backlog: Backlog::default(),
            arriving: None,
            came: 0,
            last: None,
            ids: None,
        };
        let checked = Self { discipline, records };
        checked.check_backlog("at the start");
        checked
    }

    /// The discipline.
    pub fn get(&self) -> &D {
        &self.discipline
    }

    /// The discipline, without the checks.
    pub fn into_inner(self) -> D {
        self.discipline
    }

    fn check_backlog(&self, when: &str) {
        let (stated, held) = (self.discipline.backlog(), self.records.backlog);
        self.records.check(stated == held, || {
            format!(
                "its backlog is {} packets of {} bytes {when}, but {} packets of {} bytes have come and have neither \
                 departed nor been dropped",
                stated.packets, stated.bytes.0, held.packets, held.bytes.0
            )
        });
    }
}

impl<D: Discipline> Discipline for Checked<D> {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        let Self { discipline, records } = self;
        records.pass(now);
        let record = Record { packet, came: now, backlog: records.backlog, place: records.came };
        let known = records.waiting.insert(packet.id, record);
        assert!(
            known.is_none(),
            "the caller of '{}' enqueues {packet:?}, whose id is in the queue already",
            records.name
        );
        records.came += 1;
        records.backlog.packets += 1;
        records.backlog.bytes += packet.size;
        records.arriving = Some(packet.id);
        discipline.enqueue(packet, now, &mut CheckedSink { records, sink });
        records.arriving = None;
        self.check_backlog("after enqueue");
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        let Self { discipline, records } = self;
        records.pass(now);
        let was_empty = records.backlog.packets == 0;
        let departure = discipline.dequeue(now, &mut CheckedSink { records, sink });
        if let Some(departure) = &departure {
            records.depart(departure);
            let left = discipline.backlog();
            records.check(departure.backlog_out == left, || {
                format!(
                    "it departs {:?} with backlog_out {:?}, but its backlog is {left:?}",
                    departure.packet, departure.backlog_out
                )
            });
        } else if was_empty {
            records.check(!discipline.polls_when_empty(), || "polls_when_empty is still true after a poll".to_owned());
        }
        self.check_backlog("after dequeue");
        departure
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    fn polls_when_empty(&self) -> bool {
        self.discipline.polls_when_empty()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.discipline.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.records.pass(now);
        let due = self.discipline.next_timer();
        self.discipline.on_timer(now);
        if let (Some(due), Some(next)) = (due, self.discipline.next_timer()) {
            self.records.check(due > now || next > due, || {
                format!("on_timer({} ns) leaves next_timer at {} ns: it must be later, or None", now.0, next.0)
            });
        }
        self.check_backlog("after on_timer");
    }

    fn name(&self) -> &'static str {
        self.records.name
    }

    fn is_fifo(&self) -> bool {
        self.discipline.is_fifo()
    }

    fn queues(&self) -> u16 {
        self.discipline.queues()
    }

    fn drop_probability(&self) -> Option<f64> {
        self.discipline.drop_probability()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.discipline.counters()
    }
}

impl Records {
    /// Panics with a message that names the discipline, unless `kept`.
    #[track_caller]
    fn check(&self, kept: bool, broken: impl FnOnce() -> String) {
        assert!(kept, "the discipline '{}' breaks a rule: {}", self.name, broken());
    }

    fn pass(&mut self, now: Nanos) {
        assert!(now >= self.now, "the caller of '{}' goes back from {} ns to {} ns", self.name, self.now.0, now.0);
        self.now = now;
    }

    /// Removes a packet from the queue.
    fn take(&mut self, packet: &Packet, verb: &str) -> Record {
        let Some(record) = self.waiting.remove(&packet.id) else {
            panic!(
                "the discipline '{}' breaks a rule: it {verb} {packet:?}, which is not in the queue: it departed before, was \
                 dropped before, or never came",
                self.name
            );
        };
        self.check(record.packet == *packet, || format!("it {verb} {packet:?}, which was {:?}", record.packet));
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size;
        record
    }

    fn depart(&mut self, departure: &Departure) {
        let record = self.take(&departure.packet, "departs");
        let times = (departure.enqueued, departure.dequeued);
        self.check(times == (record.came, self.now), || {
            format!(
                "it departs {:?} with the times {times:?}, but it came and left at {:?}",
                departure.packet,
                (record.came, self.now)
            )
        });
        self.check(departure.backlog_in == record.backlog, || {
            format!(
                "it departs {:?} with backlog_in {:?}, but it found {:?}",
                departure.packet, departure.backlog_in, record.backlog
            )
        });
        self.check(!self.is_fifo || self.last.is_none_or(|last| last < record.place), || {
            format!("is_fifo is true, but it departs {:?} after a packet that came later", departure.packet)
        });
        self.last = Some(record.place);
        let id = departure.queue.0;
        let (first, last) = self.ids.map_or((id, id), |(first, last)| (first.min(id), last.max(id)));
        self.ids = Some((first, last));
        self.check(last - first < self.queues, || {
            format!("it uses the queue ids {first} to {last}, but queues() is {}", self.queues)
        });
    }
}

/// Checks drops and marks before the sink gets them.
struct CheckedSink<'a, S> {
    records: &'a mut Records,
    sink: &'a mut S,
}

impl<S: Sink> Sink for CheckedSink<'_, S> {
    fn dropped(&mut self, dropped: &Dropped) {
        let record = self.records.take(&dropped.packet, "drops");
        let (now, came) = (self.records.now, record.came);
        let is_arriving = self.records.arriving == Some(dropped.packet.id);
        let right = dropped.at == now && dropped.enqueued.map_or(is_arriving, |enqueued| enqueued == came);
        self.records.check(right, || {
            format!("it drops {dropped:?} with wrong times: it came at {} ns, and now is {} ns", came.0, now.0)
        });
        self.sink.dropped(dropped);
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        let Some(record) = self.records.waiting.get_mut(&packet.id) else {
            panic!(
                "the discipline '{}' breaks a rule: it marks {packet:?}, which is not in the queue",
                self.records.name
            );
        };
        let was = record.packet;
        record.packet.ecn = Ecn::Ce;
        let marked = record.packet;
        self.records.check(was.ecn.is_capable(), || format!("it marks {was:?}, which is not ECN-capable"));
        self.records.check(marked == *packet, || format!("it marks {was:?} and reports {packet:?}"));
        self.records.check(now == self.records.now, || {
            format!("it reports a mark at {} ns at {} ns", now.0, self.records.now.0)
        });
        self.sink.marked(packet, reason, now);
    }
}
