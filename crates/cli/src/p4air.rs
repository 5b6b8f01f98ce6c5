//! P4air of `live`: its lines of JSON and of text, and the process that removes its queues if `live` is killed.

use crate::outcome::Outcome;
use anyhow::{Context, Result};
use queuescope_ingest::Stop;
use queuescope_live::P4airGroup;
use queuescope_monitor::P4airStatus;
use queuescope_report::model::{P4air, P4airFlow, P4airGroup as Group};
use queuescope_wire::{Granularity, Nanos};
use std::io::{self, Write};

/// The most flows in a line.
const FLOWS: usize = 64;

/// Waits until the process that started it ends, and removes the queues that it has left.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn guard() -> Result<Outcome> {
    // Signals that end a session must not end this process, which is needed then.
    let _stop = Stop::on_signals()?;
    queuescope_live::guard().context("cannot remove the queues of P4air")?;
    Ok(Outcome::Complete)
}

/// The status as a part of the report.
pub fn report(status: &P4airStatus, at: Nanos) -> P4air {
    let P4airStatus { is_real, params, counters, division, flows } = status;
    let group = |group: &P4airGroup| {
        let kind = P4airGroup::LONG_LIVED.iter().position(|one| one == group);
        let queues = kind.map(|_| division.queues(*group).len() as u32);
        let counted = Group { flows: division.flows(*group), queues, moves: kind.map(|kind| counters.moves[kind]) };
        (group.name().to_owned(), counted)
    };
    let long_lived = flows.iter().filter(|flow| P4airGroup::LONG_LIVED.contains(&flow.group));
    let flow = |flow: &queuescope_live::P4airFlow| P4airFlow {
        flow: Granularity::FiveTuple.name(&flow.key),
        group: flow.group.name().to_owned(),
        queue: flow.queue,
        rtt_ns: flow.rtt.map(|rtt| rtt.0),
        packets: flow.packets,
        acted: flow.acted,
    };
    P4air {
        time_ns: at.0,
        for_real: *is_real,
        rate_bps: params.rate.bits_per_second(),
        queues: params.queues,
        groups: P4airGroup::ALL.iter().map(group).collect(),
        queues_moved: division.given,
        acted: counters
            .outcomes()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        flows: long_lived.take(FLOWS).map(flow).collect(),
    }
}

/// Writes the status as text, below the report.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_text(status: &P4airStatus, mut out: impl Write) -> io::Result<()> {
    writeln!(out)?;
    for (heading, text) in status.lines() {
        writeln!(out, "{heading:<9} {text}")?;
    }
    Ok(())
}
