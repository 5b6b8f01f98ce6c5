//! Flows over loopback, to the server of this crate and to others.

use queuescope_live::traffic::{
    Ended, Failure, SendParams, Sent, ServeParams, Served, Start, TrafficError, listen, send, serve, try_out,
};
use queuescope_wire::Nanos;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

/// A server that runs until its counts are read.
struct Server {
    at: SocketAddr,
    stop: UnixStream,
    runs: JoinHandle<Served>,
}

impl Server {
    fn new(params: ServeParams) -> Self {
        let listener = listen("127.0.0.1:0".parse().expect("it is one")).expect("there is a port");
        let (stop, stopped) = UnixStream::pair().expect("there are sockets");
        let at = listener.local_addr().expect("it listens");
        let runs = thread::spawn(move || serve(&listener, params, stopped.as_fd()).expect("sockets can be waited for"));
        Self { at, stop, runs }
    }

    fn stop(self) -> Served {
        drop(self.stop);
        self.runs.join().expect("it ends")
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).expect("somebody listens")
    }
}

fn params(to: SocketAddr) -> SendParams {
    SendParams { to, open: 1000, wait: Nanos(60_000_000_000), congestion: Vec::new(), ecn: false, midway: None }
}

fn flows(params: &SendParams, starts: impl Iterator<Item = Start>) -> (Sent, Vec<Ended>) {
    let (_stop, stopped) = UnixStream::pair().expect("there are sockets");
    let mut ended = Vec::new();
    let sent = send(params, starts, stopped.as_fd(), |flow| {
        ended.push(*flow);
        Ok(())
    });
    (sent.expect("sockets can be waited for"), ended)
}

fn start(at: u64, bytes: u64) -> Start {
    Start { at: Nanos(at), bytes, class: 0, congestion: 0, ends: None, stop: Nanos::MAX }
}

/// The start of a flow: `qs`, and the number of bytes that follow.
fn header(bytes: u64) -> Vec<u8> {
    [&b"qs"[..], &bytes.to_be_bytes()[2..]].concat()
}

#[test]
fn both_ends_count_the_same() {
    let server = Server::new(ServeParams::default());
    let names = try_out(&params(server.at)).expect("it takes flows");
    assert_eq!(names.len(), 1, "the kernel chose: {names:?}");
    let sizes: Vec<_> = (0..300u64).map(|n| n * n * 7).collect();
    let starts = sizes.iter().enumerate().map(|(n, bytes)| start(n as u64 / 10 * 1_000_000, *bytes));
    let (sent, mut ended) = flows(&params(server.at), starts);
    assert_eq!(sent.flows, 300);
    ended.sort_by_key(|flow| flow.number);
    for (n, flow) in ended.iter().enumerate() {
        assert_eq!((flow.number, flow.start.bytes), (n as u64, sizes[n]));
        let completed = flow.result.expect("nothing is in its way");
        assert!(completed.took > Nanos(0) && completed.took < sent.took, "{flow:?}");
    }
    let took = server.stop();
    assert_eq!(took, Served { flows: 301, bytes: sizes.iter().sum(), ..Served::default() });
}

#[test]
fn the_number_of_open_flows_is_limited() {
    let server = Server::new(ServeParams::default());
    let (sent, ended) = flows(&SendParams { open: 3, ..params(server.at) }, (0..10).map(|_| start(0, 1000)));
    let failed: Vec<_> = ended.iter().filter_map(|flow| flow.result.err()).collect();
    assert_eq!((sent.flows, sent.most_open, failed), (10, 3, vec![Failure::TooMany; 7]));
    assert_eq!(server.stop().flows, 3);
}

#[test]
fn a_client_with_another_protocol_gets_no_answer() {
    let server = Server::new(ServeParams::default());
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 8], &(1u64 << 63).to_be_bytes()] {
        let mut stream = server.connect();
        stream.write_all(garbage).expect("it is open");
        // The server closes the socket with unread bytes in it, which sends a reset.
        let read = stream.read(&mut [0; 8]);
        assert!(matches!(&read, Ok(0)) || read.is_err(), "{read:?}");
    }
    // A flow that announces the largest size costs nothing until bytes come; a client that then leaves has sent none.
    let mut stream = server.connect();
    stream.write_all(&header((1 << 48) - 1)).expect("it is open");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers, and closes");
    assert_eq!(answer, header(0));
    let took = server.stop();
    assert_eq!(took, Served { foreign: 3, short: 1, ..Served::default() });
}

