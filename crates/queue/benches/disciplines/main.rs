//! Measures the processing time per packet in each discipline, in nanoseconds: enqueue and dequeue, or drop.
//!
//! `cargo bench -p queuescope-queue --bench disciplines`
//!
//! Packets of 1500 bytes from 50 flows arrive at random at a link of 1 Gb/s, with a load of 0.8 or 1.05. The loop also
//! keeps the times of arrivals and of the link, and does nothing else.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use queuescope_queue::{
    Discipline, DisciplineParams, Dropped, FqCodelParams, Limit, MarkReason, MultiQueueParams, Outlet, RedParams,
    Scheduler, Sink, TailDropParams,
};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet, PacketId, QueueId, Rate};
use std::hint::black_box;
use std::time::Instant;

const PACKETS: usize = 1 << 20;
/// The number of runs for each discipline; the median is reported.
const RUNS: usize = 7;
/// The time that the link needs for a packet, in nanoseconds.
const SERVICE: u64 = 12_000;

fn main() {
    let mut contestants: Vec<_> =
        DisciplineParams::defaults().into_iter().map(|params| (params.name().to_owned(), params)).collect();
    let limit = Limit::Packets(1000);
    let deficit = Scheduler::Deficit { quantum: ByteCount(1514) };
    contestants.extend([
        ("tail-drop, 1000 packets".into(), DisciplineParams::TailDrop(TailDropParams { limit })),
        (
            "multi-queue, deficit".into(),
            DisciplineParams::MultiQueue(MultiQueueParams { scheduler: deficit, limit, ..MultiQueueParams::default() }),
        ),
        ("red, adaptive".into(), DisciplineParams::Red(RedParams::adaptive(limit))),
        ("red, step at 65".into(), DisciplineParams::Red(RedParams::step(65, limit))),
        (
            "fq-codel, 1000 packets".into(),
            DisciplineParams::FqCodel(FqCodelParams { limit, ..FqCodelParams::default() }),
        ),
    ]);
    println!("{PACKETS} packets a run, medians of {RUNS} runs, ns a packet");
    println!("{:<28}{:>12}{:>12}", "", "load 0.8", "load 1.05");
    for (name, params) in contestants {
        let [light, heavy] = [0.8, 1.05].map(|load| median(&params, &arrivals(load)));
        println!("{name:<28}{light:>12.1}{heavy:>12.1}");
    }
}

/// The arrival times of packets, and their flows.
fn arrivals(load: f64) -> Vec<(Nanos, u32)> {
    let mut bits = 1u64;
    let mut random = |below: u64| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (bits >> 33) % below
    };
    let most = (2.0 * SERVICE as f64 / load) as u64;
    let mut now = 0;
    let mut arrival = || {
        now += random(most);
        (Nanos(now), random(50) as u32)
    };
    (0..PACKETS).map(|_| arrival()).collect()
}

fn median(params: &DisciplineParams, arrivals: &[(Nanos, u32)]) -> f64 {
    let mut times: Vec<_> = (0..RUNS).map(|_| run(params, arrivals)).collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn run(params: &DisciplineParams, arrivals: &[(Nanos, u32)]) -> f64 {
    let rate = Rate::from_bits_per_second(1_000_000_000).expect("it is not zero");
    let mut queue = params.build(Outlet { overhead: 0, rate, queue: QueueId(0), seed: 1 });
    let (mut free, mut counts) = (Nanos::ZERO, DropAndMarkCounts::default());
    let started = Instant::now();
    for (id, &(now, flow)) in arrivals.iter().enumerate() {
        while free < now {
            while let Some(due) = queue.next_timer().filter(|&due| due <= free) {
                queue.on_timer(due);
            }
            match queue.dequeue(free, &mut counts) {
                Some(left) => {
                    black_box(&left);
                    free = free + Nanos(SERVICE);
                }
                None => free = now,
            }
        }
        while let Some(due) = queue.next_timer().filter(|&due| due <= now) {
            queue.on_timer(due);
        }
        let ecn = if flow % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let class = Class((flow % 8) as u8);
        let packet = Packet { id: PacketId(id as u64), flow: FlowId(flow), size: ByteCount(1500), class, ecn };
        queue.enqueue(packet, now, &mut counts);
    }
    let time = started.elapsed();
    black_box((queue.backlog(), counts.drops, counts.marks));
    time.as_nanos() as f64 / arrivals.len() as f64
}

#[derive(Default)]
struct DropAndMarkCounts {
    drops: u64,
    marks: u64,
}

impl Sink for DropAndMarkCounts {
    fn dropped(&mut self, _dropped: &Dropped) {
        self.drops += 1;
    }

    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {
        self.marks += 1;
    }
}
