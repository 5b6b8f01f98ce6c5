//! Tests of sinks with receivers on loopback.

mod delivery;
mod requests;
mod running;
mod server;
mod sockets;
