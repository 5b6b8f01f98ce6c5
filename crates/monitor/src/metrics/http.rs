//! The subset of HTTP/1.1 that a scrape needs: one request and one response per connection. Requests that are invalid, too long, too
//! slow or too many at once are turned away, so they cannot delay others. If too many connections are open, the one that has waited longest for its
//! client makes room: a client that sends its request at once is answered, however many others send nothing.

use httparse::{EMPTY_HEADER, Request, Status};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use queuescope_live::now;
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Connections that are served at once. A further one takes the place of the oldest that has not sent its request; if all have, it is closed.
const MAX_CONNECTIONS: usize = 8;
/// How long a client may take to send its request and read the response.
const TIMEOUT: Nanos = Nanos(2_000_000_000);
/// The maximum size of a request in bytes, and its maximum number of header lines.
const MAX_REQUEST: usize = 8192;
const HEADERS: usize = 64;

/// Serves until the process ends. `failed` counts requests that should have been answered and were not.
pub fn serve(listener: &TcpListener, registry: &Arc<Registry>, failed: &Arc<AtomicU64>) {
    let open = Arc::new(Mutex::new(OpenConnections::default()));
    loop {
        // When file descriptors run out, accept fails until a connection closes.
        let Ok((stream, _)) = listener.accept() else {
            failed.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(Duration::from_millis(100));
            continue;
        };
        let Some(number) = lock(&open).add(&stream) else { continue };
        let (registry, held) =
            (Arc::clone(registry), ConnectionGuard { number, open: Arc::clone(&open), failed: Arc::clone(failed) });
        let answered = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            // A client that has disconnected needs no response.
            let _ = answer(stream, &registry, &held);
        });
        // If no thread can be started, the connection is closed.
        failed.fetch_add(answered.is_err().into(), Ordering::Relaxed);
    }
}

/// The connections that are open, by their numbers, which rise: the first is the oldest.
#[derive(Debug, Default)]
struct OpenConnections {
    last: u64,
    /// Another handle of each that has not sent its request; `None` for the others.
    open: BTreeMap<u64, Option<TcpStream>>,
}

impl OpenConnections {
    /// Adds a connection, and returns its number, if there is room or can be made.
    fn add(&mut self, stream: &TcpStream) -> Option<u64> {
        let handle = stream.try_clone().ok()?;
        if self.open.len() >= MAX_CONNECTIONS {
            let oldest = self.open.iter().find_map(|(number, waiting)| waiting.is_some().then_some(*number))?;
            // Its thread reads the end, and ends.
            let waiting = self.open.remove(&oldest).flatten()?;
            let _ = waiting.shutdown(Shutdown::Both);
        }
        self.last += 1;
        self.open.insert(self.last, Some(handle));
        Some(self.last)
    }

    /// The request of a connection has come: it stays until it is answered.
    fn requested(&mut self, number: u64) {
        self.open.entry(number).and_modify(|waiting| *waiting = None);
    }
}

fn lock(open: &Mutex<OpenConnections>) -> MutexGuard<'_, OpenConnections> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open connection, which counts as a failure if its thread panics.
struct ConnectionGuard {
    number: u64,
    open: Arc<Mutex<OpenConnections>>,
    failed: Arc<AtomicU64>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        lock(&self.open).open.remove(&self.number);
        self.failed.fetch_add(thread::panicking().into(), Ordering::Relaxed);
    }
}

