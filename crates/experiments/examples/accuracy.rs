//! How accurate the estimators are on a capture, by the number of snapshots: the tables of `bench/accuracy.md`.
//!
//! `cargo run --release -p queuescope-experiments --example accuracy -- CAPTURE RATE [RATE...]`
//!
//! The capture is replayed through a FIFO without a limit. As in ConQuest's section 5.1, tau is an eighth of the
//! longest delay, and the window is the longest delay divided by the number of snapshots. Each sketch has two rows and
//! as many columns as fit in 65 536 bytes.

use queuescope_experiments::truths::of_capture;
use queuescope_meter::{ExactDepartures, Score};
use queuescope_sim::Speedup;
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Weights};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

const ALPHAS: [f64; 4] = [0.01, 0.03, 0.1, 0.3];
const SNAPSHOTS: [usize; 6] = [2, 4, 8, 16, 32, 64];
const MEMORY: ByteCount = ByteCount(65_536);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [capture, rates @ ..] = args.as_slice() else { return Err("usage: accuracy CAPTURE RATE [RATE...]".into()) };
    for rate in rates {
        let rate: Rate = rate.parse()?;
        let left = of_capture(Path::new(capture), rate, Speedup::NONE)?;
        report(capture, rate, &left.truths);
    }
    Ok(())
}

fn report(capture: &str, rate: Rate, truths: &ExactDepartures) {
    let longest = truths.longest();
    let tau = truths.tau();
    let crowd = truths.crowd(tau, ALPHAS[0]);
    let flows = crowd.mean().unwrap_or(0.0);
    let name = Path::new(capture).file_name().map_or(capture.into(), |name| name.to_string_lossy());
    println!(
        "\n### {name} at {rate}\n\n{} packets, longest delay {longest}, tau {tau}; {} packets waited that long, and met \
         {flows:.1} flows in the queue on average.\n",
        truths.all().len(),
        crowd.flows.len()
    );
    let mut passes = BTreeMap::<(Estimator, usize), Vec<bool>>::new();
    println!("| h | C | estimator | alpha 1 % | alpha 3 % | alpha 10 % | alpha 30 % | mean error |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for snapshots in SNAPSHOTS {
        for (weights, name) in [(Weights::Fine, ""), (Weights::Eighths, " in eighths")] {
            let estimators = if weights == Weights::Fine { &Estimator::ALL[..] } else { &Estimator::ALL[2..] };
            for &estimator in estimators {
                let (params, scores) = judge(truths, tau, snapshots, estimator, weights);
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

/// The number of snapshots from which on both precision and recall are at least 90 %.
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
    truths: &ExactDepartures,
    tau: Nanos,
    snapshots: usize,
    estimator: Estimator,
    weights: Weights,
) -> (ConQuestParams, Vec<Score>) {
    let fitted = ConQuestParams::fit(truths.longest(), MEMORY, snapshots, Some(2), Expiry::Tag).expect("it fits");
    let params = ConQuestParams { window: truths.window(snapshots), weights, ..fitted };
    let mut sketch = ConQuest::new(params.clone()).expect("the dimensions are possible");
    let mut scores: Vec<_> = ALPHAS.iter().map(|alpha| Score::new(estimator, *alpha)).collect();
    truths.ask(&mut sketch, tau, [estimator], |truth, [estimate]| {
        scores.iter_mut().for_each(|score| score.judge(truth.part, estimate));
    });
    (params, scores)
}
