//! A value in a file, with a checksum: changed by one writer at a time, and replaced as a whole.

use super::IdentityError;
use super::files::{Folder, Locked, NewFile};
use super::fingerprint::sha256;
use super::hex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::marker::PhantomData;
use std::path::Path;

/// The version of the files' format.
const FORMAT: u32 = 1;
/// The most bytes of a file.
const LARGEST: u64 = 64 << 20;

/// What a file is called, and what to do if it is lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub name: &'static str,
    /// The advice if the file is missing or damaged.
    pub remedy: &'static str,
}

/// A file that keeps a value.
#[derive(Debug)]
pub(super) struct StateFile<T> {
    folder: Folder,
    kind: Kind,
    value: PhantomData<fn() -> T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    format: u32,
    sha256: &'a str,
    #[serde(borrow)]
    content: &'a RawValue,
}

impl<T: Serialize + DeserializeOwned> StateFile<T> {
    pub fn new(dir: &Path, kind: Kind) -> Self {
        Self { folder: Folder::new(dir), kind, value: PhantomData }
    }

    /// The file of a value that is stored for the first time.
    pub fn first(kind: Kind, value: &T) -> NewFile {
        NewFile::private(kind.name, enclosed(&content(value)))
    }

    /// The value in the file.
    ///
    /// # Errors
    /// Fails if the file is missing, damaged, of a later format, or cannot be read.
    pub fn load(&self) -> Result<T, IdentityError> {
        let path = self.folder.path(self.kind.name);
        let Some(bytes) = self.folder.read_private(self.kind.name, LARGEST)? else {
            return Err(IdentityError::Missing { path, remedy: self.kind.remedy });
        };
        parse(&bytes).map_err(|why| IdentityError::Damaged { path, why, remedy: self.kind.remedy })
    }

    /// Changes the value. Once this returns, the change survives a loss of power. Returns the changed value as well. If `change` fails, the
    /// file stays as it is.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, and as `change` does.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> Result<R, IdentityError>) -> Result<(R, T), IdentityError> {
        let locked = self.folder.lock()?;
        let mut value = self.load()?;
        let before = content(&value);
        let result = change(&mut value)?;
        self.store_changed(&locked, &before, &value)?;
        Ok((result, value))
    }

    fn store_changed(&self, locked: &Locked<'_>, before: &str, value: &T) -> Result<(), IdentityError> {
        let after = content(value);
        if after == before { Ok(()) } else { locked.replace(&NewFile::private(self.kind.name, enclosed(&after))) }
    }
}

/// The value as JSON.
fn content<T: Serialize>(value: &T) -> String {
    // Its maps have texts as keys, and no number is without a form in JSON, so this cannot fail.
    serde_json::to_string(value).expect("a value of plain maps and numbers has a form in JSON")
}

fn enclosed(content: &str) -> String {
    format!(
        "{{\"format\":{FORMAT},\"sha256\":\"{}\",\"content\":{content}}}\n",
        hex::encode(&sha256(content.as_bytes()))
    )
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let envelope: Envelope<'_> =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON of this kind ({error})"))?;
    if envelope.format != FORMAT {
        return Err(format!("it has format {}, and this version reads format {FORMAT}", envelope.format));
    }
    let text = envelope.content.get();
    if hex::encode(&sha256(text.as_bytes())) != envelope.sha256 {
        return Err("its content does not have the SHA-256 that it states".to_owned());
    }
    serde_json::from_str(text).map_err(|error| format!("its content has another form ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    const KIND: Kind = Kind { name: "numbers.json", remedy: "restore it" };
    type Numbers = BTreeMap<String, u64>;

    fn file() -> (tempfile::TempDir, StateFile<Numbers>) {
        let place = tempfile::tempdir().unwrap();
        let file = StateFile::new(place.path(), KIND);
        let first = StateFile::first(KIND, &Numbers::from([("a".to_owned(), 1)]));
        file.folder.lock().unwrap().create_all(&[first]).unwrap();
        (place, file)
    }

    #[test]
    fn a_change_is_stored_and_a_failed_one_is_not() {
        let (place, file) = file();
        let path = place.path().join(KIND.name);
        let (before, after) = file.update(|numbers| Ok(numbers.insert("a".to_owned(), 2))).unwrap();
        assert_eq!((before, after["a"]), (Some(1), 2));
        let stored = fs::read(&path).unwrap();
        file.update(|numbers| {
            numbers.clear();
            Err::<(), _>(IdentityError::NoRandomNumbers)
        })
        .unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), stored);
        assert_eq!(file.load().unwrap()["a"], 2);
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let (place, file) = file();
        let path = place.path().join(KIND.name);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            // The last byte is a line's end, which JSON does not need.
            let cut = &whole[..at.min(whole.len() - 2)];
            for bytes in [&other[..], cut] {
                fs::write(&path, bytes).unwrap();
                let error = file.load().expect_err("it is damaged").to_string();
                assert!(error.contains("/numbers.json is damaged: it"), "{at}: {error}");
                assert!(error.ends_with("; restore it"), "{at}: {error}");
                file.update(|_| Ok(())).expect_err("it is damaged");
                assert_eq!(fs::read(&path).unwrap(), bytes, "a damaged file stays as it is");
            }
        }
        fs::remove_file(&path).unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.ends_with("/numbers.json: restore it"), "{error}");
    }

    #[test]
    fn a_later_format_is_refused() {
        let (place, file) = file();
        fs::write(place.path().join(KIND.name), "{\"format\":2,\"sha256\":\"\",\"content\":[1]}").unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("it has format 2, and this version reads format 1"), "{error}");
    }
}
