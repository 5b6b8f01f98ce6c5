//! The active queue management that packets are replayed through, chosen at run time.

use crate::build::fitted;
use crate::{Output, Replay, ReplayedProgram};
use queuescope_queue::{
    AnyDiscipline, AnyPipeline, Discipline, DisciplineFactory, DisciplineParams, Headers, Limit, MultiQueue,
    MultiQueueParams, Outlet, Pipeline, PipelineError, PipelineFactory, PipelineParams,
};
use queuescope_scenario::Management;
use queuescope_text::{Problem, TextError};
use queuescope_wire::{Nanos, Packet, QueueId, Rate};
use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// Any discipline or switch program, or a custom one. It is known to be buildable: parameters that do not fit a switch are errors when it is created.
///
/// ```
/// use queuescope_queue::{Limit, Outlet};
/// use queuescope_sim::Aqm;
/// use queuescope_wire::QueueId;
///
/// let link = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let aqm: Aqm = "codel,target=10ms".parse()?;
/// let queue = aqm.replay(Limit::Packets(1_000), &link);
/// assert!(!aqm.is_tail_drop() && queue.is_empty());
/// assert!(queue.counters().iter().any(|(name, _)| *name == "target"));
///
/// let error = "codel,goal=10ms".parse::<Aqm>().unwrap_err();
/// println!("{error}");
/// assert!(error.to_string().contains("goal"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Aqm {
    text: String,
    choice: Choice,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one of them for a replay")]
enum Choice {
    BuiltIn(Management),
    Discipline(DisciplineFactory),
    Program(PipelineFactory),
}

impl Aqm {
    /// Reads a name with parameters in the notation of scenarios, such as `codel,target=10ms`. `option` names the text in messages.
    ///
    /// # Errors
    /// Returns what is wrong with the text, shown in it.
    pub fn parse(option: &'static str, text: &str) -> Result<Self, TextError> {
        let choice = Choice::BuiltIn(Management::parse(option, text)?);
        let aqm = Self { text: text.trim().to_owned(), choice };
        match aqm.build(Limit::None, outlet()) {
            Ok(_) => Ok(aqm),
            Err(error) => {
                Err(TextError::new(option, text, vec![Problem::new(error.to_string()).at(0..text.len(), "")]))
            }
        }
    }

    /// A custom discipline. Its factory sets its limit.
    pub fn custom_discipline(factory: DisciplineFactory) -> Self {
        Self { text: factory.name().to_owned(), choice: Choice::Discipline(factory) }
    }

    /// A custom switch program.
    pub fn custom_program(factory: PipelineFactory) -> Self {
        Self { text: factory.name().to_owned(), choice: Choice::Program(factory) }
    }

    /// Whether it is a tail-drop queue.
    pub fn is_tail_drop(&self) -> bool {
        matches!(self.choice, Choice::BuiltIn(Management::Discipline(DisciplineParams::TailDrop(_))))
    }

    /// Whether all packets leave in the order in which they came.
    pub fn is_fifo(&self) -> bool {
        match self.replay(Limit::None, &outlet()) {
            Managed::Discipline(replay) => replay.discipline().is_fifo(),
            Managed::Program(replay) => replay.is_fifo(),
        }
    }

    /// An empty queue managed by it, with this limit, before an idle link.
    pub fn replay(&self, limit: Limit, outlet: &Outlet) -> Managed {
        self.build(limit, *outlet).expect("what cannot be built is no Aqm")
    }

    fn build(&self, limit: Limit, outlet: Outlet) -> Result<Managed, PipelineError> {
        let discipline = |discipline: AnyDiscipline| Managed::Discipline(Replay::new(discipline, &outlet));
        let program = |program: AnyPipeline| {
            let queues = MultiQueue::new(sharing(program.queues(limit), limit), outlet);
            Managed::Program(Box::new(ReplayedProgram::new(program, queues, &outlet)))
        };
        Ok(match &self.choice {
            Choice::BuiltIn(management) => match management.clone().with_limit(limit) {
                Management::Discipline(params) => discipline(params.build(outlet)),
                Management::Program(params) => program(fitted(params, &[true], &[]).build(&[outlet])?),
            },
            Choice::Discipline(factory) => discipline(factory.build(outlet)),
            Choice::Program(factory) => program(factory.build(&[outlet])),
        })
    }
}

/// Queues of a program that share `limit`, as in a discipline. In a scenario each queue may have a limit of its own.
fn sharing(queues: MultiQueueParams, limit: Limit) -> MultiQueueParams {
    let all = if queues.queues == NonZeroU16::MIN { queues.shared_limit } else { limit };
    MultiQueueParams { shared_limit: all, ..queues }
}

/// Any link: whether a queue can be built does not depend on it.
fn outlet() -> Outlet {
    let rate = Rate::from_bits_per_second(1_000_000_000).expect("it is not zero");
    Outlet { rate, overhead: 0, queue: QueueId(0), seed: 0 }
}

/// In the notation in which it was written.
impl fmt::Display for Aqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Aqm {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse("aqm", text)
    }
}

impl From<DisciplineParams> for Aqm {
    fn from(params: DisciplineParams) -> Self {
        Self { text: params.name().to_owned(), choice: Choice::BuiltIn(Management::Discipline(params)) }
    }
}

impl TryFrom<PipelineParams> for Aqm {
    type Error = AqmError;

    fn try_from(params: PipelineParams) -> Result<Self, AqmError> {
        let aqm = Self { text: params.name().to_owned(), choice: Choice::BuiltIn(Management::Program(params)) };
        aqm.build(Limit::None, outlet()).map(|_| aqm.clone()).map_err(AqmError)
    }
}

/// Why a switch program cannot manage a single queue.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct AqmError(PipelineError);

/// A managed queue that a link drains.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each packet would follow the pointer")]
pub enum Managed {
    /// With a discipline.
    Discipline(Replay<AnyDiscipline>),
    /// Within a switch program.
    Program(Box<ReplayedProgram>),
}

impl Managed {
    /// A packet arrives, no earlier than the previous one. A switch program reads its `headers`.
    pub fn arrive(&mut self, packet: Packet, headers: impl FnOnce() -> Headers, now: Nanos, output: &mut impl Output) {
        match self {
            Self::Discipline(replay) => replay.arrive(packet, now, output),
            Self::Program(replay) => replay.arrive(packet, headers(), now, output),
        }
    }

    /// No packet arrives before `now`: all departures up to then happen.
    pub fn advance(&mut self, now: Nanos, output: &mut impl Output) {
        match self {
            Self::Discipline(replay) => replay.advance(now, output),
            Self::Program(replay) => replay.advance(now, output),
        }
    }

    /// No packet arrives any more: all waiting packets depart.
    pub fn finish(&mut self, output: &mut impl Output) {
        match self {
            Self::Discipline(replay) => replay.finish(output),
            Self::Program(replay) => replay.finish(output),
        }
    }

    /// Whether no packet is in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Discipline(replay) => replay.discipline().backlog().packets == 0,
            Self::Program(replay) => replay.is_empty(),
        }
    }

    /// Its counters so far, each with its name in reports.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Discipline(replay) => replay.discipline().counters(),
            Self::Program(replay) => replay.program().counters(),
        }
    }
}
