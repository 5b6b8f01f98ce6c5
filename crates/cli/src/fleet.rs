//! `queuescope fleet`: asks a coordinator about all hosts.

use crate::args::{Fleet, FleetAccess, FleetCut, FleetInvite, FleetJoin, FleetMembers, FleetRevoke};
use crate::outcome::{Outcome, print};
use crate::paths::read_text;
use anyhow::{Context, Result, bail};
use queuescope_fleet::answer::clock_text;
use queuescope_fleet::client::{Client, join};
use queuescope_fleet::identity::{Credentials, CurrentCredentials};
use queuescope_fleet::protocol::{ClockOffset, CutResponse, Member, RevokeResponse, State};
use queuescope_fleet::violations::violations;
use queuescope_log::date_text;
use queuescope_report::format::count;
use queuescope_wire::Nanos;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};

mod actions;
mod alerts;
mod health;
mod network;
mod order;
mod program;
mod query;
mod queue_host;
mod upload;
mod way;

pub use network::{Network, Refused};
pub use queue_host::{HostLosses, QueueHost};
pub use upload::{HostUploads, Uploading};
pub use way::why;

/// The file of the coordinator's address, beside credentials.
const ADDRESS: &str = "coordinator";
/// How long a cut waits for each reply, and a cut by time for each answer.
const REPLY: Nanos = Nanos(10_000_000);
const ANSWER: Nanos = Nanos(5_000_000_000);
/// The longest token.
const LONGEST: u64 = 4_096;

/// Runs `fleet`.
///
/// # Errors
/// Fails if the coordinator cannot be reached, or if it refuses the call.
pub fn run(what: &Fleet) -> Result<Outcome> {
    match what {
        Fleet::Join(args) => joined(args),
        Fleet::Invite(args) => invite(args),
        Fleet::Revoke(args) => revoke(args),
        Fleet::Members(args) => members(args),
        Fleet::Health(args) => health::run(args),
        Fleet::Cut(args) => cut(args),
        Fleet::Manifest(args) => upload::manifest(args),
        Fleet::Upload(args) => upload::folder(args),
        Fleet::Query(args) => query::run(args),
        Fleet::Alerts(args) => alerts::run(args),
        Fleet::Actions(args) => actions::run(args),
        Fleet::Program(what) => program::run(what),
        Fleet::Why(args) => way::run(args),
    }
}

/// A coordinator's address, and the credentials for it.
pub struct Access {
    /// `HOST:PORT`.
    pub coordinator: String,
    /// The credentials.
    pub credentials: CurrentCredentials,
    /// Their folder.
    pub folder: PathBuf,
}

impl Access {
    /// Reads a folder of credentials.
    ///
    /// # Errors
    /// Fails if there are none, or if the coordinator's address is not known.
    pub fn open(args: &FleetAccess) -> Result<Self> {
        let folder = args.credentials.clone();
        let Some(credentials) = Credentials::load(&folder).map_err(|error| anyhow::anyhow!(error.with_causes()))?
        else {
            bail!("{} has no credentials: make them with queuescope fleet join", folder.display())
        };
        let coordinator = match &args.coordinator {
            Some(given) => given.clone(),
            None => address(&folder)?,
        };
        Ok(Self { coordinator, credentials: CurrentCredentials::new(credentials), folder })
    }
}

fn address(folder: &Path) -> Result<String> {
    let path = folder.join(ADDRESS);
    let text = read_text(&path, LONGEST).with_context(|| {
        format!("cannot read the coordinator's address in {}; give --coordinator HOST:PORT", path.display())
    })?;
    Ok(text.trim().to_owned())
}

/// Notes the coordinator's address beside credentials.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn note_address(folder: &Path, coordinator: &str) -> Result<()> {
    let path = folder.join(ADDRESS);
    fs::write(&path, format!("{coordinator}\n")).with_context(|| format!("cannot write {}", path.display()))
}

/// The threads of connections.
///
/// # Errors
/// Fails if the system starts no threads.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).thread_name("fleet").enable_all().build()
}

/// Runs a call to the coordinator.
fn with_client<T>(access: &FleetAccess, call: impl AsyncFnOnce(&mut Client) -> Result<T>) -> Result<T> {
    let access = Access::open(access)?;
    let runtime = runtime().context("cannot start threads")?;
    runtime.block_on(async {
        let mut client = Client::connect(&access.coordinator, &access.credentials).await?;
        call(&mut client).await
    })
}

