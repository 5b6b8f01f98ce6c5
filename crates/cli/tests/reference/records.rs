//! The attributes of records, from the schemas that are built in; and the columns of the table that `--parquet` writes.

use super::{cell, check};
use crate::common::{file, printed, run};
use queuescope_log::{Attribute, Kind, Schema};

const ABOUT: &str = "\
# Attributes of records

What [expressions](expressions.md), `--select`, `--group` and `--index` can name. Folders, Parquet and CSV have the same names.
This page is made from the [schemas](schemas.md) that are built in. `queuescope query --attributes` lists those of `packet`, and
`--attributes --departures` those of `departure`. Times are in nanoseconds.
";

#[test]
fn records_in_the_book_are_current() {
    let mut text = ABOUT.to_owned();
    text += &table("packet", Schema::packet(), |_| true);
    let packet = Schema::packet();
    text += &table("queued", Schema::queued(), |name| packet.find(name).is_none());
    text += "\nBefore these stand all attributes of `packet`.\n";
    text += &table("departure", Schema::departure(), |_| true);
    text += &table("ethernet-tcp", Schema::ethernet_tcp(), |_| true);
    check("records.md", &text);
}

/// A table of the attributes of a schema whose names satisfy a condition.
fn table(name: &str, schema: &Schema, is_meant: impl Fn(&str) -> bool) -> String {
    let mut text = format!("\n## `{name}`\n\n{} bytes: {}.\n\n", schema.record_size(), cell(schema.doc()));
    text += "| attribute | kind | what it is |\n| --- | --- | --- |\n";
    for attribute in schema.attributes().iter().filter(|attribute| is_meant(&attribute.name)) {
        let names: Vec<_> =
            std::iter::once(&attribute.name).chain(&attribute.aliases).map(|it| format!("`{it}`")).collect();
        let values: Vec<_> = attribute.values.iter().map(|(name, key)| format!("`{name}` ({key})")).collect();
        let values = if values.is_empty() { String::new() } else { format!(". Values: {}", values.join(", ")) };
        text += &format!("| {} | {} | {}{values} |\n", names.join(", "), kind(attribute), cell(&attribute.doc));
    }
    text
}

/// A kind in the syntax of schemas.
fn kind(attribute: &Attribute) -> String {
    let bits = attribute.place.bits;
    match attribute.kind {
        Kind::Unsigned => format!("u{bits}"),
        Kind::Signed => format!("i{bits}"),
        Kind::Float => format!("f{bits}"),
        Kind::Size => format!("size{bits}"),
        Kind::Time => "time".to_owned(),
        Kind::Ipv4 => "ipv4".to_owned(),
        Kind::Ipv6 => "ipv6".to_owned(),
        Kind::Address => "address".to_owned(),
        Kind::Mac => "mac".to_owned(),
        Kind::Bytes => format!("bytes{}", bits / 8),
    }
}

/// Checks that the page has the columns that are written, in their order.
#[test]
fn columns_of_departures_in_the_book_are_current() {
    let directory = tempfile::tempdir().expect("there is room");
    let table = directory.path().join("departures.parquet");
    printed(run("analyze crates/cli/tests/data/whole.pcap --rate 1mbps --parquet", &[&table]), 0);
    let output = run("analyze --columns size=nothing --departures", &[&table]);
    let errors = String::from_utf8(output.stderr).expect("it is text");
    let (_, columns) = errors.split_once("the columns are ").expect("an unknown column is an error that lists all");
    let (columns, _) = columns.split_once(" (").expect("advice follows");
    let page = std::fs::read_to_string(file("docs/reference/departures.md")).expect("it is there");
    let (_, section) = page.split_once("## Writing").expect("it has that section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|row| row.split('|').nth(1)).map(|names| names.trim().replace('`', "'"));
    assert_eq!(first.collect::<Vec<_>>().join(", "), columns);
}
