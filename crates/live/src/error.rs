//! What can go wrong with the kernel.

use crate::ActingError;
use rustix::io::Errno;
use std::error::Error;
use std::io;

/// Why an interface cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is none of this name in the network namespace that the thread is in.
    #[error("there is no interface {name} here; `ip link` lists those there are")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The kernel or this user lacks something.
    #[error("{what}: {why}; `queuescope doctor` tells what is missing, and what grants it")]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        why: String,
    },
    /// The kernel has no such tracepoint.
    #[error(
        "watch what leaves queues: this kernel has no tracepoint {tracepoint} ({since}); `queuescope doctor` tells what else is missing"
    )]
    NoTracepoint {
        /// Its name.
        tracepoint: &'static str,
        /// Which kernels have it.
        since: &'static str,
    },
    /// The kernel cannot do it, whoever asks: it is too old, or built without.
    #[error("{what}: this kernel cannot ({why}); {since} can; `queuescope doctor` tells what else is missing")]
    NoKernel {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        why: String,
        /// Which kernels can.
        since: &'static str,
    },
    /// The kernel's part cannot do what is asked.
    #[error("act on flows: {0}")]
    Acting(#[from] ActingError),
    /// The caller wanted to stop before it was attached.
    #[error("attach to the interface: stopped before that was done")]
    Stopped,
    /// Something about the system could not be found out.
    #[error("read {what}: {why}")]
    System {
        /// What was to be read.
        what: &'static str,
        /// Why not.
        why: io::Error,
    },
}

impl ProbeError {
    /// That the kernel refused something which those can that `since` names. The deepest cause tells why; those above it say what
    /// was done, in words of the loader.
    pub(crate) fn of(what: &'static str, since: &'static str, why: &(dyn Error + 'static)) -> Self {
        let deepest = deepest(why);
        let number =
            deepest.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).map(Errno::from_raw_os_error);
        match number {
            // What they are told of, older ones take for a mistake: a call, a kind or a flag that is none.
            Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::TOOBIG) => {
                Self::NoKernel { what, why: deepest.to_string(), since }
            }
            _ => Self::refused(what, why),
        }
    }

    /// The same of what all kernels can.
    pub(crate) fn refused(what: &'static str, why: &(dyn Error + 'static)) -> Self {
        let said = deepest(why).to_string();
        // What the verifier says is long; how it ends is why.
        let why = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        Self::Refused { what, why }
    }

    /// Why, in short.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Refused { what, why } => format!("{what}: {why}"),
            Self::NoKernel { what, why, .. } => format!("{what}: this kernel cannot ({why})"),
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
    fn what_only_another_kernel_can_is_told_from_what_this_user_may_not() {
        let told = |number: Errno| {
            let why = aya::sys::SyscallError { call: "bpf_link_create", io_error: number.into() };
            ProbeError::of("attach", "Linux 6.6 or later", &aya::programs::ProgramError::from(why))
        };
        for number in [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::TOOBIG] {
            let error = told(number);
            assert!(matches!(error, ProbeError::NoKernel { since: "Linux 6.6 or later", .. }), "{error:?}");
            assert_eq!(error.why(), format!("attach: this kernel cannot ({})", io::Error::from(number)));
        }
        for number in [Errno::PERM, Errno::ACCESS, Errno::NOMEM] {
            let error = told(number);
            assert!(matches!(error, ProbeError::Refused { .. }), "{error:?}");
        }
    }
}
