//! Every switch program behind one type, so that a scenario may name any of them and no packet costs a virtual call.
//!
//! To add one, write a line in [`pipelines`] below, and arms for how it is built and what its queues are.

use crate::{
    Abc, AbcError, AbcParams, AbcStats, AckWindow, AckWindowError, AckWindowParams, AckWindowStats, ConQuestAqm,
    ConQuestAqmParams, ConQuestAqmStats, Egress, EgressPi, EgressPiParams, EgressPiStats, HashToQueues,
    HashToQueuesParams, HashToQueuesStats, Headers, Ingress, Limit, MultiQueueParams, Outlet, PieCp, PieCpParams,
    PieCpStats, PieDataPlaneStats, PieDp, PieDpParams, PieTable, PieTableParams, Pipeline, Port, Scheduler, Sink,
    TailDropParams,
};
use queuescope_sketch::ParamsError;
use queuescope_wire::{Departure, Nanos, Packet};
use std::num::NonZeroU16;

pipelines! {
    /// Flows spread over the queues of a port.
    HashToQueues(HashToQueuesParams) "hash-to-queues": HashToQueuesStats { spread },
    /// Receive windows of ACKs are bounded.
    AckWindow(AckWindowParams) "ack-window": AckWindowStats { acks, lowered, untracked, expired },
    /// PIE with its controller in the control plane.
    PieCp(PieCpParams) "pie-cp": PieCpStats { offered, early, updates },
    /// PIE in the data plane, by shifts.
    PieDp(PieDpParams) "pie-dp": PieDataPlaneStats { offered, early, updates },
    /// PIE in the data plane, by tables.
    PieTable(PieTableParams) "pie-table": PieDataPlaneStats { offered, early, updates },
    /// A squared PI controller behind the queue.
    EgressPi(EgressPiParams) "egress-pi": EgressPiStats { offered, chosen, marked, marked_before, dropped, updates },
    /// Flows that have too much of the queue are marked or dropped.
    ConQuestAqm(ConQuestAqmParams) "conquest-aqm": ConQuestAqmStats {
        departed, congested, chosen, marked, dropped, marked_before, spared, fed_back, collisions,
    },
    /// Who sends much is dropped first.
    Abc(AbcParams) "abc": AbcStats {
        metered, overwritten, accepted, dropped, overlimit, missing, stripped, replaced, crowded,
    },
}

impl PipelineParams {
    /// The program, on a switch with these ports; the first one's seed is that of the whole program.
    ///
    /// # Errors
    /// If the parameters fit no switch, or not one of so many ports.
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
            Self::ConQuestAqm(params) => AnyPipeline::ConQuestAqm(ConQuestAqm::new(params.clone(), outlets)?),
            Self::Abc(params) => AnyPipeline::Abc(Abc::new(params.clone(), outlets)?),
        })
    }

    /// What each queue of each port is, which the driver keeps.
    pub fn queue(&self) -> TailDropParams {
        match self {
            Self::HashToQueues(params) => params.queue,
            Self::AckWindow(params) => params.queue,
            Self::PieCp(params) => params.queue,
            Self::PieDp(params) => params.queue,
            Self::PieTable(params) => params.queue,
            Self::EgressPi(params) => params.queue,
            Self::ConQuestAqm(params) => params.queue,
            Self::Abc(params) => params.queue,
        }
    }

    /// Whether it has to see packets towards ports that it does not manage, too.
    pub fn sees_all_ports(&self) -> bool {
        matches!(self, Self::AckWindow(_))
    }

    /// The queues of each port and who is served next, as the program takes them to be.
    pub fn queues(&self) -> MultiQueueParams {
        self.queues_with(self.queue().limit)
    }

    /// The same of a port with a limit of its own: of each queue; for ABC, which counts them as one, of all together.
    pub fn queues_with(&self, limit: Limit) -> MultiQueueParams {
        let (queues, scheduler) = match self {
            Self::HashToQueues(params) => (params.queues, Scheduler::RoundRobin),
            Self::Abc(params) => (params.queues(), Scheduler::StrictPriority),
            _ => (1, Scheduler::RoundRobin),
        };
        let queues = NonZeroU16::new(queues).unwrap_or(NonZeroU16::MIN);
        let (limit, shared_limit) = match self {
            Self::Abc(_) => (Limit::None, limit),
            _ => (limit, Limit::None),
        };
        MultiQueueParams { queues, scheduler, limit, shared_limit }
    }
}

