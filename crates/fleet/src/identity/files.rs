//! The files of a folder: private, written whole or not at all, and by one writer at a time.

use super::IdentityError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of a file of keys and certificates.
pub(super) const SMALL: u64 = 64 << 10;
/// The file that writers lock.
const LOCK: &str = ".lock";
/// Only the owner may read and write.
const PRIVATE: u32 = 0o600;
/// Everybody may read.
const PUBLIC: u32 = 0o644;

/// A file to be written.
#[derive(Debug)]
pub(super) struct NewFile {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub mode: u32,
}

impl NewFile {
    /// One that only its owner may read.
    pub fn private(name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name, bytes: bytes.into(), mode: PRIVATE }
    }

    /// One that everybody may read.
    pub fn public(name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name, bytes: bytes.into(), mode: PUBLIC }
    }
}

/// A folder of private files.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the folder if it is missing. A new one is for its owner only.
    pub fn make(&self) -> Result<(), IdentityError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(failed("make the folder", &self.0))
    }

    /// Waits until nobody else writes to the folder, in this process or another.
    pub fn lock(&self) -> Result<Locked<'_>, IdentityError> {
        let path = self.path(LOCK);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(PRIVATE).open(&path);
        let file = file.map_err(failed("open", &path))?;
        file.lock().map_err(failed("lock", &path))?;
        Ok(Locked { folder: self, _lock: file })
    }

    /// The content of a file of at most `most` bytes, or nothing if the file does not exist.
    pub fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, IdentityError> {
        self.read_checked(name, most, |_| Ok(()))
    }

    /// The same of a file that only its owner may read.
    pub fn read_private(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, IdentityError> {
        self.read_checked(name, most, |mode| match mode & 0o077 {
            0 => Ok(()),
            _ => Err(IdentityError::Exposed { path: self.path(name), mode }),
        })
    }

    fn read_checked(
        &self,
        name: &str,
        most: u64,
        check: impl Fn(u32) -> Result<(), IdentityError>,
    ) -> Result<Option<Vec<u8>>, IdentityError> {
        let path = self.path(name);
        let read = failed("read", &path);
        // Before it is opened, because to open a pipe would wait for its writer.
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(read(io::Error::other("it is not a regular file"))),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read(error)),
        }
        let file = OpenOptions::new().read(true).open(&path).map_err(&read)?;
        check(file.metadata().map_err(&read)?.mode() & 0o7777)?;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(&read)?;
        if bytes.len() as u64 > most {
            return Err(read(io::Error::other(format!("it has more than {most} bytes"))));
        }
        Ok(Some(bytes))
    }
}

/// The only writer of a folder, until it is dropped.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    folder: &'a Folder,
    _lock: File,
}

impl Locked<'_> {
    /// Writes files that must not exist, in this order. If one fails, those before it are removed.
    pub fn create_all(&self, files: &[NewFile]) -> Result<(), IdentityError> {
        for file in files {
            let path = self.folder.path(file.name);
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed("look for", &path)(error)),
                Ok(_) => return Err(IdentityError::Exists(path)),
            }
        }
        for (done, file) in files.iter().enumerate() {
            if let Err(error) = self.replace(file) {
                // The first error is the one to report. A file that stays is refused as existing at the next attempt.
                files[..=done].iter().for_each(|file| drop(fs::remove_file(self.folder.path(file.name))));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes a file over an older one. After a crash or a loss of power there is either the old one or the new one, whole; once this
    /// returns, it is the new one.
    pub fn replace(&self, new: &NewFile) -> Result<(), IdentityError> {
        let (path, beside) = (self.folder.path(new.name), self.folder.path(&format!("{}.new", new.name)));
        let written = write_synced(&beside, new).and_then(|()| fs::rename(&beside, &path));
        if let Err(error) = written {
            // It may not exist.
            drop(fs::remove_file(&beside));
            return Err(failed("write", &path)(error));
        }
        let folder = &self.folder.0;
        let synced = OpenOptions::new().read(true).open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed("sync the folder", folder))
    }
}

fn write_synced(path: &Path, new: &NewFile) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(new.mode);
    let mut file = match options.open(path) {
        // A writer that held the lock was killed.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)?
        }
        opened => opened?,
    };
    file.write_all(&new.bytes)?;
    file.sync_all()
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> IdentityError {
    move |source| IdentityError::File { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(&place.path().join("made"));
        folder.make().unwrap();
        (place, folder)
    }

    fn names(folder: &Folder) -> Vec<String> {
        let entries = fs::read_dir(&folder.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_private_and_replaced_whole() {
        let (_place, folder) = folder();
        assert_eq!(fs::metadata(&folder.0).unwrap().mode() & 0o777, 0o700);
        let locked = folder.lock().unwrap();
        assert!(folder.read_private("a", 10).unwrap().is_none());
        // The rest of a writer that was killed.
        fs::write(folder.path("a.new"), "half").unwrap();
        for text in ["one", "other"] {
            locked.replace(&NewFile::private("a", text)).unwrap();
            assert_eq!(folder.read_private("a", 10).unwrap().unwrap(), text.as_bytes());
        }
        assert_eq!(fs::metadata(folder.path("a")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(names(&folder), [".lock", "a"]);
    }

    #[test]
    fn a_file_that_others_can_read_is_not_private() {
        let (_place, folder) = folder();
        folder.lock().unwrap().replace(&NewFile::private("key", "secret")).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o601] {
            fs::set_permissions(folder.path("key"), fs::Permissions::from_mode(mode)).unwrap();
            let error = folder.read_private("key", 10).unwrap_err().to_string();
            assert!(error.contains(&format!("/key has mode 0{mode:o}, so other users can read it")), "{error}");
            assert_eq!(folder.read("key", 10).unwrap().unwrap(), b"secret");
        }
        fs::set_permissions(folder.path("key"), fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(folder.read_private("key", 10).unwrap().unwrap(), b"secret");
    }

    #[test]
    fn an_existing_file_stays_and_nothing_is_created_beside_it() {
        let (_place, folder) = folder();
        let locked = folder.lock().unwrap();
        symlink("nowhere", folder.path("b")).unwrap();
        let both = [NewFile::public("a", "1"), NewFile::private("b", "2")];
        let error = locked.create_all(&both).unwrap_err().to_string();
        assert!(error.contains("/b exists and is never overwritten"), "{error}");
        assert_eq!(names(&folder), [".lock", "b"]);
        // A folder cannot be replaced by a file: the first file goes again.
        fs::create_dir(folder.path("c.new")).unwrap();
        let error = locked.create_all(&[NewFile::public("a", "1"), NewFile::private("c", "2")]).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert_eq!(names(&folder), [".lock", "b", "c.new"]);
    }

    #[test]
    fn long_files_and_other_kinds_are_refused() {
        let (_place, folder) = folder();
        fs::write(folder.path("long"), "0123456789+").unwrap();
        let error = folder.read("long", 10).unwrap_err().with_causes();
        assert!(error.ends_with("/long: it has more than 10 bytes"), "{error}");
        fs::create_dir(folder.path("folder")).unwrap();
        let error = folder.read("folder", 10).unwrap_err().with_causes();
        assert!(error.ends_with("/folder: it is not a regular file"), "{error}");
    }

    #[test]
    fn a_writer_excludes_others_until_it_ends() {
        let (_place, folder) = folder();
        let locked = folder.lock().unwrap();
        let other = OpenOptions::new().write(true).open(folder.path(LOCK)).unwrap();
        assert!(matches!(other.try_lock(), Err(fs::TryLockError::WouldBlock)));
        drop(locked);
        other.try_lock().unwrap();
    }
}
