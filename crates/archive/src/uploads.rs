//! Which volumes of a folder are in object storage.
//!
//! A folder with the file `uploads.jsonl` is uploaded. The file is rewritten and replaced as a whole, like the catalogue. It lists the volumes
//! whose upload has begun, and those that the store is known to have. Three rules follow:
//!
//! - A volume is listed before its first byte is sent.
//! - Listed volumes are never joined: the store would have their records twice, under two names.
//! - Volumes that are not confirmed are never removed because of age or size, and neither are those behind them.

mod list;

use crate::catalogue::{Catalogue, Entry, PARQUET};
use crate::error::{Damage, FolderError};
use crate::folder::{Folder, Lock};
use crate::recorder::Recorder;
use crate::volume::Columns;
use crate::volume::sums::Checked;
use bytes::Bytes;
pub(crate) use list::UploadList;
use parquet::file::reader::{ChunkReader, Length};
use queuescope_log::Schema;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What is wrong with a list that was made for another folder.
const COPY: &str =
    "it belongs to a folder that was made at another time, so this folder is a copy, and would be uploaded twice";

/// The uploads of a folder: what waits, and what the store has.
///
/// ```
/// use queuescope_archive::{Recorder, RecorderOptions, Uploads};
/// use queuescope_log::{Schema, departure};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("log");
/// let (recorder, _) = Recorder::open(&path, Schema::departure(), RecorderOptions::default())?;
/// recorder.append(&[0; 3 * departure::SIZE])?;
/// recorder.finish()?;
///
/// let mut uploads = Uploads::open(&path, "s3://bucket/fleet")?;
/// let [volume] = &uploads.waiting()?[..] else { panic!("one was made") };
/// assert_eq!((volume.positions(), volume.records()), (0..3, 3));
/// uploads.begin(volume)?;
/// // Here the bytes of `uploads.file(volume)?` go to the store, and are compared with what it returns.
/// uploads.confirm(volume)?;
/// assert!(uploads.waiting()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Uploads {
    folder: Folder,
    list: UploadList,
    _lock: Option<Lock>,
}

/// A volume that waits to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedVolume(Entry);

/// The Parquet file of a volume. Each byte is checked before it is returned.
#[derive(Debug)]
pub struct VolumeFile {
    path: PathBuf,
    file: Checked,
}

impl Uploads {
    /// The uploads to `to` of a folder that nobody records to. Until this is dropped, nobody else can record to it, or join or remove volumes.
    ///
    /// # Errors
    /// Fails if the folder is not a log, is being recorded to, or cannot be written, or if its list of uploads is damaged or belongs to another
    /// folder.
    pub fn open(path: &Path, to: &str) -> Result<Self, FolderError> {
        let folder = Folder::open(path)?;
        let lock = Folder::lock(path)?;
        Self::of(folder, to, Some(lock))
    }

