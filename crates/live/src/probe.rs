//! The probe, as this side of the kernel has it.

mod act;
mod acting;
mod never;
#[cfg(test)]
mod older;
mod told;

use crate::capabilities::raised;
use crate::{ProbeError, now};
pub use acting::{Acted, Acting, ActingError, Action, Victim, Weigh};
use aya::maps::{Array, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{BtfTracePoint, LinkOrder, Program, ProgramError, SchedClassifier, TcAttachType};
use aya::{Btf, BtfError, Ebpf, EbpfLoader, VerifierLogLevel, include_bytes_aligned};
pub use never::{Condition, Field, Never, NeverError};
use queuescope_sketch::{ConQuestParams, Expiry, Weights};
use queuescope_wire::Nanos;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::{fmt, fs};
pub use told::{Counters, Left, Slice};

/// The programs, compiled; their source is beside them.
static PROGRAMS: &[u8] = include_bytes_aligned!("../bpf/probe.bpf.o");

/// An interface's queues are measured for as long as this is kept.
pub struct Probe {
    bpf: Ebpf,
    /// Packets that are told. Mapped once: its pages are many, and to map them for each look costs as much as a thousand packets.
    events: RingBuf<MapData>,
    /// The network namespace and the interface's index there.
    device: [u32; 2],
    /// No packet was stamped before.
    since: Nanos,
    /// Which program is before the queue.
    before: Option<(&'static str, SchedClassifierLinkId)>,
}

/// What is measured, and told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeParams {
    /// A packet that waited longer is congested (the paper's tau).
    pub tau: Nanos,
    /// A flow contributes if more than this part of what left meanwhile was its own (alpha).
    pub alpha: f64,
    /// A window of the sketch has 2 to the power of this nanoseconds, at most 31. If it changes, what was counted is forgotten.
    pub window_shift: u32,
    /// Every packet is told, and not only those that waited for at least half of tau: a burst goes on so long.
    pub all: bool,
}

/// Programs, the tracepoints that they run at, and which kernels have those.
const TRACED: [(&str, &str, &str); 2] = [
    ("dequeue", "qdisc_dequeue", "Linux 4.14 and later have it, where CONFIG_NET_SCHED is set"),
    ("dropped", "kfree_skb", "Linux 2.6.30 and later have it"),
];

/// Times that a program is checked without a log.
const TRIES: usize = 4;

/// Which kernels have what else is needed.
const RING_BUFFER: &str = "Linux 5.8 or later, with CONFIG_BPF_SYSCALL";
const TCX: &str = "Linux 6.6 or later, with CONFIG_NET_XGRESS";

/// The windows that are chosen from: 65 us to 2.1 s.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 31;

/// The sketch that the kernel keeps of each queue.
pub fn sketch(window_shift: u32) -> ConQuestParams {
    ConQuestParams {
        snapshots: 8,
        rows: 2,
        columns: 2048,
        window: Nanos(1 << window_shift),
        expiry: Expiry::Tag,
        weights: Weights::Fine,
        seed: 0,
    }
}

impl Default for ProbeParams {
    fn default() -> Self {
        Self { tau: Nanos(1_000_000), alpha: 0.01, window_shift: 22, all: false }
    }
}

impl ProbeParams {
    /// The shortest windows that hold the longest wait of late, which an estimate needs to be right; shorter ones than now only if
    /// a quarter would do, so that they do not change with every burst.
    #[must_use]
    pub fn fitted(self, longest: Nanos) -> Self {
        let span = |shift: u32| sketch(shift).span();
        let needed = (SHORTEST..LONGEST).find(|shift| span(*shift) >= longest).unwrap_or(LONGEST);
        let is_fit = needed <= self.window_shift && needed + 2 > self.window_shift;
        Self { window_shift: if is_fit { self.window_shift } else { needed }, ..self }
    }
}

impl Probe {
    /// Queues of an interface that are told apart; those behind them share.
    pub const QUEUES: u32 = 16;
    /// Packets that are told at once: others may come as fast.
    pub const AT_ONCE: u64 = 8192;

    /// Begins to measure an interface of the network namespace that this thread is in.
    ///
    /// # Errors
    /// If there is none of the name, or the kernel does not take the programs.
    pub fn attach(interface: &str, params: ProbeParams) -> Result<Self, ProbeError> {
        Self::attach_unless(interface, params, &|| false)
    }

    /// The same for a caller who may want to stop meanwhile: the kernel takes some tenths of a second to check the programs.
    ///
    /// # Errors
    /// [`ProbeError::Stopped`] if `is_stopped` says so between two steps; and as of [`attach`](Self::attach). Nothing stays then.
    pub fn attach_unless(
        interface: &str,
        params: ProbeParams,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, ProbeError> {
        let device = [namespace()?, index(interface)?];
        let types = types()?;
        raised(|| Self::attach_by(&types, device, interface, params, is_stopped))
    }

    /// The same in a kernel of these types. If something is refused, nothing stays.
    fn attach_by(
        btf: &Btf,
        device: [u32; 2],
        interface: &str,
        params: ProbeParams,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, ProbeError> {
        let mut probe = Self::load(device, btf, params)?;
        probe.trace(btf, is_stopped)?;
        // The stamps come last, so that no packet is stamped that is not seen.
        probe.stamp(interface, is_stopped)?;
        Ok(probe)
    }

    /// Its programs and maps, which do nothing yet.
    pub(crate) fn load(device: [u32; 2], btf: &Btf, params: ProbeParams) -> Result<Self, ProbeError> {
        let mut bpf = object(btf, VerifierLogLevel::DISABLE)?;
        let events = of(bpf.take_map("events"))?;
        let mut probe = Self { bpf, events, device, since: now(), before: None };
        probe.set(params)?;
        Ok(probe)
    }

    /// Looks at what leaves queues, and what they drop.
    pub(crate) fn trace(&mut self, btf: &Btf, is_stopped: &dyn Fn() -> bool) -> Result<(), ProbeError> {
        for (name, tracepoint, since) in TRACED {
            let load = |program: &mut BtfTracePoint| program.load(tracepoint, btf);
            self.check(name, Some(btf), is_stopped, load)?.map_err(|why| match why {
                // The loader speaks of a type.
                ProgramError::Btf(BtfError::UnknownBtfTypeName { .. }) => {
                    ProbeError::NoTracepoint { tracepoint, since }
                }
                why => ProbeError::refused("load a program of tracing", &why),
            })?;
        }
        for (program, ..) in TRACED {
            let program: &mut BtfTracePoint = program_of(&mut self.bpf, program)?;
            program.attach().map_err(|why| ProbeError::refused("attach to a tracepoint of the kernel", &why))?;
        }
        Ok(())
    }

    /// Stamps what comes to the queues of an interface.
    pub(crate) fn stamp(&mut self, interface: &str, is_stopped: &dyn Fn() -> bool) -> Result<(), ProbeError> {
        self.check_classifier("stamp", is_stopped)?;
        let stamp: &mut SchedClassifier = program_of(&mut self.bpf, "stamp")?;
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        let attached = stamp.attach_with_options(interface, TcAttachType::Egress, options);
        let link =
            attached.map_err(|why| ProbeError::of("attach before the queue of an interface (tcx)", TCX, &why))?;
        self.before = Some(("stamp", link));
        Ok(())
    }

    fn check_classifier(&mut self, name: &str, is_stopped: &dyn Fn() -> bool) -> Result<(), ProbeError> {
        let checked = self.check(name, None, is_stopped, SchedClassifier::load)?;
        checked.map_err(|why| ProbeError::refused("load a classifier", &why))
    }

    /// Has the kernel check a program. A signal breaks that off, which looks like any refusal; so it is tried again, unless the signal
    /// was to stop. Only a program that is refused each time is checked once more with a log, which tells why and takes many times as
    /// long.
    fn check<P>(
        &mut self,
        name: &str,
        btf: Option<&Btf>,
        is_stopped: &dyn Fn() -> bool,
        load: impl Fn(&mut P) -> Result<(), ProgramError>,
    ) -> Result<Result<(), ProgramError>, ProbeError>
    where
        for<'a> &'a mut P: TryFrom<&'a mut Program>,
    {
        for _ in 0..TRIES {
            if is_stopped() {
                return Err(ProbeError::Stopped);
            }
            match load(program_of(&mut self.bpf, name)?) {
                Err(ProgramError::LoadError { .. }) => {}
                loaded => return Ok(loaded),
            }
        }
        if is_stopped() {
            return Err(ProbeError::Stopped);
        }
        let log = VerifierLogLevel::default();
        let mut logged = match btf {
            Some(btf) => object(btf, log)?,
            None => object(&types()?, log)?,
        };
        Ok(match load(program_of(&mut logged, name)?) {
            Ok(()) => load(program_of(&mut self.bpf, name)?),
            refused => refused,
        })
    }

    /// Changes what is told and how it is measured, while it runs.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set(&mut self, params: ProbeParams) -> Result<(), ProbeError> {
        let [netns, interface] = self.device;
        let tau = params.tau.0;
        let alpha = (params.alpha.clamp(0.0, 1.0) * 65_536.0).round() as u32;
        let [tau, since] = [tau, self.since.0].map(|time| [time as u32, (time >> 32) as u32]);
        let (all, shift) = (u32::from(params.all), params.window_shift);
        let words = [netns, interface, tau[0], tau[1], alpha, all, shift, 0, since[0], since[1]];
        let mut config: Array<&mut MapData, [u32; 10]> = of(self.bpf.map_mut("config"))?;
        config.set(0, words, 0).map_err(|why| ProbeError::refused("configure the probe", &why))
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn counters(&self) -> Result<Counters, ProbeError> {
        let map: PerCpuArray<&MapData, [u64; Counters::WORDS]> = of(self.bpf.map("counters"))?;
        let values = map.get(&0, 0).map_err(|why| ProbeError::refused("read what the probe counted", &why))?;
        Ok(Counters::of(&values))
    }

    /// Sees no more packets: those that it saw can still be told, and counters stay.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn detach(&mut self) -> Result<(), ProbeError> {
        self.before = None;
        for (_, program) in self.bpf.programs_mut() {
            let unloaded = match program {
                Program::BtfTracePoint(program) => program.unload(),
                Program::SchedClassifier(program) => program.unload(),
                _ => Ok(()),
            };
            match unloaded {
                // One that was never loaded is not there.
                Ok(()) | Err(ProgramError::NotLoaded) => {}
                Err(why) => return Err(ProbeError::refused("unload a program of the probe", &why)),
            }
        }
        Ok(())
    }

    /// Tells the packets that left since this was asked before, [`AT_ONCE`](Self::AT_ONCE) at most; how many there were.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn left(&mut self, mut tell: impl FnMut(Left<'_>)) -> Result<u64, ProbeError> {
        let mut count = 0;
        while count < Self::AT_ONCE
            && let Some(bytes) = self.events.next()
        {
            if let Some(left) = Left::of(&bytes) {
                tell(left);
                count += 1;
            }
        }
        Ok(count)
    }

    /// What was summed up of a queue in the last seconds, the earliest first.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn slices(&self, queue: u32) -> Result<Vec<Slice>, ProbeError> {
        let map: Array<&MapData, [u64; Slice::WORDS]> = of(self.bpf.map("slices"))?;
        let places = queue * Slice::KEPT..(queue + 1) * Slice::KEPT;
        let read = |place| map.get(&place, 0).map(|words| Slice::of(&words));
        let slices: Result<Vec<_>, _> = places.map(read).collect();
        let mut slices = slices.map_err(|why| ProbeError::refused("read what the probe summed up", &why))?;
        slices.retain(|slice| slice.packets > 0);
        slices.sort_by_key(|slice| slice.start);
        Ok(slices)
    }

    /// Waits for a time, unless there is something to tell already; a signal ends it early. The kernel wakes nobody: that would
    /// cost more than the rest of telling a packet.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn wait(&mut self, time: Duration) -> Result<(), ProbeError> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.events, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(why) => Err(ProbeError::System { what: "whether packets left", why: why.into() }),
        }
    }

    /// Whether the interface is still there.
    ///
    /// # Errors
    /// If the interfaces cannot be asked for.
    pub fn is_there(&self) -> Result<bool, ProbeError> {
        use rustix::net::netdevice::index_to_name;
        // By its number: it may have another name now.
        Ok(index_to_name(asked()?, self.device[1]).is_ok())
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("device", &self.device).field("before", &self.before).finish_non_exhaustive()
    }
}

