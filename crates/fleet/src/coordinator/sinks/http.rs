//! POST requests: HTTP/1.1, with TLS for `https`.
//!
//! Each request has a connection of its own, so that none can be in an unknown state. Redirects are not followed, because a token must go to
//! the given host only. Bodies of answers are read only to show why alerts were refused.

use super::address::HttpUrl;
use super::delivery::{Attempt, AttemptEnd};
use super::options::SinkLimits;
use super::text::{clean, cut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use queuescope_wire::Nanos;
use rustls::pki_types::ServerName;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The most bytes of the status line and the fields of an answer, and the most fields.
const HEAD: usize = 32 << 10;
const FIELDS: usize = 100;
/// The most bytes of an answer's body that are read, and the most that are shown.
const BODY: usize = 4 << 10;
const SHOWN: usize = 200;
/// The most bytes of a token.
const TOKEN: u64 = 8 << 10;
/// Same body, same key: draft-ietf-httpapi-idempotency-key-header.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Sends requests to a URL.
pub(super) struct Post {
    pub url: HttpUrl,
    /// For `https`.
    pub tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The file with the token for the field `Authorization`. It is read for each request, so that it can be replaced.
    pub token: Option<PathBuf>,
    pub limits: SinkLimits,
}

impl Post {
    /// Sends a body of JSON. `key` identifies it for a receiver that gets it again.
    pub async fn send(&self, body: Vec<u8>, key: Option<&str>) -> Attempt {
        let token = match self.token.as_deref().map(token).transpose() {
            Ok(token) => token,
            Err(why) => return Attempt::failed(0, why),
        };
        let url = &self.url;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&url.path)
            .header(HOST, &url.authority)
            .header(USER_AGENT, concat!("queuescope/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header(IDEMPOTENCY_KEY, format!("\"{key}\""));
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = match request.body(Full::new(Bytes::from(body))) {
            Ok(request) => request,
            Err(error) => return Attempt::failed(0, error.to_string()),
        };
        let whole = self.limits.whole;
        let done = timeout(whole, self.exchange(request)).await;
        done.unwrap_or_else(|_| Err(format!("no answer within {} s", whole.as_secs_f32())))
            .unwrap_or_else(|why| Attempt::failed(0, why))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Attempt, String> {
        let HttpUrl { host, .. } = &self.url;
        let connecting = async {
            let stream = TcpStream::connect((host.host.as_str(), host.port)).await?;
            Ok::<_, io::Error>(match &self.tls {
                Some((tls, name)) => Stream::Secure(Box::new(tls.connect(name.clone(), stream).await?)),
                None => Stream::Plain(stream),
            })
        };
        let connect = self.limits.connect;
        let connected = timeout(connect, connecting).await;
        let connected = connected.map_err(|_| format!("no connection to {host} within {} s", connect.as_secs_f32()))?;
        match connected.map_err(|error| format!("cannot connect to {host}: {error}"))? {
            Stream::Plain(stream) => over(stream, request).await,
            Stream::Secure(stream) => over(stream, request).await,
        }
    }
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("url", &self.url).field("token", &self.token).finish_non_exhaustive()
    }
}

/// A connection.
enum Stream {
    Plain(TcpStream),
    Secure(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Sends a request over a connection.
async fn over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Attempt, String> {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(HEAD).max_headers(FIELDS);
    let (mut requests, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| in_words(&error))?;
    let answering = async {
        let response = requests.send_request(request).await.map_err(|error| in_words(&error))?;
        Ok(answered(response, SystemTime::UNIX_EPOCH + Duration::from_nanos(crate::clock::wall().0)).await)
    };
    tokio::pin!(answering, connection);
    tokio::select! {
        biased;
        answered = &mut answering => answered,
        // The answer can still be in its buffer.
        _ended = &mut connection => answering.await,
    }
}

/// What an answer means. `now` is the time for pauses until a date.
async fn answered(response: Response<Incoming>, now: SystemTime) -> Attempt {
    let status = response.status();
    if status.is_success() {
        return Attempt::ALL;
    }
    let after = response.headers().get(RETRY_AFTER).and_then(|after| retry_after(after.as_bytes(), now));
    let shown = body_text(response.into_body()).await;
    let hint = if status.is_redirection() { "; redirects are not followed: give the URL that it names" } else { "" };
    let why = format!("it answered {}{shown}{hint}", status.as_u16());
    let is_refused = match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => false,
        status => status.is_client_error() || status.is_redirection(),
    };
    if is_refused { Attempt::refused(why) } else { Attempt { taken: 0, end: AttemptEnd::Failed { why, after } } }
}

/// The beginning of a body as text for people.
async fn body_text(mut body: Incoming) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < BODY {
        let Some(Ok(frame)) = body.frame().await else { break };
        let Some(data) = frame.data_ref() else { break };
        bytes.extend_from_slice(&data[..data.len().min(BODY - bytes.len())]);
    }
    let text = clean(&String::from_utf8_lossy(&bytes));
    let text = cut(text.trim(), SHOWN);
    if text.is_empty() { text } else { format!(" ({text})") }
}

/// The pause of a field `Retry-After` (RFC 9110, section 10.2.3): seconds, or until a date. `None` if it is neither.
///
/// ```
/// use queuescope_fleet::coordinator::retry_after;
/// use queuescope_wire::Nanos;
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let now = UNIX_EPOCH + Duration::from_secs(784_111_777 - 60);
/// assert_eq!(retry_after(b"120", now), Some(Nanos(120_000_000_000)));
/// assert_eq!(retry_after(b"Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Nanos(60_000_000_000)));
/// assert_eq!(retry_after(b"soon", now), None);
/// ```
pub fn retry_after(field: &[u8], now: SystemTime) -> Option<Nanos> {
    let text = str::from_utf8(field).ok()?.trim();
    let pause = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than a number can have are for ever, like the most that it can have.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(Nanos(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX)))
}

/// Reads a token, and makes the value of `Authorization` of it.
///
/// # Errors
/// Fails if the file is not a regular file, if it cannot be read, or if it has something else than one line of printable ASCII.
#[expect(clippy::disallowed_methods, reason = "the user named this file")]
pub(super) fn token(path: &Path) -> Result<HeaderValue, String> {
    let failed = |why: &dyn std::fmt::Display| format!("cannot read the token in {}: {why}", path.display());
    // A pipe could be read only once.
    if !path.metadata().map_err(|why| failed(&why))?.is_file() {
        return Err(failed(&"it must be a regular file"));
    }
    let file = File::open(path).map_err(|why| failed(&why))?;
    let mut text = String::new();
    file.take(TOKEN + 1).read_to_string(&mut text).map_err(|why| failed(&why))?;
    let token = text.trim();
    if text.len() as u64 > TOKEN {
        return Err(failed(&format!("it has more than {TOKEN} bytes")));
    }
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed(&"it must be one line of printable ASCII without spaces"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|why| failed(&why))?;
    value.set_sensitive(true);
    Ok(value)
}

/// An error with its causes.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
