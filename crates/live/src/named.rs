//! Acting on named flows before the queue of an interface (`bpf/named.bpf.c`).
//!
//! [`Probe::act`](crate::Probe::act) acts on flows that the probe itself finds; here, the caller names them. Nothing is attached to the interface
//! while there is no order, and nothing stays there when the process ends, even if it is killed.

mod order;

pub use order::{FlowAction, FlowMatch, FlowOrder, FlowOutcome};

use crate::capabilities::raised;
use crate::probe::{index, types};
use crate::{Interfaces, Never, ProbeError};
use aya::maps::{Array, MapData, MapError, PerCpuArray};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use queuescope_wire::Nanos;
use std::fmt;

/// The compiled program; its source is in `bpf`.
static PROGRAM: &[u8] = include_bytes_aligned!("../bpf/named.bpf.o");
/// Its name.
const NAME: &str = "named";
/// The kernels that can run it.
const TCX: &str = "Linux 6.6 or later, with CONFIG_NET_XGRESS";

/// Orders to mark, drop or limit named flows that an interface sends.
///
/// An order ends by itself in the kernel, at its own end or at the end of the lease, whichever is first: also if this process hangs.
pub struct FlowActs {
    bpf: Ebpf,
    interface: String,
    framed: bool,
    /// The program on the interface, while there are orders.
    link: Option<SchedClassifierLinkId>,
    /// Which places have orders.
    used: [bool; Self::MOST],
    lease: Nanos,
}

impl FlowActs {
    /// The largest number of orders.
    pub const MOST: usize = 64;

    /// Prepares acting on flows of an interface of this thread's network namespace: the kernel verifies the program, and nothing is attached yet.
    /// Packets of flows in `never`, and of flows that are not in `only`, are left alone whatever orders say.
    ///
    /// # Errors
    /// Fails if the interface does not exist, or if the kernel refuses the program.
    pub fn prepare(interface: &str, never: &Never, only: &Never) -> Result<Self, ProbeError> {
        let number = index(interface)?;
        let framed = Interfaces::open().and_then(|interfaces| interfaces.is_framed(number));
        let framed = framed.map_err(|why| ProbeError::System { what: "the kind of the interface", why })?;
        let types = types()?;
        let bpf = raised(|| loaded(&types))?;
        let interface = interface.to_owned();
        let mut acts = Self { bpf, interface, framed, link: None, used: [false; Self::MOST], lease: Nanos(0) };
        acts.set_lists(never, only)?;
        Ok(acts)
    }

