//! A congestion control from outside this crate, beside those of [`Controller`].

use super::{CongestionControl, Controller};
use std::fmt;
use std::sync::Arc;

/// Makes a congestion control of your own for each connection that is to have it, as
/// [`AlgorithmParams`](super::AlgorithmParams) make those of this crate.
#[derive(Clone)]
pub struct ControlFactory {
    name: &'static str,
    make: Arc<Make>,
}

type Make = dyn Fn(Opening) -> CustomControl + Send + Sync;

/// What a congestion control begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The size of a segment, in bytes.
    pub mss: u32,
    /// The initial window, in bytes.
    pub initial_window: u64,
    /// Seeds whatever in it is random. Connections of the same simulation have different ones.
    pub seed: u64,
}

impl ControlFactory {
    /// `make` returns the congestion control of a new connection. Reports call it `name`.
    pub fn new<C: CongestionControl + Send + 'static>(
        name: &'static str,
        make: impl Fn(Opening) -> C + Send + Sync + 'static,
    ) -> Self {
        Self { name, make: Arc::new(move |opening| CustomControl::new(name, make(opening))) }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The congestion control of a new connection.
    pub fn build(&self, opening: Opening) -> Controller {
        Controller::Custom((self.make)(opening))
    }
}

impl fmt::Debug for ControlFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControlFactory").field(&self.name).finish()
    }
}

/// A congestion control that this crate does not know, and its name.
pub struct CustomControl {
    name: &'static str,
    pub(super) control: Box<dyn CongestionControl + Send>,
}

impl CustomControl {
    /// Reports call it `name`.
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
