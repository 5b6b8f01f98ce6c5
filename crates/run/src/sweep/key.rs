//! Keys of cells: digests of everything that a simulation depends on.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::{self, Read};
use std::ops::RangeInclusive;

/// The format of result files and plans. Format 1, of version 0.1, has large integers as numbers; it can still be read.
pub const FORMAT: u32 = 2;
/// The formats that this version reads.
pub const READABLE: RangeInclusive<u32> = 1..=FORMAT;

/// The version of the key's definition. A change makes all earlier results unusable.
const KEY_VERSION: u32 = 2;

/// A SHA-256 digest.
pub type Sum = [u8; 32];

/// The digest of `bytes`.
pub fn sum(bytes: &[u8]) -> Sum {
    Sha256::digest(bytes).into()
}

/// The digest of everything that `input` yields.
///
/// # Errors
/// Returns the first read error.
pub fn sum_of(mut input: impl Read) -> io::Result<Sum> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(bytes) => hasher.update(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The key of a cell: a digest of the program's version, the whole scenario with all defaults, and the files that it names, by
/// their paths in the scenario. With 128 bits, no two different cells of a million share a key.
pub fn key<'a>(version: &str, scenario: &Sum, files: impl IntoIterator<Item = (&'a str, &'a Sum)>) -> String {
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        // The length of each part makes the digest's input unambiguous.
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(b"queuescope sweep cell");
    part(&KEY_VERSION.to_le_bytes());
    part(version.as_bytes());
    part(scenario);
    for (path, sum) in files {
        part(path.as_bytes());
        part(sum);
    }
    hex(&hasher.finalize()[..16])
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a text has the format of a key.
pub fn is_key(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_the_standard() {
        // FIPS 180-4's example, "abc".
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&sum(b"abc")), abc);
        assert_eq!(hex(&sum_of(&b"abc"[..]).unwrap()), abc);
        let long = vec![7u8; 200_000];
        assert_eq!(sum_of(long.as_slice()).unwrap(), sum(&long));
    }

    #[test]
    fn a_key_changes_with_everything_that_matters() {
        let (a, b) = (sum(b"a"), sum(b"b"));
        let keys = [
            key("1.0.0", &a, []),
            key("1.0.1", &a, []),
            key("1.0.0", &b, []),
            key("1.0.0", &a, [("x", &a)]),
            key("1.0.0", &a, [("x", &b)]),
            key("1.0.0", &a, [("y", &a)]),
            key("1.0.0", &a, [("x", &a), ("y", &a)]),
        ];
        for (n, one) in keys.iter().enumerate() {
            assert!(is_key(one), "{one}");
            assert!(!keys[..n].contains(one));
        }
        assert_eq!(keys[0], key("1.0.0", &a, []));
        assert!(!is_key("") && !is_key(&"g".repeat(32)) && !is_key(&"A".repeat(32)) && !is_key(&"0".repeat(33)));
    }
}
