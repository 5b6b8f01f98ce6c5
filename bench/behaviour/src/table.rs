//! Judges stored rounds, and prints how often the judgement is right.

use crate::cells::{CONTROLS, Set};
use crate::stored::{path, read};
use anyhow::{Context, Result};
use queuescope_meter::{Behaviour, FinerKind, Judgement};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Rounds that a flow must have to count; slow start is not among them.
const LEAST: u32 = 270;

/// Prints the tables of a set. With `flows`, a line for each flow; with `wrong`, one for each wrong name.
pub fn print(folder: &Path, set: Set, lines: &str) -> Result<()> {
    let mut all = Vec::new();
    let (mut missing, mut short, mut light) = (0, 0, 0);
    for (number, cell) in set.cells().iter().enumerate() {
        let file = path(folder, cell);
        if !file.exists() {
            missing += 1;
            continue;
        }
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for (nth, (flow, rounds)) in cell.flows.iter().zip(read(&bytes)?).enumerate() {
            let Some(rounds) = rounds else {
                light += 1;
                continue;
            };
            if lines == "rows" {
                println!("# {number} {nth} {} {} rtt {:?}", cell.kind, flow.control, rounds.rtt());
                for (n, row) in rounds.rounds().enumerate() {
                    let backlog = row.backlog(rounds.length()) / 1500.0;
                    println!(
                        "{n} {} {backlog:.1} {} {} {}",
                        row.packets,
                        row.most_sojourn / 1000,
                        row.drops,
                        row.marks
                    );
                }
            }
            let judgement = rounds.judge();
            // Flows without a round-trip time have rounds of another length.
            if judgement.evidence.rtt.is_some() && judgement.evidence.rounds < LEAST {
                short += 1;
                continue;
            }
            let marks: u64 = rounds.rounds().map(|row| u64::from(row.marks)).sum();
            let truth = flow.truth(marks > judgement.evidence.drops);
            let is_wrong = judgement.behaviour != truth && judgement.behaviour != Behaviour::TooLittleEvidence;
            if lines == "flows" || lines == "wrong" && is_wrong {
                let e = &judgement.evidence;
                println!(
                    "{number}.{nth} {} {} {}ms {} as {}: n{} share {:.2} w{:.0} var {:.2} drops {}/{} L{}x{:.2} r{:.2} g{:.2} ect {:.1}/{:.1} mr{:.2} M{}x{:.2} r{:.2} g{:.2} unc{} quiet{} b{:.1}/{:.1} q{:.1}ms busy{:.2} P{}@{:.0}~{:.2} ac{:.2}@{:.0} F{}@{:.1}s~{:.1} S{}x{:.2} up{:.2} dn{:.2} D{:.2}r{:.2} MD{:.2}r{:.2} LB{:.1} LD{:.1}ms",
                    cell.kind,
                    flow.control,
                    flow.rtt_ms,
                    truth.name(),
                    judgement.behaviour.name(),
                    e.rounds,
                    e.share,
                    e.window,
                    e.rate_variation,
                    e.drops,
                    e.drop_rounds,
                    e.losses.episodes,
                    e.losses.ratio,
                    e.losses.reduced,
                    e.losses.growth,
                    e.capable,
                    e.l4s,
                    e.marked_rounds,
                    e.marks.episodes,
                    e.marks.ratio,
                    e.marks.reduced,
                    e.marks.growth,
                    e.uncaused,
                    e.quiet_rounds,
                    e.backlog,
                    e.high_backlog,
                    e.high_sojourn.0 as f64 / 1e6,
                    e.busy,
                    e.pulses,
                    e.pulse_period,
                    e.pulse_regularity,
                    e.periodicity,
                    e.period,
                    e.floors,
                    e.floor_period.0 as f64 / 1e9,
                    e.floor_regularity,
                    e.surges,
                    e.surge,
                    e.quiet_rise,
                    e.quiet_fall,
                    e.losses.dip,
                    e.losses.dipped,
                    e.marks.dip,
                    e.marks.dipped,
                    e.loss_backlog,
                    e.loss_delay.0 as f64 / 1e6,
                );
            }
            all.push(Judged { kind: cell.kind, control: flow.control, truth, finer: flow.finer(truth), judgement });
        }
    }
    println!(
        "{} flows; {missing} cells were not run; {short} flows were too short, and {light} never heavy.\n",
        all.len()
    );
    confusion(&all);
    let of = |name: &str, wanted: &dyn Fn(&Judged) -> bool| shares(name, all.iter().filter(|judged| wanted(judged)));
    println!("| flows | number | named (%) | wrong (% of the names) |\n| --- | --: | --: | --: |");
    for kind in ["alone", "together", "AQM", "with UDP"] {
        of(kind, &|judged| judged.kind == kind);
    }
    for control in CONTROLS.into_iter().chain(["udp"]) {
        of(control, &|judged| judged.control == control);
    }
    of("all", &|_| true);
    finer(&all);
    Ok(())
}

struct Judged {
    kind: &'static str,
    control: &'static str,
    truth: Behaviour,
    finer: Option<FinerKind>,
    judgement: Judgement,
}

fn confusion(all: &[Judged]) {
    let mut counts = BTreeMap::<_, u64>::new();
    all.iter().for_each(|judged| *counts.entry((judged.truth, judged.judgement.behaviour)).or_default() += 1);
    print!("| really \\ named |");
    Behaviour::ALL.iter().for_each(|named| print!(" {} |", named.name()));
    println!("\n| --- |{}", " --: |".repeat(Behaviour::ALL.len()));
    for truth in &Behaviour::ALL[..5] {
        print!("| {} |", truth.name());
        Behaviour::ALL.iter().for_each(|named| print!(" {} |", counts.get(&(*truth, *named)).unwrap_or(&0)));
        println!();
    }
    println!();
}

fn shares<'a>(name: &str, all: impl Iterator<Item = &'a Judged>) {
    let (mut flows, mut named, mut wrong) = (0u32, 0u32, 0u32);
    for judged in all {
        flows += 1;
        let behaviour = judged.judgement.behaviour;
        if behaviour != Behaviour::TooLittleEvidence {
            named += 1;
            wrong += u32::from(behaviour != judged.truth);
        }
    }
    let percent = |part: u32, whole: u32| 100.0 * f64::from(part) / f64::from(whole.max(1));
    println!("| {name} | {flows} | {:.0} | {:.1} |", percent(named, flows), percent(wrong, named));
}

/// The finer kinds of flows that are loss-driven, and named so.
fn finer(all: &[Judged]) {
    let mut counts = BTreeMap::<_, u64>::new();
    for judged in all {
        if let (Some(truth), Behaviour::LossDriven) = (judged.finer, judged.judgement.behaviour) {
            *counts.entry((truth, judged.judgement.finer)).or_default() += 1;
        }
    }
    println!("\n| really \\ finer | loss-based | loss-delay | none |\n| --- | --: | --: | --: |");
    for (name, truth) in [("loss-based", FinerKind::LossBased), ("loss-delay", FinerKind::LossDelay)] {
        let count = |finer| counts.get(&(truth, finer)).unwrap_or(&0);
        let [based, delay, none] = [Some(FinerKind::LossBased), Some(FinerKind::LossDelay), None].map(count);
        println!("| {name} | {based} | {delay} | {none} |");
    }
}