    /// The uploads to `to` of a folder that this process records to. Begin them before the first record is appended: from then on, no volume is
    /// removed before it is confirmed. End them before the recorder is dropped.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn beside(recorder: &Recorder, to: &str) -> Result<Self, FolderError> {
        Self::of(Folder::open(recorder.path())?, to, None)
    }

    fn of(folder: Folder, to: &str, lock: Option<Lock>) -> Result<Self, FolderError> {
        let (store, known) = (folder.made_at(), UploadList::read(&folder.path)?);
        if known.as_ref().is_some_and(|known| known.store() != store) {
            return Err(Damage::new(&UploadList::path(&folder.path), COPY).into());
        }
        // What another store has says nothing about this one.
        let known = known.filter(|known| known.to() == to);
        if let Some(list) = known {
            return Ok(Self { folder, list, _lock: lock });
        }
        let uploads = Self { folder, list: UploadList::new(store, to), _lock: lock };
        uploads.list.write(&uploads.folder)?;
        Ok(uploads)
    }

    /// Names the folder: when it was made, in nanoseconds since 1970. Another folder in its place has another number.
    pub fn store(&self) -> u64 {
        self.list.store()
    }

    /// The host whose records were uploaded to this place before, if that is known.
    pub fn host(&self) -> Option<&str> {
        self.list.host()
    }

    /// Notes the host whose records they are. The names of their objects have it.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn set_host(&mut self, host: &str) -> Result<(), FolderError> {
        self.list.set_host(host);
        self.list.write(&self.folder)
    }

    /// Whether all volumes were [compared](Self::compared) with what the store has. If not, the store may have some that this list lacks: an earlier
    /// list was lost, or the folder was uploaded to another place meanwhile.
    pub fn is_compared(&self) -> bool {
        self.list.is_compared()
    }

    /// Notes that all volumes were compared with what the store has, and that it has none of their records in other objects.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn compared(&mut self) -> Result<(), FolderError> {
        self.list.set_compared(true);
        self.list.write(&self.folder).inspect_err(|_| self.list.set_compared(false))
    }

    /// The schema of the records.
    pub fn schema(&self) -> &Schema {
        &self.folder.schema
    }

    /// The names of the columns of a volume.
    pub fn columns(&self) -> BTreeSet<String> {
        let columns = Columns::new(&self.folder.schema);
        columns.arrow.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The volumes that are not confirmed, in the order of their records. Confirmed volumes that the folder no longer has are forgotten.
    ///
    /// # Errors
    /// Fails if the catalogue cannot be read.
    pub fn waiting(&mut self) -> Result<Vec<SealedVolume>, FolderError> {
        let volumes = self.volumes()?;
        self.list.retain(&volumes.iter().map(|entry| entry.name.as_str()).collect());
        let waiting = volumes.into_iter().filter(|entry| !self.list.is_confirmed(&entry.name));
        Ok(waiting.map(SealedVolume).collect())
    }

    /// Notes that a volume is going to be sent. Returns when this survives a loss of power.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn begin(&mut self, volume: &SealedVolume) -> Result<(), FolderError> {
        if self.list.begin(&volume.0.name) { self.list.write(&self.folder) } else { Ok(()) }
    }

    /// Notes that the store has a volume whole.
    ///
    /// # Errors
    /// Fails if the folder cannot be written. Then the volume still waits.
    pub fn confirm(&mut self, volume: &SealedVolume) -> Result<(), FolderError> {
        self.list.confirm(&volume.0.name);
        self.list.write(&self.folder).inspect_err(|_| self.list.unconfirm(&volume.0.name))
    }

    /// Opens the Parquet file of a volume.
    ///
    /// # Errors
    /// Fails if it cannot be opened, or is not as it was written.
    pub fn file(&self, volume: &SealedVolume) -> Result<VolumeFile, FolderError> {
        let folder = &self.folder.path;
        let file = volume.0.open(folder, PARQUET, &volume.0.sums(folder)?)?;
        Ok(VolumeFile { path: volume.0.path(folder, PARQUET), file })
    }

    fn volumes(&self) -> Result<Vec<Entry>, FolderError> {
        self.folder.still_there()?;
        Ok(Catalogue::read(&self.folder.path)?.volumes)
    }
}

impl SealedVolume {
    /// The positions that its records are among. If the records were of several days, other volumes have the same positions.
    pub fn positions(&self) -> Range<u64> {
        self.0.first()..self.0.end()
    }

    /// How many records it has.
    pub fn records(&self) -> u64 {
        self.0.records()
    }

    /// The number of records that were lost before and between its own.
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }

    /// The earliest and the latest time of its records, in nanoseconds since 1970; `None` if they have no time.
    pub fn times(&self) -> Option<(u64, u64)> {
        let times = self.0.groups.iter().map(|group| group.times);
        times.reduce(|one, other| one.zip(other).map(|(one, other)| (one.0.min(other.0), one.1.max(other.1))))?
    }

    /// The folder of its day, `date=2026-11-22`; empty if its records have no time.
    pub fn day(&self) -> &str {
        self.0.name.split_once('/').map_or("", |(day, _)| day)
    }

    /// The size of its files in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }
}

impl VolumeFile {
    /// Its size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a Parquet file is never empty")]
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// The bytes in a range that ends within the file.
    ///
    /// # Errors
    /// Fails if they cannot be read, or are not as they were written.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes, FolderError> {
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.file.get_bytes(range.start, length).map_err(|error| FolderError::volume(&self.path, &error))
    }
}
