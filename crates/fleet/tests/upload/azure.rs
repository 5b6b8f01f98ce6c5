//! The client for Azure Blob Storage against a small server on loopback that knows as much of the protocol as uploads need.

use super::s3::{DATE, percent_decoded};
use super::{Log, PART, uploader};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, ETAG, LAST_MODIFIED};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use queuescope_archive::Uploads;
use queuescope_fleet::upload::UploadTarget;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// A server with one container.
#[derive(Debug, Default)]
struct Container {
    blobs: BTreeMap<String, Bytes>,
    /// Blocks that are in no blob yet, by blob and their identifier.
    blocks: BTreeMap<(String, String), Bytes>,
    refuses: usize,
    puts: usize,
}

type Shared = Arc<Mutex<Container>>;

/// Starts a server in the runtime of the caller.
async fn start() -> (SocketAddr, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let (address, container) = (listener.local_addr().expect("it listens"), Shared::default());
    let shared = Arc::clone(&container);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let container = Arc::clone(&shared);
            let answer = move |request| {
                let container = Arc::clone(&container);
                async move { Ok::<_, Infallible>(answered(&container, request).await) }
            };
            let serving = hyper::server::conn::http1::Builder::new();
            tokio::spawn(serving.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    (address, container)
}

async fn answered(container: &Shared, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("it comes").to_bytes();
    let query = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query: BTreeMap<_, _> = query.map(|(name, value)| (percent_decoded(name), percent_decoded(value))).collect();
    let signature = head.headers.get(AUTHORIZATION).expect("it is signed").to_str().expect("it is text");
    assert!(signature.starts_with("SharedKey account:"), "{signature}");
    let is_blob = head.headers.get("x-ms-blob-type").is_some_and(|kind| kind == "BlockBlob");
    let mut container = container.lock().expect("nothing panics");
    container.answer(&head.method, &percent_decoded(head.uri.path()), &query, is_blob, body).map(Full::new)
}

impl Container {
    fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        is_blob: bool,
        body: Bytes,
    ) -> Response<Bytes> {
        let status = |status| Response::builder().status(status).body(Bytes::new()).expect("it is one");
        let made = || {
            let made = Response::builder().status(StatusCode::CREATED).header(ETAG, "\"tag\"");
            made.header(LAST_MODIFIED, DATE).body(Bytes::new()).expect("it is one")
        };
        if self.refuses > 0 {
            self.refuses -= 1;
            return status(StatusCode::FORBIDDEN);
        }
        let Some(name) = path.strip_prefix("/container") else { return status(StatusCode::NOT_FOUND) };
        let name = name.trim_start_matches('/').to_owned();
        let comp = query.get("comp").map_or("", String::as_str);
        self.puts += usize::from(*method == Method::PUT);
        match (method, comp) {
            (&Method::GET, "list") => Response::new(self.listed(query.get("prefix").map_or("", String::as_str))),
            (&Method::GET | &Method::HEAD, "") => match self.blobs.get(&name) {
                None => status(StatusCode::NOT_FOUND),
                Some(bytes) => Response::builder()
                    .header(ETAG, "\"tag\"")
                    .header(LAST_MODIFIED, DATE)
                    .header(CONTENT_LENGTH, bytes.len())
                    .body(if *method == Method::GET { bytes.clone() } else { Bytes::new() })
                    .expect("it is one"),
            },
            (&Method::PUT, "block") => {
                self.blocks.insert((name, query["blockid"].clone()), body);
                made()
            }
            (&Method::PUT, "blocklist") => {
                let list = String::from_utf8(body.to_vec()).expect("it is XML");
                let ids = list
                    .split("<Uncommitted>")
                    .skip(1)
                    .map(|rest| rest.split_once("</Uncommitted>").expect("it ends").0.to_owned());
                let blocks: Vec<_> =
                    ids.map(|id| self.blocks.remove(&(name.clone(), id)).expect("the block was sent")).collect();
                self.blobs.insert(name, blocks.into_iter().flatten().collect());
                made()
            }
            (&Method::PUT, "") if is_blob => {
                self.blobs.insert(name, body);
                made()
            }
            _ => status(StatusCode::NOT_IMPLEMENTED),
        }
    }

    fn listed(&self, prefix: &str) -> Bytes {
        let mut text = "<?xml version=\"1.0\"?><EnumerationResults><Blobs>".to_owned();
        for (name, bytes) in self.blobs.iter().filter(|(name, _)| name.starts_with(prefix)) {
            let size = bytes.len();
            write!(
                text,
                "<Blob><Name>{name}</Name><Properties><Last-Modified>{DATE}</Last-Modified><Content-Length>{size}</Content-Length>\
                 <Content-Type>application/octet-stream</Content-Type><Etag>tag</Etag></Properties></Blob>"
            )
            .expect("there is room");
        }
        Bytes::from(text + "</Blobs><NextMarker/></EnumerationResults>")
    }
}

fn target(address: SocketAddr) -> UploadTarget {
    let endpoint = format!("http://{address}");
    let environment = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
        ("AZURE_STORAGE_ENDPOINT", &endpoint),
        ("AZURE_ALLOW_HTTP", "true"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    UploadTarget::parse("az://container/fleet", &environment).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn volumes_reach_a_server_that_speaks_azures_protocol() {
    let mut log = Log::new();
    log.record(25);
    let runtime = Builder::new_current_thread().enable_all().build().expect("it can start");
    runtime.block_on(async {
        let (address, container) = start().await;
        let place = target(address);
        let open = || uploader(Uploads::open(&log.path, place.url()).expect("it is a log"), place.clone());
        container.lock().expect("nothing panics").refuses = 1;
        let error = open().expect("it can be uploaded").pass().await.expect_err("it is refused").to_string();
        assert!(error.contains("cannot list fleet/timed/host=web-1 in the store"), "{error}");
        for _ in 0..2 {
            open().expect("it can be uploaded").pass().await.expect("it works");
            let container = container.lock().expect("nothing panics");
            let expected: BTreeMap<_, _> =
                log.volumes().into_iter().map(|(object, bytes)| (format!("fleet/{object}"), bytes)).collect();
            assert!(expected.values().all(|bytes| bytes.len() as u64 > PART), "each is sent in blocks");
            let found: BTreeMap<_, _> =
                container.blobs.iter().map(|(name, bytes)| (name.clone(), bytes.to_vec())).collect();
            assert_eq!(found, expected);
            assert!(container.blocks.is_empty() && container.puts > 2 * expected.len(), "{container:?}");
        }
    });
}