/// The compiled programs, fitted to a kernel of these types, with their maps.
fn object(btf: &Btf, log: VerifierLogLevel) -> Result<Ebpf, ProbeError> {
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf)).verifier_log_level(log);
    loader.load(PROGRAMS).map_err(|why| ProbeError::of("make the maps of the probe", RING_BUFFER, &why))
}

fn program_of<'a, P>(object: &'a mut Ebpf, name: &str) -> Result<&'a mut P, ProbeError>
where
    &'a mut P: TryFrom<&'a mut Program>,
{
    let program = object.program_mut(name).and_then(|program| program.try_into().ok());
    program.ok_or_else(|| lacks("find a program of the probe"))
}

/// What the running kernel's structures look like.
pub(crate) fn types() -> Result<Btf, ProbeError> {
    Btf::from_sys_fs().map_err(|why| ProbeError::refused("read the kernel's types, /sys/kernel/btf/vmlinux", &why))
}

/// A map of the probe, by its type.
fn of<M, T: TryFrom<M, Error = MapError>>(map: Option<M>) -> Result<T, ProbeError> {
    let map = map.ok_or_else(|| lacks("find a map of the probe"))?;
    map.try_into().map_err(|why| ProbeError::refused("read a map of the probe", &why))
}

/// The number of the network namespace that this thread is in.
fn namespace() -> Result<u32, ProbeError> {
    let found = fs::metadata("/proc/thread-self/ns/net").map(|data| data.ino() as u32);
    found.map_err(|why| ProbeError::System { what: "the network namespace, /proc/thread-self/ns/net", why })
}

pub(crate) fn index(interface: &str) -> Result<u32, ProbeError> {
    use rustix::net::netdevice::name_to_index;
    name_to_index(asked()?, interface).map_err(|_| ProbeError::NoInterface { name: interface.to_owned() })
}

/// What interfaces are asked for by.
fn asked() -> Result<OwnedFd, ProbeError> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None);
    socket.map_err(|why| ProbeError::System { what: "the interfaces", why: why.into() })
}

/// Something of the compiled programs is not what this one takes it for.
fn lacks(what: &'static str) -> ProbeError {
    ProbeError::Refused { what, why: "the compiled programs are others".to_owned() }
}
