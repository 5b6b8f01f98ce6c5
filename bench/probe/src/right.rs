//! The accuracy of the probe: its delays compared with those of captures on both sides of the queue, its verdicts with the exact
//! ones, and its counts with those of the qdisc.

use crate::captured::{Captures, Piece, Times};
use crate::road::{Road, run, within};
use crate::truth::{Event, judge};
use anyhow::{Context, Result};
use queuescope_live::{Counters, Probe, ProbeParams};
use queuescope_wire::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// TCP flows, which share a gigabit: a few send as fast as they can, the others at rates that fall with their number.
const FLOWS: usize = 100;
const GREEDY: usize = 1;
/// The rate of the first flow with a limited rate, in bytes per second.
const FIRST: f64 = 10e6;
const TAU: Nanos = Nanos(1_000_000);
const ALPHAS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];
/// Nanoseconds by which delays may differ.
const CLOSE: u64 = 50_000;

/// Without offload the processor is the limit before a gigabit is, and there would be no queue.
const HALF_TBF: &[&str] = &["qdisc replace dev near0 root tbf rate 500mbit burst 100kb limit 500kb"];
const HALF_HTB: &[&str] = &[
    "qdisc replace dev near0 root handle 1: htb default 10",
    "class add dev near0 parent 1: classid 1:10 htb rate 500mbit burst 100kb cburst 100kb",
    "qdisc add dev near0 parent 1:10 bfifo limit 500kb",
];
const TBF: &[&str] = &["qdisc replace dev near0 root tbf rate 1gbit burst 100kb limit 1mb"];
/// Segments that are larger than its bucket are made before the queue.
const SMALL_TBF: &[&str] = &["qdisc replace dev near0 root tbf rate 1gbit burst 20kb limit 1mb"];
const HTB: &[&str] = &[
    "qdisc replace dev near0 root handle 1: htb default 10",
    "class add dev near0 parent 1: classid 1:10 htb rate 1gbit burst 100kb cburst 100kb",
    "qdisc add dev near0 parent 1:10 bfifo limit 1mb",
];

pub fn measure(seconds: u64) -> Result<()> {
    let time = Duration::from_secs(seconds);
    println!("{FLOWS} flows of CUBIC through a gigabit, without offload half of one, {seconds} s; delays in us\n");
    println!("queue      offload   qdisc's   seen %   Gbit/s  compared  within 50  p50  p99  p99.9  longest  missed");
    let mut verdicts = Vec::new();
    let queues = [
        ("tbf", [TBF, HALF_TBF].as_slice()),
        ("tbf 20kb", [SMALL_TBF].as_slice()),
        ("htb", [HTB, HALF_HTB].as_slice()),
    ];
    for (name, queues) in queues {
        for (queue, offload) in queues.iter().zip([true, false]) {
            let road = Road::new(queue, offload)?;
            let captures = Captures::start(&road)?;
            let (rate, measured) = probed(&road, time)?;
            let times = captures.finish()?;
            let qdisc = within(&road.router, || packets("near0"))?;
            let on = if offload { "on" } else { "off" };
            let seen = 100.0 * measured.counters.packets as f64 / qdisc as f64;
            print!("{name:10} {on:7} {qdisc:9} {seen:8.2} {:8.3}", rate * 8e-9);
            measured.compare(&times);
            let mut events: Vec<_> = measured.events.iter().map(|(event, _)| *event).collect();
            verdicts.push((name, on, measured.counters, judge(&mut events, TAU.0, &ALPHAS)));
        }
    }
    println!(
        "\npackets of contributing flows, of those that waited for longer than {TAU}: precision / recall in %\n(how many thousand are)\n"
    );
    print!("queue      offload");
    ALPHAS.iter().for_each(|alpha| print!("          alpha {:>3} %", alpha * 100.0));
    println!("   unstamped  untold  bulk");
    for (name, on, counters, verdicts) in &verdicts {
        print!("{name:10} {on:7}");
        for verdict in verdicts {
            let are = (verdict.right + verdict.passed_over) as f64 / 1e3;
            print!(" {:5.1}/{:5.1} ({are:5.1})", 100.0 * verdict.precision(), 100.0 * verdict.recall());
        }
        println!(" {:11} {:7} {:5}", counters.unstamped, counters.untold, counters.bulk);
    }
    println!(
        "\nof those that were judged wrongly, how far the flow's part of what left was from alpha, in points: median, and 90 % within\n"
    );
    for (name, on, _, verdicts) in &mut verdicts {
        print!("{name:10} {on:7}");
        for verdict in verdicts {
            print!(" {:8.1} {:8.1}  ", 100.0 * verdict.apart(0.5), 100.0 * verdict.apart(0.9));
        }
        println!();
    }
    Ok(())
}

