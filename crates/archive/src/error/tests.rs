//! Error messages: what failed, where, why, and what to do.

use super::*;
use crate::{FinishError, RecordError};
use queuescope_log::Schema;
use std::sync::Arc;

fn system() -> io::Error {
    io::Error::from_raw_os_error(20)
}

fn damage(at: Option<(u64, u64)>) -> Damage {
    Damage { at, ..Damage::new(Path::new("log/file"), "it is not as it was written") }
}

#[test]
fn errors_say_what_to_do() {
    let path = PathBuf::from("log");
    let io = |what| FolderError::io(what, Path::new("log/file"), system());
    let memory = MemoryError::TooLarge { records: 7, size: 8 };
    let record = RecordError { path: path.join("file"), why: Arc::new(system()), written: 7 };
    let schema = Schema::parse("schema.toml", "name = 7").expect_err("a name is a text");
    let errors = [
        io("read"),
        io("make the folder"),
        FolderError::NotALog { path: path.clone(), why: "there is no log.toml in it".to_owned() },
        FolderError::Busy(path.clone()),
        FolderError::OtherSchema { path: path.clone(), found: "a".to_owned(), wanted: "b".to_owned() },
        FolderError::TooLittle { bytes: 1_048_576, least: 5_592_408 },
        FolderError::Acknowledged,
        FolderError::NoDefinitions(path.join("definitions.toml")),
        FolderError::Gone { path: path.clone(), now: None },
        FolderError::Gone { path: path.clone(), now: Some("moved".into()) },
        FolderError::NotWhole { path: path.clone(), damage: damage(None) },
        FolderError::Damaged(damage(None)),
        FolderError::Damaged(Damage { path: path.join("00000000000000000000.parquet"), ..damage(None) }),
        FolderError::Damaged(Damage { path: path.join("lock"), ..damage(None) }),
        FolderError::Damaged(Damage::new(&path.join(ALERTS), format!("{MISSING}, and had 7 bytes"))),
        FolderError::Damaged(damage(Some((64, 7)))),
        FolderError::Memory(memory),
    ];
    let message: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let message = message.into_iter().chain([
        FolderError::Schema(schema).to_string().lines().next().unwrap_or_default().to_owned(),
        FinishError::from(record).to_string(),
        FinishError::Archive { written: 7, why: Arc::new(io("write")) }.to_string(),
        FinishError::Missing {
            path: path.clone(),
            there: 3,
            written: 7,
            why: Arc::new(FolderError::Gone { path, now: None }),
        }
        .to_string(),
    ]);
    let wanted = include_str!("tests.txt");
    let message: String = message.map(|line| line + "\n").collect();
    assert_eq!(message, wanted, "\n{message}");
}

#[test]
fn no_cause_is_printed_twice() {
    // Printing an error also prints its sources.
    let error = FolderError::io("read", Path::new("log/file"), system());
    assert!(std::error::Error::source(&error).is_none());
    let finish = FinishError::Archive { written: 7, why: Arc::new(error) };
    assert!(std::error::Error::source(&finish).is_none());
}

#[test]
fn what_libraries_wrap_is_taken_out() {
    let path = Path::new("log/file");
    let external = |error: io::Error| ParquetError::External(Box::new(error));
    let full = || io::Error::from_raw_os_error(28);
    let deep = external(io::Error::other(external(io::Error::other(external(full())))));
    for error in [external(full()), deep] {
        let FolderError::Io { what, why, .. } = FolderError::volume(path, &error) else { panic!("{error}") };
        assert_eq!((what, why.raw_os_error()), ("read", Some(28)));
        let FolderError::Io { what, why, .. } = FolderError::written(path, &error) else { panic!("{error}") };
        assert_eq!((what, why.raw_os_error()), ("write", Some(28)));
    }
    let general = || ParquetError::General("bytes 0 to 7 are not as they were written".to_owned());
    for error in [general(), external(io::Error::other(general()))] {
        let message = FolderError::volume(path, &error).to_string();
        assert!(message.starts_with("log/file is damaged: bytes 0 to 7 are not as they were written;"), "{message}");
        let message = FolderError::written(path, &error).to_string();
        assert_eq!(message, "cannot write log/file: bytes 0 to 7 are not as they were written");
    }
}

#[test]
fn the_least_memory_is_never_rounded_down() {
    for bytes in (0..4000).chain([5_592_404, 5_592_408, 9_995_000, 9_999_999, 899_999_999_999]) {
        let message = up(bytes);
        let read: ByteCount = ByteCount(message).to_string().parse().unwrap_or_else(|error| panic!("{error}"));
        assert!(read.0 >= bytes && read.0 - bytes <= bytes / 99, "{bytes} {message} {read}");
    }
}
