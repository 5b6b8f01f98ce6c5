//! An agent without a source, in a process of its own, until its standard input is closed.

use queuescope_archive::{Recorder, RecorderOptions};
use queuescope_fleet::agent::{AgentConnection, Served};
use queuescope_fleet::identity::{Credentials, CurrentCredentials};
use queuescope_log::Schema;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The memory of a log: as little as a recorder takes.
const MEMORY: u64 = 150_000_000;

/// Runs an agent: its folder, and the coordinator's address.
pub fn run(arguments: &[String]) {
    let [folder, coordinator] = arguments else { return eprintln!("cuts agent DIR HOST:PORT") };
    let folder = PathBuf::from(folder);
    let (served, _recorder) = served(&folder, MEMORY);
    let connection = connection(&folder, coordinator);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread is there");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let Err(why) = runtime.block_on(served.serve(&connection, &|event| {
        if !matches!(event, queuescope_fleet::agent::AgentEvent::Attached) {
            eprintln!("{event:?}");
        }
    }));
    panic!("{why}");
}

/// A log in a folder, and what an agent serves of it.
pub fn served(folder: &Path, memory: u64) -> (Served, Arc<Recorder>) {
    let options = RecorderOptions { memory, archive: false, ..RecorderOptions::default() };
    let log = folder.join("log");
    let (recorder, _) = Recorder::open(&log, Schema::packet(), options).expect("it is new");
    let recorder = Arc::new(recorder);
    let shed = Arc::new(AtomicU64::new(0));
    (Served::new(Arc::clone(&recorder), log, "a benchmark".to_owned(), shed), recorder)
}

/// A connection with the credentials in a folder.
pub fn connection(folder: &Path, coordinator: &str) -> AgentConnection {
    let own = Credentials::load(folder).expect("it is whole").expect("it is there");
    AgentConnection {
        coordinator: coordinator.to_owned(),
        credentials: CurrentCredentials::new(own),
        folder: folder.to_owned(),
    }
}
