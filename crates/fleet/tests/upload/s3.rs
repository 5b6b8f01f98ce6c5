//! The clients for S3 and Google Cloud Storage against a small server on loopback that knows as much of their protocol as uploads need: it is nearly the same for both.

use super::{Log, PART, uploader};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use queuescope_archive::Uploads;
use queuescope_fleet::upload::UploadTarget;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

pub(super) const DATE: &str = "Sun, 22 Nov 2026 16:00:00 GMT";

/// A server with one bucket.
#[derive(Debug, Default)]
struct Server {
    objects: BTreeMap<String, Bytes>,
    /// The parts of uploads that are not complete.
    uploads: BTreeMap<String, BTreeMap<u32, Bytes>>,
    /// The next requests are refused.
    refuses: usize,
    requests: Vec<String>,
}

type Shared = Arc<Mutex<Server>>;

impl Server {
    /// Starts a server in the runtime of the caller.
    async fn start() -> (SocketAddr, Shared) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let (address, server) = (listener.local_addr().expect("it listens"), Shared::default());
        let shared = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&shared);
                let answer = move |request| {
                    let server = Arc::clone(&server);
                    async move { Ok::<_, Infallible>(answered(&server, request).await) }
                };
                let serving = hyper::server::conn::http1::Builder::new();
                tokio::spawn(serving.serve_connection(TokioIo::new(stream), service_fn(answer)));
            }
        });
        (address, server)
    }

    fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        body: &Bytes,
    ) -> Response<Bytes> {
        let status = |status| Response::builder().status(status).body(Bytes::new()).expect("it is one");
        let xml = |text: String| Response::new(Bytes::from(format!("<?xml version=\"1.0\"?>{text}")));
        let tagged = || Response::builder().header(ETAG, "\"tag\"").body(Bytes::new()).expect("it is one");
        if self.refuses > 0 {
            self.refuses -= 1;
            return status(StatusCode::FORBIDDEN);
        }
        let Some(key) = path.strip_prefix("/bucket") else { return status(StatusCode::NOT_FOUND) };
        let key = key.trim_start_matches('/').to_owned();
        match *method {
            Method::GET if key.is_empty() => xml(self.listed(query.get("prefix").map_or("", String::as_str))),
            Method::GET | Method::HEAD => match self.objects.get(&key) {
                None => status(StatusCode::NOT_FOUND),
                Some(bytes) => Response::builder()
                    .header(ETAG, "\"tag\"")
                    .header(LAST_MODIFIED, DATE)
                    .header(CONTENT_LENGTH, bytes.len())
                    .body(if *method == Method::GET { bytes.clone() } else { Bytes::new() })
                    .expect("it is one"),
            },
            Method::POST if query.contains_key("uploads") => {
                let id = format!("upload-{}", self.requests.len());
                self.uploads.insert(id.clone(), BTreeMap::new());
                xml(format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"))
            }
            Method::PUT if query.contains_key("partNumber") => {
                let parts = self.uploads.get_mut(&query["uploadId"]).expect("it was begun");
                parts.insert(query["partNumber"].parse().expect("it is a number"), body.clone());
                tagged()
            }
            Method::POST if query.contains_key("uploadId") => {
                let parts = self.uploads.remove(&query["uploadId"]).expect("it was begun");
                self.objects.insert(key, parts.into_values().flatten().collect());
                xml("<CompleteMultipartUploadResult><ETag>\"tag\"</ETag></CompleteMultipartUploadResult>".to_owned())
            }
            Method::DELETE => {
                self.uploads.remove(&query["uploadId"]);
                status(StatusCode::NO_CONTENT)
            }
            Method::PUT => {
                self.objects.insert(key, body.clone());
                tagged()
            }
            _ => status(StatusCode::NOT_IMPLEMENTED),
        }
    }

    fn listed(&self, prefix: &str) -> String {
        let mut text = "<ListBucketResult>".to_owned();
        for (key, bytes) in self.objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let (size, at) = (bytes.len(), "2026-11-22T16:00:00.000Z");
            write!(text, "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{at}</LastModified></Contents>")
                .expect("there is room");
        }
        text + "</ListBucketResult>"
    }
}

