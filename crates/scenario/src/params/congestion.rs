//! Congestion controls. Their defaults depend on the profile.

use crate::keys::{Choice, Keys, fields};
use crate::scenario::Profile;
use queuescope_tcp::{Algorithm, AlgorithmParams};

/// A congestion control whose defaults are those of a profile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Control {
    profile: Profile,
    pub params: AlgorithmParams,
}

impl Control {
    /// The one that stands there; if the table has another profile than `before`, with that one's parameters.
    pub fn of(profile: Profile, before: Profile, params: AlgorithmParams) -> Self {
        let params = if profile == before { params } else { params.algorithm().params(profile.of_algorithm()) };
        Self { profile, params }
    }
}

fields!(tables:; choices: Control);

impl Choice for Control {
    const WHAT: &'static str = "congestion control";

    fn fresh() -> Self {
        Self { profile: Profile::Linux, params: Algorithm::Cubic.params(Profile::Linux.of_algorithm()) }
    }

    fn options(&self) -> Vec<Self> {
        let with = |algorithm: &Algorithm| Self { params: algorithm.params(self.profile.of_algorithm()), ..self.clone() };
        Algorithm::ALL.iter().map(with).collect()
    }

    fn name(&self) -> &'static str {
        self.params.algorithm().name()
    }

    fn about(&self) -> &'static str {
        match self.params.algorithm() {
            Algorithm::NewReno => "NewReno (RFC 5681, RFC 6582).",
            Algorithm::Cubic => "CUBIC (RFC 9438).",
        }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        match &mut self.params {
            AlgorithmParams::NewReno(_) | AlgorithmParams::Cubic(_) => {}
        }
        let _ = keys;
    }
}

/// Whether it cannot do without ECN.
pub(crate) fn counts_marks(_params: &AlgorithmParams) -> bool {
    false
}
