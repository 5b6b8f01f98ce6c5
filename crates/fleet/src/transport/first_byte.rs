//! A connection whose other side must send something soon.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Reading fails if the first byte does not come in time: a client that sends nothing must not keep the room of another. Later, empty frames find such a client.
pub struct FirstByte<S> {
    /// The connection.
    inner: S,
    /// When the first byte must have come; gone when it has.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> FirstByte<S> {
    /// The first byte must come within this time from now on.
    pub fn within(time: Duration, inner: S) -> Self {
        Self { inner, deadline: Some(Box::pin(sleep(time))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstByte<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        match (&read, &mut self.deadline) {
            (_, None) => read,
            (Poll::Ready(_), Some(_)) => {
                self.deadline = None;
                read
            }
            (Poll::Pending, Some(first)) => first.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstByte<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, advance};

    const SECOND: Duration = Duration::from_secs(1);

    // Time is paused: it goes on when all tasks wait.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_nothing_is_given_up_in_time() {
        let (_client, server) = duplex(64);
        let begun = Instant::now();
        let mut server = FirstByte::within(10 * SECOND, server);
        let error = server.read_u8().await.expect_err("nothing came");
        assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_first_byte_there_is_no_deadline() {
        let (mut client, server) = duplex(64);
        let mut server = FirstByte::within(10 * SECOND, server);
        advance(9 * SECOND).await;
        client.write_u8(1).await.expect("there is room");
        assert_eq!(server.read_u8().await.expect("it came"), 1);
        let later = tokio::spawn(async move {
            let byte = server.read_u8().await.expect("it comes late");
            server.write_u8(byte + 1).await.expect("there is room");
        });
        advance(100 * SECOND).await;
        client.write_u8(2).await.expect("there is room");
        assert_eq!(client.read_u8().await.expect("it answers"), 3);
        later.await.expect("it ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_goes_away_is_noticed_before_the_deadline() {
        let (client, server) = duplex(64);
        drop(client);
        let error = FirstByte::within(10 * SECOND, server).read_u8().await.expect_err("it is gone");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
