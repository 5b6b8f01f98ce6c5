//! A discipline that Python steps: packets in, packets out, at times that the caller chooses.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::packet::{RawDeparture, ecn_name, ecn_of};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::queue::{
    AnyDiscipline, Checked, Discipline, DisciplineParams, Dropped, Limit, MarkReason, Outlet, Sink,
};
use queuescope::scenario::Management;
use queuescope::wire::{Class, QueueId};
use queuescope::{ByteCount, FlowId, Nanos, Packet, PacketId};
use std::sync::{Mutex, PoisonError};

/// A queue.
#[pyclass(module = "queuescope._queuescope")]
pub struct RawQueue {
    /// Threads of Python take turns.
    discipline: Mutex<Checked<AnyDiscipline>>,
    name: &'static str,
    now: Nanos,
    next: u64,
}

/// What happened to packets, other than that they left.
#[derive(Default)]
struct Events {
    list: Vec<(&'static str, &'static str, Packet)>,
}

impl Sink for Events {
    fn dropped(&mut self, dropped: &Dropped) {
        self.list.push(("dropped", dropped.reason.name(), dropped.packet));
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, _now: Nanos) {
        self.list.push(("marked", reason.name(), *packet));
    }
}

/// Events for Python: the kind, the reason, the packet's number and its codepoint.
type Listed = Vec<(&'static str, &'static str, u64, &'static str)>;

impl Events {
    fn listed(self) -> Listed {
        self.list.into_iter().map(|(kind, reason, packet)| (kind, reason, packet.id.0, ecn_name(packet.ecn))).collect()
    }
}

#[pymethods]
impl RawQueue {
    /// A queue with this discipline, in the command's notation, and `rate`, `limit`, `seed` and `overhead` of its link.
    #[new]
    fn new(discipline: &str, arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let arguments = Arguments(arguments);
        let management = Management::parse("discipline", discipline).map_err(Failure::from)?;
        let limit = arguments.limit("limit")?.unwrap_or(Limit::Time(Nanos(1_000_000_000)));
        let rate = arguments.rate("rate")?;
        let rate = rate.ok_or_else(|| {
            Failure::Value("rate= is missing: give the rate of the link, such as '20mbps'".to_owned())
        })?;
        let seed = arguments.count("seed", 0, u64::MAX)?.unwrap_or(1);
        let Management::Discipline(params) = management.with_limit(limit) else {
            return Err(Failure::Value(format!(
                "'{discipline}' is a switch program, and needs a switch around it: use it in analyze() or simulate(). Disciplines are {}",
                DisciplineParams::NAMES.join(", ")
            ))
            .into());
        };
        let name = params.name();
        let discipline = params.build(Outlet { rate, overhead: 0, queue: QueueId(0), seed });
        Ok(Self { discipline: Mutex::new(Checked::new(discipline)), name, now: Nanos::ZERO, next: 0 })
    }

    /// A packet arrives. Returns its number, and what happened to packets.
    #[pyo3(signature = (size, now, flow=0, traffic_class=0, ecn="not-ect"))]
    fn enqueue(&mut self, size: u64, now: u64, flow: u32, traffic_class: u8, ecn: &str) -> PyResult<(u64, Listed)> {
        let now = self.advance(now)?;
        let id = self.next;
        self.next += 1;
        let packet = Packet {
            id: PacketId(id),
            flow: FlowId(flow),
            size: ByteCount(size),
            class: Class(traffic_class),
            ecn: ecn_of(ecn)?,
        };
        let mut events = Events::default();
        self.queue().enqueue(packet, now, &mut events);
        Ok((id, events.listed()))
    }

    /// The link is ready. Returns the packet that leaves, if any, and what happened to others.
    fn dequeue(&mut self, now: u64) -> PyResult<(Option<RawDeparture>, Listed)> {
        let now = self.advance(now)?;
        let mut events = Events::default();
        let left = self.queue().dequeue(now, &mut events);
        Ok((left.map(RawDeparture::from), events.listed()))
    }

    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.name
    }

    /// Packets and bytes in the queue.
    #[getter]
    fn backlog(&self) -> (u64, u64) {
        let backlog = self.read(Discipline::backlog);
        (backlog.packets, backlog.bytes.0)
    }

    /// The current probability of a drop or mark, if the discipline has one.
    #[getter]
    fn drop_probability(&self) -> Option<f64> {
        self.read(Discipline::drop_probability)
    }

    /// The counters so far.
    #[getter]
    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.read(Discipline::counters)
    }

    /// When the discipline next does something by itself, in nanoseconds.
    #[getter]
    fn next_timer(&self) -> Option<u64> {
        self.read(Discipline::next_timer).map(|time| time.0)
    }
}

impl RawQueue {
    fn queue(&mut self) -> &mut Checked<AnyDiscipline> {
        self.discipline.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, what: impl FnOnce(&Checked<AnyDiscipline>) -> T) -> T {
        what(&self.discipline.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Time passes to `now`: all timers until then fire.
    fn advance(&mut self, now: u64) -> PyResult<Nanos> {
        let now = Nanos(now);
        if now < self.now {
            let message = format!("time goes back from {} ns to {} ns", self.now.0, now.0);
            return Err(Failure::Value(message).into());
        }
        let before = self.now;
        let queue = self.queue();
        while let Some(due) = queue.next_timer().filter(|due| *due <= now) {
            queue.on_timer(due.max(before));
        }
        self.now = now;
        Ok(now)
    }
}

/// The names of all disciplines.
#[pyfunction]
pub fn discipline_names() -> Vec<&'static str> {
    DisciplineParams::NAMES.to_vec()
}
