//! Uploads what waits.
//!
//! For each volume: the list of uploads notes it, its bytes are sent, the store returns them, and if they have the same length and SHA-256, the
//! list confirms it. An object appears whole or not at all: stores complete an upload in one step. A volume has one name, so whatever
//! happened to an earlier attempt, the next one leaves one object. If the store has an object of this name already, only the comparison
//! is left.

use super::{PARTITIONS, UploadError, UploadStatus, UploadTarget, VolumeObject};
use crate::agent::Backoff;
use crate::identity::MemberName;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStoreExt, PutPayload};
use queuescope_archive::{SealedVolume, Uploads, VolumeFile};
use queuescope_wire::Nanos;
use sha2::{Digest, Sha256};
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;

/// Parameters of an uploader.
#[derive(Debug, Clone)]
pub struct UploadParams {
    /// The most bytes that are sent at once, and are in memory. Larger files are sent in several parts. Stores want 5 MiB or more.
    pub part: u64,
    /// Time between two looks for new volumes.
    pub interval: Nanos,
    /// The most time for a call to the store, and for each piece of an answer.
    pub call: Nanos,
    /// Pauses after errors.
    pub backoff: Backoff,
}

impl Default for UploadParams {
    fn default() -> Self {
        Self {
            part: 8 << 20,
            interval: Nanos(5_000_000_000),
            call: Nanos(300_000_000_000),
            backoff: Backoff::between(Nanos(1_000_000_000), Nanos(60_000_000_000)),
        }
    }
}

/// What happens to an uploader, for its notes.
#[derive(Debug)]
pub enum UploadEvent {
    /// Something was not uploaded, and is tried again after a pause.
    Failed {
        /// Why.
        why: String,
        /// The pause.
        pause: Nanos,
    },
    /// Everything that waited is uploaded, after an error.
    Recovered,
}

/// Uploads the volumes of a folder.
#[derive(Debug)]
pub struct Uploader {
    uploads: Uploads,
    target: UploadTarget,
    host: MemberName,
    params: UploadParams,
    status: Arc<UploadStatus>,
    /// What the store has of this folder, until all volumes were compared with it.
    there: Option<Vec<VolumeObject>>,
}

/// The size and the SHA-256 of a file.
type Sum = (u64, [u8; 32]);

impl Uploader {
    /// Uploads a folder as the records of a host.
    ///
    /// # Errors
    /// Fails if an attribute of the records has the name of a partition, or if the folder was uploaded to this place as the records of another host.
    pub fn new(
        mut uploads: Uploads,
        target: UploadTarget,
        host: MemberName,
        params: UploadParams,
    ) -> Result<Self, UploadError> {
        let columns = uploads.columns();
        if let Some(column) = PARTITIONS.into_iter().find(|name| columns.contains(*name)) {
            return Err(UploadError::Column { column: column.to_owned() });
        }
        match uploads.host() {
            Some(earlier) if earlier != host.as_str() => {
                let (place, earlier) = (target.url().to_owned(), earlier.to_owned());
                return Err(UploadError::OtherHost { place, earlier, given: host.to_string() });
            }
            Some(_) => {}
            None => uploads.set_host(host.as_str())?,
        }
        Ok(Self { uploads, target, host, params, status: Arc::default(), there: None })
    }

    /// Its counts.
    pub fn status(&self) -> Arc<UploadStatus> {
        Arc::clone(&self.status)
    }

    /// Uploads for ever; dropping this future at any moment is safe.
    pub async fn run(&mut self, report: &(dyn Fn(UploadEvent) + Sync)) -> Infallible {
        let (mut backoff, random, mut tries) = (self.params.backoff.clone(), RandomState::new(), 0u64);
        let mut has_failed = false;
        loop {
            let pause = match self.pass().await {
                Ok(()) => {
                    backoff.reset();
                    if std::mem::take(&mut has_failed) {
                        report(UploadEvent::Recovered);
                    }
                    self.params.interval
                }
                Err(error) => {
                    tries += 1;
                    let pause = backoff.pause(random.hash_one(tries));
                    // Once for each trouble: stores may be away for days.
                    if !std::mem::replace(&mut has_failed, true) {
                        report(UploadEvent::Failed { why: error.to_string(), pause });
                    }
                    pause
                }
            };
            sleep(Duration::from_nanos(pause.0)).await;
            if has_failed {
                self.status.change(|counts| counts.retries += 1);
            }
        }
    }

    /// Uploads all volumes that wait now, in the order of their records. One that is damaged does not stop the others.
    ///
    /// # Errors
    /// Returns the first error. What was not uploaded still waits.
    pub async fn pass(&mut self) -> Result<(), UploadError> {
        let passed = self.pass_through().await;
        let trouble = passed.as_ref().err().map(ToString::to_string);
        self.status.change(|counts| counts.trouble = trouble);
        passed
    }

