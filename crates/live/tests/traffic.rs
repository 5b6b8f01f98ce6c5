//! Flows to a server of ours and to others, over loopback.

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

/// A server that runs until it is asked what it took.
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

    fn took(self) -> Served {
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
    let mut told = Vec::new();
    let sent = send(params, starts, stopped.as_fd(), |flow| {
        told.push(*flow);
        Ok(())
    });
    (sent.expect("sockets can be waited for"), told)
}

fn start(at: u64, bytes: u64) -> Start {
    Start { at: Nanos(at), bytes, class: 0, congestion: 0, ends: None, stop: Nanos::MAX }
}

/// `qs`, and how many bytes follow.
fn said(bytes: u64) -> Vec<u8> {
    [&b"qs"[..], &bytes.to_be_bytes()[2..]].concat()
}

#[test]
fn both_ends_count_the_same() {
    let server = Server::new(ServeParams::default());
    let names = try_out(&params(server.at)).expect("it takes flows");
    assert_eq!(names.len(), 1, "the kernel chose: {names:?}");
    let sizes: Vec<_> = (0..300u64).map(|n| n * n * 7).collect();
    let starts = sizes.iter().enumerate().map(|(n, bytes)| start(n as u64 / 10 * 1_000_000, *bytes));
    let (sent, mut told) = flows(&params(server.at), starts);
    assert_eq!(sent.flows, 300);
    told.sort_by_key(|flow| flow.number);
    for (n, flow) in told.iter().enumerate() {
        assert_eq!((flow.number, flow.start.bytes), (n as u64, sizes[n]));
        let completed = flow.result.expect("nothing is in its way");
        assert!(completed.took > Nanos(0) && completed.took < sent.took, "{flow:?}");
    }
    let took = server.took();
    assert_eq!(took, Served { flows: 301, bytes: sizes.iter().sum(), ..Served::default() });
}

#[test]
fn no_more_flows_are_open_than_may_be() {
    let server = Server::new(ServeParams::default());
    let (sent, told) = flows(&SendParams { open: 3, ..params(server.at) }, (0..10).map(|_| start(0, 1000)));
    let failed: Vec<_> = told.iter().filter_map(|flow| flow.result.err()).collect();
    assert_eq!((sent.flows, sent.most_open, failed), (10, 3, vec![Failure::TooMany; 7]));
    assert_eq!(server.took().flows, 3);
}

#[test]
fn who_sends_something_else_gets_nothing() {
    let server = Server::new(ServeParams::default());
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 8], &(1u64 << 63).to_be_bytes()] {
        let mut stream = server.connect();
        stream.write_all(garbage).expect("it is open");
        // Closed with bytes that nobody read, it is a reset.
        let read = stream.read(&mut [0; 8]);
        assert!(matches!(&read, Ok(0)) || read.is_err(), "{read:?}");
    }
    // The largest there is costs nothing until it comes; who says so and leaves has sent nothing.
    let mut stream = server.connect();
    stream.write_all(&said((1 << 48) - 1)).expect("it is open");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers, and closes");
    assert_eq!(answer, said(0));
    let took = server.took();
    assert_eq!(took, Served { foreign: 3, short: 1, ..Served::default() });
}

#[test]
fn what_came_of_half_a_flow_is_told_and_slow_ones_hold_nobody_up() {
    let server = Server::new(ServeParams::default());
    let mut half = server.connect();
    half.write_all(&[said(100), vec![1; 10]].concat()).expect("it is open");
    half.shutdown(Shutdown::Write).expect("it is open");
    // Byte by byte, with others in between.
    let mut slow = server.connect();
    for byte in said(2).into_iter().chain([0, 0]) {
        slow.write_all(&[byte]).expect("it is open");
        let (_, told) = flows(&params(server.at), (0..3).map(|_| start(0, 10_000)));
        assert!(told.len() == 3 && told.iter().all(|flow| flow.result.is_ok()), "{told:?}");
    }
    let mut answers = [[0; 8]; 2];
    for (stream, answer) in [half, slow].iter_mut().zip(&mut answers) {
        stream.read_exact(answer).expect("it answers");
    }
    assert_eq!(answers.map(Vec::from), [said(10), said(2)]);
    let took = server.took();
    assert_eq!((took.flows, took.short, took.bytes), (31, 1, 30 * 10_000 + 12));
}

