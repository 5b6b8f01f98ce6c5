//! `queuescope coordinator`: makes and runs the coordinator of a fleet.

use crate::args::{Coordinator, CoordinatorInit, CoordinatorRun};
use crate::fleet::{note_address, runtime};
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::{Context, Result};
use queuescope_fleet::coordinator::{self as fleet, CoordinatorError, CoordinatorOptions, CoordinatorServer, create};
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
    let options = CoordinatorOptions { lease: args.lease, ..CoordinatorOptions::default() };
    let refused = runtime.block_on(async {
        let Some(server) = open(args, options, &stop).await? else { return Ok(0) };
        let address = server.address().map_err(|why| CoordinatorError::Listen { address: args.listen, why })?;
        note(&format!("the coordinator listens on {address}"));
        let coordinator = server.coordinator().clone();
        server.serve(until_stopped(&stop, &coordinator)).await
    })?;
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
            opened => return opened.map(Some),
        }
    }
    Ok(None)
}

/// Waits for a signal, and notes what goes wrong meanwhile.
async fn until_stopped(stop: &Stop, coordinator: &fleet::Coordinator) {
    while !stop.is_requested() {
        tokio::time::sleep(LOOK).await;
        if let Some(trouble) = coordinator.trouble() {
            note(&trouble);
        }
    }
}
