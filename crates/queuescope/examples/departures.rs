//! Departures from anywhere: here a queue that is worked out by hand, of a bulk transfer and a call on one link.
//! `cargo run --release -p queuescope --example departures`.

use queuescope::{Analyzer, ByteCount, Departure, Family, FlowKey, Nanos, Packet, PacketId, Rate};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let rate: Rate = "10mbps".parse()?;
    let report = Analyzer::new(rate).run_departures(departures(rate))?;
    for burst in &report.bursts {
        println!("a burst of {}, in which a packet waited for {}", Nanos(burst.length_ns), Nanos(burst.peak_delay_ns));
        for culprit in &burst.culprits[0].flows {
            println!("  {:>5.1} %  {}", 100.0 * culprit.share, culprit.flow);
        }
    }
    Ok(())
}

/// What a FIFO does with a packet of 200 bytes every 20 ms, and 200 full packets at once after a second.
fn departures(rate: Rate) -> impl Iterator<Item = (FlowKey, Departure)> {
    let flow =
        |port| FlowKey { src_port: port, dst_port: 9_000, protocol: 17, family: Family::V4, ..FlowKey::default() };
    let call = (0..100).map(move |n| (Nanos(n * 20_000_000), flow(5_004), ByteCount(200)));
    let bulk = (0..200).map(move |_| (Nanos(1_000_000_000), flow(80), ByteCount(1_500)));
    let mut packets: Vec<_> = call.chain(bulk).collect();
    packets.sort_by_key(|(came, ..)| *came);

    let mut free = Nanos::ZERO;
    (0..).zip(packets).map(move |(id, (enqueued, key, size))| {
        let dequeued = enqueued.max(free);
        free = dequeued.saturating_add(rate.time_for(size));
        let packet = Packet { id: PacketId(id), size, ..Packet::default() };
        (key, Departure { packet, enqueued, dequeued, ..Departure::default() })
    })
}
