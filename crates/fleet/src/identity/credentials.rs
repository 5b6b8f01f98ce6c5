//! What a member has: its private key, its certificate, and the authority.

use super::error::shown;
use super::facts::CertificateFacts;
use super::files::{Folder, NewFile, SMALL};
use super::lives::SKEW;
use super::request::PendingKey;
use super::trust::Trust;
use super::{Fingerprint, IdentityError, Subject, pem};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;

const FILE: &str = "credentials.pem";
const REMEDY: &str = "restore it from a backup, or remove it and join again with a new token";

/// The private key, the certificate and the authority of a member or a coordinator. They belong together: the certificate is the key's, and the
/// authority signed it. Only its time may have passed.
///
/// They are one file, `credentials.pem`, which only its owner may read, so that a renewal replaces all of it in one step. It has the key, the
/// certificate and the authority's certificate, in this order.
pub struct Credentials {
    key_pem: String,
    certificate_pem: String,
    authority_pem: String,
    facts: CertificateFacts,
    certified: Arc<CertifiedKey>,
    trust: Arc<Trust>,
}

impl Credentials {
    /// Reads the credentials of a folder, if it has any. They may have expired: see [`is_expired`](Self::is_expired).
    ///
    /// # Errors
    /// Fails if others can read the file, or if it is damaged.
    pub fn load(dir: &Path) -> Result<Option<Self>, IdentityError> {
        let folder = Folder::new(dir);
        let Some(bytes) = folder.read_private(FILE, SMALL)? else { return Ok(None) };
        let damaged = |why: String| IdentityError::Damaged { path: folder.path(FILE), why, remedy: REMEDY };
        let text = String::from_utf8_lossy(&bytes);
        let [key, certificate, authority] = pem::sections(&text)[..] else {
            return Err(damaged(format!("it has {} sections in PEM, and must have three", pem::sections(&text).len())));
        };
        let loaded = Self::new(key.to_owned(), certificate, authority, None);
        loaded.map(Some).map_err(|error| damaged(error.with_causes()))
    }

    /// Writes the credentials to a folder, over older ones. The folder is made if it is missing. After a crash there are either the old ones
    /// or these.
    ///
    /// # Errors
    /// Fails if the file cannot be written; then the old one stays.
    pub fn save(&self, dir: &Path) -> Result<(), IdentityError> {
        let folder = Folder::new(dir);
        folder.make()?;
        folder.lock()?.replace(&self.file())
    }

    /// The first credentials of a member, from the answer to its request. `now` is in seconds since 1970. The caller has checked the authority
    /// by its fingerprint ([`accept_from`](Self::accept_from) does), or is the authority.
    ///
    /// # Errors
    /// Fails if a text is not a certificate, if the certificate is for another key, or if it does not pass the check against the authority at
    /// `now`.
    #[expect(clippy::needless_pass_by_value, reason = "a key has one certificate")]
    pub fn accept(pending: PendingKey, certificate: &str, authority: &str, now: u64) -> Result<Self, IdentityError> {
        Self::new(pending.key.serialize_pem(), certificate, authority, Some(now))
    }

    /// The same for an authority that must have this fingerprint: the one in the join token.
    ///
    /// # Errors
    /// Also fails if the authority is another one.
    pub fn accept_from(
        expected: Fingerprint,
        pending: PendingKey,
        certificate: &str,
        authority: &str,
        now: u64,
    ) -> Result<Self, IdentityError> {
        let (der, _) = pem::certificate("the authority's certificate", authority)?;
        let found = Fingerprint::of(&der);
        if found != expected {
            return Err(IdentityError::OtherAuthority { expected, found });
        }
        Self::accept(pending, certificate, authority, now)
    }

    /// The credentials after these, from the answer to a request to renew them. The authority stays. These are unchanged, so they stay in use
    /// if the answer is wrong.
    ///
    /// # Errors
    /// Fails if the text is not a certificate, if the certificate is for another key or subject, if it does not pass the check against the
    /// authority at `now`, or if it is older than this one.
    pub fn renewed(&self, pending: PendingKey, certificate: &str, now: u64) -> Result<Self, IdentityError> {
        let new = Self::accept(pending, certificate, &self.authority_pem, now)?;
        self.check_successor(&new)?;
        Ok(new)
    }

    /// Whose credentials they are.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.facts.subject
    }

    /// What the certificate states.
    #[must_use]
    pub fn facts(&self) -> &CertificateFacts {
        &self.facts
    }

    /// The certificate, in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's certificate, in PEM.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The SHA-256 of the authority's certificate.
    #[must_use]
    pub fn authority(&self) -> Fingerprint {
        self.trust.fingerprint()
    }

    /// The second since 1970 from which on the certificate should be renewed: after two thirds of its life.
    #[must_use]
    pub fn renew_at(&self) -> u64 {
        let issued = self.facts.not_before.saturating_add(SKEW).min(self.facts.not_after);
        issued + (self.facts.not_after - issued) / 3 * 2
    }

    /// Whether the last second of the certificate has passed: then only a new token helps.
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        self.facts.is_expired(now)
    }

    pub(super) fn file(&self) -> NewFile {
        NewFile::private(FILE, format!("{}\n{}{}", self.key_pem.trim_end(), self.certificate_pem, self.authority_pem))
    }

    /// The key and the certificates as TLS uses them: a coordinator also sends the authority's, by which a member that joins recognizes it.
    pub(super) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }

    pub(super) fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }

    /// Fails if the new ones may not replace these.
    pub(super) fn check_successor(&self, new: &Self) -> Result<(), IdentityError> {
        if new.authority() != self.authority() {
            return Err(IdentityError::OtherAuthority { expected: self.authority(), found: new.authority() });
        }
        if new.subject() != self.subject() {
            return Err(IdentityError::OtherSubject { expected: self.subject().clone(), found: new.subject().clone() });
        }
        let (current, found) = (self.facts.not_before, new.facts.not_before);
        if found < current {
            return Err(IdentityError::Older { current: shown(current), found: shown(found) });
        }
        Ok(())
    }

    /// Checks that the parts belong together, at `now`; without a time, at the end of the certificate's life.
    fn new(key_pem: String, certificate: &str, authority: &str, now: Option<u64>) -> Result<Self, IdentityError> {
        let (certificate, certificate_pem) = pem::certificate("the certificate", certificate)?;
        let (authority, authority_pem) = pem::certificate("the authority's certificate", authority)?;
        let facts = CertificateFacts::from_der(&certificate)?;
        let wrong_key = |why: String| IdentityError::Pem { what: "the private key", why };
        let key =
            PrivatePkcs8KeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|error| wrong_key(error.to_string()))?;
        let key = super::trust::provider().key_provider.load_private_key(PrivateKeyDer::Pkcs8(key));
        let key = key.map_err(|error| wrong_key(error.to_string()))?;
        let mut chain = vec![certificate.clone()];
        if facts.subject == Subject::Coordinator {
            chain.push(authority.clone());
        }
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(|_| IdentityError::OtherKey { subject: facts.subject.clone() })?;
        let trust = Trust::new(&authority)
            .map_err(|error| IdentityError::Pem { what: "the authority's certificate", why: error.to_string() })?;
        trust.check(&facts, &certificate, now.unwrap_or(facts.not_after))?;
        Ok(Self {
            key_pem,
            certificate_pem,
            authority_pem,
            facts,
            certified: Arc::new(certified),
            trust: Arc::new(trust),
        })
    }
}

/// Without the private key.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("facts", &self.facts)
            .field("authority", &self.authority())
            .finish_non_exhaustive()
    }
}
