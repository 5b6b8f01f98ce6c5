//! Congestion controls that the kernel may lack, as eBPF programs in the kernel (BPF `struct_ops`): the algorithms that `queuescope-tcp`
//! simulates, for real connections.
//!
//! The kernel keeps them in all network namespaces while [`Controls`] exists, under names that no other process uses. They disappear when
//! the process ends in any way, even by `kill -9`. Connections that use one then keep it until they end.

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

/// A congestion control. To add one: `bpf/NAME.bpf.c`, and a line in each of the two tables here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Control {
    /// Brakmo and Peterson 1995, as `VegasParams::linux` of `queuescope-tcp`.
    Vegas,
    /// Liu, Başar and Srikant 2006, as `IllinoisParams::linux`.
    Illinois,
    /// RFC 8257, as `DctcpParams::linux`. It needs ECN, and is Reno on connections without it. The receiver must use it, too.
    Dctcp,
    /// HighSpeed TCP (RFC 3649), as `HighSpeedParams::linux`.
    HighSpeed,
    /// Kelly 2003, as `ScalableParams::linux`.
    Scalable,
    /// H-TCP (draft-leith-tcp-htcp-06), as `HtcpParams::linux`.
    Htcp,
    /// Xu, Harfoush and Rhee 2004, as `BicParams::linux`.
    Bic,
    /// Caini and Firrincieli 2004, as `HyblaParams::linux`.
    Hybla,
    /// Baiocchi, Castellani and Vacirca 2007, as `YeahParams::linux`.
    Yeah,
    /// Fu and Liew 2003, as `VenoParams::linux`.
    Veno,
    /// Grieco and Mascolo 2004, as `WestwoodParams::linux`.
    Westwood,
    /// Hock, Neumeister, Zitterbart and Bless 2017, as `LolaParams::linux`.
    Lola,
    /// Version 3 of BBR (draft-ietf-ccwg-bbr), as `Bbr3Params::linux`, except that it knows the loss rate of each round trip and not of each
    /// packet. It needs Linux 6.10.
    Bbr3,
    /// Prague (draft-briscoe-iccrg-prague-congestion-control-04), as `PragueParams::linux`, with the feedback of [`Self::Dctcp`]. It needs ECN, and
    /// is Reno on connections without it. The receiver must use it, too. The kernel sends ECT(0): what marks by ECT(1) needs that set on the way.
    Prague,
}

/// Registered congestion controls. Sockets can select them until this value is dropped.
#[derive(Debug, Default)]
pub struct Controls(Vec<Registered>);

/// Why a congestion control cannot be registered.
#[derive(Debug, thiserror::Error)]
#[error("this kernel has no congestion control {name}, and does not accept a program for it: {why}")]
pub struct ControlError {
    /// The name of the congestion control.
    pub name: &'static str,
    /// The cause.
    pub why: ProbeError,
}

