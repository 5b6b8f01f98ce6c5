//! `queuescope coordinator`: makes and runs the coordinator of a fleet.

use crate::args::{AlertSending, Coordinator, CoordinatorInit, CoordinatorRun};
use crate::coordinator_metrics;
use crate::fleet::{note_address, runtime};
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::{Context, Result};
use queuescope_fleet::coordinator::{
    self as fleet, CoordinatorError, CoordinatorOptions, CoordinatorServer, PreparedSinks, SinkOptions, SinkReport,
    create,
};
use queuescope_ingest::Stop;
use queuescope_report::format::count;
use std::time::Duration;

/// Time between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// The port, if none is given.
const PORT: u16 = 7401;

/// Runs `coordinator`.
///
/// # Errors
/// Fails if the folder cannot be made, or if the coordinator cannot run.
pub fn run(what: &Coordinator) -> Result<Outcome> {
    match what {
        Coordinator::Init(args) => init(args),
        Coordinator::Run(args) => serve_until_signal(args),
    }
}

fn init(args: &CoordinatorInit) -> Result<Outcome> {
    let admin = create(&args.folder, &args.name)?;
    note_address(&admin, &format!("127.0.0.1:{PORT}"))?;
    print(
        false,
        |_| Ok(()),
        |out| {
            let (folder, admin) = (args.folder.display(), admin.display());
            writeln!(
                out,
                "{folder} has a certificate authority; {admin} has the credentials of the first administrator"
            )?;
            writeln!(out, "next: queuescope coordinator run {folder} --listen 0.0.0.0:{PORT}")?;
            writeln!(out, "then: queuescope fleet invite HOST --credentials {admin}")
        },
    )?;
    Ok(Outcome::Complete)
}

fn serve_until_signal(args: &CoordinatorRun) -> Result<Outcome> {
    let stop = Stop::on_signals()?;
    let runtime = runtime().context("cannot start threads")?;
    let options =
        CoordinatorOptions { lease: args.lease, alerts: args.keep_alerts as usize, ..CoordinatorOptions::default() };
    let sinks = PreparedSinks::new(sink_options(&args.sending))?;
    let (refused, sent) = runtime.block_on(async {
        let Some(server) = open(args, options, &stop).await? else { return Ok((0, Vec::new())) };
        let address = server.address().map_err(|why| CoordinatorError::Listen { address: args.listen, why })?;
        let coordinator = server.coordinator().clone();
        let sinks = server.start_sinks(sinks)?;
        note(&format!("the coordinator listens on {address}"));
        let metrics = match &args.metrics {
            Some(at) => {
                let (metrics, address) = coordinator_metrics::serve(at, server.measuring())?;
                note(&format!("metrics: http://{address}/metrics"));
                Some(metrics)
            }
            None => None,
        };
        let refused = server.serve(until_stopped(&stop, &coordinator)).await?;
        let ended = tokio::task::spawn_blocking(move || sinks.stop()).await;
        if !ended.unwrap_or(false) {
            note("a sink did not end in time; what it was sending is sent again after the next start");
        }
        note_troubles(&coordinator);
        let unanswered = metrics.map_or(0, |metrics| metrics.failed());
        if unanswered > 0 {
            note(&format!("{} requests for metrics were not answered", count(unanswered)));
        }
        anyhow::Ok((refused, coordinator.sinks()))
    })?;
    for report in &sent {
        note(&counts(report));
    }
    if refused > 0 {
        note(&format!("{} connections were refused, without a valid certificate or over the limit", count(refused)));
    }
    Ok(Outcome::Complete)
}

/// Opens the coordinator's folder; as a standby, when no other process runs this coordinator any more. Returns `None` if a signal came before.
async fn open(
    args: &CoordinatorRun,
    options: CoordinatorOptions,
    stop: &Stop,
) -> Result<Option<CoordinatorServer>, CoordinatorError> {
    let mut is_noted = false;
    while !stop.is_requested() {
        match CoordinatorServer::open(&args.folder, args.listen, options).await {
            Err(CoordinatorError::InUse(folder)) if args.standby => {
                if !is_noted {
                    note(&format!("{} is in use; this coordinator begins when the other ends", folder.display()));
                    is_noted = true;
                }
                tokio::time::sleep(LOOK).await;
            }
            // The address of the other may take a while to be free, or to move.
            Err(CoordinatorError::Listen { .. }) if args.standby && is_noted => tokio::time::sleep(LOOK).await,
            opened => return opened.map(Some),
        }
    }
    Ok(None)
}

/// Waits for a signal, and notes what goes wrong meanwhile.
async fn until_stopped(stop: &Stop, coordinator: &fleet::Coordinator) {
    while !stop.is_requested() {
        tokio::time::sleep(LOOK).await;
        note_troubles(coordinator);
    }
}

fn note_troubles(coordinator: &fleet::Coordinator) {
    while let Some(trouble) = coordinator.trouble() {
        note(&trouble);
    }
}

fn sink_options(args: &AlertSending) -> SinkOptions {
    SinkOptions {
        sinks: args.send.clone(),
        once: args.send_once,
        backlog: args.send_backlog,
        token: args.send_token.clone(),
        authority: args.send_authority.clone(),
        ..SinkOptions::default()
    }
}

/// What a sink did.
fn counts(report: &SinkReport) -> String {
    let stats = report.stats;
    let mut text = format!("{}: {} alerts sent", report.sink, count(stats.sent));
    for (number, what) in [
        (stats.repeats, "repeats left out"),
        (stats.refused, "refused and dropped"),
        (stats.left_out, "left out because too many waited"),
        (stats.retried, "attempts failed"),
    ] {
        if number > 0 {
            text += &format!(", {} {what}", count(number));
        }
    }
    text
}
