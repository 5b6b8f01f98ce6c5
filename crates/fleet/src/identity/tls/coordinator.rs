//! How a member checks a coordinator.

use crate::identity::trust::{Signatures, Trust};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Accepts coordinators of the authority under the name of the connection.
#[derive(Debug)]
pub(super) struct CoordinatorVerifier {
    trust: Arc<Trust>,
    signatures: Signatures,
}

impl CoordinatorVerifier {
    pub fn new(trust: Arc<Trust>) -> Self {
        Self { trust, signatures: Signatures::new() }
    }
}

impl ServerCertVerifier for CoordinatorVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.trust.coordinator(certificate, Some(name), now)?;
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