fn joined(args: &FleetJoin) -> Result<Outcome> {
    let token = if args.token == "-" { io::read_to_string(io::stdin())? } else { args.token.clone() };
    if Credentials::load(&args.credentials).is_ok_and(|there| there.is_some()) {
        bail!("{} has credentials already; give another folder, or remove it", args.credentials.display());
    }
    if let Some(other) = other_file(&args.credentials)? {
        bail!(
            "{} is not empty: it has {other}; give a folder that does not exist, or an empty one",
            args.credentials.display()
        );
    }
    // The token is valid once: what could fail afterwards is tried before.
    fs::create_dir_all(&args.credentials).with_context(|| format!("cannot make {}", args.credentials.display()))?;
    note_address(&args.credentials, &args.coordinator)?;
    let runtime = runtime().context("cannot start threads")?;
    let identity = runtime.block_on(join(&args.coordinator, token.trim(), &args.credentials))?;
    say(&format!(
        "joined as {} ({}); the key and certificate are in {}",
        identity.name,
        identity.role,
        args.credentials.display()
    ))
}

/// The name of a file in a folder that a join which failed has not left there, if there is one.
fn other_file(folder: &Path) -> Result<Option<String>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        listed => listed.with_context(|| format!("cannot list {}", folder.display()))?,
    };
    let mut others = Vec::new();
    for entry in listed {
        let name = entry.with_context(|| format!("cannot list {}", folder.display()))?.file_name();
        if name != ADDRESS && name != ".lock" {
            others.push(name.display().to_string());
        }
    }
    others.sort_unstable();
    Ok(others.into_iter().next())
}

fn invite(args: &FleetInvite) -> Result<Outcome> {
    let token = with_client(&args.access, async |client| {
        Ok(client.invite(&args.name, args.role.name(), args.expires).await?)
    })?;
    say(&token)
}

fn revoke(args: &FleetRevoke) -> Result<Outcome> {
    let revoked = with_client(&args.access, async |client| Ok(client.revoke(&args.name).await?))?;
    let RevokeResponse { certificates, tokens, invited } = revoked;
    let mut text = format!("{} valid certificates of {} revoked", count(certificates), args.name);
    if tokens > 0 {
        text += &format!(", {} open tokens void", count(tokens));
    }
    if !invited.is_empty() {
        let names = invited.join(", ");
        text += &format!(
            "\nthese joined with tokens of {} and stay members; revoke each that should not: {names}",
            args.name
        );
    }
    say(&text)
}

fn members(args: &FleetMembers) -> Result<Outcome> {
    let members = with_client(&args.access, async |client| Ok(client.members().await?))?;
    let lines = |out: &mut dyn Write| members.iter().try_for_each(|member| writeln!(out, "{}", member_json(member)));
    print(args.json, lines, |out| {
        let rows = members.iter().map(|member| {
            let trip = if member.round_trip == 0 { "-".to_owned() } else { Nanos(member.round_trip).to_string() };
            let version = member.version.clone();
            [
                member.name.clone(),
                state(member.state()).to_owned(),
                count(member.records),
                count(member.shed),
                trip,
                version,
                member.source.clone(),
            ]
        });
        table(&["host", "state", "records", "shed", "round trip", "version", "source"], rows, out)?;
        members
            .iter()
            .filter(|member| !member.trouble.is_empty())
            .try_for_each(|member| writeln!(out, "{}: {}", member.name, member.trouble))?;
        members.iter().filter(|member| member.malformed > 0).try_for_each(|member| {
            let (name, lines) = (&member.name, count(member.malformed));
            writeln!(out, "{name}: {lines} lines of its alerts.jsonl are no alerts, and were not sent")
        })?;
        members.iter().flat_map(|member| member.left_out.iter().map(move |left_out| (member, left_out))).try_for_each(
            |(member, left_out)| writeln!(out, "{}: {} {}", member.name, count(left_out.count), left_out.meaning),
        )?;
        members.iter().try_for_each(|member| upload::write_state(member, out))
    })?;
    Ok(Outcome::Complete)
}

fn cut(args: &FleetCut) -> Result<Outcome> {
    let (cut, order) = with_client(&args.access, async |client| {
        if let Some(at) = args.at {
            return Ok((client.cut_at(&args.member, at, args.within.unwrap_or(ANSWER)).await?, None));
        }
        let cut = client.cut(&args.member, args.within.unwrap_or(REPLY)).await?;
        if !args.order || !cut.void.is_empty() {
            return Ok((cut, None));
        }
        // Hosts that do not say when their records are complete have them by then.
        tokio::time::sleep(std::time::Duration::from_nanos(order::SETTLE.0)).await;
        let found = violations(&cut, order::AROUND, ANSWER, async |question| client.query(question).await).await;
        let found = found.map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok((cut, Some(found)))
    })?;
    let json = |out: &mut dyn Write| {
        let mut line = cut_json(&cut);
        if let (Some(order), Some(line)) = (&order, line.as_object_mut()) {
            line.insert("order".to_owned(), order::json(order));
        }
        writeln!(out, "{line}")
    };
    print(args.json, json, |out| {
        let rows = cut.members.iter().map(|member| {
            let position = if member.state() == State::Answered { count(member.position) } else { "-".to_owned() };
            let clock = member.clock.as_ref().map_or_else(|| "-".to_owned(), clock_text);
            [member.name.clone(), state(member.state()).to_owned(), position, clock]
        });
        table(&["host", "state", "records", "clock"], rows, out)?;
        let notes = cut.members.iter().flat_map(|member| [(member, &member.lacks), (member, &member.problem)]);
        notes
            .filter(|(_, note)| !note.is_empty())
            .try_for_each(|(member, note)| writeln!(out, "{}: {note}", member.name))?;
        if let Some(at) = args.at {
            return writeln!(out, "cut by time: the records up to {}, by the clock of each host", date_text(at));
        }
        let (frozen, thawed) = (Nanos(cut.frozen_within), Nanos(cut.thawed_within));
        writeln!(out, "cut {}: all frozen after {frozen}, all thawed {thawed} later", cut.cut)?;
        order.iter().try_for_each(|order| order::write(order, out))
    })?;
    Ok(Outcome::from_damage(cut_damage(&cut)))
}

