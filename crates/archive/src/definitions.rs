//! `definitions.toml`: a folder's definitions as people write them. Its first line has the checksum of the others. Every folder has this file,
//! so a lost one is noticed.

use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::regular;
use queuescope_log::Definitions;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The name of the file.
pub(crate) const DEFINITIONS: &str = "definitions.toml";
/// The start of the first line, which has the checksum of the others.
pub(crate) const SEAL: &str = "# crc32 ";
/// What stands in place of the checksum after somebody changed the file by hand, until the folder is recorded to again.
pub(crate) const BY_HAND: &str = "none";

/// The definitions of a folder, which may be empty.
///
/// # Errors
/// Fails if they cannot be read.
pub fn definitions(path: &Path) -> Result<Definitions, FolderError> {
    read(&Folder::open(path)?)
}

/// Like [`definitions`], for a folder that is open. A file that cannot be read, or has changed since it was written, is never replaced.
pub(crate) fn read(folder: &Folder) -> Result<Definitions, FolderError> {
    Ok(read_sealed(folder)?.0)
}

/// The definitions, and their checksum when they were written; `None`: somebody changed them by hand.
pub(crate) fn read_sealed(folder: &Folder) -> Result<(Definitions, Option<u32>), FolderError> {
    let name = folder.path.join(DEFINITIONS);
    let bytes = match regular::read(&name, regular::TEXT) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(FolderError::NoDefinitions(name)),
        read => read.map_err(|error| FolderError::unread(&name, error))?,
    };
    let damaged = |why: String| FolderError::from(Damage::new(&name, why));
    let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text".to_owned()))?;
    let seal = whole(&text).map_err(damaged)?;
    let parsed = Definitions::parse(&name.display().to_string(), &text, &folder.schema);
    Ok((parsed.map_err(FolderError::Schema)?, seal))
}

/// Writes the definitions of a new folder: none.
pub(crate) fn create(folder: &Folder) -> Result<(), FolderError> {
    write(folder, &Definitions::new(&folder.schema))
}

/// Whether a folder has the definitions of a new one, or none.
pub(crate) fn is_new(path: &Path) -> bool {
    let read = regular::read(&path.join(DEFINITIONS), regular::TEXT);
    read.map_or_else(|error| error.kind() == ErrorKind::NotFound, |bytes| bytes == sealed("").as_bytes())
}

/// Writes definitions in place of the previous ones.
pub(crate) fn write(folder: &Folder, definitions: &Definitions) -> Result<(), FolderError> {
    let (path, text) = (folder.path.join(DEFINITIONS), sealed(&definitions.text()));
    if text.len() as u64 > regular::TEXT {
        let why = format!("its definitions would have {} bytes, and can have {}", text.len(), regular::TEXT);
        return Err(FolderError::io("write", &path, io::Error::other(why)));
    }
    folder.whole(&path, text.as_bytes())
}

fn sealed(text: &str) -> String {
    format!("{SEAL}{}\n{text}", crc32fast::hash(text.as_bytes()))
}

/// The checksum in the first line of a text of definitions that is as it was written, `None` if somebody changed it by hand; or what is
/// wrong with the text. A text without this line may have been emptied or cut short.
fn whole(text: &str) -> Result<Option<u32>, String> {
    let by_hand = format!("to change it by hand, write '{SEAL}{BY_HAND}' there");
    let Some((written, rest)) = text.strip_prefix(SEAL).and_then(|text| text.split_once('\n')) else {
        let what =
            if text.is_empty() { "it is empty; it was written with a checksum in" } else { "it has no checksum in" };
        return Err(format!("{what} its first line; {by_hand}"));
    };
    let crc32 = crc32fast::hash(rest.as_bytes());
    match written {
        BY_HAND => Ok(None),
        written if written == crc32.to_string() => Ok(Some(crc32)),
        _ => Err(format!("it does not have the checksum in its first line; {by_hand}")),
    }
}
