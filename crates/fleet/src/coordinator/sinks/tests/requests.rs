//! Requests to servers that fail in many ways.

use super::super::delivery::{Attempt, AttemptEnd};
use super::super::examples::{HOSTILE, alert, hostile, plain};
use super::super::sender::{Sender, Trusted};
use super::super::{PreparedSinks, SinkError, SinkOptions, retry_after};
use super::server::{Behaviour, Got, serve};
use proptest::prelude::*;
use queuescope_wire::Nanos;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

fn options(sinks: &[&str]) -> SinkOptions {
    SinkOptions { sinks: sinks.iter().map(|sink| sink.parse().unwrap()).collect(), ..SinkOptions::default() }
}

fn sender(options: &SinkOptions) -> Sender {
    Sender::new(&options.sinks[0], options, &mut Trusted::default()).unwrap()
}

/// Sends an alert to a webhook that behaves so.
async fn sent(behaviour: Behaviour) -> (Attempt, Receiver<Got>) {
    let (address, got) = serve(&[behaviour]);
    let mut sender = sender(&options(&[&format!("webhook:http://{address}/hook?a=b")]));
    (sender.send("c0ffee", &[plain()]).await, got)
}

async fn end_of(behaviour: Behaviour) -> AttemptEnd {
    sent(behaviour).await.0.end
}

