//! Finds flows whose rate jumped, in memory bounded by the number of active flows.

use queuescope_wire::{FlowId, Nanos};

/// The highest jump of each flow's rate before and during a burst: the ratio of the bytes that came in one time window to those in the
/// window before (ConQuest section 3.3, last paragraph).
///
/// The paper compares snapshots, which count departures. Departures also change as other flows start and stop, so a flow of constant
/// rate seems to jump when a burst ends. Here windows are by the time of arrival, and counts are exact. For a sketch, see
/// [`queuescope_sketch::ConQuest::jump`].
#[derive(Debug)]
pub struct Ramps {
    window: Nanos,
    flows: Vec<FlowRate>,
    /// Ids of flows that jumped since the last burst ended, each once; some ids may have been released since.
    jumped: Vec<FlowId>,
    /// No flow counts as new before this window, because at the start of a stream all flows are new.
    settled: Option<u64>,
}

/// A change of a flow's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateChange {
    /// The flow is new: it had no packet before, or so long ago that its id was released.
    New,
    /// The ratio of the bytes in a window to those in the window before.
    Ramped(f64),
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowRate {
    /// The number of the window of its last packet plus 1; 0 if there was no packet.
    window: u64,
    /// Bytes that came in that window, and in the one before.
    newest: u64,
    before: u64,
    /// Whether the flow appeared in the last few windows, and its highest jump of this burst.
    is_new: bool,
    factor: f32,
    /// Whether the id is in `jumped`.
    is_listed: bool,
}

/// The number of windows at the start of a stream in which no flow counts as new.
const UNSETTLED: u64 = 3;

/// The smallest number of bytes in its newest window for which a flow can jump: ten full packets. With fewer packets, one more or less
/// would be a jump.
const LEAST: u64 = 15_000;

impl Ramps {
    /// Creates a detector with windows of this length.
    pub fn new(window: Nanos) -> Self {
        Self { window: window.max(Nanos(1)), flows: Vec::new(), jumped: Vec::new(), settled: None }
    }

    /// Sets a longer window. The rates so far are discarded, but not which flows are known.
    pub fn widen(&mut self, window: Nanos) {
        self.window = window.max(Nanos(1));
        self.settled = None;
        self.jumped.clear();
        // A window number of 1 marks a flow as known for long.
        for flow in &mut self.flows {
            *flow = FlowRate { window: flow.window.min(1), ..FlowRate::default() };
        }
    }

