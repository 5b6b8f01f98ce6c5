//! The views of a report that the user chose: text or JSON on standard output, and an HTML page.

use crate::args::Output;
use crate::outcome::{Outcome, print};
use crate::paths::create;
use anyhow::Result;
use queuescope_recording::AtomicFile;
use queuescope_recording::Written;
use queuescope_report::model::Report;
use queuescope_report::{html, json, text};

/// The outputs of a report.
#[derive(Debug)]
pub struct Views {
    json: bool,
    /// Whether a command that is run uses standard output.
    aside: bool,
    html: Option<AtomicFile>,
}

impl Views {
    /// Creates the files, so that an output that cannot be written fails before the work is done.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub fn create(output: &Output) -> Result<Self> {
        let html = output.html.as_deref().map(create).transpose()?;
        Ok(Self { json: output.json, aside: false, html })
    }

    /// The same for a report about a command, which writes to standard output itself. Text then goes to standard error.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn aside(output: &Output) -> Result<Self> {
        Ok(Self { aside: true, ..Self::create(output)? })
    }

    /// Writes the report, with notes on the files that were `written` beside it. Returns whether the input and the outputs
    /// are complete.
    ///
    /// # Errors
    /// Fails if standard output cannot be written.
    pub fn write(self, mut report: Report, written: &Written) -> Result<Outcome> {
        report.skipped.extend(written.notes());
        // If the page fails, the other views are still written.
        let page = self.html.and_then(|page| page.write_whole(|out| html::write(&report, out)).err());
        let page = page.map(|why| format!("{:#}", anyhow::Error::from(why)));
        if self.aside && !self.json {
            // If standard error cannot be written, there is nowhere to report it.
            let _ = text::write(&report, &mut anstream::stderr().lock());
        } else {
            print(self.json, |mut out| json::write(&report, &mut out), |mut out| text::write(&report, &mut out))?;
        }
        let damage: Vec<_> = [report.input.damage, written.damage(), page].into_iter().flatten().collect();
        Ok(Outcome::from_damage((!damage.is_empty()).then(|| damage.join("; "))))
    }
}
