//! The flows that ingress acts on: registers found by hash, as a switch has them.

use super::params::FlowLimit;
use crate::Port;
use crate::hash_to_queues::{digest, reduce};
use queuescope_wire::{FlowId, Nanos};

/// Flows that ingress acts on, each until its hold ends.
#[derive(Debug)]
pub(super) struct HeldFlows {
    registers: Box<[HoldRegister]>,
}

/// One flow, the end of its hold, and its time in a [`FlowLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HoldRegister {
    flow: FlowId,
    port: Port,
    until: Nanos,
    time: Nanos,
}

impl HeldFlows {
    /// Creates `registers` registers, or none where nothing will be held.
    pub fn new(registers: u32) -> Self {
        let empty = HoldRegister { flow: FlowId(0), port: Port(0), until: Nanos::ZERO, time: Nanos::ZERO };
        Self { registers: vec![empty; registers as usize].into() }
    }

    /// Holds a flow on its way to a port until a time. Returns whether another flow was still held in its register at
    /// `now`. The time of a limit goes on if it is ahead, also for the other flow.
    #[inline]
    pub fn hold(&mut self, port: Port, flow: FlowId, now: Nanos, until: Nanos) -> bool {
        let register_index = self.register_index(port, flow);
        let Some(register) = self.registers.get_mut(register_index) else { return false };
        let other = register.until > now && (register.port, register.flow) != (port, flow);
        *register = HoldRegister { flow, port, until, time: register.time.max(now) };
        other
    }

    /// Whether a flow is held at `now`.
    #[inline]
    pub fn holds(&self, port: Port, flow: FlowId, now: Nanos) -> bool {
        let register = self.registers.get(self.register_index(port, flow));
        register.is_some_and(|register| (register.port, register.flow) == (port, flow) && now < register.until)
    }

    /// Whether a packet of a held flow passes at `now`, which then counts.
    #[inline]
    pub fn passes(&mut self, port: Port, flow: FlowId, now: Nanos, limit: &FlowLimit) -> bool {
        let register_index = self.register_index(port, flow);
        let Some(register) = self.registers.get_mut(register_index) else { return true };
        let passes = register.time <= now.saturating_add(limit.tolerance());
        if passes {
            register.time = register.time.max(now).saturating_add(limit.interval);
        }
        passes
    }

    /// The time of the limit in a register.
    pub fn time(&self, register: usize) -> Option<Nanos> {
        self.registers.get(register).map(|register| register.time)
    }

    #[inline]
    pub fn register_index(&self, port: Port, flow: FlowId) -> usize {
        let key = u64::from(port.0) << 32 | u64::from(flow.0);
        reduce(digest(key), self.registers.len() as u32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No flow is held that was not fed back, or for longer. With a register for each flow, none is lost early.
        #[test]
        fn only_flows_that_were_fed_back_are_held(
            steps in prop::collection::vec((0..30u64, 0..3u16, 0..5u32, prop::option::of(0..50u64)), 0..200),
            registers in 0..6u32
        ) {
            let (mut small, mut large) = (HeldFlows::new(registers), HeldFlows::new(1 << 16));
            let mut asked = std::collections::BTreeMap::new();
            let mut now = 0;
            for (gap, port, flow, hold) in steps {
                now += gap;
                match hold {
                    Some(hold) => {
                        asked.insert((port, flow), now + hold);
                        small.hold(Port(port), FlowId(flow), Nanos(now), Nanos(now + hold));
                        prop_assert!(!large.hold(Port(port), FlowId(flow), Nanos(now), Nanos(now + hold)));
                    }
                    None => {
                        let truth = asked.get(&(port, flow)).is_some_and(|until| now < *until);
                        prop_assert!(!small.holds(Port(port), FlowId(flow), Nanos(now)) || truth);
                        prop_assert_eq!(large.holds(Port(port), FlowId(flow), Nanos(now)), truth);
                    }
                }
            }
        }
    }

    proptest! {
        /// In any time, a limited flow has at most its burst and a packet for each interval; and a packet that comes an interval after the last one passes.
        #[test]
        fn a_flow_passes_at_most_at_its_rate(
            gaps in prop::collection::vec(0..40u64, 1..200), interval in 0..30u64, burst in 0..6u32
        ) {
            let limit = FlowLimit { interval: Nanos(interval), burst };
            let mut held = HeldFlows::new(1);
            let (mut now, mut passed, mut last) = (0, Vec::new(), None);
            held.hold(Port(0), FlowId(1), Nanos(0), Nanos(1 << 40));
            for gap in gaps {
                now += gap;
                let passes = held.passes(Port(0), FlowId(1), Nanos(now), &limit);
                let is_late = last.is_none_or(|last| now - last >= interval);
                prop_assert!(passes || !is_late, "{} after {:?}", now, last);
                if passes {
                    passed.push(now);
                }
                last = Some(now);
            }
            for (n, first) in passed.iter().enumerate() {
                for (m, end) in passed.iter().enumerate().skip(n) {
                    let most = u64::from(burst.max(1)) + (end - first).checked_div(interval).unwrap_or(u64::MAX >> 1);
                    prop_assert!((m - n + 1) as u64 <= most, "{} packets from {} to {}", m - n + 1, first, end);
                }
            }
        }
    }

    /// A flow that is held again goes on where it was, and a rest gives it its burst back.
    #[test]
    fn a_limit_goes_on_with_the_next_hold() {
        let limit = FlowLimit { interval: Nanos(10), burst: 2 };
        let mut held = HeldFlows::new(1);
        let mut passes = |at: u64, holds: bool| {
            if holds {
                held.hold(Port(0), FlowId(1), Nanos(at), Nanos(at + 100));
            }
            held.passes(Port(0), FlowId(1), Nanos(at), &limit)
        };
        let times = [(5, true), (5, false), (5, true), (14, false), (15, false), (40, true), (40, false), (49, false)];
        assert_eq!(times.map(|(at, holds)| passes(at, holds)), [true, true, false, false, true, true, true, false]);
    }

    #[test]
    fn the_newest_flow_takes_the_register() {
        let mut held = HeldFlows::new(1);
        assert!(!held.hold(Port(0), FlowId(1), Nanos(0), Nanos(10)));
        assert!(!held.hold(Port(0), FlowId(1), Nanos(2), Nanos(12)));
        assert!(held.hold(Port(0), FlowId(2), Nanos(3), Nanos(13)));
        assert!(!held.holds(Port(0), FlowId(1), Nanos(4)));
        assert!(held.holds(Port(0), FlowId(2), Nanos(12)) && !held.holds(Port(0), FlowId(2), Nanos(13)));
        assert!(!held.hold(Port(1), FlowId(2), Nanos(13), Nanos(20)));
    }
}