    async fn pass_through(&mut self) -> Result<(), UploadError> {
        let waiting = self.uploads.waiting()?;
        let mut bytes: u64 = waiting.iter().map(SealedVolume::bytes).sum();
        let mut left = waiting.len() as u64;
        self.status.change(|counts| (counts.waiting, counts.waiting_bytes) = (left, bytes));
        if left > 0 && self.there.is_none() && !self.uploads.is_compared() {
            self.there = Some(self.listed().await?);
        }
        let mut first = Ok(());
        for volume in &waiting {
            match self.upload(volume).await {
                Ok(sent) => {
                    (left, bytes) = (left - 1, bytes.saturating_sub(volume.bytes()));
                    self.status.change(|counts| {
                        (counts.waiting, counts.waiting_bytes) = (left, bytes);
                        (counts.confirmed, counts.confirmed_bytes) =
                            (counts.confirmed + 1, counts.confirmed_bytes + sent);
                    });
                }
                Err(error) if error.is_of_one_volume() => first = first.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        if first.is_ok() && self.there.take().is_some() {
            self.uploads.compared()?;
        }
        first
    }

    /// Uploads a volume; returns the size of its file in bytes.
    async fn upload(&mut self, volume: &SealedVolume) -> Result<u64, UploadError> {
        let object = VolumeObject::of(volume, self.uploads.schema().name(), &self.host, self.uploads.store());
        let mut there = self.there.iter().flatten();
        if let Some(other) = there.find(|other| **other != object && other.overlaps(&object)) {
            return Err(UploadError::Twice { object: object.to_string(), other: other.to_string() });
        }
        let (path, file) = (object.path(&self.target.prefix), self.uploads.file(volume)?);
        self.uploads.begin(volume)?;
        if self.size_there(&path).await? == Some(file.len()) {
            // Of an earlier attempt that was not confirmed.
            let sum = sum_of(&file, self.params.part)?;
            if self.returned(&path).await? == sum {
                self.uploads.confirm(volume)?;
                return Ok(sum.0);
            }
        }
        let sent = self.send(&path, &file).await?;
        let found = self.returned(&path).await?;
        if found != sent {
            // Until it is sent again, nothing reads it.
            let _ = self.call("delete", &path, self.target.store.delete(&path)).await;
            return Err(UploadError::Differs { object: object.to_string(), sent: sent.0, found: found.0 });
        }
        self.uploads.confirm(volume)?;
        Ok(sent.0)
    }

    /// The size of an object; `None` if there is none.
    async fn size_there(&self, path: &Path) -> Result<Option<u64>, UploadError> {
        match self.call("look for", path, self.target.store.head(path)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(UploadError::Store { why: Error::NotFound { .. }, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a file: whole, or in parts that become an object together.
    async fn send(&self, path: &Path, file: &VolumeFile) -> Result<Sum, UploadError> {
        let store = &self.target.store;
        if file.len() <= self.params.part {
            let bytes = file.read(0..file.len())?;
            let sum = (file.len(), Sha256::digest(&bytes).into());
            self.call("write", path, store.put(path, PutPayload::from(bytes))).await?;
            return Ok(sum);
        }
        let mut upload = self.call("begin to write", path, store.put_multipart(path)).await?;
        let sent = async {
            let mut sum = Sha256::new();
            for range in parts(file.len(), self.params.part) {
                let bytes = file.read(range)?;
                sum.update(&bytes);
                self.call("write a part of", path, upload.put_part(PutPayload::from(bytes))).await?;
            }
            self.call("complete", path, upload.complete()).await?;
            Ok((file.len(), sum.finalize().into()))
        };
        let sent = sent.await;
        if sent.is_err() {
            // Parts without an object cost room in the store, and nothing reads them.
            let _ = self.call("give up", path, upload.abort()).await;
        }
        sent
    }

    /// The size and the SHA-256 of what the store returns.
    async fn returned(&self, path: &Path) -> Result<Sum, UploadError> {
        let mut bytes = self.call("read", path, self.target.store.get(path)).await?.into_stream();
        let (mut length, mut sum) = (0, Sha256::new());
        while let Some(piece) = self.call("read", path, async { bytes.next().await.transpose() }).await? {
            length += piece.len() as u64;
            sum.update(&piece);
        }
        Ok((length, sum.finalize().into()))
    }

    /// The objects of this folder that the store has.
    async fn listed(&self) -> Result<Vec<VolumeObject>, UploadError> {
        let folder = VolumeObject::folder(self.uploads.schema().name(), &self.host);
        let mut found = self.target.objects(&folder, Duration::from_nanos(self.params.call.0)).await?;
        found.retain(|(object, _)| object.store == self.uploads.store());
        Ok(found.into_iter().map(|(object, _)| object).collect())
    }

    /// Waits for a call to the store, but not for ever.
    async fn call<T>(
        &self,
        what: &'static str,
        path: &Path,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, UploadError> {
        within(Duration::from_nanos(self.params.call.0), call).await.map_err(|why| UploadError::store(what, path, why))
    }
}

/// Waits for a call to a store, but not for ever.
pub(super) async fn within<T>(
    most: Duration,
    call: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    let late = |_| {
        let why = format!("no answer within {} s", most.as_secs());
        Err(Error::Generic { store: "call", source: why.into() })
    };
    timeout(most, call).await.unwrap_or_else(late)
}

/// The size and the SHA-256 of a file.
fn sum_of(file: &VolumeFile, part: u64) -> Result<Sum, UploadError> {
    let mut sum = Sha256::new();
    for range in parts(file.len(), part) {
        sum.update(&file.read(range)?);
    }
    Ok((file.len(), sum.finalize().into()))
}

/// Ranges of at most `part` bytes.
fn parts(length: u64, part: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let part = part.max(1);
    (0..length.div_ceil(part)).map(move |number| number * part..((number + 1) * part).min(length))
}
