//! A file that appears only when it is complete: it is written beside its path, under another name, and renamed at its end. An existing file
//! stays until then, and stays for good if something goes wrong.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written; dropped before it is committed, it leaves nothing. If no file can be created beside its path, or if the path
/// is a link without a target, it is written at the path itself.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    file: Destination,
}

#[derive(Debug)]
enum Destination {
    /// A temporary file, and the path that it will get, after following links.
    Other(NamedTempFile, PathBuf),
    /// The path itself: a pipe or a device, which cannot be replaced; or a file in a folder in which no others can be made.
    Itself(File),
}

impl AtomicFile {
    /// Begins a file.
    ///
    /// # Errors
    /// Fails if it cannot be written there.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = Destination::open(path).map_err(Error::write(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the whole file, and commits it.
    ///
    /// # Errors
    /// Fails if it cannot be written or renamed.
    pub fn write_whole(self, write: impl FnOnce(&mut BufWriter<Self>) -> io::Result<()>) -> Result<(), Error> {
        let path = self.path.clone();
        let mut out = BufWriter::new(self);
        write(&mut out).map_err(Error::write(&path))?;
        Self::commit_written(out)
    }

    /// Commits the file behind a buffer.
    ///
    /// # Errors
    /// Fails if the rest cannot be written, or if the file cannot be renamed.
    pub fn commit_written(out: BufWriter<Self>) -> Result<(), Error> {
        let path = out.get_ref().path.clone();
        out.into_inner().map_err(|why| Error::write(&path)(why.into_error()))?.commit()
    }

    /// Renames the complete file to its path.
    ///
    /// # Errors
    /// Fails if it cannot be renamed.
    pub fn commit(self) -> Result<(), Error> {
        match self.file {
            Destination::Other(file, place) => {
                file.persist(&place).map(|_| ()).map_err(|error| Error::write(&self.path)(error.error))
            }
            Destination::Itself(_) => Ok(()),
        }
    }
}

impl Destination {
    fn open(path: &Path) -> io::Result<Self> {
        let before = match path.metadata() {
            Ok(before) if !before.is_file() => return OpenOptions::new().write(true).open(path).map(Self::Itself),
            Ok(before) => Some(before.permissions()),
            Err(_) if path.is_symlink() => return File::create(path).map(Self::Itself),
            Err(_) => None,
        };
        let place = if before.is_some() { path.canonicalize()? } else { path.to_owned() };
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut options = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The usual permissions of new files, reduced by the user's mask.
            options.permissions(PermissionsExt::from_mode(0o666));
        }
        let file = match options.prefix(".queuescope-").suffix(".new").tempfile_in(folder) {
            Err(why) if before.is_some() && why.kind() == ErrorKind::PermissionDenied => {
                return OpenOptions::new().write(true).truncate(true).open(&place).map(Self::Itself);
            }
            file => file?,
        };
        if let Some(before) = before {
            file.as_file().set_permissions(before)?;
        }
        Ok(Self::Other(file, place))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Destination::Other(file, _) => file.write(bytes),
            Destination::Itself(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Destination::Other(file, _) => file.flush(),
            Destination::Itself(file) => file.flush(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test looks at what was written")]
mod tests {
    use super::*;
    use std::fs;

    /// Root may create files anywhere, so this needs another user.
    #[cfg(unix)]
    #[test]
    fn a_file_in_a_read_only_folder_is_written_in_place() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "an older and longer page").unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o555)).unwrap();
        AtomicFile::create(&path).unwrap().write_whole(|out| out.write_all(b"a page")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a page");
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_without_a_target_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, place) = (folder.path().join("link"), folder.path().join("place"));
        std::os::unix::fs::symlink(&place, &link).unwrap();
        AtomicFile::create(&link).unwrap().write_whole(|out| out.write_all(b"a page")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&place).unwrap(), "a page");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "an older page").unwrap();
        let half = |out: &mut BufWriter<AtomicFile>| {
            out.write_all(b"half a")?;
            Err(io::Error::other("the rest is missing"))
        };
        AtomicFile::create(&path).unwrap().write_whole(half).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "an older page");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_replaces_another_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (path, names) = (folder.path().join("a.csv"), || fs::read_dir(folder.path()).unwrap().count());
        let begin = |path: &Path| {
            let mut file = AtomicFile::create(path).unwrap();
            file.write_all(b"new").unwrap();
            file
        };
        drop(begin(&path));
        assert_eq!(names(), 0);
        fs::write(&path, "old").unwrap();
        drop(begin(&path));
        assert_eq!((fs::read(&path).unwrap(), names()), (b"old".to_vec(), 1));
        begin(&path).commit().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names()), (b"new".to_vec(), 1));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_rights_stay_and_devices_are_written_to() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        AtomicFile::create(&link).unwrap().commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            (fs::read(&path).unwrap(), path.metadata().unwrap().permissions().mode() & 0o777),
            (Vec::new(), 0o640)
        );
        AtomicFile::create(Path::new("/dev/null")).unwrap().commit().unwrap();
        let error = AtomicFile::create(&folder.path().join("none/a")).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
    }
}
