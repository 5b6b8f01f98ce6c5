//! Records on their way to a folder.

use crate::args::Keeping;
use crate::capture::noted;
use anyhow::Result;
use queuescope_archive::{Full, Recorder, RecorderOptions, Recovery, VOLUME_RECORDS};
use queuescope_log::Schema;
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use std::path::{Path, PathBuf};

/// Records that are appended at once.
const BATCH: usize = 256;

/// A folder that is recorded to.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    recorder: Recorder,
    recovery: Recovery,
    batch: Vec<u8>,
    full: usize,
    refused: u64,
}

/// What a folder has when nothing more comes.
#[derive(Debug)]
pub struct Recorded {
    /// Which.
    pub path: PathBuf,
    /// Records that came to those that were there.
    pub records: u64,
    /// Records for which there was no memory.
    pub refused: u64,
    /// Packets that were not recorded for other reasons.
    pub others: Vec<Skipped>,
    /// What was there.
    pub recovery: Recovery,
}

impl Recording {
    /// Goes on with a folder, or makes it.
    ///
    /// # Errors
    /// If it cannot be recorded to, or has records of another schema.
    pub fn open(path: &Path, schema: &Schema, keeping: &Keeping) -> Result<Self> {
        let options = RecorderOptions {
            memory: keeping.log_memory.0,
            full: Full::Wait,
            durability: keeping.durability.into(),
            journal_records: VOLUME_RECORDS,
            archive: true,
            indexes: Vec::new(),
        };
        let (recorder, recovery) = Recorder::open(path, schema, options)?;
        let full = BATCH * schema.record_size();
        Ok(Self { path: path.to_owned(), recorder, recovery, batch: Vec::with_capacity(full), full, refused: 0 })
    }

    /// One more record.
    ///
    /// # Errors
    /// If it cannot be kept, or one before it could not.
    #[inline]
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        self.batch.extend_from_slice(record);
        if self.batch.len() >= self.full { self.append() } else { Ok(()) }
    }

    fn append(&mut self) -> Result<()> {
        self.refused += self.recorder.append(&self.batch)?.refused;
        self.batch.clear();
        Ok(())
    }

    /// Nothing more comes: what is left is written.
    ///
    /// # Errors
    /// If not all is kept.
    pub fn finish(mut self) -> Result<Recorded> {
        self.append()?;
        let kept = self.recorder.finish()?.records;
        let Self { path, recovery, refused, .. } = self;
        Ok(Recorded { path, records: kept - recovery.records, refused, others: Vec::new(), recovery })
    }
}

impl Recorded {
    /// The same for a report.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let path = self.path.display();
        let before = self.recovery.records;
        let behind = if before > 0 { format!(", behind {} that were there", count(before)) } else { String::new() };
        let recorded = Skipped {
            reason: "recorded".to_owned(),
            count: self.records,
            meaning: format!("packets put into {path}{behind}"),
        };
        let cut = self.recovery.cut.as_ref().and_then(|cut| {
            let meaning = format!(
                "bytes at the end of {} that were not whole, since who recorded last was stopped; cut off",
                cut.path.display()
            );
            noted("cut_off", cut.bytes, &meaning)
        });
        let refused = "packets for which --log-memory is too little; not recorded";
        let refused = noted("over_log_memory", self.refused, refused);
        [Some(recorded), cut, refused].into_iter().flatten().chain(self.others.clone())
    }

    /// A part is not all.
    pub fn damage(&self) -> Option<String> {
        let refused = self.refused;
        let why =
            || format!("--log-memory is too little for {refused} packets; only those before them are in the folder");
        (refused > 0).then(why)
    }
}
