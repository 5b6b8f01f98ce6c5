//! The probe in user space: loads the programs into the kernel, attaches them and reads their maps.

mod act;
mod acting;
mod departures;
mod never;
#[cfg(test)]
mod older_kernels;
mod records;
mod reports;

use crate::capabilities::raised;
use crate::{Interfaces, ProbeError, now};
pub use acting::{Acted, Acting, ActingError, Action, Victim, Weigh};
use aya::maps::{Array, MapData, MapError, PerCpuArray};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{BtfTracePoint, LinkOrder, Program, ProgramError, SchedClassifier, TcAttachType};
use aya::{Btf, BtfError, Ebpf, EbpfLoader, VerifierLogLevel, include_bytes_aligned};
use departures::Departures;
pub use never::{Condition, Field, Never, NeverError};
use queuescope_wire::Nanos;
pub use records::{Counters, Left, Slice};
use reports::Reports;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::{fmt, fs};

/// The compiled programs; their source is in `bpf`.
static PROGRAMS: &[u8] = include_bytes_aligned!("../bpf/probe.bpf.o");

/// Measures the queues of an interface until it is dropped.
pub struct Probe {
    bpf: Ebpf,
    /// The packets that are handed over.
    reports: Reports,
    device: Device,
    params: ProbeParams,
    /// Whether flows are acted on.
    acts: bool,
    /// The start; packets that were stamped earlier do not exist.
    since: Nanos,
    /// When the first program was attached.
    began: Nanos,
    /// The name and the link of the program before the queue.
    before: Option<(&'static str, SchedClassifierLinkId)>,
    /// What left according to the qdisc itself.
    departures: Departures,
}

/// Parameters of the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeParams {
    /// A packet is congested if its sojourn time is longer (the paper's tau).
    pub tau: Nanos,
    /// A flow contributes if its share of the bytes that left meanwhile is larger (alpha).
    pub alpha: f64,
    /// The headers that packets are handed over with.
    pub headers: Headers,
    /// Hand over every packet, not only those whose sojourn time is at least half of tau, which is when a burst ends.
    pub all: bool,
    /// Also hand over packets that the qdisc drops, and the bits of ECN of those that leave.
    pub drops: bool,
}

/// Whose headers a packet is handed over with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// Its own. Copying them from memory costs more than all else that the probe does with a packet that leaves.
    OfEach,
    /// Those of an earlier packet of its flow, if one was handed over.
    OfFlow,
}

/// The tracing programs, their tracepoints, and the kernels that have these.
const TRACED: [(&str, &str, &str); 2] = [
    ("dequeue", "qdisc_dequeue", "since Linux 4.14, with CONFIG_NET_SCHED"),
    ("dropped", "kfree_skb", "since Linux 2.6.30"),
];

/// How often a program is verified without a log before it is refused.
const TRIES: usize = 4;

/// The words of what the programs share, and where the queues begin in it, each of which ends with its present slice (`bpf/queue.h`).
const QUEUES_AT: usize = 17;
const SHARED: usize = QUEUES_AT + Probe::QUEUES as usize * 2 * Slice::WORDS;

/// The kernels that have the other requirements.
const RING_BUFFER: &str = "Linux 5.8 or later, with CONFIG_BPF_SYSCALL";
const TCX: &str = "Linux 6.6 or later, with CONFIG_NET_XGRESS";

/// The interface whose queues are measured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Device {
    /// The inode of its network namespace, and its index there.
    namespace: u32,
    index: u32,
    /// Whether its packets begin with an Ethernet header.
    framed: bool,
}

impl Device {
    /// An interface of this thread's network namespace.
    fn named(interface: &str) -> Result<Self, ProbeError> {
        let (namespace, index) = (namespace()?, index(interface)?);
        let framed = Interfaces::open().and_then(|interfaces| interfaces.is_framed(index));
        let framed = framed.map_err(|why| ProbeError::System { what: "the kind of the interface", why })?;
        Ok(Self { namespace, index, framed })
    }
}

