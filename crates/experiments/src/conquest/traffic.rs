//! The traffic in the queue: a workload like the paper's trace, or a capture.
//!
//! The paper replays UNI1 (Benson et al., IMC 2010) fifty times faster, so its senders do not react to the queue. It
//! reports a mean of 7.5 % of 10 Gb/s, bursts that queue up to 8 MB, and 63.6 flows in the queue when it is congested,
//! of which 3.7 have at least a hundredth of it. The workload has two parts. Both have data-mining sizes (VL2), which
//! are like UNI1's: four flows of five are below 10 kB. One part comes in on-off bursts, with flows of up to 8 MB at 6
//! Gb/s each, which form the queue. The other part is always present: small flows that are in the queue meanwhile. The
//! frequencies, the largest sizes, the highest rates and the lengths of bursts were found by trial, until the workload
//! was close to what the paper states of its trace.

use crate::Capture as Named;
use crate::error::{Error, Result};
use crate::truths::{RecordedDepartures, of_capture, of_scenario};
use queuescope_ingest::is_standard_input;
use queuescope_run as run;
use queuescope_run::sweep::{hex, sum_of};
use queuescope_scenario::Scenario;
use queuescope_sim::Speedup;
use queuescope_sim::workload::{Empirical, Sizes};
use queuescope_wire::Rate;
use std::collections::VecDeque;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Separates the traffic's text from the sketch's parameters, on which the traffic does not depend.
pub const SKETCH: &str = "\n# Held against it: ";

/// How many seeds' departures are kept: those of the seed that most cells use, and of the next.
const KEPT: usize = 2;

/// The traffic in the queue.
#[derive(Debug)]
pub struct Traffic {
    capture: Option<Capture>,
    /// Departures, by the text of their traffic.
    departures: Mutex<VecDeque<(String, Arc<RecordedDepartures>)>>,
}

#[derive(Debug)]
struct Capture {
    file: PathBuf,
    name: String,
    rate: Rate,
    speedup: Speedup,
    digest: String,
}

impl Traffic {
    /// The given capture, or else the workload.
    ///
    /// # Errors
    /// Fails if the capture cannot be read.
    pub fn new(capture: Option<&Named>) -> Result<Self> {
        let capture = capture.map(|named| Capture::new(&named.file, named.rate, named.speedup)).transpose()?;
        Ok(Self { capture, departures: Mutex::default() })
    }

    /// Whether it is the workload that replaces the paper's trace.
    pub fn is_the_papers(&self) -> bool {
        self.capture.is_none()
    }

    /// Its name in tables.
    pub fn name(&self) -> &str {
        self.capture.as_ref().map_or("on-off", |capture| &capture.name)
    }

    /// Where the packets come from, in a sentence; empty for the workload.
    pub fn outcome(&self) -> String {
        self.capture.as_ref().map_or_else(String::new, |Capture { name, rate, speedup, .. }| {
            let faster =
                if speedup.to_string() == "1" { String::new() } else { format!(", sent {speedup} times as fast") };
            format!("The packets are those of {name}{faster}, before a link of {rate}.")
        })
    }

    /// Everything that it depends on: a scenario, or comments for a capture.
    pub fn text(&self, seed: u64, milliseconds: u64) -> String {
        self.text_at(seed, milliseconds, PACE)
    }

    /// The same with flows of bursts that send at `pace` Gb/s.
    pub fn text_at(&self, seed: u64, milliseconds: u64, pace: u32) -> String {
        self.capture.as_ref().map_or_else(|| scenario(seed, milliseconds, pace), Capture::text)
    }

