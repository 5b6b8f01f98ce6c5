//! P4air on a router's interface (`bpf/p4air.bpf.c`; Turkovic and Kuipers, ICNP 2020): programs in the kernel find the group of each flow, choose
//! the queue of its packets and act on flows above their share; a qdisc of this module has the queues.
//!
//! The programs are attached while [`P4air`] exists, and vanish with its process. They change nothing until [`P4air::begin`], which replaces
//! the interface's default qdisc. A qdisc does not vanish with a process, so a second process, the [`guard`], removes it if this one is killed.

mod division;
mod guard;
mod records;
mod shaper;
#[cfg(test)]
mod tests;

pub use division::P4airDivision;
pub use guard::{GuardCommand, guard};
pub use records::{P4airCounters, P4airFlow, P4airGroup};
pub use shaper::Shape;

use crate::capabilities::raised;
use crate::probe::{namespace, types};
use crate::{Interfaces, Never, ProbeError};
use aya::maps::{Array, MapData, MapError, PerCpuArray};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{BtfTracePoint, LinkOrder, Program, SchedClassifier, TcAttachType};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use guard::Guard;
use queuescope_wire::{ByteCount, Nanos, Rate};
use shaper::Shaper;
use std::io;

/// The compiled programs; their source is in `bpf`.
static PROGRAMS: &[u8] = include_bytes_aligned!("../bpf/p4air.bpf.o");
/// The kernels that can run them.
const TCX: &str = "Linux 6.6 or later, with CONFIG_NET_XGRESS";

/// P4air on an interface, until it is dropped.
pub struct P4air {
    bpf: Ebpf,
    params: P4airParams,
    namespace: u32,
    index: u32,
    framed: bool,
    interface: String,
    /// Until when the kernel acts.
    until: Nanos,
    /// The queues, while there are any.
    shaped: Option<Shaped>,
}

/// The queues, and the process that removes them if this one is killed.
#[derive(Debug)]
struct Shaped {
    shaper: Shaper,
    guard: Guard,
    command: GuardCommand,
}

/// The parameters of P4air on an interface.
///
/// ```
/// use queuescope_live::P4airParams;
/// use queuescope_wire::{ByteCount, Rate};
///
/// let rate = Rate::from_bits_per_second(100_000_000).expect("it is above zero");
/// let params = P4airParams::new(rate);
/// assert_eq!((params.queues, params.buffer), (32, ByteCount(1_250_000)));
/// assert_eq!(params.long_lived(), 29);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct P4airParams {
    /// The rate at which the interface sends, in bytes of frames. It should be just below what the link behind it carries, so that packets wait here.
    pub rate: Rate,
    /// All queues: 32, as in the paper. Three of them are for ants, for mice, and for packets of delay-based flows above their share.
    pub queues: u32,
    /// The sum of the limits of all queues: what the link sends in 100 ms. A queue holds a super-packet at least.
    pub buffer: ByteCount,
    /// What is done to flows above their share, by [`P4airGroup::LONG_LIVED`]: packets are delayed, dropped, dropped, and the receive window in ACKs is
    /// lowered.
    pub actions: [P4airAction; 4],
    /// Whether each packet above the share is dropped, or only the first of a round trip, which is the default: one drop halves a window.
    pub each: bool,
    /// By how many eighths the share of a flow is larger than `rate x RTT / flows`: 4. The paper postpones actions so that the link stays busy; its
    /// power of two is up to twice the exact share.
    pub slack: u32,
    /// The round-trip time of a flow whose handshake was not seen: 100 ms.
    pub default_rtt: Nanos,
}

/// What is done to a flow above its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum P4airAction {
    /// Nothing.
    Nothing,
    /// A packet is dropped.
    Drop,
    /// Packets go to the queue that is served last, until the round trip ends.
    Delay,
    /// The receive window in ACKs is lowered to the share.
    Window,
}

