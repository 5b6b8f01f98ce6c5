//! The flows that ingress acts on: registers found by hash, as a switch has them.

use crate::Port;
use crate::hash_to_queues::{digest, reduce};
use queuescope_wire::{FlowId, Nanos};

/// Flows that are held, each until some time.
#[derive(Debug)]
pub(super) struct Held {
    registers: Box<[Register]>,
}

/// One flow, and until when it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Register {
    flow: FlowId,
    port: Port,
    until: Nanos,
}

impl Held {
    /// So many registers; none, where nothing will be held.
    pub fn new(registers: u32) -> Self {
        let empty = Register { flow: FlowId(0), port: Port(0), until: Nanos::ZERO };
        Self { registers: vec![empty; registers as usize].into() }
    }

    /// A flow on its way to a port is held until some time. Whether another was, in its register, at `now`.
    #[inline]
    pub fn hold(&mut self, port: Port, flow: FlowId, now: Nanos, until: Nanos) -> bool {
        let place = self.place(port, flow);
        let Some(register) = self.registers.get_mut(place) else { return false };
        let other = register.until > now && (register.port, register.flow) != (port, flow);
        *register = Register { flow, port, until };
        other
    }

    /// Whether a flow is held at `now`.
    #[inline]
    pub fn holds(&self, port: Port, flow: FlowId, now: Nanos) -> bool {
        let register = self.registers.get(self.place(port, flow));
        register.is_some_and(|register| (register.port, register.flow) == (port, flow) && now < register.until)
    }

    #[inline]
    fn place(&self, port: Port, flow: FlowId) -> usize {
        let key = u64::from(port.0) << 32 | u64::from(flow.0);
        reduce(digest(key), self.registers.len() as u32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Never is a flow held that was not asked for, or for longer; with a register to each flow, none is forgotten.
        #[test]
        fn only_what_was_asked_for_is_held(
            steps in prop::collection::vec((0..30u64, 0..3u16, 0..5u32, prop::option::of(0..50u64)), 0..200),
            registers in 0..6u32
        ) {
            let (mut small, mut large) = (Held::new(registers), Held::new(1 << 16));
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
    fn the_last_flow_takes_the_register() {
        let mut held = Held::new(1);
        assert!(!held.hold(Port(0), FlowId(1), Nanos(0), Nanos(10)));
        assert!(!held.hold(Port(0), FlowId(1), Nanos(2), Nanos(12)));
        assert!(held.hold(Port(0), FlowId(2), Nanos(3), Nanos(13)));
        assert!(!held.holds(Port(0), FlowId(1), Nanos(4)));
        assert!(held.holds(Port(0), FlowId(2), Nanos(12)) && !held.holds(Port(0), FlowId(2), Nanos(13)));
        assert!(!held.hold(Port(1), FlowId(2), Nanos(13), Nanos(20)));
    }
}
