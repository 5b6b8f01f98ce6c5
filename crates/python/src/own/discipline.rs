//! A discipline that is written in Python.

use crate::failure::Outcome;
use crate::own::{call, name_of};
use crate::packet::RawPacket;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use queuescope::queue::{
    Checked, Discipline, DisciplineFactory, DropReason, Dropped, MarkReason, Outlet, Sink, Waiting,
};
use queuescope::{Backlog, Departure, Ecn, Nanos, Packet};
use std::collections::BTreeMap;

/// A factory that calls `class` for each queue with the rate of the link in bits per second and a seed.
pub fn factory(class: Bound<'_, PyAny>) -> Outcome<DisciplineFactory> {
    let name = name_of(&class)?;
    let class = class.unbind();
    Ok(DisciplineFactory::new(name, move |outlet| Checked::new(Written::new(&class, outlet))))
}

/// A queue whose decisions are those of an object of Python. Its packets, and the backlog, are kept here.
struct Written {
    object: Py<PyAny>,
    outlet: Outlet,
    waiting: BTreeMap<u64, Waiting>,
    backlog: Backlog,
    timer: Option<Nanos>,
    /// Whether the class has a timer.
    has_timer: bool,
    is_fifo: bool,
}

impl Written {
    fn new(class: &Py<PyAny>, outlet: Outlet) -> Self {
        let (object, has_timer, is_fifo) = call(|py| {
            let object = class.bind(py).call0()?;
            object.call_method1("_begin", (outlet.rate.bits_per_second(), outlet.seed))?;
            let has_timer = object.getattr("_has_timer")?.extract()?;
            let is_fifo = object.getattr("fifo")?.extract()?;
            Ok((object.unbind(), has_timer, is_fifo))
        });
        let (waiting, backlog) = (BTreeMap::new(), Backlog::default());
        Self { object, outlet, waiting, backlog, timer: None, has_timer, is_fifo }
    }

    fn take(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        self.backlog.packets -= 1;
        self.backlog.bytes.0 -= waiting.packet.size.0;
        Some(waiting)
    }

    /// Does what the object requested in its last call: drops, marks, and the timer.
    fn settle(&mut self, py: Python<'_>, now: Nanos, sink: &mut impl Sink) -> PyResult<()> {
        let object = self.object.bind(py).clone();
        let actions: Vec<(String, u64, String)> = object.call_method0("_actions")?.extract()?;
        for (action, id, reason) in actions {
            let unknown =
                || PyValueError::new_err(format!("packet {id} does not wait in this queue, and cannot be {action}"));
            if action == "marked" {
                let waiting = self.waiting.get_mut(&id).ok_or_else(unknown)?;
                if !waiting.packet.ecn.is_capable() {
                    return Err(PyValueError::new_err(format!(
                        "packet {id} is not ECN-capable: drop it in place of marking it"
                    )));
                }
                waiting.packet.ecn = Ecn::Ce;
                let reason = MarkReason::ALL.into_iter().find(|known| known.name() == reason);
                sink.marked(&waiting.packet, reason.unwrap_or(MarkReason::Threshold), now);
                continue;
            }
            let Waiting { packet, enqueued, .. } = self.take(id).ok_or_else(unknown)?;
            sink.dropped(&Dropped::from_queue(
                packet,
                self.outlet.queue,
                enqueued,
                now,
                drop_reason(&reason, DropReason::Target),
            ));
        }
        self.timer = match self.has_timer {
            true => object.call_method0("next_timer")?.extract::<Option<u64>>()?.map(Nanos),
            false => None,
        };
        Ok(())
    }
}

impl Discipline for Written {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        let id = packet.id.0;
        self.waiting.insert(id, Waiting { packet, enqueued: now, backlog_in: self.backlog });
        self.backlog.packets += 1;
        self.backlog.bytes.0 += packet.size.0;
        call(|py| {
            let answer = self.object.bind(py).call_method1("enqueue", (RawPacket::new(packet, now), now.0))?;
            // False, or a reason: the packet is refused. Nothing or True: it waits.
            let refused = match answer.cast::<PyBool>() {
                Ok(kept) if !kept.is_true() => Some(DropReason::Overlimit),
                Ok(_) => None,
                Err(_) if answer.is_none() => None,
                Err(_) => Some(drop_reason(&answer.extract::<String>()?, DropReason::Overlimit)),
            };
            if let Some(reason) = refused
                && self.take(id).is_some()
            {
                sink.dropped(&Dropped::on_arrival(packet, self.outlet.queue, now, reason));
            }
            self.settle(py, now, sink)
        });
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        if self.backlog.packets == 0 {
            return None;
        }
        call(|py| {
            let answer = self.object.bind(py).call_method1("dequeue", (now.0,))?;
            self.settle(py, now, sink)?;
            if answer.is_none() {
                return Ok(None);
            }
            let chosen = answer
                .cast::<RawPacket>()
                .map_err(|_| PyTypeError::new_err("dequeue() must return a packet that enqueue() got, or None"))?;
            let id = chosen.get().id();
            let waiting = self.take(id);
            let waiting = waiting.ok_or_else(|| {
                PyValueError::new_err(format!("packet {id} does not wait in this queue, and cannot leave it"))
            })?;
            Ok(Some(waiting.depart(self.outlet.queue, now, self.backlog)))
        })
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn is_fifo(&self) -> bool {
        self.is_fifo
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        call(|py| {
            let object = self.object.bind(py);
            object.call_method1("on_timer", (now.0,))?;
            self.timer = object.call_method0("next_timer")?.extract::<Option<u64>>()?.map(Nanos);
            Ok(())
        });
    }
}

fn drop_reason(name: &str, fallback: DropReason) -> DropReason {
    DropReason::ALL.into_iter().find(|known| known.name() == name).unwrap_or(fallback)
}
