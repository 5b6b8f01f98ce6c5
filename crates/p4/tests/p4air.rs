//! P4air's memory (table I of the paper) and its place on each switch.

use proptest::prelude::*;
use queuescope_p4::algorithms::{Flows, p4air};
use queuescope_p4::{Aspect, Fit, Grade, Gress, Placement, Target};

fn bits(dimensions: Flows) -> [u64; 3] {
    let memory = p4air(dimensions).memory();
    let names: Vec<_> = memory.iter().map(|(part, _)| *part).collect();
    assert_eq!(names, ["alpha", "beta", "reallocation"]);
    [memory[0].1, memory[1].1, memory[2].1]
}

/// Table I: kB (of 1000 bytes), and the shares of alpha, beta and reallocation in percent, to two digits.
#[test]
fn every_cell_of_the_papers_table() {
    let table = [
        (10, "17.53", ["86.89", "5.84", "7.27"]),
        (11, "33.92", ["89.81", "6.04", "4.16"]),
        (12, "66.57", ["91.53", "6.15", "2.32"]),
        (13, "131.73", ["92.51", "6.22", "1.28"]),
    ];
    for (log, total, shares) in table {
        let parts = bits(Flows { flows: 1 << log, queues: 32, ports: 24 });
        let all: u64 = parts.iter().sum();
        assert_eq!(format!("{:.2}", all as f64 / 8e3), total, "2^{log}");
        let percent = parts.map(|part| format!("{:.2}", 100.0 * part as f64 / all as f64));
        assert_eq!(percent, shares, "2^{log}");
    }
}

proptest! {
    /// Section III-D: 127 bits a flow, and for each port
    /// (5 + n_queues) log2(n_flows) + 3 log2(n_queues) + 8 log2(n_flows / n_queues).
    #[test]
    fn the_registers_have_the_bits_of_the_papers_formula(log_flows in 10u32..21, log_queues in 3u32..7, ports in 1u64..129) {
        let (flows, queues) = (1u64 << log_flows, 1u32 << log_queues);
        let port = (5 + queues) * log_flows + 3 * log_queues + 8 * (log_flows - log_queues);
        // The 8 bits of beta have a group of 3 bits, and a queue.
        let flow = 119 + 3 + log_queues;
        let parts = bits(Flows { flows, queues, ports });
        prop_assert_eq!(parts, [119 * flows, u64::from(flow - 119) * flows, u64::from(port) * ports]);
    }
}

/// The stage of a part in a half, counted from 1.
fn stage(placement: &Placement, half: Gress, part: &str) -> usize {
    let has = |placed: &queuescope_p4::Placed| placed.gress == half && placed.name.split("; ").any(|name| name == part);
    let found: Vec<_> = (0..placement.stages.len()).filter(|n| placement.stages[*n].placed.iter().any(has)).collect();
    assert_eq!(found.len(), 1, "{part}");
    found[0] + 1
}

/// The worst verdict of the aspects.
fn worst(fit: &Fit) -> Grade {
    fit.aspects.iter().map(|(_, verdict)| verdict.grade).max().expect("there are four")
}

/// It takes 10 stages of a Tofino, with workarounds: copies that go back, a shift for a product, and a control plane that
/// removes flows. Each register is reached once.
#[test]
fn it_fits_a_tofino_with_workarounds() {
    let fit = Fit::new(&p4air(Flows::default()), &Target::tofino());
    let grades = fit.aspects.each_ref().map(|(aspect, verdict)| (*aspect, verdict.grade));
    let expected = [
        (Aspect::Metric, Grade::Workaround),
        (Aspect::Reaction, Grade::Workaround),
        (Aspect::Backflow, Grade::Workaround),
        (Aspect::Memory, Grade::Feasible),
    ];
    assert_eq!(grades, expected, "{:#?}", fit.aspects);
    assert_eq!((worst(&fit), fit.room.clone()), (Grade::Workaround, None));
    // The compiler has no place for the program that is written from it.
    assert_eq!((fit.grade(), fit.reasons().len()), (Grade::Infeasible, 1));
    assert!(fit.reasons()[0].starts_with("p4c finds no placement"), "{:?}", fit.reasons());
    let placement = fit.placement.unwrap();
    assert_eq!((placement.stages.len(), placement.used().registers), (10, 25));
    // By hand: each needs the one before it.
    let chain = [
        "whether it has data",
        "hash of the flow, of the other direction without data",
        "RTT, and whether a round trip ends",
        "packets + 1",
        "previous packets + an eighth",
        "packets: more or less than the previous ones, and by an eighth",
        "round trips since a decrease + 1, or 0",
        "round trips since an increase: 1, + 1, or 0",
        "round trips since a pulse + 1, or 0",
        "pulses + 1, or from 1 again",
    ];
    let stages = chain.map(|part| stage(&placement, Gress::Ingress, part));
    assert_eq!(stages, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/// The words of one-word registers are too few for the round trip; without copies, no group changes; before the queue, the
/// plain switch has no steps.
#[test]
fn what_it_needs_of_a_switch() {
    let program = p4air(Flows::default());
    let verdict = |target: &Target, aspect| Fit::new(&program, target).verdict(aspect).clone();
    let metric = verdict(&Target::tofino_registers_only(), Aspect::Metric);
    assert!(metric.reasons.contains(&"\"RTT, and whether a round trip ends\": it takes 2 words".to_owned()));
    let nothing_back = Target { feeds_back: false, ..Target::tofino() };
    assert_eq!(verdict(&nothing_back, Aspect::Backflow).grade, Grade::Infeasible);
    let plain = verdict(&Target::plain(), Aspect::Metric);
    assert!(plain.reasons.contains(&"there are no steps before the queue".to_owned()), "{plain:?}");
    assert_eq!(Fit::new(&program, &Target::generous()).grade(), Grade::Workaround);
}

/// The words of a register are in one stage. A stage of a Tofino holds the round trips of 2^17 flows, which are 64 of its 80
/// blocks, and not those of 2^18.
#[test]
fn the_widest_register_bounds_the_flows() {
    let fits = |log: u32| {
        let fit = Fit::new(&p4air(Flows { flows: 1 << log, ..Flows::default() }), &Target::tofino());
        let grade = if fit.room.is_some() { Grade::Infeasible } else { worst(&fit) };
        (grade, fit.room)
    };
    assert_eq!(fits(17), (Grade::Workaround, None));
    let (grade, room) = fits(18);
    assert_eq!(grade, Grade::Infeasible);
    assert_eq!(room.as_deref(), Some("\"RTT, and whether a round trip ends\" takes more than a stage has"));
}

/// Section IV-C, with 2^16 flows: less than 18 % of the register memory, less than 5 % of the hash generators. Here, registers
/// are counted in words of 8, 16 and 32 bits, and only hashes that the program computes.
#[test]
fn the_shares_of_a_tofino_are_below_the_papers() {
    let (program, target) = (p4air(Flows::default()), Target::tofino());
    let stages = target.stages as u64;
    let memory = program.register_blocks(&target) as f64 / (target.per_stage.sram * stages) as f64;
    assert!(memory < 0.18, "{memory}");
    // Three pairs, seven words of 8 bits and one bit a flow; 14 small registers; and one block more for each of the 25.
    assert_eq!(program.register_blocks(&target), 32 + 16 + 16 + 7 * 4 + 1 + 14 + 25);
    let hashes = program.hashes() as f64 / (target.hash_units * stages) as f64;
    assert!(hashes > 0.0 && hashes < 0.05, "{hashes}");
}
