//! Options for captures on both sides of a router.

use queuescope_meter::tap::{TapParams, Unseen};
use queuescope_wire::parse::Nat;
use queuescope_wire::{Nanos, Rate};
use std::path::PathBuf;

/// What is known about a router and its captures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TapOptions {
    /// An expression: packets that do not match it are ignored in all captures. All count if it is `None`.
    pub only: Option<String>,
    /// Whether the flow of a tunnelled packet is that of the inner packet.
    pub inner: bool,
    /// Rate of the link out of the router. If it is given, and timestamps are of the last bit, the transmission time of a
    /// packet is subtracted from its delay.
    pub rate: Option<Rate>,
    /// The bit of a packet at which captures take its timestamp.
    pub stamps: Stamps,
    /// Longest time that a packet can be in the router.
    pub max_delay: Nanos,
    /// What the router changes in packets.
    pub nat: Nat,
    /// Whether transport checksums are compared too.
    pub checksums: bool,
    /// Whether the timestamps of all captures before the router are from one clock.
    pub shared_clock: bool,
    /// How to treat packets that were not captured on their way in.
    pub unseen: Unseen,
}

impl Default for TapOptions {
    /// A router without NAT, and captures with timestamps of the last bit, each from its own clock.
    fn default() -> Self {
        let TapParams { max_delay, shared_clock, unseen, .. } = TapParams::default();
        Self {
            only: None,
            inner: false,
            rate: None,
            stamps: Stamps::Last,
            max_delay,
            nat: Nat::None,
            checksums: false,
            shared_clock,
            unseen,
        }
    }
}

/// The bit of a packet at which captures take its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// The first bit. A packet has arrived when its last bit has, at the rate of its ingress link.
    First,
    /// The last bit. A packet left the queue when its first bit did, at the rate of the link out of the router.
    Last,
}

/// A capture of a link into the router.
#[derive(Debug, Clone)]
pub struct Ingress {
    /// The capture file.
    pub path: PathBuf,
    /// The rate of the link, if it is known. Only used if [timestamps](TapOptions::stamps) are of the first bit.
    pub rate: Option<Rate>,
}