impl Default for ProbeParams {
    fn default() -> Self {
        Self { tau: Nanos(1_000_000), alpha: 0.01, headers: Headers::OfEach, all: false, drops: false }
    }
}

impl Probe {
    /// The number of queues that are distinguished; later queues share the last.
    pub const QUEUES: u32 = 16;
    /// The maximum number of packets per call of [`left`](Self::left): new ones may arrive as fast as they are read.
    pub const AT_ONCE: u64 = 8192;

    /// Starts to measure an interface of this thread's network namespace.
    ///
    /// # Errors
    /// Fails if the interface does not exist or the kernel refuses the programs.
    pub fn attach(interface: &str, params: ProbeParams) -> Result<Self, ProbeError> {
        Self::attach_unless(interface, params, &|| false)
    }

    /// Like [`attach`](Self::attach), but can be stopped: the kernel takes some tenths of a second to verify the programs.
    ///
    /// # Errors
    /// Returns [`ProbeError::Stopped`] if `is_stopped` returns true between two steps. Otherwise see [`attach`](Self::attach). After an
    /// error, nothing stays attached.
    pub fn attach_unless(
        interface: &str,
        params: ProbeParams,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, ProbeError> {
        let device = Device::named(interface)?;
        let types = types()?;
        raised(|| Self::attach_by(&types, device, interface, params, is_stopped))
    }

    /// The same with given kernel types. After an error, nothing stays attached.
    fn attach_by(
        btf: &Btf,
        device: Device,
        interface: &str,
        params: ProbeParams,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, ProbeError> {
        let mut probe = Self::load(device, btf, params)?;
        probe.trace(btf, is_stopped)?;
        // What the qdisc counts from here on, the programs see.
        probe.departures = Departures::new(device.index);
        // Stamps come last, so that every stamped packet is seen to leave.
        probe.stamp(interface, is_stopped)?;
        Ok(probe)
    }

    /// Loads the maps and programs without attaching them.
    pub(crate) fn load(device: Device, btf: &Btf, params: ProbeParams) -> Result<Self, ProbeError> {
        let bpf = object(btf, VerifierLogLevel::DISABLE)?;
        let reports = Reports::new(bpf.map("reports"), bpf.map("heads"))?;
        let (since, departures) = (now(), Departures::default());
        let mut probe =
            Self { bpf, reports, device, params, acts: false, since, began: since, before: None, departures };
        probe.set(params)?;
        Ok(probe)
    }

    /// Attaches the programs that see departures and drops.
    pub(crate) fn trace(&mut self, btf: &Btf, is_stopped: &dyn Fn() -> bool) -> Result<(), ProbeError> {
        for (name, tracepoint, since) in TRACED {
            let load = |program: &mut BtfTracePoint| program.load(tracepoint, btf);
            self.check(name, Some(btf), is_stopped, load)?.map_err(|why| match why {
                // The loader's error names a kernel type.
                ProgramError::Btf(BtfError::UnknownBtfTypeName { .. }) => {
                    ProbeError::NoTracepoint { tracepoint, since }
                }
                why => ProbeError::refused("load a program of tracing", &why),
            })?;
        }
        self.began = now();
        for (program, ..) in TRACED {
            let program: &mut BtfTracePoint = program_of(&mut self.bpf, program)?;
            program.attach().map_err(|why| ProbeError::refused("attach to a tracepoint of the kernel", &why))?;
        }
        Ok(())
    }

    /// Attaches the program that stamps packets before the queues of an interface.
    pub(crate) fn stamp(&mut self, interface: &str, is_stopped: &dyn Fn() -> bool) -> Result<(), ProbeError> {
        self.check_classifier("stamp", is_stopped)?;
        let stamp: &mut SchedClassifier = program_of(&mut self.bpf, "stamp")?;
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        let attached = stamp.attach_with_options(interface, TcAttachType::Egress, options);
        let link =
            attached.map_err(|why| ProbeError::since("attach before the queue of an interface (tcx)", TCX, &why))?;
        self.before = Some(("stamp", link));
        Ok(())
    }

    fn check_classifier(&mut self, name: &str, is_stopped: &dyn Fn() -> bool) -> Result<(), ProbeError> {
        let checked = self.check(name, None, is_stopped, SchedClassifier::load)?;
        checked.map_err(|why| ProbeError::refused("load a classifier", &why))
    }

    /// Has the kernel verify a program. A signal interrupts the verification with an error like any refusal, so it is repeated unless the
    /// caller stops. Only a program that is refused each time is verified once more with a log, which has the reason but takes many
    /// times as long.
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

    /// Changes the parameters of a running measurement.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn set(&mut self, params: ProbeParams) -> Result<(), ProbeError> {
        self.params = params;
        self.configure()
    }

    /// Writes the configuration.
    pub(crate) fn configure(&mut self) -> Result<(), ProbeError> {
        let (Device { namespace, index, framed }, params) = (self.device, self.params);
        let alpha = (params.alpha.clamp(0.0, 1.0) * 65_536.0).round() as u32;
        let [tau, since] = [params.tau.0, self.since.0].map(|time| [time as u32, (time >> 32) as u32]);
        let each = params.headers == Headers::OfEach;
        let [all, framed, acts, each, drops] = [params.all, framed, self.acts, each, params.drops].map(u32::from);
        let read = [self.reports.read(), self.reports.read() >> 32].map(|half| half as u32);
        let [[tau, tau_above], [since, since_above], [read, read_above]] = [tau, since, read];
        let words = [
            [0, 0, namespace, index, tau, tau_above, alpha, all],
            [framed, acts, each, drops, since, since_above, read, read_above],
        ];
        let mut config: Array<&mut MapData, [[u32; 8]; 2]> = of(self.bpf.map_mut("config"))?;
        config.set(0, words, 0).map_err(|why| ProbeError::refused("configure the probe", &why))
    }

    /// The counters so far.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn counters(&self) -> Result<Counters, ProbeError> {
        let map: PerCpuArray<&MapData, [u64; Counters::WORDS]> = of(self.bpf.map("counters"))?;
        let values = map.get(&0, 0).map_err(|why| ProbeError::refused("read what the probe counted", &why))?;
        Ok(Counters { departures: self.departures.packets(), ..Counters::from_processors(&values) })
    }

