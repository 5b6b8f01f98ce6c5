//! A fleet with one coordinator, and connections in memory.

use queuescope_fleet::identity::{
    Authority, CertificateFacts, Credentials, CurrentCredentials, Identity, Issued, Lives, PendingKey, Registrar,
    ServerName, SigningRequest, TimeProvider, connection_error, peer, server_config,
};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::{ClientConfig, HandshakeKind, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// When the fleet was made, in seconds since 1970.
pub const NOW: u64 = 1_795_000_000;
pub const HOUR: Duration = Duration::from_secs(3600);
/// A name of the coordinator.
pub const COORDINATOR: &str = "coordinator.example";

/// A clock that stands still until it is set.
#[derive(Debug)]
pub struct TestClock(AtomicU64);

impl TestClock {
    pub fn at(seconds: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seconds)))
    }

    pub fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl TimeProvider for TestClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
    }
}

pub struct Fleet {
    pub dir: tempfile::TempDir,
    pub registrar: Registrar,
    pub coordinator: CurrentCredentials,
    /// The coordinator's clock.
    pub clock: Arc<TestClock>,
    pub server: Arc<ServerConfig>,
}

impl Fleet {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let names = [COORDINATOR, "127.0.0.1"].map(|name| ServerName::try_from(name).unwrap());
        Authority::create(dir.path(), &names, &Lives::default(), NOW).unwrap();
        let registrar = Registrar::open(dir.path(), Lives::default()).unwrap();
        let coordinator = registrar.credentials(NOW).unwrap();
        let clock = TestClock::at(NOW);
        let server = server_config(&coordinator, registrar.revocations().clone(), clock.clone()).unwrap();
        Self { dir, registrar, coordinator, clock, server }
    }

    /// A member that joined with a token.
    pub fn member(&self, name: &str, role: &str) -> Credentials {
        let token = self.registrar.invite(&Identity::parse(name, role).unwrap(), HOUR, NOW).unwrap();
        let pending = PendingKey::generate().unwrap();
        let issued = self.registrar.join(&token.text(), pending.request(), NOW).unwrap();
        self.accept(pending, &issued)
    }

    /// A member whose certificate lasts an hour.
    pub fn short_lived(&self, name: &str) -> Credentials {
        let pending = PendingKey::generate().unwrap();
        let request = SigningRequest::from_pem(pending.request()).unwrap();
        let member = Identity::parse(name, "agent").unwrap();
        let issued = self.registrar.authority().issue(&request, &member, HOUR, NOW).unwrap();
        self.accept(pending, &issued)
    }

    fn accept(&self, pending: PendingKey, issued: &Issued) -> Credentials {
        Credentials::accept(pending, &issued.pem, self.registrar.authority().certificate_pem(), NOW).unwrap()
    }

    /// A certificate that the authority's key has signed, with these alternative names and purpose; and its key.
    pub fn forged(
        &self,
        names: Vec<SanType>,
        purpose: ExtendedKeyUsagePurpose,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::from_pem(&fs::read_to_string(self.dir.path().join("authority.key")).unwrap()).unwrap();
        let issuer = Issuer::from_ca_cert_pem(self.registrar.authority().certificate_pem(), key).unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        (certificate.into(), key.into())
    }
}

pub fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

pub fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

/// A client that checks the server against the fleet's authority alone, as other programs do, and sends this certificate.
pub fn plain_client(
    fleet: &Fleet,
    versions: &[&'static SupportedProtocolVersion],
    certificate: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(fleet.registrar.authority().certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_details(provider, TestClock::at(NOW)).with_protocol_versions(versions).unwrap();
    let builder = builder.with_root_certificates(roots);
    match certificate {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    }
}

/// A server that checks nothing, with this chain.
pub fn plain_server(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_details(provider, TestClock::at(NOW)).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// The certificates and the key of credentials, as a file has them.
pub fn parts(credentials: &Credentials) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let dir = tempfile::tempdir().unwrap();
    credentials.save(dir.path()).unwrap();
    let text = fs::read(dir.path().join("credentials.pem")).unwrap();
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().unwrap();
    (certificates, PrivateKeyDer::from_pem_slice(&text).unwrap())
}

/// What a side saw of a connection that both sides accepted.
#[derive(Debug)]
pub struct Seen {
    /// The certificate of the other side.
    pub peer: Option<CertificateFacts>,
    pub alpn: Option<Vec<u8>>,
    pub version: rustls::ProtocolVersion,
    pub kind: HandshakeKind,
}

/// The results of both sides of a connection: what each saw, or why it failed. With TLS 1.3, a client sees a refusal only when it reads.
pub type Sides = (Result<Seen, String>, Result<Seen, String>);

/// Connects both sides in memory, and sends some bytes in both directions.
pub async fn connect(server: &Arc<ServerConfig>, client: &Arc<ClientConfig>, name: &str) -> Sides {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server_side = async {
        let mut stream = TlsAcceptor::from(server.clone()).accept(ours).await?;
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await?;
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        let connection = stream.get_ref().1;
        let peer = peer(connection).map_err(|error| io::Error::other(error.to_string()))?;
        Ok::<_, io::Error>(seen(connection, peer))
    };
    let client_side = async {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut stream = TlsConnector::from(client.clone()).connect(name, theirs).await?;
        stream.write_all(b"ping").await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        assert_eq!(bytes, b"ping");
        let connection = stream.get_ref().1;
        let certificate = &connection.peer_certificates().unwrap()[0];
        Ok::<_, io::Error>(seen(connection, CertificateFacts::from_der(certificate).ok()))
    };
    let (server, client) = tokio::join!(server_side, client_side);
    (server.map_err(|error| text(&error)), client.map_err(|error| text(&error)))
}

/// The error as people see it.
fn text(error: &io::Error) -> String {
    let of_tls = error.get_ref().and_then(|error| error.downcast_ref());
    of_tls.map_or_else(|| error.to_string(), connection_error)
}

fn seen(connection: &rustls::CommonState, peer: Option<CertificateFacts>) -> Seen {
    Seen {
        peer,
        alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
        version: connection.protocol_version().unwrap(),
        kind: connection.handshake_kind().unwrap(),
    }
}

/// Asserts that the server refused the client with this error, and that the client saw it.
pub fn server_refused(sides: &Sides, why: &str) {
    let server = sides.0.as_ref().expect_err("the server accepted the client");
    assert!(server.contains(why), "{server}");
    let client = sides.1.as_ref().expect_err("the client saw no refusal");
    assert!(client.contains("received fatal alert"), "{client}");
}

/// Asserts that the client refused the server with this error.
pub fn client_refused(sides: &Sides, why: &str) {
    let client = sides.1.as_ref().expect_err("the client accepted the server");
    assert!(client.contains(why), "{client}");
    let server = sides.0.as_ref().expect_err("the server saw no refusal");
    assert!(server.contains("received fatal alert"), "{server}");
}
