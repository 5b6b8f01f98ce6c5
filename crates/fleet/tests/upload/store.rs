//! A store in memory that fails at one call.

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_stream::{Stream, StreamExt};

type Listing<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send>>;

/// What happens at the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It has no effect.
    Before,
    /// It has its effect, and fails.
    After,
    /// The process is killed before it: no later call has an effect.
    KilledBefore,
    /// The process is killed after it.
    KilledAfter,
    /// No answer comes.
    Hangs,
    /// A bit of its bytes changes.
    Corrupts,
    /// The last byte is missing.
    Truncates,
}

impl Fault {
    pub const ALL: [Self; 7] = [
        Self::Before,
        Self::After,
        Self::KilledBefore,
        Self::KilledAfter,
        Self::Hangs,
        Self::Corrupts,
        Self::Truncates,
    ];
}

/// The store, with the fault at a call.
#[derive(Debug, Clone)]
pub struct Faulty {
    pub inner: Arc<InMemory>,
    fault: Fault,
    at: usize,
    calls: Arc<AtomicUsize>,
}

impl Faulty {
    pub fn new(inner: Arc<InMemory>, fault: Fault, at: usize) -> Self {
        Self { inner, fault, at, calls: Arc::default() }
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Runs a call; the bytes of its payload may change on the way.
    async fn call<T>(&self, bytes: PutPayload, call: impl AsyncFnOnce(PutPayload) -> Result<T>) -> Result<T> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let failed = || Err(Error::Generic { store: "faulty", source: "as the test wants".into() });
        let is_dead = matches!(self.fault, Fault::KilledBefore | Fault::KilledAfter) && number > self.at;
        if is_dead {
            return failed();
        }
        if number != self.at {
            return call(bytes).await;
        }
        match self.fault {
            Fault::Before | Fault::KilledBefore => failed(),
            Fault::After | Fault::KilledAfter => {
                call(bytes).await?;
                failed()
            }
            Fault::Hangs => std::future::pending().await,
            Fault::Corrupts | Fault::Truncates => call(self.changed(&bytes)).await,
        }
    }

    fn changed(&self, bytes: &PutPayload) -> PutPayload {
        let mut bytes: Vec<u8> = bytes.iter().flatten().copied().collect();
        if self.fault == Fault::Truncates {
            bytes.pop();
        } else if let Some(byte) = bytes.last_mut() {
            *byte ^= 1;
        }
        bytes.into()
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store that fails")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.call(bytes, async |bytes| self.inner.put_opts(path, bytes, options).await).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let begun = async |_| self.inner.put_multipart_opts(path, options).await;
        let upload = self.call(PutPayload::new(), begun).await?;
        Ok(Box::new(FaultyUpload { store: self.clone(), upload }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let before = self.calls();
        let found = self.call(PutPayload::new(), async |_| self.inner.get_opts(path, options).await).await?;
        if is_head || before != self.at || !matches!(self.fault, Fault::Corrupts | Fault::Truncates) {
            return Ok(found);
        }
        let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
        let bytes = self.changed(&found.bytes().await?.into());
        let pieces: Vec<_> = bytes.iter().cloned().map(Ok).collect();
        let payload = GetResultPayload::Stream(Box::pin(tokio_stream::iter(pieces)));
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }

    fn delete_stream(&self, paths: Listing<Path>) -> Listing<Path> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let is_dead = matches!(self.fault, Fault::KilledBefore | Fault::KilledAfter) && number > self.at;
        if is_dead {
            return Box::pin(tokio_stream::once(Err(Error::Generic { store: "faulty", source: "dead".into() })));
        }
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> Listing<ObjectMeta> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let is_dead = matches!(self.fault, Fault::KilledBefore | Fault::KilledAfter) && number >= self.at;
        match self.fault {
            Fault::Hangs if number == self.at => Box::pin(tokio_stream::pending()),
            Fault::Before | Fault::After if number == self.at => {
                // It fails in the middle.
                let failed = Err(Error::Generic { store: "faulty", source: "as the test wants".into() });
                Box::pin(self.inner.list(prefix).take(1).chain(tokio_stream::once(failed)))
            }
            _ if is_dead => {
                Box::pin(tokio_stream::once(Err(Error::Generic { store: "faulty", source: "dead".into() })))
            }
            _ => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    store: Faulty,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait::async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, bytes: PutPayload) -> UploadPart {
        let store = self.store.clone();
        let (number, fault) = (store.calls(), store.fault);
        let is_changed = number == store.at && matches!(fault, Fault::Corrupts | Fault::Truncates);
        let sent = self.upload.put_part(if is_changed { store.changed(&bytes) } else { bytes });
        Box::pin(async move { store.call(PutPayload::new(), async |_| sent.await).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let (store, upload) = (&self.store, &mut self.upload);
        store.call(PutPayload::new(), async |_| upload.complete().await).await
    }

    async fn abort(&mut self) -> Result<()> {
        let (store, upload) = (&self.store, &mut self.upload);
        store.call(PutPayload::new(), async |_| upload.abort().await).await
    }
}
