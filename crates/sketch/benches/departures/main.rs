//! Measures departures per second on one core: the sketch and an exact sliding window, in turn, on the same packets.
//!
//! `cargo bench -p queuescope-sketch` prints the table of `docs/explanation/sketch.md`.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod window;

use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Passes};
use queuescope_wire::{ByteCount, Family, FlowKey, Nanos};
use std::hint::black_box;
use std::time::Instant;
use window::ExactWindow;

const FLOWS: usize = 20_000;
/// Packets in the queue when the next one arrives.
const QUEUED: usize = 1_000;
/// The packets of a stream, and how often a run repeats it.
const PACKETS: usize = 1 << 18;
const PASSES: usize = 8;
/// The number of runs for each contestant; the median is reported.
const RUNS: usize = 5;
const MEMORY: ByteCount = ByteCount(65_536);

/// One packet as it leaves the queue.
#[derive(Clone, Copy)]
struct Leaving {
    key: u64,
    weight: u32,
    from: u64,
    to: u64,
}

struct Stream {
    leaving: Vec<Leaving>,
    keys: Vec<FlowKey>,
    /// The longest sojourn time and the length of the stream, in nanoseconds.
    longest: u64,
    length: u64,
}

struct Contestant<'a> {
    name: String,
    bytes: u64,
    run: Box<dyn FnMut() -> u64 + 'a>,
    seconds: Vec<f64>,
}

fn main() {
    println!(
        "{FLOWS} flows, {QUEUED} packets in the queue, {} departures a run, medians of {RUNS} runs",
        PACKETS * PASSES
    );
    for (name, stream) in [("uniform", stream(0.0)), ("Zipf, s = 1", stream(1.0))] {
        println!("\nflows: {name}");
        println!("{:<34} {:>9} {:>14} {:>10} {:>10}", "", "bytes", "departures/s", "fastest", "to exact");
        check(&stream);
        compare(&stream);
    }
}

fn compare(stream: &Stream) {
    let clean = Expiry::Clean { passes: Passes::Generated };
    let mut contestants = vec![exact(stream)];
    for (snapshots, expiry) in [(4, Expiry::Tag), (8, Expiry::Tag), (4, clean), (8, clean)] {
        contestants.push(sketch(stream, snapshots, expiry));
    }
    contestants.push(from_key(stream));
    for _ in 0..RUNS {
        for contestant in &mut contestants {
            let start = Instant::now();
            black_box((contestant.run)());
            contestant.seconds.push(start.elapsed().as_secs_f64());
        }
    }
    let mut exact = None;
    for Contestant { name, bytes, mut seconds, .. } in contestants {
        seconds.sort_by(f64::total_cmp);
        let rate = (PACKETS * PASSES) as f64 / seconds[RUNS / 2];
        let best = (PACKETS * PASSES) as f64 / seconds[0];
        let ratio = rate / *exact.get_or_insert(rate);
        println!("{name:<34} {bytes:>9} {:>12.1} M {:>8.1} M {ratio:>9.2}x", rate / 1e6, best / 1e6);
    }
}

/// Checks that the contestants do the same work: the sketch never underestimates, and its windows cover every interval.
fn check(stream: &Stream) {
    let mut window = ExactWindow::new(QUEUED + 1);
    let mut sketch = ConQuest::new(fit(stream, 4, Expiry::Tag)).expect("fitted");
    for &Leaving { key, weight, from, to } in &stream.leaving {
        let truth = window.observe(key, weight, from, to);
        let estimate = sketch.observe(key, weight, Nanos(from), Nanos(to), Estimator::Outer);
        assert!(estimate >= truth, "{estimate} is less than {truth}");
    }
    assert_eq!(sketch.stats().clipped, 0);
}

fn exact(stream: &Stream) -> Contestant<'_> {
    let mut window = ExactWindow::new(QUEUED + 1);
    let bytes = window.bytes();
    let mut base = 0;
    let run = move || {
        let mut sum = 0;
        for _ in 0..PASSES {
            for &Leaving { key, weight, from, to } in &stream.leaving {
                sum ^= window.observe(key, weight, base + from, base + to);
            }
            base += stream.length;
        }
        sum
    };
    Contestant { name: "exact sliding window".to_owned(), bytes, run: Box::new(run), seconds: Vec::new() }
}

