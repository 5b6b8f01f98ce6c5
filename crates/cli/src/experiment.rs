//! `queuescope experiment`: repeats the experiments of a paper.

use crate::args::{Experiment, Paper};
use crate::outcome::{self, Outcome};
use crate::progress::Progress;
use crate::terminal::note;
use anyhow::{Result, anyhow, bail};
use queuescope_experiments::{self as experiments, Capture, Error, Options, Setting};
use queuescope_run::World;
use std::io::{self, IsTerminal};

/// Runs an experiment.
///
/// # Errors
/// Fails if options contradict each other, if a cell cannot be run, or if a result cannot be written.
pub fn run(args: &Experiment) -> Result<Outcome> {
    if args.capture.is_some() && args.paper != Paper::Conquest {
        bail!("--capture is for conquest only: the other experiments generate their traffic");
    }
    if args.real && args.paper == Paper::Conquest {
        bail!("--real is for experiments with flows that adapt their rate: conquest uses a given stream of packets");
    }
    let setting = Setting { real: real_hosts(), note: &note };
    let mut bar: Option<Progress> = None;
    let done = experiments::run(&options(args), &setting, &mut |done, all| {
        let bar = bar.get_or_insert_with(|| Progress::cells(all, "simulations"));
        if done > 0 {
            bar.one();
        }
    });
    bar.into_iter().for_each(Progress::finish);
    let done = done.map_err(in_options)?;
    let wide = io::stdout().is_terminal().then(textwrap::termwidth);
    outcome::print(false, |_| Ok(()), |out| done.write(wide, out))?;
    Ok(Outcome::Complete)
}

fn options(args: &Experiment) -> Options {
    let mut options = Options::new(args.paper.into());
    options.small = args.small;
    options.seeds = args.seeds;
    options.figures = args.figures.iter().map(|figure| figure.trim().to_owned()).collect();
    options.real = args.real;
    let speedup = args.speedup;
    options.capture = args.capture.clone().zip(args.rate).map(|(file, rate)| Capture { file, rate, speedup });
    options.out.clone_from(&args.out);
    options.jobs = args.parallel.jobs;
    options
}

/// Words an error in terms of the options that fix it.
fn in_options(error: Error) -> anyhow::Error {
    match error {
        Error::Seeds { wanted, study, has } => anyhow!("--seeds {wanted}: {study} has {has} at most"),
        Error::Figure { wanted, study, known } => anyhow!("--figures '{wanted}': {study} has {}", known.join(", ")),
        Error::RealAnyway(study) => anyhow!("{study} runs on real hosts anyway: leave --real out"),
        error => error.into(),
    }
}

#[cfg(target_os = "linux")]
fn real_hosts() -> Option<&'static dyn World> {
    Some(&queuescope_link::RealHosts)
}

#[cfg(not(target_os = "linux"))]
fn real_hosts() -> Option<&'static dyn World> {
    None
}

impl From<Paper> for experiments::Paper {
    fn from(paper: Paper) -> Self {
        match paper {
            Paper::Abc => Self::Abc,
            Paper::Conquest => Self::Conquest,
            Paper::ConquestAqm => Self::ConquestAqm,
            Paper::EgressPi => Self::EgressPi,
            Paper::P4air => Self::P4air,
            Paper::PieTofino => Self::PieTofino,
            Paper::TwoWorlds => Self::TwoWorlds,
        }
    }
}