#[test]
fn who_does_nothing_or_is_one_too_many_is_closed() {
    let server = Server::new(ServeParams { open: 1, idle: Nanos(1), ..ServeParams::default() });
    let mut first = server.connect();
    assert_eq!(first.read(&mut [0; 8]).ok(), Some(0), "it is idle");
    assert_eq!(server.took().idle, 1);
    let server = Server::new(ServeParams { open: 1, ..ServeParams::default() });
    let mut first = server.connect();
    let mut second = server.connect();
    assert!(!matches!(second.read(&mut [0; 8]), Ok(1..)), "there is one already");
    first.write_all(&said(0)).expect("it is open");
    first.read_exact(&mut [0; 8]).expect("it answers");
    let took = server.took();
    assert_eq!((took.flows, took.refused), (1, 1));
}

#[test]
fn failures_say_why() {
    // A port that is taken and that nobody listens at.
    let taken = socket(AddressFamily::INET, SocketType::STREAM, None).expect("there are sockets");
    bind(&taken, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("there is a port");
    let gone = getsockname(&taken).ok().and_then(|at| SocketAddr::try_from(at).ok()).expect("it has an address");
    let error = try_out(&params(gone)).expect_err("nobody is there").to_string();
    assert!(error.contains("refused") && error.contains("queuescope traffic serve"), "{error}");
    let (_, told) = flows(&params(gone), [start(0, 1)].into_iter());
    assert_eq!(told[0].result, Err(Failure::Refused));

    // Somebody who takes and closes, somebody who says something else, and somebody who says nothing.
    let speaks = |words: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let at = listener.local_addr().expect("it listens");
        let kept = thread::spawn(move || {
            for stream in listener.incoming().take(2) {
                let mut stream = stream.expect("somebody came");
                stream.read_exact(&mut [0; 8]).expect("it says how much comes");
                stream.write_all(words).expect("it is open");
            }
        });
        let error = try_out(&params(at)).expect_err("it is nobody of ours");
        assert!(matches!(error, TrafficError::Foreign { .. }), "{error}");
        let (_, told) = flows(&params(at), [start(0, 0)].into_iter());
        kept.join().expect("it ends");
        told[0].result
    };
    assert_eq!(speaks(b""), Err(Failure::Gone));
    assert_eq!(speaks(b"HTTP/1.1"), Err(Failure::Wrong));
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let to = silent.local_addr().expect("it listens");
    let (_, told) = flows(&SendParams { wait: Nanos(1), ..params(to) }, [start(0, 1)].into_iter());
    assert_eq!(told[0].result, Err(Failure::Unfinished));

    let server = Server::new(ServeParams::default());
    let wrong = SendParams { congestion: vec!["nonsense".to_owned()], ..params(server.at) };
    let error = try_out(&wrong).expect_err("there is none").to_string();
    assert!(error.contains("nonsense") && error.contains("reno"), "{error}");
    let error = listen(server.at).expect_err("it is taken").to_string();
    assert!(error.contains("cannot listen at 127.0.0.1:") && error.contains("ss -ltnp"), "{error}");
}

#[test]
fn a_stop_ends_both_and_tells_what_was_open() {
    let server = Server::new(ServeParams::default());
    let (stop, stopped) = UnixStream::pair().expect("there are sockets");
    let mut told = Vec::new();
    let mut stop = Some(stop);
    // After the first has ended; the second never starts.
    let starts = [start(0, 10), start(u64::MAX, 10)];
    let sent = send(&params(server.at), starts.into_iter(), stopped.as_fd(), |flow| {
        told.push(*flow);
        drop(stop.take());
        Ok(())
    });
    let sent = sent.expect("sockets can be waited for");
    assert!(sent.stopped && sent.flows == 1 && told[0].result.is_ok(), "{sent:?} {told:?}");
    assert_eq!(server.took().flows, 1);
}
