//! Every switch program behind one type, so that a scenario may name any of them and no packet costs a virtual call.

use crate::{
    Egress, Headers, Ingress, PieCp, PieCpParams, PieDp, PieDpParams, PieTable, PieTableParams, Pipeline, Port, Sink,
    TailDropParams,
};
use queuescope_wire::{Departure, Nanos, Packet, Rate};

/// The parameters of any switch program.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineParams {
    /// PIE with its controller in the control plane.
    PieCp(PieCpParams),
    /// PIE in the data plane, by shifts.
    PieDp(PieDpParams),
    /// PIE in the data plane, by tables.
    PieTable(PieTableParams),
}

/// Any switch program.
#[derive(Debug)]
pub enum AnyPipeline {
    /// PIE with its controller in the control plane.
    PieCp(PieCp),
    /// PIE in the data plane, by shifts.
    PieDp(PieDp),
    /// PIE in the data plane, by tables.
    PieTable(PieTable),
}

impl PipelineParams {
    /// The program, on a switch of so many ports; `rate` is that of the links behind them.
    pub fn build(&self, ports: u16, _rate: Rate, seed: u64) -> AnyPipeline {
        match self {
            Self::PieCp(params) => AnyPipeline::PieCp(PieCp::new(*params, ports, seed)),
            Self::PieDp(params) => AnyPipeline::PieDp(PieDp::new(*params, ports, seed)),
            Self::PieTable(params) => AnyPipeline::PieTable(PieTable::new(*params, ports, seed)),
        }
    }

    /// What each queue of each port is, which the driver keeps.
    pub fn queue(&self) -> TailDropParams {
        match self {
            Self::PieCp(params) => params.queue,
            Self::PieDp(params) => params.queue,
            Self::PieTable(params) => params.queue,
        }
    }
}

/// Evaluates to `$call` of whichever program it is.
macro_rules! dispatch {
    ($pipeline:expr, $program:ident => $call:expr) => {
        match $pipeline {
            AnyPipeline::PieCp($program) => $call,
            AnyPipeline::PieDp($program) => $call,
            AnyPipeline::PieTable($program) => $call,
        }
    };
}

impl AnyPipeline {
    /// The probability with which `port` drops at the moment, of programs that have one.
    pub fn drop_probability(&self, port: Port) -> Option<f64> {
        dispatch!(self, program => program.drop_probability(port))
    }
}

impl Pipeline for AnyPipeline {
    #[inline]
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Ingress {
        dispatch!(self, program => program.ingress(port, packet, headers, now, sink))
    }

    #[inline]
    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, sink: &mut impl Sink) -> Egress {
        dispatch!(self, program => program.egress(port, departure, headers, sink))
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        dispatch!(self, program => program.next_timer())
    }

    fn on_timer(&mut self, now: Nanos) {
        dispatch!(self, program => program.on_timer(now));
    }
}
