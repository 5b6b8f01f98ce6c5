//! The number of departures per second that the streaming culprits handle on one core: the table of `docs/explanation/windows.md`.
//!
//! `cargo bench -p queuescope-meter --bench culprits`
//!
//! The time covers everything: windows, levels, busy periods, and finding the culprits of each period's worst victim. A plain ring buffer
//! of the last departures, which answers no queries, is measured for comparison.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../examples/streaming/workload.rs"]
mod workload;

use queuescope_meter::{MonitorParams, QueueMonitor};
use queuescope_sketch::{Windows, WindowsParams};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};
use std::hint::black_box;
use std::time::Instant;
use workload::{Mix, Stream, WEB_SEARCH, Workload};

/// The departures of a stream, and the number of passes over it in a run.
const DEPARTURES: usize = 1 << 20;
const PASSES: u64 = 4;
/// The runs of each contestant; the median counts.
const RUNS: usize = 7;
/// The capacity of the ring buffer in departures: 1.5 MiB.
const RING: usize = 1 << 16;

fn main() {
    let never = (1e-4, 1e-4);
    let bursts = (100e-6, 0.2);
    let always = (100.0, 100.0);
    let web = Mix::Sizes(WEB_SEARCH, 100);
    let workloads = [
        Workload { name: "ten bursts a second, web search, 10 Gb/s", rate: 1e10, lengths: bursts, flows: web },
        Workload { name: "always congested, web search, 100 Gb/s", rate: 1e11, lengths: always, flows: web },
        Workload {
            name: "always congested, Zipf over 20 000 flows",
            rate: 1e11,
            lengths: always,
            flows: Mix::Zipf(20_000, 1.0),
        },
        Workload {
            name: "always congested, 64 bytes, 20 000 equal flows",
            rate: 1e11,
            lengths: always,
            flows: Mix::Equal(20_000),
        },
        Workload { name: "hardly congested, web search, 10 Gb/s", rate: 1e10, lengths: never, flows: web },
    ];
    println!("{} departures a run, medians of {RUNS} runs", DEPARTURES as u64 * PASSES);
    for workload in workloads {
        compare(workload);
    }
}

/// Handles a departure.
type Take<'a> = Box<dyn FnMut(&[PackedDeparture], u64) + 'a>;

fn compare(workload: Workload) {
    let mut stream = Stream::new(workload, 1);
    let departures: Vec<_> = (0..DEPARTURES).map(|_| PackedDeparture::new(&stream.next())).collect();
    let length = departures[DEPARTURES - 1].dequeued + 1_000_000;
    let mut ring = vec![(0u64, 0u32, 0u32); RING];
    let mut next = 0;
    let mut windows = Windows::new(WindowsParams::default()).expect("the default is sound");
    let mut monitor = QueueMonitor::new(MonitorParams::default()).expect("the default is sound");
    let contestants: [(&str, Take); 3] = [
        (
            "ring of departures",
            Box::new(|stream, base| {
                for left in stream {
                    ring[next % RING] = (base + left.dequeued, left.flow, left.size);
                    next += 1;
                }
                black_box(&ring);
            }),
        ),
        (
            "windows, of all departures",
            Box::new(|stream, base| {
                for left in stream {
                    windows.record(FlowId(left.flow), left.size, Nanos(base + left.dequeued));
                }
            }),
        ),
        (
            "windows and monitor",
            Box::new(|stream, base| stream.iter().for_each(|left| monitor.departed(&left.departure(base)))),
        ),
    ];
    let mut timed: Vec<_> = contestants.into_iter().map(|(name, take)| (name, take, Vec::new())).collect();
    let mut base = 0;
    for _ in 0..RUNS {
        for (_, take, seconds) in &mut timed {
            let start = Instant::now();
            for pass in 0..PASSES {
                take(&departures, base + pass * length);
            }
            seconds.push(start.elapsed().as_secs_f64());
        }
        base += PASSES * length;
    }
    println!("\n{:<50} {:>14} {:>10} {:>8}", workload.name, "departures/s", "slowest", "to ring");
    let mut ring = None;
    for (name, _, mut seconds) in timed {
        seconds.sort_by(f64::total_cmp);
        let rate = |seconds: f64| (DEPARTURES as u64 * PASSES) as f64 / seconds / 1e6;
        let (median, slowest) = (rate(seconds[RUNS / 2]), rate(seconds[RUNS - 1]));
        println!("  {name:<48} {median:>12.1} M {slowest:>8.1} M {:>7.2}x", median / *ring.get_or_insert(median));
    }
    let stats = monitor.stats();
    let recorded = 100.0 * stats.recorded as f64 / stats.departures as f64;
    println!("  of the departures {recorded:.0} % were recorded, in {} congested periods", stats.congested);
}

/// A departure in 32 bytes.
struct PackedDeparture {
    enqueued: u64,
    dequeued: u64,
    backlog: u64,
    flow: u32,
    size: u32,
}

impl PackedDeparture {
    fn new(departure: &Departure) -> Self {
        Self {
            enqueued: departure.enqueued.0,
            dequeued: departure.dequeued.0,
            backlog: departure.backlog_in.bytes.0,
            flow: departure.packet.flow.0,
            size: departure.packet.size.0 as u32,
        }
    }

    #[inline]
    fn departure(&self, base: u64) -> Departure {
        let size = ByteCount(u64::from(self.size));
        Departure {
            packet: Packet { id: PacketId(0), flow: FlowId(self.flow), size, class: Class(0), ecn: Ecn::NotEct },
            queue: QueueId(0),
            enqueued: Nanos(base + self.enqueued),
            dequeued: Nanos(base + self.dequeued),
            backlog_in: Backlog { packets: 0, bytes: ByteCount(self.backlog) },
            backlog_out: Backlog::default(),
        }
    }
}
