//! The certificate authority of a coordinator.

use super::error::shown;
use super::facts::CertificateFacts;
use super::files::{Folder, NewFile, SMALL};
use super::lives::{SKEW, authority_seconds, certificate_seconds};
use super::request::{PendingKey, SigningRequest};
use super::{Credentials, Fingerprint, Identity, IdentityError, Lives, Revocations, Serial, Subject, Tokens, pem};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SerialNumber,
};
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority.key";
/// The most names of a coordinator.
const MOST_NAMES: usize = 100;
const LOST: &str =
    "restore it from a backup: without it, no member can join or renew, and the fleet needs another authority";

/// A fleet's own certificate authority: it signs the certificates of members and coordinators, and nothing else. All keys are ECDSA with
/// P-256.
///
/// Its folder has `authority.pem` (the certificate) and `authority.key` (the private key, in PKCS #8, which only its owner may read), beside
/// the coordinator's own [`Credentials`], the [`Tokens`] and the [`Revocations`].
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    fingerprint: Fingerprint,
    not_after: u64,
}

/// A certificate that the authority has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate, in PEM.
    pub pem: String,
    /// What it states.
    pub facts: CertificateFacts,
}

impl Authority {
    /// Makes an authority, and the files of its coordinator, in a folder that has none of them. The folder is made if it is missing.
    /// `names` are the DNS names and IP addresses at which members reach the coordinator; `now` is in seconds since 1970.
    ///
    /// `authority.pem` is written last: without it the folder has no authority. If a file cannot be written, the others are removed.
    ///
    /// # Errors
    /// Fails if one of the files exists, if there are no names or more than 100, if a life is out of its bounds, or if a file cannot be
    /// written.
    pub fn create(dir: &Path, names: &[ServerName<'static>], lives: &Lives, now: u64) -> Result<Self, IdentityError> {
        let (authority, key) = Self::generate(lives.authority, now)?;
        let coordinator = authority.coordinator(names, lives.coordinator, now)?;
        let folder = Folder::new(dir);
        folder.make()?;
        folder.lock()?.create_all(&[
            Tokens::first(),
            Revocations::first(),
            coordinator.file(),
            NewFile::private(KEY, key),
            NewFile::public(CERTIFICATE, authority.pem.clone()),
        ])?;
        Ok(authority)
    }

    /// Opens the authority of a folder.
    ///
    /// # Errors
    /// Fails if a file is missing or damaged, if others can read the private key, or if the key is not the certificate's.
    pub fn open(dir: &Path) -> Result<Self, IdentityError> {
        let folder = Folder::new(dir);
        let missing = |name, remedy| IdentityError::Missing { path: folder.path(name), remedy };
        let damaged = |name, why| IdentityError::Damaged { path: folder.path(name), why, remedy: LOST };
        let certificate = folder.read(CERTIFICATE, SMALL)?;
        let create = "create an authority in this folder first; if there was one, restore the file from a backup";
        let text = lossy(&certificate.ok_or_else(|| missing(CERTIFICATE, create))?);
        let key = lossy(&folder.read_private(KEY, SMALL)?.ok_or_else(|| missing(KEY, LOST))?);
        let key = KeyPair::from_pem(&key)
            .map_err(|error| damaged(KEY, format!("it is not a private key in PEM ({error})")))?;
        let (der, pem) =
            pem::certificate("the authority", &text).map_err(|error| damaged(CERTIFICATE, error.to_string()))?;
        Self::new(key, der, pem).map_err(|why| damaged(CERTIFICATE, why))
    }

    /// The certificate, in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// The certificate, in DER.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The SHA-256 of the certificate, which join tokens carry.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The last second since 1970 at which the authority is valid.
    #[must_use]
    pub fn not_after(&self) -> u64 {
        self.not_after
    }

    /// Signs a member's certificate, for client authentication. It lasts `life`, or until the authority ends.
    ///
    /// # Errors
    /// Fails if the life is out of its bounds, or if the authority has expired.
    pub fn issue(
        &self,
        request: &SigningRequest,
        member: &Identity,
        life: Duration,
        now: u64,
    ) -> Result<Issued, IdentityError> {
        self.sign(request, Subject::Member(member.clone()), &[], life, now)
    }

    /// Signs a coordinator's certificate, for server authentication under these names.
    ///
    /// # Errors
    /// Fails if there are no names or more than 100, if the life is out of its bounds, or if the authority has expired.
    pub fn issue_coordinator(
        &self,
        request: &SigningRequest,
        names: &[ServerName<'static>],
        life: Duration,
        now: u64,
    ) -> Result<Issued, IdentityError> {
        self.sign(request, Subject::Coordinator, names, life, now)
    }

    /// Another key and certificate for the coordinator under these names. They are not stored.
    ///
    /// # Errors
    /// Fails as [`issue_coordinator`](Self::issue_coordinator) does.
    pub fn coordinator(
        &self,
        names: &[ServerName<'static>],
        life: Duration,
        now: u64,
    ) -> Result<Credentials, IdentityError> {
        let pending = PendingKey::generate()?;
        let request = SigningRequest::from_pem(pending.request())?;
        let issued = self.issue_coordinator(&request, names, life, now)?;
        Credentials::accept(pending, &issued.pem, &self.pem, now)
    }

    /// A new authority, and its private key in PEM.
    fn generate(life: Duration, now: u64) -> Result<(Self, String), IdentityError> {
        let end = now.saturating_add(authority_seconds(life)?);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
            .map_err(IdentityError::make("the authority's private key"))?;
        let (serial, bytes) = Serial::random()?;
        // The number keeps the names of several authorities apart.
        let mut params = params(&format!("queuescope fleet {}", &serial.to_string()[..8]), bytes, now, end)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).map_err(IdentityError::make("the authority's certificate"))?;
        let (pem, key_pem) = (certificate.pem(), key.serialize_pem());
        let made = Self::new(key, certificate.into(), pem);
        let made = made.map_err(|why| IdentityError::Pem { what: "the authority's new certificate", why })?;
        Ok((made, key_pem))
    }

    fn new(key: KeyPair, certificate: CertificateDer<'static>, pem: String) -> Result<Self, String> {
        let (_, parsed) =
            X509Certificate::from_der(&certificate).map_err(|error| format!("it is not X.509 ({error})"))?;
        let constraints = parsed.basic_constraints().map_err(|error| error.to_string())?;
        if !constraints.is_some_and(|constraints| constraints.value.ca) {
            return Err("it is not the certificate of an authority".to_owned());
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(format!("it is for another private key than the one in {KEY}"));
        }
        let not_after =
            u64::try_from(parsed.validity().not_after.timestamp()).map_err(|_| "it ended before 1970".to_owned())?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|error| error.to_string())?;
        let fingerprint = Fingerprint::of(&certificate);
        Ok(Self { issuer, certificate, pem, fingerprint, not_after })
    }

    fn sign(
        &self,
        request: &SigningRequest,
        subject: Subject,
        names: &[ServerName<'static>],
        life: Duration,
        now: u64,
    ) -> Result<Issued, IdentityError> {
        let end = now.saturating_add(certificate_seconds(life)?).min(self.not_after);
        if end <= now {
            return Err(IdentityError::AuthorityExpired { at: shown(self.not_after) });
        }
        let (serial, bytes) = Serial::random()?;
        let (common_name, usage) = match &subject {
            Subject::Coordinator => ("coordinator", ExtendedKeyUsagePurpose::ServerAuth),
            Subject::Member(member) => (member.name.as_str(), ExtendedKeyUsagePurpose::ClientAuth),
        };
        if subject == Subject::Coordinator && !(1..=MOST_NAMES).contains(&names.len()) {
            return Err(IdentityError::ServerNames { count: names.len() });
        }
        let mut params = params(common_name, bytes, now, end)?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let made = |result: Result<SanType, rcgen::Error>| result.map_err(IdentityError::make("a certificate's name"));
        params.subject_alt_names.push(made(subject.uri().try_into().map(SanType::URI))?);
        for name in names {
            params.subject_alt_names.push(made(alternative(name))?);
        }
        let certificate = params.signed_by(&request.key, &self.issuer).map_err(IdentityError::make("a certificate"))?;
        let facts = CertificateFacts {
            subject,
            serial,
            not_before: now.saturating_sub(SKEW),
            not_after: end,
            names: names.to_vec(),
        };
        Ok(Issued { pem: certificate.pem(), facts })
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

fn params(common_name: &str, serial: [u8; 16], now: u64, end: u64) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::default();
    params.not_before = date(now.saturating_sub(SKEW))?;
    params.not_after = date(end)?;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}

fn date(seconds: u64) -> Result<OffsetDateTime, IdentityError> {
    let date = i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    date.ok_or(IdentityError::Time { seconds })
}

fn alternative(name: &ServerName<'static>) -> Result<SanType, rcgen::Error> {
    match name {
        ServerName::IpAddress(address) => Ok(SanType::IpAddress(IpAddr::from(*address))),
        name => name.to_str().as_ref().try_into().map(SanType::DnsName),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    const NOW: u64 = 1_795_000_000;
    const DAY: Duration = Duration::from_secs(86_400);

    fn names() -> Vec<ServerName<'static>> {
        ["c1.example", "127.0.0.1"].map(|name| name.try_into().unwrap()).to_vec()
    }

    fn authority() -> (tempfile::TempDir, Authority) {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::create(dir.path(), &names(), &Lives::default(), NOW).unwrap();
        (dir, authority)
    }

    fn request() -> SigningRequest {
        SigningRequest::from_pem(PendingKey::generate().unwrap().request()).unwrap()
    }

    #[test]
    fn an_authority_opens_again_and_is_never_overwritten() {
        let (dir, made) = authority();
        let opened = Authority::open(dir.path()).unwrap();
        assert_eq!((opened.fingerprint(), opened.certificate_pem()), (made.fingerprint(), made.certificate_pem()));
        assert_eq!(opened.not_after(), NOW + Lives::default().authority.as_secs());
        let mode = |name| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            ["authority.key", "authority.pem", "credentials.pem", "tokens.json", "certificates.json"].map(mode),
            [0o600, 0o644, 0o600, 0o600, 0o600]
        );
        let error = Authority::create(dir.path(), &names(), &Lives::default(), NOW).unwrap_err().to_string();
        assert!(error.contains(" exists and is never overwritten: "), "{error}");
        assert_eq!(Authority::open(dir.path()).unwrap().fingerprint(), made.fingerprint());
    }

    #[test]
    fn exposed_missing_and_damaged_files_are_refused() {
        let (dir, _) = authority();
        let (key, certificate) = (dir.path().join("authority.key"), dir.path().join("authority.pem"));
        let why = || Authority::open(dir.path()).unwrap_err().to_string();
        fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
        assert!(
            why().contains("authority.key has mode 0644, so other users can read it: run `chmod 600` on it"),
            "{}",
            why()
        );
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        Authority::open(dir.path()).unwrap();

        let whole = fs::read(&key).unwrap();
        fs::write(&key, &whole[..whole.len() / 2]).unwrap();
        assert!(why().contains("authority.key is damaged: it is not a private key in PEM"), "{}", why());
        let (other, _) = authority();
        fs::write(&key, fs::read(other.path().join("authority.key")).unwrap()).unwrap();
        assert!(
            why().contains("authority.pem is damaged: it is for another private key than the one in authority.key"),
            "{}",
            why()
        );
        fs::remove_file(&key).unwrap();
        assert!(why().contains("authority.key: restore it from a backup"), "{}", why());
        fs::write(&certificate, "hello").unwrap();
        fs::write(&key, &whole).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        assert!(
            why().contains("authority.pem is damaged: the authority is not usable: it has 0 sections"),
            "{}",
            why()
        );
        let member = Credentials::load(dir.path()).unwrap().unwrap();
        fs::write(&certificate, member.certificate_pem()).unwrap();
        assert!(why().contains("authority.pem is damaged: it is not the certificate of an authority"), "{}", why());
        fs::remove_file(&certificate).unwrap();
        assert!(why().contains("authority.pem: create an authority in this folder first"), "{}", why());
    }

    #[test]
    fn a_certificate_states_what_the_authority_decides() {
        let (_dir, authority) = authority();
        let member = Identity::parse("web-1", "agent").unwrap();
        let issued = authority.issue(&request(), &member, DAY, NOW).unwrap();
        let (der, _) = pem::certificate("it", &issued.pem).unwrap();
        assert_eq!(CertificateFacts::from_der(&der).unwrap(), issued.facts);
        assert_eq!((issued.facts.not_before, issued.facts.not_after), (NOW - 300, NOW + 86_400));
        assert_eq!(issued.facts.subject, Subject::Member(member.clone()));
        let (_, parsed) = X509Certificate::from_der(&der).unwrap();
        let usage = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth && !usage.any);
        assert!(!parsed.is_ca());
        parsed
            .verify_signature(Some(X509Certificate::from_der(authority.certificate()).unwrap().1.public_key()))
            .unwrap();
        let again = authority.issue(&request(), &member, DAY, NOW).unwrap();
        assert_ne!(again.facts.serial, issued.facts.serial);

        let issued = authority.issue_coordinator(&request(), &names(), DAY, NOW).unwrap();
        let (der, _) = pem::certificate("it", &issued.pem).unwrap();
        let facts = CertificateFacts::from_der(&der).unwrap();
        assert_eq!((&facts, &facts.names, &facts.subject), (&issued.facts, &names(), &Subject::Coordinator));
        let (_, parsed) = X509Certificate::from_der(&der).unwrap();
        let usage = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && !usage.client_auth && !usage.any);
    }

