//! HTTP for stores: hyper, and rustls with the cryptography that the fleet has already.
//!
//! The usual client of the crate `object_store` brings a second cryptography library and certificates of its own. This one trusts the
//! authorities of this machine, as sinks do. Proxies are not used.

use http_body_util::BodyExt;
use hyper::header::{HeaderValue, USER_AGENT};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, Client, connect};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::io;
use std::iter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The most time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The most time until the head of an answer: a part of an upload takes long over slow lines.
const ANSWER: Duration = Duration::from_secs(120);

/// Makes clients.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let mut http = connect::HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls()?);
        let https = if allows_http { builder.https_or_http() } else { builder.https_only() };
        let https = https.enable_http1().wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(https);
        Ok(HttpClient::new(Service(client)))
    }
}

/// TLS that trusts the authorities of this machine.
fn tls() -> object_store::Result<ClientConfig> {
    let failed = |why: String| object_store::Error::Generic { store: "TLS", source: why.into() };
    let machine = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Machines have certificates that rustls does not take, such as those without a name.
    roots.add_parsable_certificates(machine.certs);
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<connect::HttpConnector>, HttpRequestBody>);

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let agent = HeaderValue::from_static(concat!("queuescope/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().entry(USER_AGENT).or_insert(agent);
        let late = |_| HttpError::new(HttpErrorKind::Timeout, io::Error::from(io::ErrorKind::TimedOut));
        let answer = timeout(ANSWER, self.0.request(request)).await.map_err(late)?;
        let (parts, body) = answer.map_err(|error| HttpError::new(kind(&error), with_causes(&error)))?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// The error with its causes: the first says little more than which step failed.
fn with_causes(error: &dyn Error) -> io::Error {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    io::Error::other(causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
}

/// What kind of error it is, which decides whether the request is sent again.
fn kind(error: &legacy::Error) -> HttpErrorKind {
    if error.is_connect() {
        return HttpErrorKind::Connect;
    }
    match error.source().and_then(|source| source.downcast_ref::<hyper::Error>()) {
        // A connection that was kept open, and that the server closed before it got the request.
        Some(error) if error.is_closed() || error.is_incomplete_message() => HttpErrorKind::Request,
        Some(error) if error.is_timeout() => HttpErrorKind::Timeout,
        _ => HttpErrorKind::Interrupted,
    }
}
