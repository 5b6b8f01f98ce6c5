//! Any of the congestion controls, chosen by name, without dynamic dispatch.
//!
//! The list of them is in [`congestion`](super). From it come [`Algorithm`], [`AlgorithmParams`](super::AlgorithmParams) and
//! [`Controller`](super::Controller).

use super::Algorithm;
use std::fmt;
use std::str::FromStr;

/// Whose version of an algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// As its RFC or paper has it.
    #[default]
    Standard,
    /// As ns-3.37 does it.
    Ns3,
    /// As Linux does it.
    Linux,
}

impl Profile {
    /// All there are.
    pub const ALL: &[Self] = &[Self::Standard, Self::Ns3, Self::Linux];

    /// How a scenario writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Ns3 => "ns3",
            Self::Linux => "linux",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.iter().find(|profile| profile.name() == text);
        found.copied().ok_or_else(|| UnknownName::new("a profile", text, Self::ALL.iter().map(|known| known.name())))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.iter().find(|algorithm| algorithm.name() == text);
        let known = Self::ALL.iter().map(|known| known.name());
        found.copied().ok_or_else(|| UnknownName::new("a congestion control", text, known))
    }
}

/// A name that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    text: String,
    known: Vec<&'static str>,
}

impl UnknownName {
    fn new(what: &'static str, text: &str, known: impl Iterator<Item = &'static str>) -> Self {
        Self { what, text: text.to_owned(), known: known.collect() }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not {}; there are {}", self.text, self.what, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// From the list of algorithms, the enums over them.
macro_rules! algorithms {
    ($($name:literal $module:ident::{$control:ident, $params:ident $(, $more:ident)* $(,)?}: $about:literal;)*) => {
        $(pub use $module::{$control, $params $(, $more)*};)*

        /// A congestion control by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Algorithm {
            $(#[doc = $about] $control,)*
        }

        impl Algorithm {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$control),*];

            /// How a scenario writes it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$control => $name,)*
                }
            }

            /// What it is, in a sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$control => $about,)*
                }
            }

            /// The parameters that it has in a profile.
            pub fn params(self, profile: Profile) -> AlgorithmParams {
                match (self, profile) {
                    $(
                        (Self::$control, Profile::Standard) => AlgorithmParams::$control($params::default()),
                        (Self::$control, Profile::Ns3) => AlgorithmParams::$control($params::ns3()),
                        (Self::$control, Profile::Linux) => AlgorithmParams::$control($params::linux()),
                    )*
                }
            }
        }

        /// A congestion control with its parameters.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum AlgorithmParams {
            $(#[doc = $about] $control($params),)*
        }

        impl AlgorithmParams {
            /// Of which algorithm they are.
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Self::$control(_) => Algorithm::$control,)*
                }
            }
        }

        /// Any congestion control.
        #[derive(Debug)]
        // The largest is what most simulations run, and a pointer to follow for each ACK would cost them more.
        #[allow(clippy::large_enum_variant)]
        pub enum Controller {
            $(#[doc = $about] $control($control),)*
            /// One from outside this crate.
            Custom(CustomControl),
        }

        impl Controller {
            /// A window of `initial_window` bytes, for segments of `mss` bytes. What is random in it, `seed` decides.
            pub fn new(params: &AlgorithmParams, mss: u32, initial_window: u64, seed: u64) -> Self {
                match params {
                    $(AlgorithmParams::$control(params) => {
                        Self::$control($control::new(*params, mss, initial_window, seed))
                    })*
                }
            }

            /// Its name in scenarios and reports.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$control(_) => $name,)*
                    Self::Custom(custom) => custom.name(),
                }
            }
        }

        impl CongestionControl for Controller {
            fn on_established(&mut self, rtt: Option<Nanos>, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_established(rtt, now),)*
                    Self::Custom(custom) => custom.control.on_established(rtt, now),
                }
            }

            #[inline]
            fn on_ack(&mut self, ack: &Ack, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_ack(ack, now),)*
                    Self::Custom(custom) => custom.control.on_ack(ack, now),
                }
            }

            fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_congestion(congestion, now),)*
                    Self::Custom(custom) => custom.control.on_congestion(congestion, now),
                }
            }

            fn on_timeout(&mut self, congestion: &Congestion, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_timeout(congestion, now),)*
                    Self::Custom(custom) => custom.control.on_timeout(congestion, now),
                }
            }

            fn on_recovered(&mut self, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_recovered(now),)*
                    Self::Custom(custom) => custom.control.on_recovered(now),
                }
            }

            #[inline]
            fn on_sent(&mut self, bytes: u64, in_flight: u64, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_sent(bytes, in_flight, now),)*
                    Self::Custom(custom) => custom.control.on_sent(bytes, in_flight, now),
                }
            }

            fn on_idle(&mut self, timeouts: u32, floor: u64, now: Nanos) {
                match self {
                    $(Self::$control(control) => control.on_idle(timeouts, floor, now),)*
                    Self::Custom(custom) => custom.control.on_idle(timeouts, floor, now),
                }
            }

            #[inline]
            fn window(&self) -> u64 {
                match self {
                    $(Self::$control(control) => control.window(),)*
                    Self::Custom(custom) => custom.control.window(),
                }
            }

            #[inline]
            fn slow_start_threshold(&self) -> u64 {
                match self {
                    $(Self::$control(control) => control.slow_start_threshold(),)*
                    Self::Custom(custom) => custom.control.slow_start_threshold(),
                }
            }

            #[inline]
            fn pacing_rate(&self) -> Option<Rate> {
                match self {
                    $(Self::$control(control) => control.pacing_rate(),)*
                    Self::Custom(custom) => custom.control.pacing_rate(),
                }
            }

            #[inline]
            fn rules_recovery(&self) -> bool {
                match self {
                    $(Self::$control(control) => control.rules_recovery(),)*
                    Self::Custom(custom) => custom.control.rules_recovery(),
                }
            }

            fn ecn(&self) -> EcnUse {
                match self {
                    $(Self::$control(control) => control.ecn(),)*
                    Self::Custom(custom) => custom.control.ecn(),
                }
            }
        }

        /// One from outside is none of ns-3's.
        impl Ns3 for Controller {
            fn forget_timeouts(&mut self) {
                match self {
                    $(Self::$control(control) => control.forget_timeouts(),)*
                    Self::Custom(_) => {}
                }
            }

            fn hold(&mut self, bytes: u64) {
                match self {
                    $(Self::$control(control) => control.hold(bytes),)*
                    Self::Custom(_) => {}
                }
            }

            fn restart(&mut self, initial_window: u64) {
                match self {
                    $(Self::$control(control) => control.restart(initial_window),)*
                    Self::Custom(_) => {}
                }
            }
        }
    };
}
pub(crate) use algorithms;
