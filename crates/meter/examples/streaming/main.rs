//! The accuracy of the streaming culprits, by the age and the length of bursts: the tables of `docs/explanation/windows.md`.
//!
//! `cargo run --release -p queuescope-meter --example streaming [SECONDS [WORKLOAD]]`
//!
//! A link has ten bursts a second. In each busy period in which a packet waited at least tau, three victims are recorded with their true
//! culprits of at least 1 %: the one that waited longest, and two random ones. Four times a second, [`QueueMonitor`] is queried
//! about all victims that are at most ten seconds and 64 times the length of their burst old.

mod truth;
mod workload;

use queuescope_meter::{MonitorParams, QueueMonitor};
use queuescope_sketch::Share;
use queuescope_wire::Nanos;
use truth::{Burst, Hits, TrueBursts};
use workload::{DATA_MINING, Mix, Stream, WEB_SEARCH, Workload};

const ALPHA: f64 = 0.01;
const OLDEST: u64 = 10_000_000_000;
/// Upper limits of the rows, in seconds.
const AGES: [f64; 7] = [0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
const LENGTHS: [f64; 4] = [0.001, 0.01, 0.1, 1.0];

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(12.0);
    let chosen = args.next();
    let lengths = (100e-6, 0.2);
    let workloads = [
        Workload { name: "web-1g", rate: 1e9, lengths, flows: Mix::Sizes(WEB_SEARCH, 60) },
        Workload { name: "web-10g", rate: 1e10, lengths, flows: Mix::Sizes(WEB_SEARCH, 100) },
        Workload { name: "mining-10g", rate: 1e10, lengths, flows: Mix::Sizes(DATA_MINING, 100) },
        Workload { name: "zipf-10g", rate: 1e10, lengths, flows: Mix::Zipf(20_000, 1.1) },
        Workload { name: "equal-10g", rate: 1e10, lengths, flows: Mix::Equal(70) },
        Workload { name: "long-10g", rate: 1e10, lengths: (0.05, 0.15), flows: Mix::Sizes(WEB_SEARCH, 100) },
        Workload { name: "web-100g", rate: 1e11, lengths, flows: Mix::Sizes(WEB_SEARCH, 200) },
    ];
    let params = MonitorParams::default();
    println!("{} in memory, tau {}, {seconds} s", params.memory(), params.tau);
    for workload in workloads {
        if chosen.as_deref().is_none_or(|name| name == workload.name) {
            run(workload, &params, seconds);
        }
    }
}

/// Precision and recall of each kind of query.
#[derive(Default, Clone)]
struct Scores {
    direct: Hits,
    indirect: Hits,
    original: Hits,
    direct_again: Hits,
    indirect_again: Hits,
    long_direct: Hits,
    long_indirect: Hits,
}

