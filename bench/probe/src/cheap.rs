//! The cost of the probe, beside that of programs that do nothing at the same places: nanoseconds per packet, as the kernel counts them, and
//! throughput when the processor is the limit. What is compared alternates.

use crate::empty;
use crate::road::{Road, within};
use anyhow::{Result, ensure};
use aya::programs::loaded_programs;
use aya::sys::{Stats, enable_stats};
use queuescope_live::{Acting, Headers, Probe, ProbeParams};
use queuescope_queue::{Curve, Step, Steps};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// No limit but the processor.
const OPEN: &[&str] = &["qdisc replace dev near0 root tbf rate 100gbit burst 10mb limit 10mb"];
/// A queue that is always there.
const FULL: &[&str] = &["qdisc replace dev near0 root tbf rate 500mbit burst 100kb limit 1mb"];
/// The same where the processor has no pause: it drops what has no room.
const OVERFULL: &[&str] = &["qdisc replace dev near0 root tbf rate 20mbit burst 20kb limit 100kb"];

/// The loads of which the cost per packet is measured.
const LOADS: [(&str, &[&str], Load); 4] = [
    ("TCP of 1500 bytes, in a queue", FULL, tcp),
    ("UDP of 64 bytes, in a queue", OVERFULL, udp),
    ("TCP of 1500 bytes", OPEN, tcp),
    ("UDP of 64 bytes", OPEN, udp),
];

/// What is attached to the interface.
#[derive(Clone, Copy)]
enum Attached {
    Empty,
    Probe,
    Acting,
}

/// What is compared, with the name of its column.
const COMPARED: [(Attached, &str); 3] =
    [(Attached::Empty, "empty"), (Attached::Probe, "probe"), (Attached::Acting, "acting")];

impl Attached {
    /// The names of its programs: before the queue, behind it, and for drops.
    fn programs(self) -> [&'static str; 3] {
        match self {
            Self::Empty => ["empty_stamp", "empty_dequeue", "empty_dropped"],
            Self::Probe => ["stamp", "dequeue", "dropped"],
            Self::Acting => ["act", "dequeue", "dropped"],
        }
    }
}

pub fn measure(seconds: u64, rounds: u64) -> Result<()> {
    costs(Duration::from_secs(seconds), rounds)?;
    throughput(Duration::from_secs(seconds), rounds)
}

/// The cost per packet: of the probe, and of programs that do nothing.
pub fn costs(time: Duration, rounds: u64) -> Result<()> {
    println!(
        "nanoseconds per packet before the queue, as the kernel counts them and with its counting; medians of {rounds} alternating rounds\n(runs per packet)\n"
    );
    println!(
        "load                           attached    before          behind           drops            sum   above empty"
    );
    for (name, queue, load) in LOADS {
        let road = Road::new(queue, false)?;
        let _stats = enable_stats(Stats::RunTime)?;
        let mut found = COMPARED.map(|_| <[Vec<f64>; 7]>::default());
        for round in 0..rounds {
            let mut empty = f64::NAN;
            // The order of the probe's two ways alternates; what does nothing comes first, because the others are compared with it.
            for turn in 0..COMPARED.len() {
                let place = if round % 2 == 0 || turn == 0 { turn } else { COMPARED.len() - turn };
                let costs = Costs::of(&road, COMPARED[place].0, load, time)?;
                if place == 0 {
                    empty = costs.sum();
                }
                let columns = costs.nanoseconds.into_iter().chain(costs.runs).chain([costs.sum() - empty]);
                found[place].iter_mut().zip(columns).for_each(|(values, value)| values.push(value));
            }
        }
        for ((_, attached), values) in COMPARED.iter().zip(found) {
            print!("{name:30} {attached:6}");
            let [before, behind, drops, runs @ .., above] = values.map(quartiles);
            for (nanoseconds, runs) in [before, behind, drops].iter().zip(&runs) {
                print!("  {:6.0} ({:5.2})", nanoseconds[1], runs[1]);
            }
            let sum: f64 = [before, behind, drops].iter().map(|nanoseconds| nanoseconds[1]).sum();
            println!("  {sum:6.0}  {:6.0} ({:.0} to {:.0})", above[1], above[0], above[2]);
        }
    }
    println!();
    Ok(())
}

/// The cost of the programs at each place, for each packet that came.
struct Costs {
    nanoseconds: [f64; 3],
    runs: [f64; 3],
}

impl Costs {
    fn of(road: &Road, attached: Attached, load: Load, time: Duration) -> Result<Self> {
        let watching = Watching::attach(road, "near0", attached)?;
        load(road, time)?;
        let spent = attached.programs().map(spent);
        drop(watching);
        let packets = spent[0].0 as f64;
        ensure!(packets > 0.0, "no packet came");
        Ok(Self {
            nanoseconds: spent.map(|(_, time)| time.as_nanos() as f64 / packets),
            runs: spent.map(|(runs, _)| runs as f64 / packets),
        })
    }

    fn sum(&self) -> f64 {
        self.nanoseconds.iter().sum()
    }
}