/// A compiled congestion control, and the flag that the kernel needs (`TCP_CONG_NEEDS_ECN`).
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
    Source {
        control: Control::HighSpeed,
        name: "highspeed",
        object: include_bytes_aligned!("../bpf/hstcp.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Scalable,
        name: "scalable",
        object: include_bytes_aligned!("../bpf/scalable.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Htcp,
        name: "htcp",
        object: include_bytes_aligned!("../bpf/htcp.bpf.o"),
        needs_ecn: false,
    },
    Source { control: Control::Bic, name: "bic", object: include_bytes_aligned!("../bpf/bic.bpf.o"), needs_ecn: false },
    Source {
        control: Control::Hybla,
        name: "hybla",
        object: include_bytes_aligned!("../bpf/hybla.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Yeah,
        name: "yeah",
        object: include_bytes_aligned!("../bpf/yeah.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Veno,
        name: "veno",
        object: include_bytes_aligned!("../bpf/veno.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Westwood,
        name: "westwood",
        object: include_bytes_aligned!("../bpf/westwood.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Lola,
        name: "lola",
        object: include_bytes_aligned!("../bpf/lola.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Bbr3,
        name: "bbr3",
        object: include_bytes_aligned!("../bpf/bbr3.bpf.o"),
        needs_ecn: false,
    },
    Source {
        control: Control::Prague,
        name: "prague",
        object: include_bytes_aligned!("../bpf/prague.bpf.o"),
        needs_ecn: true,
    },
];

/// A registered congestion control.
#[derive(Debug)]
struct Registered {
    control: Control,
    name: String,
    /// The registration ends when this is closed.
    _link: OwnedFd,
}

impl Control {
    /// All congestion controls.
    pub const ALL: [Self; 14] = [
        Self::Vegas,
        Self::Illinois,
        Self::Dctcp,
        Self::HighSpeed,
        Self::Scalable,
        Self::Htcp,
        Self::Bic,
        Self::Hybla,
        Self::Yeah,
        Self::Veno,
        Self::Westwood,
        Self::Lola,
        Self::Bbr3,
        Self::Prague,
    ];

    /// Its name in Linux, without the process's suffix.
    pub fn name(self) -> &'static str {
        self.source().name
    }

    /// The congestion control of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|control| control.name() == name)
    }

    fn source(self) -> &'static Source {
        &SOURCES[self as usize]
    }
}

impl Controls {
    /// Registers them with the kernel.
    ///
    /// # Errors
    /// Fails if the kernel does not accept one of them.
    pub fn load(controls: &[Control]) -> Result<Self, ControlError> {
        let Some(first) = controls.first() else { return Ok(Self::default()) };
        let failed = |control: Control| move |why| ControlError { name: control.name(), why };
        let kernel = Kernel::running().map_err(failed(*first))?;
        let loaded = controls.iter().map(|control| kernel.register(control.source()).map_err(failed(*control)));
        Ok(Self(raised(|| loaded.collect::<Result<_, _>>())?))
    }

    /// Registers those of the named congestion controls that the kernel lacks and that are available here.
    ///
    /// # Errors
    /// Fails if the kernel does not accept one of them.
    pub fn missing(names: &[String]) -> Result<Self, ControlError> {
        let mut controls: Vec<_> = names.iter().filter_map(|name| Control::named(name)).collect();
        controls.sort_unstable();
        controls.dedup();
        controls.retain(|control| !exists_in_kernel(control.name()));
        Self::load(&controls)
    }

    /// The kernel's name of a congestion control: `vegas_3f2a9c` for `vegas` if it is registered here, otherwise the same name.
    pub fn name<'a>(&'a self, name: &'a str) -> &'a str {
        let found = self.0.iter().find(|registered| registered.control.name() == name);
        found.map_or(name, |registered| registered.name.as_str())
    }

    /// The registered congestion controls.
    pub fn all(&self) -> impl Iterator<Item = Control> {
        self.0.iter().map(|registered| registered.control)
    }
}

/// Whether the kernel has a congestion control of this name, or a module that it can load. One that this user may not use counts, too.
fn exists_in_kernel(name: &str) -> bool {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP));
    let selected = socket.and_then(|socket| raised(|| set_tcp_congestion(&socket, name)));
    !matches!(selected, Err(rustix::io::Errno::NOENT))
}

/// What programs are fitted to: the types of the running kernel.
struct Kernel {
    btf: Btf,
    layout: Layout,
}

/// How many names are tried.
const TRIES: u32 = 64;
/// Odd, so that no number occurs twice before all have occurred.
const STEP: u32 = 0x9e_3779;

impl Kernel {
    fn running() -> Result<Self, ProbeError> {
        let btf = types()?;
        let layout = Layout::new(&btf.to_bytes()).map_err(|why| ProbeError::refused(LAYOUT, &why))?;
        Ok(Self { btf, layout })
    }

    fn register(&self, source: &Source) -> Result<Registered, ProbeError> {
        let Self { btf, layout } = self;
        let compiled = Compiled::new(source.object, btf)
            .map_err(|why| ProbeError::refused("fit programs to this kernel", &why))?;
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
                    return Err(ProbeError::since("register a congestion control", "Linux 6.4 or later", &why));
                }
            }
        }
        Err(ProbeError::refused("find a name for a congestion control", &taken))
    }
}

const LAYOUT: &str = "read the layout of the kernel's congestion controls";

/// Numbers for names, to be tried in order. Processes in different PID namespaces may have the same number, and a process may register a
/// control twice.
fn numbers(process: u32) -> impl Iterator<Item = u32> {
    (0..TRIES).map(move |n| process.wrapping_add(n.wrapping_mul(STEP)) & 0xff_ffff)
}

/// The name in the kernel, at most 15 characters. It must be unique on the machine.
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
            let start = control.name().get(..8).unwrap_or(control.name());
            assert!(names.iter().all(|name| name.len() <= 15 && name.starts_with(start)), "{names:?}");
        }
        assert_eq!(own_name("vegas", 0x3f_2a9c), "vegas_3f2a9c");
    }
}
