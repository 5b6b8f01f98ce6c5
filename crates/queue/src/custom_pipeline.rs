//! A switch program from outside this crate, beside those of [`AnyPipeline`].

use crate::{AnyPipeline, Egress, Headers, Ingress, Limit, MultiQueueParams, Outlet, Pipeline, Port, Sink};
use queuescope_wire::{Departure, Nanos, Packet};
use std::fmt;
use std::sync::Arc;

/// Creates a switch program of your own, as [`PipelineParams`](crate::PipelineParams) create the programs of this
/// crate.
///
/// ```
/// use queuescope_queue::{HashToQueues, HashToQueuesParams, Outlet, PipelineFactory};
/// use queuescope_wire::QueueId;
///
/// // A program of your own takes the place of `HashToQueues`.
/// let factory = PipelineFactory::new("mine", |_ports| HashToQueues::new(HashToQueuesParams::default()));
/// let ports = [Outlet { rate: "10gbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 }];
/// assert_eq!(factory.build(&ports).name(), "mine");
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Clone)]
pub struct PipelineFactory {
    name: &'static str,
    make: Arc<MakePipeline>,
}

type MakePipeline = dyn Fn(&[Outlet]) -> CustomPipeline + Send + Sync;

impl PipelineFactory {
    /// `make` returns a program for a switch with these ports. All randomness in it must come from their seeds. Reports
    /// use `name`.
    pub fn new<P: Pipeline + Send + 'static>(
        name: &'static str,
        make: impl Fn(&[Outlet]) -> P + Send + Sync + 'static,
    ) -> Self {
        Self { name, make: Arc::new(move |outlets| CustomPipeline::new(name, make(outlets))) }
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Creates the program for a switch with these ports.
    pub fn build(&self, outlets: &[Outlet]) -> AnyPipeline {
        AnyPipeline::Custom((self.make)(outlets))
    }
}

impl fmt::Debug for PipelineFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PipelineFactory").field(&self.name).finish()
    }
}

/// A switch program from outside this crate, with its name.
pub struct CustomPipeline {
    name: &'static str,
    program: Box<dyn ErasedPipeline + Send>,
}

impl CustomPipeline {
    /// Reports use `name`.
    pub fn new(name: &'static str, program: impl Pipeline + Send + 'static) -> Self {
        Self { name, program: Box::new(program) }
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for CustomPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomPipeline").field(&self.name).finish()
    }
}

impl Pipeline for CustomPipeline {
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Ingress {
        self.program.ingress(port, packet, headers, now, sink)
    }

    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, sink: &mut impl Sink) -> Egress {
        self.program.egress(port, departure, headers, sink)
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.program.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.program.on_timer(now);
    }

    fn queues(&self, limit: Limit) -> MultiQueueParams {
        self.program.queues(limit)
    }

    fn weight(&self, port: Port, queue: u16) -> u32 {
        self.program.weight(port, queue)
    }

    fn sees_all_ports(&self) -> bool {
        self.program.sees_all_ports()
    }

    fn drop_probability(&self, port: Port) -> Option<f64> {
        self.program.drop_probability(port)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.program.counters()
    }
}

/// [`Pipeline`] without type parameters, so that it can be a trait object.
trait ErasedPipeline {
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        sink: &mut dyn Sink,
    ) -> Ingress;
    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, sink: &mut dyn Sink) -> Egress;
    fn next_timer(&self) -> Option<Nanos>;
    fn on_timer(&mut self, now: Nanos);
    fn queues(&self, limit: Limit) -> MultiQueueParams;
    fn weight(&self, port: Port, queue: u16) -> u32;
    fn sees_all_ports(&self) -> bool;
    fn drop_probability(&self, port: Port) -> Option<f64>;
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

impl<P: Pipeline> ErasedPipeline for P {
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        mut sink: &mut dyn Sink,
    ) -> Ingress {
        Pipeline::ingress(self, port, packet, headers, now, &mut sink)
    }

    fn egress(
        &mut self,
        port: Port,
        departure: &mut Departure,
        headers: &mut Headers,
        mut sink: &mut dyn Sink,
    ) -> Egress {
        Pipeline::egress(self, port, departure, headers, &mut sink)
    }

    fn next_timer(&self) -> Option<Nanos> {
        Pipeline::next_timer(self)
    }

    fn on_timer(&mut self, now: Nanos) {
        Pipeline::on_timer(self, now);
    }

    fn queues(&self, limit: Limit) -> MultiQueueParams {
        Pipeline::queues(self, limit)
    }

    fn weight(&self, port: Port, queue: u16) -> u32 {
        Pipeline::weight(self, port, queue)
    }

    fn sees_all_ports(&self) -> bool {
        Pipeline::sees_all_ports(self)
    }

    fn drop_probability(&self, port: Port) -> Option<f64> {
        Pipeline::drop_probability(self, port)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Pipeline::counters(self)
    }
}