/// Why a cut is not whole.
fn cut_damage(cut: &CutResponse) -> Option<String> {
    if !cut.void.is_empty() {
        return Some(cut.void.clone());
    }
    let missing: Vec<_> = cut.members.iter().filter(|member| member.state() != State::Answered).collect();
    let names: Vec<_> = missing.iter().map(|member| format!("{} ({})", member.name, state(member.state()))).collect();
    let missing = (!names.is_empty()).then(|| format!("these hosts are not in the cut: {}", names.join(", ")));
    let lacking = cut.members.iter().filter(|member| !member.lacks.is_empty());
    let all: Vec<_> =
        missing.into_iter().chain(lacking.map(|member| format!("{}: {}", member.name, member.lacks))).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn say(text: &str) -> Result<Outcome> {
    print(false, |_| Ok(()), |out| writeln!(out, "{text}"))?;
    Ok(Outcome::Complete)
}

/// The name of a state.
fn state(state: State) -> &'static str {
    match state {
        State::Unspecified => "unknown",
        State::Answered => "here",
        State::Absent => "absent",
        State::Late => "late",
        State::Failed => "failed",
        State::OtherVersion => "other version",
        State::Shedding => "shedding",
    }
}

fn member_json(member: &Member) -> Value {
    let left_out: serde_json::Map<_, _> =
        member.left_out.iter().map(|left_out| (left_out.reason.clone(), left_out.count.into())).collect();
    json!({
        "host": member.name, "state": state(member.state()), "records": member.records, "shed": member.shed,
        "alerts_waiting": member.waiting, "alerts_malformed": member.malformed, "seen_ns": member.seen, "round_trip_ns": member.round_trip,
        "version": member.version, "source": member.source, "schema": member.schema, "left_out": left_out,
        "trouble": (!member.trouble.is_empty()).then_some(&member.trouble),
        "clock_ahead_ns": member.clock.as_ref().map(clock_json), "uploads": member.uploads.as_ref().map(upload::state_json),
    })
}

fn cut_json(cut: &CutResponse) -> Value {
    let members = cut.members.iter().map(|member| {
        let is_in = member.state() == State::Answered;
        json!({
            "host": member.name, "state": state(member.state()),
            "position": is_in.then_some(member.position), "clock_ns": is_in.then_some(member.at),
            "clock_ahead_ns": member.clock.as_ref().map(clock_json), "problem": (!member.problem.is_empty()).then_some(&member.problem),
            "lacks": (!member.lacks.is_empty()).then_some(&member.lacks),
            "folder": is_in.then(|| format!("{:016x}", member.store)), "schema": is_in.then_some(&member.schema),
        })
    });
    json!({
        "cut": (cut.cut > 0).then_some(cut.cut), "void": (!cut.void.is_empty()).then_some(&cut.void), "members": members.collect::<Vec<_>>(),
        "frozen_within_ns": cut.frozen_within, "thawed_within_ns": cut.thawed_within,
    })
}

/// Between which numbers of nanoseconds a clock is ahead of the coordinator's.
fn clock_json(clock: &ClockOffset) -> Value {
    json!([clock.least, clock.most])
}

/// Writes rows under a header: the first column to the left, numbers to the right.
fn table<const N: usize>(
    header: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<_> = rows.collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).chain([header[at].len()]).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let is_number =
        |at: usize| rows.iter().all(|row| row[at].starts_with(|first: char| first.is_ascii_digit() || first == '-'));
    let right: [bool; N] = std::array::from_fn(|at| !rows.is_empty() && is_number(at));
    let line = |cells: [&str; N], out: &mut dyn Write| {
        let mut text = String::new();
        for at in 0..N {
            let (cell, width) = (cells[at], widths[at]);
            text += &if right[at] { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(*header, out)?;
    rows.iter().try_for_each(|row| line(std::array::from_fn(|at| row[at].as_str()), out))
}
