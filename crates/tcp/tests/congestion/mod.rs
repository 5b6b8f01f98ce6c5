//! Congestion controls compared with closed forms, on two plain models of a path: round trips of ACKs that a test
//! spaces, and one flow through one link, packet by packet.

mod bbr;
mod bbr3;
mod bic;
mod cubic;
mod dctcp;
mod golden;
mod hstcp;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod link;
mod lola;
mod names;
mod new_reno;
mod ns3;
mod prague;
mod properties;
mod rounds;
mod scalable;
mod vegas;
mod veno;
mod westwood;
mod yeah;

/// Bytes of data in a segment, in all these tests.
const MSS: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;

/// Converts bytes to segments.
fn segments(bytes: u64) -> f64 {
    bytes as f64 / MSS as f64
}
