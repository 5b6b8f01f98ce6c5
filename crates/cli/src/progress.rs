//! Progress on a terminal; of cells now and then a line where there is none, and nothing else.

use crate::terminal::note;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};

/// A bar on standard error with rate and time left; a count where the length is not known.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Of cells: what they are called.
    cells: Option<&'static str>,
    /// When the last line was written, in seconds since the start.
    told: AtomicU64,
}

/// Seconds from one line to the next.
const LINES: u64 = 60;

impl Progress {
    /// Starts one for an input of `length` bytes, if that is known.
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
        Self::of(bar, None)
    }

    fn of(bar: ProgressBar, cells: Option<&'static str>) -> Self {
        Self { bar, cells, told: AtomicU64::new(0) }
    }

    /// Starts one for a run of so many steps.
    pub fn steps(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let template = "{wide_bar} {percent:>3} %  {msg} packet hops  {eta} left";
        bar.set_style(style(template));
        Self::of(bar, None)
    }

    /// Starts one for so many cells.
    pub fn cells(cells: u64, what: &'static str) -> Self {
        let bar = ProgressBar::new(cells);
        bar.set_style(style("{wide_bar} {pos} of {len} {msg}"));
        bar.set_message(what);
        Self::of(bar, Some(what))
    }

    /// One that is not to be seen.
    pub fn hidden() -> Self {
        Self::of(ProgressBar::hidden(), None)
    }

    /// One more is done.
    pub fn one(&self) {
        if self.bar.position() == 0 {
            // Before, nobody knows how long one takes.
            self.bar.set_style(style("{wide_bar} {pos} of {len} {msg}  {eta} left"));
        }
        self.bar.inc(1);
        let Some(what) = self.cells.filter(|_| self.bar.is_hidden()) else { return };
        let elapsed = self.bar.elapsed();
        if elapsed.as_secs() >= self.told.load(Ordering::Relaxed) + LINES {
            self.told.store(elapsed.as_secs(), Ordering::Relaxed);
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            note(&format!("{done} of {all} {what} after {}", HumanDuration(elapsed)));
        }
    }

    /// So much of the input was read, so many packets were in it.
    pub fn update(&self, read: u64, packets: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_message(HumanCount(packets).to_string());
            self.bar.set_position(read);
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