    #[test]
    fn a_certificate_does_not_outlive_its_authority() {
        let (_dir, authority) = authority();
        let end = authority.not_after();
        let issue = |now| authority.issue(&request(), &Identity::parse("a", "reader").unwrap(), DAY, now);
        assert_eq!(issue(end - 10).unwrap().facts.not_after, end);
        let error = issue(end).unwrap_err().to_string();
        assert!(error.starts_with("the authority expired at 2036-"), "{error}");
    }

    #[test]
    fn impossible_names_lives_and_times_are_refused() {
        let (_dir, authority) = authority();
        let coordinator = |count, life, now| {
            let names = vec![ServerName::try_from("c1.example").unwrap(); count];
            authority.issue_coordinator(&request(), &names, life, now).map(drop).map_err(|error| error.to_string())
        };
        coordinator(100, DAY, NOW).unwrap();
        let label = "x".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", &label[2..]);
        let longest = vec![ServerName::try_from(longest).unwrap(); 100];
        let (dir, loaded) = (tempfile::tempdir().unwrap(), |dir: &Path| Credentials::load(dir).unwrap().unwrap());
        authority.coordinator(&longest, DAY, NOW).unwrap().save(dir.path()).unwrap();
        assert_eq!(loaded(dir.path()).facts().names, longest);
        let names = |count| {
            Err(format!(
                "a coordinator cannot have {count} names: give 1 to 100 DNS names or IP addresses at which members reach it"
            ))
        };
        assert_eq!([coordinator(0, DAY, NOW), coordinator(101, DAY, NOW)], [names(0), names(101)]);
        assert!(coordinator(1, Duration::ZERO, NOW).unwrap_err().starts_with("a certificate cannot last 0 seconds: "));
        let dir = tempfile::tempdir().unwrap();
        let error = Authority::create(dir.path(), &self::names(), &Lives::default(), u64::MAX).unwrap_err().to_string();
        assert!(error.ends_with("check the clock of this machine"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
