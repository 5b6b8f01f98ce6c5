//! Who fills the queue of an interface now (Linux, as root): `cargo run --release -p queuescope --features live --example live_interface -- eth0`.

use queuescope::Nanos;
use queuescope::ingest::Stop;
use queuescope::live::now;
use queuescope::monitor::{Attached, Reporter, WatchOptions};
use queuescope::report::model::Burst;
use std::error::Error;

/// Prints bursts as they end.
struct Printed;

impl Reporter<()> for Printed {
    type Error = Box<dyn Error>;

    fn bursts(&mut self, bursts: &[Burst]) -> Result<(), Self::Error> {
        for burst in bursts {
            println!("a packet waited for {}:", Nanos(burst.peak_delay_ns));
            for flow in burst.culprits[0].flows.iter().take(3) {
                println!("  {:>5.1} %  {}", 100.0 * flow.share, flow.flow);
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let interface = std::env::args().nth(1).ok_or("usage: live_interface INTERFACE")?;
    let attached = Attached::new(WatchOptions::new(&interface), Stop::on_signals()?, None)?;
    let watch = attached.begin((), Printed)?;
    let (report, ..) = watch.run(now().saturating_add("10s".parse()?))?;
    println!(
        "{} packets came, {} of them were dropped",
        report.totals.packets,
        report.totals.drops.values().sum::<u64>()
    );
    Ok(())
}
