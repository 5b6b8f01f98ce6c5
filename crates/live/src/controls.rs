//! Congestion controls that the kernel may lack, as programs in it (BPF `struct_ops`): what `queuescope-tcp` simulates, for real
//! connections.
//!
//! They are the kernel's for as long as [`Controls`] is kept, in all network namespaces, under names that no other process has; whatever
//! ends the process ends that too, `kill -9` included. Connections that have one then keep it until they end.

mod kernel;
mod layout;
mod object;

use crate::ProbeError;
use crate::capabilities::raised;
use crate::probe::types;
use aya::{Btf, include_bytes_aligned};
use layout::Layout;
use object::Compiled;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// One of them. To add one: `bpf/NAME.bpf.c`, and a line in each of the two tables here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Control {
    /// Brakmo and Peterson 1995, as `VegasParams::linux` of `queuescope-tcp`.
    Vegas,
    /// Liu, Başar and Srikant 2006, as `IllinoisParams::linux`.
    Illinois,
    /// RFC 8257, as `DctcpParams::linux`. It needs ECN, and is Reno where that was not agreed on: the receiver must have it, too.
    Dctcp,
}

/// Some of them, which sockets can have for as long as this is kept.
#[derive(Debug, Default)]
pub struct Controls(Vec<Registered>);

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[error("this kernel has no congestion control {name}, and takes no program for it: {why}")]
pub struct ControlError {
    /// What it is called.
    pub name: &'static str,
    /// What went wrong.
    pub why: ProbeError,
}

/// What compiled programs are of, and what the kernel is to know of them (`TCP_CONG_NEEDS_ECN`).
struct Source {
    control: Control,
    name: &'static str,
    object: &'static [u8],
    needs_ecn: bool,
}

static SOURCES: [Source; Control::ALL.len()] = [
    Source {
        control: Control::Vegas,
        name: "vegas",
        object: include_bytes_aligned!("../bpf/vegas.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Illinois,
        name: "illinois",
        object: include_bytes_aligned!("../bpf/illinois.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Dctcp,
        name: "dctcp",
        object: include_bytes_aligned!("../bpf/dctcp.bpf.o"),
        needs_ecn: true,
    },
];

/// One that the kernel knows.
#[derive(Debug)]
struct Registered {
    control: Control,
    name: String,
    /// The kernel knows it until this is closed.
    _link: OwnedFd,
}

impl Control {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Vegas, Self::Illinois, Self::Dctcp];

    /// What it is called.
    pub fn name(self) -> &'static str {
        self.source().name
    }

    /// That of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|control| control.name() == name)
    }

    fn source(self) -> &'static Source {
        &SOURCES[self as usize]
    }
}

impl Controls {
    /// Makes them known to the kernel.
    ///
    /// # Errors
    /// If it does not take them.
    pub fn load(controls: &[Control]) -> Result<Self, ControlError> {
        let Some(first) = controls.first() else { return Ok(Self::default()) };
        let failed = |control: Control| move |why| ControlError { name: control.name(), why };
        let kernel = Kernel::running().map_err(failed(*first))?;
        let loaded = controls.iter().map(|control| kernel.register(control.source()).map_err(failed(*control)));
        Ok(Self(raised(|| loaded.collect::<Result<_, _>>())?))
    }

    /// Those of the names that the kernel has not got by itself and that are one of these.
    ///
    /// # Errors
    /// If the kernel does not take one.
    pub fn missing(names: &[String]) -> Result<Self, ControlError> {
        let mut controls: Vec<_> = names.iter().filter_map(|name| Control::named(name)).collect();
        controls.sort_unstable();
        controls.dedup();
        controls.retain(|control| !is_there(control.name()));
        Self::load(&controls)
    }

    /// What the kernel calls a congestion control: `vegas_3f2a9c` for `vegas`, if that is among these, or else the same.
    pub fn name<'a>(&'a self, name: &'a str) -> &'a str {
        let found = self.0.iter().find(|registered| registered.control.name() == name);
        found.map_or(name, |registered| registered.name.as_str())
    }

    /// Which they are.
    pub fn all(&self) -> impl Iterator<Item = Control> {
        self.0.iter().map(|registered| registered.control)
    }
}

/// Whether the kernel has one of this name, or a module for it that it loads now. One that this user may not use is there, too.
fn is_there(name: &str) -> bool {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP));
    let asked = socket.and_then(|socket| raised(|| set_tcp_congestion(&socket, name)));
    !matches!(asked, Err(rustix::io::Errno::NOENT))
}

/// What programs are fitted to.
struct Kernel {
    btf: Btf,
    layout: Layout,
}

/// Names that are tried.
const TRIES: u32 = 64;
/// Odd, so that all names come before one comes again.
const STEP: u32 = 0x9e_3779;

impl Kernel {
    fn running() -> Result<Self, ProbeError> {
        let btf = types()?;
        let layout = Layout::of(&btf.to_bytes()).map_err(|why| ProbeError::refused(LAYOUT, &why))?;
        Ok(Self { btf, layout })
    }

    fn register(&self, source: &Source) -> Result<Registered, ProbeError> {
        let Self { btf, layout } = self;
        let compiled =
            Compiled::of(source.object, btf).map_err(|why| ProbeError::refused("fit programs to this kernel", &why))?;
        let mut programs = Vec::new();
        for function in compiled.functions() {
            let member = layout.member(function.name).map_err(|why| ProbeError::refused(LAYOUT, &why))?;
            let program = kernel::load_program(&function, compiled.license(), layout.operations, member.index);
            let program = program.map_err(|why| ProbeError::refused("load a program of a congestion control", &why))?;
            programs.push((member.offset, program));
        }
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for number in numbers(std::process::id()) {
            let name = own_name(source.name, number);
            let value =
                layout.value(&name, source.needs_ecn, &programs).map_err(|why| ProbeError::refused(LAYOUT, &why))?;
            match kernel::register(&name, &value, layout.value_type) {
                Ok(link) => return Ok(Registered { control: source.control, name, _link: link }),
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => taken = why,
                Err(why) => {
                    return Err(ProbeError::since("make a congestion control known", "Linux 6.4 or later", &why));
                }
            }
        }
        Err(ProbeError::refused("find a name for a congestion control", &taken))
    }
}

const LAYOUT: &str = "find out how the kernel's congestion controls look";

/// What names are made of, one after the other: two processes of one machine may have the same number, and one process two of a control.
fn numbers(process: u32) -> impl Iterator<Item = u32> {
    (0..TRIES).map(move |n| process.wrapping_add(n.wrapping_mul(STEP)) & 0xff_ffff)
}

/// What one is called in the kernel, in 15 characters: two processes must not have the same.
fn own_name(name: &str, number: u32) -> String {
    format!("{name:.8}_{number:06x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_has_its_source() {
        for control in Control::ALL {
            assert_eq!((control.source().control, Control::named(control.name())), (control, Some(control)));
        }
        assert_eq!(Control::named("cubic"), None);
        assert_eq!(Controls::default().name("vegas"), "vegas");
    }

    #[test]
    fn names_fit_and_differ() {
        for control in Control::ALL {
            let names: BTreeSet<_> = numbers(u32::MAX).map(|number| own_name(control.name(), number)).collect();
            assert_eq!(names.len(), TRIES as usize);
            assert!(names.iter().all(|name| name.len() <= 15 && name.starts_with(control.name())), "{names:?}");
        }
        assert_eq!(own_name("vegas", 0x3f_2a9c), "vegas_3f2a9c");
    }
}
