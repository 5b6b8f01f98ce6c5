//! The results beside the paper's.

use super::algorithm::{Algorithm, Form};
use super::{
    CAUSES, CAUSES_5, CHANGED, COURSE, DELAY, EARLY, FALL, FIGURE_5, FIGURE_6, FIGURE_6_SLOWER, FLOWS, GOODPUT, LINK,
    OVERFLOW, PERCENTS, PERIOD, RISE, TIMEOUTS, WHO, all_percents, course, percentile,
};
use crate::outcome::{Finding, Outcome, Table};
use crate::plot::{Axis, Line, Plot, line};
use crate::results::{Point, Results, value_at};
use queuescope_report::model::SweepMean;
use std::fmt::Write;

pub fn outcome(results: &Results) -> Outcome {
    let plots = Form::BOTH.into_iter().flat_map(|form| plots(results, form)).collect();
    let mut findings = rises_and_falls(results);
    findings.push(rise_of_references(results));
    findings.push(no_early_drop(results));
    for form in Form::BOTH {
        findings.extend(many_flows(results, form));
    }
    findings.push(references(results));
    let mut tables = vec![table_5(results), table_6(results, FIGURE_6, FLOWS, "Figure 6")];
    if results.of(FIGURE_6_SLOWER).next().is_some() {
        findings.extend(Form::BOTH.into_iter().flat_map(|form| slower(results, form)));
        tables.push(table_6(
            results,
            FIGURE_6_SLOWER,
            FLOWS,
            "Figure 6 on a link of 312 Mb/s, with all times 8 times longer",
        ));
    }
    if results.of(CAUSES).next().is_some() {
        tables.push(table_6(results, CAUSES, CHANGED, "Figure 6 with one thing changed"));
    }
    Outcome { plots, findings, tables, ..Outcome::default() }
}

fn of<'a>(results: &'a Results, figure: &'static str, algorithm: Algorithm) -> impl Iterator<Item = &'a Point> {
    results.of(figure).filter(move |point| point.parameter(WHO) == algorithm.name())
}

/// The mean in a table's notation.
fn shown(point: Option<&Point>, value: &str, digits: usize) -> String {
    point.map_or("-".to_owned(), |point| point.shown(value, digits))
}

fn plots(results: &Results, form: Form) -> Vec<Plot> {
    let [over_time, goodput, delays] = match form {
        Form::Stated => ["figure-5-stated", "figure-6-goodput-stated", "figure-6-delay-stated"],
        Form::Published => ["figure-5-published", "figure-6-goodput-published", "figure-6-delay-published"],
    };
    let how = form.name();
    let most = results.of(FIGURE_6).map(|point| point.number(FLOWS)).fold(0.0, f64::max);
    let flows = |it: Algorithm| line(it.name(), of(results, FIGURE_6, it), FLOWS, GOODPUT);
    let algorithms = form.algorithms();
    vec![
        Plot {
            name: over_time,
            title: format!("The probability under overload, then below the link's rate; {how}"),
            axes: [Axis::linear("time (s)"), Axis::linear("probability")],
            lines: algorithms.map(|it| time_course(results, it)).into(),
        },
        Plot {
            name: goodput,
            title: format!("CUBIC flows with a round-trip time of 350 us, a buffer of 500 us; {how}"),
            axes: [Axis::logarithmic(FLOWS), Axis::linear(GOODPUT)],
            lines: algorithms.map(flows).into(),
        },
        Plot {
            name: delays,
            title: format!("Queue delay with {most} CUBIC flows, target 125 us; {how}"),
            axes: [Axis::linear("delay (us)"), Axis::linear("packets with no more (%)")],
            lines: algorithms.map(|it| distribution(results, it)).into(),
        },
    ]
}

fn time_course(results: &Results, algorithm: Algorithm) -> Line {
    let point = of(results, FIGURE_5, algorithm).next();
    let times = (0..).map(|step| step * COURSE);
    let values = times.map_while(|at| Some((at as f64 / 1e3, point?.mean(&course(at))?)));
    Line { name: algorithm.name().to_owned(), points: values.collect() }
}

