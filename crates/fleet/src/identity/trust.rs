//! Checks of certificates against an authority: the same for a peer in a handshake and for a file.

use super::error::IdentityError;
use super::facts::CertificateFacts;
use super::{Fingerprint, Subject};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// The cryptography of all connections: ring.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// One authority, and nothing else, is trusted. Certificates are signed by the authority itself, so other certificates that a peer sends are
/// not used.
#[derive(Debug)]
pub(super) struct Trust {
    fingerprint: Fingerprint,
    roots: Arc<RootCertStore>,
    clients: Arc<dyn ClientCertVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    /// Trust in this authority.
    ///
    /// # Errors
    /// Fails if it is not a certificate.
    pub fn new(authority: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let provider = provider();
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let roots = Arc::new(roots);
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .allow_unauthenticated()
            .build();
        let clients = clients.map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self {
            fingerprint: Fingerprint::of(authority),
            roots,
            clients,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    /// The authority.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Checks a member's certificate: its signature, its time, its purpose, its identity.
    pub fn member(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<CertificateFacts, rustls::Error> {
        self.clients.verify_client_cert(certificate, &[], now)?;
        let facts = CertificateFacts::from_der(certificate).map_err(refused)?;
        facts.subject.member().map_err(refused)?;
        Ok(facts)
    }

    /// Checks a coordinator's certificate: its signature, its time, its purpose, its identity, and whether it has this name.
    pub fn coordinator(
        &self,
        certificate: &CertificateDer<'_>,
        name: Option<&ServerName<'_>>,
        now: UnixTime,
    ) -> Result<CertificateFacts, rustls::Error> {
        let parsed = rustls::server::ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, &[], now, self.algorithms.all)?;
        let facts = CertificateFacts::from_der(certificate).map_err(refused)?;
        if let Subject::Member(member) = &facts.subject {
            return Err(refused(IdentityError::NotACoordinator(member.clone())));
        }
        name.map_or(Ok(()), |name| rustls::client::verify_server_name(&parsed, name))?;
        Ok(facts)
    }

    /// Checks a certificate that is at hand, at `now` in seconds since 1970.
    pub fn check(
        &self,
        facts: &CertificateFacts,
        certificate: &CertificateDer<'_>,
        now: u64,
    ) -> Result<(), IdentityError> {
        let at = unix_time(now);
        let checked = match facts.subject {
            Subject::Coordinator => self.coordinator(certificate, None, at),
            Subject::Member(_) => self.member(certificate, at),
        };
        checked.map(drop).map_err(|source| IdentityError::Untrusted {
            subject: facts.subject.clone(),
            authority: self.fingerprint,
            source: Box::new(source),
        })
    }
}

/// Signatures of handshakes, which are the same for all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signatures(WebPkiSupportedAlgorithms);

impl Signatures {
    pub fn new() -> Self {
        Self(provider().signature_verification_algorithms)
    }

    pub fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    /// TLS 1.2 is not spoken.
    pub fn refuse(&self) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOfferedOrEnabled.into())
    }

    pub fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// The refusal of a certificate that TLS accepts, and the fleet does not.
pub(super) fn refused(error: IdentityError) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(Refusal(error)))).into()
}

/// An error whose debug form, which is all that the library prints, is for people.
struct Refusal(IdentityError);

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) fn unix_time(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}