fn sketch(stream: &Stream, snapshots: usize, expiry: Expiry) -> Contestant<'_> {
    let params = fit(stream, snapshots, expiry);
    let bytes = params.memory().0;
    let mut sketch = ConQuest::new(params).expect("fitted");
    let mut base = 0;
    let run = move || {
        let mut sum = 0;
        for _ in 0..PASSES {
            for &Leaving { key, weight, from, to } in &stream.leaving {
                sum ^= sketch.observe(key, weight, Nanos(base + from), Nanos(base + to), Estimator::Overlap);
            }
            base += stream.length;
        }
        assert_eq!(sketch.stats().dirty, 0, "old counts would make the estimates wrong");
        sum
    };
    Contestant { name: format!("sketch, h = {snapshots}, {expiry}"), bytes, run: Box::new(run), seconds: Vec::new() }
}

/// The sketch, including the digest of the five-tuple.
fn from_key(stream: &Stream) -> Contestant<'_> {
    let params = fit(stream, 4, Expiry::Tag);
    let bytes = params.memory().0;
    let mut sketch = ConQuest::new(params).expect("fitted");
    let mut base = 0;
    let run = move || {
        let mut sum = 0;
        for _ in 0..PASSES {
            for (key, &Leaving { weight, from, to, .. }) in stream.keys.iter().zip(&stream.leaving) {
                let (from, to) = (Nanos(base + from), Nanos(base + to));
                sum ^= sketch.observe(key.digest(), weight, from, to, Estimator::Overlap);
            }
            base += stream.length;
        }
        sum
    };
    Contestant {
        name: "sketch, h = 4, tag, from five-tuple".to_owned(),
        bytes,
        run: Box::new(run),
        seconds: Vec::new(),
    }
}

fn fit(stream: &Stream, snapshots: usize, expiry: Expiry) -> ConQuestParams {
    ConQuestParams::fit(Nanos(stream.longest), MEMORY, snapshots, Some(2), expiry)
        .expect("there is memory for a column")
}

/// The departures of a link at 10 Gb/s that is never idle. Every packet found `QUEUED` others, so all sojourn times are
/// near the longest, and every estimate reads all windows.
fn stream(exponent: f64) -> Stream {
    let mut random = Random(1);
    let mut shares: Vec<f64> = (1..=FLOWS).map(|rank| (rank as f64).powf(-exponent)).collect();
    for rank in 1..FLOWS {
        shares[rank] += shares[rank - 1];
    }
    let flows: Vec<FlowKey> = (0..FLOWS).map(|_| flow(&mut random)).collect();
    let (mut leaving, mut keys) = (Vec::with_capacity(PACKETS), Vec::with_capacity(PACKETS));
    let (mut times, mut now) = (Vec::with_capacity(PACKETS + QUEUED), QUEUED as u64 * 1_231);
    for packet in 0..PACKETS + QUEUED {
        let weight = if random.below(3) == 0 { 64 + random.below(1_000) as u32 } else { 1_514 };
        now += u64::from(weight) * 8 / 10;
        times.push(now);
        if packet >= QUEUED {
            let point = random.fraction() * shares[FLOWS - 1];
            let key = flows[shares.partition_point(|share| *share < point).min(FLOWS - 1)];
            leaving.push(Leaving { key: key.digest(), weight, from: times[packet - QUEUED], to: now });
            keys.push(key);
        }
    }
    let longest = leaving.iter().map(|packet| packet.to - packet.from).max().unwrap_or(1);
    Stream { leaving, keys, longest, length: now - times[QUEUED - 1] }
}

fn flow(random: &mut Random) -> FlowKey {
    FlowKey {
        src: u128::from(random.next() as u32),
        dst: u128::from(random.next() as u32),
        src_port: random.next() as u16,
        dst_port: 443,
        protocol: 6,
        family: Family::V4,
        ..FlowKey::default()
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
