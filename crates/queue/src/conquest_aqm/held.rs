//! The flows that ingress acts on: registers found by hash, as a switch has them.

use crate::Port;
use crate::hash_to_queues::{digest, reduce};
use queuescope_wire::{FlowId, Nanos};

/// Flows that ingress acts on, each until its hold ends.
#[derive(Debug)]
pub(super) struct HeldFlows {
    registers: Box<[HoldRegister]>,
}

/// One flow, and the end of its hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HoldRegister {
    flow: FlowId,
    port: Port,
    until: Nanos,
}

impl HeldFlows {
    /// Creates `registers` registers, or none where nothing will be held.
    pub fn new(registers: u32) -> Self {
        let empty = HoldRegister { flow: FlowId(0), port: Port(0), until: Nanos::ZERO };
        Self { registers: vec![empty; registers as usize].into() }
    }

    /// Holds a flow on its way to a port until a time. Returns whether another flow was still held in its register at
    /// `now`.
    #[inline]
    pub fn hold(&mut self, port: Port, flow: FlowId, now: Nanos, until: Nanos) -> bool {
        let register_index = self.register_index(port, flow);
        let Some(register) = self.registers.get_mut(register_index) else { return false };
        let other = register.until > now && (register.port, register.flow) != (port, flow);
        *register = HoldRegister { flow, port, until };
        other
    }

    /// Whether a flow is held at `now`.
    #[inline]
    pub fn holds(&self, port: Port, flow: FlowId, now: Nanos) -> bool {
        let register = self.registers.get(self.register_index(port, flow));
        register.is_some_and(|register| (register.port, register.flow) == (port, flow) && now < register.until)
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
