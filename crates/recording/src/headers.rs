//! Records the headers of frames in a folder.

use crate::alarms::{Alarms, wanted};
use crate::error::{Error, with_causes};
use crate::keep_options::{Derived, KeepOptions};
use crate::recording::{Notes, Recorded, Recording};
use crate::spool::Unwritten;
use queuescope_archive::Recorder;
use queuescope_ingest::notes::{noted, parser_notes};
use queuescope_ingest::records::{Frames, Records};
use queuescope_ingest::{CaptureInput, Flag, PacketFilter, Progress};
use queuescope_log::{LAST_TIME, Sampling};
use queuescope_pcap::Record;
use queuescope_report::model::Skipped;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::path::Path;
use std::sync::Arc;

/// Frames between updates of the progress.
const UPDATE: u64 = 65_536;

/// Selects the frames to record, and counts the others.
pub struct Headers {
    chosen: Option<PacketFilter<Frames>>,
    parser: Parser,
    sampling: Option<Sampling>,
    unsampled: u64,
    /// The times of the first and the last frame that the sample left out.
    unsampled_span: Option<(Nanos, Nanos)>,
    /// Which frames are looked at, if not all, and the number of the others.
    shedding: Option<Sampling>,
    shed: u64,
    frames: Frames,
}

/// A folder that frames are recorded to.
pub struct IntoFolder<'a> {
    recording: &'a Recording,
    alarms: Option<Alarms<'a>>,
}

/// The result of recording frames to a folder.
pub struct Kept {
    /// What was recorded.
    pub recorded: Recorded,
    /// How often a trigger fired.
    fired: u64,
}

impl Headers {
    /// Selects frames that match the expression `chosen`, and with `sample` one of that many of them.
    ///
    /// # Errors
    /// Fails if the expression is wrong.
    pub fn of(chosen: Option<&str>, inner: bool, sample: Option<u64>) -> Result<Self, Error> {
        Ok(Self {
            chosen: PacketFilter::<Frames>::from_flag(Flag::Where, chosen)?,
            parser: Parser::new(if inner { Tunnel::Inner } else { Tunnel::Outer }),
            sampling: sample.map(|one_of| Sampling::new(1.0 / one_of as f64, 0)).transpose()?,
            unsampled: 0,
            unsampled_span: None,
            shedding: None,
            shed: 0,
            frames: Frames::default(),
        })
    }

    /// Records a frame, if it is selected; returns whether it matches the expression.
    ///
    /// # Errors
    /// Fails if it cannot be kept, or if an earlier one could not.
    #[inline]
    pub fn keep(&mut self, frame: &Record<'_>, folder: &mut IntoFolder<'_>) -> Result<bool, Error> {
        if self.shedding.as_mut().is_some_and(|shedding| !shedding.keeps()) {
            self.shed += 1;
            return Ok(false);
        }
        let time = self.frames.time(frame);
        let parsed = self.parser.parse(LinkType::from_dlt(frame.link), frame.original_len, frame.data);
        if self.chosen.as_mut().is_some_and(|chosen| !chosen.holds(frame, time, parsed)) {
            return Ok(false);
        }
        // The folder leaves such a frame out, and triggers would take its time as the current one.
        let is_late = time.is_some_and(|time| time.0 > LAST_TIME);
        if !is_late {
            folder.look(time.unwrap_or_default())?;
        }
        if self.sampling.as_mut().is_none_or(Sampling::keeps) {
            folder.recording.push(self.frames.fill(frame, time, &parsed))?;
        } else {
            self.unsampled += 1;
            let at = time.unwrap_or_default();
            let (first, last) = self.unsampled_span.unwrap_or((at, at));
            self.unsampled_span = Some((first.min(at), last.max(at)));
        }
        Ok(true)
    }

    /// From now on only looks at one of `one_of` frames, at random: there is no time for more.
    ///
    /// # Errors
    /// Fails if the number is 0.
    pub fn shed(&mut self, one_of: u64) -> Result<(), Error> {
        self.shedding = (one_of != 1).then(|| Sampling::new(1.0 / one_of as f64, 0)).transpose()?;
        Ok(())
    }

    /// The number of frames that were not looked at because of [`shed`](Self::shed).
    pub fn shed_frames(&self) -> u64 {
        self.shed
    }