/// Why P4air cannot run on an interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum P4airError {
    /// The kernel refused a program or a map.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The number of queues is impossible.
    #[error("P4air has 7 to {most} queues: three for short-lived and delayed flows, and one at least for each of the four groups", most = P4airParams::MOST_QUEUES)]
    Queues,
    /// The interface has a qdisc that somebody has chosen.
    #[error(
        "{interface} has the qdisc {kind}, which is not the kernel's default; P4air would replace it: `tc qdisc del dev {interface} root` removes it"
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The kind of its root qdisc.
        kind: String,
    },
    /// Another process runs P4air there.
    #[error("P4air runs on {interface} already")]
    Busy {
        /// The interface.
        interface: String,
    },
    /// The kernel lacks HTB or FIFO.
    #[error("this kernel has no qdisc {kind}; P4air's queues are classes of HTB with a FIFO each")]
    NoQdisc {
        /// The kind.
        kind: &'static str,
    },
    /// The kernel refused a qdisc or a class.
    #[error("cannot {what} of {interface}: {why}")]
    Qdisc {
        /// The operation.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The reason.
        why: io::Error,
    },
    /// The process that removes the qdisc after a crash did not start, so nothing was changed.
    #[error("cannot start the process that removes the queues if this one is killed: {why}")]
    Guard {
        /// The reason.
        why: io::Error,
    },
}

impl P4airAction {
    fn number(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Drop => 1,
            Self::Delay => 2,
            Self::Window => 3,
        }
    }
}

impl P4airParams {
    /// The largest number of queues.
    pub const MOST_QUEUES: u32 = 64;
    /// Queues that are not for a group of long-lived flows.
    pub const OTHERS: u32 = 3;
    /// The size of a packet, in which shares are counted.
    const PACKET: ByteCount = ByteCount(1500);

    /// The defaults at a rate.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            queues: 32,
            buffer: rate.bytes_in(Nanos(100_000_000)),
            actions: [P4airAction::Delay, P4airAction::Drop, P4airAction::Drop, P4airAction::Window],
            each: false,
            slack: 4,
            default_rtt: Nanos(100_000_000),
        }
    }

    /// The queues of long-lived flows.
    pub fn long_lived(&self) -> u32 {
        self.queues.saturating_sub(Self::OTHERS)
    }

    /// The qdisc and its classes.
    pub fn shape(&self) -> Shape {
        Shape::new(self.rate, self.queues, self.buffer)
    }
}

impl P4air {
    /// Begins to find the groups of flows that leave by an interface of this thread's network namespace. Nothing is changed yet. Flows in `never` are
    /// never acted on, but have groups and queues as others do.
    ///
    /// # Errors
    /// Fails if the interface does not exist, the number of queues is impossible, or the kernel refuses the programs. Then nothing stays attached.
    pub fn attach(interface: &str, params: P4airParams, never: &Never) -> Result<Self, P4airError> {
        if !(P4airParams::OTHERS + 4..=P4airParams::MOST_QUEUES).contains(&params.queues) {
            return Err(P4airError::Queues);
        }
        let (namespace, index) = (namespace()?, crate::probe::index(interface)?);
        let framed = Interfaces::open().and_then(|interfaces| interfaces.is_framed(index));
        let framed = framed.map_err(|why| ProbeError::System { what: "the kind of the interface", why })?;
        let types = types()?;
        let bpf = raised(|| made(&types))?;
        let (interface, until) = (interface.to_owned(), Nanos(0));
        let mut p4air = Self { bpf, params, namespace, index, framed, interface, until, shaped: None };
        p4air.write_division()?;
        p4air.set_never(never)?;
        p4air.configure()?;
        raised(|| p4air.load(&types))?;
        raised(|| p4air.attach_programs())?;
        Ok(p4air)
    }

    /// Makes the queues, so that packets go to them and flows are acted on, until the time of [`renew`](Self::renew). `guard` is the command whose process removes the
    /// queues if this one is killed. Nothing happens if the queues exist already.
    ///
    /// # Errors
    /// Fails if the interface has a qdisc that is not the default, or if another process runs P4air there; returns the errors of the kernel.
    pub fn begin(&mut self, guard: &GuardCommand) -> Result<(), P4airError> {
        if self.shaped.is_some() {
            return Ok(());
        }
        let shaper = Shaper::new(&self.interface, self.index)?;
        shaper.check()?;
        let started = Guard::start(guard, self.index)?;
        let Some(guard_process) = started else { return Err(P4airError::Busy { interface: self.interface.clone() }) };
        // From here on, dropping this removes the queues.
        self.shaped = Some(Shaped { shaper, guard: guard_process, command: guard.clone() });
        let made = self.shaped.as_ref().map_or(Ok(()), |shaped| shaped.shaper.make(&self.params.shape()));
        let begun = made.and_then(|()| self.configure().map_err(P4airError::from));
        if begun.is_err() {
            // The first error is the one to report.
            let _ = self.end();
        }
        begun
    }

