//! Requests for certificates, PKCS #10 (RFC 2986).

use super::IdentityError;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKey,
    PublicKeyData,
};

/// The length of an uncompressed point of P-256 (SEC 1, section 2.3.3), and its first byte.
const POINT: (usize, u8) = (65, 4);
/// The most bytes of a request's text: ours have less than 1 KB.
const LONGEST: usize = 16 << 10;

/// A new private key, and the request for its certificate. The key never leaves the process that made it; with the answer to the request it
/// becomes [`Credentials`](super::Credentials).
pub struct PendingKey {
    pub(super) key: KeyPair,
    request: String,
}

impl PendingKey {
    /// Makes a key: ECDSA with P-256.
    ///
    /// # Errors
    /// Fails if the system gives no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(IdentityError::make("a private key"))?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key).and_then(|request| request.pem());
        let request = request.map_err(IdentityError::make("a request for a certificate"))?;
        Ok(Self { key, request })
    }

    /// The request, in PEM.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }
}

impl std::fmt::Debug for PendingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingKey").finish_non_exhaustive()
    }
}

/// The public key of a request, whose owner has proved to have the private key. Nothing else of a request is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningRequest {
    pub(super) key: PublicKey,
}

impl SigningRequest {
    /// Reads a request in PEM, and checks its signature.
    ///
    /// # Errors
    /// Fails if the text is not a request, has more than 16 KB, has a wrong signature, or if its key is not one of ECDSA with P-256.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let wrong = |why: String| IdentityError::Request { why };
        if text.len() > LONGEST {
            return Err(wrong(format!("it has {} bytes, and can have {}", text.len(), LONGEST)));
        }
        let key = CertificateSigningRequestParams::from_pem(text).map_err(|error| wrong(error.to_string()))?.public_key;
        let point = key.der_bytes();
        if key.algorithm() != &PKCS_ECDSA_P256_SHA256 || (point.len(), point.first()) != (POINT.0, Some(&POINT.1)) {
            return Err(wrong("its key is not one of ECDSA with P-256".to_owned()));
        }
        Ok(Self { key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType};

    #[test]
    fn a_request_proves_the_key_and_nothing_else_of_it_is_used() {
        let pending = PendingKey::generate().unwrap();
        let request = SigningRequest::from_pem(pending.request()).unwrap();
        assert_eq!(request.key.der_bytes(), pending.key.der_bytes());
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI("queuescope://fleet/admin/root".try_into().unwrap())];
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let greedy = params.serialize_request(&pending.key).unwrap().pem().unwrap();
        assert_eq!(SigningRequest::from_pem(&greedy).unwrap(), request);
        assert_eq!(format!("{pending:?}"), "PendingKey { .. }");
    }

    #[test]
    fn other_kinds_of_keys_are_refused() {
        for algorithm in [&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let request = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
            let error = SigningRequest::from_pem(&request).unwrap_err().to_string();
            assert!(error.contains(": its key is not one of ECDSA with P-256; "), "{error}");
        }
    }

    #[test]
    fn a_request_of_another_key_is_refused() {
        let (one, other) = (PendingKey::generate().unwrap(), PendingKey::generate().unwrap());
        let der = |pending: &PendingKey| {
            let params = CertificateParams::default();
            params.serialize_request(&pending.key).unwrap().der().to_vec()
        };
        // The signature of one, below the key of the other.
        let (mut der, theirs) = (der(&one), der(&other));
        let (ours, theirs_key) = (one.key.der_bytes(), other.key.der_bytes());
        let at = der.windows(ours.len()).position(|window| window == ours).unwrap();
        assert!(theirs.windows(theirs_key.len()).any(|window| window == theirs_key));
        der[at..at + ours.len()].copy_from_slice(theirs_key);
        let error = CertificateSigningRequestParams::from_der(&der.into()).unwrap_err();
        assert_eq!(error, rcgen::Error::InvalidCertificationRequestSignature);
    }

    #[test]
    fn long_and_other_texts_are_refused() {
        let error = SigningRequest::from_pem(&"-".repeat(16_385)).unwrap_err().to_string();
        assert!(error.contains(": it has 16385 bytes, and can have 16384; "), "{error}");
        let error = SigningRequest::from_pem("hello").unwrap_err().to_string();
        assert!(error.starts_with("the request for a certificate is not usable: "), "{error}");
    }

    proptest! {
        /// The signature covers the key. Its own encoding, and the end of base64, have bits without a meaning.
        #[test]
        fn a_changed_request_is_refused_or_has_the_same_key(
            at in any::<prop::sample::Index>(),
            to in "[A-Za-z0-9+/=\n-]",
        ) {
            let pending = PendingKey::generate().unwrap();
            let mut text = pending.request().to_owned();
            let original = SigningRequest::from_pem(&text).unwrap();
            let body = 36..text.len() - 34;
            let at = body.start + at.index(body.len());
            text.replace_range(at..=at, &to);
            prop_assert!(SigningRequest::from_pem(&text).map_or(true, |read| read == original), "{text}");
        }

        /// Within what is signed, every change is refused: the first 104 bytes, behind four of the outer header.
        #[test]
        fn a_change_of_what_is_signed_is_refused(at in 4usize..104, bit in 0u8..8) {
            let pending = PendingKey::generate().unwrap();
            let request = CertificateParams::default().serialize_request(&pending.key).unwrap();
            let mut der = request.der().to_vec();
            der[at] ^= 1 << bit;
            prop_assert!(CertificateSigningRequestParams::from_der(&der.into()).is_err());
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            prop_assert!(SigningRequest::from_pem(&text).is_err());
        }
    }
}
