//! Whose rate jumped, in memory bounded by the flows that are active.

use queuescope_wire::{FlowId, Nanos};

/// The highest jump of each flow's rate before and during a burst: how many times as much of it came in one window of time
/// as in the one before (ConQuest section 3.3, last paragraph).
///
/// The paper compares snapshots, which hold what left. What left also changes as others come and go, so that a flow of
/// constant rate jumps when a burst ends; here windows are of the time at which packets came, and exact. A sketch has
/// [`queuescope_sketch::ConQuest::jump`].
#[derive(Debug)]
pub struct Ramps {
    window: Nanos,
    flows: Vec<Flow>,
    /// Ids of flows that jumped since the last burst ended, each once; some may have been taken back.
    jumped: Vec<FlowId>,
    /// Windows before this one are of the start of the stream, when everything is new.
    settled: Option<u64>,
}

/// How a flow's rate went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jump {
    /// It was never seen before, or so long ago that its id was taken back.
    New,
    /// So many times as much of it came as in the window before.
    Ramped(f64),
}

#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// One more than the number of the window that its last packet came in; 0 if none came.
    window: u64,
    /// Bytes that came in that window, and in the one before.
    newest: u64,
    before: u64,
    /// Whether it came in the last few windows for the first time, and the highest jump that is told.
    is_new: bool,
    factor: f32,
    /// Whether the id is among those that jumped.
    is_listed: bool,
}

/// Windows from the start of a stream in which nothing is new.
const UNSETTLED: u64 = 3;

/// What is asked of a flow, at least, in bytes of its newest window: ten full packets. With fewer, one more or less is a
/// jump.
const LEAST: u64 = 15_000;

impl Ramps {
    /// Nothing came yet.
    pub fn new(window: Nanos) -> Self {
        Self { window: window.max(Nanos(1)), flows: Vec::new(), jumped: Vec::new(), settled: None }
    }

    /// Windows are of this length from now on. What was known of shorter ones is forgotten, but not who is known.
    pub fn widen(&mut self, window: Nanos) {
        self.window = window.max(Nanos(1));
        self.settled = None;
        self.jumped.clear();
        // Who was seen before is known by a window that was long ago.
        for flow in &mut self.flows {
            *flow = Flow { window: flow.window.min(1), ..Flow::default() };
        }
    }

    /// A packet of a flow came; `least` bytes of a flow in a window are too few to be told.
    #[inline]
    pub fn came(&mut self, flow: FlowId, size: u32, at: Nanos, least: u64) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, Flow::default());
        }
        let window =
            if self.window.0.is_power_of_two() { at.0 >> self.window.0.trailing_zeros() } else { at.0 / self.window.0 };
        let seen = &mut self.flows[flow.index()];
        // One that came earlier than one that left before it counts with that.
        if seen.window < window + 1 {
            self.turn(flow, window, least);
        }
        self.flows[flow.index()].newest += u64::from(size);
    }

    /// A window of a flow is over: another begins for it.
    fn turn(&mut self, flow: FlowId, window: u64, least: u64) {
        let settled = *self.settled.get_or_insert(window + UNSETTLED);
        let seen = &mut self.flows[flow.index()];
        if seen.newest >= least.max(LEAST) && seen.window > settled {
            let factor = match seen.before {
                0 => 0.0,
                before => seen.newest as f32 / before as f32,
            };
            if (factor >= 2.0 || seen.is_new) && seen.factor == 0.0 {
                if !std::mem::replace(&mut seen.is_listed, true) {
                    self.jumped.push(flow);
                }
                seen.factor = f32::MIN_POSITIVE;
            }
            if factor >= 2.0 {
                seen.factor = seen.factor.max(factor);
            }
        }
        seen.is_new = if seen.window == 0 { window >= settled } else { seen.is_new && window < seen.window + 2 };
        seen.before = if seen.window == window { seen.newest } else { 0 };
        (seen.window, seen.newest) = (window + 1, 0);
    }

    /// The id is taken back.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(seen) = self.flows.get_mut(flow.index()) {
            *seen = Flow { is_listed: seen.is_listed, ..Flow::default() };
        }
    }

    /// A burst ends: the flows that jumped since the last one ended, each with its highest jump. They are forgotten.
    pub fn take(&mut self) -> Vec<(FlowId, Jump)> {
        let flows = &mut self.flows;
        let jump = |flow: FlowId| {
            let seen = flows.get_mut(flow.index())?;
            seen.is_listed = false;
            let factor = std::mem::take(&mut seen.factor);
            let jump = if factor >= 2.0 { Jump::Ramped(f64::from(factor)) } else { Jump::New };
            (factor > 0.0).then_some((flow, jump))
        };
        self.jumped.drain(..).filter_map(jump).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Sends packets of 1 000 bytes evenly in each window of 1 000 ns, as many as `rates` says, and takes the jumps.
    fn jumps(rates: &[(u32, &[u64])]) -> BTreeMap<u32, Jump> {
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
        let told = jumps(&[(0, &steady), (1, &jittery), (2, &ramping), (3, &falling), (4, &few)]);
        assert_eq!(told, BTreeMap::from([(2, Jump::Ramped(3.0))]));
    }

    #[test]
    fn a_flow_is_new_once() {
        let new = [0, 0, 0, 0, 0, 0, 40, 40, 40, 40];
        let resumed = [20, 20, 20, 20, 0, 0, 20, 20, 20, 20];
        let growing = [0, 0, 0, 0, 0, 20, 80, 80, 80, 80];
        let told = jumps(&[(0, &new), (1, &resumed), (2, &growing)]);
        assert_eq!(told, BTreeMap::from([(0, Jump::New), (2, Jump::Ramped(4.0))]));
    }

    #[test]
    fn who_is_known_stays_known_in_wider_windows() {
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
        assert_eq!(ramps.take(), [(FlowId(2), Jump::New)]);
    }

    #[test]
    fn what_was_taken_is_forgotten() {
        let mut ramps = Ramps::new(Nanos(1_000));
        let send = |ramps: &mut Ramps, window: u64, count: u64| {
            (0..count).for_each(|n| ramps.came(FlowId(0), 1_000, Nanos(window * 1_000 + n), 0));
        };
        (0..6).for_each(|window| send(&mut ramps, window, 20));
        send(&mut ramps, 6, 100);
        send(&mut ramps, 7, 100);
        assert_eq!(ramps.take(), [(FlowId(0), Jump::Ramped(5.0))]);
        (8..12).for_each(|window| send(&mut ramps, window, 100));
        assert_eq!(ramps.take(), []);
        ramps.forget(FlowId(0));
        assert_eq!(ramps.take(), []);
    }
}