    /// A packet of a flow came. A flow with fewer than `least` bytes in a window does not jump.
    #[inline]
    pub fn came(&mut self, flow: FlowId, size: u32, at: Nanos, least: u64) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, FlowRate::default());
        }
        let window =
            if self.window.0.is_power_of_two() { at.0 >> self.window.0.trailing_zeros() } else { at.0 / self.window.0 };
        let flow_rate = &mut self.flows[flow.index()];
        // Packets may be reported out of order; an earlier one counts in the newest window.
        if flow_rate.window < window + 1 {
            self.turn(flow, window, least);
        }
        self.flows[flow.index()].newest += u64::from(size);
    }

    /// Starts a new window of a flow, and judges the one that is over.
    fn turn(&mut self, flow: FlowId, window: u64, least: u64) {
        let settled = *self.settled.get_or_insert(window + UNSETTLED);
        let flow_rate = &mut self.flows[flow.index()];
        if flow_rate.newest >= least.max(LEAST) && flow_rate.window > settled {
            let factor = match flow_rate.before {
                0 => 0.0,
                before => flow_rate.newest as f32 / before as f32,
            };
            if (factor >= 2.0 || flow_rate.is_new) && flow_rate.factor == 0.0 {
                if !std::mem::replace(&mut flow_rate.is_listed, true) {
                    self.jumped.push(flow);
                }
                flow_rate.factor = f32::MIN_POSITIVE;
            }
            if factor >= 2.0 {
                flow_rate.factor = flow_rate.factor.max(factor);
            }
        }
        flow_rate.is_new =
            if flow_rate.window == 0 { window >= settled } else { flow_rate.is_new && window < flow_rate.window + 2 };
        flow_rate.before = if flow_rate.window == window { flow_rate.newest } else { 0 };
        (flow_rate.window, flow_rate.newest) = (window + 1, 0);
    }

    /// The flow's id is released.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(flow_rate) = self.flows.get_mut(flow.index()) {
            *flow_rate = FlowRate { is_listed: flow_rate.is_listed, ..FlowRate::default() };
        }
    }

    /// Returns the flows that jumped since the last call, at the end of a burst, each with its highest jump.
    pub fn take(&mut self) -> Vec<(FlowId, RateChange)> {
        let flows = &mut self.flows;
        let jump = |flow: FlowId| {
            let flow_rate = flows.get_mut(flow.index())?;
            flow_rate.is_listed = false;
            let factor = std::mem::take(&mut flow_rate.factor);
            let jump = if factor >= 2.0 { RateChange::Ramped(f64::from(factor)) } else { RateChange::New };
            (factor > 0.0).then_some((flow, jump))
        };
        self.jumped.drain(..).filter_map(jump).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Sends packets of 1000 bytes evenly in each window of 1000 ns, with their numbers from `rates`, and returns the jumps.
    fn jumps(rates: &[(u32, &[u64])]) -> BTreeMap<u32, RateChange> {
        let mut ramps = Ramps::new(Nanos(1_000));
        let windows = rates.iter().map(|(_, rates)| rates.len()).max().unwrap();
        for window in 0..windows as u64 {
            let mut packets = Vec::new();
            for (flow, rates) in rates {
                let count = rates.get(window as usize).copied().unwrap_or(0);
                packets.extend((0..count).map(|n| (window * 1_000 + n * 1_000 / count, *flow)));
            }
            packets.sort_unstable();
            packets.iter().for_each(|(at, flow)| ramps.came(FlowId(*flow), 1_000, Nanos(*at), 0));
        }
        ramps.take().into_iter().map(|(flow, jump)| (flow.0, jump)).collect()
    }

    #[test]
    fn steady_flows_do_not_jump_and_ramping_ones_do() {
        let steady = [20; 12];
        let jittery = [19, 21, 20, 30, 19, 21, 20, 22, 31, 19, 20, 21];
        let ramping = [20, 20, 20, 20, 20, 20, 60, 61, 60, 60, 60, 60];
        let falling = [90, 90, 90, 90, 90, 90, 10, 10, 10, 10, 10, 10];
        let few = [1, 1, 1, 1, 1, 4, 8, 1, 3, 1, 1, 1];
        let jumps = jumps(&[(0, &steady), (1, &jittery), (2, &ramping), (3, &falling), (4, &few)]);
        assert_eq!(jumps, BTreeMap::from([(2, RateChange::Ramped(3.0))]));
    }

    #[test]
    fn a_flow_is_new_once() {
        let new = [0, 0, 0, 0, 0, 0, 40, 40, 40, 40];
        let resumed = [20, 20, 20, 20, 0, 0, 20, 20, 20, 20];
        let growing = [0, 0, 0, 0, 0, 20, 80, 80, 80, 80];
        let jumps = jumps(&[(0, &new), (1, &resumed), (2, &growing)]);
        assert_eq!(jumps, BTreeMap::from([(0, RateChange::New), (2, RateChange::Ramped(4.0))]));
    }

    #[test]
    fn known_flows_stay_known_in_wider_windows() {
        let mut ramps = Ramps::new(Nanos(1_000));
        let send = |ramps: &mut Ramps, flow, at: u64| {
            (0..20).for_each(|n| ramps.came(FlowId(flow), 1_000, Nanos(at + n), 0));
        };
        send(&mut ramps, 0, 1_000_000);
        ramps.widen(Nanos(2_000));
        (0..40).for_each(|window| send(&mut ramps, 1, 1_002_000 + window * 2_000));
        for at in [1_060_000, 1_062_000, 1_064_000] {
            send(&mut ramps, 0, at);
            send(&mut ramps, 2, at);
        }
        assert_eq!(ramps.take(), [(FlowId(2), RateChange::New)]);
    }

    #[test]
    fn a_jump_is_returned_once() {
        let mut ramps = Ramps::new(Nanos(1_000));
        let send = |ramps: &mut Ramps, window: u64, count: u64| {
            (0..count).for_each(|n| ramps.came(FlowId(0), 1_000, Nanos(window * 1_000 + n), 0));
        };
        (0..6).for_each(|window| send(&mut ramps, window, 20));
        send(&mut ramps, 6, 100);
        send(&mut ramps, 7, 100);
        assert_eq!(ramps.take(), [(FlowId(0), RateChange::Ramped(5.0))]);
        (8..12).for_each(|window| send(&mut ramps, window, 100));
        assert_eq!(ramps.take(), []);
        ramps.forget(FlowId(0));
        assert_eq!(ramps.take(), []);
    }
}
