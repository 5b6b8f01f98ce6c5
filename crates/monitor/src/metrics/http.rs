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
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Who is answered at once; others are turned away.
const MOST: usize = 8;
/// How long somebody may take to ask, and to read.
const PATIENCE: Nanos = Nanos(2_000_000_000);
/// Bytes of a request, and lines of it.
const LONGEST: usize = 8192;
const HEADERS: usize = 64;

/// Answers until the process ends. `failed` counts who was not answered and should have been.
pub fn serve(listener: &TcpListener, registry: &Arc<Registry>, failed: &Arc<AtomicU64>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        // Without room for another connection the kernel says so, until one is closed.
        let Ok((stream, _)) = listener.accept() else {
            failed.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(Duration::from_millis(100));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (registry, held) = (Arc::clone(registry), Place { open: Arc::clone(&open), failed: Arc::clone(failed) });
        let answered = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let _held = held;
            // Who went away needs no answer.
            let _ = answer(stream, &registry);
        });
        // If there is no room for another thread, who asked is turned away.
        failed.fetch_add(answered.is_err().into(), Ordering::Relaxed);
    }
}

/// A place among those who are answered at once.
struct Place {
    open: Arc<AtomicUsize>,
    failed: Arc<AtomicU64>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.failed.fetch_add(thread::panicking().into(), Ordering::Relaxed);
    }
}

