//! A made-up sweep for plots: three parameters, two of them numbers, of which one spans two decades; one combination is
//! missing, and one has no delay. Also sweeps with little to compare.

use queuescope_report::model::*;

fn list(path: &str, values: &[&str]) -> SweepParameter {
    SweepParameter { path: path.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
}

fn mean(mean: f64, half: f64) -> Option<SweepMean> {
    Some(SweepMean { mean, half_width: Some(half), cells: 3 })
}

fn none() -> SweepFigures<SweepMean> {
    SweepFigures::from_array([None; SWEEP_FIGURES])
}

/// Every combination of `parameters` for which `figures` returns figures; its argument is the indices of the values.
fn of(
    name: &str,
    parameters: Vec<SweepParameter>,
    figures: impl Fn(&[usize]) -> Option<SweepFigures<SweepMean>>,
) -> Sweep {
    let combinations: usize = parameters.iter().map(|parameter| parameter.values.len()).product();
    let rows = (0..combinations).filter_map(|mut number| {
        let mut at = vec![0; parameters.len()];
        for (place, parameter) in at.iter_mut().zip(&parameters).rev() {
            *place = number % parameter.values.len();
            number /= parameter.values.len();
        }
        let values = at.iter().zip(&parameters).map(|(&at, parameter)| parameter.values[at].clone()).collect();
        Some(SweepRow { values, cells: 3, meter: "bottleneck".to_owned(), figures: figures(&at)? })
    });
    let rows: Vec<_> = rows.collect();
    Sweep {
        name: name.to_owned(),
        about: None,
        scenario: "seed = 1\n".to_owned(),
        seed: 1,
        seeds: 3,
        cells: 3 * combinations as u64,
        cells_here: 3 * rows.len() as u64,
        rows,
        parameters,
        skipped: Vec::new(),
    }
}

/// The sweep. The delay is 1 ms times the position in the list of flows, from 1, plus as much for each discipline after
/// the first.
pub fn plotted() -> Sweep {
    let parameters = vec![
        list("link.rate", &["1mbps", "10000kbps", "0.1gbps"]),
        list("flows.calls.count", &["10", "20", "40", "50"]),
        list("link.discipline", &["tail-drop", "codel", "{ pie = { ecn = true } }"]),
    ];
    of("plotted", parameters, |at| {
        let &[rate, flows, discipline] = at else { return None };
        if at == [0, 1, 2] {
            return None;
        }
        let delay = 1e6 * (flows + 1) as f64 * 2f64.powi(discipline as i32);
        Some(SweepFigures {
            goodput_bps: mean(0.9e6 * 10f64.powi(rate as i32), 1e4),
            utilisation: mean(0.9 + 0.01 * flows as f64, 0.2),
            delay_mean_ns: if at == [1, 2, 0] { None } else { mean(delay, delay / 2.0) },
            mark_rate: mean(0.0, 0.0),
            drop_rate: mean(if flows == 0 { 0.0 } else { 1e-4 * 10f64.powi(flows as i32) }, 0.0),
            ..none()
        })
    })
}

/// Sweeps of one parameter each, in the notations that a scenario may have: the kind, and the values.
pub fn spelled() -> Vec<(&'static str, Sweep, Vec<f64>)> {
    let lists: [(_, &[_]); 5] = [
        ("sizes", &[("10k", 10e3), ("20 KB", 20e3), ("0.03M", 30e3), ("40_000 bytes", 40e3), ("64KiB", 65_536.0)]),
        ("rates", &[("10mbit", 10.0), ("20 mb/s", 20.0), ("30Mbit/s", 30.0), ("0.04gbits/s", 40.0), ("90 MBPS", 90.0)]),
        ("times", &[("0", 0.0), ("500ms", 0.5), ("1sec", 1.0), ("1.500_0 s", 1.5), ("0.05min", 3.0)]),
        ("short-times", &[("1us", 1.0), ("2\u{b5}s", 2.0), ("4\u{3bc}s", 4.0), ("8000ns", 8.0)]),
        // Sizes and rates in one list are names: equal distances.
        ("names", &[("10k", 0.0), ("20kbps", 1.0), ("90kB", 2.0)]),
    ];
    let sweep = |values: &[(&str, f64)]| {
        let words: Vec<_> = values.iter().map(|(word, _)| *word).collect();
        of("spelled", vec![list("a", &words)], |_| Some(SweepFigures { goodput_bps: mean(1e6, 1e4), ..none() }))
    };
    let numbers = |values: &[(&str, f64)]| values.iter().map(|(_, number)| *number).collect();
    lists.map(|(kind, values)| (kind, sweep(values), numbers(values))).into()
}

/// Sweeps by kind, each with its number of plots.
pub fn few() -> Vec<(&'static str, Sweep, usize)> {
    let goodput = |_: &[usize]| Some(SweepFigures { goodput_bps: mean(1e6, 1e4), ..none() });
    let all = |at: &[usize]| {
        let goodput_bps = mean(1e6 * (at[0] + 1) as f64, 1e9);
        Some(SweepFigures { goodput_bps, utilisation: mean(0.0, 0.0), jain: mean(1.0, 0.0), ..none() })
    };
    let rates = ["1mbps", "2mbps", "unlimited"];
    let many: Vec<_> = (0..30).map(|n| format!("{{ codel = {{ target = \"{n}ms\", ecn = true }} }}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    vec![
        ("one-combination", of("one", vec![list("link.rate", &rates[..1])], all), 0),
        ("nothing-swept", of("nothing", Vec::new(), goodput), 0),
        ("no-cells", of("none", vec![list("link.rate", &rates)], |_| None), 0),
        ("no-figures", of("bare", vec![list("link.rate", &rates)], |_| Some(none())), 0),
        (
            "one-cell-of-some",
            of("one", vec![list("link.rate", &rates)], |at| if at == [1] { all(at) } else { None }),
            0,
        ),
        ("one-figure", of("figure", vec![list("link.rate", &rates)], goodput), 1),
        ("one-parameter", of("parameter", vec![list("link.rate", &rates)], all), 2),
        (
            "a-part",
            of("part", vec![list("a", &many), list("b", &many), list("c", &rates)], |at| {
                if at[1] == 5 { all(at) } else { None }
            }),
            2,
        ),
        ("many-lines", of("lines", vec![list("a", &many), list("b", &many), list("c", &rates)], all), 2),
    ]
}