/// What the probe reported.
struct ProbeRun {
    events: Vec<(Event, Option<Piece>)>,
    counters: Counters,
}

impl ProbeRun {
    /// Compares the delays with those of the captures.
    fn compare(&self, times: &Times) {
        let of = |(event, piece): &(Event, Option<Piece>)| {
            Some((event.dequeued - event.enqueued).abs_diff(times.delay((*piece)?)?))
        };
        let mut differ: Vec<_> = self.events.iter().filter_map(of).collect();
        differ.sort_unstable();
        let close = differ.partition_point(|differ| *differ <= CLOSE);
        let us = |part: f64| {
            let place = (differ.len() as f64 * part) as usize;
            differ.get(place.min(differ.len().saturating_sub(1))).map_or(f64::NAN, |differ| *differ as f64 / 1e3)
        };
        let share = 100.0 * close as f64 / differ.len() as f64;
        let [p50, p99, p999, longest] = [0.5, 0.99, 0.999, 1.0].map(us);
        let (count, missed) = (differ.len(), times.missed);
        println!(" {count:9} {share:8.2} % {p50:4.1} {p99:4.1} {p999:6.1} {longest:8.0} {missed:7}");
    }
}

/// Sends the flows, and returns the bytes per second that arrived and everything that left the queue meanwhile.
fn probed(road: &Road, time: Duration) -> Result<(f64, ProbeRun)> {
    let stop = Arc::new(AtomicBool::new(false));
    let (asked, (ready, begun)) = (Arc::clone(&stop), channel());
    let watching = within(&road.router, move || {
        let params = ProbeParams { tau: TAU, all: true, ..ProbeParams::default() };
        let mut probe = Probe::attach("near0", params)?;
        Ok(thread::spawn(move || -> Result<ProbeRun> {
            let _ = ready.send(());
            let mut events = Vec::new();
            loop {
                let last = asked.load(Ordering::Relaxed);
                let came = probe.left(|left| {
                    let event = Event {
                        enqueued: left.enqueued.0,
                        dequeued: left.dequeued.0,
                        digest: left.digest,
                        bytes: left.bytes,
                        flow: left.flow,
                        all: left.all,
                    };
                    // If the qdisc split a super-packet, the length of the whole is not known.
                    let length = left.bytes - headers_again(&left);
                    events.push((event, Piece::of(left.headers, length)));
                })?;
                if last && came == 0 {
                    return Ok(ProbeRun { events, counters: probe.counters()? });
                }
                thread::sleep(Duration::from_millis(2));
            }
        }))
    })?;
    begun.recv().context("the probe does not run")?;
    let rate = |flow: usize| (flow >= GREEDY).then(|| FIRST / (flow - GREEDY + 1) as f64);
    let rate = road.flows((0..FLOWS).map(rate).collect(), time)?;
    thread::sleep(Duration::from_millis(300));
    stop.store(true, Ordering::Relaxed);
    let measured = watching.join().map_err(|_| anyhow::anyhow!("the probe panicked"))??;
    Ok((rate, measured))
}

/// Bytes of the headers that each packet after the first repeats on the wire: 14 of Ethernet, 20 of IP, 20 and 12 of TCP.
fn headers_again(left: &queuescope_live::Left<'_>) -> u32 {
    let tcp = left.headers.get(46).map_or(20, |byte| u32::from(byte >> 4) * 4);
    left.packets.saturating_sub(1) * (34 + tcp)
}

/// The number of packets that the qdisc reports as sent.
fn packets(device: &str) -> Result<u64> {
    let output = run(&format!("tc -s -j qdisc show dev {device}"))?;
    let all: serde_json::Value = serde_json::from_str(&output)?;
    let all = all.as_array().context("tc did not print a list")?;
    let root = all.iter().find(|qdisc| qdisc["root"] == true).context("there is no root qdisc")?;
    root["packets"].as_u64().context("tc does not count packets")
}
