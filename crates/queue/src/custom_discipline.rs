//! A discipline from outside this crate, beside those of [`AnyDiscipline`].
//!
//! Its type is behind a pointer, so each call costs slightly more than a call of a built-in discipline. Nothing else
//! differs.

use crate::{AnyDiscipline, Discipline, Outlet, Sink};
use queuescope_wire::{Backlog, Departure, Nanos, Packet};
use std::fmt;
use std::sync::Arc;

/// Creates a discipline of your own for each link that uses it, as [`DisciplineParams`](crate::DisciplineParams) create
/// the disciplines of this crate.
///
/// ```
/// use queuescope_queue::{Discipline, DisciplineFactory, Outlet, TailDrop, TailDropParams};
/// use queuescope_wire::QueueId;
///
/// // A discipline of your own takes the place of `TailDrop`; its parameters are in the closure.
/// let params = TailDropParams { limit: "30ms".parse()? };
/// let factory = DisciplineFactory::new("mine", move |outlet| TailDrop::new(params, outlet));
/// let queue = factory.build(Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 });
/// assert_eq!((queue.name(), queue.backlog().packets), ("mine", 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DisciplineFactory {
    name: &'static str,
    make: Arc<MakeDiscipline>,
}

type MakeDiscipline = dyn Fn(Outlet) -> CustomDiscipline + Send + Sync;

impl DisciplineFactory {
    /// `make` returns an empty queue. All randomness in it must come from the seed of the [`Outlet`]. Reports use
    /// `name`.
    pub fn new<D: Discipline + Send + 'static>(
        name: &'static str,
        make: impl Fn(Outlet) -> D + Send + Sync + 'static,
    ) -> Self {
        Self { name, make: Arc::new(move |outlet| CustomDiscipline::new(name, make(outlet))) }
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// An empty queue.
    pub fn build(&self, outlet: Outlet) -> AnyDiscipline {
        AnyDiscipline::Custom((self.make)(outlet))
    }
}

impl fmt::Debug for DisciplineFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DisciplineFactory").field(&self.name).finish()
    }
}

/// A discipline from outside this crate, with its name.
pub struct CustomDiscipline {
    name: &'static str,
    discipline: Box<dyn ErasedDiscipline + Send>,
}

impl CustomDiscipline {
    /// Reports use `name`.
    pub fn new(name: &'static str, discipline: impl Discipline + Send + 'static) -> Self {
        Self { name, discipline: Box::new(discipline) }
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for CustomDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomDiscipline").field(&self.name).finish()
    }
}

impl Discipline for CustomDiscipline {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.discipline.enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        self.discipline.dequeue(now, sink)
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
        self.discipline.on_timer(now);
    }

    fn name(&self) -> &'static str {
        self.name
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

/// [`Discipline`] without type parameters, so that it can be a trait object.
trait ErasedDiscipline {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut dyn Sink);
    fn dequeue(&mut self, now: Nanos, sink: &mut dyn Sink) -> Option<Departure>;
    fn backlog(&self) -> Backlog;
    fn polls_when_empty(&self) -> bool;
    fn next_timer(&self) -> Option<Nanos>;
    fn on_timer(&mut self, now: Nanos);
    fn is_fifo(&self) -> bool;
    fn queues(&self) -> u16;
    fn drop_probability(&self) -> Option<f64>;
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

impl<D: Discipline> ErasedDiscipline for D {
    fn enqueue(&mut self, packet: Packet, now: Nanos, mut sink: &mut dyn Sink) {
        Discipline::enqueue(self, packet, now, &mut sink);
    }

    fn dequeue(&mut self, now: Nanos, mut sink: &mut dyn Sink) -> Option<Departure> {
        Discipline::dequeue(self, now, &mut sink)
    }

    fn backlog(&self) -> Backlog {
        Discipline::backlog(self)
    }

    fn polls_when_empty(&self) -> bool {
        Discipline::polls_when_empty(self)
    }

    fn next_timer(&self) -> Option<Nanos> {
        Discipline::next_timer(self)
    }

    fn on_timer(&mut self, now: Nanos) {
        Discipline::on_timer(self, now);
    }

    fn is_fifo(&self) -> bool {
        Discipline::is_fifo(self)
    }

    fn queues(&self) -> u16 {
        Discipline::queues(self)
    }

    fn drop_probability(&self) -> Option<f64> {
        Discipline::drop_probability(self)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Discipline::counters(self)
    }
}
