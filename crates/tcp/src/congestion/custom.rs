//! Congestion controls from outside this crate, in addition to those of [`Controller`].

use super::{CongestionControl, Controller};
use std::fmt;
use std::sync::Arc;

/// Makes your own congestion control for each connection that uses it, as [`AlgorithmParams`](super::AlgorithmParams)
/// does for those of this crate.
///
/// ```
/// use queuescope_tcp::congestion::{Cubic, CubicParams};
/// use queuescope_tcp::{CongestionControl, ControlFactory, InitialValues};
///
/// // An algorithm of your own takes the place of `Cubic`; its parameters are in the closure.
/// let params = CubicParams { beta: 0.8, ..CubicParams::default() };
/// let factory = ControlFactory::new("gentle", move |opening| {
///     Cubic::new(params, opening.mss, opening.initial_window, opening.seed)
/// });
/// let control = factory.build(InitialValues { mss: 1448, initial_window: 14_480, seed: 1 });
/// assert_eq!((control.name(), control.window()), ("gentle", 14_480));
/// ```
#[derive(Clone)]
pub struct ControlFactory {
    name: &'static str,
    make: Arc<Make>,
}

type Make = dyn Fn(InitialValues) -> CustomControl + Send + Sync;

/// The initial values of a congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialValues {
    /// The size of a segment, in bytes.
    pub mss: u32,
    /// The initial window, in bytes.
    pub initial_window: u64,
    /// The seed of everything random in it. Each connection of a simulation has its own.
    pub seed: u64,
}

impl ControlFactory {
    /// `make` returns the congestion control of a new connection. `name` is its name in reports.
    pub fn new<C: CongestionControl + Send + 'static>(
        name: &'static str,
        make: impl Fn(InitialValues) -> C + Send + Sync + 'static,
    ) -> Self {
        Self { name, make: Arc::new(move |opening| CustomControl::new(name, make(opening))) }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The congestion control of a new connection.
    pub fn build(&self, opening: InitialValues) -> Controller {
        Controller::Custom((self.make)(opening))
    }
}

impl fmt::Debug for ControlFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControlFactory").field(&self.name).finish()
    }
}

/// A congestion control from outside this crate, and its name.
pub struct CustomControl {
    name: &'static str,
    pub(super) control: Box<dyn CongestionControl + Send>,
}

impl CustomControl {
    /// `name` is its name in reports.
    pub fn new(name: &'static str, control: impl CongestionControl + Send + 'static) -> Self {
        Self { name, control: Box::new(control) }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for CustomControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomControl").field(&self.name).finish()
    }
}
