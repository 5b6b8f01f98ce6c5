//! TEMP
use crate::args::FleetQuery;
use crate::outcome::Outcome;
use anyhow::Result;

pub fn run(_args: &FleetQuery) -> Result<Outcome> {
    anyhow::bail!("not yet")
}
