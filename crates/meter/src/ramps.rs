//! Whose rate jumped while a burst lasted, in memory bounded by the flows that are active.

use queuescope_wire::FlowId;

/// The highest jump of each flow's rate over one burst: by what factor it sent more in one window of a sketch than in the
/// one before (ConQuest section 3.3, last paragraph).
///
/// A jump stands at the flow's id, tagged with the number of the burst, so that nothing is cleared between bursts. A flow
/// is asked about once in a window, as its first packet in it leaves.
#[derive(Debug, Default)]
pub struct Ramps {
    burst: u32,
    flows: Vec<Ramp>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ramp {
    burst: u32,
    /// The window it was last asked about in.
    window: u64,
    factor: f64,
}

impl Ramps {
    /// A burst starts: nobody's rate jumped.
    pub fn open(&mut self) {
        // Tags from 2^32 bursts ago must not be taken for this one's.
        self.burst = self.burst.checked_add(1).unwrap_or_else(|| {
            self.flows.clear();
            1
        });
    }

    /// Whether a flow is to be asked about in a window; it is taken to have been.
    #[inline]
    pub fn is_due(&mut self, flow: FlowId, window: u64) -> bool {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, Ramp::default());
        }
        let ramp = &mut self.flows[flow.index()];
        if ramp.burst == self.burst && ramp.window == window {
            return false;
        }
        let factor = if ramp.burst == self.burst { ramp.factor } else { 0.0 };
        *ramp = Ramp { burst: self.burst, window, factor };
        true
    }

    /// A flow's rate grew by `factor`, infinitely if it had sent nothing.
    pub fn grew(&mut self, flow: FlowId, factor: f64) {
        if let Some(ramp) = self.flows.get_mut(flow.index()).filter(|ramp| ramp.burst == self.burst) {
            ramp.factor = ramp.factor.max(factor);
        }
    }

    /// The id is taken back.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(ramp) = self.flows.get_mut(flow.index()) {
            *ramp = Ramp::default();
        }
    }

    /// The flows whose rates jumped in the burst, each with the highest factor.
    pub fn jumps(&self) -> impl Iterator<Item = (FlowId, f64)> {
        let jumped = |ramp: &Ramp| ramp.burst == self.burst && ramp.factor > 0.0;
        let flows = self.flows.iter().enumerate().filter(move |(_, ramp)| self.burst > 0 && jumped(ramp));
        flows.map(|(position, ramp)| (FlowId(position as u32), ramp.factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_is_asked_once_a_window_and_its_highest_jump_is_kept() {
        let (a, b) = (FlowId(0), FlowId(7));
        let mut ramps = Ramps::default();
        ramps.open();
        assert!(ramps.is_due(a, 5) && !ramps.is_due(a, 5) && ramps.is_due(b, 5));
        ramps.grew(a, 4.0);
        ramps.grew(a, 3.0);
        assert!(ramps.is_due(a, 6));
        assert_eq!(ramps.jumps().collect::<Vec<_>>(), [(a, 4.0)]);
        ramps.grew(b, f64::INFINITY);
        ramps.forget(a);
        assert_eq!(ramps.jumps().collect::<Vec<_>>(), [(b, f64::INFINITY)]);
        ramps.open();
        assert_eq!(ramps.jumps().count(), 0);
        assert!(ramps.is_due(b, 5), "a new burst asks anew");
    }
}
