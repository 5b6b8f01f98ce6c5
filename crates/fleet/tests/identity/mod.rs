//! Identities: real handshakes, and files that several threads and processes use.

mod common;
mod first_contact;
mod handshakes;
mod killed;
mod members;
mod renewal;
mod tokens;
