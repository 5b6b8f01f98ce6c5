//! The cost of the probe: nanoseconds per run, as the kernel counts them, and throughput when the processor is the limit,
//! alternating with and without the probe.

use crate::road::{Road, within};
use anyhow::Result;
use aya::programs::loaded_programs;
use aya::sys::{Stats, enable_stats};
use queuescope_live::{Acting, Probe, ProbeParams};
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
/// The probe's programs.
const PROGRAMS: [&str; 4] = ["stamp", "act", "dequeue", "dropped"];

pub fn measure(seconds: u64, rounds: u64) -> Result<()> {
    let time = Duration::from_secs(seconds);
    println!("nanoseconds a run, as the kernel counts them (its counting adds some 70), and runs\n");
    println!(
        "load                                      stamp                act            dequeue            dropped"
    );
    for ((name, queue, load), acts) in [
        ("TCP of 1500 bytes, in a queue", FULL, tcp as Load),
        ("UDP of 64 bytes, in a queue", OVERFULL, udp),
        ("TCP of 1500 bytes", OPEN, tcp),
        ("UDP of 64 bytes", OPEN, udp),
    ]
    .into_iter()
    .flat_map(|load| [(load, false), (load, true)])
    {
        let road = Road::new(queue, false)?;
        let _stats = enable_stats(Stats::RunTime)?;
        let probe = attach(&road, "near0", acts)?;
        load(&road, time)?;
        print!("{name:29} {:7}", if acts { "acting" } else { "" });
        for program in PROGRAMS {
            let (runs, spent) = spent(program);
            let each = spent.as_nanos() as f64 / runs.max(1) as f64;
            print!(" {each:6.0} x {runs:9}");
        }
        println!();
        drop(probe);
    }
    println!(
        "\nthroughput without the probe, with it on another interface, and with it, {rounds} rounds in alternation\n"
    );
    println!(
        "load                      without elsewhere     with   ratios (median of the rounds, and their quartiles)"
    );
    for (name, load, unit) in [("TCP of 1500 bytes, Gbit/s", tcp as Load, 8e-9), ("UDP of 64 bytes, Mpkt/s", udp, 1e-6)]
    {
        let road = Road::new(OPEN, false)?;
        let (mut rates, mut ratios) = (<[Vec<f64>; 3]>::default(), <[Vec<f64>; 2]>::default());
        for round in 0..rounds {
            let mut now = [0.0; 3];
            // The order rotates, so that a slow drift of the machine affects all of them equally.
            for turn in 0..now.len() {
                let how = (turn + round as usize) % now.len();
                // The kernel also runs the program for packets of other interfaces. This is the cost of tracing itself.
                let device = [None, Some("lo"), Some("near0")][how];
                let probe = device.map(|device| attach(&road, device, false)).transpose()?;
                now[how] = load(&road, time)?;
                drop(probe);
            }
            rates.iter_mut().zip(now).for_each(|(rates, rate)| rates.push(rate * unit));
            ratios.iter_mut().zip(&now[1..]).for_each(|(ratios, rate)| ratios.push(rate / now[0]));
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

/// The probe, with a thread that reads its reports.
struct Watching {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

fn attach(road: &Road, device: &'static str, acts: bool) -> Result<Watching> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let thread = within(&road.router, move || {
        let mut probe = Probe::attach(device, ProbeParams::default())?;
        if acts {
            probe.act(&acting()?)?;
        }
        Ok(thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                let _ = probe.left(|_| ());
                thread::sleep(Duration::from_millis(10));
            }
        }))
    })?;
    Ok(Watching { stop, thread: Some(thread) })
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
