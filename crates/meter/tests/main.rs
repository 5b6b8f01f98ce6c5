//! All integration tests of the crate, in one binary.

mod behaviour;
mod culprits;
#[path = "culprits/reference.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod culprits_reference;
mod culprits_router;
#[path = "culprits/router.rs"]
mod culprits_router_parts;
mod group;
mod group_whole;
#[path = "group/incast.rs"]
mod incast;
#[path = "group/made.rs"]
mod made;
mod monitor;
#[path = "group/random.rs"]
mod random;
#[path = "group/reference.rs"]
mod reference;
mod tap;
mod tap_nat;