    /// Follows all orders until this time of `CLOCK_MONOTONIC`, unless it is called again. Without a call, none is followed.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn renew(&mut self, lease: Nanos) -> Result<(), ProbeError> {
        self.lease = lease;
        self.write_here()
    }

    /// Begins to follow an order. Returns its place, or `None` if there are [`MOST`](Self::MOST) orders already.
    ///
    /// # Errors
    /// Returns the errors of the kernel. Then the order is not followed.
    pub fn begin(&mut self, order: &FlowOrder) -> Result<Option<usize>, ProbeError> {
        let Some(place) = self.used.iter().position(|is_used| !is_used) else { return Ok(None) };
        self.fill(place, order)?;
        if let Err(why) = self.attach() {
            self.end(place)?;
            return Err(why);
        }
        Ok(Some(place))
    }

    /// Changes the end of an order.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn extend(&mut self, place: usize, order: &FlowOrder) -> Result<(), ProbeError> {
        self.write(place as u32, order, order.until)
    }

    /// Ends an order. The program leaves the interface with the last one.
    ///
    /// # Errors
    /// Returns the errors of the kernel. The order then ends at its time, or with the lease.
    pub fn end(&mut self, place: usize) -> Result<(), ProbeError> {
        if let Some(used) = self.used.get_mut(place) {
            *used = false;
        }
        if self.used.iter().all(|is_used| !is_used) {
            self.detach()?;
        }
        self.write(place as u32, &FlowOrder::default(), Nanos(0))?;
        self.write_here()
    }

    /// What became of the packets of an order so far.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn outcome(&self, place: usize) -> Result<FlowOutcome, ProbeError> {
        let outcomes: PerCpuArray<&MapData, [u64; FlowOutcome::WORDS]> = map(self.bpf.map("outcomes"))?;
        let values = outcomes.get(&(place as u32), 0).map_err(|why| refused("read the outcomes of packets", &why))?;
        Ok(FlowOutcome::from_processors(&values))
    }

    /// Whether the program is on the interface.
    pub fn is_attached(&self) -> bool {
        self.link.is_some()
    }

    fn set_lists(&mut self, never: &Never, only: &Never) -> Result<(), ProbeError> {
        let mut lists: Array<&mut MapData, [u64; Never::WORDS]> = map(self.bpf.map_mut("lists"))?;
        let set = lists.set(0, never.words(), 0).and_then(|()| lists.set(1, only.words(), 0));
        set.map_err(|why| refused("set the flows that may be acted on", &why))
    }

    /// Writes an order to a place that is free.
    fn fill(&mut self, place: usize, order: &FlowOrder) -> Result<(), ProbeError> {
        let number = place as u32;
        // The kernel may look at the place meanwhile: it must not see a half of an order.
        self.write(number, order, Nanos(0))?;
        let mut due: Array<&mut MapData, u64> = map(self.bpf.map_mut("due"))?;
        due.set(number, 0, 0).map_err(|why| refused("clear a limit", &why))?;
        let mut outcomes: PerCpuArray<&mut MapData, [u64; FlowOutcome::WORDS]> = map(self.bpf.map_mut("outcomes"))?;
        let processors = outcomes.get(&number, 0).map_err(|why| refused("clear the outcomes of packets", &why))?.len();
        let none = aya::maps::PerCpuValues::try_from(vec![[0; FlowOutcome::WORDS]; processors]);
        let none = none.map_err(|why| ProbeError::System { what: "the number of processors", why })?;
        outcomes.set(number, none, 0).map_err(|why| refused("clear the outcomes of packets", &why))?;
        self.write(number, order, order.until)?;
        self.used[place] = true;
        self.write_here()
    }

    fn write(&mut self, place: u32, order: &FlowOrder, until: Nanos) -> Result<(), ProbeError> {
        let mut orders: Array<&mut MapData, [u64; FlowOrder::WORDS]> = map(self.bpf.map_mut("orders"))?;
        orders.set(place, order.words(until), 0).map_err(|why| refused("set an action on a flow", &why))
    }

    /// Writes the lease, and how many places the kernel has to look at.
    fn write_here(&mut self) -> Result<(), ProbeError> {
        let used = self.used.iter().rposition(|is_used| *is_used).map_or(0, |last| last as u64 + 1);
        let words = [self.lease.0, used | u64::from(self.framed) << 32];
        let mut here: Array<&mut MapData, [u64; 2]> = map(self.bpf.map_mut("here"))?;
        here.set(0, words, 0).map_err(|why| refused("set until when flows are acted on", &why))
    }

    fn attach(&mut self) -> Result<(), ProbeError> {
        if self.link.is_some() {
            return Ok(());
        }
        // Before a probe: it must not count what is dropped here as dropped by the queue.
        let options = TcAttachOptions::TcxOrder(LinkOrder::first());
        let program = program(&mut self.bpf)?;
        let link = raised(|| program.attach_with_options(&self.interface, TcAttachType::Egress, options));
        let failed = |why| ProbeError::since("attach before the queue of an interface (tcx)", TCX, &why);
        self.link = Some(link.map_err(failed)?);
        Ok(())
    }

    fn detach(&mut self) -> Result<(), ProbeError> {
        let Some(link) = self.link.take() else { return Ok(()) };
        program(&mut self.bpf)?.detach(link).map_err(|why| refused("detach from the interface", &why))
    }
}

impl fmt::Debug for FlowActs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let orders = self.used.iter().filter(|is_used| **is_used).count();
        f.debug_struct("FlowActs").field("interface", &self.interface).field("orders", &orders).finish_non_exhaustive()
    }
}

/// The program with its maps, verified by the kernel.
fn loaded(types: &aya::Btf) -> Result<Ebpf, ProbeError> {
    let mut loader = EbpfLoader::new();
    loader.btf(Some(types));
    let mut bpf = loader.load(PROGRAM).map_err(|why| refused("make the maps for acting on flows", &why))?;
    program(&mut bpf)?.load().map_err(|why| refused("load a classifier", &why))?;
    Ok(bpf)
}

fn program(bpf: &mut Ebpf) -> Result<&mut SchedClassifier, ProbeError> {
    bpf.program_mut(NAME).and_then(|program| program.try_into().ok()).ok_or_else(lacks)
}

/// A map, as its type.
fn map<M, T: TryFrom<M, Error = MapError>>(map: Option<M>) -> Result<T, ProbeError> {
    map.ok_or_else(lacks)?.try_into().map_err(|why| refused("use a map for acting on flows", &why))
}

fn refused(what: &'static str, why: &(dyn std::error::Error + 'static)) -> ProbeError {
    ProbeError::refused(what, why)
}

fn lacks() -> ProbeError {
    let why = "the compiled program is of another version".to_owned();
    ProbeError::Refused { what: "find a part of the program for acting on flows", why }
}

#[cfg(test)]
mod tests;
