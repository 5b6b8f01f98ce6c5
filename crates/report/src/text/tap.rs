//! A router between captures, as text.

use super::{DIM, HOT, field, plain};
use crate::format::{bytes, count, duration, percent};
use crate::model::{Tap, TapClock, TapLost};
use std::io::{self, Write};

/// The most flows with lost packets that are listed.
const MOST_LOST: usize = 3;

/// Writes the captures, their clocks, and the outcomes of packets.
pub fn write(tap: &Tap, out: &mut impl Write) -> io::Result<()> {
    for link in &tap.ingress {
        field(
            out,
            "in",
            &format!(
                "{}: {} packets, {} came out, {} lost",
                plain(&link.name),
                count(link.packets),
                count(link.matched),
                count(link.lost)
            ),
        )?;
        match &link.clock {
            Some(clock) => field(out, "clock", &clock_line(clock))?,
            None => field(
                out,
                "clock",
                &format!("{HOT}unknown{HOT:#}: left out, because none of its packets were matched"),
            )?,
        }
    }
    field(out, "out", &format!("{}: {} packets", plain(&tap.egress), count(tap.egress_packets)))?;
    let fates: Vec<_> = fates(tap).map(|(packets, what)| format!("{} {what}", count(packets))).collect();
    field(out, "fates", &fates.join(", "))?;
    let mut heading = "lost";
    for TapLost { flow, packets, bytes: size } in tap.lost.iter().take(MOST_LOST) {
        field(out, heading, &format!("{:>9}  {:>9}  {}", count(*packets), bytes(*size), plain(flow)))?;
        heading = "";
    }
    if tap.lost.len() > MOST_LOST {
        field(out, "", &format!("{DIM}and of other flows{DIM:#}"))?;
    }
    Ok(())
}

/// The outcomes of packets, without those that are zero.
fn fates(tap: &Tap) -> impl Iterator<Item = (u64, &'static str)> {
    let packets = |names: &[&str]| {
        tap.counts.iter().filter(|count| names.contains(&count.name.as_str())).map(|count| count.packets).sum::<u64>()
    };
    let fates = [
        (packets(&["matched"]), "matched"),
        (packets(&["lost"]), "lost in the router"),
        (packets(&["routed_elsewhere"]), "routed elsewhere"),
        (packets(&["untapped"]), "from elsewhere"),
        (packets(&["missed_arrival"]), "missed on their way in"),
        (packets(&["reverse"]), "the other way"),
        (packets(&["ingress_copies", "egress_copies"]), "copies"),
        (packets(&["retransmissions"]), "retransmissions"),
        (packets(&["ingress_outside", "egress_outside"]), "while not all captures ran"),
        (packets(&["ingress_no_fingerprint", "egress_no_fingerprint"]), "not comparable"),
        (packets(&["ingress_evicted"]), "removed from the table too early"),
    ];
    fates.into_iter().enumerate().filter(|(place, (packets, _))| *place == 0 || *packets > 0).map(|(_, fate)| fate)
}

fn clock_line(clock: &TapClock) -> String {
    let ahead = if clock.offset_ns < 0 { "behind" } else { "ahead" };
    let offset = precise(clock.offset_ns.unsigned_abs());
    let drift = match (clock.drift_ppm, clock.drift_error_ppm) {
        (Some(drift), error) => {
            let error = error.map_or(String::new(), |error| format!(" ± {}", small(error)));
            format!("{drift:+.3}{error} ppm")
        }
        (None, _) => "drift unknown, assumed to be zero".to_owned(),
    };
    let share = clock.intervals_supporting as f64 / clock.intervals.max(1) as f64;
    let transit = clock.transit_at_most_ns.map_or(String::new(), |transit| {
        format!("; the shortest time through the router, from which delays count, is at most {}", duration(transit))
    });
    format!(
        "of the egress {offset} {ahead}, {drift}; within {} in {} of {} stretches ({}){transit}",
        duration(clock.within_ns),
        count(clock.intervals_supporting),
        count(clock.intervals),
        percent(share)
    )
}

/// A time to the nanosecond.
fn precise(nanos: u64) -> String {
    format!("{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A small number with two significant digits.
fn small(number: f64) -> String {
    if number >= 0.01 { format!("{number:.2}") } else { format!("{number:.0e}") }
}
