//! The capabilities (capabilities(7)) that this process was granted beyond its user's rights, and how little of them it uses.
//!
//! A program file may carry capabilities, and then everybody who may run it has them. No file that such a user names may be opened
//! with them. So a program calls [`restrain`] before anything else. From then on:
//!
//! - Capabilities that open files of other users are gone from the process, but for one thread ([`Seer`]) that looks at nothing but
//!   `/proc/NUMBER`. Every capability that no command uses is gone, too.
//! - The others are permitted and not effective: the kernel checks each file that is opened against the user's own rights.
//!   [`raised`] makes them effective for one call of the kernel in one thread.
//! - [`keep_only`] takes away what the chosen command does not use.
//! - No program that is begun inherits any.
//!
//! Root keeps all of them: they are root's own.

mod seer;

use rustix::process::{DumpableBehavior, getegid, geteuid, getgid, getuid, set_dumpable_behavior};
pub use rustix::thread::CapabilitySet;
use rustix::thread::{CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities};
pub use seer::Seer;
use std::io;

/// What loads programs into the kernel, and attaches them to interfaces.
pub const PROBE: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::NET_ADMIN);
/// What copies packets.
pub const PACKETS: CapabilitySet = CapabilitySet::NET_RAW;
/// What makes network interfaces in user space.
pub const TUN: CapabilitySet = CapabilitySet::NET_ADMIN;
/// What makes namespaces.
pub const NAMESPACES: CapabilitySet = CapabilitySet::SYS_ADMIN;
/// What finds the processes of other users that hold a socket. These two open any file, too.
pub const OWNERS: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH);
/// All that some command uses and that opens no file by itself.
pub const USED: CapabilitySet = PROBE.union(PACKETS).union(TUN).union(NAMESPACES);

/// Why a process cannot give up what it was granted.
#[derive(Debug, thiserror::Error)]
pub enum RestrainError {
    /// The program runs with the rights of its file's owner or group.
    #[error(
        "this program is installed set-user-ID or set-group-ID: whoever runs it would open files as another user; take that away \
         (chmod u-s,g-s) and grant what `queuescope doctor` says"
    )]
    SetId,
    /// The kernel refused.
    #[error("cannot give up capabilities: {0}")]
    System(#[from] io::Error),
}

/// Gives up every capability that opens files of other users, and those that nothing here uses; the rest is no longer effective. The
/// thread that may still find owners of sockets comes back, if this process may.
///
/// To be called first in a process, while it has one thread and has opened nothing: threads that are there keep what they have.
///
/// # Errors
/// If the program is set-user-ID or set-group-ID, or the kernel refuses.
pub fn restrain() -> Result<Option<Seer>, RestrainError> {
    if getuid() != geteuid() || getgid() != getegid() {
        return Err(RestrainError::SetId);
    }
    let held = capabilities(None).map_err(io::Error::from)?;
    if is_root() || (held.permitted.is_empty() && held.inheritable.is_empty()) {
        return Ok(None);
    }
    // Other processes of this user must not get at what is permitted by tracing this one, or by writing to its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from)?;
    let seer = if held.permitted.contains(OWNERS) { Some(Seer::begin()?) } else { None };
    set(CapabilitySet::empty(), held.permitted & USED)?;
    Ok(seer)
}

/// Gives up all capabilities but these, for good: in this thread, and those that it begins from now on. None of root's.
///
/// # Errors
/// Those of the kernel.
pub fn keep_only(wanted: CapabilitySet) -> io::Result<()> {
    if is_root() {
        return Ok(());
    }
    let held = capabilities(None)?;
    set(held.effective & wanted, held.permitted & wanted)
}

/// What this thread may make effective.
pub fn permitted() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |held| held.permitted)
}

/// The names of capabilities, as setcap(8) has them.
pub fn names(capabilities: CapabilitySet) -> Vec<String> {
    capabilities.iter_names().map(|(name, _)| format!("cap_{}", name.to_lowercase())).collect()
}

/// Does something with the capabilities that are permitted. No file may be opened meanwhile whose name a user chose.
pub fn raised<T>(task: impl FnOnce() -> T) -> T {
    let _lowered = Raised::new();
    task()
}

/// Does something that begins a program, which may have this capability if this thread may. The program has to give it up itself.
pub fn passed_on<T>(one: CapabilitySet, task: impl FnOnce() -> T) -> T {
    let before = capabilities(None).ok().filter(|held| !is_root() && held.permitted.contains(one));
    if let Some(held) = before {
        // Where one of these is refused, the program does not have it, and says so.
        let _ = set_capabilities(None, CapabilitySets { inheritable: held.inheritable | one, ..held });
        let _ = configure_capability_in_ambient_set(one, true);
    }
    let done = raised(task);
    if let Some(held) = before {
        // What is not inheritable is not ambient either.
        let _ = set_capabilities(None, held);
    }
    done
}

/// Capabilities are effective in this thread until this is dropped.
struct Raised(Option<CapabilitySets>);

impl Raised {
    fn new() -> Self {
        let lowered = capabilities(None).ok().filter(|held| held.effective != held.permitted);
        if let Some(held) = lowered {
            // What is permitted can be effective.
            let _ = set_capabilities(None, CapabilitySets { effective: held.permitted, ..held });
        }
        Self(lowered)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(held) = self.0 {
            // Less is never refused.
            let _ = set_capabilities(None, held);
        }
    }
}

fn is_root() -> bool {
    geteuid().is_root()
}

/// Sets what this thread has; nothing is inherited.
fn set(effective: CapabilitySet, permitted: CapabilitySet) -> io::Result<()> {
    // The kernel takes what is not inheritable out of the ambient set.
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() })?)
}
