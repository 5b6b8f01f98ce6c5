//! The report as one HTML file that works offline: it contains style, scripts and data, and a content security policy
//! forbids the page to load anything.
//!
//! This module assembles the page from `assets/`; the scripts there decide what it shows. The data is in a block of
//! JSON that no flow name can end (`embed`), with no more samples than a page can show (`thin`). The scripts insert it
//! as text only.

mod compare;
mod embed;
mod sweep;
mod thin;

use crate::model::Report;
use serde::Serialize;
use std::io::{self, Write};

pub use compare::write as write_comparison;
pub use sweep::write as write_sweep;

/// The style sheets, in order of the cascade.
const STYLES: [&str; 4] = [
    include_str!("../../assets/uplot/uPlot.min.css"),
    include_str!("../../assets/page.css"),
    include_str!("../../assets/parts.css"),
    include_str!("../../assets/burst.css"),
];

/// The chart library, with its licence, which must accompany it.
const LIBRARY: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const LIBRARY_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

/// Our scripts. They share one scope, and each uses only what is before it.
const SCRIPTS: [&str; 16] = [
    include_str!("../../assets/format.js"),
    include_str!("../../assets/dom.js"),
    include_str!("../../assets/colours.js"),
    include_str!("../../assets/axes.js"),
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/timeline.js"),
    include_str!("../../assets/lanes.js"),
    include_str!("../../assets/gestures.js"),
    include_str!("../../assets/chart.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/sorted.js"),
    include_str!("../../assets/bursts.js"),
    include_str!("../../assets/burst.js"),
    include_str!("../../assets/sections.js"),
    include_str!("../../assets/setup.js"),
    include_str!("../../assets/tap.js"),
];

/// Additional style and scripts of the page of a simulation; the scripts come after the others.
const SIM_STYLE: &str = include_str!("../../assets/sim.css");
const SIM_SCRIPTS: [&str; 4] = [
    include_str!("../../assets/course.js"),
    include_str!("../../assets/simcharts.js"),
    include_str!("../../assets/completion.js"),
    include_str!("../../assets/sim.js"),
];

/// The script that assembles the page, after all others.
const PAGE: &str = include_str!("../../assets/page.js");

/// The skeleton of the page: everything that exists without scripts.
const BODY: &str = include_str!("../../assets/body.html");

/// The content security policy: the page may load nothing. Style and script are inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Writes `report` as one self-contained page.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let (styles, of_sim): (&[_], &[&str]) =
        if report.sim.is_some() { (&[SIM_STYLE], &SIM_SCRIPTS) } else { (&[], &[]) };
    let scripts = SCRIPTS.iter().chain(of_sim).chain([&PAGE]);
    page(&report.input.name, thin::thinned(report).as_ref(), styles, scripts, out)
}

/// Writes a page that `scripts` draw from `data`, with additional style sheets after the common ones.
fn page<'a>(
    name: &str,
    data: &impl Serialize,
    styles: &[&str],
    scripts: impl Iterator<Item = &'a &'static str>,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = escape(name);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"color-scheme\" content=\"light dark\">")?;
    writeln!(out, "<meta name=\"generator\" content=\"queuescope {}\">", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "<link rel=\"icon\" href=\"data:,\">\n<title>{name} – queuescope</title>")?;
    for style in STYLES.iter().chain(styles) {
        writeln!(out, "<style>")?;
        lines(style, out)?;
        writeln!(out, "</style>")?;
    }
    writeln!(out, "</head>\n{BODY}")?;
    write!(out, "<script type=\"application/json\" id=\"report-data\">")?;
    embed::json(data, out)?;
    writeln!(out, "</script>\n<script>\n/*\n{LIBRARY_LICENCE}\n*/\n{LIBRARY}\n</script>")?;
    writeln!(out, "<script>\n(() => {{\n'use strict';")?;
    writeln!(out, "const VERSION = '{}';", env!("CARGO_PKG_VERSION"))?;
    for script in scripts {
        lines(script, out)?;
    }
    writeln!(out, "}})();\n</script>\n</body>\n</html>")
}

/// Writes a script or a style sheet without its indentation and comments, which are a fifth of a page.
fn lines(text: &str, out: &mut impl Write) -> io::Result<()> {
    let mut in_comment = false;
    let mut code = text.lines().map(str::trim).filter(|line| {
        let is_comment = in_comment || line.starts_with("/*");
        in_comment = is_comment && !line.ends_with("*/");
        !is_comment && !line.starts_with("//") && !line.is_empty()
    });
    code.try_for_each(|line| writeln!(out, "{line}"))
}

/// Writes the characters of `text` that are special in HTML as entities.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_scripts() -> impl Iterator<Item = &'static str> {
        SCRIPTS.into_iter().chain(SIM_SCRIPTS).chain([PAGE]).chain(sweep::SCRIPTS).chain(compare::SCRIPTS)
    }

    #[test]
    fn html_markup_is_escaped() {
        assert_eq!(escape("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
    }

    #[test]
    fn no_string_of_a_script_goes_over_a_line() {
        // Otherwise the string would lose its indentation.
        for line in all_scripts().flat_map(str::lines) {
            assert!(line.matches('`').count() % 2 == 0 || line.trim_start().starts_with(['*', '/']), "{line}");
        }
    }

    #[test]
    fn comments_that_begin_a_line_end_one_and_are_left_out() {
        for text in all_scripts().chain(STYLES).chain([SIM_STYLE, sweep::STYLE, compare::STYLE]) {
            // Code after a comment on its last line would be removed with it.
            for comment in
                text.split("\n").map(str::trim).filter(|line| line.starts_with("/*") || line.starts_with('*'))
            {
                assert!(!comment.contains("*/") || comment.ends_with("*/"), "{comment}");
            }
            let mut written = Vec::new();
            lines(text, &mut written).expect("it is memory");
            let written = String::from_utf8(written).expect("it is text");
            assert!(!written.lines().any(|line| line.starts_with("//") || line.starts_with("/*")), "{written}");
        }
        let mut written = Vec::new();
        lines("/** A\n * b.\n */\nf(); // c\n  // d\n  /* e */\n  g('//h');\n", &mut written).expect("it is memory");
        assert_eq!(String::from_utf8_lossy(&written), "f(); // c\ng('//h');\n");
    }

    #[test]
    fn no_script_can_end_its_block_early() {
        for script in all_scripts().chain([LIBRARY, LIBRARY_LICENCE]) {
            let script = script.to_ascii_lowercase();
            assert!(!script.contains("</script") && !script.contains("<!--") && !script.contains("<script"));
        }
        for style in STYLES.into_iter().chain([SIM_STYLE, sweep::STYLE, compare::STYLE]) {
            assert!(!style.to_ascii_lowercase().contains("</style"));
        }
        assert!(!LIBRARY_LICENCE.contains("*/"));
    }
}
