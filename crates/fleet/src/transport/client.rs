//! Connections to a coordinator.

use crate::identity::{ServerName, connection_error};
use hyper_util::rt::TokioIo;
use rustls::{AlertDescription, ClientConfig};
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::Status;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};

/// Time for the connection and its handshake.
const WITHIN: Duration = Duration::from_secs(10);
/// A connection whose peer has not replied to an empty frame for this long, after this pause, is broken.
const ALIVE: Duration = Duration::from_secs(10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is wrong.
    #[error("'{address}' is no HOST:PORT of a coordinator: {why}")]
    Address {
        /// As it was given.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The coordinator does not accept this side's certificate.
    #[error("the coordinator at {address} does not accept this certificate: {}", alert_text(*alert))]
    Refused {
        /// Its address.
        address: String,
        /// Its reason.
        alert: AlertDescription,
    },
    /// It could not be reached, or this side does not accept its certificate.
    #[error("cannot connect to the coordinator at {address}: {why}")]
    Failed {
        /// Its address.
        address: String,
        /// The reasons, from the outermost to the innermost.
        why: String,
    },
}

/// A connection to a coordinator.
#[derive(Debug, Clone)]
pub struct Link {
    /// For calls.
    pub channel: Channel,
    address: String,
    refusal: Refusal,
}

/// Why the other side closed a connection, once it has: a client of TLS 1.3 learns that only after its handshake.
type Refusal = Arc<OnceLock<AlertDescription>>;

impl Link {
    /// Why a call failed that has no answer: the coordinator may have refused the certificate, which the call's own error does not say.
    pub fn failed(&self, status: &Status) -> ConnectError {
        let address = self.address.clone();
        match self.refusal.get() {
            Some(alert) => ConnectError::Refused { address, alert: *alert },
            None => ConnectError::Failed { address, why: causes(status) },
        }
    }
}

/// Connects to the coordinator at `HOST:PORT`.
///
/// # Errors
/// Fails if the address is wrong, if nobody answers there in time, or if one side does not accept the other's certificate.
pub async fn connect(address: &str, config: Arc<ClientConfig>) -> Result<Link, ConnectError> {
    let wrong = |why: &str| ConnectError::Address { address: address.to_owned(), why: why.to_owned() };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
    port.parse::<u16>().map_err(|_| wrong("its port is not a number up to 65535"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong("its host is no name or address"))?;
    let endpoint = Endpoint::from_shared(format!("https://{address}")).map_err(|error| wrong(&error.to_string()))?;
    let endpoint = endpoint
        .connect_timeout(WITHIN)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .keep_alive_while_idle(true);
    let refusal = Refusal::default();
    let (tls, address) = (TlsConnector::from(config), address.to_owned());
    let dial = Dial { address: address.clone(), name, tls, refusal: Arc::clone(&refusal) };
    match endpoint.connect_with_connector(dial).await {
        Ok(channel) => Ok(Link { channel, address, refusal }),
        Err(error) => Err(match refusal.get() {
            Some(alert) => ConnectError::Refused { address, alert: *alert },
            None => ConnectError::Failed { address, why: causes(&error) },
        }),
    }
}

/// What an alert means, for people.
fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRevoked => "it was revoked".to_owned(),
        AlertDescription::CertificateExpired => "it has expired; join again with a new token".to_owned(),
        AlertDescription::UnknownCA | AlertDescription::DecryptError => "another authority signed it".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The causes of an error, from the second on: the first says that there is a cause.
fn causes(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(error) = next {
        let of_tls = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let of_tls = of_tls.and_then(|error| error.downcast_ref()).or_else(|| error.downcast_ref());
        let text = of_tls.map_or_else(|| error.to_string(), connection_error);
        // Some errors repeat their cause.
        if texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

/// Opens a TLS connection.
struct Dial {
    address: String,
    name: ServerName<'static>,
    tls: TlsConnector,
    refusal: Refusal,
}

impl Service<Uri> for Dial {
    type Response = TokioIo<Watched>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let (address, name, tls) = (self.address.clone(), self.name.clone(), self.tls.clone());
        let refusal = Arc::clone(&self.refusal);
        Box::pin(async move {
            let socket = TcpStream::connect(&address).await?;
            // Small messages must not wait for others.
            socket.set_nodelay(true)?;
            let tls = tls.connect(name, socket).await?;
            Ok(TokioIo::new(Watched { tls, refusal, broken: None }))
        })
    }
}

/// A connection that notes why the other side closed it.
struct Watched {
    tls: TlsStream<TcpStream>,
    refusal: Refusal,
    /// The error of a write.
    broken: Option<io::Error>,
}

impl Watched {
    fn note(&self, error: &io::Error) {
        let error = error.get_ref().and_then(|error| error.downcast_ref());
        if let Some(rustls::Error::AlertReceived(alert)) = error {
            // The first is the reason.
            let _ = self.refusal.set(*alert);
        }
    }
}

impl Watched {
    /// After a failed write: the other side has closed the connection, and its reason may be among what nobody has read yet. So this reads to
    /// the end before the failure counts.
    fn look<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Err(error)) => _ = self.broken.get_or_insert(error),
            written if self.broken.is_none() => return written,
            _ => {}
        }
        loop {
            let mut bytes = [0; 256];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.tls).poll_read(cx, &mut buffer) {
                // The system reports the end soon.
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(read) => {
                    read.err().into_iter().for_each(|error| self.note(&error));
                    let broken = self.broken.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
                    return Poll::Ready(Err(broken));
                }
            }
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.tls).poll_read(cx, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.note(error);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tls).poll_write(cx, bytes);
        self.look(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.tls).poll_flush(cx);
        self.look(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(cx)
    }
}
