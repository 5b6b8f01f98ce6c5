//! `queuescope fleet alerts`: prints the alerts of all hosts.

use super::{Access, runtime, with_client};
use crate::args::FleetAlerts;
use crate::outcome::{Outcome, ignore_closed_pipe};
use crate::terminal::note;
use anyhow::{Context, Result, anyhow};
use queuescope_fleet::client::{AlertFollower, Followed};
use queuescope_fleet::protocol::Alert;
use queuescope_ingest::Stop;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::pin::pin;
use std::time::Duration;
use tokio_stream::StreamExt;

/// Time between two looks for a signal: alerts may be rare.
const LOOK: Duration = Duration::from_millis(100);

/// Runs `fleet alerts`.
///
/// # Errors
/// Fails if the coordinator cannot be reached, or if it refuses the call.
pub fn run(args: &FleetAlerts) -> Result<Outcome> {
    let stop = Stop::on_signals()?;
    let mut printed = Printed { expected: args.from.max(1) };
    if !args.follow {
        with_client(&args.access, async |client| {
            let mut alerts = client.alerts(args.from, false).await?;
            while !stop.is_requested() {
                // A stop is looked for meanwhile.
                let Ok(next) = tokio::time::timeout(LOOK, alerts.next()).await else { continue };
                let Some(alert) = next else { break };
                if !printed.alert(&alert.map_err(|status| anyhow!("{}", status.message()))?)? {
                    break;
                }
            }
            Ok(())
        })?;
        return Ok(Outcome::Complete);
    }
    let Access { coordinator, credentials, .. } = Access::open(&args.access)?;
    let mut follower = AlertFollower::new(&coordinator, credentials, args.from);
    let runtime = runtime().context("cannot start threads")?;
    runtime.block_on(async {
        let mut was_broken = false;
        loop {
            let came = {
                let mut next = pin!(follower.next());
                loop {
                    match tokio::time::timeout(LOOK, &mut next).await {
                        Ok(came) => break came?,
                        Err(_) if stop.is_requested() => return Ok(Outcome::Complete),
                        Err(_) => {}
                    }
                }
            };
            match came {
                Followed::Alert(alert) => {
                    if !printed.alert(&alert)? {
                        return Ok(Outcome::Complete);
                    }
                }
                Followed::Broken { why, pause } => {
                    was_broken = true;
                    note(&format!("{why}; the next try is in {pause}"));
                }
                Followed::Connected if was_broken => {
                    was_broken = false;
                    note(&format!("connected again; goes on from alert {}", printed.expected));
                }
                Followed::Connected => {}
            }
        }
    })
}

/// What was printed.
struct Printed {
    /// The number of the next alert.
    expected: u64,
}

impl Printed {
    /// Prints an alert. Returns whether somebody still reads.
    fn alert(&mut self, alert: &Alert) -> Result<bool> {
        if alert.number > self.expected {
            let (from, to) = (self.expected, alert.number - 1);
            note(&format!("alerts {from} to {to} are not kept any more (coordinator run --keep-alerts)"));
        }
        self.expected = alert.number + 1;
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{}", alert_json(alert)).and_then(|()| out.flush());
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return Ok(false);
        }
        ignore_closed_pipe(written)?;
        Ok(true)
    }
}

fn alert_json(alert: &Alert) -> Value {
    json!({
        "number": alert.number, "host": alert.member, "trigger": alert.trigger, "at_ns": alert.at.to_string(),
        "value": alert.value, "packets": alert.packets, "detail": alert.detail,
    })
}
