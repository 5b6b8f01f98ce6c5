//! The memory of the exact log, and the time of its queries, with millions of packets:
//!
//! ```text
//! cargo run --release -p queuescope-meter --example culprits_scale -- 10000000 0.98
//! ```

use queuescope_meter::{Departed, QueueLog};
use queuescope_wire::{Class, FlowId, Nanos, PacketId};
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let packets = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000_000u64);
    let load = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0.98);
    let mut log = QueueLog::new();
    let filling = time(|| fill(&mut log, packets, load));
    let per_packet = |bytes: usize| bytes as f64 / packets as f64;
    println!("{packets} packets at load {load}: recorded in {filling:?}");
    println!("records {:.1} bytes a packet", per_packet(log.record_bytes()));
    println!("resident {:.1} bytes a packet", per_packet(resident()));
    let Some(worst) = log.longest_wait(|_| true, Nanos(0)..Nanos::MAX) else { return };
    let mut culprits = None;
    let asking = time(|| culprits = log.of_packet(worst.packet));
    let Some(culprits) = culprits else { return };
    println!(
        "longest wait {}: direct {:?}, indirect {:?}, original {:?}: asked in {asking:?}",
        worst.sojourn(),
        culprits.direct.total,
        culprits.indirect.total,
        culprits.original.total
    );
    let around = worst.enqueued..worst.dequeued;
    println!("its wait as a range: {:?}", time(|| drop(log.of_range(around.clone()))));
    println!("one flow's waits in it: {:?}", time(|| drop(log.of_flows(|flow| flow == worst.flow, around.clone()))));
    println!(
        "one flow, all its packets: {:?}",
        time(|| drop(log.of_flows(|flow| flow == worst.flow, Nanos(0)..Nanos::MAX)))
    );
}

/// Records a FIFO queue at a byte a nanosecond, with random (xorshift) gaps and sizes.
fn fill(log: &mut QueueLog, packets: u64, load: f64) {
    let (mut state, mut now, mut free) = (0x2545_f491_4f6c_dd1du64, 0, 0);
    for packet in 0..packets {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let size = 64 + (state % 1437) as u32;
        let enqueued = now;
        let dequeued = free.max(now);
        free = dequeued + u64::from(size);
        now += ((state >> 32) as f64 / f64::from(u32::MAX) * 2.0 * 782.0 / load) as u64;
        let flow = FlowId((state >> 40) as u32 % 1000);
        let departed = Departed {
            packet: PacketId(packet),
            flow,
            class: Class(0),
            size,
            enqueued: Nanos(enqueued),
            dequeued: Nanos(dequeued),
        };
        if let Err(error) = log.record(&departed) {
            eprintln!("{error}");
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "an example may read clocks")]
fn time(work: impl FnOnce()) -> Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}

/// The resident memory of the process, bytes; 0 if it is unknown.
#[allow(clippy::disallowed_methods, reason = "an example may read files")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).unwrap_or(0) * 1024
}
