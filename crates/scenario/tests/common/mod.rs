//! The scenarios of the repository.

#![allow(clippy::disallowed_methods, reason = "tests read the repository's files")]
#![allow(dead_code, reason = "not every test uses all functions")]

use std::path::{Path, PathBuf};

/// A file or folder of the repository.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The text of a file of the repository.
pub fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Overwrites a file of the repository if `UPDATE_GOLDEN` is set.
pub fn update(name: &str, text: impl FnOnce() -> String) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(name), text()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// The names and contents of the files with an extension in a folder, sorted by name.
pub fn files(folder: &Path, extension: &str) -> Vec<(String, Vec<u8>)> {
    let entries =
        std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("it is read").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|other| other == extension)).collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {}", folder.display());
    let read = |path: PathBuf| {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        (name, std::fs::read(&path).expect("it is read"))
    };
    files.into_iter().map(read).collect()
}

/// The scenarios of the project: name and text.
pub fn scenarios() -> Vec<(String, String)> {
    let text = |(name, bytes)| (name, String::from_utf8(bytes).expect("scenarios are text"));
    files(&path("scenarios"), "toml").into_iter().map(text).collect()
}