fn run(workload: Workload, params: &MonitorParams, seconds: f64) {
    let mut stream = Stream::new(workload, 7);
    // The time of four full packets, and at least 10 us.
    let tau = Nanos((4.0 * 1514.0 * 8e9 / workload.rate) as u64).max(params.tau);
    let mut monitor = QueueMonitor::new(MonitorParams { tau, ..params.clone() }).expect("the default is sound");
    let mut noted = TrueBursts::new(tau);
    let mut by_age = vec![Scores::default(); AGES.len()];
    let mut by_length = vec![Scores::default(); LENGTHS.len()];
    let mut lost = 0u64;
    let mut ask = Nanos(250_000_000);
    loop {
        let departure = stream.next();
        if departure.enqueued.as_secs_f64() > seconds {
            break;
        }
        monitor.departed(&departure);
        noted.departed(&departure);
        if departure.dequeued >= ask {
            ask.0 += 250_000_000;
            for burst in &noted.bursts {
                let Some((age, length)) = in_question(burst, departure.dequeued) else { continue };
                let mut scores = Scores::default();
                lost += u64::from(!score(&monitor, burst, age, &mut scores));
                by_age[row_of(&AGES, age)].add(&scores);
                by_length[row_of(&LENGTHS, length)].add(&scores);
            }
            noted.forget(departure.dequeued.saturating_sub(Nanos(OLDEST)));
        }
    }
    let stats = monitor.stats();
    let reach = Nanos((seconds * 1e9) as u64).saturating_sub(monitor.since());
    println!(
        "\n{}: {} departures, {:.0} % recorded; {} bursts; reach {reach}; {lost} questions about forgotten periods",
        workload.name,
        stats.departures,
        100.0 * stats.recorded as f64 / stats.departures as f64,
        noted.count,
    );
    let kinds = |kinds: &[&str]| kinds.iter().map(|kind| format!("{kind:^17}")).collect::<Vec<_>>().join(" ");
    let (two, three) = (kinds(&["direct", "indirect"]), kinds(&["direct", "indirect", "original"]));
    println!("{:>9} | {:^53} | {:^35} | {:^35}", "", "worst victim, kept", "by windows", "any interval >= age/64");
    println!("{:>9} | {three} | {two} | {two}", "");
    let mut all = Scores::default();
    for (age, scores) in AGES.iter().zip(&by_age) {
        row(&format!("age {age}"), scores);
        all.add(scores);
    }
    for (length, scores) in LENGTHS.iter().zip(&by_length) {
        row(&format!("len {length}"), scores);
    }
    row("all", &all);
}

fn row(name: &str, s: &Scores) {
    println!(
        "{name:>9} | {} {} {} | {} {} | {} {}",
        s.direct, s.indirect, s.original, s.direct_again, s.indirect_again, s.long_direct, s.long_indirect
    );
}

impl Scores {
    fn add(&mut self, other: &Self) {
        self.direct.add(&other.direct);
        self.indirect.add(&other.indirect);
        self.original.add(&other.original);
        self.direct_again.add(&other.direct_again);
        self.indirect_again.add(&other.indirect_again);
        self.long_direct.add(&other.long_direct);
        self.long_indirect.add(&other.long_indirect);
    }
}

/// The age and the length of a burst that is queried, ns.
fn in_question(burst: &Burst, now: Nanos) -> Option<(u64, u64)> {
    let (age, length) = (now.saturating_sub(burst.end).0, burst.end.saturating_sub(burst.start).0);
    (age <= OLDEST && length >= age / 64).then_some((age, length))
}

fn row_of(ends: &[f64], nanos: u64) -> usize {
    ends.iter().position(|end| nanos as f64 / 1e9 <= *end).unwrap_or(ends.len() - 1)
}

/// Queries a burst; returns whether it is still remembered.
fn score(monitor: &QueueMonitor, burst: &Burst, age: u64, scores: &mut Scores) -> bool {
    for (number, victim) in burst.victims.iter().enumerate() {
        let flows = |shares: &mut dyn Iterator<Item = Share>| shares.map(|share| share.flow).collect::<Vec<_>>();
        let direct = flows(&mut monitor.left_in(victim.came, victim.left).at_least(ALPHA));
        let Some(indirect) = monitor.indirect(victim.came) else { return false };
        let indirect = flows(&mut indirect.at_least(ALPHA));
        let wait = victim.left.saturating_sub(victim.came).0;
        if wait >= age / 64 {
            scores.long_direct.count(&direct, &victim.direct);
        }
        if victim.came.saturating_sub(burst.start).0 >= age / 64 {
            scores.long_indirect.count(&indirect, &victim.indirect);
        }
        if number > 0 {
            continue;
        }
        scores.direct_again.count(&direct, &victim.direct);
        scores.indirect_again.count(&indirect, &victim.indirect);
        let Some(worst) = monitor.worst(victim.came) else { return false };
        scores.direct.count(&flows(&mut worst.direct.at_least(ALPHA)), &victim.direct);
        scores.indirect.count(&flows(&mut worst.indirect.at_least(ALPHA)), &victim.indirect);
        scores.original.count(&flows(&mut worst.original.at_least(ALPHA)), &victim.original);
    }
    true
}
