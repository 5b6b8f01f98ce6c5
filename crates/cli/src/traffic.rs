//! `queuescope traffic`: load over the TCP of this machine, to measure queues with.

use crate::args::{Send, Serve, Traffic};
use crate::outcome::{Outcome, print, told};
use anyhow::{Context, Result};
use queuescope_ingest::Stop;
use queuescope_link::traffic::{Tally, TrafficPlan, served, served_json};
use queuescope_live::Controls;
use queuescope_live::traffic::{Ended, SendParams, ServeParams, TrafficError, listen, send, serve, take_with, try_out};
use std::io::{self, BufWriter, Write};

/// Runs `traffic`.
///
/// # Errors
/// If nothing could be sent or taken.
pub fn run(what: &Traffic) -> Result<Outcome> {
    match what {
        Traffic::Serve(args) => take(args),
        Traffic::Send(args) => give(args),
    }
}

fn take(args: &Serve) -> Result<Outcome> {
    let stop = Stop::on_signals()?;
    let listener = listen(args.listen)?;
    let controls = Controls::missing(args.congestion.as_slice())?;
    if let Some(name) = &args.congestion {
        take_with(&listener, controls.name(name))?;
    }
    let at = listener.local_addr().context("cannot find out where it listens")?;
    // At once: who starts it waits for this, and it may be all that comes for long.
    let first = |out: &mut dyn Write| match args.json {
        true => writeln!(out, "{}", serde_json::json!({"kind": "listening", "at": at.to_string()})),
        false => writeln!(out, "takes flows at {at}"),
    };
    print(args.json, first, first)?;
    let open = usize::try_from(args.flows.get()).unwrap_or(usize::MAX);
    let params = ServeParams { open, idle: args.idle, until: args.run_time.duration };
    let taken = serve(&listener, params, stop.waker())?;
    print(args.json, |out| served_json(&taken, out), |out| served(&taken, out))?;
    Ok(Outcome::Whole)
}

fn give(args: &Send) -> Result<Outcome> {
    let stop = Stop::on_signals()?;
    let plan = TrafficPlan::new(&args.options())?;
    // They are there until all has ended.
    let controls = Controls::missing(&plan.congestion)?;
    let params = SendParams {
        to: args.to,
        open: usize::try_from(args.flows.get()).unwrap_or(usize::MAX),
        wait: args.wait,
        congestion: plan.congestion.iter().map(|name| controls.name(name).to_owned()).collect(),
        ecn: args.ecn,
        midway: None,
    };
    let chosen = try_out(&params)?;
    let congestion = if plan.congestion.is_empty() { chosen } else { plan.congestion.clone() };
    let mut all = Tally::new(&plan, congestion, &controls);
    let mut out = BufWriter::new(io::stdout().lock());
    let sent = send(&params, plan.starts()?, stop.waker(), |flow: &Ended| {
        all.add(flow);
        if args.json {
            all.flow(flow, &mut out)?;
            // Whoever reads on wants to know now.
            out.flush()?;
        }
        Ok(())
    });
    drop(out);
    let sent = match sent {
        Err(TrafficError::System { why, .. }) if why.kind() == io::ErrorKind::BrokenPipe => return Ok(Outcome::Whole),
        sent => sent?,
    };
    if sent.flows == 0 && !sent.stopped {
        anstream::eprintln!("no flow was due within --for: give it more time, or flows more often");
    }
    if args.json {
        told(all.summary_json(&sent, &mut io::stdout().lock()))?;
    } else {
        print(false, |_| Ok(()), |out| all.summary(args.to, &sent, out))?;
    }
    let failed = all.failed();
    Ok(Outcome::of((failed > 0).then(|| format!("{failed} of {} flows did not complete", sent.flows))))
}
