//! Any messages about actions, at any times: an agent does no more than its owner allows, and nothing that is over.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_fleet::act::Order;
use queuescope_fleet::agent::{ActLimits, Actor, ActorError, Acts, Touched};
use queuescope_fleet::protocol::{Act, Flow, act};
use queuescope_wire::Nanos;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Notes which actions go on.
#[derive(Debug, Clone, Default)]
struct Noting(Arc<Mutex<BTreeSet<u64>>>);

impl Actor for Noting {
    fn begin(&mut self, id: u64, order: &Order) -> Result<(), ActorError> {
        assert!(order.flow.addresses().next().is_some() && self.0.lock().unwrap().insert(id));
        Ok(())
    }

    fn extend(&mut self, _: u64, _: Nanos) -> Result<(), ActorError> {
        Ok(())
    }

    fn end(&mut self, id: u64) -> Result<(), ActorError> {
        assert!(self.0.lock().unwrap().remove(&id));
        Ok(())
    }

    fn touched(&self, id: u64) -> Touched {
        Touched { touched: id, packets: id }
    }

    fn renew(&mut self) -> Result<(), ActorError> {
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let noting = Noting::default();
    let limits = ActLimits { per_minute: 20, most: 4, dry: false, ..ActLimits::default() };
    let mut acts = Acts::new(Box::new(noting.clone()), limits, Box::new(|_| ()));
    let mut now = Nanos::ZERO;
    for step in data.chunks(40) {
        let byte = |at: usize| step.get(at).copied().unwrap_or(0);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| byte(at + n)));
        now = now.saturating_add(Nanos(word(0) >> 24));
        match byte(8) % 8 {
            0 => _ = acts.tick(now),
            1 => acts.heard(now),
            2 => _ = acts.hold(&[u64::from(byte(9)), u64::from(byte(10))]),
            3 => _ = acts.end_all("over"),
            _ => {
                let bytes = |at: usize| step.get(at..at + usize::from(byte(11) % 18)).unwrap_or_default().to_vec();
                let port = |at: usize| (byte(at) > 9).then(|| u32::from(byte(at)) << (byte(at + 1) % 16));
                let (src_port, dst_port, protocol) = (port(12), port(13), port(14));
                let flow =
                    (byte(10) > 9).then(|| Flow { src: bytes(16), dst: bytes(20), src_port, dst_port, protocol });
                let action = match byte(15) % 5 {
                    0 => None,
                    1 => Some(act::Action::Drop(byte(9) > 9)),
                    2 => Some(act::Action::Mark(true)),
                    _ => Some(act::Action::Limit(word(24))),
                };
                let (id, nanoseconds, dry) = (u64::from(byte(9) % 6), word(32) >> (byte(31) % 64), byte(8) > 99);
                let reply = acts.begin(now, &Act { id, flow, action, nanoseconds, dry, ..Act::default() });
                assert!(reply.id == id && reply.left <= limits.longest.0);
            }
        }
        assert!(noting.0.lock().unwrap().len() <= limits.most);
        acts.news(now);
    }
    acts.tick(Nanos::MAX);
    assert!(noting.0.lock().unwrap().is_empty());
});
