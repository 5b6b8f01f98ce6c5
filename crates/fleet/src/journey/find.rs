//! Finds the packet that a question is about.

use super::ask::{Asking, Question, whole};
use super::visit::{IDENTITY, packet_text};
use super::{APART, JourneyError, JourneyRequest, PacketChoice, PacketDigest};
use crate::protocol::{QueryRequest, QueryResponse};
use queuescope_log::{Group, Number, date_text};
use queuescope_report::format::count;
use queuescope_wire::Nanos;

/// Packets with long waits of each host from which the worst is chosen.
const WORST: u64 = 100;
/// The most packets of a host whose digests are compared.
const MOST: u64 = 200_000;
/// The next packet of a flow is looked for in this time, ns, and then in 16 times that, and so on.
const NEXT: u64 = 1_000_000;

impl Asking {
    /// The identity of the packet that is wanted.
    ///
    /// # Errors
    /// Fails if there is none, or if a call fails.
    pub async fn find<E>(
        &mut self,
        hosts: &[&str],
        request: &JourneyRequest,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Vec<u128>, JourneyError<E>> {
        let found = match &request.packet {
            PacketChoice::Identity(identity) => return Ok(identity.0.clone()),
            PacketChoice::LongestWait => self.longest(hosts, request, ask).await?,
            PacketChoice::Digest(digest) => self.of_digest(hosts, request, *digest, ask).await?,
            PacketChoice::OfFlow { flow, at } => self.of_flow(hosts, request, (flow, *at), ask).await?,
        };
        match found {
            Some(found) => Ok(found),
            None => Err(self.not_found(hosts, request, ask).await?),
        }
    }

    /// The error that the packet is not found: what was looked for, and what hosts have.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub async fn not_found<E>(
        &mut self,
        hosts: &[&str],
        request: &JourneyRequest,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<JourneyError<E>, JourneyError<E>> {
        let what = match &request.packet {
            PacketChoice::LongestWait => "matches".to_owned(),
            PacketChoice::Identity(identity) => format!("is the one with {}", packet_text(&identity.0)),
            PacketChoice::Digest(digest) => format!("has the digest {digest}"),
            PacketChoice::OfFlow { flow, at } => {
                format!("is of {flow} and left one at {} or in the minute after it", date_text(*at))
            }
        };
        let when = match (request.from, request.to) {
            (Some(from), Some(to)) => format!(" from {} to {}", date_text(Nanos(from)), date_text(Nanos(to))),
            (Some(from), None) => format!(" from {} on", date_text(Nanos(from))),
            (None, Some(to)) => format!(" before {}", date_text(Nanos(to))),
            (None, None) => String::new(),
        };
        let reach = self.reach(hosts, ask).await?;
        Ok(JourneyError::NotFound { what: what + &when, reach, missing: self.missing.iter().cloned().collect() })
    }

    /// How many packets each host has, and from when to when, as text.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub async fn reach<E>(
        &mut self,
        hosts: &[&str],
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Vec<String>, JourneyError<E>> {
        let mut reach = Vec::new();
        for host in hosts {
            let question = Question {
                select: "count,min(dequeued),max(dequeued)".to_owned(),
                group: "times".to_owned(),
                top: 2,
                ..Question::default()
            };
            let rows = self.rows(host, question, ask).await?;
            let value = |at: usize| rows.groups.iter().map(move |(_, values)| whole(values.get(at)));
            reach.push(match (value(1).min(), value(2).max()) {
                (Some(first), Some(last)) => format!(
                    "{host} ({} packets, {} to {})",
                    count(value(0).sum()),
                    date_text(Nanos(first)),
                    date_text(Nanos(last))
                ),
                _ => format!("{host} (no packets yet)"),
            });
        }
        Ok(reach)
    }

    /// The packet that waited longest in one queue.
    async fn longest<E>(
        &mut self,
        hosts: &[&str],
        request: &JourneyRequest,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Option<Vec<u128>>, JourneyError<E>> {
        let mut worst: Option<(Number, Group)> = None;
        for host in hosts {
            let question = Question {
                expression: request.expression.clone(),
                select: "max(delay)".to_owned(),
                group: IDENTITY.join(","),
                top: WORST,
                span: (request.from, request.to),
            };
            for (keys, values) in self.rows(host, question, ask).await?.groups {
                let wait = values.first().copied().unwrap_or(Number::Unsigned(0));
                if worst.as_ref().is_none_or(|(longest, _)| wait.compare(*longest).is_gt()) {
                    worst = Some((wait, (keys, values)));
                }
            }
        }
        Ok(worst.map(|(_, (identity, _))| identity))
    }

    /// The packet with a digest. Hosts know no digests, so the identities of all packets of the time are compared.
    async fn of_digest<E>(
        &mut self,
        hosts: &[&str],
        request: &JourneyRequest,
        digest: PacketDigest,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Option<Vec<u128>>, JourneyError<E>> {
        let mut too_many = Vec::new();
        for host in hosts {
            let question = Question {
                expression: request.expression.clone(),
                select: "count".to_owned(),
                group: IDENTITY.join(","),
                top: MOST,
                span: (request.from, request.to),
            };
            let rows = self.rows(host, question, ask).await?;
            if let Some((identity, _)) = rows.groups.iter().find(|(keys, _)| PacketDigest::of(keys) == digest) {
                return Ok(Some(identity.clone()));
            }
            if rows.left_out > 0 || rows.groups.len() as u64 == MOST {
                too_many.push((*host).to_owned());
            }
        }
        if too_many.is_empty() { Ok(None) } else { Err(JourneyError::TooMany { digest, hosts: too_many }) }
    }

    /// The packet of a flow that was in a queue at a time, or else the next that left one.
    async fn of_flow<E>(
        &mut self,
        hosts: &[&str],
        request: &JourneyRequest,
        (flow, at): (&str, Nanos),
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Option<Vec<u128>>, JourneyError<E>> {
        let (_, mut expression) = self.flow(hosts, flow, (Some(at.0), Some(at.0.saturating_add(APART))), ask).await?;
        if !request.expression.trim().is_empty() {
            expression = format!("({expression}) and ({})", request.expression);
        }
        let mut first: Option<(u64, Vec<u128>)> = None;
        for host in hosts {
            let mut stretch = NEXT;
            loop {
                let question = Question {
                    expression: expression.clone(),
                    select: "min(dequeued)".to_owned(),
                    group: IDENTITY.join(","),
                    top: MOST,
                    span: (Some(at.0), Some(at.0.saturating_add(stretch.min(APART)))),
                };
                let rows = self.rows(host, question, ask).await?;
                let times = rows.groups.iter().map(|(keys, values)| (whole(values.first()), keys));
                if let Some((time, keys)) = times.min() {
                    if first.as_ref().is_none_or(|(earliest, _)| time < *earliest) {
                        first = Some((time, keys.clone()));
                    }
                    break;
                }
                if stretch >= APART {
                    break;
                }
                stretch = stretch.saturating_mul(16);
            }
        }
        Ok(first.map(|(_, identity)| identity))
    }
}
