//! Any of the disciplines, chosen while the program runs: for scenarios, commands and comparisons.
//!
//! To add one, write a line in [`disciplines`] below.

use crate::{
    Codel, CodelParams, CodelStats, Discipline, DualPi2, DualPi2Params, DualPi2Stats, FqCodel, FqCodelParams,
    FqCodelStats, HashQueues, HashQueuesParams, MultiQueue, MultiQueueParams, MultiQueueStats, Outlet, Pi2, Pi2Params,
    Pi2Stats, Pie, PieParams, PieStats, Red, RedParams, RedStats, Sink, TailDrop, TailDropParams, TailDropStats,
};
use queuescope_wire::{Backlog, Departure, Nanos, Packet};

disciplines! {
    /// First in, first out, and what does not fit is dropped.
    TailDrop(TailDropParams) "tail-drop": TailDropStats { offered, departed, overlimit },
    /// Random early detection.
    Red(RedParams) "red": RedStats {
        offered, departed, overlimit, early, forced, marked_early, marked_forced, marked_threshold,
    },
    /// The wait kept near a target.
    Codel(CodelParams) "codel": CodelStats {
        offered, departed, overlimit, target, marked_target, marked_threshold,
    },
    /// Fair among flows, each under CoDel.
    FqCodel(FqCodelParams) "fq-codel": FqCodelStats {
        offered, departed, overlimit, fattest_flow, target, marked_target, marked_threshold, new_flows,
    },
    /// Early drops by a controller of the delay.
    Pie(PieParams) "pie": PieStats { offered, departed, overlimit, early, marked, updates },
    /// The same, squared for those who respond to its root.
    Pi2(Pi2Params) "pi2": Pi2Stats { offered, departed, overlimit, early, marked, updates },
    /// A classic queue and one of low latency, coupled.
    DualPi2(DualPi2Params) "dual-pi2": DualPi2Stats {
        offered, departed_classic, departed_low_latency, overlimit, early_classic, early_low_latency, marked_classic,
        marked_coupled, marked_ramp, updates,
    },
    /// A queue for each class of service.
    MultiQueue(MultiQueueParams) "multi-queue": MultiQueueStats { offered, departed, overlimit, over_shared_limit },
    /// A queue for each hash of the flow, served round robin.
    HashQueues(HashQueuesParams) "hash-queues": MultiQueueStats { offered, departed, overlimit, over_shared_limit },
}

impl Default for DisciplineParams {
    /// Tail drop without a limit.
    fn default() -> Self {
        Self::TailDrop(TailDropParams::default())
    }
}

impl DisciplineParams {
    /// How many queues its departures tell apart: their numbers are so many from the outlet's on.
    pub fn queues(&self) -> u16 {
        match self {
            Self::MultiQueue(params) => params.queues.get(),
            Self::HashQueues(params) => params.queues.get(),
            Self::DualPi2(_) => 2,
            _ => 1,
        }
    }
}

impl AnyDiscipline {
    /// The probability with which it drops or marks a packet of classic traffic at the moment, of disciplines that keep one.
    pub fn drop_probability(&self) -> Option<f64> {
        match self {
            Self::Pie(discipline) => Some(discipline.drop_probability()),
            Self::Pi2(discipline) => Some(discipline.drop_probability()),
            Self::DualPi2(discipline) => Some(discipline.drop_probability()),
            _ => None,
        }
    }
}

/// Writes [`DisciplineParams`] and [`AnyDiscipline`] from lines of: the discipline, its parameters, its name for
/// people, and the counters of its `stats()`, all of them.
macro_rules! disciplines {
    ($($(#[$doc:meta])* $Type:ident($Params:ty) $name:literal: $Stats:ident { $($counter:ident),* $(,)? }),* $(,)?) => {
        /// The parameters of one of the disciplines.
        #[derive(Debug, Clone, PartialEq)]
        pub enum DisciplineParams {
            $($(#[$doc])* $Type($Params),)*
        }

        impl DisciplineParams {
            /// The names of all disciplines.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Each discipline with its default parameters, in the order of [`Self::NAMES`].
            pub fn defaults() -> Vec<Self> {
                vec![$(Self::$Type(<$Params>::default())),*]
            }

            /// The discipline's name, for reports and scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $name,)*
                }
            }

            /// An empty queue.
            pub fn build(&self, outlet: Outlet) -> AnyDiscipline {
                match self {
                    $(Self::$Type(params) => AnyDiscipline::$Type($Type::new(params.clone(), outlet)),)*
                }
            }
        }

        /// One of the disciplines.
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there are few of them, and each packet would follow the pointer")]
        pub enum AnyDiscipline {
            $($(#[$doc])* $Type($Type),)*
        }

        impl AnyDiscipline {
            /// The discipline's name, for reports and scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $name,)*
                }
            }

            /// What it counted so far: the fields of its own statistics, by name.
            pub fn stats(&self) -> Vec<(&'static str, u64)> {
                match self {
                    $(Self::$Type(discipline) => {
                        // No field can be forgotten.
                        let $Stats { $($counter),* } = *discipline.stats();
                        vec![$((stringify!($counter), $counter)),*]
                    })*
                }
            }
        }

        impl Discipline for AnyDiscipline {
            #[inline]
            fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
                match self {
                    $(Self::$Type(discipline) => Discipline::enqueue(discipline, packet, now, sink),)*
                }
            }

            #[inline]
            fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
                match self {
                    $(Self::$Type(discipline) => Discipline::dequeue(discipline, now, sink),)*
                }
            }

            #[inline]
            fn backlog(&self) -> Backlog {
                match self {
                    $(Self::$Type(discipline) => Discipline::backlog(discipline),)*
                }
            }

            #[inline]
            fn wants_to_be_asked(&self) -> bool {
                match self {
                    $(Self::$Type(discipline) => Discipline::wants_to_be_asked(discipline),)*
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<Nanos> {
                match self {
                    $(Self::$Type(discipline) => Discipline::next_timer(discipline),)*
                }
            }

            #[inline]
            fn on_timer(&mut self, now: Nanos) {
                match self {
                    $(Self::$Type(discipline) => Discipline::on_timer(discipline, now),)*
                }
            }
        }
    };
}
use disciplines;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_discipline_is_built_by_its_name() {
        let rate = queuescope_wire::Rate::from_bits_per_second(1_000_000).unwrap();
        let outlet = Outlet { overhead: 0, rate, queue: queuescope_wire::QueueId(0), seed: 0 };
        let all = DisciplineParams::defaults();
        assert_eq!(all.iter().map(DisciplineParams::name).collect::<Vec<_>>(), DisciplineParams::NAMES);
        assert_eq!(DisciplineParams::NAMES.iter().collect::<BTreeSet<_>>().len(), all.len());
        for params in all {
            let built = params.build(outlet);
            assert_eq!(built.name(), params.name());
            assert!(built.stats().iter().all(|&(_, count)| count == 0));
            assert!(
                ["offered", "departed"]
                    .iter()
                    .all(|name| built.stats().iter().any(|(other, _)| other.starts_with(name)))
            );
            assert!(params.queues() > 0);
            let probability = params.name().contains("pi").then_some(0.0);
            assert_eq!(built.drop_probability(), probability, "{}", params.name());
        }
        assert_eq!(DisciplineParams::default(), DisciplineParams::TailDrop(TailDropParams::default()));
    }
}