    /// Records all selected frames of a capture; returns the damage that ended it early, if any.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_all(
        &mut self,
        arriving: &mut CaptureInput,
        folder: &mut IntoFolder<'_>,
        progress: Progress<'_>,
    ) -> Result<Option<String>, Error> {
        let mut read = 0u64;
        let damage = loop {
            if read.is_multiple_of(UPDATE) {
                progress(arriving.reader.input_read(), read);
            }
            if arriving.may_wait() {
                folder.flush()?;
                self.note_unsampled(folder);
            }
            let frame = match arriving.reader.next_record() {
                Ok(Some(frame)) => frame,
                Ok(None) => break None,
                Err(error) => break arriving.damage(error).map(|error| error.to_string()),
            };
            read += 1;
            self.keep(&frame, folder)?;
        };
        progress(arriving.reader.input_read(), read);
        self.note_unsampled(folder);
        Ok(damage)
    }

    /// Notes in the folder what the sample left out, in the times of these frames.
    fn note_unsampled(&self, folder: &IntoFolder<'_>) {
        if let Some((first, last)) = self.unsampled_span {
            folder.recording.left_out_from(first);
            folder.left_out(last, &self.sampled_out().collect::<Vec<_>>());
        }
    }

    /// Whether a frame matches the expression. Without an expression this costs nothing.
    #[inline]
    pub fn holds(&mut self, frame: &Record<'_>) -> bool {
        let Some(chosen) = &mut self.chosen else { return true };
        let time = self.frames.time(frame);
        let parsed = self.parser.parse(LinkType::from_dlt(frame.link), frame.original_len, frame.data);
        chosen.holds(frame, time, parsed)
    }

    /// Frames left out by the expression.
    pub fn left_out(&self) -> impl Iterator<Item = Skipped> + use<> {
        self.chosen.as_ref().and_then(PacketFilter::note).into_iter()
    }

    /// Packets left out by the sample, and unusual headers.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> {
        self.sampled_out().chain(parser_notes(&self.parser))
    }

    /// Packets left out by the sample, and because there was no time.
    pub fn sampled_out(&self) -> impl Iterator<Item = Skipped> + use<> {
        let unsampled = noted("not_sampled", self.unsampled, "packets left out by --sample");
        let shed = noted("shed", self.shed, "packets left out because they took more time than --cpu allows");
        unsampled.into_iter().chain(shed)
    }
}

impl IntoFolder<'_> {
    /// The recorder, for readers in other threads, which must be gone before the folder is finished.
    pub fn recorder(&self) -> Arc<Recorder> {
        self.recording.shared_recorder()
    }

    /// From now on also evaluates triggers that are [installed](Recorder::install) while frames are recorded.
    ///
    /// # Errors
    /// Fails if alerts cannot be written.
    pub fn take_installed(&mut self) -> Result<(), Error> {
        self.alarms = Some(Alarms::with_installed(self.alarms.take(), self.recording)?);
        Ok(())
    }

    /// Checks the triggers that are due by `time`, over the frames so far: for a time without frames. Does nothing if time goes back.
    ///
    /// # Errors
    /// Fails if alerts cannot be written.
    #[inline]
    pub fn look(&mut self, time: Nanos) -> Result<(), Error> {
        if let Some(alarms) = &mut self.alarms
            && let Err(why) = alarms.at(time)
        {
            if !self.recording.goes_on() {
                return Err(why);
            }
            self.recording.fail(&with_causes(&why));
            self.alarms = None;
        }
        Ok(())
    }

    /// Notes what has been left out so far: see [`Recording::left_out`](crate::Recording::left_out).
    pub fn left_out(&self, now: Nanos, totals: &[Skipped]) {
        self.recording.left_out(now, Nanos::ZERO, totals);
    }

    /// Whether there are triggers to look at, or some may be installed.
    pub fn has_triggers(&self) -> bool {
        self.alarms.is_some()
    }

    /// From now on, records that cannot be kept are counted, and are not an error.
    pub fn go_on(&self) {
        self.recording.go_on();
    }

    /// Packets that could not be kept, once there is an error.
    pub fn unwritten(&self) -> Option<Unwritten> {
        self.recording.unwritten()
    }

    /// Writes the frames so far. Call this when the next frame may take a while.
    ///
    /// # Errors
    /// Fails if they cannot be kept.
    pub fn flush(&self) -> Result<(), Error> {
        self.recording.flush()
    }
}

impl Kept {
    /// Alerts, and missing packets.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let fired = noted("triggers_fired", self.fired, "times a trigger fired; queuescope watch --all prints them");
        self.recorded.short().chain(fired)
    }
}

/// Opens a folder for frames, lets `put` record frames, and finishes the folder. Returns the result of `put`, which is the damage of its input,
/// and what was recorded, even if `put` failed.
///
/// # Errors
/// Fails if the folder cannot be recorded to, or if not all packets can be kept.
pub fn into_folder(
    path: &Path,
    keeping: &KeepOptions,
    derived: &Derived,
    notes: Notes,
    put: impl FnOnce(&mut IntoFolder<'_>) -> Result<Option<String>, Error>,
) -> Result<(Result<Option<String>, Error>, Kept), Error> {
    let definitions = wanted(path, Frames::schema(), derived)?;
    let recording = Recording::open(path, Frames::schema(), keeping, Some(&definitions), notes)?;
    let mut folder = IntoFolder { alarms: Alarms::from_definitions(&recording, &definitions)?, recording: &recording };
    let ended = put(&mut folder);
    // Records are kept even if a later step failed.
    let looked = if ended.is_ok() { folder.alarms.as_mut().map_or(Ok(()), Alarms::finish) } else { Ok(()) };
    let looked = match looked {
        Err(why) if recording.goes_on() => {
            recording.fail(&with_causes(&why));
            Ok(())
        }
        looked => looked,
    };
    let fired = folder.alarms.map_or(0, |alarms| alarms.fired);
    match (ended.and_then(|damage| looked.map(|()| damage)), recording.finish()) {
        (damage, Ok(recorded)) => Ok((damage, Kept { recorded, fired })),
        (Ok(None), Err(error)) => Err(error),
        (Ok(Some(damage)), Err(error)) => Err(Error::Damaged { error: Box::new(error), damage }),
        // Both are the same error. The last one includes how much is kept.
        (Err(Error::Record(_)), Err(last)) => Err(last),
        (Err(error), Err(other)) => Err(Error::both(error, other)),
    }
}
