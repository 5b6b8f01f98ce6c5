//! Errors of a capture.

use std::io;

/// Why a capture failed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is no interface of this name in the thread's network namespace.
    #[error("there is no interface {name} here; `ip link` lists all")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The user lacks the capabilities.
    #[error("cannot capture on {name}: {why}; `queuescope doctor capture` shows what grants it")]
    Refused {
        /// The interface.
        name: String,
        /// The error of the kernel.
        why: io::Error,
    },
    /// The frames of the interface are of an unsupported kind.
    #[error(
        "cannot capture on {name}: its frames are of kind {hardware} (ARPHRD_); supported are Ethernet, loopback and IP"
    )]
    Kind {
        /// The interface.
        name: String,
        /// Its kind, an `ARPHRD_` number.
        hardware: u16,
    },
    /// The kernel's description of a block is inconsistent.
    #[error("a block of the kernel's ring is invalid: {what}")]
    Block {
        /// The inconsistency.
        what: &'static str,
    },
    /// A system call failed that normally succeeds.
    #[error("cannot {what}: {why}")]
    System {
        /// The operation.
        what: &'static str,
        /// The error of the system.
        why: io::Error,
    },
}
