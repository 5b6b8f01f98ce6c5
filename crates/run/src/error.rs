//! Errors of scenarios and sweeps.

use crate::sweep::CellsError;
use queuescope_pcap::OpenError;
use queuescope_scenario::TextError;
use queuescope_sim::{BuildError, TraceError};
use std::io;
use std::path::Path;

/// Why a scenario or a sweep was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A scenario is not valid; the error shows where in its text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A capture cannot be opened, or is not a capture.
    #[error(transparent)]
    Capture(#[from] OpenError),
    /// A file cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The file.
        name: String,
        /// The error of the system call.
        #[source]
        why: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {name}")]
    Write {
        /// The file.
        name: String,
        /// The error of the system call.
        #[source]
        why: io::Error,
    },
    /// A trace is too long.
    #[error("the trace {name} is longer than 64 MiB: traces repeat, and may be shorter")]
    LongTrace {
        /// The file.
        name: String,
    },
    /// A trace is not text.
    #[error("{name} is not a trace of a link: it is not UTF-8 text")]
    NoText {
        /// The file.
        name: String,
    },
    /// A file is not a trace.
    #[error("{name} is not a trace of a link")]
    NoTrace {
        /// The file.
        name: String,
        /// What is wrong with it.
        #[source]
        why: TraceError,
    },
    /// A scenario has no link with a meter.
    #[error("the scenario has no link to watch")]
    NoLinks,
    /// A scenario does not have the link that the user named.
    #[error("there is no link '{wanted}'; the links are {}", known.join(", "))]
    NoLink {
        /// The name of the missing link.
        wanted: String,
        /// The links of the scenario.
        known: Vec<String>,
    },
    /// A simulation has no room for more packets.
    #[error(
        "{packets} packets are on their way or wait, more than the simulator has room for: give queues a limit, or send less"
    )]
    Full {
        /// The number of packets in the network.
        packets: usize,
    },
    /// Cells of a sweep cannot be run.
    #[error(transparent)]
    Cells(Box<CellsError>),
    /// A folder has no results of a sweep.
    #[error("{folder} has no results: there is no {plan}, which queuescope sim --results writes")]
    NoPlan {
        /// The folder.
        folder: String,
        /// The file that is missing.
        plan: &'static str,
    },
    /// Folders have results of different sweeps.
    #[error("{one} and {other} do not hold results of the same sweep: {why}")]
    OtherSweep {
        /// A folder.
        one: String,
        /// Another.
        other: String,
        /// What differs.
        why: &'static str,
    },
    /// The list of folders is empty.
    #[error("no folder is named")]
    NoFolder,
    /// A file is not a plan of a sweep.
    #[error("{file} is not a plan of a sweep ({problem}): name another folder, or remove it")]
    BadPlan {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The result of a cell cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// JSON output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// A world other than the simulated one failed.
    #[error(transparent)]
    World(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let name = path.display().to_string();
        |why| Self::Read { name, why }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let name = path.display().to_string();
        |why| Self::Write { name, why }
    }
}