impl AnyPipeline {
    /// The probability with which `port` drops at the moment, of programs that have one.
    pub fn drop_probability(&self, port: Port) -> Option<f64> {
        match self {
            Self::PieCp(program) => program.drop_probability(port),
            Self::PieDp(program) => program.drop_probability(port),
            Self::PieTable(program) => program.drop_probability(port),
            Self::EgressPi(program) => program.drop_probability(port),
            Self::HashToQueues(_) | Self::AckWindow(_) | Self::ConQuestAqm(_) | Self::Abc(_) => None,
        }
    }
}

/// Parameters that no program can have, or none on this switch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PipelineError {
    /// Of [`AckWindow`].
    #[error(transparent)]
    AckWindow(#[from] AckWindowError),
    /// Of the sketch of [`ConQuestAqm`].
    #[error(transparent)]
    Sketch(#[from] ParamsError),
    /// Of [`Abc`].
    #[error(transparent)]
    Abc(#[from] AbcError),
    /// More than any switch has.
    #[error("{0} ports are more than a switch can have")]
    Ports(usize),
}

/// Writes [`PipelineParams`] and [`AnyPipeline`] from lines of: the program, its parameters, its name for people, and the
/// counters of its `stats()`, all of them.
macro_rules! pipelines {
    ($($(#[$doc:meta])* $Type:ident($Params:ty) $name:literal: $Stats:ident { $($counter:ident),* $(,)? }),* $(,)?) => {
        /// The parameters of any switch program.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "there is one of them for a switch")]
        pub enum PipelineParams {
            $($(#[$doc])* $Type($Params),)*
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
        }

        /// Any switch program.
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there are few of them, and each packet would follow the pointer")]
        pub enum AnyPipeline {
            $($(#[$doc])* $Type($Type),)*
        }

        impl AnyPipeline {
            /// The program's name, for reports and scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $name,)*
                }
            }

            /// What it counted so far at all ports: the fields of its own statistics, by name.
            pub fn stats(&self) -> Vec<(&'static str, u64)> {
                match self {
                    $(Self::$Type(program) => {
                        // No field can be forgotten.
                        let $Stats { $($counter),* } = *program.stats();
                        vec![$((stringify!($counter), $counter)),*]
                    })*
                }
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
                match self {
                    $(Self::$Type(program) => program.ingress(port, packet, headers, now, sink),)*
                }
            }

            #[inline]
            fn egress(
                &mut self,
                port: Port,
                departure: &mut Departure,
                headers: &mut Headers,
                sink: &mut impl Sink,
            ) -> Egress {
                match self {
                    $(Self::$Type(program) => program.egress(port, departure, headers, sink),)*
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<Nanos> {
                match self {
                    $(Self::$Type(program) => program.next_timer(),)*
                }
            }

            fn on_timer(&mut self, now: Nanos) {
                match self {
                    $(Self::$Type(program) => program.on_timer(now),)*
                }
            }
        }
    };
}
use pipelines;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortRole;
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
            assert!(program.stats().iter().all(|(_, count)| *count == 0), "{}", params.name());
            let port = (params.name().starts_with("pie") || params.name() == "egress-pi").then_some(0.0);
            assert_eq!(program.drop_probability(Port(0)), port);
            let held = params.queues();
            let limits =
                if params.name() == "abc" { (held.shared_limit, held.limit) } else { (held.limit, held.shared_limit) };
            assert_eq!(limits, (params.queue().limit, Limit::None));
            let other = params.queues_with(Limit::Packets(7));
            assert!([other.limit, other.shared_limit].contains(&Limit::Packets(7)) && other.queues == held.queues);
        }
    }

    #[test]
    fn what_fits_no_switch_is_an_error() {
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
    fn queues_are_those_that_the_program_fills() {
        let queues = |params: PipelineParams| (params.queues().queues.get(), params.queues().scheduler);
        let hash = HashToQueuesParams { queues: 5, ..HashToQueuesParams::default() };
        assert_eq!(queues(PipelineParams::HashToQueues(hash)), (5, Scheduler::RoundRobin));
        let class = |queue| crate::DelayClass { queue, surcharge: 0.0 };
        let abc = AbcParams { classes: vec![class(0), class(2)], ..AbcParams::default() };
        assert_eq!(queues(PipelineParams::Abc(abc.clone())), (3, Scheduler::StrictPriority));
        // What the AQM counts is all of them, and so is what they hold.
        let held = PipelineParams::Abc(abc).queues();
        assert_eq!((held.limit, held.shared_limit), (Limit::None, Limit::Packets(24)));
        assert_eq!(queues(PipelineParams::ConQuestAqm(ConQuestAqmParams::default())), (1, Scheduler::RoundRobin));
    }
}
