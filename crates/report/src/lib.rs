//! One report, many views: text for a terminal, JSON Lines for programs, HTML for people, pcapng for Wireshark.

pub mod model;
