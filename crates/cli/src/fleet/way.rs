//! `queuescope fleet why`: who delayed a packet, at each queue on its way.

use super::with_client;
use crate::args::FleetWhy;
use crate::outcome::{Outcome, print};
use anyhow::{Result, anyhow};
use queuescope_fleet::journey::{JourneyRequest, journey, write_journey};
use std::io::Write;

/// Runs `fleet why`.
///
/// # Errors
/// Fails if the expression is wrong, if no packet matches, or if no host records a queue.
pub fn run(args: &FleetWhy) -> Result<Outcome> {
    let request = JourneyRequest {
        expression: args.expression.clone().unwrap_or_default(),
        from: args.from.map(|from| from.0),
        to: args.to.map(|to| to.0),
        flows: args.flows,
        within: args.within,
    };
    let journey = with_client(&args.access, async |client| {
        let members = client.members().await?;
        let found = journey(&request, &members, async |question| client.query(question).await).await;
        found.map_err(|error| anyhow!("{error}"))
    })?;
    let write = |is_json: bool| {
        let journey = &journey;
        move |out: &mut dyn Write| write_journey(journey, is_json, out)
    };
    print(args.json, write(true), write(false))?;
    let missing = (!journey.missing.is_empty()).then(|| format!("without {}", journey.missing.join(", ")));
    Ok(Outcome::from_damage(missing))
}