    /// Asks the qdisc what has left it, so that [`Counters::unseen`] includes departures that the kernel ran no program for. This may wait for
    /// a change of interfaces or qdiscs that is under way.
    pub fn compare(&mut self) {
        self.departures.update();
    }

    /// Detaches the programs. Packets that were seen can still be read, and counters stay.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn detach(&mut self) -> Result<(), ProbeError> {
        self.before = None;
        for (_, program) in self.bpf.programs_mut() {
            let unloaded = match program {
                Program::BtfTracePoint(program) => program.unload(),
                Program::SchedClassifier(program) => program.unload(),
                _ => Ok(()),
            };
            match unloaded {
                // A program that was never loaded cannot be unloaded.
                Ok(()) | Err(ProgramError::NotLoaded) => {}
                Err(why) => return Err(ProbeError::refused("unload a program of the probe", &why)),
            }
        }
        Ok(())
    }

    /// When measuring began, by `CLOCK_MONOTONIC`: no packet was seen before. The kernel takes some tenths of a second before that to verify the
    /// programs.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// Calls `each` with the packets that left since the last call, at most [`AT_ONCE`](Self::AT_ONCE). Returns their number.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn left(&mut self, mut each: impl FnMut(Left<'_>)) -> Result<u64, ProbeError> {
        let mut count = 0;
        while count < Self::AT_ONCE && self.reports.next(&mut each) {
            count += 1;
        }
        if count > 0 {
            // From now on the kernel may write where these were.
            self.configure()?;
        }
        Ok(count)
    }

    /// The slices of a queue over the last seconds, oldest first.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn slices(&self, queue: u32) -> Result<Vec<Slice>, ProbeError> {
        let failed = |why| ProbeError::refused("read what the probe summed up", &why);
        let earlier: Array<&MapData, [u64; Slice::WORDS]> = of(self.bpf.map("slices"))?;
        let shared: Array<&MapData, [u64; SHARED]> = of(self.bpf.map("shared"))?;
        let shared = shared.get(&0, 0).map_err(failed)?;
        let at = QUEUES_AT + queue as usize % Self::QUEUES as usize * 2 * Slice::WORDS + Slice::WORDS;
        let present = shared.get(at..).and_then(|words| words.first_chunk()).map(Slice::from_words);
        let places = queue * Slice::KEPT..(queue + 1) * Slice::KEPT;
        let read = |place| earlier.get(&place, 0).map(|words| Slice::from_words(&words));
        let slices: Result<Vec<_>, _> = places.map(read).collect();
        let mut slices = slices.map_err(failed)?;
        slices.extend(present);
        slices.retain(|slice| slice.packets > 0);
        slices.sort_by_key(|slice| slice.start);
        // One may have been put aside between the two readings.
        slices.dedup_by_key(|slice| slice.start);
        Ok(slices)
    }

    /// Waits for `time`, unless packets are ready; a signal ends the wait early. The kernel does not wake the caller when packets
    /// become ready: that would cost more than the rest of handing over a packet.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn wait(&mut self, time: Duration) -> Result<(), ProbeError> {
        use rustix::event::{Timespec, poll};
        if self.reports.is_ready() {
            return Ok(());
        }
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut [], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(why) => Err(ProbeError::System { what: "whether packets left", why: why.into() }),
        }
    }

    /// Whether the interface still exists.
    ///
    /// # Errors
    /// Fails if the interfaces cannot be read.
    pub fn is_there(&self) -> Result<bool, ProbeError> {
        use rustix::net::netdevice::index_to_name;
        // By index, because the interface may have been renamed.
        Ok(index_to_name(interface_socket()?, self.device.index).is_ok())
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("device", &self.device).field("before", &self.before).finish_non_exhaustive()
    }
}

