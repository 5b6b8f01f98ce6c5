//! The report as the user asked for it: text or JSON on standard output, and a page for a browser.

use crate::args::Output;
use crate::outcome::{Outcome, print};
use crate::paths::create;
use anyhow::Result;
use queuescope_recording::AtomicFile;
use queuescope_recording::Written;
use queuescope_report::model::Report;
use queuescope_report::{html, json, text};

/// Where a report will go.
#[derive(Debug)]
pub struct Views {
    json: bool,
    /// Whether a command has standard output for itself.
    aside: bool,
    html: Option<AtomicFile>,
}

impl Views {
    /// Creates the files, so that what cannot be written fails before the work is done.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create(output: &Output) -> Result<Self> {
        let html = output.html.as_deref().map(create).transpose()?;
        Ok(Self { json: output.json, aside: false, html })
    }

    /// The same for a report about a command, which writes to standard output itself: text goes to standard error then.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn aside(output: &Output) -> Result<Self> {
        Ok(Self { aside: true, ..Self::create(output)? })
    }

    /// Writes the report, with what was `written` beside it, and says whether its input was whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(self, mut report: Report, written: &Written) -> Result<Outcome> {
        report.skipped.extend(written.notes());
        // The other views are there all the same.
        let page = self.html.and_then(|page| page.write_whole(|out| html::write(&report, out)).err());
        let page = page.map(|why| format!("{:#}", anyhow::Error::from(why)));
        if self.aside && !self.json {
            // Nobody can be told that standard error cannot be written.
            let _ = text::write(&report, &mut anstream::stderr().lock());
        } else {
            print(self.json, |mut out| json::write(&report, &mut out), |mut out| text::write(&report, &mut out))?;
        }
        let damage: Vec<_> = [report.input.damage, written.damage(), page].into_iter().flatten().collect();
        Ok(Outcome::of((!damage.is_empty()).then(|| damage.join("; "))))
    }
}
