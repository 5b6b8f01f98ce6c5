//! Each recipe on simulated networks, 100 seeds each: with a planted fault it raises its alert, and its queries name the flows
//! that cause it; on the same network without the fault it is silent. `QUEUESCOPE_SEEDS` sets another number of seeds.

#![allow(clippy::disallowed_methods, reason = "tests read the recipes, and the number of seeds")]

mod networks;
mod watch;

mod losses;
mod paths;
mod shares;
