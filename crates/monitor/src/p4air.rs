//! P4air while an interface is watched: its time limit and lease, and what it reports.

use crate::acts::{ActingBounds, Session, exempt_flows};
use crate::error::P4airWatchError;
use queuescope_ingest::notes::noted;
use queuescope_live::{GuardCommand, P4air, P4airCounters, P4airDivision, P4airFlow, P4airGroup, P4airParams, now};
use queuescope_report::format;
use queuescope_report::model::Skipped;
use queuescope_wire::{Granularity, Nanos};

/// P4air on the watched interface.
#[derive(Debug, Clone)]
pub struct P4airOptions {
    /// Its parameters.
    pub params: P4airParams,
    /// Whether it makes queues and acts on flows; otherwise it only finds their groups.
    pub for_real: bool,
    /// Flows that are never acted on, and a time limit.
    pub bounds: ActingBounds,
    /// The command of the process that removes the queues if this one is killed.
    pub guard: GuardCommand,
}

/// P4air while it runs.
#[derive(Debug)]
pub struct P4airWatch {
    p4air: P4air,
    options: P4airOptions,
    /// When it stops acting.
    ends: Nanos,
    renewed: Nanos,
    status: P4airStatus,
    counts: Counts,
    session: Option<Session>,
}

/// How often something happened to P4air itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    over: u64,
    lapsed: u64,
    guards: u64,
}

/// What is known of P4air at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct P4airStatus {
    /// Whether there are queues, so that packets are changed.
    pub is_real: bool,
    /// Its parameters.
    pub params: P4airParams,
    /// What it counted since the beginning.
    pub counters: P4airCounters,
    /// The flows of each group, and the queues of those of long-lived flows.
    pub division: P4airDivision,
    /// Its flows that have not ended, the one with the most packets first.
    pub flows: Vec<P4airFlow>,
}

/// How long the kernel acts without a renewal, as for other actions.
const LEASE: Nanos = Nanos(2_000_000_000);
/// Flows that the view lists.
const LISTED: usize = 4;

impl P4airWatch {
    /// Attaches P4air to an interface, and makes its queues if it acts for real. `note` receives what the user should know at once.
    ///
    /// # Errors
    /// Fails if an expression of the bounds is invalid, if the interface has a qdisc that is not the default, or if the kernel refuses.
    pub fn new(interface: &str, options: &P4airOptions, note: &dyn Fn(&str)) -> Result<Self, P4airWatchError> {
        let (never, session) = exempt_flows(&options.bounds.never)?;
        if let Some(session) = &session {
            note(&format!("{session} is never acted on"));
        }
        let mut p4air = P4air::attach(interface, options.params, &never)?;
        let begun = now();
        let ends = options.bounds.act_for.map_or(Nanos::MAX, |time| begun.saturating_add(time));
        if options.for_real {
            p4air.begin(&options.guard)?;
            p4air.renew(begun.saturating_add(LEASE).min(ends))?;
        }
        let status = P4airStatus {
            is_real: p4air.is_real(),
            params: options.params,
            counters: P4airCounters::default(),
            division: p4air.division()?,
            flows: Vec::new(),
        };
        let (options, counts) = (options.clone(), Counts::default());
        Ok(Self { p4air, options, ends, renewed: begun, status, counts, session })
    }

