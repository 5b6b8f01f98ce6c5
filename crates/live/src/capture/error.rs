//! What can go wrong with a capture.

use std::io;

/// Why packets cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is none of this name in the network namespace that the thread is in.
    #[error("there is no interface {name} here; `ip link` lists those there are")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// This user may not.
    #[error("cannot capture on {name}: {why}; `queuescope doctor capture` tells what grants it")]
    Refused {
        /// The interface.
        name: String,
        /// What the kernel said.
        why: io::Error,
    },
    /// Frames that are not read.
    #[error(
        "cannot capture on {name}: its frames are of the kind {hardware} (ARPHRD_), and only those of Ethernet, loopback and IP are read"
    )]
    Kind {
        /// The interface.
        name: String,
        /// Its kind.
        hardware: u16,
    },
    /// The kernel says of a block what cannot be.
    #[error("a block of the kernel's ring is not as it should be: {what}")]
    Block {
        /// What is wrong.
        what: &'static str,
    },
    /// A call that does not fail as a rule.
    #[error("cannot {what}: {why}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        why: io::Error,
    },
}
