//! How a member that joins checks a coordinator, before it has the authority's certificate.

use crate::identity::error::shown;
use crate::identity::trust::{Signatures, Trust, refused};
use crate::identity::{Fingerprint, IdentityError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// Accepts coordinators whose authority is the one with this fingerprint: the server sends its certificate after its own.
#[derive(Debug)]
pub(super) struct PinnedAuthority {
    expected: Fingerprint,
    signatures: Signatures,
}

impl PinnedAuthority {
    pub fn new(expected: Fingerprint) -> Self {
        Self { expected, signatures: Signatures::new() }
    }

    /// The pinned certificate among those that the server sent.
    fn authority<'a>(&self, sent: &'a [CertificateDer<'a>]) -> Result<&'a CertificateDer<'a>, Error> {
        let pinned = sent.iter().find(|certificate| Fingerprint::of(certificate) == self.expected);
        pinned.ok_or_else(|| match sent.last() {
            Some(last) => {
                refused(IdentityError::OtherAuthority { expected: self.expected, found: Fingerprint::of(last) })
            }
            None => CertificateError::UnknownIssuer.into(),
        })
    }
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let authority = self.authority(others)?;
        check_time(authority, now)?;
        Trust::new(authority)?.coordinator(certificate, Some(name), now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.refuse()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}

/// The library does not look at the time of an authority's certificate.
fn check_time(authority: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) = X509Certificate::from_der(authority).map_err(|_| CertificateError::BadEncoding)?;
    let end = parsed.validity().not_after.timestamp();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < parsed.validity().not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > end {
        return Err(refused(IdentityError::AuthorityExpired { at: shown(end.try_into().unwrap_or(0)) }));
    }
    Ok(())
}
