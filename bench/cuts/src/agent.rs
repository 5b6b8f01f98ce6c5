//! An agent without a source, in a process of its own, until its standard input is closed.

use crate::diagnosis::RECORDS;
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
    let (served, recorder) = served(&folder, MEMORY);
    assert_eq!(recorder.append(&records()).expect("there is room").refused, 0);
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

/// Packets of eight senders, of which every fourth goes to port 80.
fn records() -> Vec<u8> {
    let schema = Schema::packet();
    let [src, port, length] = ["src_ip", "dst_port", "length"].map(|name| schema.find(name).expect("packets have it"));
    let mut records = vec![0; RECORDS as usize * schema.record_size()];
    for (number, record) in records.chunks_exact_mut(schema.record_size()).enumerate() {
        for (id, value) in
            [(src, 0x0a00_0000 + number as u128 % 8), (port, if number % 4 == 0 { 80 } else { 443 }), (length, 1000)]
        {
            schema.reader(id).write(record, value);
        }
    }
    records
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
