//! What is known of a router and of the captures on both sides of it.

use queuescope_meter::tap::{TapParams, Unseen};
use queuescope_wire::parse::Nat;
use queuescope_wire::{Nanos, Rate};
use std::path::PathBuf;

/// What is known of a router and of its captures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TapOptions {
    /// Which packets of the captures count, if an expression says so; others are as if they had not been captured.
    pub only: Option<String>,
    /// Whether the flow of a tunnelled packet is the one inside.
    pub inner: bool,
    /// Rate of the link out of the router. Where it is known and stamps are of the last bit, a packet's own time on the link is no
    /// part of its delay.
    pub rate: Option<Rate>,
    /// At which bit of a packet the captures are stamped.
    pub stamps: Stamps,
    /// The longest that a packet can be in the router.
    pub max_delay: Nanos,
    /// What the router translates.
    pub nat: Nat,
    /// Whether transport checksums are compared, too.
    pub checksums: bool,
    /// Whether all captures before the router were stamped by one clock.
    pub shared_clock: bool,
    /// What is said of packets that were not seen to come in.
    pub unseen: Unseen,
}

impl Default for TapOptions {
    /// A router that translates nothing, and captures that are stamped at the last bit, each by a clock of its own.
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

/// At which bit of a packet captures are stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// The first: a packet has come once its last bit has, at the rate of the link that it came by.
    First,
    /// The last: a packet left the queue when its first bit did, at the rate of the link out of the router.
    Last,
}

/// A capture of a link into the router.
#[derive(Debug, Clone)]
pub struct Ingress {
    /// Its file.
    pub path: PathBuf,
    /// The rate of the link, if it is known; of use where [stamps](TapOptions::stamps) are of the first bit.
    pub rate: Option<Rate>,
}
