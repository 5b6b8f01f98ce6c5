//! The processor time per packet.

use anyhow::Result;
use queuescope_meter::{BehaviourParams, Behaviours};
use queuescope_wire::{ByteCount, Departure, FlowId, Nanos, Packet};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

const PACKETS: u64 = 50_000_000;

/// Feeds flows of equal rates, in turn, for several numbers of flows.
pub fn measure() -> Result<()> {
    for flows in [1, 16, 128, 4_096] {
        let mut meter = Behaviours::new(BehaviourParams::default());
        let packet = |number: u64| {
            let flow = FlowId((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % flows);
            let size = if number < 40 * u64::from(flows) { 60 } else { 1_500 };
            let packet = Packet { flow, size: ByteCount(size), ..Packet::default() };
            // A gigabit per second, and up to 16 ms in the queue.
            let (enqueued, sojourn) = (Nanos(number * 12_000), Nanos((number & 0xff_ffff).min(16_000_000)));
            Departure { packet, enqueued, dequeued: Nanos(enqueued.0 + sojourn.0), ..Departure::default() }
        };
        // What remains without the meter is subtracted.
        let began = cpu();
        (0..PACKETS).for_each(|number| _ = black_box(packet(number)));
        let empty = cpu() - began;
        let began = cpu();
        for number in 0..PACKETS {
            let departure = black_box(packet(number));
            meter.departed(departure.packet.flow, &departure);
        }
        let net = (cpu() - began).saturating_sub(empty);
        println!("{flows:5} flows: {:.1} ns per packet", net.as_nanos() as f64 / PACKETS as f64);
    }
    Ok(())
}

/// The processor time of this process, which other load on the machine does not change much.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
