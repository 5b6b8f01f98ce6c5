//! `queuescope fleet why` and `queuescope why --fleet`: who delayed a packet, a flow, or the packets of a time, at each queue.

use super::with_client;
use crate::args::{FleetAccess, FleetWhy, PacketName, Why};
use crate::outcome::{Outcome, print};
use anyhow::{Context, Result, anyhow, bail};
use queuescope_fleet::journey::{
    JourneyRequest, PacketChoice, PacketIdentity, WaitsRequest, WhenAsked, journey, waits, write_journey, write_waits,
};
use queuescope_log::date_text;
use queuescope_wire::Nanos;
use std::io::Write;
use std::path::Path;

/// How long after or before its time in a capture hosts may have seen a packet.
const APART: Nanos = Nanos(60_000_000_000);

/// Runs `fleet why`.
///
/// # Errors
/// Fails if the expression is wrong, if no packet matches, or if no host records a queue.
pub fn run(args: &FleetWhy) -> Result<Outcome> {
    let asked = AskedWay {
        packet: args.packet.as_ref(),
        capture: args.capture.as_deref(),
        flow: args.flow.as_deref(),
        at: args.at,
        expression: args.expression.as_deref(),
        span: (args.from, args.to),
        flows: args.flows,
        within: args.within,
        json: args.json,
    };
    asked.run(&args.access)
}

/// Runs `why --fleet`.
///
/// # Errors
/// As `run`; also if the packet is not in the file.
pub fn why(args: &Why, coordinator: &str, credentials: &Path) -> Result<Outcome> {
    let at = args.at.as_ref().map(|asked| asked.text.parse::<WhenAsked>()).transpose();
    if let (Some(file), None) = (&args.input.file, &args.packet) {
        bail!(
            "with --fleet, {} only names a packet: choose one with --packet NUMBER, or leave the file out",
            file.display()
        );
    }
    let asked = AskedWay {
        packet: args.packet.as_ref(),
        capture: args.input.file.as_deref(),
        flow: args.flow.as_deref(),
        at: at.context("cannot use --at")?,
        expression: args.focus.victims.as_deref(),
        span: (None, None),
        flows: FLOWS,
        within: WITHIN,
        json: args.json,
    };
    asked.run(&FleetAccess { credentials: credentials.to_owned(), coordinator: Some(coordinator.to_owned()) })
}

/// The defaults of `fleet why`.
const FLOWS: usize = 5;
const WITHIN: Nanos = Nanos(5_000_000_000);

/// A question about the past of all queues.
struct AskedWay<'a> {
    packet: Option<&'a PacketName>,
    capture: Option<&'a Path>,
    flow: Option<&'a str>,
    at: Option<WhenAsked>,
    expression: Option<&'a str>,
    span: (Option<Nanos>, Option<Nanos>),
    flows: usize,
    within: Nanos,
    json: bool,
}

impl AskedWay<'_> {
    fn run(&self, access: &FleetAccess) -> Result<Outcome> {
        match (self.packet, self.flow, self.at) {
            (Some(packet), ..) => self.of_packet(packet, access),
            (None, Some(flow), Some(WhenAsked::Moment(at))) => {
                let packet = PacketChoice::OfFlow { flow: flow.to_owned(), at };
                self.way(&JourneyRequest { packet, ..self.request() }, access)
            }
            (None, None, None) => self.way(&self.request(), access),
            (None, ..) => self.waits(access),
        }
    }

    /// The question about a packet, in each of its forms.
    fn request(&self) -> JourneyRequest {
        JourneyRequest {
            packet: PacketChoice::default(),
            expression: self.expression.unwrap_or_default().to_owned(),
            from: self.span.0.map(|from| from.0),
            to: self.span.1.map(|to| to.0),
            flows: self.flows,
            within: self.within,
        }
    }

    fn of_packet(&self, packet: &PacketName, access: &FleetAccess) -> Result<Outcome> {
        let mut request = self.request();
        match (packet, self.capture) {
            (PacketName::Digest(digest), None) => {
                request.packet = PacketChoice::Digest(digest.parse().map_err(|why: String| anyhow!(why))?);
            }
            (PacketName::Number(number), Some(file)) => {
                let (identity, time) = PacketIdentity::in_capture(file, *number)?;
                if let (Some(time), (None, None)) = (time, self.span) {
                    request.from = Some(time.saturating_sub(APART).0);
                    request.to = Some(time.saturating_add(APART).0);
                }
                request.packet = PacketChoice::Identity(identity);
            }
            (PacketName::Number(number), None) => {
                bail!(
                    "--packet {number} is a number in a capture: name the file (queuescope fleet why --packet {number} --capture FILE, or queuescope why FILE --packet {number} \
                     --fleet HOST:PORT), or give the digest of 16 hexadecimal digits that an earlier answer printed"
                )
            }
            (PacketName::Digest(digest), Some(file)) => {
                bail!(
                    "--packet {digest} is a digest, which needs no file: leave {} out, or give a number in it",
                    file.display()
                )
            }
        }
        self.way(&request, access)
    }

    /// The way of one packet.
    fn way(&self, request: &JourneyRequest, access: &FleetAccess) -> Result<Outcome> {
        let journey = with_client(access, async |client| {
            let members = client.members().await?;
            let found = journey(request, &members, async |question| client.query(question).await).await;
            found.map_err(|error| anyhow!("{error}"))
        })?;
        let write = |is_json: bool| {
            let journey = &journey;
            move |out: &mut dyn Write| write_journey(journey, is_json, out)
        };
        print(self.json, write(true), write(false))?;
        Ok(missing(&journey.missing))
    }

    /// Why packets waited in each queue.
    fn waits(&self, access: &FleetAccess) -> Result<Outcome> {
        let at = match (self.at, self.span) {
            (Some(at), _) => Some(at),
            (None, (None, None)) => None,
            (None, (from, to)) => {
                let (from, to) = (from.unwrap_or(Nanos::ZERO), to.unwrap_or(Nanos::MAX));
                if from >= to {
                    bail!("--from {} --to {} is an empty range of time", date_text(from), date_text(to));
                }
                Some(WhenAsked::Range(from, to))
            }
        };
        let request = WaitsRequest {
            flow: self.flow.map(str::to_owned),
            expression: self.expression.unwrap_or_default().to_owned(),
            at,
            flows: self.flows,
            within: self.within,
        };
        let found = with_client(access, async |client| {
            let members = client.members().await?;
            let found = waits(&request, &members, async |question| client.query(question).await).await;
            found.map_err(|error| anyhow!("{error}"))
        })?;
        let write = |is_json: bool| {
            let found = &found;
            move |out: &mut dyn Write| write_waits(found, is_json, out)
        };
        print(self.json, write(true), write(false))?;
        Ok(missing(&found.missing))
    }
}

fn missing(hosts: &[String]) -> Outcome {
    Outcome::from_damage((!hosts.is_empty()).then(|| format!("without {}", hosts.join(", "))))
}
