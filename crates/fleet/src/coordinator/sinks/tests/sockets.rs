//! Messages of syslog to sockets.

use super::super::delivery::{Attempt, AttemptEnd};
use super::super::examples::{HOSTILE, alert, hostile, plain};
use super::super::sender::{Sender, Trusted};
use super::super::syslog::{DATAGRAM, STREAM, message};
use super::super::{SinkLimits, SinkOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn sender(sink: &str) -> Sender {
    Sender::new(&sink.parse().unwrap(), &SinkOptions::default(), &mut Trusted::default()).unwrap()
}

#[tokio::test]
async fn each_alert_is_a_datagram() {
    for any in ["127.0.0.1:0", "[::1]:0"] {
        let socket = match UdpSocket::bind(any) {
            Ok(socket) => socket,
            Err(why) => {
                println!("skipped: a part of each_alert_is_a_datagram: {any}: {why}");
                continue;
            }
        };
        let mut sender = sender(&format!("syslog:{}", socket.local_addr().unwrap()));
        assert_eq!(sender.send("c0ffee", &[plain(), alert(2, "a\nb")]).await, Attempt::ALL);
        let mut buffer = [0; 4_096];
        for expected in [plain(), alert(2, "a b")] {
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], message(&expected, DATAGRAM));
        }
    }
}

#[tokio::test]
async fn a_socket_of_this_machine_gets_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut sender = sender(&format!("syslog:{}", path.display()));
    let end = sender.send("c0ffee", &[plain()]).await.end;
    assert!(matches!(&end, AttemptEnd::Failed { why, .. } if why.contains("cannot send to")), "{end:?}");
    let socket = UnixDatagram::bind(&path).unwrap();
    assert_eq!(sender.send("c0ffee", &[plain()]).await, Attempt::ALL);
    let mut buffer = [0; 4_096];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..length], message(&plain(), DATAGRAM));
}

/// Reads messages with their lengths in front of them.
fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ').expect("a length ends");
        let length: usize = str::from_utf8(&bytes[..space]).unwrap().parse().unwrap();
        let (frame, rest) = bytes[space + 1..].split_at(length);
        frames.push(frame.to_vec());
        bytes = rest;
    }
    frames
}

#[tokio::test]
async fn a_stream_has_each_message_with_its_length() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = sender(&format!("syslog+tcp:{}", listener.local_addr().unwrap()));
    let (go, got) = channel();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            go.send(bytes).unwrap();
        }
    });
    let alerts: Vec<_> = HOSTILE.iter().map(|text| hostile(text)).collect();
    assert_eq!(sender.send("c0ffee", &alerts).await, Attempt::ALL);
    let expected: Vec<_> = alerts.iter().map(|alert| message(alert, STREAM)).collect();
    assert_eq!(frames(&got.recv().unwrap()), expected);
}

#[tokio::test]
async fn a_connection_that_is_reset_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = sender(&format!("syslog+tcp:{}", listener.local_addr().unwrap()));
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Closed with unread bytes: the system resets the connection.
        stream.read_exact(&mut [0]).unwrap();
    });
    let end = sender.send("c0ffee", &[plain(), alert(2, "")]).await.end;
    assert!(matches!(end, AttemptEnd::Failed { .. }), "{end:?}");
    // Nobody listens any more.
    let end = sender.send("c0ffee", &[plain()]).await.end;
    assert!(matches!(end, AttemptEnd::Failed { .. }), "{end:?}");
}

/// Time is virtual: it moves on when nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_leaves_the_connection_open_has_read_the_messages() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = sender(&format!("syslog+tcp:{}", listener.local_addr().unwrap()));
    // The system accepts connections without it.
    assert_eq!(sender.send("c0ffee", &[plain()]).await, Attempt::ALL);
    let mut bytes = Vec::new();
    drop(sender);
    listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
    assert_eq!(frames(&bytes), [message(&plain(), STREAM)]);
}

#[tokio::test]
async fn a_receiver_that_talks_without_end_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = sender(&format!("syslog+tcp:{}", listener.local_addr().unwrap()));
    let talking = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while stream.write_all(&[b'x'; 1_024]).is_ok() {}
    });
    sender.send("c0ffee", &[plain()]).await;
    talking.join().unwrap();
}

/// Time is virtual: it moves on when nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_full_socket_costs_no_more_than_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let _socket = UnixDatagram::bind(&path).unwrap();
    let options = SinkOptions {
        limits: SinkLimits { whole: Duration::from_secs(3), ..SinkLimits::default() },
        ..SinkOptions::default()
    };
    let sink = format!("syslog:{}", path.display()).parse().unwrap();
    let mut sender = Sender::new(&sink, &options, &mut Trusted::default()).unwrap();
    let alerts: Vec<_> = (1..=10_000).map(|number| alert(number, "")).collect();
    let end = sender.send("c0ffee", &alerts).await.end;
    assert!(matches!(&end, AttemptEnd::Failed { why, .. } if why.contains("longer than 3 s")), "{end:?}");
}
