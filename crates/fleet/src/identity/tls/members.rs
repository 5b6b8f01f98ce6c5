//! How a coordinator checks members.

use crate::identity::Revocations;
use crate::identity::trust::{Signatures, Trust, refused};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// Accepts members of the authority whose certificates are not revoked, and clients without a certificate.
#[derive(Debug)]
pub(super) struct MemberVerifier {
    trust: Arc<Trust>,
    revocations: Arc<Revocations>,
    signatures: Signatures,
}

impl MemberVerifier {
    pub fn new(trust: Arc<Trust>, revocations: Arc<Revocations>) -> Self {
        Self { trust, revocations, signatures: Signatures::new() }
    }
}

impl ClientCertVerifier for MemberVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None: a member has one certificate, and sends it.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let facts = self.trust.member(certificate, now)?;
        let member = facts.subject.member().map_err(refused)?;
        if self.revocations.is_revoked(member, &facts.serial) {
            return Err(CertificateError::Revoked.into());
        }
        Ok(ClientCertVerified::assertion())
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
