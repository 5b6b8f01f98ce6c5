//! A sender and a receiver over a link in virtual time. Whatever the link does, all data arrives once and in order; and
//! known sequences, by hand.

mod acks;
mod everything;
mod link;
mod losses;
mod marks;
mod ns3;
mod reno;
mod timers;
mod windows;
