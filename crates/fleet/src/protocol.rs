//! The messages and services of `proto/fleet.proto`.
#![allow(missing_docs, clippy::all, unused_qualifications)]

tonic::include_proto!("queuescope.fleet.v1");

/// The version of the protocol. Peers that differ by more than one are refused.
pub const PROTOCOL: u32 = 1;
