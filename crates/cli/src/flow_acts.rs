//! Actions on flows for `agent`: what a coordinator's programs ask for, by a program of the kernel before the queue of an interface.

use crate::args::FlowActing;
use crate::terminal::note;
use anyhow::{Error, Result};
use queuescope_fleet::act::{Action, Flow, Order};
use queuescope_fleet::agent::{ActCounts, Actor, ActorError, Acts, Touched};
use queuescope_live::{FlowAction, FlowActs, FlowMatch, FlowOrder, Never, ProbeError, now};
use queuescope_monitor::{ActError, flows};
use queuescope_report::format::count;
use queuescope_wire::{ByteCount, Family, FlowKey, Nanos};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How long the kernel acts without a renewal. The agent renews several times a second: if it is stopped or hangs, acting must end.
const LEASE: Nanos = Nanos(2_000_000_000);
/// The size of the bucket of a limit: ten large packets, or what the rate sends in 5 ms.
const BURST: ByteCount = ByteCount(15_000);

/// What control programs may do, if the options allow anything; `coordinator` is its address, which is never acted on.
///
/// # Errors
/// Fails if an expression is wrong, or if the kernel or the user's rights do not allow acting.
pub fn allowed(args: &FlowActing, coordinator: &str) -> Result<Option<Acts>> {
    let Some(interface) = &args.act else { return Ok(None) };
    let own = coordinator.rsplit_once(':').map(|(_, port)| format!("tcp port {port}"));
    let never: Vec<_> = args.never.iter().cloned().chain(own).collect();
    let (never, only) = (listed("--never", &never)?, listed("--act-only", &args.act_only)?);
    let actor = KernelActor { acts: FlowActs::prepare(interface, &never, &only)?, never, only, open: BTreeMap::new() };
    let how = if args.for_real { "for real, if they say so" } else { "as dry runs: --for-real is not given" };
    note(&format!("control programs may act on flows of {interface}, {how}"));
    Ok(Some(Acts::new(Box::new(actor), args.limits(), Box::new(note))))
}

/// Notes what became of all actions.
pub fn note_counts(counts: ActCounts) {
    let ActCounts { applied, dry, refused, .. } = counts;
    if applied + dry + refused > 0 {
        let [applied, dry, refused] = [applied, dry, refused].map(count);
        note(&format!("control programs asked for actions: {applied} taken, {dry} as dry runs, {refused} refused"));
    }
}

/// The flows of expressions of an option.
fn listed(option: &str, expressions: &[String]) -> Result<Never> {
    flows(expressions).map_err(|error| match error {
        ActError::Exempt { text, why } => Error::new(why).context(format!("cannot use {option} '{text}'")),
        other => Error::new(other).context(format!("cannot use {option}")),
    })
}

/// Acts by the kernel.
#[derive(Debug)]
struct KernelActor {
    acts: FlowActs,
    never: Never,
    only: Never,
    /// By the numbers of actions: their places in the kernel, and what the kernel has.
    open: BTreeMap<u64, (usize, FlowOrder)>,
}

impl Actor for KernelActor {
    fn begin(&mut self, id: u64, order: &Order) -> Result<(), ActorError> {
        // Of flows that are named in part, the kernel decides packet by packet.
        if let Some(key) = key(&order.flow) {
            let not_allowed = |why: &str| Err(ActorError::NotAllowed(why.to_owned()));
            if self.never.holds(&key) {
                return not_allowed("this host never acts on the flow (--never)");
            }
            if !self.only.holds(&key) {
                return not_allowed("the flow is not among those that this host allows (--act-only)");
            }
        }
        let order = kernel_order(order);
        match self.acts.begin(&order).map_err(failed)? {
            Some(place) => _ = self.open.insert(id, (place, order)),
            None => return Err(ActorError::Failed(format!("the kernel has {} actions already", FlowActs::MOST))),
        }
        Ok(())
    }

    fn extend(&mut self, id: u64, time: Nanos) -> Result<(), ActorError> {
        let Some((place, order)) = self.open.get_mut(&id) else { return Ok(()) };
        let longer = FlowOrder { until: now().saturating_add(time), ..*order };
        self.acts.extend(*place, &longer).map_err(failed)?;
        *order = longer;
        Ok(())
    }

    fn end(&mut self, id: u64) -> Result<(), ActorError> {
        let Some((place, _)) = self.open.remove(&id) else { return Ok(()) };
        self.acts.end(place).map_err(failed)
    }

    fn touched(&self, id: u64) -> Touched {
        let outcome = self.open.get(&id).and_then(|(place, _)| self.acts.outcome(*place).ok()).unwrap_or_default();
        Touched { touched: outcome.touched(), packets: outcome.met }
    }

    fn renew(&mut self) -> Result<(), ActorError> {
        self.acts.renew(now().saturating_add(LEASE)).map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
fn failed(error: ProbeError) -> ActorError {
    ActorError::Failed(error.to_string())
}

fn kernel_order(order: &Order) -> FlowOrder {
    let Flow { src, dst, src_port, dst_port, protocol } = order.flow;
    let action = match order.action {
        Action::Mark => FlowAction::Mark,
        Action::Drop => FlowAction::Drop,
        Action::Limit(rate) => {
            let burst = ByteCount(BURST.0.max(rate.bits_per_second() / 8 / 200));
            FlowAction::Limit { rate, burst }
        }
    };
    let flow = FlowMatch { src, dst, src_port, dst_port, protocol };
    FlowOrder { flow, action, until: now().saturating_add(order.time), dry: order.dry }
}

/// The key of a flow that is named in full.
fn key(flow: &Flow) -> Option<FlowKey> {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let (src, dst) = (flow.src?, flow.dst?);
    Some(FlowKey {
        src: bits(src),
        dst: bits(dst),
        src_port: flow.src_port?,
        dst_port: flow.dst_port?,
        protocol: flow.protocol?,
        family: if src.is_ipv4() { Family::V4 } else { Family::V6 },
        ..FlowKey::default()
    })
}
