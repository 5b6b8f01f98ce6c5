//! The ways to send alerts.

use super::address::{HostPort, HttpUrl, SinkAddress};
use super::delivery::{Attempt, Outgoing};
use super::error::SinkError;
use super::http::{Post, token};
use super::lines::Lines;
use super::options::{SinkLimits, SinkOptions};
use super::position::short_digest;
use super::{alertmanager, json, sockets, syslog};
use crate::clock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Sends alerts to one sink.
#[derive(Debug)]
pub(super) enum Sender {
    Lines(Lines),
    Webhook(Post),
    Alertmanager(Post),
    Udp(HostPort, SinkLimits),
    Tcp(HostPort, SinkLimits),
    Socket(PathBuf, SinkLimits),
}

impl Sender {
    /// Prepares for a sink, and looks for mistakes: files that cannot be used, a token that would be readable on its way.
    ///
    /// # Errors
    /// Fails if there is one.
    pub fn new(sink: &SinkAddress, options: &SinkOptions, trust: &mut Trusted) -> Result<Self, SinkError> {
        let limits = options.limits;
        Ok(match sink {
            SinkAddress::File(path) => {
                let failed = |why| SinkError::File { what: "open", path: path.clone(), why };
                Self::Lines(Lines::open(path.clone()).map_err(failed)?)
            }
            SinkAddress::Output => Self::Lines(Lines::Output),
            SinkAddress::Webhook(url) => Self::Webhook(post(url, options, trust)?),
            SinkAddress::Alertmanager(url) => {
                let post = post(url, options, trust)?;
                let path = format!("{}{}", post.url.path, alertmanager::PATH);
                Self::Alertmanager(Post { url: HttpUrl { path, ..post.url.clone() }, ..post })
            }
            SinkAddress::Udp(host) => Self::Udp(host.clone(), limits),
            SinkAddress::Tcp(host) => Self::Tcp(host.clone(), limits),
            SinkAddress::Socket(path) => Self::Socket(path.clone(), limits),
        })
    }

    /// Tries once to send these alerts. `coordinator` is the fingerprint of its authority.
    pub async fn send(&mut self, coordinator: &str, alerts: &[Outgoing]) -> Attempt {
        let messages = |most| alerts.iter().map(|alert| syslog::message(alert, most)).collect::<Vec<_>>();
        match self {
            Self::Lines(lines) => match lines.write(&json::lines(alerts)) {
                Ok(()) => Attempt::ALL,
                Err(error) => Attempt::failed(0, error.to_string()),
            },
            Self::Webhook(post) => {
                let body = json::list(coordinator, alerts);
                let number = |alert: Option<&Outgoing>| alert.map_or(0, |alert| alert.alert.number);
                let (first, last) = (number(alerts.first()), number(alerts.last()));
                let key = format!("{first}-{last}-{}", short_digest(&body));
                post.send(body, Some(&key)).await
            }
            Self::Alertmanager(post) => post.send(alertmanager::body(alerts, clock::wall()), None).await,
            Self::Udp(host, limits) => sockets::udp(host, &messages(syslog::DATAGRAM), *limits).await,
            Self::Tcp(host, limits) => sockets::tcp(host, &messages(syslog::STREAM), *limits).await,
            Self::Socket(path, limits) => sockets::local(path, &messages(syslog::DATAGRAM), *limits).await,
        }
    }
}

/// The authorities that servers may have certificates of: those of this machine, and that of `--send-authority`. They are read when the first
/// sink needs them.
#[derive(Default)]
pub(super) struct Trusted(Option<TlsConnector>);

impl Trusted {
    fn connector(&mut self, own: Option<&Path>) -> Result<TlsConnector, SinkError> {
        if let Some(connector) = &self.0 {
            return Ok(connector.clone());
        }
        let mut roots = RootCertStore::empty();
        let machine = rustls_native_certs::load_native_certs();
        // Machines have certificates that rustls does not take, such as those without a name.
        roots.add_parsable_certificates(machine.certs);
        if let Some(path) = own {
            let failed = |why: String| SinkError::Authority { path: path.to_owned(), why };
            let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certificates = certificates.map_err(|error| failed(error.to_string()))?;
            if certificates.is_empty() {
                return Err(failed("it has no certificate in PEM".to_owned()));
            }
            for certificate in certificates {
                roots.add(certificate).map_err(|error| failed(error.to_string()))?;
            }
        }
        if roots.is_empty() {
            let why = machine.errors.first().map_or_else(|| "none was found".to_owned(), ToString::to_string);
            return Err(SinkError::NoAuthorities(why));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| SinkError::Tls(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(self.0.insert(TlsConnector::from(Arc::new(config))).clone())
    }
}

fn post(url: &HttpUrl, options: &SinkOptions, trust: &mut Trusted) -> Result<Post, SinkError> {
    if let Some(path) = &options.token {
        token(path).map_err(SinkError::Token)?;
        if !url.is_secure && !url.host.is_loopback() {
            return Err(SinkError::PlainToken(url.to_string()));
        }
    }
    let tls = if url.is_secure {
        let name = ServerName::try_from(url.host.host.clone());
        let name = name.map_err(|_| SinkError::Name(url.host.host.clone()))?;
        Some((trust.connector(options.authority.as_deref())?, name))
    } else {
        None
    };
    Ok(Post { url: url.clone(), tls, token: options.token.clone(), limits: options.limits })
}
