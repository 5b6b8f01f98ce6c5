//! `queuescope live`: watches the queue of an interface.

use crate::args::Live;
use crate::expressions::{analysis_error, expression_error};
#[cfg(feature = "fleet")]
use crate::fleet::{HostLosses, QueueHost};
use crate::outcome::{Outcome, print};
use crate::p4air;
use crate::paths::check_outputs;
use crate::queued;
use crate::terminal::note;
use anyhow::Result;
use queuescope_ingest::Stop;
use queuescope_ingest::notes::noted;
use queuescope_live::capabilities::Seer;
use queuescope_live::{ProbeError, now};
use queuescope_monitor::{Attached, P4airStatus, Reporter, Screen, Unwritten, WatchError, give_up};
use queuescope_recording::Outputs;
use queuescope_report::model::{Acting, Burst, Report, Skipped};
use queuescope_report::{json, text};
use queuescope_wire::Nanos;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;

/// Runs `live`; `seer` sees the processes of other users.
///
/// # Errors
/// Fails if the interface does not exist, if the kernel or the user's rights do not allow the measurement, or if an output
/// cannot be written.
pub fn run(args: &Live, seer: Option<Seer>) -> Result<Outcome> {
    check_outputs([], [&args.pcapng])?;
    // Output that is not a terminal is JSON Lines.
    let is_json = args.json || !io::stdout().is_terminal();
    let obstacle = if is_json { None } else { Screen::obstacle() };
    let is_drawn = !is_json && obstacle.is_none();
    let stop = if is_drawn { Stop::on_signals_but_first(give_up) } else { Stop::on_signals() }?;
    let attached = match Attached::new(args.options(is_drawn)?, stop.clone(), seer) {
        Err(WatchError::Probe(ProbeError::Stopped)) => {
            note("a signal to stop came before anything was measured");
            return Ok(Outcome::Complete);
        }
        attached => attached.map_err(watch_error)?,
    };
    let log = queued::open(&args.queued)?;
    #[cfg(feature = "fleet")]
    let mut host =
        QueueHost::begin(&args.fleet, &args.queued, log.as_ref(), format!("queue of {}", args.interface), &stop)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), None, log)?.shifting_times(attached.to_epoch());
    let lines = Lines {
        interface: &args.interface,
        is_json,
        is_output_closed: false,
        lines_lost: None,
        is_torn: false,
        p4air: None,
        #[cfg(feature = "fleet")]
        losses: host.losses(),
    };
    let watch = attached.begin(outputs, lines)?;
    if let Some(obstacle) = obstacle {
        anstream::eprintln!("{obstacle}: bursts are printed as they end, and the report at the end (Ctrl-C)");
    }
    let end = args.run_time.duration.map_or(Nanos::MAX, |time| now().saturating_add(time));
    let watched = watch.run(end);
    #[cfg(feature = "fleet")]
    host.end();
    let (mut report, outputs, lines) = watched?;
    let written = outputs.finish()?.ended_by(Some(&stop));
    report.skipped.extend(written.notes());
    if written.recorded.is_none() {
        report.skipped.extend(stop.note());
    }
    report.skipped.extend(lines.lines_lost());
    let lines_lost = lines.end(&report);
    let damage: Vec<_> = written.damage().into_iter().chain(lines_lost).collect();
    #[cfg(feature = "fleet")]
    host.check()?;
    Ok(Outcome::from_damage((!damage.is_empty()).then(|| damage.join("; "))))
}

/// Words an error in an option, and points at the faulty part of an expression.
fn watch_error(error: WatchError) -> anyhow::Error {
    match error {
        WatchError::Expression(error) => expression_error(error),
        WatchError::Analysis(error) => analysis_error(error),
        error => error.into(),
    }
}

/// Prints bursts while the interface is watched, if the queue is not drawn on the terminal.
struct Lines<'a> {
    interface: &'a str,
    is_json: bool,
    /// Whether standard output is a closed pipe.
    is_output_closed: bool,
    /// The number of lines that could not be printed, and the first error.
    lines_lost: Option<(u64, String)>,
    is_torn: bool,
    /// The last state of P4air, for the end of a report as text.
    p4air: Option<P4airStatus>,
    /// What the coordinator of a fleet learns of missing packets.
    #[cfg(feature = "fleet")]
    losses: HostLosses,
}

