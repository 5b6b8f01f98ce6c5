//! Every switch program behind one type, so that a scenario may name any of them without a virtual call per packet.
//!
//! The crate's root has the list of programs; this file builds them.

use crate::{
    Abc, AbcError, AckWindow, AckWindowError, AnyPipeline, CodelDp, ConQuestAqm, EcnSharpDp, EgressPi, HashToQueues,
    Outlet, P4air, P4airError, PieCp, PieDp, PieTable, PipelineParams,
};
use queuescope_sketch::ParamsError;

impl PipelineParams {
    /// Creates the program for a switch with these ports. The seed of the first port is the seed of the whole program.
    ///
    /// # Errors
    /// Fails if the parameters are invalid, or do not fit a switch with these ports.
    pub fn build(&self, outlets: &[Outlet]) -> Result<AnyPipeline, PipelineError> {
        let ports = u16::try_from(outlets.len()).map_err(|_| PipelineError::Ports(outlets.len()))?;
        let seed = outlets.first().map_or(0, |first| first.seed);
        Ok(match self {
            Self::HashToQueues(params) => AnyPipeline::HashToQueues(HashToQueues::new(*params)),
            Self::AckWindow(params) => AnyPipeline::AckWindow(AckWindow::new(params.clone(), outlets)?),
            Self::PieCp(params) => AnyPipeline::PieCp(PieCp::new(*params, ports, seed)),
            Self::PieDp(params) => AnyPipeline::PieDp(PieDp::new(*params, ports, seed)),
            Self::PieTable(params) => AnyPipeline::PieTable(PieTable::new(*params, ports, seed)),
            Self::EgressPi(params) => AnyPipeline::EgressPi(EgressPi::new(*params, ports, seed)),
            Self::CodelDp(params) => AnyPipeline::CodelDp(CodelDp::new(*params, ports)),
            Self::EcnSharpDp(params) => AnyPipeline::EcnSharpDp(EcnSharpDp::new(*params, ports)),
            Self::ConQuestAqm(params) => AnyPipeline::ConQuestAqm(ConQuestAqm::new(params.clone(), outlets)?),
            Self::Abc(params) => AnyPipeline::Abc(Abc::new(params.clone(), outlets)?),
            Self::P4air(params) => AnyPipeline::P4air(P4air::new(params.clone(), outlets)?),
        })
    }
}

