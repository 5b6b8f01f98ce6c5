//! Notes of a report: what happened, how often, and what was done about it.

use queuescope_pcap::CaptureReader;
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::parse::Parser;

/// A note, if `count` is above 0. `reason` identifies the kind of the note; `meaning` explains it to people.
pub fn noted(reason: &str, count: u64, meaning: &str) -> Option<Skipped> {
    (count > 0).then(|| Skipped { reason: reason.to_owned(), count, meaning: meaning.to_owned() })
}

/// Notes on a capture file.
pub fn file_notes(reader: &CaptureReader) -> impl Iterator<Item = Skipped> + use<> {
    let read = reader.stats();
    let zeros = format!(
        "places that contain zeros instead of packets, the first at byte {} ({} bytes in all); skipped, the packets there are lost",
        read.first_hole.unwrap_or_default(),
        count(read.skipped_bytes)
    );
    let steps = format!(
        "places where the capture's clock was set back by more than 1 s (by up to {}); the times behind are moved to continue after the packet before",
        read.largest_clock_step
    );
    let has_no_times = read.packets > 0 && read.untimed + read.time_out_of_range == read.packets;
    let notes = [
        (
            "no_times",
            if has_no_times { read.packets } else { 0 },
            "packets, and none has a timestamp: all count as arriving together, so delays, bursts and drops are wrong",
        ),
        ("clock_steps", read.clock_steps, &*steps),
        (
            "time_outliers",
            read.time_outliers,
            "packets with a timestamp more than 1 s from those before and behind; treated as arriving with the packet before them",
        ),
        ("zeros", read.holes, &*zeros),
        ("untimed", read.untimed, "packets without a timestamp; treated as arriving with the packet before them"),
        (
            "time_out_of_range",
            read.time_out_of_range,
            "packets with an impossible timestamp; treated as arriving with the packet before them",
        ),
        (
            "captured_over_original",
            read.captured_over_original,
            "packets with more captured bytes than their length on the wire, according to the file",
        ),
        ("custom_blocks", read.custom_blocks, "custom blocks, in a format that only their maker knows; skipped"),
        ("unknown_blocks", read.unknown_blocks, "blocks of the capture file of an unknown type; skipped"),
    ];
    let notes = notes.map(|(reason, count, meaning)| noted(reason, count, meaning));
    notes.into_iter().flatten()
}

/// Notes on the headers of its packets.
pub fn parser_notes(parser: &Parser) -> impl Iterator<Item = Skipped> {
    let parsed = parser.stats().iter().filter(|(name, ..)| *name != "frames");
    parsed.filter_map(|(reason, count, meaning)| noted(reason, count, meaning))
}

/// A note on rows whose flow name cannot be parsed as a flow key.
pub fn unnamed(rows: u64) -> Option<Skipped> {
    noted(
        "unnamed_flows",
        rows,
        "rows whose flow is not named as queuescope names flows: the expression sees its addresses, ports and protocol as 0",
    )
}
