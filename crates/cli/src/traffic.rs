//! `queuescope traffic`: load over the TCP of this machine, for measuring queues.

use crate::args::{Send, Serve, Traffic};
use crate::outcome::{Outcome, ignore_closed_pipe, print};
use anyhow::{Context, Result};
use queuescope_ingest::Stop;
use queuescope_link::traffic::{Tally, TrafficPlan, served, served_json};
use queuescope_live::Controls;
use queuescope_live::traffic::{Ended, SendParams, ServeParams, TrafficError, listen, send, serve, take_with, try_out};
use queuescope_report::json::FORMAT_VERSION;
use std::io::{self, BufWriter, Write};

/// Runs `traffic`.
///
/// # Errors
/// Fails if nothing could be sent or received.
pub fn run(what: &Traffic) -> Result<Outcome> {
    match what {
        Traffic::Serve(args) => run_server(args),
        Traffic::Send(args) => run_sender(args),
    }
}

fn run_server(args: &Serve) -> Result<Outcome> {
    let stop = Stop::on_signals()?;
    let listener = listen(args.listen)?;
    let controls = Controls::missing(args.congestion.as_slice())?;
    if let Some(name) = &args.congestion {
        take_with(&listener, controls.name(name))?;
    }
    let at = listener.local_addr().context("cannot read the address that it listens on")?;
    // Print this at once: a script that starts the server waits for it, and no other output may come for long.
    let first = |out: &mut dyn Write| match args.json {
        true => writeln!(
            out,
            "{}",
            serde_json::json!({"format_version": FORMAT_VERSION, "kind": "listening", "at": at.to_string()})
        ),
        false => writeln!(out, "takes flows at {at}"),
    };
    print(args.json, first, first)?;
    let open = usize::try_from(args.flows.get()).unwrap_or(usize::MAX);
    let params = ServeParams { open, idle: args.idle, until: args.run_time.duration };
    let taken = serve(&listener, params, stop.waker())?;
    print(args.json, |out| served_json(&taken, out), |out| served(&taken, out))?;
    Ok(Outcome::Complete)
}

fn run_sender(args: &Send) -> Result<Outcome> {
    let stop = Stop::on_signals()?;
    let plan = TrafficPlan::new(&args.options())?;
    // Loaded congestion controls stay in the kernel until `controls` is dropped, at the end.
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
            // Flush each line, for a reader that follows the output.
            out.flush()?;
        }
        Ok(())
    });
    drop(out);
    let sent = match sent {
        Err(TrafficError::System { why, .. }) if why.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(Outcome::Complete);
        }
        sent => sent?,
    };
    if sent.flows == 0 && !sent.stopped {
        anstream::eprintln!("no flow was due within --for: give a longer time, or start flows more often");
    }
    if args.json {
        ignore_closed_pipe(all.summary_json(&sent, &mut io::stdout().lock()))?;
    } else {
        print(false, |_| Ok(()), |out| all.summary(args.to, &sent, out))?;
    }
    let failed = all.failed();
    Ok(Outcome::from_damage((failed > 0).then(|| format!("{failed} of {} flows did not complete", sent.flows))))
}
