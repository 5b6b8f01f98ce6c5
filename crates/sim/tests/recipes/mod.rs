//! Each recipe on simulated networks, 100 seeds each: with a planted fault it raises its alert and its questions name who
//! is to blame; on the same network without the fault it is silent. `QUEUESCOPE_SEEDS` sets another number.

#![allow(clippy::disallowed_methods, reason = "tests read the recipes, and how many seeds are wanted")]

mod networks;
mod watch;

mod losses;
mod paths;
mod shares;