/// Parameters that are invalid for every program, or for this switch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The parameters of [`AckWindow`] are invalid.
    #[error(transparent)]
    AckWindow(#[from] AckWindowError),
    /// The parameters of the sketch of [`ConQuestAqm`] are invalid.
    #[error(transparent)]
    Sketch(#[from] ParamsError),
    /// The parameters of [`Abc`] are invalid.
    #[error(transparent)]
    Abc(#[from] AbcError),
    /// The parameters of [`P4air`] do not fit the switch.
    #[error(transparent)]
    P4air(#[from] P4airError),
    /// The switch has more ports than a port number of 16 bits can count.
    #[error("{0} ports are more than a switch can have")]
    Ports(usize),
}

/// Generates [`PipelineParams`] and [`AnyPipeline`]. Each line has the variant's doc name, the module, the program, its
/// parameters, the module's other exports, and a description.
macro_rules! pipelines {
    ($($name:literal $module:ident::{$Type:ident, $Params:ident $(, $more:ident)* $(,)?}: $about:literal;)*) => {
        $(pub use $module::{$Type, $Params $(, $more)*};)*

        /// The parameters of any switch program.
        ///
        /// ```
        /// use queuescope_queue::{Outlet, Pipeline, PipelineParams};
        /// use queuescope_wire::QueueId;
        ///
        /// let ports = [Outlet { rate: "10gbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 }];
        /// for params in PipelineParams::defaults() {
        ///     let params = params.with_limit("1000 packets".parse()?);
        ///     let program = params.build(&ports)?;
        ///     println!("{}: {} queues a port", params.name(), program.queues(params.queue().limit).queues);
        ///     assert_eq!(program.name(), params.name());
        /// }
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "there is one of them for a switch")]
        pub enum PipelineParams {
            $(#[doc = $about] $Type($Params),)*
        }

        impl PipelineParams {
            /// The names of all programs.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Each program with its default parameters, in the order of [`Self::NAMES`].
            pub fn defaults() -> Vec<Self> {
                vec![$(Self::$Type(<$Params>::default())),*]
            }

            /// The program's name, for reports and scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $name,)*
                }
            }

            /// What the program is, in a sentence.
            pub fn about(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $about,)*
                }
            }

            /// The parameters of each queue of each port, which the driver keeps.
            pub fn queue(&self) -> TailDropParams {
                match self {
                    $(Self::$Type(params) => params.queue,)*
                }
            }

            /// The same program with a limit of `limit` for each queue.
            pub fn with_limit(mut self, limit: Limit) -> Self {
                match &mut self {
                    $(Self::$Type(params) => params.queue.limit = limit,)*
                }
                self
            }
        }

        /// Any switch program.
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there are few of them, and each packet would follow the pointer")]
        pub enum AnyPipeline {
            $(#[doc = $about] $Type($Type),)*
            /// A program from outside this crate.
            Custom(CustomPipeline),
        }

        impl AnyPipeline {
            /// The program's name, for reports and scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $name,)*
                    Self::Custom(program) => program.name(),
                }
            }
        }

        impl Pipeline for AnyPipeline {
            #[inline]
            fn ingress(
                &mut self,
                port: Port,
                packet: &mut queuescope_wire::Packet,
                headers: &mut Headers,
                now: queuescope_wire::Nanos,
                sink: &mut impl Sink,
            ) -> Ingress {
                match self {
                    $(Self::$Type(program) => program.ingress(port, packet, headers, now, sink),)*
                    Self::Custom(program) => program.ingress(port, packet, headers, now, sink),
                }
            }

            #[inline]
            fn egress(
                &mut self,
                port: Port,
                departure: &mut queuescope_wire::Departure,
                headers: &mut Headers,
                sink: &mut impl Sink,
            ) -> Egress {
                match self {
                    $(Self::$Type(program) => program.egress(port, departure, headers, sink),)*
                    Self::Custom(program) => program.egress(port, departure, headers, sink),
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<queuescope_wire::Nanos> {
                match self {
                    $(Self::$Type(program) => program.next_timer(),)*
                    Self::Custom(program) => program.next_timer(),
                }
            }

            fn on_timer(&mut self, now: queuescope_wire::Nanos) {
                match self {
                    $(Self::$Type(program) => program.on_timer(now),)*
                    Self::Custom(program) => program.on_timer(now),
                }
            }

            fn queues(&self, limit: Limit) -> MultiQueueParams {
                match self {
                    $(Self::$Type(program) => Pipeline::queues(program, limit),)*
                    Self::Custom(program) => program.queues(limit),
                }
            }

            #[inline]
            fn weight(&self, port: Port, queue: u16) -> u32 {
                match self {
                    $(Self::$Type(program) => Pipeline::weight(program, port, queue),)*
                    Self::Custom(program) => program.weight(port, queue),
                }
            }

            fn sees_all_ports(&self) -> bool {
                match self {
                    $(Self::$Type(program) => Pipeline::sees_all_ports(program),)*
                    Self::Custom(program) => program.sees_all_ports(),
                }
            }

            fn drop_probability(&self, port: Port) -> Option<f64> {
                match self {
                    $(Self::$Type(program) => Pipeline::drop_probability(program, port),)*
                    Self::Custom(program) => program.drop_probability(port),
                }
            }

            fn counters(&self) -> Vec<(&'static str, u64)> {
                match self {
                    $(Self::$Type(program) => Pipeline::counters(program),)*
                    Self::Custom(program) => program.counters(),
                }
            }
        }
    };
}
pub(crate) use pipelines;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AbcParams, AckWindowParams, ConQuestAqmParams, HashToQueuesParams, Limit, MultiQueueParams, Pipeline, Port,
        PortRole, Scheduler,
    };
    use queuescope_wire::{QueueId, Rate};

    fn ports(count: u16) -> Vec<Outlet> {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        (0..count).map(|port| Outlet { overhead: 0, rate, queue: QueueId(0), seed: u64::from(port) }).collect()
    }

    #[test]
    fn each_program_is_built_under_its_name() {
        let defaults = PipelineParams::defaults();
        assert_eq!(defaults.iter().map(PipelineParams::name).collect::<Vec<_>>(), PipelineParams::NAMES);
        for params in defaults {
            let program = params.build(&ports(2)).unwrap();
            assert_eq!(program.name(), params.name());
            assert!(program.counters().iter().all(|(_, count)| *count == 0), "{}", params.name());
            let port = (params.name().starts_with("pie") || params.name() == "egress-pi").then_some(0.0);
            assert_eq!(program.drop_probability(Port(0)), port);
            assert_eq!(program.sees_all_ports(), ["ack-window", "p4air"].contains(&params.name()));
            let held = program.queues(Limit::Packets(7));
            let limits =
                if params.name() == "abc" { (held.shared_limit, held.limit) } else { (held.limit, held.shared_limit) };
            assert_eq!(limits, (Limit::Packets(7), Limit::None));
        }
    }

    #[test]
    fn parameters_that_fit_no_switch_are_errors() {
        let abc = AbcParams { ports: vec![PortRole::exit(); 3], ..AbcParams::default() };
        let error = PipelineParams::Abc(abc).build(&ports(2)).unwrap_err();
        assert_eq!(error.to_string(), "there are roles for 3 ports, but the switch has 2");
        let mut conquest = ConQuestAqmParams::default();
        conquest.sketch.snapshots = 1;
        let error = PipelineParams::ConQuestAqm(conquest).build(&ports(2)).unwrap_err();
        assert_eq!(error.to_string(), "a sketch cannot have 1 snapshots: use 2 to 64");
        let error = PipelineParams::AckWindow(AckWindowParams::default()).build(&ports(0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "receive windows cannot be bounded for port 0: the switch has 0 ports, numbered from 0"
        );
    }

    #[test]
    fn a_port_has_the_queues_that_its_program_uses() {
        let limit = Limit::Packets(24);
        let held = |params: PipelineParams| params.build(&ports(1)).unwrap().queues(limit);
        let queues = |params| {
            let MultiQueueParams { queues, scheduler, .. } = held(params);
            (queues.get(), scheduler)
        };
        let hash = HashToQueuesParams { queues: 5, ..HashToQueuesParams::default() };
        assert_eq!(queues(PipelineParams::HashToQueues(hash)), (5, Scheduler::RoundRobin));
        let class = |queue| crate::DelayClass { queue, surcharge: 0.0 };
        let abc = AbcParams { classes: vec![class(0), class(2)], ..AbcParams::default() };
        assert_eq!(queues(PipelineParams::Abc(abc.clone())), (3, Scheduler::StrictPriority));
        // The AQM counts all queues together, and the limit holds for them together.
        let held = held(PipelineParams::Abc(abc));
        assert_eq!((held.limit, held.shared_limit), (Limit::None, limit));
        assert_eq!(queues(PipelineParams::ConQuestAqm(ConQuestAqmParams::default())), (1, Scheduler::RoundRobin));
    }
}
