//! Whose TCP hosts have.

use crate::value::names;

/// Whose version of TCP and its congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As Linux does it.
    Linux,
    /// As ns-3.37 does it.
    Ns3,
}

names! {
    Profile, "a profile": "linux" = Profile::Linux, "ns3" = Profile::Ns3;
}

impl Profile {
    /// The same for congestion controls.
    pub fn of_algorithm(self) -> queuescope_tcp::Profile {
        match self {
            Self::Linux => queuescope_tcp::Profile::Linux,
            Self::Ns3 => queuescope_tcp::Profile::Ns3,
        }
    }
}
