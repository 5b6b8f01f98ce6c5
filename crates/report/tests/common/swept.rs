//! A made-up sweep: two parameters, three seeds, flows that end in some combinations, a missing seed.

use queuescope_report::model::*;

/// The sweep.
pub fn sweep() -> Sweep {
    let list = |path: &str, values: &[&str]| SweepParameter {
        path: path.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let parameters = vec![list("link.rate", &["10mbps", "2500kbps"]), list("flows.0.tcp", &["cubic", "bbr"])];
    let rows = (0..4).map(|row: usize| {
        let cells = if row == 3 { 1 } else { 3 };
        let mean = |mean: f64, half: f64| Some(SweepMean { mean, half_width: (cells > 1).then_some(half), cells });
        let delay = 12_340_000.0 * (row + 1) as f64;
        let completion = |time: f64| if row < 2 { mean(time, time / 7.0) } else { None };
        SweepRow {
            values: vec![parameters[0].values[row / 2].clone(), parameters[1].values[row % 2].clone()],
            cells,
            meter: "bottleneck".to_owned(),
            figures: SweepFigures {
                goodput_bps: mean(9_510_000.0, 12_300.0),
                utilisation: mean(0.987, 0.004),
                delay_mean_ns: mean(delay, delay / 9.0),
                delay_p95_ns: mean(2.0 * delay, delay / 5.0),
                delay_p99_ns: mean(2.5 * delay, delay / 4.0),
                loss_rate: mean(0.0, 0.0),
                drop_rate: mean(0.0123, 0.000_4),
                mark_rate: mean(0.0, 0.0),
                jain: if row == 2 { None } else { mean(0.913, 0.05) },
                completion_mean_ns: completion(250e6),
                completion_p50_ns: completion(120e6),
                completion_p95_ns: completion(1.5e9),
                completion_p99_ns: completion(4e9),
            },
        }
    });
    Sweep {
        name: "made up".to_owned(),
        about: Some("Rates and congestion controls.".to_owned()),
        scenario: "seed = 5\n".to_owned(),
        seed: 5,
        seeds: 3,
        rows: rows.collect(),
        parameters,
        cells: 12,
        cells_here: 10,
        skipped: Vec::new(),
    }
}

/// The same with names that would be markup, or would control a terminal.
pub fn hostile() -> Sweep {
    let nasty = "</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}";
    let mut sweep = sweep();
    sweep.name = nasty.to_owned();
    sweep.about = Some(nasty.to_owned());
    sweep.scenario = nasty.repeat(9);
    sweep.parameters[0].path = nasty.to_owned();
    for row in &mut sweep.rows {
        row.values[1] = nasty.to_owned();
        row.meter = nasty.to_owned();
    }
    sweep.parameters[1].values = vec![nasty.to_owned(); 2];
    // Meanings of notes are the program's own text, except names of files.
    let meaning = "</script><img src=x onerror=alert(1)>.pcap: what comes behind damage is not sent".to_owned();
    let note = Skipped { reason: "damaged_capture".to_owned(), count: 3, meaning };
    sweep.skipped.push(note);
    sweep
}
