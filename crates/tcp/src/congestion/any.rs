//! Any of the congestion controls, chosen by name, without dynamic dispatch.
//!
//! The list is in [`congestion`](super). It generates [`Algorithm`], [`AlgorithmParams`](super::AlgorithmParams) and
//! [`Controller`](super::Controller).

use super::Algorithm;
use std::fmt;
use std::str::FromStr;

/// The implementation that an algorithm follows.
///
/// ```
/// use queuescope_tcp::{Algorithm, Profile};
///
/// let profile: Profile = "linux".parse()?;
/// assert_eq!(profile, Profile::Linux);
/// assert_ne!(Algorithm::Cubic.params(Profile::Linux), Algorithm::Cubic.params(Profile::Ns3));
/// # Ok::<(), queuescope_tcp::congestion::UnknownName>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// The RFC or paper.
    #[default]
    Standard,
    /// ns-3 3.37.
    Ns3,
    /// Linux.
    Linux,
}

impl Profile {
    /// All profiles.
    pub const ALL: &[Self] = &[Self::Standard, Self::Ns3, Self::Linux];

    /// Its name in scenarios.
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

/// The error for an unknown name.
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

/// Generates the enums over the algorithms from their list.
macro_rules! algorithms {
    ($($name:literal $module:ident::{$control:ident, $params:ident $(, $more:ident)* $(,)?}: $about:literal;)*) => {
        $(pub use $module::{$control, $params $(, $more)*};)*

        /// A congestion control by name.
        ///
        /// ```
        /// use queuescope_tcp::{Algorithm, Profile};
        ///
        /// for algorithm in Algorithm::ALL {
        ///     println!("{}: {}", algorithm.name(), algorithm.about());
        ///     let params = algorithm.params(Profile::Linux);
        ///     assert_eq!(params.algorithm(), *algorithm);
        /// }
        /// assert_eq!("cubic".parse(), Ok(Algorithm::Cubic));
        /// assert!("quick".parse::<Algorithm>().is_err());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Algorithm {
            $(#[doc = $about] $control,)*
        }

        impl Algorithm {
            /// All algorithms.
            pub const ALL: &[Self] = &[$(Self::$control),*];

            /// Its name in scenarios.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$control => $name,)*
                }
            }

            /// A description in one sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$control => $about,)*
                }
            }

            /// Its parameters in a profile.
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
            /// The algorithm that they belong to.
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Self::$control(_) => Algorithm::$control,)*
                }
            }
        }

        /// Any congestion control.
        ///
        /// ```
        /// use queuescope_tcp::{Algorithm, Congestion, CongestionControl, Controller, Profile};
        /// use queuescope_wire::Nanos;
        ///
        /// let (mss, initial) = (1448, 100 * 1448);
        /// let loss = Congestion { in_flight: initial, lost: 1448, delivered: 1448, next: 2 * initial };
        /// for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        ///     let mut control = Controller::new(&algorithm.params(Profile::Linux), mss, initial, 1);
        ///     control.on_congestion(&loss, Nanos(10_000_000));
        ///     let left = control.slow_start_threshold() as f64 / initial as f64;
        ///     println!("{} keeps {left:.2} of its window", control.name());
        ///     assert!((0.49..0.72).contains(&left));
        /// }
        /// ```
        #[derive(Debug)]
        // The largest variant is the one that most simulations run. A box would cost them a pointer to follow for each
        // ACK.
        #[allow(clippy::large_enum_variant)]
        pub enum Controller {
            $(#[doc = $about] $control($control),)*
            /// An algorithm from outside this crate.
            Custom(CustomControl),
        }

        impl Controller {
            /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. `seed` determines everything
            /// random.
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

        /// ns-3 has no algorithms from outside this crate.
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
