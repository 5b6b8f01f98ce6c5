//! The profile: the TCP implementation that hosts follow.

use crate::value::names;

/// The implementation that TCP and its congestion controls follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Linux.
    Linux,
    /// ns-3.37.
    Ns3,
}

names! {
    Profile, "a profile": "linux" = Profile::Linux, "ns3" = Profile::Ns3;
}

impl Profile {
    /// The corresponding profile of congestion controls.
    pub fn of_algorithm(self) -> queuescope_tcp::Profile {
        match self {
            Self::Linux => queuescope_tcp::Profile::Linux,
            Self::Ns3 => queuescope_tcp::Profile::Ns3,
        }
    }
}
