//! `queuescope live`: what is in the queue of an interface now.

use crate::args::Live;
use crate::expressions::{explained, of_analysis};
use crate::outcome::{Outcome, print};
use crate::paths::check_outputs;
use crate::queued;
use crate::terminal::note;
use anyhow::Result;
use queuescope_ingest::Stop;
use queuescope_ingest::notes::noted;
use queuescope_live::capabilities::Seer;
use queuescope_live::{ProbeError, now};
use queuescope_monitor::{Attached, Reporter, Screen, Unwritten, WatchError, give_up};
use queuescope_recording::Outputs;
use queuescope_report::model::{Acting, Burst, Report, Skipped};
use queuescope_report::{json, text};
use queuescope_wire::Nanos;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;

/// Runs `live`; `seer` sees the processes of other users.
///
/// # Errors
/// If nothing could be done: no such interface, a kernel or a user that may not look, an output that cannot be written.
pub fn run(args: &Live, seer: Option<Seer>) -> Result<Outcome> {
    check_outputs([], [&args.pcapng])?;
    // Who is no person reads lines.
    let is_json = args.json || !io::stdout().is_terminal();
    let obstacle = if is_json { None } else { Screen::obstacle() };
    let is_drawn = !is_json && obstacle.is_none();
    let stop = if is_drawn { Stop::on_signals_but_first(give_up) } else { Stop::on_signals() }?;
    let attached = match Attached::new(args.options(is_drawn), stop.clone(), seer) {
        Err(WatchError::Probe(ProbeError::Stopped)) => {
            note("a signal to stop came before anything was measured");
            return Ok(Outcome::Whole);
        }
        attached => attached.map_err(of_watch)?,
    };
    let log = queued::open(&args.queued)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), None, log)?;
    let lines = Lines { interface: &args.interface, is_json, unread: false, untold: None, is_torn: false };
    let watch = attached.begin(outputs, lines)?;
    if let Some(obstacle) = obstacle {
        anstream::eprintln!("{obstacle}: bursts are told as they end, and the report at the end (Ctrl-C)");
    }
    let end = args.run_time.duration.map_or(Nanos::MAX, |time| now().saturating_add(time));
    let (mut report, outputs, lines) = watch.run(end)?;
    let written = outputs.finish()?.ended_by(Some(&stop));
    report.skipped.extend(written.notes());
    if written.recorded.is_none() {
        report.skipped.extend(stop.note());
    }
    report.skipped.extend(lines.untold());
    let untold = lines.end(&report);
    let damage: Vec<_> = written.damage().into_iter().chain(untold).collect();
    Ok(Outcome::of((!damage.is_empty()).then(|| damage.join("; "))))
}

/// An error of an option, in the text of its expression.
fn of_watch(error: WatchError) -> anyhow::Error {
    match error {
        WatchError::Expression(error) => explained(error),
        WatchError::Analysis(error) => of_analysis(error),
        error => error.into(),
    }
}

/// What is printed meanwhile, where nothing is drawn.
struct Lines<'a> {
    interface: &'a str,
    is_json: bool,
    /// Whether nobody reads it any more.
    unread: bool,
    /// How many lines could not be printed, and why; and whether a part of the last was.
    untold: Option<(u64, String)>,
    is_torn: bool,
}

impl Reporter<Outputs> for Lines<'_> {
    type Error = anyhow::Error;

    fn begins(&mut self, report: &Report) -> Result<()> {
        self.tell(|out| json::write_first(report, out))
    }

    fn bursts(&mut self, bursts: &[Burst]) -> Result<()> {
        if !self.is_json {
            let write =
                |mut out: &mut dyn Write| bursts.iter().try_for_each(|burst| text::write_burst(burst, &mut out));
            return print(false, |_| Ok(()), write);
        }
        self.tell(|out| bursts.iter().try_for_each(|burst| json::write_burst(burst, out)))
    }

    fn acting(&mut self, acting: &Acting) -> Result<()> {
        note(&acting.meaning);
        self.tell(|out| json::write_acting(acting, out))
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
        let untold = self.untold().map(|news| Unwritten { line: news.meaning.clone(), news });
        unwritten.chain(untold).collect()
    }

    fn is_unheard(&self) -> bool {
        self.unread
    }
}

impl Lines<'_> {
    /// JSON Lines are printed as they come, as long as somebody reads; a person reads the report at the end.
    fn tell(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<()> {
        if !self.is_json || self.unread {
            return Ok(());
        }
        // What a disk took of a line before it was full ends there.
        let mut lines = if self.is_torn { vec![b'\n'] } else { Vec::new() };
        write(&mut lines)?;
        let mut out = io::stdout().lock();
        match out.write_all(&lines).and_then(|()| out.flush()) {
            Ok(()) => self.is_torn = false,
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.unread = true,
            Err(why) => {
                let count = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64;
                let (lost, _) = self.untold.get_or_insert_with(|| (0, why.to_string()));
                *lost += count;
                self.is_torn = true;
            }
        }
        Ok(())
    }

    /// Lines that could not be printed, since standard output could not be written.
    fn untold(&self) -> Option<Skipped> {
        let (lines, why) = self.untold.as_ref()?;
        noted("lines_unwritten", *lines, &format!("lines that could not be written to standard output: {why}"))
    }

    /// Prints the report; what could not be printed.
    fn end(&self, report: &Report) -> Option<String> {
        let json = |mut out: &mut dyn Write| {
            if self.is_torn {
                out.write_all(b"\n")?;
            }
            json::write_summary(report, &mut out)
        };
        let untold = print(self.is_json, json, |mut out| text::write(report, &mut out)).err();
        if untold.is_some() {
            // What could not be printed is not lost for that.
            let _ = text::write(report, &mut anstream::stderr().lock());
        }
        untold.map(|why| format!("{why:#}")).or_else(|| self.untold().map(|note| note.meaning))
    }
}
