//! How right the estimators are on a capture, against the number of snapshots: the tables of `docs/accuracy.md`.
//!
//! `cargo run --release -p queuescope --example accuracy -- CAPTURE RATE [RATE...]`
//!
//! The capture is replayed through a FIFO without a limit. As in ConQuest's section 5.1, tau is an eighth of the longest
//! delay and the window is the longest delay divided by the number of snapshots; each sketch has two rows and as many
//! columns as fit in 65 536 bytes.

use anyhow::{Context, Result, bail};
use queuescope_meter::{Contribution, ExactMeter, History, Past, Recent, Score};
use queuescope_pcap::CaptureReader;
use queuescope_queue::{Dropped, Limit, MarkReason, Outlet, Sink, TailDrop, TailDropParams};
use queuescope_sim::{Output, Replay};
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Weights};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{
    ByteCount, Class, Departure, FlowId, FlowTable, Granularity, Nanos, Packet, PacketId, QueueId, Rate,
};
use std::collections::BTreeMap;
use std::path::Path;

const ALPHAS: [f64; 4] = [0.01, 0.03, 0.1, 0.3];
const SNAPSHOTS: [usize; 6] = [2, 4, 8, 16, 32, 64];
const MEMORY: ByteCount = ByteCount(65_536);

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [capture, rates @ ..] = args.as_slice() else { bail!("usage: accuracy CAPTURE RATE [RATE...]") };
    for rate in rates {
        let rate: Rate = rate.parse()?;
        let log = replay(Path::new(capture), rate)?;
        report(capture, rate, &log);
    }
    Ok(())
}

/// A departure with the truth about it.
struct Truth {
    digest: u64,
    size: u32,
    from: Nanos,
    to: Nanos,
    part: Contribution,
    flows: u64,
}

struct Recorder {
    flows: FlowTable<queuescope_wire::FlowKey>,
    recent: Recent,
    exact: ExactMeter,
    log: Vec<Truth>,
}

impl Sink for Recorder {
    fn dropped(&mut self, _dropped: &Dropped) {
        unreachable!("the queue has no limit");
    }

    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {
        unreachable!("the queue marks nothing");
    }
}

impl Output for Recorder {
    fn departed(&mut self, departure: &Departure) {
        let (from, to, flow) = (departure.enqueued, departure.dequeued, departure.packet.flow);
        let size = departure.packet.size.0 as u32;
        self.recent.advance(from);
        self.exact.forget_before(from);
        let part = Contribution { own: self.exact.own(flow, from), total: self.recent.backlog_since(from).bytes.0 };
        let (digest, flows) = (self.flows.digest(flow), self.exact.flows_in_window());
        self.log.push(Truth { digest, size, from, to, part, flows });
        self.recent.record(Past { flow, size, enqueued: from, dequeued: to });
        self.exact.record(flow, size, to);
    }
}

fn replay(capture: &Path, rate: Rate) -> Result<Vec<Truth>> {
    let mut reader = CaptureReader::open(capture)?;
    let queue = TailDrop::new(TailDropParams { limit: Limit::None }, Outlet { rate, queue: QueueId(0), seed: 0 });
    let mut replay = Replay::new(queue, rate);
    let mut parser = Parser::new(Tunnel::Outer);
    let mut recorder = Recorder {
        flows: FlowTable::with_limit(usize::MAX),
        recent: Recent::new(History::Fifo),
        exact: ExactMeter::new(),
        log: Vec::new(),
    };
    let (mut now, mut id) = (Nanos::ZERO, 0);
    while let Some(record) = reader.next_record().context("the capture is damaged")? {
        now = now.max(record.time.unwrap_or(now));
        let frame = parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
        let key = Granularity::FiveTuple.project(&frame.key);
        let (flow, _): (FlowId, bool) = recorder.flows.intern(&key, key.digest(), now);
        let size = ByteCount(u64::from(frame.size));
        replay.arrive(Packet { id: PacketId(id), flow, size, class: Class(0), ecn: frame.ecn }, now, &mut recorder);
        id += 1;
    }
    replay.finish(&mut recorder);
    Ok(recorder.log)
}

