//! The outcome of figure 7, beside the paper's.

use super::{CONTROLS, DELAY, DIFFERENCE, GROUPED, MIXES, RTTS, SCHEME, Scheme, USED};
use crate::outcome::{Finding, Outcome, Table};
use crate::p4air::{CONTROL, JAIN, paper};
use crate::plot::{Axis, Line, Plot};
use crate::results::{Point, Results};
use queuescope_report::model::SweepMean;

pub fn outcome(results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    if results.of(MIXES).next().is_some() {
        outcome.findings.extend(Scheme::ALL.map(|scheme| mean_of_mixes(results, scheme)));
        outcome.findings.push(best_in_mixes(results));
        outcome.tables.extend([distribution(results), by_mix(results)]);
        outcome.plots.push(plot(results));
    }
    if results.of(RTTS).next().is_some() {
        outcome.findings.extend(Scheme::ALL.map(|scheme| mean_of_rtts(results, scheme)));
        outcome.tables.push(by_rtt(results));
    }
    outcome
}

/// The points of a scheme.
fn of<'a>(results: &'a Results, figure: &'static str, scheme: Scheme) -> impl Iterator<Item = &'a Point> {
    results.of(figure).filter(move |point| point.parameter(SCHEME) == scheme.name())
}

/// The fairness of each mix under a scheme, in ascending order.
fn fairness(results: &Results, scheme: Scheme) -> Vec<f64> {
    let mut all: Vec<_> = of(results, MIXES, scheme).map(|point| point.value(JAIN)).collect();
    all.retain(|value| value.is_finite());
    all.sort_by(f64::total_cmp);
    all
}

/// What the paper prints for a scheme, in ascending order.
fn printed(scheme: Scheme) -> Vec<f64> {
    let mut all = paper::MIXES[scheme as usize].to_vec();
    all.sort_by(f64::total_cmp);
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which a share of sorted values is, between the two nearest ones.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len().max(1) - 1) as f64;
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let (low, high) = (at(place.floor()), at(place.ceil()));
    low + (high - low) * place.fract()
}

fn mean_of_mixes(results: &Results, scheme: Scheme) -> Finding {
    let (ours, paper) = (fairness(results, scheme), printed(scheme));
    let within = |values: &[f64]| format!("{:.2} to {:.2}", quantile(values, 0.0), quantile(values, 1.0));
    let others = |value: &str, digits: usize| {
        let values: Vec<_> = of(results, MIXES, scheme).map(|point| point.value(value)).collect();
        format!("{:.digits$}", mean(&values))
    };
    let grouped = if matches!(scheme, Scheme::P4air | Scheme::Idle) {
        format!("; {} % of flows in their group", others(GROUPED, 0))
    } else {
        String::new()
    };
    let why = format!(
        "{} mixes, {}; the paper's 37 values, {}; utilisation {} %, mean delay {} ms{grouped}",
        ours.len(),
        within(&ours),
        within(&paper),
        others(USED, 1),
        others(DELAY, 1)
    );
    let what = format!("7(e): {}, mean fairness of all mixes", scheme.name());
    two_digits(MIXES, what, mean(&paper), mean(&ours), why)
}

/// Compares two indices, which need two digits.
fn two_digits(figure: &'static str, what: String, paper: f64, ours: f64, why: String) -> Finding {
    let [paper_shown, ours_shown] = [paper, ours].map(|value| format!("{value:.2}"));
    Finding { figure, what, paper: paper_shown, ours: ours_shown, difference: Some(ours / paper - 1.0), why }
}

/// In how many mixes P4air is fairer than each other scheme. The paper's columns are the same mixes in each row.
fn best_in_mixes(results: &Results) -> Finding {
    let ours: Vec<Vec<f64>> =
        Scheme::ALL.map(|scheme| of(results, MIXES, scheme).map(|point| point.value(JAIN)).collect()).into();
    let wins = |own: &[f64], other: &[f64]| own.iter().zip(other).filter(|(own, other)| own >= other).count();
    let against = |rows: &[&[f64]]| {
        let others = Scheme::ALL.iter().zip(rows).skip(1);
        let shown = others.map(|(scheme, row)| format!("{} in {}", scheme.name(), wins(rows[0], row)));
        shown.collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<&[f64]> = ours.iter().map(Vec::as_slice).collect();
    let printed: Vec<&[f64]> = paper::MIXES.iter().map(<[f64; 37]>::as_slice).collect();
    let (count, of_paper) = (rows[0].len(), against(&printed));
    let what = "7(e): mixes in which P4air is at least as fair as each other scheme".to_owned();
    Finding::of_words(
        MIXES,
        what,
        &format!("{of_paper} of 37"),
        format!("{} of {count}", against(&rows)),
        "a column of the paper is one mix, although its shares do not add up".to_owned(),
    )
}

const QUANTILES: [(&str, f64); 5] =
    [("least", 0.0), ("quarter", 0.25), ("median", 0.5), ("three quarters", 0.75), ("most", 1.0)];

/// The distribution of fairness over the mixes, ours and the paper's.
fn distribution(results: &Results) -> Table {
    let row = |scheme: Scheme| {
        let (ours, paper) = (fairness(results, scheme), printed(scheme));
        let pair = |ours: f64, paper: f64| format!("{ours:.2} / {paper:.2} ({:+.2})", ours - paper);
        let quantiles = QUANTILES.iter().map(|(_, share)| pair(quantile(&ours, *share), quantile(&paper, *share)));
        let all = [scheme.name().to_owned()].into_iter().chain(quantiles);
        all.chain([pair(mean(&ours), mean(&paper))]).collect()
    };
    let names = QUANTILES.iter().map(|(name, _)| (*name).to_owned());
    Table {
        title: "Figure 7(e): fairness over all mixes; ours / the paper's 37 values (difference)".to_owned(),
        columns: [SCHEME.to_owned()].into_iter().chain(names).chain(["mean".to_owned()]).collect(),
        rows: Scheme::ALL.map(row).into(),
    }
}

/// Each mix under each scheme, ours only.
fn by_mix(results: &Results) -> Table {
    let shares = |point: &Point| CONTROLS.map(|control| point.parameter(control).to_owned());
    let rows = of(results, MIXES, Scheme::P4air).map(|mix| {
        let shown = |value: &'static str, digits: usize| {
            Scheme::ALL.map(|scheme| {
                let point = of(results, MIXES, scheme).find(|point| shares(point) == shares(mix));
                point.map_or_else(|| "-".to_owned(), |point| point.shown(value, digits))
            })
        };
        let [used, _, _, no_aqm] = shown(USED, 0);
        let [delay, _, _, no_aqm_delay] = shown(DELAY, 0);
        let more = [used, no_aqm, delay, no_aqm_delay, mix.shown(GROUPED, 0)];
        shares(mix).into_iter().chain(shown(JAIN, 2)).chain(more).collect()
    });
    let percents = CONTROLS.map(|control| format!("{control} (%)"));
    let schemes = Scheme::ALL.map(|scheme| scheme.name().to_owned());
    let more = [
        "utilisation, P4air (%)",
        "No AQM (%)",
        "mean delay, P4air (ms)",
        "No AQM (ms)",
        "flows in their group, P4air (%)",
    ];
    Table {
        title: "Figure 7(e): fairness of each mix under each scheme, and more; ours".to_owned(),
        columns: percents.into_iter().chain(schemes).chain(more.map(str::to_owned)).collect(),
        rows: rows.collect(),
    }
}