fn answer(mut stream: TcpStream, registry: &Registry) -> io::Result<()> {
    let end = now().saturating_add(PATIENCE);
    let asked = read(&mut stream, end)?;
    stream.set_write_timeout(Some(left(end)?))?;
    stream.write_all(told(asked, registry).as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// The answer.
fn told(asked: Asked, registry: &Registry) -> String {
    let (status, kind, body) = match asked {
        Asked::Metrics { .. } => {
            let mut text = String::new();
            match encode(&mut text, registry) {
                Ok(()) => ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
                Err(_) => ("500 Internal Server Error", PLAIN, "the metrics could not be written\n".to_owned()),
            }
        }
        Asked::Else { .. } => ("404 Not Found", PLAIN, "there is nothing but /metrics here\n".to_owned()),
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
    // The same without what it is about (RFC 9110, section 9.3.2).
    if !asked.is_head() {
        answer.push_str(&body);
    }
    answer
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Metrics { head: bool },
    Else { head: bool },
    Otherwise,
    Wrongly,
}

impl Asked {
    /// Whether only the head of an answer is.
    fn is_head(self) -> bool {
        matches!(self, Self::Metrics { head: true } | Self::Else { head: true })
    }
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
    let head = parsed.method == Some("HEAD");
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => Asked::Metrics { head },
        (Some("GET" | "HEAD"), _) => Asked::Else { head },
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
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::DescriptorEncoder;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn requests_are_read_as_they_are() {
        let asked = |text: &str| asked(text.as_bytes());
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(Asked::Metrics { head: false }));
        assert_eq!(asked("HEAD /metrics?a=b HTTP/1.0\r\n\r\n"), Some(Asked::Metrics { head: true }));
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n"), Some(Asked::Else { head: false }));
        assert_eq!(asked("POST /metrics HTTP/1.1\r\n\r\n"), Some(Asked::Otherwise));
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost"), None);
        assert_eq!(asked("\x16\x03\x01 hello"), Some(Asked::Wrongly));
        assert_eq!(asked(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65))), Some(Asked::Wrongly));
    }

    /// A request that is changed here and there, cut off, or neither.
    fn changed() -> impl Strategy<Value = Vec<u8>> {
        let whole = [
            "GET /metrics HTTP/1.1\r\nHost: a:9090\r\nAccept: text/plain;q=0.5\r\n\r\n",
            "HEAD /metrics?name=a HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "HEAD /other HTTP/1.1\r\n\r\n",
            "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        ];
        // What means something is met more often than any byte.
        let byte = prop_oneof![any::<u8>(), prop::sample::select(b" \r\n:/?GET\0\x80".to_vec())];
        let change = (any::<prop::sample::Index>(), 0..3, byte);
        let changes = prop::collection::vec(change, 0..4);
        let cut = prop::option::weighted(0.1, any::<prop::sample::Index>());
        (prop::sample::select(whole.to_vec()), changes, cut).prop_map(|(whole, changes, cut)| {
            let mut bytes = whole.as_bytes().to_vec();
            for (place, how, byte) in changes {
                let at = place.index(bytes.len());
                match how {
                    0 => bytes.insert(at, byte),
                    1 => _ = bytes.remove(at),
                    _ => bytes[at] = byte,
                }
            }
            bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
            bytes
        })
    }

    /// As a reader has it who knows nothing of how it was made: the status, and how long the body is.
    fn well_formed(answer: &str, is_head: bool) -> Option<u16> {
        let mut headers = [EMPTY_HEADER; 8];
        let mut parsed = httparse::Response::new(&mut headers);
        let Ok(Status::Complete(start)) = parsed.parse(answer.as_bytes()) else { return None };
        let header = |name: &str| {
            let mut all = parsed.headers.iter().filter(|header| header.name == name);
            all.next().filter(|_| all.next().is_none()).and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let length: usize = header("Content-Length")?.parse().ok()?;
        let (body, status) = (&answer[start..], parsed.code?);
        let is_whole = if is_head { body.is_empty() } else { body.len() == length };
        let is_metrics = header("Content-Type")?.starts_with("application/openmetrics-text; version=1.0.0");
        let ends = if is_head || !is_metrics { "" } else { "# EOF\n" };
        let tells = header("Connection") == Some("close")
            && is_metrics == (status == 200)
            && (status == 405) == header("Allow").is_some();
        (length > 0 && is_whole && tells && body.ends_with(ends)).then_some(status)
    }

    fn registry() -> Registry {
        super::super::told::registry(Arc::default(), "eth0")
    }

    /// What is asked, and the status of the answer; that is as it must be.
    fn answered(request: &[u8], registry: &Registry) -> Option<(Asked, u16)> {
        let asked = asked(request)?;
        let answer = told(asked, registry);
        let is_head = request.trim_ascii_start().starts_with(b"HEAD ") && asked != Asked::Wrongly;
        let status = well_formed(&answer, is_head);
        Some((asked, status.unwrap_or_else(|| panic!("{answer}"))))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// A request comes in pieces: what the first of them are is not changed by what comes behind, and is known at the latest with
        /// the last.
        #[test]
        fn pieces_of_a_request_are_that_request(
            bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..400), changed()],
            cut in any::<prop::sample::Index>(),
        ) {
            let first = asked(&bytes[..cut.index(bytes.len() + 1)]);
            prop_assert!(first.is_none() || first == asked(&bytes), "{first:?}");
            let whole = [&bytes[..], b"\r\n\r\n"].concat();
            prop_assert!(asked(&whole).is_some() || bytes.iter().all(|byte| b"\r\n".contains(byte)), "{bytes:?}");
        }

        #[test]
        fn what_is_answered_is_what_was_asked(bytes in changed()) {
            // Lines before a request that are empty are no part of it (RFC 9112, section 2.2).
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let text = text.trim_start_matches(['\r', '\n']);
            let begins = |with: &str| text.starts_with(with);
            let of_metrics = |method: &str| [" ", "?"].iter().any(|end| begins(&format!("{method} /metrics{end}")));
            match answered(&bytes, &registry()) {
                Some((Asked::Metrics { head }, status)) => {
                    prop_assert!(status == 200 && of_metrics(if head { "HEAD" } else { "GET" }), "{text}");
                }
                Some((Asked::Else { head }, status)) => {
                    prop_assert!(status == 404 && begins(if head { "HEAD " } else { "GET " }), "{text}");
                    prop_assert!(!of_metrics("GET") && !of_metrics("HEAD"), "{text}");
                }
                Some((Asked::Otherwise, status)) => {
                    prop_assert!(status == 405 && !begins("GET ") && !begins("HEAD "), "{text}");
                }
                Some((Asked::Wrongly, status)) => prop_assert_eq!(status, 400),
                // Who sent no more than this is waited for.
                None => prop_assert!(!text.contains("\r\n\r\n"), "{text}"),
            }
        }
    }

    #[test]
    fn changed_requests_reach_every_answer() {
        let (mut runner, registry) = (TestRunner::deterministic(), registry());
        let mut reached = BTreeMap::<u16, usize>::new();
        for _ in 0..1000 {
            let request = changed().new_tree(&mut runner).unwrap().current();
            *reached.entry(answered(&request, &registry).map_or(0, |(_, status)| status)).or_default() += 1;
        }
        let often = [0, 200, 400, 404, 405].map(|status| reached.get(&status).copied().unwrap_or_default());
        assert!(often.iter().all(|times| *times >= 20), "{reached:?}");
    }

    /// Something to tell that panics when it is asked for the first time.
    #[derive(Debug)]
    struct Faulty(AtomicBool);

    impl Collector for Faulty {
        fn encode(&self, _: DescriptorEncoder<'_>) -> std::fmt::Result {
            assert!(!self.0.swap(false, Ordering::Relaxed), "as it told");
            Ok(())
        }
    }

    #[test]
    fn who_is_not_answered_by_a_fault_is_counted_and_others_are_answered() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Faulty(true.into())));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, failed) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&failed);
        thread::spawn(move || serve(&listener, &Arc::new(registry), &counted));
        let asked = || {
            let (mut stream, mut answer) = (TcpStream::connect(address).unwrap(), String::new());
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        assert!(asked().is_ok_and(|answer| answer.is_empty()));
        let since = now();
        while failed.load(Ordering::Relaxed) == 0 {
            assert!(now() < since.saturating_add(Nanos(60_000_000_000)), "it is never counted");
            thread::yield_now();
        }
        assert!(asked().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 OK")));
        assert_eq!(failed.load(Ordering::Relaxed), 1);
    }
}
