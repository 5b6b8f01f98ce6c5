//! Errors of a link and of what uses it.

use crate::real_time::LinkError;
use queuescope_live::traffic::TrafficError;
use queuescope_live::{EthernetError, ProbeError};
use queuescope_scenario::TextError;
use queuescope_sim::BuildError;
use queuescope_wire::ActivityHeader;
use std::io;

/// Why a link carries nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description of the link is not valid; the error shows where in its text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A setting is about a scenario's traffic, not about its link.
    #[error("--set {setting}: a command's link has only settings that begin with {}", known.join(", "))]
    Setting {
        /// The setting.
        setting: String,
        /// The first words of a link's settings.
        known: &'static [&'static str],
    },
    /// The scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file cannot be read, or the scenario has no link.
    #[error(transparent)]
    Run(#[from] queuescope_run::Error),
    /// This user lacks the rights, or an interface or a namespace cannot be made.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// An interface cannot be an end of the link.
    #[error(transparent)]
    Ethernet(#[from] EthernetError),
    /// Frames with an activity header do not fit the interface of the domain.
    #[error(
        "{inside} carries packets of {mtu} bytes, and frames from {outside} (up to {outside_mtu} bytes) are {} bytes longer within the domain: give \
         the interfaces there an MTU of {} or more (ip link set {inside} mtu {})",
        ActivityHeader::LENGTH, needed(*outside_mtu), needed(*outside_mtu)
    )]
    Mtu {
        /// The interface within the domain.
        inside: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// The interface outside of it.
        outside: String,
        /// The MTU of that, in bytes.
        outside_mtu: u32,
    },
    /// The link failed while it ran.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The traffic cannot be sent.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Signal handlers cannot be installed.
    #[error(transparent)]
    Signals(#[from] queuescope_ingest::Error),
    /// The kernel lacks a congestion control.
    #[error("the kernel has no congestion control '{name}'")]
    NoControl {
        /// Its name.
        name: String,
    },
    /// There are too many hosts.
    #[error(
        "{hosts} hosts at one end of the link exceed the limit of {most}: set `hosts` of a group of flows, so that its flows share \
         hosts"
    )]
    TooManyHosts {
        /// How many.
        hosts: usize,
        /// The limit.
        most: usize,
    },
    /// A signal ended the run.
    #[error("stopped by a signal")]
    Stopped,
    /// A system call failed that rarely fails.
    #[error("{what}")]
    System {
        /// What failed.
        what: &'static str,
        /// The error of the system call.
        #[source]
        why: io::Error,
    },
}

/// The MTU within a domain that frames need which come from an interface with this MTU.
pub(crate) fn needed(mtu: u32) -> u32 {
    mtu.saturating_add(ActivityHeader::LENGTH as u32)
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::System { what, why }
    }
}
