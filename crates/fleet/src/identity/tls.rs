//! Connections: TLS 1.3 with the fleet's certificates, for HTTP/2.
//!
//! Sessions are not resumed and there is no early data, so each connection checks both certificates.

mod coordinator;
mod joining;
mod members;

use super::facts::CertificateFacts;
use super::trust::provider;
use super::{CurrentCredentials, Fingerprint, IdentityError, Revocations, Subject};
use coordinator::CoordinatorVerifier;
use joining::PinnedAuthority;
use members::MemberVerifier;
use rustls::client::Resumption;
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig, ServerConnection};
use std::sync::Arc;

/// HTTP/2 over TLS (RFC 9113, section 3.2).
const ALPN: &[u8] = b"h2";

/// A coordinator's side. Clients with a certificate must be members whose certificates are valid and not revoked. Clients without one are
/// accepted as well, so that they can join: [`peer`] returns nothing for them, and the service lets them do nothing else.
///
/// # Errors
/// Fails if the credentials are a member's, or if TLS cannot be configured.
pub fn server_config(
    credentials: &CurrentCredentials,
    revocations: Arc<Revocations>,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ServerConfig>, IdentityError> {
    let current = credentials.get();
    if let Subject::Member(member) = current.subject() {
        return Err(IdentityError::NotACoordinator(member.clone()));
    }
    let verifier = MemberVerifier::new(current.trust().clone(), revocations);
    let builder = ServerConfig::builder_with_details(provider(), clock).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(|error| IdentityError::Tls(Box::new(error)))?;
    let mut config =
        builder.with_client_cert_verifier(Arc::new(verifier)).with_cert_resolver(Arc::new(credentials.clone()));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// A member's side. The server must have a coordinator's certificate of the same authority, valid for the name or address of the connection.
///
/// # Errors
/// Fails if the credentials are a coordinator's, or if TLS cannot be configured.
pub fn client_config(
    credentials: &CurrentCredentials,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ClientConfig>, IdentityError> {
    let current = credentials.get();
    current.subject().member()?;
    let verifier = Arc::new(CoordinatorVerifier::new(current.trust().clone()));
    let builder = ClientConfig::builder_with_details(provider(), clock).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(|error| IdentityError::Tls(Box::new(error)))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(finished(builder.with_client_cert_resolver(Arc::new(credentials.clone()))))
}

/// The side of a member that joins: it has no certificate, and knows of the authority only the fingerprint in its token. The server must send
/// the authority's certificate with that fingerprint, and a coordinator's certificate that this authority signed and that is valid for the
/// name or address of the connection.
///
/// # Errors
/// Fails if TLS cannot be configured.
pub fn join_config(fingerprint: Fingerprint, clock: Arc<dyn TimeProvider>) -> Result<Arc<ClientConfig>, IdentityError> {
    let verifier = Arc::new(PinnedAuthority::new(fingerprint));
    let builder = ClientConfig::builder_with_details(provider(), clock).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(|error| IdentityError::Tls(Box::new(error)))?;
    Ok(finished(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// The certificate of a client, or nothing if it has none. The handshake has checked it.
///
/// # Errors
/// Fails if it is not a member's, which the handshake has excluded.
pub fn peer(connection: &ServerConnection) -> Result<Option<CertificateFacts>, IdentityError> {
    let Some([certificate, ..]) = connection.peer_certificates() else { return Ok(None) };
    let facts = CertificateFacts::from_der(certificate)?;
    facts.subject.member()?;
    Ok(Some(facts))
}

fn finished(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// Why a connection failed, for people: the reason that one side gives for a certificate, in place of its form in TLS.
#[must_use]
pub fn connection_error(error: &rustls::Error) -> String {
    use rustls::CertificateError::{NotValidForNameContext, Other};
    match error {
        rustls::Error::InvalidCertificate(Other(reason)) => reason.0.to_string(),
        rustls::Error::InvalidCertificate(NotValidForNameContext { expected, presented }) => {
            let names: Vec<_> = presented.iter().filter_map(|name| plain_name(name)).collect();
            format!(
                "its certificate is not for '{}', but for {}: connect to one of these names, with the port (--coordinator). The names are chosen when the coordinator is made \
                 (coordinator init --name, once for each)",
                expected.to_str(),
                names.join(", ")
            )
        }
        other => other.to_string(),
    }
}

/// A name of a certificate without the kind that the library puts around it: `DnsName("monitor.example.net")`, `IpAddress(192.0.2.7)`. Nothing for what is no place to connect to.
fn plain_name(name: &str) -> Option<&str> {
    let (kind, rest) = name.split_once('(')?;
    let inside = rest.strip_suffix(')')?.trim_matches('"');
    (kind != "UniformResourceIdentifier").then_some(inside)
}
