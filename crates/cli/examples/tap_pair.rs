//! Writes captures to try `queuescope tap` with: a capture passes a FIFO, and is recorded as taps on both sides would.
//!
//! `cargo run --release -p queuescope-cli --example tap_pair -- CAPTURE RATE LIMIT DIRECTORY`
//!
//! The clock behind the router is 0.4 s ahead and gains 20 ppm. That of the second link is 0.3 s behind and loses 7 ppm.
//! Sources are spread over three links into the router; leave out `in3.pcap` to try untapped packets. Timestamps are of a packet's first bit.

#[path = "../tests/tap/pair.rs"]
mod pair;

use anyhow::{Result, bail};
use pair::{Pair, PairParams};
use queuescope_meter::tap::Clock;
use queuescope_pcap::CaptureReader;
use queuescope_wire::Nanos;
use std::path::Path;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [capture, rate, limit, directory] = args.as_slice() else {
        bail!("usage: tap_pair CAPTURE RATE LIMIT DIRECTORY");
    };
    let first = CaptureReader::open(Path::new(capture))?.next_record()?.and_then(|record| record.time);
    let start = first.unwrap_or(Nanos::ZERO);
    let pair_params = PairParams {
        rate: rate.parse()?,
        limit: limit.parse()?,
        behind: Clock::new(start, 400_000_000, 20.0),
        second: Clock::new(start, -300_000_000, -7.0),
        resolution: 1,
        snaplens: (96, 90),
        elsewhere: u64::MAX,
        most: usize::MAX,
    };
    let (ingress, egress) = Pair::make(Path::new(capture), pair_params)?.write(Path::new(directory))?;
    for path in ingress.iter().chain([&egress]) {
        println!("{}", path.display());
    }
    Ok(())
}