/// The distribution with the largest number of flows.
fn distribution(results: &Results, algorithm: Algorithm) -> Line {
    let last = of(results, FIGURE_6, algorithm).last();
    let point = |percent: u32| {
        let delay = last?.mean(&percentile(percent))?;
        Some((delay.mean, SweepMean { mean: f64::from(percent), half_width: None, cells: delay.cells }))
    };
    Line { name: algorithm.name().to_owned(), points: all_percents().filter_map(point).collect() }
}

/// The algorithms at some points that have the value, in ascending order.
fn order<const N: usize>(mut points: [(&'static str, Option<&Point>); N], value: &str, digits: usize) -> String {
    points.sort_by(|one, other| value_at(one.1, value).total_cmp(&value_at(other.1, value)));
    points.map(|(name, point)| format!("{name} {}", shown(point, value, digits))).join(" < ")
}

fn rises_and_falls(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (what, value, paper) in [
        ("rise times (s)", RISE, "PIE_TABLE < PIE_DP < PIE_CP; both references < PIE_CP"),
        ("fall times (s)", FALL, "PIE_CP < RFC scaling; these far below PIE_TABLE < PIE_DP"),
    ] {
        for form in Form::BOTH {
            // `None` for an algorithm that never reached it.
            let time = |algorithm| of(results, FIGURE_5, algorithm).next()?.mean(value).map(|mean| mean.mean);
            let [cp, dp, table] = form.programs().map(time);
            let [rfc, ns3] = [Algorithm::Rfc, Algorithm::Ns3].map(time);
            let tenth = |time: Option<f64>| time.map(|seconds| seconds / 10.0);
            let statements: &[(&str, Option<bool>)] = if value == RISE {
                &[
                    ("PIE_TABLE before PIE_DP", before(&[table], &[dp])),
                    ("PIE_DP before PIE_CP", before(&[dp], &[cp])),
                    ("both references before PIE_CP", before(&[rfc, ns3], &[cp])),
                ]
            } else {
                &[
                    ("PIE_TABLE before PIE_DP", before(&[table], &[dp])),
                    (
                        "PIE_CP and the references in a tenth of that",
                        before(&[cp, rfc, ns3], &[tenth(table), tenth(dp)]),
                    ),
                    ("PIE_CP before RFC scaling", before(&[cp], &[rfc])),
                ]
            };
            let said = |(what, holds): &(&str, Option<bool>)| {
                let holds = holds.map_or("one of them was not reached", |holds| if holds { "yes" } else { "no" });
                format!("{what}: {holds}")
            };
            let mut why = statements.iter().map(said).collect::<Vec<_>>().join("; ");
            let with_period = changed(results, Algorithm::Cp, PERIOD, value);
            if let Some(seconds) = with_period.filter(|_| form.programs().contains(&Algorithm::Cp)) {
                _ = write!(why, "; PIE_CP with the references' period: {seconds:.3}");
            }
            findings.push(Finding {
                figure: FIGURE_5,
                what: format!("{what}, {}", form.name()),
                paper: paper.to_owned(),
                ours: order(form.algorithms().map(|it| (it.name(), of(results, FIGURE_5, it).next())), value, 3),
                difference: None,
                why,
            });
        }
    }
    findings
}

/// Whether all of the first come before all of the others; `None` if one of them is unknown.
fn before(first: &[Option<f64>], others: &[Option<f64>]) -> Option<bool> {
    let known = |times: &[Option<f64>]| times.iter().copied().collect::<Option<Vec<_>>>();
    let (first, others) = (known(first)?, known(others)?);
    Some(first.iter().all(|one| others.iter().all(|other| one < other)))
}

fn rise_of_references(results: &Results) -> Finding {
    let rise = |algorithm| shown(of(results, FIGURE_5, algorithm).next(), RISE, 2);
    Finding {
        figure: FIGURE_5,
        what: "rise times of both references (s)".to_owned(),
        paper: "roughly 2 to 3".to_owned(),
        ours: format!("{} and {}", rise(Algorithm::Ns3), rise(Algorithm::Rfc)),
        difference: None,
        why: "the scaling of ns-3 3.31, and that of the RFC".to_owned(),
    }
}

/// The value for figure 5 with one change, if that was run.
fn changed(results: &Results, algorithm: Algorithm, changed: &str, value: &str) -> Option<f64> {
    let point = of(results, CAUSES_5, algorithm).find(|point| point.parameter(CHANGED) == changed)?;
    Some(point.mean(value)?.mean)
}

fn no_early_drop(results: &Results) -> Finding {
    let sum =
        |value: &str| results.of(FIGURE_5).filter_map(|point| point.mean(value)).map(|mean| mean.mean).sum::<f64>();
    let least =
        results.of(FIGURE_5).filter_map(|point| point.mean(OVERFLOW)).map(|mean| mean.mean).fold(f64::MAX, f64::min);
    Finding {
        figure: FIGURE_5,
        what: "packets dropped early".to_owned(),
        paper: "0".to_owned(),
        ours: format!("{}", sum(EARLY)),
        difference: None,
        why: format!("the full queue dropped {least:.0} or more in a run, for each algorithm"),
    }
}

/// The goodput of a point, in percent of the link's capacity for payload: 1448 of 1500 bytes.
fn share(point: Option<&Point>) -> f64 {
    100.0 * value_at(point, GOODPUT) / (point.map_or(f64::NAN, |point| point.number(LINK)) * 1448.0 / 1500.0)
}

/// Findings with the largest number of flows.
fn many_flows(results: &Results, form: Form) -> Vec<Finding> {
    let last = |algorithm| of(results, FIGURE_6, algorithm).last();
    let paper = [
        ("close to line rate", "above 125"),
        ("50 % with an increasing number of flows", "way below 125 most of the time"),
        ("almost none", "way below 125 most of the time"),
    ];
    let mut findings = Vec::new();
    let other = form.other();
    let differs =
        ["when the probability decays", "the sign of the delay's change", "that sign and what stands for a range"];
    for (n, (algorithm, (goodput, delay))) in form.programs().into_iter().zip(paper).enumerate() {
        let point = last(algorithm);
        let flows = point.map_or("-", |point| point.parameter(FLOWS));
        let name = algorithm.name();
        findings.push(Finding {
            figure: FIGURE_6,
            what: format!("goodput of {name} with {flows} flows, of what fits"),
            paper: goodput.to_owned(),
            ours: format!("{:.0} %", share(point)),
            difference: None,
            why: format!("{}: {:.0} %; what differs is {}", other.name(), share(last(other.programs()[n])), differs[n]),
        });
        findings.push(Finding {
            figure: FIGURE_6,
            what: format!("median delay of {name} with {flows} flows (us)"),
            paper: delay.to_owned(),
            ours: point.map_or("-".to_owned(), |point| point.shown_within(&percentile(50), 0)),
            difference: None,
            why: format!(
                "mean {:.0}, 95th percentile {:.0}; {}: median {:.0}",
                value_at(point, DELAY),
                value_at(point, &percentile(95)),
                other.name(),
                value_at(last(other.programs()[n]), &percentile(50))
            ),
        });
    }
    findings
}

/// Whether the order of figure 6 also holds on real hosts, where everything is slower.
fn slower(results: &Results, form: Form) -> [Finding; 2] {
    let algorithms = form.algorithms();
    let [cp, dp, table] = form.programs();
    let counts: Vec<_> = of(results, FIGURE_6_SLOWER, cp).map(|point| point.parameter(FLOWS)).collect();
    let at = |algorithm, flows: &str| of(results, FIGURE_6_SLOWER, algorithm).find(|it| it.parameter(FLOWS) == flows);
    let most = counts.last().copied().unwrap_or("-");
    let own = at(Algorithm::EgressPi, most);
    let of_value = |what: &str, value: &str, digits: usize, paper: &str, is_so: &dyn Fn([f64; 3]) -> bool| {
        let holds = |flows: &&&str| is_so([cp, dp, table].map(|it| value_at(at(it, flows), value)));
        let holding: Vec<_> = counts.iter().filter(holds).copied().collect();
        let so = if holding.is_empty() { "nowhere".to_owned() } else { format!("with {} flows", holding.join(", ")) };
        Finding {
            figure: FIGURE_6_SLOWER,
            what: format!("{what} with {most} flows, {}", form.name()),
            paper: paper.to_owned(),
            ours: order(algorithms.map(|it| (it.name(), at(it, most))), value, digits),
            difference: None,
            why: format!(
                "the three in this order {so}; Egress PI, with half the target: {}",
                shown(own, value, digits)
            ),
        }
    };
    let descends = |[cp, dp, table]: [f64; 3]| cp > dp && dp > table;
    let longest = |[cp, dp, table]: [f64; 3]| cp > dp && cp > table;
    [
        of_value(GOODPUT, GOODPUT, 3, "PIE_TABLE < PIE_DP < PIE_CP", &descends),
        of_value("median delay (us)", &percentile(50), 0, "PIE_CP above PIE_DP and PIE_TABLE", &longest),
    ]
}

/// The references compared with the three, with the largest number of flows.
fn references(results: &Results) -> Finding {
    let last = |algorithm| of(results, FIGURE_6, algorithm).last();
    let outcome = |algorithm: Algorithm| {
        let point = last(algorithm);
        format!("{:.0} % at {:.0} us", share(point), value_at(point, &percentile(50)))
    };
    let of_all = |algorithms: &[Algorithm]| algorithms.iter().copied().map(outcome).collect::<Vec<_>>().join(", ");
    Finding {
        figure: FIGURE_6,
        what: format!(
            "goodput and median delay of both references with {} flows",
            last(Algorithm::Rfc).map_or("-", |point| point.parameter(FLOWS))
        ),
        paper: "more reasonable than all three".to_owned(),
        ours: of_all(&[Algorithm::Rfc, Algorithm::Ns3]),
        difference: None,
        why: format!(
            "PIE_CP, PIE_DP, PIE_TABLE as published: {}; as stated: {}",
            of_all(&Form::Published.programs()),
            of_all(&Form::Stated.programs())
        ),
    }
}

fn table_5(results: &Results) -> Table {
    let row = |point: &Point| {
        let who = match point.parameter(CHANGED) {
            "" => point.parameter(WHO).to_owned(),
            changed => format!("{}, {changed}", point.parameter(WHO)),
        };
        vec![who, point.shown_within(RISE, 3), point.shown_within(FALL, 3)]
    };
    Table {
        title: "Figure 5: times in which the probability rises to 1 and falls to 0 (-: it does not)".to_owned(),
        columns: [WHO, RISE, FALL].map(str::to_owned).into(),
        rows: results.of(FIGURE_5).chain(results.of(CAUSES_5)).map(row).collect(),
    }
}

fn table_6(results: &Results, figure: &'static str, varied: &'static str, title: &str) -> Table {
    let row = |point: &Point| {
        let own = [WHO, varied].map(|name| point.parameter(name).to_owned());
        let delays = PERCENTS.map(|percent| point.shown(&percentile(percent), 0));
        let measured = [point.shown_within(GOODPUT, 3), point.shown_within(DELAY, 1)];
        let timeouts = point.shown(TIMEOUTS, 0);
        own.into_iter().chain(measured).chain(delays).chain([timeouts]).collect()
    };
    let columns = [WHO, varied, GOODPUT, DELAY].map(str::to_owned).into_iter();
    let percents = PERCENTS.map(|percent| format!("p{percent}"));
    Table {
        title: format!("{title}: goodput, the delay with percentiles in us, and timeouts in a run"),
        columns: columns.chain(percents).chain([TIMEOUTS.to_owned()]).collect(),
        rows: results.of(figure).map(row).collect(),
    }
}
