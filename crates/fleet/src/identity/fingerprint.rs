//! The SHA-256 of a certificate.

use super::error::quoted;
use super::{IdentityError, hex};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The SHA-256 of an authority's certificate in DER. Its text has 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(der: &[u8]) -> Self {
        Self(sha256(der))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        hex::decode(text).map(Self).ok_or_else(|| IdentityError::Fingerprint { given: quoted(text) })
    }
}

/// SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_sha_256() {
        // The example of one block in FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of(b"abc").to_string(), abc);
        assert_eq!(abc.parse::<Fingerprint>().unwrap(), Fingerprint::of(b"abc"));
        assert!(abc.to_uppercase().parse::<Fingerprint>().is_err());
        assert!(abc[2..].parse::<Fingerprint>().is_err());
    }
}
