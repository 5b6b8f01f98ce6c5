//! A built-in or a custom component of a simulation.

use queuescope_queue::{
    AnyDiscipline, AnyPipeline, DisciplineFactory, DisciplineParams, Outlet, PipelineError, PipelineFactory,
    PipelineParams,
};
use queuescope_tcp::{AlgorithmParams, ControlFactory, Controller, InitialValues};

/// A built-in component with parameters `P`, or a custom one with a factory `F`. Parameters and factories convert into
/// it (`params.into()`).
///
/// ```
/// use queuescope_queue::{CodelParams, DisciplineFactory, DisciplineParams, TailDrop, TailDropParams};
/// use queuescope_sim::DisciplineChoice;
///
/// let choices: [DisciplineChoice; 2] = [
///     DisciplineParams::Codel(CodelParams::default()).into(),
///     DisciplineFactory::new("mine", |outlet| TailDrop::new(TailDropParams::default(), outlet)).into(),
/// ];
/// assert!(matches!(choices[0], DisciplineChoice::BuiltIn(_)));
/// assert!(matches!(choices[1], DisciplineChoice::Custom(_)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Choice<P, F> {
    /// A built-in component.
    BuiltIn(P),
    /// A custom component.
    Custom(F),
}

/// The discipline of a queue before a link.
pub type DisciplineChoice = Choice<DisciplineParams, DisciplineFactory>;

/// The program of a switch.
pub type PipelineChoice = Choice<PipelineParams, PipelineFactory>;

/// The congestion control of a connection.
pub type ControlChoice = Choice<AlgorithmParams, ControlFactory>;

impl DisciplineChoice {
    /// An empty queue.
    pub fn build(&self, outlet: Outlet) -> AnyDiscipline {
        match self {
            Self::BuiltIn(params) => params.build(outlet),
            Self::Custom(factory) => factory.build(outlet),
        }
    }
}

impl PipelineChoice {
    /// The program, on a switch with these ports; the first port's seed is the seed of the whole program.
    ///
    /// # Errors
    /// Fails if the parameters fit no switch, or not one with this number of ports.
    pub fn build(&self, outlets: &[Outlet]) -> Result<AnyPipeline, PipelineError> {
        match self {
            Self::BuiltIn(params) => params.build(outlets),
            Self::Custom(factory) => Ok(factory.build(outlets)),
        }
    }
}

impl ControlChoice {
    /// The congestion control of a new connection.
    pub fn build(&self, opening: InitialValues) -> Controller {
        let InitialValues { mss, initial_window, seed } = opening;
        match self {
            Self::BuiltIn(params) => Controller::new(params, mss, initial_window, seed),
            Self::Custom(factory) => factory.build(opening),
        }
    }
}

/// The built-in component with default parameters.
impl<P: Default, F> Default for Choice<P, F> {
    fn default() -> Self {
        Self::BuiltIn(P::default())
    }
}

impl<P, F> From<P> for Choice<P, F> {
    fn from(params: P) -> Self {
        Self::BuiltIn(params)
    }
}

impl From<DisciplineFactory> for DisciplineChoice {
    fn from(factory: DisciplineFactory) -> Self {
        Self::Custom(factory)
    }
}

impl From<PipelineFactory> for PipelineChoice {
    fn from(factory: PipelineFactory) -> Self {
        Self::Custom(factory)
    }
}

impl From<ControlFactory> for ControlChoice {
    fn from(factory: ControlFactory) -> Self {
        Self::Custom(factory)
    }
}
