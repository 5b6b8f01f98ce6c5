//! What a certificate states.

use super::error::{quoted, shown};
use super::{IdentityError, Subject, hex, random};
use rustls::pki_types::ServerName;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// What a certificate of the fleet states. It says nothing about whether the certificate is genuine: TLS checks that, before a connection
/// has certificates to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Whose certificate it is.
    pub subject: Subject,
    /// Its number.
    pub serial: Serial,
    /// The second since 1970 from which it is valid: [`SKEW`](super::SKEW) before it was issued.
    pub not_before: u64,
    /// The last second since 1970 at which it is valid.
    pub not_after: u64,
    /// The DNS names and IP addresses of a coordinator; none for a member.
    pub names: Vec<ServerName<'static>>,
}

impl CertificateFacts {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// Fails if it is not a certificate, or does not have exactly one URI among its alternative names, or if that is not a [`Subject`].
    pub fn from_der(der: &[u8]) -> Result<Self, IdentityError> {
        let wrong = |why: String| IdentityError::Certificate { why };
        let (rest, certificate) =
            X509Certificate::from_der(der).map_err(|error| wrong(format!("it is not X.509 ({error})")))?;
        if !rest.is_empty() {
            return Err(wrong(format!("{} bytes follow it", rest.len())));
        }
        let alternative = certificate.subject_alternative_name();
        let alternative = alternative.map_err(|error| wrong(format!("its alternative names are wrong ({error})")))?;
        let (mut uris, mut names) = (Vec::new(), Vec::new());
        for name in alternative.map_or(&[][..], |names| &names.value.general_names) {
            match name {
                GeneralName::URI(uri) => uris.push(*uri),
                other => names.push(
                    server_name(other).ok_or_else(|| wrong("it has an alternative name of another kind".to_owned()))?,
                ),
            }
        }
        let [uri] = uris[..] else {
            return Err(wrong(format!("it names {} identities, and must name one", uris.len())));
        };
        let time = |time: x509_parser::time::ASN1Time| {
            u64::try_from(time.timestamp()).map_err(|_| wrong("it is from before 1970".to_owned()))
        };
        Ok(Self {
            subject: uri.parse().map_err(|error: IdentityError| wrong(error.to_string()))?,
            serial: Serial::from_bytes(certificate.raw_serial()),
            not_before: time(certificate.validity().not_before)?,
            not_after: time(certificate.validity().not_after)?,
            names,
        })
    }

    /// Whether the last second of the certificate has passed.
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        now > self.not_after
    }

    /// Fails if the certificate has expired.
    pub(super) fn check_expiry(&self, now: u64) -> Result<(), IdentityError> {
        match self.is_expired(now) {
            true => Err(IdentityError::Expired { subject: self.subject.clone(), at: shown(self.not_after) }),
            false => Ok(()),
        }
    }
}

/// The number of a certificate: pairs of lowercase hexadecimal digits, without leading zeros. Ours have 32 digits, 126 bits of them random.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Serial(String);

