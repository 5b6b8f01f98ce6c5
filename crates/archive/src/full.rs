//! What happens to records when the disk does not keep up: it stalls until a test lets it continue.

use crate::journal::{Disk, Medium};
use crate::{ArchiveQuery, Durability, Finished, Full, History, Recorder, RecorderOptions, Retention, Sources, verify};
use queuescope_log::{Dnf, Log, Schema};
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// A disk that stalls.
#[derive(Debug, Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

#[derive(Debug)]
struct Gated(File, Gate);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().expect("nobody panics") = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().expect("nobody panics");
        drop(self.0.1.wait_while(open, |open| !*open).expect("nobody panics"));
    }
}

impl Medium for Gate {
    type File = Gated;

    fn create(&mut self, path: &Path) -> io::Result<Gated> {
        self.pass();
        Ok(Gated(Disk.create(path)?, self.clone()))
    }

    fn reopen(&mut self, path: &Path) -> io::Result<Gated> {
        self.pass();
        Ok(Gated(Disk.reopen(path)?, self.clone()))
    }

    fn sync(&mut self, file: &Gated, path: &Path, new: bool) -> io::Result<()> {
        Disk.sync(&file.0, path, new)
    }
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.pass();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

const SIZE: u64 = 8;
/// The number of records that fit in memory.
const ROOM: u64 = 4 * Log::BLOCK;

fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u64\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn open(path: &Path, gate: &Gate, full: Full) -> Recorder {
    let options = RecorderOptions {
        memory: (ROOM * SIZE).div_ceil(3) * 8,
        full,
        durability: Durability::Relaxed,
        journal_records: ROOM,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    Recorder::with(gate.clone(), path, &schema(), options).unwrap_or_else(|error| panic!("{error}")).0
}

fn records(numbers: std::ops::Range<u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_be_bytes).collect()
}

/// The numbers that a folder has, and their positions.
fn found(
    each: impl FnOnce(ArchiveQuery<'_>, &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Sources,
) -> (Vec<(u64, u64)>, Sources) {
    let (needed, mut found) = ([schema().find("number").expect("it is there")], Vec::new());
    let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let sources = each(ask, &mut |position, record| {
        found.push((position, u64::from_be_bytes(*record.first_chunk().expect("it has eight bytes"))));
        ControlFlow::Continue(())
    });
    (found, sources)
}

fn in_folder(path: &Path) -> (Vec<(u64, u64)>, Sources) {
    let history = History::open(path).unwrap_or_else(|error| panic!("{error}"));
    found(|ask, receive| history.each(ask, receive).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn new_records_are_left_out_and_counted() {
    let (folder, gate) = (tempfile::tempdir().expect("there is room"), Gate::default());
    let recorder = open(folder.path(), &gate, Full::LeaveOut);
    let (mut refused, mut kept) = (0, Vec::new());
    for start in (0..3 * ROOM).step_by(1000) {
        let appended = recorder.append(&records(start..start + 1000)).expect("nothing fails");
        if appended.refused == 0 {
            kept.extend((start..start + 1000).zip(appended.positions).map(|(number, at)| (at, number)));
        }
        refused += appended.refused;
    }
    let all = 3 * ROOM.div_ceil(1000) * 1000;
    assert!(kept.len() as u64 <= ROOM && refused > ROOM, "{} kept, {refused} refused", kept.len());
    gate.open();
    recorder.flush().expect("nothing fails");
    let finished = recorder.finish().expect("nothing fails");
    assert_eq!(finished, Finished { records: kept.len() as u64, lost: 0, removed: 0 });
    assert!(finished.records + refused >= 3 * ROOM && finished.records + refused <= all);
    assert_eq!(in_folder(folder.path()).0, kept);
}

#[test]
fn the_oldest_records_are_lost_and_counted() {
    let (folder, gate) = (tempfile::tempdir().expect("there is room"), Gate::default());
    let recorder = open(folder.path(), &gate, Full::LoseOldest);
    let all = 5 * ROOM;
    for start in (0..all).step_by(Log::BLOCK as usize / 4) {
        assert_eq!(recorder.append(&records(start..start + Log::BLOCK / 4)).expect("nothing fails").refused, 0);
        let used = recorder.log().snapshot().usage().records;
        assert!(used <= (ROOM + 2 * Log::BLOCK) * SIZE, "{used} bytes");
    }
    gate.open();
    let finished = recorder.finish().expect("nothing fails");
    assert!(finished.lost >= all - ROOM - 2 * Log::BLOCK && finished.records + finished.lost == all, "{finished:?}");
    let (there, sources) = in_folder(folder.path());
    assert_eq!((sources.lost, there.len() as u64), (finished.lost, finished.records));
    // The records that are there are at their positions, and the last one is there.
    assert!(there.iter().all(|(position, number)| position == number) && there.last() == Some(&(all - 1, all - 1)));
    let verified = verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verified.files.iter().map(|file| file.lost).sum::<u64>(), finished.lost);
    // The next recorder continues behind it.
    let recorder = open(folder.path(), &gate, Full::Wait);
    assert_eq!(recorder.append(&records(0..1)).expect("nothing fails").positions, all..all + 1);
    assert_eq!(
        recorder.finish().expect("nothing fails"),
        Finished { records: finished.records + 1, lost: 0, removed: 0 }
    );
}

#[test]
fn writers_wait_for_room() {
    let (folder, gate) = (tempfile::tempdir().expect("there is room"), Gate::default());
    let recorder = open(folder.path(), &gate, Full::Wait);
    let all = 10 * ROOM;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // Also batches that are larger than the memory.
            for start in (0..all).step_by(2 * ROOM as usize) {
                assert_eq!(recorder.append(&records(start..start + 2 * ROOM)).expect("nothing fails").refused, 0);
            }
        });
        while !writer.is_finished() && recorder.log().snapshot().len() < ROOM / 2 {
            thread::yield_now();
        }
        assert!(!writer.is_finished() && recorder.log().snapshot().len() <= ROOM);
        gate.open();
        // Records that have left memory are found, too.
        while !writer.is_finished() {
            let used = recorder.log().snapshot().usage().records;
            assert!(used <= (ROOM + Log::BLOCK) * SIZE, "{used} bytes");
            let (there, _) =
                found(|ask, receive| recorder.each(ask, receive).unwrap_or_else(|error| panic!("{error}")));
            assert!(there.iter().zip(0..).all(|(found, number)| *found == (number, number)));
        }
    });
    let (there, sources) = found(|ask, receive| recorder.each(ask, receive).unwrap_or_else(|error| panic!("{error}")));
    assert!(there.len() as u64 == all && sources.from_memory <= ROOM && sources.lost == 0, "{sources:?}");
    assert_eq!(recorder.finish().expect("nothing fails"), Finished { records: all, lost: 0, removed: 0 });
    assert_eq!(in_folder(folder.path()).0, there);
}

#[test]
fn too_little_memory_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let options = RecorderOptions {
        memory: (ROOM * SIZE).div_ceil(3) * 8 - 8,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: ROOM,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    let promise = RecorderOptions { full: Full::LoseOldest, durability: Durability::Written, ..options.clone() };
    let error = Recorder::open(folder.path(), &schema(), promise).map(|_| ()).expect_err("it cannot be");
    assert!(error.to_string().contains("record relaxed"), "{error}");
    let error = Recorder::open(folder.path(), &schema(), options).map(|_| ()).expect_err("it is too little");
    assert!(error.to_string().contains("give 5.60 MB or more"), "{error}");
}
