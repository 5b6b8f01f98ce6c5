//! The outcome of an experiment as text for a terminal.

use super::outcome::{Finding, Outcome, Table};
use anstyle::Style;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use textwrap::Options;
use textwrap::core::display_width;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The width of text that is not for a terminal.
const WIDTH: usize = 100;

/// Writes the description, the findings by figure, the tables, and the folder of the files, for a terminal with `wide`
/// columns or for a file.
///
/// # Errors
/// Returns the first write error of `out`.
pub fn write(
    head: [&str; 3],
    folder: &Path,
    outcome: &Outcome,
    wide: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = wide.map_or(WIDTH, |wide| wide.max(20));
    let [name, source, what] = head;
    writeln!(out, "{BOLD}{name}{BOLD:#}  {DIM}{source}{DIM:#}")?;
    paragraph(what, "", width, Style::new(), out)?;
    let mut figure = "";
    for finding in &outcome.findings {
        if finding.figure != figure {
            figure = finding.figure;
            writeln!(out, "\n{BOLD}{figure}{BOLD:#}")?;
        }
        write_finding(finding, width, out)?;
    }
    for table in &outcome.tables {
        // Readers of a file can scroll.
        write_table(table, wide.map_or(usize::MAX, |_| width), out)?;
    }
    writeln!(out, "\nPlots (SVG), data (CSV) and this table (findings.md) are in {}.", folder.display())
}

/// Writes what is compared, both results, and why they differ.
fn write_finding(finding: &Finding, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let Finding { what, paper, ours, why, .. } = finding;
    let difference = finding.difference();
    let difference = if difference.is_empty() { difference } else { format!("   difference {difference}") };
    paragraph(what, "  ", width, Style::new(), out)?;
    paragraph(&format!("paper {paper}   ours {ours}{difference}"), "      ", width, BOLD, out)?;
    paragraph(why, "      ", width, DIM, out)
}

fn paragraph(text: &str, indent: &str, width: usize, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let options = Options::new(width).initial_indent(indent).subsequent_indent(indent);
    textwrap::wrap(text, options).iter().try_for_each(|line| writeln!(out, "{style}{line}{style:#}"))
}

/// Writes columns, with the names of rows at the left. What is too wide for the terminal continues below, with the
/// names repeated.
fn write_table(table: &Table, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let Table { title, columns, rows } = table;
    let widths: Vec<_> = (0..columns.len())
        .map(|n| rows.iter().chain([columns]).map(|row| display_width(&row[n])).max().unwrap_or(0))
        .collect();
    writeln!(out)?;
    paragraph(title, "", width.min(WIDTH), BOLD, out)?;
    let names = names(table);
    for (n, block) in blocks(&widths, names, width).into_iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        let shown: Vec<_> = (0..names).chain(block).collect();
        for (n, row) in [columns].into_iter().chain(rows).enumerate() {
            let cells = shown.iter().map(|&column| {
                let (cell, room) = (&row[column], " ".repeat(widths[column] - display_width(&row[column])));
                if column < names { format!("{cell}{room}") } else { format!("{room}{cell}") }
            });
            let style = if n == 0 { DIM } else { Style::new() };
            writeln!(out, "{style}  {}{style:#}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
    }
    Ok(())
}

/// How many of the first columns distinguish the rows; one if none do.
fn names(Table { columns, rows, .. }: &Table) -> usize {
    let apart = |names: &usize| rows.iter().map(|row| &row[..*names]).collect::<BTreeSet<_>>().len() == rows.len();
    (1..columns.len()).find(apart).unwrap_or(1)
}

/// Groups the other columns into blocks that fit beside the names, with at least one column each.
fn blocks(widths: &[usize], names: usize, width: usize) -> Vec<Vec<usize>> {
    const GAP: usize = 2;
    let of_names: usize = widths[..names].iter().map(|width| width + GAP).sum();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for (column, width_of_it) in widths.iter().enumerate().skip(names) {
        let more = width_of_it + GAP;
        match blocks.last_mut() {
            Some(block) if used.saturating_add(more) <= width => {
                block.push(column);
                used += more;
            }
            _ => {
                blocks.push(vec![column]);
                used = of_names + more;
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = [["one", "1", "200", "30"], ["one", "2", "2", "3"]].map(|row| row.map(str::to_owned).into());
        Table {
            title: "Of things".to_owned(),
            columns: ["what", "n", "a", "b"].map(str::to_owned).into(),
            rows: rows.into(),
        }
    }

    fn shown(width: usize) -> String {
        let mut text = anstream::StripStream::new(Vec::new());
        write_table(&table(), width, &mut text).unwrap();
        String::from_utf8(text.into_inner()).unwrap()
    }

    #[test]
    fn rows_are_named_by_as_many_columns_as_distinguish_them() {
        assert_eq!(names(&table()), 2);
        assert_eq!(shown(80), "\nOf things\n  what  n    a   b\n  one   1  200  30\n  one   2    2   3\n");
    }

    #[test]
    fn what_is_too_wide_continues_below_with_the_names() {
        let text = shown(15);
        assert_eq!(
            text,
            "\nOf things\n  what  n    a\n  one   1  200\n  one   2    2\n\n  what  n   b\n  one   1  30\n  one   2   3\n"
        );
        assert_eq!(shown(10), text, "one column at least");
    }

    #[test]
    fn an_empty_table_shows_its_columns() {
        let nothing = Table { rows: Vec::new(), ..table() };
        assert_eq!(names(&nothing), 1);
        let mut text = Vec::new();
        write_table(&nothing, 80, &mut text).unwrap();
        assert!(!text.is_empty());
    }
}