/// The throughput without programs, with those that do nothing, and with the probe.
pub fn throughput(time: Duration, rounds: u64) -> Result<()> {
    println!("throughput without programs, with empty ones, and with the probe, {rounds} rounds in alternation\n");
    println!(
        "load                        without    empty    probe   ratios to without (median of the rounds, and their quartiles), and of probe to empty"
    );
    for (name, load, unit) in [("TCP of 1500 bytes, Gbit/s", tcp as Load, 8e-9), ("UDP of 64 bytes, Mpkt/s", udp, 1e-6)]
    {
        let road = Road::new(OPEN, false)?;
        let (mut rates, mut ratios) = (<[Vec<f64>; 3]>::default(), <[Vec<f64>; 3]>::default());
        for round in 0..rounds {
            let mut now = [0.0; 3];
            // The order rotates, so that a slow drift of the machine affects all of them equally.
            for turn in 0..now.len() {
                let how = (turn + round as usize) % now.len();
                let attached = [None, Some(Attached::Empty), Some(Attached::Probe)][how];
                let watching = attached.map(|attached| Watching::attach(&road, "near0", attached)).transpose()?;
                now[how] = load(&road, time)?;
                drop(watching);
            }
            rates.iter_mut().zip(now).for_each(|(rates, rate)| rates.push(rate * unit));
            let [without, empty, probe] = now;
            let here = [empty / without, probe / without, probe / empty];
            ratios.iter_mut().zip(here).for_each(|(ratios, ratio)| ratios.push(ratio));
        }
        print!("{name:25}");
        rates.into_iter().for_each(|rates| print!(" {:8.3}", quartiles(rates)[1]));
        for ratio in ratios {
            let [low, median, high] = quartiles(ratio);
            print!("   {median:.3} ({low:.3} to {high:.3})");
        }
        println!();
    }
    Ok(())
}

type Load = fn(&Road, Duration) -> Result<f64>;

/// Bytes per second of four TCP flows.
fn tcp(road: &Road, time: Duration) -> Result<f64> {
    road.flows(vec![None; 4], time)
}

/// Packets per second that arrive while one thread sends as fast as it can, each of 64 bytes including Ethernet. The reader polls:
/// waking it for a packet takes longer than carrying the packet, and a slightly slower sender would wake it more often.
fn udp(road: &Road, time: Duration) -> Result<f64> {
    let arrived = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let (sum, asked) = (Arc::clone(&arrived), Arc::clone(&stop));
    let reader = within(&road.sink, move || {
        let socket = UdpSocket::bind("10.9.0.2:7001")?;
        socket.set_nonblocking(true)?;
        Ok(thread::spawn(move || {
            alone(1);
            let mut bytes = [0; 64];
            while !asked.load(Ordering::Relaxed) {
                sum.fetch_add(u64::from(socket.recv(&mut bytes).is_ok()), Ordering::Relaxed);
            }
        }))
    })?;
    let asked = Arc::clone(&stop);
    let writer = within(&road.source, move || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect("10.9.0.2:7001")?;
        Ok(thread::spawn(move || {
            alone(0);
            while !asked.load(Ordering::Relaxed) {
                let _ = socket.send(&[0; 22]);
            }
        }))
    })?;
    let begun = Instant::now();
    thread::sleep(time);
    let rate = arrived.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for thread in [reader, writer] {
        let _ = thread.join();
    }
    Ok(rate)
}

/// Pins this thread to a processor, so that equal work is compared. Without this processor, the thread runs anywhere.
fn alone(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

/// Acting that chooses one in 16 packets of contributing flows.
fn acting() -> Result<Acting> {
    let curve = Curve::Steps(Steps::new([Step { from: 0.0, probability: 1.0 / 16.0 }])?);
    Ok(Acting { curve, dry: false, ..Acting::default() })
}

/// Programs that are attached, with a thread that reads the reports of the probe.
struct Watching {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watching {
    fn attach(road: &Road, device: &'static str, attached: Attached) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = within(&road.router, move || {
            if let Attached::Empty = attached {
                let programs = empty::attach(device)?;
                return Ok(thread::spawn(move || {
                    while !asked.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(10));
                    }
                    drop(programs);
                }));
            }
            let params = ProbeParams { headers: Headers::OfFlow, ..ProbeParams::default() };
            let mut probe = Probe::attach(device, params)?;
            if let Attached::Acting = attached {
                probe.act(&acting()?)?;
            }
            Ok(thread::spawn(move || {
                while !asked.load(Ordering::Relaxed) {
                    let _ = probe.left(|_| ());
                    thread::sleep(Duration::from_millis(10));
                }
            }))
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The number and the total time of runs of the programs with a name.
fn spent(name: &str) -> (u64, Duration) {
    let programs = loaded_programs().flatten().filter(|program| program.name_as_str() == Some(name));
    programs
        .fold((0, Duration::ZERO), |(runs, spent), program| (runs + program.run_count(), spent + program.run_time()))
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values.get(values.len() * quarter / 4).copied().unwrap_or(f64::NAN))
}