    /// Other paces for the workload, in Gb/s.
    pub fn paces(&self) -> &'static [u32] {
        if self.is_the_papers() { &[2, 25] } else { &[] }
    }

    /// What left the queue, for the traffic with which a cell's text begins.
    ///
    /// # Errors
    /// Fails if the traffic cannot be replayed or simulated.
    pub fn departures(&self, cell: &str) -> Result<Arc<RecordedDepartures>> {
        let text = cell.split(SKETCH).next().unwrap_or(cell);
        // Other threads wait here: they need the same departures.
        let mut kept = self.departures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, departures)) = kept.iter().find(|(own, _)| own == text) {
            return Ok(Arc::clone(departures));
        }
        let departures = Arc::new(match &self.capture {
            None => of_scenario(&Scenario::parse("the workload", text, &[])?)?,
            Some(capture) => of_capture(&capture.file, capture.rate, capture.speedup)?,
        });
        if departures.truths.longest().0 < 8 {
            return Err(self.nothing_waits(&departures));
        }
        kept.truncate(KEPT - 1);
        kept.push_front((text.to_owned(), Arc::clone(&departures)));
        Ok(departures)
    }

    fn nothing_waits(&self, departures: &RecordedDepartures) -> Error {
        let megabits = 8.0 * departures.bytes as f64 / departures.time.as_secs_f64().max(1e-9) / 1e6;
        Error::NothingWaits { packets: departures.truths.all().len(), name: self.name().to_owned(), megabits }
    }
}

impl Capture {
    #[expect(clippy::disallowed_methods, reason = "a user names the capture")]
    fn new(file: &Path, rate: Rate, speedup: Speedup) -> Result<Self> {
        if is_standard_input(file) {
            return Err(Error::StandardInput);
        }
        let cannot = |why| run::Error::Read { name: file.display().to_string(), why };
        let digest = hex(&std::fs::File::open(file).and_then(sum_of).map_err(cannot)?);
        let name = file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into());
        Ok(Self { file: file.to_owned(), name, rate, speedup, digest })
    }

    fn text(&self) -> String {
        let Self { rate, speedup, digest, .. } = self;
        let rate = rate.bits_per_second();
        format!(
            "# A capture through a FIFO without a limit.\n# sha256 {digest}\n# rate {rate} b/s, {speedup} times faster\n"
        )
    }
}

/// The workload: two kinds of flows, from hosts with links of 100 Gb/s to a link of 10 Gb/s.
fn scenario(seed: u64, milliseconds: u64, pace: u32) -> String {
    let mut text = format!(
        "# Traffic like the trace of ConQuest's section 5.1.\nseed = {seed}\nduration = \"{milliseconds}ms\"\n\n[access]\n\
         rate = \"100gbps\"\n\n[link]\nrate = \"10gbps\"\ndelay = \"0s\"\nlimit = \"none\"\n"
    );
    let bursts = format!("pace = \"{pace}gbps\"\non = \"1200us\"\noff = \"32ms\"\nrandom = true\n");
    // One host has too few ports for all small flows.
    for (name, hosts, load, largest, more) in
        [("bursts", 1, BURST_LOAD, LARGEST_BURST, bursts.as_str()), ("mice", 12, MICE_LOAD, LARGEST_MOUSE, "")]
    {
        // Writing to a string does not fail.
        _ = write!(
            text,
            "\n[[workloads]]\nname = \"{name}\"\nhosts = {hosts}\n[workloads.datagrams]\nload = {load:?}\n{more}sizes = {}\n",
            sizes(largest)
        );
    }
    text
}

/// The rate of flows of bursts, in Gb/s.
const PACE: u32 = 6;
/// Shares of the link, without headers; 7.5 % with headers.
const BURST_LOAD: f64 = 0.039;
const MICE_LOAD: f64 = 0.0345;
/// The largest flows, in bytes: the paper's longest queue, and a sixth of a hundredth of a usual one.
const LARGEST_BURST: f64 = 8e6;
const LARGEST_MOUSE: f64 = 4.2e3;

/// Data-mining sizes up to `largest`, in a scenario's notation.
fn sizes(largest: f64) -> String {
    let points = Sizes::named_points("data-mining").and_then(|points| points.at_most(largest).ok());
    let points: Vec<_> = points.iter().flat_map(Empirical::points).collect();
    let shown = points.iter().map(|(bytes, share)| format!("[\"{bytes}B\", {share:?}]"));
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_is_a_scenario() {
        let scenario = Scenario::parse("test", &scenario(3, 100, PACE), &[]).unwrap();
        assert_eq!((scenario.seed, scenario.workloads.len()), (3, 2));
        assert!(sizes(5e3).starts_with("[[\"0B\", 0.0], [\"180B\", 0.1"), "{}", sizes(5e3));
        assert!(sizes(5e3).ends_with("[\"5000B\", 1.0]]"), "{}", sizes(5e3));
    }
}
