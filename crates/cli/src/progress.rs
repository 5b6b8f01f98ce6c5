//! Progress on a terminal. Without a terminal, the progress of cells is printed as a line every minute.

use crate::terminal::note;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};

/// A progress bar on standard error, with rate and time left. If the length is not known, a counter.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// The name of the cells in messages; `None` if the progress is not of cells.
    cells: Option<&'static str>,
    /// When the last line was printed, in seconds since the start.
    last_line: AtomicU64,
}

/// Seconds between lines.
const LINE_INTERVAL: u64 = 60;

impl Progress {
    /// Starts progress for an input of `length` bytes, or of unknown length.
    pub fn new(length: Option<u64>) -> Self {
        let (bar, template) = match length {
            Some(length) => (
                ProgressBar::new(length),
                "{wide_bar} {percent:>3} %  {decimal_bytes_per_sec}  {msg} packets  {eta} left",
            ),
            None => {
                (ProgressBar::new_spinner(), "{spinner} {decimal_bytes} read  {decimal_bytes_per_sec}  {msg} packets")
            }
        };
        bar.set_style(style(template));
        Self::with_bar(bar, None)
    }

    fn with_bar(bar: ProgressBar, cells: Option<&'static str>) -> Self {
        Self { bar, cells, last_line: AtomicU64::new(0) }
    }

    /// Starts progress for a run of `steps` steps.
    pub fn steps(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let template = "{wide_bar} {percent:>3} %  {msg} packet hops  {eta} left";
        bar.set_style(style(template));
        Self::with_bar(bar, None)
    }

    /// Starts progress for `cells` cells, which messages call `what`.
    pub fn cells(cells: u64, what: &'static str) -> Self {
        let bar = ProgressBar::new(cells);
        bar.set_style(style("{wide_bar} {pos} of {len} {msg}"));
        bar.set_message(what);
        Self::with_bar(bar, Some(what))
    }

    /// Progress that is not shown.
    pub fn hidden() -> Self {
        Self::with_bar(ProgressBar::hidden(), None)
    }

    /// Counts one more finished cell.
    pub fn one(&self) {
        if self.bar.position() == 0 {
            // The time left can only be estimated after the first cell.
            self.bar.set_style(style("{wide_bar} {pos} of {len} {msg}  {eta} left"));
        }
        self.bar.inc(1);
        let Some(what) = self.cells.filter(|_| self.bar.is_hidden()) else { return };
        let elapsed = self.bar.elapsed();
        if elapsed.as_secs() >= self.last_line.load(Ordering::Relaxed) + LINE_INTERVAL {
            self.last_line.store(elapsed.as_secs(), Ordering::Relaxed);
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            note(&format!("{done} of {all} {what} after {}", HumanDuration(elapsed)));
        }
    }

    /// Sets how much of the input was read, in bytes or steps, and the number of packets in it.
    pub fn update(&self, read: u64, packets: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_message(HumanCount(packets).to_string());
            self.bar.set_position(read);
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
