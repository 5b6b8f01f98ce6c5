//! [`AnyDiscipline`](crate::AnyDiscipline): any of the disciplines, chosen at run time, for scenarios, commands and
//! comparisons.
//!
//! The crate's root has the list of disciplines.

use crate::{DisciplineParams, TailDropParams};

impl Default for DisciplineParams {
    /// Tail drop without a limit.
    fn default() -> Self {
        Self::TailDrop(TailDropParams::default())
    }
}

/// Generates [`DisciplineParams`] and [`AnyDiscipline`](crate::AnyDiscipline). Each line has the variant's doc name,
/// the module, the discipline, its parameters, the module's other exports, and a description.
macro_rules! disciplines {
    ($($name:literal $module:ident::{$Type:ident, $Params:ident $(, $more:ident)* $(,)?}: $about:literal;)*) => {
        $(pub use $module::{$Type, $Params $(, $more)*};)*

        /// The parameters of one of the disciplines.
        ///
        /// ```
        /// use queuescope_queue::{Discipline, DisciplineParams, Outlet};
        /// use queuescope_wire::QueueId;
        ///
        /// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
        /// for params in DisciplineParams::defaults() {
        ///     let queue = params.build(outlet);
        ///     println!("{}: {} FIFO: {}", params.name(), params.about(), queue.is_fifo());
        ///     assert_eq!(queue.backlog().packets, 0);
        /// }
        /// assert!(DisciplineParams::NAMES.contains(&"fq-codel"));
        /// # Ok::<(), queuescope_wire::UnitError>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        pub enum DisciplineParams {
            $(#[doc = $about] $Type($Params),)*
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

            /// What the discipline is, in a sentence.
            pub fn about(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $about,)*
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
        ///
        /// ```
        /// use queuescope_queue::{AnyDiscipline, CodelParams, Discipline, DisciplineParams, Outlet};
        /// use queuescope_wire::QueueId;
        ///
        /// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
        /// let queue: AnyDiscipline = DisciplineParams::Codel(CodelParams::default()).build(outlet);
        /// assert_eq!(queue.name(), "codel");
        /// assert!(queue.counters().contains(&("offered", 0)));
        /// # Ok::<(), queuescope_wire::UnitError>(())
        /// ```
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there are few of them, and each packet would follow the pointer")]
        pub enum AnyDiscipline {
            $(#[doc = $about] $Type($Type),)*
            /// A discipline from outside this crate.
            Custom(CustomDiscipline),
        }

        impl AnyDiscipline {
            /// The discipline's name, for reports and scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Type(_) => $name,)*
                    Self::Custom(discipline) => discipline.name(),
                }
            }
        }

        impl Discipline for AnyDiscipline {
            #[inline]
            fn enqueue(&mut self, packet: queuescope_wire::Packet, now: queuescope_wire::Nanos, sink: &mut impl Sink) {
                match self {
                    $(Self::$Type(discipline) => Discipline::enqueue(discipline, packet, now, sink),)*
                    Self::Custom(discipline) => Discipline::enqueue(discipline, packet, now, sink),
                }
            }

            #[inline]
            fn dequeue(&mut self, now: queuescope_wire::Nanos, sink: &mut impl Sink) -> Option<queuescope_wire::Departure> {
                match self {
                    $(Self::$Type(discipline) => Discipline::dequeue(discipline, now, sink),)*
                    Self::Custom(discipline) => Discipline::dequeue(discipline, now, sink),
                }
            }

            #[inline]
            fn backlog(&self) -> queuescope_wire::Backlog {
                match self {
                    $(Self::$Type(discipline) => Discipline::backlog(discipline),)*
                    Self::Custom(discipline) => Discipline::backlog(discipline),
                }
            }

            #[inline]
            fn polls_when_empty(&self) -> bool {
                match self {
                    $(Self::$Type(discipline) => Discipline::polls_when_empty(discipline),)*
                    Self::Custom(discipline) => Discipline::polls_when_empty(discipline),
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<queuescope_wire::Nanos> {
                match self {
                    $(Self::$Type(discipline) => Discipline::next_timer(discipline),)*
                    Self::Custom(discipline) => Discipline::next_timer(discipline),
                }
            }

            #[inline]
            fn on_timer(&mut self, now: queuescope_wire::Nanos) {
                match self {
                    $(Self::$Type(discipline) => Discipline::on_timer(discipline, now),)*
                    Self::Custom(discipline) => Discipline::on_timer(discipline, now),
                }
            }

            fn name(&self) -> &'static str {
                Self::name(self)
            }

            fn is_fifo(&self) -> bool {
                match self {
                    $(Self::$Type(discipline) => Discipline::is_fifo(discipline),)*
                    Self::Custom(discipline) => Discipline::is_fifo(discipline),
                }
            }

            fn queues(&self) -> u16 {
                match self {
                    $(Self::$Type(discipline) => Discipline::queues(discipline),)*
                    Self::Custom(discipline) => Discipline::queues(discipline),
                }
            }

            fn drop_probability(&self) -> Option<f64> {
                match self {
                    $(Self::$Type(discipline) => Discipline::drop_probability(discipline),)*
                    Self::Custom(discipline) => Discipline::drop_probability(discipline),
                }
            }

            fn counters(&self) -> Vec<(&'static str, u64)> {
                match self {
                    $(Self::$Type(discipline) => Discipline::counters(discipline),)*
                    Self::Custom(discipline) => Discipline::counters(discipline),
                }
            }
        }
    };
}
pub(crate) use disciplines;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discipline, MultiQueueParams, Outlet};
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
            assert!(built.counters().iter().all(|&(_, count)| count == 0));
            assert!(
                ["offered", "departed"]
                    .iter()
                    .all(|name| built.counters().iter().any(|(other, _)| other.starts_with(name)))
            );
            assert!(built.queues() > 0);
            assert!(!built.is_fifo() || built.queues() == 1);
            assert!(built.drop_probability().is_none_or(|probability| probability == 0.0), "{}", params.name());
        }
        assert_eq!(DisciplineParams::default(), DisciplineParams::TailDrop(TailDropParams::default()));
    }

    /// Whether the discipline keeps the order, how many queues it has, and whether it has a drop probability.
    #[test]
    fn disciplines_state_what_they_are() {
        let rate = queuescope_wire::Rate::from_bits_per_second(1_000_000).unwrap();
        let outlet = Outlet { overhead: 0, rate, queue: queuescope_wire::QueueId(0), seed: 0 };
        let all = DisciplineParams::defaults();
        for (name, is_fifo, queues, probability) in [
            ("tail-drop", true, 1, None),
            ("red", true, 1, None),
            ("codel", false, 1, None),
            ("fq-codel", false, 1, None),
            ("ecn-sharp", true, 1, None),
            ("pie", true, 1, Some(0.0)),
            ("pi2", true, 1, Some(0.0)),
            ("dual-pi2", false, 2, Some(0.0)),
            ("multi-queue", false, 8, None),
            ("hash-queues", false, 8, None),
        ] {
            let built = all.iter().find(|params| params.name() == name).unwrap().build(outlet);
            let stated = (built.is_fifo(), built.queues(), built.drop_probability());
            assert_eq!(stated, (is_fifo, queues, probability), "{name}");
        }
        let single = MultiQueueParams { queues: std::num::NonZeroU16::MIN, ..MultiQueueParams::default() };
        assert!(DisciplineParams::MultiQueue(single).build(outlet).is_fifo(), "there is one order in one queue");
    }
}