#[test]
fn half_a_flow_is_acknowledged_and_slow_flows_delay_no_others() {
    let server = Server::new(ServeParams::default());
    let mut half = server.connect();
    half.write_all(&[header(100), vec![1; 10]].concat()).expect("it is open");
    half.shutdown(Shutdown::Write).expect("it is open");
    // One byte at a time, with other flows in between.
    let mut slow = server.connect();
    for byte in header(2).into_iter().chain([0, 0]) {
        slow.write_all(&[byte]).expect("it is open");
        let (_, ended) = flows(&params(server.at), (0..3).map(|_| start(0, 10_000)));
        assert!(ended.len() == 3 && ended.iter().all(|flow| flow.result.is_ok()), "{ended:?}");
    }
    let mut answers = [[0; 8]; 2];
    for (stream, answer) in [half, slow].iter_mut().zip(&mut answers) {
        stream.read_exact(answer).expect("it answers");
    }
    assert_eq!(answers.map(Vec::from), [header(10), header(2)]);
    let took = server.stop();
    assert_eq!((took.flows, took.short, took.bytes), (31, 1, 30 * 10_000 + 12));
}

#[test]
fn idle_and_surplus_connections_are_closed() {
    let server = Server::new(ServeParams { open: 1, idle: Nanos(1), ..ServeParams::default() });
    let mut first = server.connect();
    assert_eq!(first.read(&mut [0; 8]).ok(), Some(0), "it is idle");
    assert_eq!(server.stop().idle, 1);
    let server = Server::new(ServeParams { open: 1, ..ServeParams::default() });
    let mut first = server.connect();
    let mut second = server.connect();
    assert!(!matches!(second.read(&mut [0; 8]), Ok(1..)), "one is open already");
    first.write_all(&header(0)).expect("it is open");
    first.read_exact(&mut [0; 8]).expect("it answers");
    let took = server.stop();
    assert_eq!((took.flows, took.refused), (1, 1));
}

#[test]
fn failures_have_the_right_reason() {
    // A port that is bound but not listening.
    let taken = socket(AddressFamily::INET, SocketType::STREAM, None).expect("there are sockets");
    bind(&taken, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("there is a port");
    let gone = getsockname(&taken).ok().and_then(|at| SocketAddr::try_from(at).ok()).expect("it has an address");
    let error = try_out(&params(gone)).expect_err("nobody is there").to_string();
    assert!(error.contains("refused") && error.contains("queuescope traffic serve"), "{error}");
    let (_, ended) = flows(&params(gone), [start(0, 1)].into_iter());
    assert_eq!(ended[0].result, Err(Failure::Refused));

    // Servers that accept and then close, send something else, or send nothing.
    let result_with = |words: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let at = listener.local_addr().expect("it listens");
        let kept = thread::spawn(move || {
            for stream in listener.incoming().take(2) {
                let mut stream = stream.expect("somebody came");
                stream.read_exact(&mut [0; 8]).expect("it sends the size");
                stream.write_all(words).expect("it is open");
            }
        });
        let error = try_out(&params(at)).expect_err("it is another server");
        assert!(matches!(error, TrafficError::Foreign { .. }), "{error}");
        let (_, ended) = flows(&params(at), [start(0, 0)].into_iter());
        kept.join().expect("it ends");
        ended[0].result
    };
    assert_eq!(result_with(b""), Err(Failure::Gone));
    assert_eq!(result_with(b"HTTP/1.1"), Err(Failure::Wrong));
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let to = silent.local_addr().expect("it listens");
    let (_, ended) = flows(&SendParams { wait: Nanos(1), ..params(to) }, [start(0, 1)].into_iter());
    assert_eq!(ended[0].result, Err(Failure::Unfinished));

    let server = Server::new(ServeParams::default());
    let wrong = SendParams { congestion: vec!["nonsense".to_owned()], ..params(server.at) };
    let error = try_out(&wrong).expect_err("there is none").to_string();
    assert!(error.contains("nonsense") && error.contains("reno"), "{error}");
    let error = listen(server.at).expect_err("it is taken").to_string();
    assert!(error.contains("cannot listen at 127.0.0.1:") && error.contains("ss -ltnp"), "{error}");
}

#[test]
fn a_stop_ends_both_sides() {
    let server = Server::new(ServeParams::default());
    let (stop, stopped) = UnixStream::pair().expect("there are sockets");
    let mut ended = Vec::new();
    let mut stop = Some(stop);
    // The stop comes after the first flow has ended; the second never starts.
    let starts = [start(0, 10), start(u64::MAX, 10)];
    let sent = send(&params(server.at), starts.into_iter(), stopped.as_fd(), |flow| {
        ended.push(*flow);
        drop(stop.take());
        Ok(())
    });
    let sent = sent.expect("sockets can be waited for");
    assert!(sent.stopped && sent.flows == 1 && ended[0].result.is_ok(), "{sent:?} {ended:?}");
    assert_eq!(server.stop().flows, 1);
}