    /// Renews the kernel's lease, or ends acting whose time is over, and reads what the kernel has counted.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn look(&mut self) -> Result<(), P4airWatchError> {
        let now = now();
        if self.p4air.is_real() && now >= self.ends {
            self.counts.over += 1;
            self.p4air.end()?;
        }
        if self.p4air.is_real() {
            self.counts.lapsed += u64::from(now >= self.renewed.saturating_add(LEASE));
            self.counts.guards += u64::from(self.p4air.renew(now.saturating_add(LEASE).min(self.ends))?);
            self.renewed = now;
        }
        self.read()
    }

    /// Reads for the last time, and removes the queues.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn end(&mut self) -> Result<(), P4airWatchError> {
        self.read()?;
        Ok(self.p4air.end()?)
    }

    /// What is known at the last `look`.
    pub fn status(&self) -> &P4airStatus {
        &self.status
    }

    fn read(&mut self) -> Result<(), P4airWatchError> {
        let mut flows = self.p4air.flows()?;
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.packets), flow.key));
        let (counters, division) = (self.p4air.counters()?, self.p4air.division()?);
        let is_real = self.p4air.is_real();
        self.status = P4airStatus { is_real, params: self.options.params, counters, division, flows };
        Ok(())
    }

    /// Notes on what it did to packets, and what a dry run would have done.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let counters = &self.status.counters;
        let Counts { over, lapsed, guards } = self.counts;
        let session = self.session.map(|session| format!("{session} is never acted on")).unwrap_or_default();
        let notes = [
            noted(
                "p4air_dropped",
                counters.dropped,
                "packets that P4air dropped: at the end of a slow start, and above a flow's share",
            ),
            noted(
                "p4air_would_drop",
                counters.would_drop,
                "packets that P4air would have dropped; --for-real drops them",
            ),
            noted(
                "p4air_delayed",
                counters.delayed,
                "packets above a flow's share that P4air put into the queue that is served last",
            ),
            noted(
                "p4air_would_delay",
                counters.would_delay,
                "packets that P4air would have delayed; --for-real delays them",
            ),
            noted("p4air_lowered", counters.lowered, "ACKs whose receive window P4air lowered"),
            noted(
                "p4air_would_lower",
                counters.would_lower,
                "ACKs whose receive window P4air would have lowered; --for-real does so",
            ),
            noted(
                "p4air_exempt",
                counters.exempt,
                "packets of flows that are never acted on (--never, or your SSH session), let through",
            ),
            noted(
                "p4air_unscaled",
                counters.unscaled,
                "ACKs whose receive window was left alone, because the handshake with its scale was not seen",
            ),
            noted(
                "p4air_no_room",
                counters.full,
                "times that P4air had no room for a flow, whose packets passed with the ants",
            ),
            noted(
                "p4air_other",
                counters.other,
                "packets that P4air passed with the ants: not TCP or UDP, fragments, or with extension headers or VLAN tags",
            ),
            noted("p4air_bulk", counters.bulk, "times that more packets left at once than P4air looks at"),
            noted(
                "p4air_over",
                over,
                "times that --act-for ended P4air; the interface had its default queue from then on",
            ),
            noted(
                "p4air_lapsed",
                lapsed,
                "times that the kernel stopped P4air because this process did not run for 2 s",
            ),
            noted(
                "p4air_guards",
                guards,
                "times that the process that removes the queues after a crash had ended and was started again",
            ),
            noted("ssh_session", self.session.is_some().into(), &session),
        ];
        notes.into_iter().flatten()
    }
}

impl P4airStatus {
    /// The status as lines of a view: a heading, and the text beside it.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { is_real, params, counters, division, flows } = self;
        let mode = if *is_real { "for real" } else { "dry run" };
        let count = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", format::count(count)));
        let outcomes = [
            count(counters.dropped, "dropped"),
            count(counters.would_drop, "would drop"),
            count(counters.delayed, "delayed"),
            count(counters.would_delay, "would delay"),
            count(counters.lowered, "windows lowered"),
            count(counters.would_lower, "windows would be lowered"),
            count(counters.exempt, "exempt"),
        ];
        let head = format!("{mode}  {} in {} queues", params.rate, params.queues);
        let head = [Some(head)].into_iter().chain(outcomes).flatten().collect::<Vec<_>>().join("  ");
        let groups = P4airGroup::ALL.map(|group| {
            let (flows, queues) = (division.flows(group), division.queues(group).len());
            if queues == 0 {
                format!("{flows} {}", group.name())
            } else {
                format!("{flows} {} ({queues})", group.name())
            }
        });
        let moves =
            P4airGroup::LONG_LIVED.iter().zip(counters.moves).map(|(group, count)| format!("{count} {}", group.name()));
        let moves = moves.chain([format!("{} queues", division.given)]).collect::<Vec<_>>().join("  ");
        let mut lines = vec![("P4air", head), ("groups", groups.join("  ")), ("moves to", moves)];
        let long_lived = flows.iter().filter(|flow| P4airGroup::LONG_LIVED.contains(&flow.group));
        lines.extend(long_lived.take(LISTED).map(|flow| ("", flow_line(flow))));
        lines
    }
}

/// A flow in words.
fn flow_line(flow: &P4airFlow) -> String {
    let queue = flow.queue.map_or_else(|| "no queue yet".to_owned(), |queue| format!("queue {queue}"));
    let rtt = flow.rtt.map_or_else(|| "-".to_owned(), |rtt| rtt.to_string());
    format!(
        "{}  {queue}  {}  RTT {rtt}  {} packets  acted on {}",
        flow.group.name(),
        Granularity::FiveTuple.name(&flow.key),
        format::count(flow.packets),
        format::count(flow.acted)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::Rate;

    #[test]
    fn a_status_has_its_mode_its_groups_and_its_flows() {
        let params = P4airParams::new(Rate::from_bits_per_second(100_000_000).unwrap());
        let counters = P4airCounters { would_drop: 3, moves: [2, 1, 0, 0], ..P4airCounters::default() };
        let division = P4airDivision::default();
        let status = P4airStatus { is_real: false, params, counters, division, flows: Vec::new() };
        let lines = status.lines();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].1.starts_with("dry run") && lines[0].1.ends_with("32 queues  3 would drop"), "{lines:?}");
        assert!(lines[1].1.starts_with("0 ant  0 mouse  0 delay-based"), "{lines:?}");
        assert_eq!(lines[2].1, "2 delay-based  1 loss-delay  0 loss-based  0 model-based  0 queues");
    }
}
