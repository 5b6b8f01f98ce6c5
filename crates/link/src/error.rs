//! What can go wrong with a link and with what uses it.

use crate::real_time::LinkError;
use queuescope_live::ProbeError;
use queuescope_live::traffic::TrafficError;
use queuescope_scenario::TextError;
use queuescope_sim::BuildError;
use std::io;

/// Why nothing is carried over a link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What is said of the link means nothing; the error shows where in its text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A setting is about a scenario's traffic, and not about its link.
    #[error("--set {setting}: of a scenario, a command's link has what begins with {}", known.join(", "))]
    Setting {
        /// The setting.
        setting: String,
        /// What settings of a link begin with.
        known: &'static [&'static str],
    },
    /// The scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file cannot be read, or the scenario has no link.
    #[error(transparent)]
    Run(#[from] queuescope_run::Error),
    /// This user may not, or an interface or a namespace cannot be made.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The link cannot go on.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Nothing can be sent.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Signals cannot be waited for.
    #[error(transparent)]
    Signals(#[from] queuescope_ingest::Error),
    /// The kernel has no such congestion control.
    #[error("the kernel has no congestion control '{name}'")]
    NoControl {
        /// Its name.
        name: String,
    },
    /// There are too many hosts.
    #[error(
        "{hosts} hosts at an end of the link are more than the {most} that there can be; flows share hosts where `hosts` says \
         how many they have"
    )]
    TooManyHosts {
        /// How many.
        hosts: usize,
        /// How many there can be.
        most: usize,
    },
    /// A signal ended it.
    #[error("stopped by a signal")]
    Stopped,
    /// A call that does not fail as a rule.
    #[error("{what}")]
    System {
        /// What could not be done.
        what: &'static str,
        /// What the system said.
        #[source]
        why: io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::System { what, why }
    }
}