fn report(capture: &str, rate: Rate, log: &[Truth]) {
    let wait = |truth: &Truth| truth.to - truth.from;
    let longest = log.iter().map(wait).max().unwrap_or_default();
    let tau = Nanos(longest.0 / 8);
    let hit: Vec<_> = log.iter().filter(|truth| wait(truth) >= tau).collect();
    let flows = hit.iter().map(|truth| truth.flows).sum::<u64>() as f64 / hit.len().max(1) as f64;
    let name = Path::new(capture).file_name().map_or(capture.into(), |name| name.to_string_lossy());
    println!(
        "\n### {name} at {rate}\n\n{} packets, longest delay {longest}, tau {tau}; {} packets waited that long, and met \
         {flows:.1} flows in the queue on average.\n",
        log.len(),
        hit.len()
    );
    let mut passes = BTreeMap::<(Estimator, usize), Vec<bool>>::new();
    println!("| h | C | estimator | alpha 1 % | alpha 3 % | alpha 10 % | alpha 30 % | mean error |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for snapshots in SNAPSHOTS {
        for (weights, name) in [(Weights::Fine, ""), (Weights::Eighths, " in eighths")] {
            let estimators = if weights == Weights::Fine { &Estimator::ALL[..] } else { &Estimator::ALL[2..] };
            for &estimator in estimators {
                let (params, scores) = judge(log, tau, longest, snapshots, estimator, weights);
                let cell = |score: &Score| {
                    let percent =
                        |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}", share * 100.0));
                    format!("{} / {}", percent(score.precision()), percent(score.recall()))
                };
                let cells: Vec<_> = scores.iter().map(cell).collect();
                if weights == Weights::Fine {
                    for (index, score) in scores.iter().enumerate() {
                        let good = |share: Option<f64>| share.is_some_and(|share| share >= 0.9);
                        let both = good(score.precision()) && good(score.recall());
                        passes.entry((estimator, index)).or_default().push(both);
                    }
                }
                println!(
                    "| {snapshots} | {} | {estimator}{name} | {} | {} |",
                    params.columns,
                    cells.join(" | "),
                    ByteCount(scores[0].mean_error().unwrap_or(0.0) as u64)
                );
            }
        }
    }
    print_passes(&passes);
}

/// From which number of snapshots on both precision and recall are at least 90 %.
fn print_passes(passes: &BTreeMap<(Estimator, usize), Vec<bool>>) {
    println!("\n| both at 90 % or more | alpha 1 % | alpha 3 % | alpha 10 % | alpha 30 % |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for estimator in Estimator::ALL {
        let from = |alpha: usize| {
            let good = &passes[&(estimator, alpha)];
            let bad = good.iter().rposition(|good| !good).map_or(0, |last_bad| last_bad + 1);
            SNAPSHOTS.get(bad).map_or("not up to 64".to_owned(), |h| format!("from h = {h}"))
        };
        println!("| {estimator} | {} |", (0..ALPHAS.len()).map(from).collect::<Vec<_>>().join(" | "));
    }
}

fn judge(
    log: &[Truth],
    tau: Nanos,
    longest: Nanos,
    snapshots: usize,
    estimator: Estimator,
    weights: Weights,
) -> (ConQuestParams, Vec<Score>) {
    let fitted = ConQuestParams::fit(longest, MEMORY, snapshots, Some(2), Expiry::Tag).expect("it fits");
    let window = Nanos(longest.0.div_ceil(snapshots as u64).max(1));
    let params = ConQuestParams { window, weights, ..fitted };
    let mut sketch = ConQuest::new(params.clone()).expect("the dimensions are possible");
    let mut scores: Vec<_> = ALPHAS.iter().map(|alpha| Score::new(estimator, *alpha)).collect();
    for truth in log {
        let estimate = sketch.observe(truth.digest, truth.size, truth.from, truth.to, estimator);
        if truth.to - truth.from >= tau {
            scores.iter_mut().for_each(|score| score.judge(truth.part, estimate));
        }
    }
    (params, scores)
}