/// The distributions of fairness over the mixes.
fn plot(results: &Results) -> Plot {
    let line = |name: String, values: Vec<f64>| {
        let all = values.len() as f64;
        let share = |number: usize| SweepMean { mean: 100.0 * number as f64 / all, half_width: None, cells: 1 };
        Line { name, points: (1..).zip(values).map(|(number, value)| (value, share(number))).collect() }
    };
    let ours = Scheme::ALL.map(|scheme| line(scheme.name().to_owned(), fairness(results, scheme)));
    let papers = Scheme::ALL.map(|scheme| line(format!("{}, the paper", scheme.name()), printed(scheme)));
    Plot {
        name: "figure-7e",
        title: "Fairness of many flows in mixes of four congestion controls".to_owned(),
        axes: [Axis::linear(JAIN), Axis::linear("mixes with no more (%)")],
        lines: ours.into_iter().chain(papers).collect(),
    }
}

/// What the paper has for a difference, a control and a scheme.
fn printed_rtts(difference: &str, control: &str, scheme: Scheme) -> f64 {
    let column = CONTROLS.iter().position(|own| *own == control).unwrap_or(0);
    paper::RTT_DIFFERENCES[scheme as usize][column + if difference == "1" { 0 } else { CONTROLS.len() }]
}

fn mean_of_rtts(results: &Results, scheme: Scheme) -> Finding {
    let points: Vec<_> = of(results, RTTS, scheme).collect();
    let ours: Vec<_> = points.iter().map(|point| point.value(JAIN)).collect();
    let printed = |point: &&Point| printed_rtts(point.parameter(DIFFERENCE), point.parameter(CONTROL), scheme);
    let paper: Vec<_> = points.iter().map(printed).collect();
    let used = mean(&points.iter().map(|point| point.value(USED)).collect::<Vec<_>>());
    let what = format!("7(d): {}, mean fairness of {} settings", scheme.name(), points.len());
    two_digits(RTTS, what, mean(&paper), mean(&ours), format!("utilisation {used:.1} %"))
}

/// Fairness of each control with each difference, by scheme.
fn by_rtt(results: &Results) -> Table {
    let rows = of(results, RTTS, Scheme::P4air).map(|first| {
        let own = [DIFFERENCE, CONTROL].map(|name| first.parameter(name).to_owned());
        let cells = Scheme::ALL.map(|scheme| {
            let same = |point: &&Point| {
                [DIFFERENCE, CONTROL].iter().all(|name| point.parameter(name) == first.parameter(name))
            };
            let ours = of(results, RTTS, scheme).find(same).map_or(f64::NAN, |point| point.value(JAIN));
            let paper = printed_rtts(&own[0], &own[1], scheme);
            format!("{ours:.2} / {paper:.2} ({:+.2})", ours - paper)
        });
        own.into_iter().chain(cells).collect()
    });
    let schemes = Scheme::ALL.map(|scheme| scheme.name().to_owned());
    Table {
        title: "Figure 7(d): fairness of flows with different round-trip times; ours / the paper's (difference)"
            .to_owned(),
        columns: [DIFFERENCE, CONTROL].map(str::to_owned).into_iter().chain(schemes).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_between_its_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|share| quantile(&sorted, share)), [1.0, 1.5, 2.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    /// The paper's text: P4air is the fairest on average, with all of its figure's values.
    #[test]
    fn the_papers_schemes_are_in_order() {
        let means = Scheme::ALL.map(|scheme| mean(&printed(scheme)));
        assert!(means.is_sorted_by(|one, next| one > next), "{means:?}");
        assert_eq!(printed_rtts("10", "bbr", Scheme::P4air), 0.83);
        assert_eq!(printed_rtts("1", "vegas", Scheme::NoAqm), 0.88);
    }
}
