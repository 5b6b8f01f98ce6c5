//! Writes a made-up report as a page, to look at: `cargo run -p queuescope-report --example sample_report page.html [kind]`.
//!
//! Kinds: `usual`, `calm`, `many`, `empty`, `without-rate`, `hostile`, `simulated`,
//! `nothing-simulated`, `two-queues`.

#[path = "../tests/common/sample.rs"]
#[allow(missing_docs, reason = "shared with the tests")]
mod sample;

use std::fs::File;
use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!(
            "usage: sample_report PAGE.html \
             [usual|calm|many|empty|without-rate|hostile|simulated|nothing-simulated|two-queues]"
        );
        std::process::exit(2);
    };
    let kind = arguments.next().unwrap_or_else(|| "usual".to_owned());
    let Some((_, report)) = sample::all().into_iter().find(|(name, _)| *name == kind) else {
        eprintln!("unknown sample '{kind}'");
        std::process::exit(2);
    };
    let mut page = BufWriter::new(File::create(path)?);
    queuescope_report::html::write(&report, &mut page)?;
    page.flush()
}