impl Reporter<Outputs> for Lines<'_> {
    type Error = anyhow::Error;

    fn begins(&mut self, report: &Report) -> Result<()> {
        self.emit(|out| json::write_first(report, out))
    }

    fn bursts(&mut self, bursts: &[Burst]) -> Result<()> {
        if !self.is_json {
            let write =
                |mut out: &mut dyn Write| bursts.iter().try_for_each(|burst| text::write_burst(burst, &mut out));
            return print(false, |_| Ok(()), write);
        }
        self.emit(|out| bursts.iter().try_for_each(|burst| json::write_burst(burst, out)))
    }

    fn acting(&mut self, acting: &Acting) -> Result<()> {
        note(&acting.meaning);
        self.emit(|out| json::write_acting(acting, out))
    }

    fn p4air(&mut self, status: &P4airStatus, at: Nanos) -> Result<()> {
        self.p4air = Some(status.clone());
        self.emit(|out| json::write_p4air(p4air::report(status, at), out))
    }

    fn serves(&mut self, at: SocketAddr) {
        anstream::eprintln!("metrics of {}: http://{at}/metrics", self.interface);
    }

    fn note(&mut self, text: &str) {
        note(text);
    }

    fn stopped(&mut self, text: &str) {
        anstream::eprintln!("{text}");
    }

    fn unwritten(&mut self, outputs: &mut Outputs) -> Vec<Unwritten> {
        let unwritten = outputs.unwritten();
        let unwritten = unwritten.iter().map(|one| Unwritten { line: one.line(), news: one.news() });
        let lines_lost = self.lines_lost().map(|news| Unwritten { line: news.meaning.clone(), news });
        unwritten.chain(lines_lost).collect()
    }

    #[cfg_attr(not(feature = "fleet"), expect(unused_variables, reason = "only a coordinator learns of them"))]
    fn left_out(&mut self, outputs: &mut Outputs, at: Nanos, slack: Nanos, left_out: &[Skipped], shed: u64) {
        outputs.left_out(at, slack, left_out);
        #[cfg(feature = "fleet")]
        self.losses.set(left_out, shed);
    }

    fn is_unheard(&self) -> bool {
        self.is_output_closed
    }
}

impl Lines<'_> {
    /// Prints JSON Lines at once, until standard output is closed. As text, the report is printed at the end.
    fn emit(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<()> {
        if !self.is_json || self.is_output_closed {
            return Ok(());
        }
        // End the part of a line that was written before the disk was full.
        let mut lines = if self.is_torn { vec![b'\n'] } else { Vec::new() };
        write(&mut lines)?;
        let mut out = io::stdout().lock();
        match out.write_all(&lines).and_then(|()| out.flush()) {
            Ok(()) => self.is_torn = false,
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.is_output_closed = true,
            Err(why) => {
                let count = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64;
                let (lost, _) = self.lines_lost.get_or_insert_with(|| (0, why.to_string()));
                *lost += count;
                self.is_torn = true;
            }
        }
        Ok(())
    }

    /// A note on lines that could not be written to standard output.
    fn lines_lost(&self) -> Option<Skipped> {
        let (lines, why) = self.lines_lost.as_ref()?;
        noted("lines_unwritten", *lines, &format!("lines that could not be written to standard output: {why}"))
    }

    /// Prints the report. Returns an error message if it, or earlier lines, could not be printed.
    fn end(&self, report: &Report) -> Option<String> {
        let json = |mut out: &mut dyn Write| {
            if self.is_torn {
                out.write_all(b"\n")?;
            }
            json::write_summary(report, &mut out)
        };
        let lines_lost = print(self.is_json, json, |mut out| {
            text::write(report, &mut out)?;
            self.p4air.as_ref().map_or(Ok(()), |status| p4air::write_text(status, &mut out))
        })
        .err();
        if lines_lost.is_some() {
            // The report goes to standard error then, so that it is not lost.
            let _ = text::write(report, &mut anstream::stderr().lock());
        }
        lines_lost.map(|why| format!("{why:#}")).or_else(|| self.lines_lost().map(|note| note.meaning))
    }
}
