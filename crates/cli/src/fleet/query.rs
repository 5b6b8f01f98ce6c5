//! `queuescope fleet query`: asks all hosts, and merges their answers.

use super::with_client;
use crate::args::FleetQuery;
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::{Context, Result, anyhow, bail};
use queuescope_fleet::answer::{Asked, IpcLimits, Merged, write_answer};
use queuescope_fleet::protocol::QueryRequest;
use queuescope_recording::query::Form;
use queuescope_wire::Nanos;
use std::cell::RefCell;
use std::io::{self, Write};

/// What an answer may have: the coordinator has limited it already.
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 30, rows: 1 << 26 };
/// How long a new cut waits for each reply.
const CUT: Nanos = Nanos(10_000_000);

/// Runs `fleet query`.
///
/// # Errors
/// Fails if the question is wrong, or if there is no answer.
pub fn run(args: &FleetQuery) -> Result<Outcome> {
    let mut request = QueryRequest {
        expression: args.expression.clone().unwrap_or_default(),
        select: args.select.clone(),
        group: args.group.clone().unwrap_or_default(),
        top: args.top,
        from: args.from.map(|from| from.0),
        to: args.to.map(|to| to.0),
        cut: None,
        members: args.member.clone(),
        within: args.within.0 / 1_000_000,
        filter: args.filter.clone().unwrap_or_default(),
        schema: args.schema.clone().unwrap_or_default(),
        at: args.at.map(|at| at.0),
    };
    // Check the question before it is sent.
    let asked = Asked::of_request(&request).map_err(|error| anyhow!("{error}"))?;
    let number = match args.cut.as_deref() {
        None => None,
        Some("new") => Some(None),
        Some(number) => {
            Some(Some(number.parse().with_context(|| format!("--cut is a number or new, not '{number}'"))?))
        }
    };
    let answer = with_client(&args.access, async |client| {
        request.cut = match number {
            None => None,
            Some(Some(number)) => Some(number),
            Some(None) => {
                let cut = client.cut(&args.member, CUT).await?;
                if !cut.void.is_empty() {
                    bail!("{}", cut.void);
                }
                note(&format!("cut {}", cut.cut));
                Some(cut.cut)
            }
        };
        Ok(client.query(request).await?)
    })?;
    let merged = Merged::decode(&answer.rows, &asked, LIMITS).context("the coordinator's answer cannot be read")?;
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    };
    let damage = RefCell::new(None);
    let write = |out: &mut dyn Write| -> io::Result<()> {
        *damage.borrow_mut() = write_answer(&asked, &merged, &answer.members, form, out, &mut |text| note(text))?;
        Ok(())
    };
    print(args.json || args.csv, write, write)?;
    Ok(Outcome::from_damage(damage.into_inner()))
}
