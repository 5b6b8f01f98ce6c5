//! As much of HTTP as who asks for metrics needs: one request, one answer. Whoever sends something else, too much, too slowly or too
//! often is turned away, and holds nobody up.

use httparse::{EMPTY_HEADER, Request, Status};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use queuescope_live::now;
use queuescope_wire::Nanos;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Who is answered at once; others are turned away.
const MOST: usize = 8;
/// How long somebody may take to ask, and to read.
const PATIENCE: Nanos = Nanos(2_000_000_000);
/// Bytes of a request, and lines of it.
const LONGEST: usize = 8192;
const HEADERS: usize = 64;

/// Answers until the process ends.
pub fn serve(listener: &TcpListener, registry: &Arc<Registry>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        // Without room for another connection the kernel says so, until one is closed.
        let Ok((stream, _)) = listener.accept() else {
            thread::park_timeout(Duration::from_millis(100));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (registry, held) = (Arc::clone(registry), Place(Arc::clone(&open)));
        let answered = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let _held = held;
            // Who went away needs no answer.
            let _ = answer(stream, &registry);
        });
        // If there is no room for another thread, who asked is turned away.
        drop(answered);
    }
}

/// A place among those who are answered at once.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(mut stream: TcpStream, registry: &Registry) -> io::Result<()> {
    let end = now().saturating_add(PATIENCE);
    let asked = read(&mut stream, end)?;
    let (status, kind, body) = match asked {
        Asked::Metrics { .. } => {
            let mut text = String::new();
            match encode(&mut text, registry) {
                Ok(()) => ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
                Err(_) => ("500 Internal Server Error", PLAIN, "the metrics could not be written\n".to_owned()),
            }
        }
        Asked::Else => ("404 Not Found", PLAIN, "there is nothing but /metrics here\n".to_owned()),
        Asked::Otherwise => {
            ("405 Method Not Allowed", PLAIN, "GET /metrics is all that can be asked here\n".to_owned())
        }
        Asked::Wrongly => {
            ("400 Bad Request", PLAIN, "this is no request, or a longer one than is read here\n".to_owned())
        }
    };
    let allow = if asked == Asked::Otherwise { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    if asked != (Asked::Metrics { head: true }) {
        answer.push_str(&body);
    }
    stream.set_write_timeout(Some(left(end)?))?;
    stream.write_all(answer.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Metrics { head: bool },
    Else,
    Otherwise,
    Wrongly,
}

fn read(stream: &mut TcpStream, end: Nanos) -> io::Result<Asked> {
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        stream.set_read_timeout(Some(left(end)?))?;
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&piece[..count]);
        match asked(&request) {
            Some(asked) => return Ok(asked),
            None if request.len() < LONGEST => {}
            None => return Ok(Asked::Wrongly),
        }
    }
}

/// What a request asks, once it is whole.
fn asked(request: &[u8]) -> Option<Asked> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut parsed = Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return None,
        Err(_) => return Some(Asked::Wrongly),
    }
    let path = parsed.path.and_then(|path| path.split('?').next());
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => Asked::Metrics { head: parsed.method == Some("HEAD") },
        (Some("GET" | "HEAD"), _) => Asked::Else,
        _ => Asked::Otherwise,
    })
}

/// The time that is left until then.
fn left(end: Nanos) -> io::Result<Duration> {
    match end.saturating_sub(now()) {
        Nanos(0) => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(Duration::from_nanos(left.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_read_as_they_are() {
        let asked = |text: &str| asked(text.as_bytes());
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(Asked::Metrics { head: false }));
        assert_eq!(asked("HEAD /metrics?a=b HTTP/1.0\r\n\r\n"), Some(Asked::Metrics { head: true }));
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n"), Some(Asked::Else));
        assert_eq!(asked("POST /metrics HTTP/1.1\r\n\r\n"), Some(Asked::Otherwise));
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost"), None);
        assert_eq!(asked("\x16\x03\x01 hello"), Some(Asked::Wrongly));
        assert_eq!(asked(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65))), Some(Asked::Wrongly));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_bytes_are_a_request_or_none(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let is_one = matches!(asked(&bytes), Some(Asked::Metrics { .. }));
            prop_assert!(!is_one);
        }
    }
}
