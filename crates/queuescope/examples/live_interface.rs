//! Who fills the queue of an interface now (Linux, as root): `cargo run --release -p queuescope --features live --example live_interface -- eth0`.

use queuescope::analysis::{Analysis, AnalysisParams, FLOWS, Scale};
use queuescope::live::{Probe, ProbeParams, now};
use queuescope::meter::{History, Tau};
use queuescope::monitor::{Feed, FlowOwners, Seen};
use queuescope::wire::{Flows, KeyMask};
use queuescope::{Granularity, Nanos};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let interface = std::env::args().nth(1).ok_or("usage: live_interface INTERFACE")?;
    let by = [Granularity::FiveTuple];
    // Packets that wait for at least a millisecond are congestion.
    let probe_params = ProbeParams::default();
    let mut params = AnalysisParams::new(Scale::of(None));
    params.history = History::Departures(1 << 16);
    params.tau = Tau::Given(probe_params.tau);
    params.order_tolerance = probe_params.tau;
    params.hands_out = true;

    let mut probe = Probe::attach_unless(&interface, probe_params, &|| false)?;
    let mut feed = Feed::new(None, KeyMask::covering(&by), false)?;
    let mut owners = FlowOwners::new(&interface, by.to_vec(), None);
    let mut analysis = Analysis::new(Flows::new(&by, FLOWS), params, ())?;
    let end = now().saturating_add("10s".parse()?);
    while now() < end {
        let mut seen = Seen { analysis: &mut analysis, view: None, owners: &mut owners };
        let came = feed.take::<_, Box<dyn Error>>(&mut probe, &mut seen)?;
        analysis.nothing_before(now().saturating_sub(Nanos(50_000_000)));
        for burst in analysis.ended(feed.origin) {
            println!("a packet waited for {}:", Nanos(burst.peak_delay_ns));
            for flow in burst.culprits[0].flows.iter().take(3) {
                println!("  {:>5.1} %  {}", 100.0 * flow.share, flow.flow);
            }
        }
        if came == 0 {
            probe.wait(Duration::from_millis(20))?;
        }
    }
    let counters = probe.counters()?;
    println!("{} packets left, {} were dropped", counters.packets, counters.dropped);
    Ok(())
}
