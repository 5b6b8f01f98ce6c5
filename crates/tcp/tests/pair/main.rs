//! A sender and a receiver over a link in virtual time: whatever the link does, all arrives once and in order; and known
//! sequences, by hand.

mod everything;
mod link;
mod reno;
