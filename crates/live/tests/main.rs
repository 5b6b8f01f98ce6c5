//! All integration tests of the crate, in one binary.

mod act;
mod capture;
mod common;
mod controls;
mod controls_model;
mod doctor;
mod drops;
mod empty;
mod ethernet;
mod hostile;
mod killed;
mod named;
mod owners;
mod p4air;
mod probe;
mod qdisc;
mod source;
mod traffic;
mod verdicts;
