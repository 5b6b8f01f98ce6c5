//! Progress on a terminal; nothing on a pipe.

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

/// A bar on standard error with rate and time left; a count where the length is not known.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

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
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }

    /// Starts one for a run of so many steps.
    pub fn steps(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let template = "{wide_bar} {percent:>3} %  {msg} packet hops  {eta} left";
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }

    /// Starts one for so many cells of a sweep.
    pub fn cells(cells: u64, what: &'static str) -> Self {
        let bar = ProgressBar::new(cells);
        let template = "{wide_bar} {pos} of {len} {msg}  {eta} left";
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Self { bar }
    }

    /// One that is not to be seen.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// One more is done.
    pub fn one(&self) {
        self.bar.inc(1);
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
