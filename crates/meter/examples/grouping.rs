//! How often an incast is named by its destination and port alone, by number of senders, and the time for a large burst:
//! `cargo run --release -p queuescope-meter --example grouping`.

#[path = "../tests/group/incast.rs"]
mod incast;
#[path = "../tests/group/random.rs"]
mod random;

use incast::Incast;
use queuescope_meter::{GroupParams, Subnet, group};
use queuescope_wire::{Family, FlowKey, Granularity};
use random::Random;

// An example is a command, and measures.
#[allow(clippy::disallowed_methods)]
fn main() {
    println!("senders  seeds  named  with rack  first row  row instead");
    for sources in [2, 3, 4, 5, 8, 16, 41, 100, 200] {
        let (mut named, mut racks, mut first, mut wrong) = (0, 0, 0, None);
        for seed in 0..1_000 {
            let incast = Incast::new(sources, seed + 1_000_000);
            let grouped = group(&incast.flows, None, Granularity::FiveTuple, &GroupParams::default());
            let place = grouped.rows.iter().position(|row| row.flow.is_none());
            let row = place.map(|place| &grouped.rows[place]);
            let right = row.is_some_and(|row| {
                let victim = Subnet::new(incast.family, incast.victim, Subnet::whole_length(incast.family));
                let length = if incast.family == Family::V6 { 64 } else { 24 };
                let pattern = &row.pattern;
                pattern.dst == Some(victim)
                    && pattern.dst_port == Some(incast.port)
                    && pattern.src.is_none_or(|src| incast.rack && src.length == length)
                    && pattern.src_port.is_none()
                    && row.weight.bytes * 10 >= incast.bytes * 9
            });
            named += u32::from(right);
            racks += u32::from(right && row.is_some_and(|row| row.pattern.src.is_some()));
            first += u32::from(right && place == Some(0));
            if !right {
                wrong = row.map(|row| (seed, row.reading(Granularity::FiveTuple)));
            }
        }
        println!("{sources:7}  {:5}  {named:5}  {racks:9}  {first:9}  {wrong:?}", 1_000);
    }
    for sources in [1_000, 10_000, 100_000] {
        // Senders with any addresses, to the victim of a small incast.
        let random = &mut Random(1);
        let mut flows = Incast::new(2, 1).flows;
        let (key, share) = flows[0];
        let sender = |n: u64| (n, random.below(1 << 32));
        let more = (0..sources).map(sender).map(|(n, src)| (n % 60_000 + 1_024, src));
        flows.extend(more.map(|(port, src)| (FlowKey { src: src.into(), src_port: port as u16, ..key }, share)));
        let start = std::time::Instant::now();
        let rows = group(&flows, None, Granularity::FiveTuple, &GroupParams::default()).rows;
        println!("{} flows: {:?}, {} rows", flows.len(), start.elapsed(), rows.len());
    }
    // Flows with nothing in common: many flows between random addresses of a site, to few ports.
    let random = &mut Random(1);
    let mut flows = Incast::new(2, 1).flows;
    let (key, share) = flows[0];
    flows.extend((0..100_000).map(|_| {
        let (src, dst) = (0x0a00_0000 + random.below(1 << 16), 0x0a00_0000 + random.below(1 << 9));
        let ports = (random.below(60_000) as u16, 443 + random.below(4) as u16);
        let flow = FlowKey { src: src.into(), dst: dst.into(), src_port: ports.0, dst_port: ports.1, ..key };
        (flow, share)
    }));
    for least in [0.1, 0.01] {
        let params = GroupParams { least, heavy: least, ..GroupParams::default() };
        let start = std::time::Instant::now();
        let rows = group(&flows, None, Granularity::FiveTuple, &params).rows;
        println!("{} even flows, least {least}: {:?}, {} rows", flows.len(), start.elapsed(), rows.len());
        for row in rows.iter().take(4) {
            println!("    {}", row.reading(Granularity::FiveTuple));
        }
    }
}
