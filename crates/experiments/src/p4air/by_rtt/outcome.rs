//! The outcome, beside what the design had to reach.

use super::settings::Scheme;
use super::{DELAY, MIXES, OTHERS, RECOGNISED, SCHEME, SETTING, TIMES, USED};
use crate::outcome::{Finding, Outcome, Table};
use crate::p4air::JAIN;
use crate::results::{Point, Results};

pub fn outcome(results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    for figure in [MIXES, TIMES, OTHERS] {
        if results.of(figure).next().is_none() {
            continue;
        }
        outcome.findings.extend(
            [[Scheme::ByRtt, Scheme::P4air], [Scheme::ByRttWithoutAcks, Scheme::P4airWithoutAcks]]
                .map(|[own, beside]| compared(results, figure, own, beside)),
        );
        outcome.tables.extend([means(results, figure), by_setting(results, figure)]);
    }
    outcome
}

/// The point of a setting under a scheme.
fn point<'a>(results: &'a Results, figure: &'static str, setting: &str, scheme: Scheme) -> Option<&'a Point> {
    let is_it = |point: &&Point| point.parameter(SETTING) == setting && point.parameter(SCHEME) == scheme.name();
    results.of(figure).find(is_it)
}

/// The settings of a figure, in order.
fn settings<'a>(results: &'a Results, figure: &'static str) -> impl Iterator<Item = &'a str> {
    let first = results.of(figure).next().map_or("", |point| point.parameter(SCHEME));
    results.of(figure).filter(move |point| point.parameter(SCHEME) == first).map(|point| point.parameter(SETTING))
}

/// A value of each setting under a scheme, where it was measured.
fn values(results: &Results, figure: &'static str, scheme: Scheme, value: &str) -> Vec<f64> {
    let all = settings(results, figure).filter_map(|setting| point(results, figure, setting, scheme));
    all.map(|point| point.value(value)).filter(|value| value.is_finite()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::min)
}

/// How much fairer a scheme is than P4air, with the same actions.
fn compared(results: &Results, figure: &'static str, own: Scheme, beside: Scheme) -> Finding {
    let differences: Vec<f64> = settings(results, figure)
        .filter_map(|setting| {
            let [own, beside] = [own, beside].map(|scheme| point(results, figure, setting, scheme));
            Some(own?.value(JAIN) - beside?.value(JAIN))
        })
        .collect();
    let all = [own, beside].map(|scheme| values(results, figure, scheme, JAIN));
    let shown = |values: &[f64]| format!("{:.3}, least {:.3}", mean(values), least(values));
    let why = format!(
        "beside {} in the same setting: from {:+.3} on; least utilisation {:.1} %",
        beside.name(),
        least(&differences),
        least(&values(results, figure, own, USED))
    );
    let what =
        format!("{}, mean fairness of {} settings; in place of the paper, {}", own.name(), all[0].len(), beside.name());
    let ours = shown(&all[0]);
    let difference = Some(mean(&all[0]) / mean(&all[1]) - 1.0);
    Finding { figure, what, paper: shown(&all[1]), ours, difference, why }
}

/// Means over all settings, by scheme.
fn means(results: &Results, figure: &'static str) -> Table {
    let of_controls = RECOGNISED.map(|(.., name)| name);
    let row = |scheme: Scheme| {
        let of = |value: &str| values(results, figure, scheme, value);
        let shown =
            |value: f64, digits: usize| if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() };
        let fairness = of(JAIN);
        let first = [shown(mean(&fairness), 3), shown(least(&fairness), 3)];
        let more = [shown(mean(&of(USED)), 1), shown(least(&of(USED)), 1), shown(mean(&of(DELAY)), 1)];
        let found = of_controls.map(|name| shown(mean(&of(name)), 0));
        [scheme.name().to_owned()].into_iter().chain(first).chain(more).chain(found).collect()
    };
    let columns = ["scheme", "mean fairness", "least", "mean utilisation (%)", "least (%)", DELAY];
    Table {
        title: format!("{figure}: means over {} settings", settings(results, figure).count()),
        columns: columns.into_iter().chain(of_controls).map(str::to_owned).collect(),
        rows: Scheme::ALL.map(row).into(),
    }
}

/// The fairness and the delay of each setting under each scheme.
fn by_setting(results: &Results, figure: &'static str) -> Table {
    let rows = settings(results, figure).map(|setting| {
        let cells = Scheme::ALL.map(|scheme| {
            let point = point(results, figure, setting, scheme);
            point.map_or_else(|| "-".to_owned(), |point| format!("{}, {}", point.shown(JAIN, 3), point.shown(DELAY, 1)))
        });
        [setting.to_owned()].into_iter().chain(cells).collect()
    });
    Table {
        title: format!("{figure}: fairness and mean delay in ms of each setting"),
        columns: [SETTING.to_owned()].into_iter().chain(Scheme::ALL.map(|scheme| scheme.name().to_owned())).collect(),
        rows: rows.collect(),
    }
}
