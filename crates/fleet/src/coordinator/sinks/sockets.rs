//! Messages of syslog over UDP, TCP and sockets of this machine.

use super::address::HostPort;
use super::delivery::{Attempt, AttemptEnd};
use super::options::SinkLimits;
use super::syslog::framed;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket, UnixDatagram, lookup_host};
use tokio::time::timeout;

/// How long a receiver over TCP has to close the connection after the last message.
const CLOSING: Duration = Duration::from_secs(5);
/// The most bytes that are read from a receiver over TCP, which should send none.
const SAID: usize = 4 << 10;

/// Sends each message as a datagram (RFC 5426). UDP confirms nothing; what this machine knows to be lost counts as failed.
pub(super) async fn udp(to: &HostPort, messages: &[Vec<u8>], limits: SinkLimits) -> Attempt {
    let sending = async {
        let socket = match connected(to, limits.connect).await {
            Ok(socket) => socket,
            Err(error) => return failed(0, to, &error),
        };
        let attempt = datagrams(messages, to, async |message| socket.send(message).await).await;
        // An earlier datagram was refused: which one is not known.
        let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        match (&attempt.end, socket.take_error()) {
            (AttemptEnd::All, Ok(Some(error))) if is_refused(&error) => failed(0, to, &error),
            (AttemptEnd::Failed { .. }, _) => Attempt { taken: 0, ..attempt },
            _ => attempt,
        }
    };
    within(limits.whole, to, sending).await
}

/// Sends each message as a datagram to a socket of this machine.
pub(super) async fn local(to: &Path, messages: &[Vec<u8>], limits: SinkLimits) -> Attempt {
    let sending = async {
        let socket = UnixDatagram::unbound().and_then(|socket| socket.connect(to).map(|()| socket));
        match socket {
            Ok(socket) => datagrams(messages, &to.display(), async |message| socket.send(message).await).await,
            Err(error) => failed(0, &to.display(), &error),
        }
    };
    within(limits.whole, &to.display(), sending).await
}

/// Sends messages over one connection, with octet counting, and waits until the receiver has closed it: then it has read all of them. A
/// receiver that leaves it open counts as having read them.
pub(super) async fn tcp(to: &HostPort, messages: &[Vec<u8>], limits: SinkLimits) -> Attempt {
    let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
    let sending = async {
        let connecting = timeout(limits.connect, TcpStream::connect((to.host.as_str(), to.port))).await;
        let mut stream = connecting.map_err(|_| too_late(limits.connect))??;
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        let mut said = 0;
        let reading = async {
            let mut buffer = [0; 1_024];
            loop {
                match stream.read(&mut buffer).await? {
                    read if read > 0 && said < SAID => said += read,
                    _ => return Ok::<_, io::Error>(()),
                }
            }
        };
        timeout(CLOSING.min(limits.whole / 2), reading).await.unwrap_or(Ok(()))
    };
    let sent = async {
        match sending.await {
            Ok(()) => Attempt::ALL,
            Err(error) => failed(0, to, &error),
        }
    };
    within(limits.whole, to, sent).await
}

async fn connected(to: &HostPort, limit: Duration) -> io::Result<UdpSocket> {
    let looking = timeout(limit, lookup_host((to.host.as_str(), to.port))).await;
    let address = looking.map_err(|_| too_late(limit))??.next().ok_or(io::ErrorKind::NotFound)?;
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(socket)
}

async fn datagrams(
    messages: &[Vec<u8>],
    to: &impl ToString,
    send: impl AsyncFn(&[u8]) -> io::Result<usize>,
) -> Attempt {
    for (taken, message) in messages.iter().enumerate() {
        if let Err(error) = send(message).await {
            return failed(taken, to, &error);
        }
    }
    Attempt::ALL
}

async fn within(limit: Duration, to: &impl ToString, sending: impl Future<Output = Attempt>) -> Attempt {
    timeout(limit, sending).await.unwrap_or_else(|_| failed(0, to, &too_late(limit)))
}

fn too_late(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {} s", limit.as_secs_f32()))
}

fn failed(taken: usize, to: &impl ToString, error: &io::Error) -> Attempt {
    Attempt::failed(taken, format!("cannot send to {}: {error}", to.to_string()))
}
