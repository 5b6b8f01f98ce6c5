//! Notes of a report: what was remarkable, how often, and what was done about it.

use queuescope_pcap::CaptureReader;
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::parse::Parser;

/// Something remarkable, if it happened.
pub fn noted(reason: &str, count: u64, meaning: &str) -> Option<Skipped> {
    (count > 0).then(|| Skipped { reason: reason.to_owned(), count, meaning: meaning.to_owned() })
}

/// What was remarkable in a file.
pub fn file_notes(reader: &CaptureReader) -> impl Iterator<Item = Skipped> + use<> {
    let read = reader.stats();
    let zeros = format!(
        "places where zeros stand in place of packets, the first at byte {} ({} bytes in all); skipped, what stood there is lost",
        read.first_hole.unwrap_or_default(),
        count(read.skipped_bytes)
    );
    let notes = [
        ("zeros", read.holes, &*zeros),
        ("untimed", read.untimed, "packets without a time; taken to come with the packet before them"),
        (
            "time_out_of_range",
            read.time_out_of_range,
            "packets with an impossible time; taken to come with the packet before them",
        ),
        (
            "captured_over_original",
            read.captured_over_original,
            "packets of which more was captured than the wire carried, says the file",
        ),
        ("custom_blocks", read.custom_blocks, "custom blocks, whose content only their maker knows; skipped"),
        ("unknown_blocks", read.unknown_blocks, "blocks of the capture file of an unknown type; skipped"),
    ];
    let notes = notes.map(|(reason, count, meaning)| noted(reason, count, meaning));
    notes.into_iter().flatten()
}

/// What was remarkable in its packets' headers.
pub fn parser_notes(parser: &Parser) -> impl Iterator<Item = Skipped> {
    let parsed = parser.stats().iter().filter(|(name, ..)| *name != "frames");
    parsed.filter_map(|(reason, count, meaning)| noted(reason, count, meaning))
}

/// Rows whose flow's name does not say who it is, for the report.
pub fn unnamed(rows: u64) -> Option<Skipped> {
    noted(
        "unnamed_flows",
        rows,
        "rows whose flow is not named as queuescope names flows: to the expression its addresses, ports and protocol are 0",
    )
}