    /// Chooses queues and acts on flows until this time of `CLOCK_MONOTONIC`, unless it is called again. After it, packets pass one queue at the same
    /// rate. Starts the guard again if it was killed; returns whether it was.
    ///
    /// # Errors
    /// Returns the errors of the kernel, and of starting the guard.
    pub fn renew(&mut self, until: Nanos) -> Result<bool, P4airError> {
        self.until = until;
        self.configure()?;
        let Some(shaped) = &mut self.shaped else { return Ok(false) };
        if shaped.guard.is_alive() {
            return Ok(false);
        }
        if let Some(guard) = Guard::start(&shaped.command, self.index)? {
            shaped.guard = guard;
        }
        Ok(true)
    }

    /// Removes the queues; the interface has its default qdisc again. The programs stay, and change nothing.
    ///
    /// # Errors
    /// Returns the errors of the kernel. The guard removes the queues then.
    pub fn end(&mut self) -> Result<(), P4airError> {
        let Some(shaped) = self.shaped.take() else { return Ok(()) };
        let Shaped { shaper, guard, .. } = shaped;
        let configured = self.configure();
        shaper.remove()?;
        guard.dismiss();
        Ok(configured?)
    }

    /// Whether there are queues, so that packets are changed.
    pub fn is_real(&self) -> bool {
        self.shaped.is_some()
    }