async fn answered(server: &Shared, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("it comes").to_bytes();
    let decoded = |text: &str| percent_decoded(text);
    let query = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = query.map(|(name, value)| (decoded(name), decoded(value))).collect();
    let path = decoded(head.uri.path());
    // Requests are signed, and the signature covers the body.
    let signature = head.headers.get(AUTHORIZATION).expect("it is signed").to_str().expect("it is text");
    assert!(head.headers.get(CONTENT_RANGE).is_none());
    // Google has a token in place of a signature.
    if signature != "Bearer token" {
        assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=key/"), "{signature}");
        let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        let signed = head.headers.get("x-amz-content-sha256").expect("it is signed");
        assert_eq!(signed, &digest, "{} {path}", head.method);
    }
    let mut server = server.lock().expect("nothing panics");
    server.requests.push(format!("{} {path}", head.method));
    server.answer(&head.method, &path, &query, &body).map(Full::new)
}

pub(super) fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first == b'%' {
            let hex = std::str::from_utf8(&rest[..2]).expect("it is ASCII");
            bytes.push(u8::from_str_radix(hex, 16).expect("it is hexadecimal"));
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).expect("it is text")
}

fn target(address: SocketAddr) -> UploadTarget {
    let endpoint = format!("http://{address}");
    let environment = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "here"),
        ("AWS_ENDPOINT_URL", &endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("REGION", "not read"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    UploadTarget::parse("s3://bucket/fleet", &environment).unwrap_or_else(|error| panic!("{error}"))
}

/// A place of Google Cloud Storage.
fn google(address: SocketAddr) -> UploadTarget {
    let endpoint = format!("http://{address}");
    let environment = [("GOOGLE_BASE_URL", endpoint.as_str()), ("GOOGLE_BEARER_TOKEN", "token")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    UploadTarget::parse("gs://bucket/fleet", &environment).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn volumes_reach_a_server_that_speaks_s3() {
    volumes_reach_a_server(target);
}

#[test]
fn volumes_reach_a_server_that_speaks_googles_protocol() {
    volumes_reach_a_server(google);
}

fn volumes_reach_a_server(target: impl Fn(SocketAddr) -> UploadTarget) {
    let mut log = Log::new();
    log.record(25);
    let runtime = Builder::new_current_thread().enable_all().build().expect("it can start");
    runtime.block_on(async {
        let (address, server) = Server::start().await;
        let place = target(address);
        let open = || uploader(Uploads::open(&log.path, place.url()).expect("it is a log"), place.clone());
        // Credentials that are refused cost nothing but time.
        server.lock().expect("nothing panics").refuses = 1;
        let error = open().expect("it can be uploaded").pass().await.expect_err("it is refused").to_string();
        assert!(error.contains("cannot list fleet/timed/host=web-1 in the store"), "{error}");
        for _ in 0..2 {
            open().expect("it can be uploaded").pass().await.expect("it works");
            let server = server.lock().expect("nothing panics");
            let expected: BTreeMap<_, _> =
                log.volumes().into_iter().map(|(object, bytes)| (format!("fleet/{object}"), bytes)).collect();
            assert!(expected.values().all(|bytes| bytes.len() as u64 > PART), "each is sent in parts");
            let found: BTreeMap<_, _> =
                server.objects.iter().map(|(key, bytes)| (key.clone(), bytes.to_vec())).collect();
            assert_eq!(found, expected);
            assert!(server.uploads.is_empty());
            let parts = server.requests.iter().filter(|request| request.starts_with("PUT")).count();
            assert!(parts > expected.len(), "and once: {:?}", server.requests);
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let mut log = Log::new();
    log.record(5);
    let runtime = Builder::new_current_thread().enable_all().build().expect("it can start");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it listens");
        drop(listener);
        let place = target(address);
        let mut uploader =
            uploader(Uploads::open(&log.path, place.url()).expect("it is a log"), place).expect("it can");
        let error = uploader.pass().await.expect_err("nobody listens").to_string();
        assert!(error.contains("cannot list") && error.contains("refused"), "{error}");
    });
}
