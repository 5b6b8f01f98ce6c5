//! What cuts cost the host: records that it takes, and how long an append takes, with a cut each millisecond and without.

use crate::agent::{connection, served};
use crate::hosts::Fleet;
use hdrhistogram::Histogram;
use queuescope_archive::Recorder;
use queuescope_wire::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Memory of the log.
const MEMORY: u64 = 2_000_000_000;
/// Records that are appended at once, as a capture does.
const BATCH: usize = 256;
/// The time of a measurement: the records that come meanwhile fit in memory.
const SLICE: Duration = Duration::from_millis(100);
/// Records a second while appends are timed.
const RATE: u64 = 100_000;

/// Alternates seconds with cuts and seconds without.
pub fn measure(seconds: u64) {
    let fleet = Fleet::start(0);
    let folder = fleet.dir.path().join("agent-0");
    let (served, recorder) = served(&folder, MEMORY);
    let connection = connection(&folder, &fleet.address);
    fleet.runtime.spawn(async move {
        let Err(why) = served.serve(&connection, &|_event| ()).await;
        panic!("{why}");
    });
    fleet.wait_for(1);
    let (mut with, mut without, mut cuts) = (Vec::new(), Vec::new(), 0);
    for slice in 0..8 * seconds {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let cutter = (slice % 2 == 1).then(|| scope.spawn(|| cut_each_millisecond(&fleet, &stop)));
            let rate = ingest(&recorder, SLICE);
            stop.store(true, Ordering::Relaxed);
            match cutter {
                Some(cutter) => {
                    with.push(rate);
                    cuts += cutter.join().expect("it ends");
                }
                None => without.push(rate),
            }
        });
        // The next slice must not wait for the disk.
        recorder.flush().expect("the disk takes it");
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let (with, without) = (median(&mut with), median(&mut without));
    println!(
        "ingest: {:.2} million records a second without cuts, {:.2} with {} a second: {:.1} % less",
        without / 1e6,
        with / 1e6,
        cuts / seconds,
        (1.0 - with / without) * 100.0
    );
    for name in ["without cuts", "with a cut each millisecond"] {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let cutter = (name != "without cuts").then(|| scope.spawn(|| cut_each_millisecond(&fleet, &stop)));
            let times = append_times(&recorder, Duration::from_secs(seconds));
            stop.store(true, Ordering::Relaxed);
            cutter.into_iter().for_each(|cutter| _ = cutter.join().expect("it ends"));
            let us = |at| times.value_at_quantile(at) as f64 / 1e3;
            println!(
                "append of one record, {RATE} a second, {name}: median {:.2} us, 99 % {:.2}, 99.9 % {:.2}, 99.99 % {:.2}",
                us(0.5),
                us(0.99),
                us(0.999),
                us(0.9999)
            );
        });
    }
}

/// Makes cuts, one a millisecond, until `stop`; returns how many.
fn cut_each_millisecond(fleet: &Fleet, stop: &AtomicBool) -> u64 {
    fleet.runtime.block_on(async {
        let mut tick = tokio::time::interval(Duration::from_millis(1));
        let mut cuts = 0;
        while !stop.load(Ordering::Relaxed) {
            tick.tick().await;
            let made = fleet.coordinator.cut(&[], Nanos(100_000_000)).await.expect("nobody else makes one");
            cuts += u64::from(made.positions.len() == 1 && made.lapsed.is_empty());
        }
        cuts
    })
}

/// Records a second that are appended in batches, as fast as possible.
fn ingest(recorder: &Recorder, time: Duration) -> f64 {
    let batch = vec![0; BATCH * recorder.log().schema().record_size()];
    let (begun, mut records) = (Instant::now(), 0);
    while begun.elapsed() < time {
        for _ in 0..16 {
            records += BATCH as u64 - recorder.append(&batch).expect("there is room").refused;
        }
    }
    records as f64 / begun.elapsed().as_secs_f64()
}

/// The times of single appends at a steady rate.
fn append_times(recorder: &Recorder, time: Duration) -> Histogram<u64> {
    let record = vec![0; recorder.log().schema().record_size()];
    let mut times = Histogram::new(3).expect("three digits");
    let (begun, mut next) = (Instant::now(), Duration::ZERO);
    while next < time {
        while begun.elapsed() < next {
            std::hint::spin_loop();
        }
        let before = Instant::now();
        let appended = recorder.append(&record).expect("there is room");
        times.record(before.elapsed().as_nanos() as u64).expect("any value fits");
        assert_eq!(appended.refused, 0);
        next += Duration::from_nanos(1_000_000_000 / RATE);
    }
    times
}