fn answer(mut stream: TcpStream, registry: &Registry, held: &ConnectionGuard) -> io::Result<()> {
    let end = now().saturating_add(TIMEOUT);
    let requested = read(&mut stream, end)?;
    lock(&held.open).requested(held.number);
    stream.set_write_timeout(Some(left(end)?))?;
    stream.write_all(response(requested, registry).as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// The response to a request.
fn response(requested: Requested, registry: &Registry) -> String {
    let (status, kind, body) = match requested {
        Requested::Metrics { .. } => {
            let mut text = String::new();
            match encode(&mut text, registry) {
                Ok(()) => ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
                Err(_) => ("500 Internal Server Error", PLAIN, "the metrics could not be written\n".to_owned()),
            }
        }
        Requested::OtherPath { .. } => ("404 Not Found", PLAIN, "not found: the only path is /metrics\n".to_owned()),
        Requested::OtherMethod => {
            ("405 Method Not Allowed", PLAIN, "method not allowed: only GET and HEAD are supported\n".to_owned())
        }
        Requested::Invalid => ("400 Bad Request", PLAIN, "bad request: it is invalid or too long\n".to_owned()),
    };
    let allow = if requested == Requested::OtherMethod { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    // A response to HEAD is the same without content (RFC 9110, section 9.3.2).
    if !requested.is_head() {
        answer.push_str(&body);
    }
    answer
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// What a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requested {
    Metrics { head: bool },
    OtherPath { head: bool },
    OtherMethod,
    Invalid,
}

impl Requested {
    /// Whether the method is HEAD.
    fn is_head(self) -> bool {
        matches!(self, Self::Metrics { head: true } | Self::OtherPath { head: true })
    }
}

fn read(stream: &mut TcpStream, end: Nanos) -> io::Result<Requested> {
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        stream.set_read_timeout(Some(left(end)?))?;
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&piece[..count]);
        match parse(&request) {
            Some(requested) => return Ok(requested),
            None if request.len() < MAX_REQUEST => {}
            None => return Ok(Requested::Invalid),
        }
    }
}

/// Parses a request; none until it is complete.
fn parse(request: &[u8]) -> Option<Requested> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut parsed = Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return None,
        Err(_) => return Some(Requested::Invalid),
    }
    let path = parsed.path.and_then(|path| path.split('?').next());
    let head = parsed.method == Some("HEAD");
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => Requested::Metrics { head },
        (Some("GET" | "HEAD"), _) => Requested::OtherPath { head },
        _ => Requested::OtherMethod,
    })
}

