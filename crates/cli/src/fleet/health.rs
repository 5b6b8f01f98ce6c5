//! `queuescope fleet health`: whether the coordinator serves, for scripts.

use super::{Access, runtime, state};
use crate::args::FleetHealth;
use crate::outcome::{Outcome, print};
use anyhow::{Context, Result, anyhow, bail};
use queuescope_fleet::client::Client;
use queuescope_fleet::identity::Identity;
use queuescope_fleet::protocol::{CheckResponse, Member, State};
use queuescope_log::date_text;
use queuescope_wire::Nanos;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What the coordinator said.
struct Health {
    coordinator: String,
    checked: CheckResponse,
    /// From the beginning of the connection to the answer.
    within: Nanos,
    /// Who asked, and until when the certificate is valid.
    asker: Identity,
    until: Nanos,
    /// The hosts, with `--hosts`.
    hosts: Option<Vec<Member>>,
}

/// Runs `fleet health`.
///
/// # Errors
/// Fails if the coordinator does not serve in time, or refuses the certificate.
pub fn run(args: &FleetHealth) -> Result<Outcome> {
    let health = asked(args)?;
    let absent = health.hosts.as_deref().and_then(absent);
    print(
        args.json,
        |out| writeln!(out, "{}", as_json(&health)),
        |out| {
            let Health { coordinator, checked, within, asker, until, hosts } = &health;
            writeln!(
                out,
                "the coordinator at {coordinator} serves: version {}, protocol {}; it answered in {within}",
                checked.version, checked.protocol
            )?;
            writeln!(out, "the certificate of {} ({}) is valid until {}", asker.name, asker.role, date_text(*until))?;
            match (hosts, &absent) {
                (Some(hosts), None) => writeln!(out, "all of its hosts are here: {}", hosts.len()),
                _ => Ok(()),
            }
        },
    )?;
    Ok(Outcome::from_damage(absent))
}

#[expect(clippy::disallowed_methods, reason = "the time of an answer is measured")]
fn asked(args: &FleetHealth) -> Result<Health> {
    let access = Access::open(&args.access)?;
    let (asker, not_after) = {
        let credentials = access.credentials.get();
        let facts = credentials.facts();
        let asker = facts.subject.member().map_err(|error| anyhow!(error.with_causes()))?.clone();
        (asker, facts.not_after)
    };
    let begin = Instant::now();
    let call = async {
        let mut client = Client::connect(&access.coordinator, &access.credentials).await?;
        let checked = client.check().await?;
        let within = begin.elapsed();
        let hosts = if args.hosts { Some(client.members().await?) } else { None };
        anyhow::Ok((checked, within, hosts))
    };
    let runtime = runtime().context("cannot start threads")?;
    let limited = async { tokio::time::timeout(Duration::from_nanos(args.within.0), call).await };
    let Ok(answer) = runtime.block_on(limited) else {
        bail!("the coordinator at {} did not answer within {}", access.coordinator, args.within)
    };
    let (checked, within, hosts) = answer?;
    Ok(Health {
        coordinator: access.coordinator,
        checked,
        within: Nanos(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX)),
        asker,
        until: Nanos(not_after.saturating_mul(1_000_000_000)),
        hosts,
    })
}

/// The hosts that are not here, if there are any.
fn absent(hosts: &[Member]) -> Option<String> {
    let absent: Vec<_> = hosts.iter().filter(|host| host.state() != State::Answered).collect();
    let names: Vec<_> = absent.iter().map(|host| format!("{} ({})", host.name, state(host.state()))).collect();
    (!names.is_empty())
        .then(|| format!("{} of {} hosts are not here or not well: {}", names.len(), hosts.len(), names.join(", ")))
}

fn as_json(health: &Health) -> Value {
    let hosts = health.hosts.as_ref().map(|hosts| {
        let hosts = hosts.iter().map(|host| json!({ "host": host.name, "state": state(host.state()) }));
        hosts.collect::<Vec<_>>()
    });
    json!({
        "coordinator": health.coordinator, "serves": true, "version": health.checked.version, "protocol": health.checked.protocol,
        "within_ns": health.within.0, "name": health.asker.name.as_str(), "role": health.asker.role.to_string(),
        "valid_until_ns": health.until.0.to_string(), "hosts": hosts,
    })
}