    /// The counts so far.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn counters(&self) -> Result<P4airCounters, P4airError> {
        let map: PerCpuArray<&MapData, [u64; P4airCounters::WORDS]> = of(self.bpf.map("counters"))?;
        let values = map.get(&0, 0).map_err(|why| refused("read what P4air counted", &why))?;
        Ok(P4airCounters::from_processors(&values))
    }

    /// The flows of each group and their queues.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn division(&self) -> Result<P4airDivision, P4airError> {
        let map: Array<&MapData, [u32; P4airDivision::WORDS]> = of(self.bpf.map("division"))?;
        let words = map.get(&0, 0).map_err(|why| refused("read the queues of groups", &why))?;
        Ok(P4airDivision::from_words(&words))
    }

    /// The flows that have not ended, in no order. This reads the whole table, in about two milliseconds.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn flows(&self) -> Result<Vec<P4airFlow>, P4airError> {
        let map: Array<&MapData, [u64; records::LINE]> = of(self.bpf.map("flows"))?;
        let mut flows = Vec::new();
        for line in 0..map.len() {
            let words = map.get(&line, 0).map_err(|why| refused("read the flows of P4air", &why))?;
            flows.extend(P4airFlow::of_line(&words));
        }
        Ok(flows)
    }

    fn configure(&mut self) -> Result<(), ProbeError> {
        self.configure_for(if self.shaped.is_some() { shaper::HANDLE } else { 0 })
    }

    /// Writes the configuration, for the queues of the qdisc with this number; 0 for none.
    fn configure_for(&mut self, handle: u16) -> Result<(), ProbeError> {
        let Self { params, namespace, index, framed, until, .. } = self;
        let packet_time = P4airParams::PACKET.0.saturating_mul(8_000_000_000 << 10) / params.rate.bits_per_second();
        let ticks = u32::try_from(params.default_rtt.0 >> 10).unwrap_or(u32::MAX).max(1);
        let halves = |value: u64| [value as u32, (value >> 32) as u32];
        let ([until, until_above], [time, time_above]) = (halves(until.0), halves(packet_time));
        let [delay_based, loss_delay, loss_based, model_based] = params.actions.map(P4airAction::number);
        let flags = [u32::from(*framed), u32::from(params.each)];
        // `struct config` of `bpf/p4air.h`.
        #[rustfmt::skip]
        let words = [
            *namespace, *index,
            until, until_above,
            time, time_above,
            handle.into(), u32::from(shaper::FIRST_CLASS),
            flags[0], flags[1],
            ticks, params.slack,
            delay_based, loss_delay, loss_based, model_based,
        ];
        let mut config: Array<&mut MapData, [u32; 16]> = of(self.bpf.map_mut("config"))?;
        config.set(0, words, 0).map_err(|why| refused("configure P4air", &why))
    }

    fn write_division(&mut self) -> Result<(), ProbeError> {
        let words = P4airDivision::new(self.params.long_lived()).words();
        let mut map: Array<&mut MapData, [u32; P4airDivision::WORDS]> = of(self.bpf.map_mut("division"))?;
        map.set(0, words, 0).map_err(|why| refused("divide the queues", &why))
    }

    fn set_never(&mut self, never: &Never) -> Result<(), ProbeError> {
        let mut map: Array<&mut MapData, [u64; Never::WORDS]> = of(self.bpf.map_mut("never"))?;
        map.set(0, never.words(), 0).map_err(|why| refused("set the flows that are never acted on", &why))
    }

    fn load(&mut self, types: &Btf) -> Result<(), ProbeError> {
        for name in ["p4air", "acks"] {
            let program: &mut SchedClassifier = program_of(&mut self.bpf, name)?;
            program.load().map_err(|why| refused("load a classifier of P4air", &why))?;
        }
        let program: &mut BtfTracePoint = program_of(&mut self.bpf, "left_queue")?;
        program.load("qdisc_dequeue", types).map_err(|why| refused("load a program of tracing", &why))
    }

    fn attach_programs(&mut self) -> Result<(), ProbeError> {
        let program: &mut BtfTracePoint = program_of(&mut self.bpf, "left_queue")?;
        program.attach().map_err(|why| refused("attach to a tracepoint of the kernel", &why))?;
        for (name, way) in [("acks", TcAttachType::Ingress), ("p4air", TcAttachType::Egress)] {
            let program: &mut SchedClassifier = program_of(&mut self.bpf, name)?;
            // Before a probe: it must not count what is dropped here as dropped by the queue.
            let options = TcAttachOptions::TcxOrder(LinkOrder::first());
            let attached = program.attach_with_options(&self.interface, way, options);
            attached.map_err(|why| ProbeError::since("attach before the queue of an interface (tcx)", TCX, &why))?;
        }
        Ok(())
    }
}

impl Drop for P4air {
    fn drop(&mut self) {
        // If this is refused, the guard removes the queues.
        let _ = self.end();
    }
}

impl std::fmt::Debug for P4air {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { interface, params, shaped, .. } = self;
        f.debug_struct("P4air")
            .field("interface", interface)
            .field("params", params)
            .field("is_real", &shaped.is_some())
            .finish_non_exhaustive()
    }
}

/// The programs with their maps, not loaded yet.
fn made(types: &Btf) -> Result<Ebpf, ProbeError> {
    let mut loader = EbpfLoader::new();
    loader.btf(Some(types));
    loader.load(PROGRAMS).map_err(|why| refused("make the maps of P4air", &why))
}

fn program_of<'a, P>(object: &'a mut Ebpf, name: &str) -> Result<&'a mut P, ProbeError>
where
    &'a mut P: TryFrom<&'a mut Program>,
{
    object.program_mut(name).and_then(|program| program.try_into().ok()).ok_or_else(lacks)
}

/// A map, as its type.
fn of<M, T: TryFrom<M, Error = MapError>>(map: Option<M>) -> Result<T, ProbeError> {
    map.ok_or_else(lacks)?.try_into().map_err(|why| refused("use a map of P4air", &why))
}

fn refused(what: &'static str, why: &(dyn std::error::Error + 'static)) -> ProbeError {
    ProbeError::refused(what, why)
}

fn lacks() -> ProbeError {
    let why = "the compiled programs are of another version".to_owned();
    ProbeError::Refused { what: "find a part of the programs of P4air", why }
}