fn failed(end: AttemptEnd) -> String {
    match end {
        AttemptEnd::Failed { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

fn refused(end: AttemptEnd) -> String {
    match end {
        AttemptEnd::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_webhook_gets_a_list_with_a_key() {
    let (attempt, got) = sent(Behaviour::Say("HTTP/1.1 204 No Content\r\n\r\n")).await;
    assert_eq!(attempt, Attempt::ALL);
    let got = got.recv().unwrap();
    let first = got.head.lines().next().unwrap();
    assert_eq!((first, got.field("content-type")), ("POST /hook?a=b HTTP/1.1", Some("application/json")));
    assert!(got.field("host").unwrap().starts_with("127.0.0.1:"));
    let key = got.field("idempotency-key").unwrap();
    assert!(key.starts_with("\"1-1-") && key.ends_with('"'), "{key}");
    assert_eq!((got.numbers(), got.field("authorization")), (vec![1], None));
}

#[tokio::test]
async fn alertmanager_gets_its_list_below_its_prefix() {
    let (address, got) = serve(&[Behaviour::Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]);
    let mut sender = sender(&options(&[&format!("alertmanager:http://{address}/prefix/")]));
    assert_eq!(sender.send("c0ffee", &[plain(), alert(2, "")]).await, Attempt::ALL);
    let got = got.recv().unwrap();
    assert!(got.head.starts_with("POST /prefix/api/v2/alerts HTTP/1.1\r\n"), "{}", got.head);
    let body: serde_json::Value = serde_json::from_str(&got.body).unwrap();
    assert_eq!((body[0]["labels"]["alertname"].as_str(), body.as_array().unwrap().len()), (Some("busy"), 2));
}

#[tokio::test]
async fn equal_lists_have_equal_keys() {
    let (address, got) = serve(&[Behaviour::Say("HTTP/1.1 200 OK\r\n\r\n")]);
    let mut sender = sender(&options(&[&format!("webhook:http://{address}")]));
    for alerts in [[alert(1, ""), alert(2, "")], [alert(1, ""), alert(2, "")], [alert(1, ""), alert(2, "other")]] {
        assert_eq!(sender.send("c0ffee", &alerts).await, Attempt::ALL);
    }
    let keys: Vec<_> = (0..3).map(|_| got.recv().unwrap().field("idempotency-key").unwrap().to_owned()).collect();
    assert!(keys[0] == keys[1] && keys[1] != keys[2], "{keys:?}");
}

#[tokio::test]
async fn success_is_known_from_the_status() {
    let bodies = [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nx",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ];
    for text in bodies {
        assert_eq!(end_of(Behaviour::Say(text)).await, AttemptEnd::All, "{text}");
        assert_eq!(end_of(Behaviour::SayInBytes(text)).await, AttemptEnd::All, "{text}");
    }
    let endless = Behaviour::SayForEver("HTTP/1.1 200 OK\r\n\r\n", "data\n");
    assert_eq!(end_of(endless).await, AttemptEnd::All);
}

#[tokio::test]
async fn a_refusal_has_its_reason() {
    for (text, why) in [
        ("HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nbad\n\x1b[2Jl", "it answered 400 (bad  [2Jl)"),
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", "it answered 401"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nhalf", "it answered 404 (half)"),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://other.example/\r\n\r\n",
            "it answered 302; redirects are not followed: give the URL that it names",
        ),
    ] {
        assert_eq!(refused(end_of(Behaviour::Say(text)).await), why);
    }
    let endless = Behaviour::SayForEver("HTTP/1.1 413 Content Too Large\r\n\r\n", "too long ");
    let why = refused(end_of(endless).await);
    assert!(why.len() < 250 && why.contains("too long too long") && why.ends_with("...)"), "{why}");
}

#[tokio::test]
async fn a_failure_is_tried_again_after_the_pause_that_the_server_asks_for() {
    for (text, pause) in [
        ("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n\r\n", Some(Nanos(7_000_000_000))),
        ("HTTP/1.1 503 Service Unavailable\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", Some(Nanos(0))),
        ("HTTP/1.1 503 Service Unavailable\r\nRetry-After: soon\r\n\r\n", None),
        ("HTTP/1.1 500 Internal Server Error\r\n\r\n", None),
        ("HTTP/1.1 408 Request Timeout\r\n\r\n", None),
        ("HTTP/1.1 999 Strange\r\n\r\n", None),
    ] {
        match end_of(Behaviour::Say(text)).await {
            AttemptEnd::Failed { after, why } => assert_eq!(after, pause, "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_broken_answer_is_a_failure() {
    for behaviour in [
        Behaviour::CloseAtOnce,
        Behaviour::Say(""),
        Behaviour::Say("HTTP/1.1 200"),
        Behaviour::Say("HTTP/1.1 200 OK\r\nContent-Le"),
        Behaviour::Say("SSH-2.0-OpenSSH_9.6\r\n"),
        Behaviour::Say("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
        Behaviour::SayForEver("HTTP/1.1 200 OK\r\n", "A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"),
        Behaviour::SayForEver("HTTP/1.1 200 OK\r\nA: ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ] {
        failed(end_of(behaviour).await);
    }
}

/// Time is virtual: it moves on when nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_left() {
    let why = failed(end_of(Behaviour::Hang).await);
    assert!(why.contains("within"), "{why}");
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut sender = sender(&options(&[&format!("webhook:http://{address}")]));
    let why = failed(sender.send("c0ffee", &[plain()]).await.end);
    assert!(why.starts_with("cannot connect to 127.0.0.1:"), "{why}");
}

#[tokio::test]
async fn texts_of_alerts_stay_in_the_body() {
    let (address, got) = serve(&[Behaviour::Say("HTTP/1.1 200 OK\r\n\r\n")]);
    let mut sender = sender(&options(&[&format!("webhook:http://{address}")]));
    for text in HOSTILE {
        assert_eq!(sender.send("c0ffee", &[hostile(text)]).await, Attempt::ALL);
        let got = got.recv().unwrap();
        assert_eq!(got.head.lines().count(), 7, "{}", got.head);
        assert_eq!(got.numbers(), [1]);
    }
}

#[tokio::test]
async fn the_token_is_read_for_each_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "secret-1\n").unwrap();
    let (address, got) = serve(&[Behaviour::Say("HTTP/1.1 200 OK\r\n\r\n")]);
    let options = SinkOptions { token: Some(path.clone()), ..options(&[&format!("webhook:http://{address}")]) };
    let mut sender = sender(&options);
    for text in ["secret-1", "secret-2"] {
        fs::write(&path, text).unwrap();
        assert_eq!(sender.send("c0ffee", &[plain()]).await, Attempt::ALL);
        assert_eq!(got.recv().unwrap().field("authorization"), Some(&*format!("Bearer {text}")));
    }
    for text in ["", "\n", "a b", "a\nX-Other: b", "é"] {
        fs::write(&path, text).unwrap();
        let why = failed(sender.send("c0ffee", &[plain()]).await.end);
        assert!(why.starts_with("cannot read the token in ") && !why.contains("Other"), "{why}");
    }
    assert!(!format!("{sender:?}").contains("secret"));
    assert!(got.try_recv().is_err(), "nothing was sent without a token");
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "secret\n").unwrap();
    let why = |sinks: &[&str], token: Option<&Path>, authority: Option<&Path>| {
        let (token, authority) = (token.map(Path::to_owned), authority.map(Path::to_owned));
        PreparedSinks::new(SinkOptions { token, authority, ..options(sinks) }).unwrap_err()
    };
    let token = Some(&*token);
    assert!(matches!(why(&["jsonl:-", "jsonl:-"], None, None), SinkError::Twice(_)));
    assert!(matches!(why(&["webhook:http://192.0.2.1/"], token, None), SinkError::PlainToken(_)));
    let two = ["webhook:https://a.example/", "alertmanager:https://b.example"];
    assert!(matches!(why(&two, token, None), SinkError::SharedToken(..)));
    assert!(matches!(why(&["jsonl:-"], token, None), SinkError::Unused(..)));
    assert!(matches!(why(&["webhook:http://127.0.0.1/"], None, token), SinkError::Unused(..)));
    assert!(matches!(why(&["webhook:https://a.example"], None, token), SinkError::Authority { .. }));
    let no_token = dir.path().join("no");
    assert!(matches!(why(&["webhook:http://127.0.0.1/"], Some(&no_token), None), SinkError::Token(_)));
    assert!(matches!(why(&[&format!("jsonl:{}", dir.path().display())], None, None), SinkError::File { .. }));
}

/// A server with a certificate of its own, which answers each request with success.
fn secure_server(key: &CertifiedKey<rcgen::KeyPair>) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![key.cert.der().clone()],
            PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::Stream::new(&mut connection, &mut stream);
            // A client that does not trust it ends the handshake.
            if super::server::read(&mut stream).is_some() {
                let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    address
}

#[tokio::test]
async fn a_server_needs_a_certificate_of_a_trusted_authority_for_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (own, other) = (dir.path().join("own.pem"), dir.path().join("other.pem"));
    let key = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(&own, key.cert.pem()).unwrap();
    fs::write(&other, generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem()).unwrap();
    let address = secure_server(&key);
    let attempt = async |authority: &Path, host: &str| {
        let sink = format!("webhook:https://{host}:{}/", address.port());
        let options = SinkOptions { authority: Some(authority.to_owned()), ..options(&[&sink]) };
        sender(&options).send("c0ffee", &[plain()]).await
    };
    assert_eq!(attempt(&own, "127.0.0.1").await, Attempt::ALL);
    let why = failed(attempt(&other, "127.0.0.1").await.end);
    assert!(why.contains("invalid peer certificate"), "{why}");
    let why = failed(attempt(&own, "localhost").await.end);
    assert!(why.contains("certificate"), "{why}");
}

#[test]
fn pauses_are_seconds_or_dates() {
    let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
    let pause = |field: &str| retry_after(field.as_bytes(), now).map(|pause| pause.0);
    assert_eq!(pause("0"), Some(0));
    assert_eq!(pause(" 30 "), Some(30_000_000_000));
    assert_eq!(pause("99999999999999999999999999"), Some(u64::MAX));
    assert_eq!(pause("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60_000_000_000));
    assert_eq!(pause("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0), "it is over");
    for field in ["", "-1", "+1", "1.5", "soon", "Sun, 99 Nov 1994 08:00:00 GMT"] {
        assert_eq!(pause(field), None, "{field}");
    }
}

proptest! {
    #[test]
    fn any_field_is_a_pause_or_not(field in any::<Vec<u8>>(), now in 0..u64::from(u32::MAX)) {
        let now = UNIX_EPOCH + Duration::from_secs(now);
        let is_number = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
        prop_assert!(!is_number || retry_after(&field, now).is_some());
    }
}
