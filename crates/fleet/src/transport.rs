//! TLS connections under gRPC.

mod client;
mod first_byte;
mod server;

pub use client::{ConnectError, Link, connect};
pub use server::{Connection, Listening, Peer, incoming};
