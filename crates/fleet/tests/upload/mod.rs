//! Uploads to stores that fail at every call, and to servers that speak the protocols of S3, Google Cloud Storage and Azure.

mod azure;
mod faults;
mod manifest;
mod s3;
mod store;

use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use queuescope_archive::{Recorder, RecorderOptions, SealedVolume, Uploads};
use queuescope_fleet::upload::{UploadError, UploadParams, UploadTarget, Uploader, VolumeObject};
use queuescope_log::Schema;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Fault, Faulty};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::StreamExt;

const HOST: &str = "web-1";
/// Bytes that are sent at once: less than any volume has.
const PART: u64 = 900;
const AN_HOUR: u64 = 3_600_000_000_000;

/// Records with a time and a number.
fn schema() -> Schema {
    let text = "name = \"timed\"\ntime = \"at\"\n[[attribute]]\nname = \"at\"\nkind = \"time\"\n\
                [[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
    Schema::parse("timed.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// A folder on a host.
struct Log {
    _folder: TempDir,
    path: PathBuf,
    records: u64,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        Self { path: folder.path().join("log"), _folder: folder, records: 0 }
    }

    /// Adds a volume for each ten records, one record each ten minutes.
    fn record(&mut self, records: u64) {
        let options = RecorderOptions { journal_records: 10, memory: 1 << 23, ..RecorderOptions::default() };
        let (recorder, _) = Recorder::open(&self.path, &schema(), options).unwrap_or_else(|error| panic!("{error}"));
        for number in self.records..self.records + records {
            let record = (number * AN_HOUR / 6).to_be_bytes().into_iter().chain((number as u32).to_be_bytes());
            assert_eq!(recorder.append(&record.collect::<Vec<_>>()).expect("there is room").refused, 0);
        }
        recorder.finish().expect("there is room");
        self.records += records;
    }

    fn uploader(&self, store: Arc<dyn ObjectStore>) -> Uploader {
        let target = target(store);
        let uploads = Uploads::open(&self.path, target.url()).unwrap_or_else(|error| panic!("{error}"));
        uploader(uploads, target).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The files of all volumes, by the objects that they become.
    fn volumes(&self) -> BTreeMap<VolumeObject, Vec<u8>> {
        let (list, kept) = (self.path.join("uploads.jsonl"), self.path.join("kept"));
        let is_there = std::fs::rename(&list, &kept).is_ok();
        let mut uploads = Uploads::open(&self.path, "elsewhere").expect("it is a log");
        let store = uploads.store();
        let bytes = |uploads: &Uploads, volume: &SealedVolume| {
            let file = uploads.file(volume).expect("it is there");
            file.read(0..file.len()).expect("it is whole").to_vec()
        };
        // Nothing of this place is confirmed.
        let waiting = uploads.waiting().expect("it is whole");
        let object = |volume: &SealedVolume| VolumeObject::of(volume, "timed", &host(), store);
        let volumes = waiting.iter().map(|volume| (object(volume), bytes(&uploads, volume))).collect();
        if is_there { std::fs::rename(&kept, &list) } else { std::fs::remove_file(&list) }.expect("it is there");
        volumes
    }
}

fn host() -> queuescope_fleet::identity::MemberName {
    HOST.parse().expect("it is a name")
}

fn uploader(uploads: Uploads, target: UploadTarget) -> Result<Uploader, UploadError> {
    Uploader::new(uploads, target, host(), UploadParams { part: PART, ..UploadParams::default() })
}

fn target(store: Arc<dyn ObjectStore>) -> UploadTarget {
    UploadTarget::new(store, ObjectPath::from("fleet"), "memory:///fleet")
}

/// A runtime whose clock jumps to the next timer when nothing else is left to do.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().expect("it can start")
}

/// All objects of a store, by name. Each must be a volume.
async fn objects(store: &dyn ObjectStore) -> BTreeMap<VolumeObject, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut listing = store.list(None);
    while let Some(meta) = listing.next().await {
        let location = meta.expect("it can be listed").location;
        let name = location.as_ref().strip_prefix("fleet/").expect("the prefix is always there");
        let object = VolumeObject::parse(name).unwrap_or_else(|| panic!("{name} is not the name of a volume"));
        let bytes = store.get(&location).await.expect("it is there").bytes().await.expect("it is there");
        found.insert(object, bytes.to_vec());
    }
    found
}

