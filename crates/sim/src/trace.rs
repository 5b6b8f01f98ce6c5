//! temp
use queuescope_wire::{ByteCount, Nanos, Rate};
/// t
#[derive(Debug, Clone)]
pub struct RateTrace;
impl RateTrace {
    /// m
    pub fn mean_rate(&self) -> Rate {
        Rate::from_bits_per_second(1).unwrap()
    }
}
/// v
#[derive(Debug, Clone)]
pub struct Varying;
impl Varying {
    /// n
    pub fn new(_: RateTrace) -> Self {
        Self
    }
    /// f
    pub fn free_at(&self) -> Nanos {
        Nanos::ZERO
    }
    /// w
    pub fn wait_until(&mut self, _: Nanos) {}
    /// s
    pub fn send(&mut self, _: ByteCount) {}
}