impl Serial {
    /// Another random number.
    pub(super) fn random() -> Result<(Self, [u8; 16]), IdentityError> {
        let mut bytes = random::bytes::<16>()?;
        // Positive, and always of the same length.
        bytes[0] = bytes[0] & 0x3f | 0x40;
        Ok((Self::from_bytes(&bytes), bytes))
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let zeros = bytes.iter().take(bytes.len().saturating_sub(1)).take_while(|&&byte| byte == 0).count();
        Self(hex::encode(&bytes[zeros..]))
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Serial {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        // RFC 5280, section 4.1.2.2: at most 20 bytes.
        let valid = (1..=40).contains(&text.len()) && hex::is_pairs(text) && (text == "00" || !text.starts_with("00"));
        if valid { Ok(Self(text.to_owned())) } else { Err(IdentityError::Serial { given: quoted(text) }) }
    }
}

impl TryFrom<String> for Serial {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl From<Serial> for String {
    fn from(serial: Serial) -> Self {
        serial.0
    }
}

/// The DNS name or IP address.
fn server_name(name: &GeneralName<'_>) -> Option<ServerName<'static>> {
    match name {
        GeneralName::DNSName(name) => ServerName::try_from((*name).to_owned()).ok(),
        GeneralName::IPAddress(octets) => {
            let address = match octets.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(*octets).ok()?),
                _ => IpAddr::from(<[u8; 16]>::try_from(*octets).ok()?),
            };
            Some(ServerName::IpAddress(address.into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    /// A certificate with these alternative names.
    fn certificate(names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().unwrap())
    }

    fn dns(text: &str) -> SanType {
        SanType::DnsName(text.try_into().unwrap())
    }

    #[test]
    fn one_identity_is_read_with_the_names() {
        let names =
            vec![dns("c1.example"), uri("queuescope://fleet/coordinator"), SanType::IpAddress([10, 0, 0, 1].into())];
        let facts = CertificateFacts::from_der(&certificate(names)).unwrap();
        assert_eq!(facts.subject, Subject::Coordinator);
        let names: Vec<_> = facts.names.iter().map(ServerName::to_str).collect();
        assert_eq!(names, ["c1.example", "10.0.0.1"]);
        let facts = CertificateFacts::from_der(&certificate(vec![uri("queuescope://fleet/agent/web-1")])).unwrap();
        assert_eq!(facts.subject, Subject::Member(Identity::parse("web-1", "agent").unwrap()));
        // rcgen's defaults: 1975 to 4096.
        assert_eq!((facts.not_before, facts.not_after), (157_766_400, 67_090_118_400));
        assert!(facts.serial.to_string().parse::<Serial>().is_ok());
    }

    #[test]
    fn none_several_and_wrong_identities_are_refused() {
        let why = |names: Vec<SanType>| CertificateFacts::from_der(&certificate(names)).unwrap_err().to_string();
        let (web, admin) = (uri("queuescope://fleet/agent/web"), uri("queuescope://fleet/admin/web"));
        assert!(why(vec![]).contains(": it names 0 identities, and must name one; get another"), "{}", why(vec![]));
        assert!(why(vec![dns("web")]).contains(": it names 0 identities"));
        assert!(why(vec![web.clone(), admin]).contains(": it names 2 identities"));
        assert!(why(vec![web.clone(), web.clone()]).contains(": it names 2 identities"));
        assert!(why(vec![web.clone(), uri("spiffe://other/web")]).contains(": it names 2 identities"));
        assert!(why(vec![uri("queuescope://fleet/root/web")]).contains("unknown role 'root'"));
        assert!(
            why(vec![web, SanType::Rfc822Name("a@b".try_into().unwrap())])
                .contains("an alternative name of another kind")
        );
    }

    #[test]
    fn serial_numbers_have_one_form() {
        assert_eq!(Serial::from_bytes(&[0, 0, 10]).to_string(), "0a");
        assert_eq!(Serial::from_bytes(&[0]).to_string(), "00");
        assert_eq!(Serial::from_bytes(&[]).to_string(), "");
        for wrong in ["", "a", "000a", "0A", "0x", &"01".repeat(21)] {
            assert!(wrong.parse::<Serial>().is_err(), "{wrong}");
        }
        let (serial, bytes) = Serial::random().unwrap();
        assert_eq!((serial.to_string().len(), bytes[0] >> 6), (32, 1));
        assert_eq!(serial.to_string().parse::<Serial>().unwrap(), serial);
    }

    proptest! {
        #[test]
        fn bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(CertificateFacts::from_der(&bytes).is_err());
        }

        /// The reading of any single change ends; a change of the identity is either seen or refused.
        #[test]
        fn a_changed_certificate_is_read_or_refused(at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let mut der = certificate(vec![uri("queuescope://fleet/agent/web")]);
            let at = at.index(der.len());
            der[at] = to;
            if let Ok(facts) = CertificateFacts::from_der(&der) {
                prop_assert!(der.windows(facts.subject.uri().len()).any(|window| window == facts.subject.uri().as_bytes()));
            }
            der.truncate(cut.index(der.len()));
            prop_assert!(CertificateFacts::from_der(&der).is_err());
        }
    }
}
