//! The capabilities (capabilities(7)) that this process has beyond the rights of its user, and how their use is restricted.
//!
//! If a program file has capabilities, every user who may run it gets them. The program must never open a file that such a user
//! names with these capabilities. So a program calls [`restrain`] before anything else. From then on:
//!
//! - Only one thread ([`Seer`]), which reads nothing but `/proc/NUMBER`, keeps the capabilities that open files of other users.
//!   Capabilities that no command uses are removed entirely.
//! - The others are permitted but not effective: the kernel checks each opened file against the rights of the user.
//!   [`raised`] makes them effective for one system call in one thread.
//! - [`keep_only`] removes what the chosen command does not use.
//! - A child process inherits none.
//!
//! Root keeps all of them: they are root's own.

mod seer;

use rustix::process::{DumpableBehavior, getegid, geteuid, getgid, getuid, set_dumpable_behavior};
pub use rustix::thread::CapabilitySet;
use rustix::thread::{CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities};
pub use seer::Seer;
use std::io;

/// Loads programs into the kernel and attaches them to interfaces.
pub const PROBE: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::NET_ADMIN);
/// Copies packets.
pub const PACKETS: CapabilitySet = CapabilitySet::NET_RAW;
/// Creates TUN interfaces.
pub const TUN: CapabilitySet = CapabilitySet::NET_ADMIN;
/// Creates namespaces.
pub const NAMESPACES: CapabilitySet = CapabilitySet::SYS_ADMIN;
/// Finds the processes of other users that hold a socket. These two capabilities also open any file.
pub const OWNERS: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH);
/// All capabilities that some command uses and that do not open files by themselves.
pub const USED: CapabilitySet = PROBE.union(PACKETS).union(TUN).union(NAMESPACES);

/// Why a process cannot give up its capabilities.
#[derive(Debug, thiserror::Error)]
pub enum RestrainError {
    /// The program is set-user-ID or set-group-ID.
    #[error(
        "this program is installed set-user-ID or set-group-ID: its users would open files as another user; remove that \
         (chmod u-s,g-s) and grant the capabilities that `queuescope doctor` shows"
    )]
    SetId,
    /// The kernel refused.
    #[error("cannot give up capabilities: {0}")]
    System(io::Error),
}

impl From<io::Error> for RestrainError {
    /// Its text has the cause, so it must not be a source as well.
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Gives up every capability that opens files of other users or that queuescope does not use. The others are no longer
/// effective. Returns the thread that may still find the owners of sockets, if this process has the capabilities for that.
///
/// Must be called first in a process, while it has one thread and no open files: existing threads keep their capabilities.
///
/// # Errors
/// Fails if the program is set-user-ID or set-group-ID, or if the kernel refuses.
pub fn restrain() -> Result<Option<Seer>, RestrainError> {
    if getuid() != geteuid() || getgid() != getegid() {
        return Err(RestrainError::SetId);
    }
    let held = capabilities(None).map_err(io::Error::from)?;
    if is_root() || (held.permitted.is_empty() && held.inheritable.is_empty()) {
        return Ok(None);
    }
    // Another process of the same user must not reach the permitted capabilities by tracing this one or by writing to its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from)?;
    let seer = if held.permitted.contains(OWNERS) { Some(Seer::begin()?) } else { None };
    set(CapabilitySet::empty(), held.permitted & USED)?;
    Ok(seer)
}

/// Gives up all capabilities except `wanted`, for good, in this thread and in those that it starts later. Root keeps all.
///
/// # Errors
/// Returns the error of the system call.
pub fn keep_only(wanted: CapabilitySet) -> io::Result<()> {
    if is_root() {
        return Ok(());
    }
    let held = capabilities(None)?;
    set(held.effective & wanted, held.permitted & wanted)
}

/// The capabilities that this thread may make effective.
pub fn permitted() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |held| held.permitted)
}

/// The names of capabilities as in setcap(8).
pub fn names(capabilities: CapabilitySet) -> Vec<String> {
    capabilities.iter_names().map(|(name, _)| format!("cap_{}", name.to_lowercase())).collect()
}

/// Runs `task` with the permitted capabilities in effect. It must not open a file whose name a user chose.
pub fn raised<T>(task: impl FnOnce() -> T) -> T {
    let _lowered = Raised::new();
    task()
}

/// Runs `task`, which starts a program; the program gets the capability `one` if this thread has it permitted. The program must give
/// it up itself.
pub fn passed_on<T>(one: CapabilitySet, task: impl FnOnce() -> T) -> T {
    let before = capabilities(None).ok().filter(|held| !is_root() && held.permitted.contains(one));
    if let Some(held) = before {
        // If a step is refused, the program lacks the capability and reports that itself.
        let _ = set_capabilities(None, CapabilitySets { inheritable: held.inheritable | one, ..held });
        let _ = configure_capability_in_ambient_set(one, true);
    }
    let done = raised(task);
    if let Some(held) = before {
        // Without the inheritable flag, the ambient one is removed too.
        let _ = set_capabilities(None, held);
    }
    done
}

/// Keeps the permitted capabilities effective in this thread until it is dropped.
struct Raised(Option<CapabilitySets>);

impl Raised {
    fn new() -> Self {
        let lowered = capabilities(None).ok().filter(|held| held.effective != held.permitted);
        if let Some(held) = lowered {
            // The kernel allows to make permitted capabilities effective.
            let _ = set_capabilities(None, CapabilitySets { effective: held.permitted, ..held });
        }
        Self(lowered)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(held) = self.0 {
            // The kernel never refuses to lower capabilities.
            let _ = set_capabilities(None, held);
        }
    }
}

fn is_root() -> bool {
    geteuid().is_root()
}

/// Sets the capabilities of this thread; none is inheritable.
fn set(effective: CapabilitySet, permitted: CapabilitySet) -> io::Result<()> {
    // The kernel removes capabilities from the ambient set if they are not inheritable.
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() })?)
}
