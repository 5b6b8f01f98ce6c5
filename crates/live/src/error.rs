//! Errors of the probe.

use crate::ActingError;
use rustix::io::Errno;
use std::error::Error;
use std::io;

/// Why an interface cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The network namespace of this thread has no interface of this name.
    #[error("there is no interface {name} here; `ip link` lists all")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The kernel refused, or the user lacks a right.
    #[error("{what}: {why}; `queuescope doctor` shows what is missing, and what grants it")]
    Refused {
        /// The operation.
        what: &'static str,
        /// The kernel's reason.
        why: String,
    },
    /// The kernel lacks a tracepoint.
    #[error(
        "observe departures: this kernel has no tracepoint {tracepoint} ({since}); `queuescope doctor` shows what else is missing"
    )]
    NoTracepoint {
        /// The tracepoint's name.
        tracepoint: &'static str,
        /// The kernels that have it.
        since: &'static str,
    },
    /// The kernel does not support the operation for any user: it is too old, or built without it.
    #[error(
        "{what}: this kernel does not support it ({why}); {since} does; `queuescope doctor` shows what else is missing"
    )]
    NoKernel {
        /// The operation.
        what: &'static str,
        /// The kernel's reason.
        why: String,
        /// The kernels that support it.
        since: &'static str,
    },
    /// The action is impossible in the kernel.
    #[error("act on flows: {0}")]
    Acting(ActingError),
    /// The caller stopped the attachment.
    #[error("attach to the interface: stopped before it was attached")]
    Stopped,
    /// A property of the system could not be read.
    #[error("read {what}: {why}")]
    System {
        /// The property.
        what: &'static str,
        /// The reason.
        why: io::Error,
    },
}

impl From<ActingError> for ProbeError {
    /// Its text has the cause, so it must not be a source as well.
    fn from(error: ActingError) -> Self {
        Self::Acting(error)
    }
}

impl ProbeError {
    /// The error for an operation that only the kernels in `since` support. The deepest cause is the reason; the causes above it
    /// are in the loader's words.
    pub(crate) fn since(what: &'static str, since: &'static str, why: &(dyn Error + 'static)) -> Self {
        let deepest = deepest(why);
        let number =
            deepest.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).map(Errno::from_raw_os_error);
        match number {
            // An older kernel rejects an unknown call, type or flag with one of these errors.
            Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::TOOBIG) => {
                Self::NoKernel { what, why: deepest.to_string(), since }
            }
            _ => Self::refused(what, why),
        }
    }

    /// The error for an operation that all kernels support.
    pub(crate) fn refused(what: &'static str, why: &(dyn Error + 'static)) -> Self {
        let text = deepest(why).to_string();
        // The verifier's message is long, and its last line is the reason.
        let why = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        Self::Refused { what, why }
    }

    /// The reason in short, without advice.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Refused { what, why } => format!("{what}: {why}"),
            Self::NoKernel { what, why, .. } => format!("{what}: this kernel does not support it ({why})"),
            Self::NoTracepoint { tracepoint, since } => format!("this kernel has no tracepoint {tracepoint} ({since})"),
            other => other.to_string(),
        }
    }
}

fn deepest<'a>(why: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    std::iter::successors(Some(why), |why| (*why).source()).last().unwrap_or(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_kernel_feature_is_distinguished_from_a_missing_right() {
        let error_for = |number: Errno| {
            let why = aya::sys::SyscallError { call: "bpf_link_create", io_error: number.into() };
            ProbeError::since("attach", "Linux 6.6 or later", &aya::programs::ProgramError::from(why))
        };
        for number in [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::TOOBIG] {
            let error = error_for(number);
            assert!(matches!(error, ProbeError::NoKernel { since: "Linux 6.6 or later", .. }), "{error:?}");
            assert_eq!(error.why(), format!("attach: this kernel does not support it ({})", io::Error::from(number)));
        }
        for number in [Errno::PERM, Errno::ACCESS, Errno::NOMEM] {
            let error = error_for(number);
            assert!(matches!(error, ProbeError::Refused { .. }), "{error:?}");
        }
    }
}
