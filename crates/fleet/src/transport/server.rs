//! A coordinator's connections.

use super::first_byte::FirstByte;
use crate::identity::{CertificateFacts, peer};
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// Time for a handshake, and then for the first byte of the client.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Pause when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The other end of a connection.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// Its certificate, which was checked; nothing for a client that may only join.
    pub certificate: Option<Arc<CertificateFacts>>,
    /// Its address.
    pub address: Option<SocketAddr>,
}

/// What a listener refused.
#[derive(Debug, Clone, Default)]
pub struct Listening {
    refused: Arc<AtomicU64>,
    open: Arc<AtomicU64>,
}

impl Listening {
    /// Connections whose handshake failed or took too long, or that were more than the limit.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Connections that are open, those whose handshake is not done included.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    fn opened(&self) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.open))
    }

    fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Is counted as long as it lives.
struct OpenConnection(Arc<AtomicU64>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection whose handshake is done.
pub struct Connection {
    tls: FirstByte<TlsStream<TcpStream>>,
    peer: Peer,
    _room: OwnedSemaphorePermit,
    _open: OpenConnection,
}

/// The connections of a listener, at most `most` at a time. Handshakes do not wait for each other.
pub fn incoming(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    most: usize,
    listening: Listening,
) -> impl Stream<Item = io::Result<Connection>> {
    let (ready, connections) = channel(64);
    tokio::spawn(accept(listener, TlsAcceptor::from(config), Arc::new(Semaphore::new(most)), listening, ready));
    ReceiverStream::new(connections)
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    room: Arc<Semaphore>,
    listening: Listening,
    ready: Sender<io::Result<Connection>>,
) {
    loop {
        let (socket, address) = tokio::select! {
            // The server has ended.
            () = ready.closed() => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // A connection that broke at once, or no descriptors: the next may work.
                Err(_) => {
                    listening.refuse();
                    sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            listening.refuse();
            continue;
        };
        let (acceptor, listening, ready, open) =
            (acceptor.clone(), listening.clone(), ready.clone(), listening.opened());
        tokio::spawn(async move {
            // Small messages must not wait for others.
            let _ = socket.set_nodelay(true);
            let Ok(Ok(tls)) = timeout(HANDSHAKE, acceptor.accept(socket)).await else {
                return listening.refuse();
            };
            let Ok(certificate) = peer(tls.get_ref().1) else { return listening.refuse() };
            let peer = Peer { certificate: certificate.map(Arc::new), address: Some(address) };
            let tls = FirstByte::within(HANDSHAKE, tls);
            // If the server has ended, nobody is there to serve it.
            let _ = ready.send(Ok(Connection { tls, peer, _room: permit, _open: open })).await;
        });
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(cx)
    }
}