/// The time that is left until `end`.
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
    use std::sync::atomic::AtomicBool;

    #[test]
    fn requests_are_parsed() {
        let parsed = |text: &str| parse(text.as_bytes());
        assert_eq!(parsed("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(Requested::Metrics { head: false }));
        assert_eq!(parsed("HEAD /metrics?a=b HTTP/1.0\r\n\r\n"), Some(Requested::Metrics { head: true }));
        assert_eq!(parsed("GET / HTTP/1.1\r\n\r\n"), Some(Requested::OtherPath { head: false }));
        assert_eq!(parsed("POST /metrics HTTP/1.1\r\n\r\n"), Some(Requested::OtherMethod));
        assert_eq!(parsed("GET /metrics HTTP/1.1\r\nHost"), None);
        assert_eq!(parsed("\x16\x03\x01 hello"), Some(Requested::Invalid));
        assert_eq!(parsed(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65))), Some(Requested::Invalid));
    }

    /// A request: as it is, with changed bytes, or cut off.
    fn changed() -> impl Strategy<Value = Vec<u8>> {
        let whole = [
            "GET /metrics HTTP/1.1\r\nHost: a:9090\r\nAccept: text/plain;q=0.5\r\n\r\n",
            "HEAD /metrics?name=a HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "HEAD /other HTTP/1.1\r\n\r\n",
            "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        ];
        // Bytes with a meaning in HTTP are more likely than others.
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

    /// Parses a response by the standard: its status, if it is well-formed.
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
        let is_consistent = header("Connection") == Some("close")
            && is_metrics == (status == 200)
            && (status == 405) == header("Allow").is_some();
        (length > 0 && is_whole && is_consistent && body.ends_with(ends)).then_some(status)
    }

    fn registry() -> Registry {
        super::super::registry::registry(Arc::default(), "eth0")
    }

    /// The parsed request, and the status of its response, which must be well-formed.
    fn answered(request: &[u8], registry: &Registry) -> Option<(Requested, u16)> {
        let requested = parse(request)?;
        let answer = response(requested, registry);
        let is_head = request.trim_ascii_start().starts_with(b"HEAD ") && requested != Requested::Invalid;
        let status = well_formed(&answer, is_head);
        Some((requested, status.unwrap_or_else(|| panic!("{answer}"))))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// If the first part of a request parses, the rest does not change the result. With the end of the headers, every request
        /// parses.
        #[test]
        fn a_split_request_parses_like_the_whole(
            bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..400), changed()],
            cut in any::<prop::sample::Index>(),
        ) {
            let first = parse(&bytes[..cut.index(bytes.len() + 1)]);
            prop_assert!(first.is_none() || first == parse(&bytes), "{first:?}");
            let whole = [&bytes[..], b"\r\n\r\n"].concat();
            prop_assert!(parse(&whole).is_some() || bytes.iter().all(|byte| b"\r\n".contains(byte)), "{bytes:?}");
        }

        #[test]
        fn each_request_gets_its_response(bytes in changed()) {
            // Empty lines before a request are ignored (RFC 9112, section 2.2).
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let text = text.trim_start_matches(['\r', '\n']);
            let begins = |with: &str| text.starts_with(with);
            let of_metrics = |method: &str| [" ", "?"].iter().any(|end| begins(&format!("{method} /metrics{end}")));
            match answered(&bytes, &registry()) {
                Some((Requested::Metrics { head }, status)) => {
                    prop_assert!(status == 200 && of_metrics(if head { "HEAD" } else { "GET" }), "{text}");
                }
                Some((Requested::OtherPath { head }, status)) => {
                    prop_assert!(status == 404 && begins(if head { "HEAD " } else { "GET " }), "{text}");
                    prop_assert!(!of_metrics("GET") && !of_metrics("HEAD"), "{text}");
                }
                Some((Requested::OtherMethod, status)) => {
                    prop_assert!(status == 405 && !begins("GET ") && !begins("HEAD "), "{text}");
                }
                Some((Requested::Invalid, status)) => prop_assert_eq!(status, 400),
                // The server waits for the rest of an incomplete request.
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

    #[test]
    fn connections_without_a_request_do_not_keep_others_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, failed) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let registry = Arc::new(registry());
        thread::spawn(move || serve(&listener, &registry, &failed));
        // Half of them begin a request.
        let connect = |number: usize| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&b"GET /met"[..number % 2 * 8]).unwrap();
            stream
        };
        let mut silent: Vec<_> = (0..100).map(connect).collect();
        for number in 0..20 {
            let (mut stream, mut answer) = (TcpStream::connect(address).unwrap(), String::new());
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            silent.push(connect(number));
        }
    }

    #[test]
    fn a_connection_makes_room_only_before_its_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut all = OpenConnections::default();
        let mut kept = Vec::new();
        let mut add = |all: &mut OpenConnections| {
            kept.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            all.add(&listener.accept().unwrap().0)
        };
        let most = MAX_CONNECTIONS as u64;
        for number in 1..=most {
            assert_eq!(add(&mut all), Some(number));
        }
        all.requested(1);
        assert_eq!(add(&mut all), Some(most + 1));
        let open: Vec<_> = all.open.keys().copied().collect();
        assert!(open.len() == MAX_CONNECTIONS && open[..2] == [1, 3], "the second made room: {open:?}");
        // One that is gone has no request any more.
        all.requested(2);
        open.into_iter().for_each(|number| all.requested(number));
        assert_eq!(add(&mut all), None, "all are being answered");
    }

    /// A metric whose first encoding panics.
    #[derive(Debug)]
    struct Faulty(AtomicBool);

    impl Collector for Faulty {
        fn encode(&self, _: DescriptorEncoder<'_>) -> std::fmt::Result {
            assert!(!self.0.swap(false, Ordering::Relaxed), "the first encoding panics");
            Ok(())
        }
    }

    #[test]
    fn a_request_that_panics_is_counted_and_later_ones_are_answered() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Faulty(true.into())));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, failed) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&failed);
        thread::spawn(move || serve(&listener, &Arc::new(registry), &counted));
        let request = || {
            let (mut stream, mut answer) = (TcpStream::connect(address).unwrap(), String::new());
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        assert!(request().is_ok_and(|answer| answer.is_empty()));
        let since = now();
        while failed.load(Ordering::Relaxed) == 0 {
            assert!(now() < since.saturating_add(Nanos(60_000_000_000)), "the failure is never counted");
            thread::yield_now();
        }
        assert!(request().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 OK")));
        assert_eq!(failed.load(Ordering::Relaxed), 1);
    }
}
