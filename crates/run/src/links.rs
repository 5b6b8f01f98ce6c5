//! Finds the link of a simulation that the figures are about.

use crate::error::Error;
use queuescope_sim::{LinkId, Simulation};

/// The link whose queue is analysed, and its name: the one named `wanted`, or else the first of the scenario's `meters`.
///
/// # Errors
/// Fails if the scenario has no meters, or no link is named `wanted`.
pub fn metered_link(
    wanted: Option<&str>,
    simulation: &Simulation,
    meters: &[LinkId],
) -> Result<(LinkId, String), Error> {
    let named = |link: LinkId| (link, simulation.topology().link(link).name.clone());
    let Some(wanted) = wanted else {
        return meters.first().map(|link| named(*link)).ok_or(Error::NoLinks);
    };
    let mut links = simulation.topology().links().map(named);
    links.find(|(_, name)| name == wanted).ok_or_else(|| Error::NoLink {
        wanted: wanted.to_owned(),
        known: simulation.measured().map(|link| named(link).1).collect(),
    })
}

/// Checks that a simulation has room for more packets. A full simulation stops.
///
/// # Errors
/// Fails if the simulation is full.
pub fn check_room(simulation: &Simulation) -> Result<(), Error> {
    if simulation.is_full() { Err(Error::Full { packets: simulation.on_their_way() }) } else { Ok(()) }
}
