//! Who filled the queue of a link that a capture passes: `cargo run --release -p queuescope --example capture -- data/demo.pcap.xz 20mbps`.

use queuescope::{Analyzer, Nanos};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, rate] = arguments.as_slice() else { return Err("usage: capture FILE RATE".into()) };
    let report = Analyzer::new(rate.parse()?).by(["5tuple".parse()?, "src".parse()?]).run_file(file)?;

    println!("{} packets, {} bursts", report.totals.packets, report.bursts.len());
    let Some(worst) = report.bursts.iter().max_by_key(|burst| burst.peak_delay_ns) else { return Ok(()) };
    println!("in the worst a packet waited for {}:", Nanos(worst.peak_delay_ns));
    for culprits in &worst.culprits {
        println!("by {}", culprits.granularity);
        for flow in culprits.flows.iter().take(5) {
            println!("  {:>5.1} %  {}", 100.0 * flow.share, flow.flow);
        }
    }
    Ok(())
}