fn file_store(path: &Path) -> UploadTarget {
    UploadTarget::parse(&format!("file://{}", path.display()), &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_folder_in_the_file_system_gets_every_volume_once() {
    let (mut log, place) = (Log::new(), tempfile::tempdir().expect("there is room"));
    log.record(35);
    let expected = log.volumes();
    for _ in 0..2 {
        let target = file_store(place.path());
        let uploads = Uploads::open(&log.path, target.url()).expect("it is a log");
        let mut uploader = uploader(uploads, target).expect("it can be uploaded");
        runtime().block_on(uploader.pass()).expect("there is room");
        assert_eq!(uploader.status().counts().waiting, 0);
        for (object, bytes) in &expected {
            let name = place.path().join(object.to_string());
            assert_eq!(&std::fs::read(&name).expect("it is there"), bytes, "{}", name.display());
        }
    }
    let names: Vec<_> = expected.keys().map(ToString::to_string).collect();
    assert!(names[0].starts_with("timed/host=web-1/date=1970-01-01/first_hour=00/"), "{names:?}");
    assert!(names[3].starts_with("timed/host=web-1/date=1970-01-01/first_hour=05/"), "{names:?}");
}

#[test]
fn a_lost_list_sends_nothing_twice() {
    let mut log = Log::new();
    log.record(25);
    let store = Arc::new(InMemory::new());
    let runtime = runtime();
    runtime.block_on(log.uploader(Arc::clone(&store) as _).pass()).expect("it works");
    let before = runtime.block_on(objects(&*store));
    // The list is lost, and volumes are joined before the next upload begins, which is killed at once.
    std::fs::remove_file(log.path.join("uploads.jsonl")).expect("it is there");
    log.record(3);
    queuescope_archive::compact(&log.path).expect("it is whole");
    let killed = Faulty::new(Arc::clone(&store), Fault::KilledBefore, 0);
    assert!(runtime.block_on(log.uploader(Arc::new(killed)).pass()).is_err());
    for _ in 0..2 {
        let passed = runtime.block_on(log.uploader(Arc::clone(&store) as _).pass());
        let error = passed.expect_err("the store has some").to_string();
        assert!(error.contains("the store has some of its records in timed/host=web-1/"), "{error}");
        assert_eq!(runtime.block_on(objects(&*store)), before);
    }
}

#[test]
fn records_with_the_name_of_a_partition_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let text = "name = \"odd\"\n[[attribute]]\nname = \"first_hour\"\nkind = \"u32\"\n";
    let schema = Schema::parse("odd.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let path = folder.path().join("log");
    let (recorder, _) = Recorder::open(&path, &schema, RecorderOptions::default()).expect("there is room");
    recorder.finish().expect("there is room");
    let target = target(Arc::new(InMemory::new()));
    let error = uploader(Uploads::open(&path, target.url()).expect("it is a log"), target).expect_err("it collides");
    assert!(error.to_string().contains("'first_hour'"), "{error}");
}

#[test]
fn a_damaged_volume_is_never_sent_and_stops_no_other() {
    let mut log = Log::new();
    log.record(25);
    let expected = log.volumes();
    let first = log.path.join("archive/date=1970-01-01/00000000000000000000.parquet");
    let mut bytes = std::fs::read(&first).expect("it is there");
    bytes[50] ^= 1;
    std::fs::write(&first, bytes).expect("there is room");
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (runtime, mut uploader) = (runtime(), log.uploader(Arc::clone(&store)));
    let error = runtime.block_on(uploader.pass()).expect_err("one is damaged").to_string();
    assert!(error.contains("00000000000000000000.parquet is damaged"), "{error}");
    let counts = uploader.status().counts();
    assert_eq!((counts.waiting, counts.confirmed, counts.trouble), (1, 2, Some(error)));
    assert_eq!(runtime.block_on(objects(&*store)), expected.into_iter().skip(1).collect());
}

#[test]
fn a_folder_is_uploaded_as_one_host_to_a_place() {
    let mut log = Log::new();
    log.record(30);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let run = |mut uploader: Uploader| runtime().block_on(uploader.pass()).expect("the store works");
    run(log.uploader(Arc::clone(&store)));
    let target = target(Arc::clone(&store));
    let open = |place: &str| Uploads::open(&log.path, place).expect("it is a log");
    let other = "web-2".parse().expect("it is a name");
    let refused = Uploader::new(open(target.url()), target.clone(), other, UploadParams::default());
    let refused = refused.expect_err("it has the records of web-1").to_string();
    assert!(refused.contains("as the records of web-1") && refused.contains("--host web-1"), "{refused}");
    // The same host goes on, and another place has no host yet.
    run(log.uploader(store));
    assert_eq!(open(target.url()).host(), Some("web-1"));
    assert_eq!(open("elsewhere").host(), None);
}
