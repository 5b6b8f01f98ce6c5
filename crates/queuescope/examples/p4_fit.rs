//! Whether an algorithm fits the pipeline of a switch, and why not: `cargo run -p queuescope --features p4 --example p4_fit`.

use queuescope::p4::{Fit, Target, algorithms};

fn main() {
    let target = Target::tofino();
    println!("on {}:", target.name);
    for program in [algorithms::pie(), algorithms::pie_table(), algorithms::egress_pi()] {
        let fit = Fit::new(&program, &target);
        let stages = fit.placement.as_ref().map_or(0, |placement| placement.stages.len());
        println!("{}: {}, {stages} of {} stages", program.name(), fit.grade().name(), target.stages);
        for (aspect, verdict) in &fit.aspects {
            for reason in &verdict.reasons {
                println!("  {}: {reason}", aspect.name());
            }
        }
    }
}