/// The compiled programs with their maps, relocated for these kernel types.
fn object(btf: &Btf, log: VerifierLogLevel) -> Result<Ebpf, ProbeError> {
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf)).verifier_log_level(log);
    loader.load(PROGRAMS).map_err(|why| ProbeError::since("make the maps of the probe", RING_BUFFER, &why))
}

fn program_of<'a, P>(object: &'a mut Ebpf, name: &str) -> Result<&'a mut P, ProbeError>
where
    &'a mut P: TryFrom<&'a mut Program>,
{
    let program = object.program_mut(name).and_then(|program| program.try_into().ok());
    program.ok_or_else(|| lacks("find a program of the probe"))
}

/// The types of the running kernel.
pub(crate) fn types() -> Result<Btf, ProbeError> {
    Btf::from_sys_fs().map_err(|why| ProbeError::refused("read the kernel's types, /sys/kernel/btf/vmlinux", &why))
}

/// A map of the probe, as its type.
fn of<M, T: TryFrom<M, Error = MapError>>(map: Option<M>) -> Result<T, ProbeError> {
    let map = map.ok_or_else(|| lacks("find a map of the probe"))?;
    map.try_into().map_err(|why| ProbeError::refused("read a map of the probe", &why))
}

/// The inode of this thread's network namespace.
pub(crate) fn namespace() -> Result<u32, ProbeError> {
    let found = fs::metadata("/proc/thread-self/ns/net").map(|data| data.ino() as u32);
    found.map_err(|why| ProbeError::System { what: "the network namespace, /proc/thread-self/ns/net", why })
}

pub(crate) fn index(interface: &str) -> Result<u32, ProbeError> {
    use rustix::net::netdevice::name_to_index;
    name_to_index(interface_socket()?, interface).map_err(|_| ProbeError::NoInterface { name: interface.to_owned() })
}

/// A socket for reading interfaces.
fn interface_socket() -> Result<OwnedFd, ProbeError> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None);
    socket.map_err(|why| ProbeError::System { what: "the interfaces", why: why.into() })
}

/// The compiled programs lack an expected part.
fn lacks(what: &'static str) -> ProbeError {
    ProbeError::Refused { what, why: "the compiled programs are of another version".to_owned() }
}
