//! What a coordinator accepts as a member.

use super::common::{
    COORDINATOR, Fleet, NOW, TestClock, client_refused, connect, dns, parts, plain_client, plain_server,
    server_refused, uri,
};
use queuescope_fleet::identity::{CurrentCredentials, IdentityError, client_config};
use rcgen::ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
use rustls::HandshakeKind;
use rustls::version::TLS13;
use std::sync::Arc;

#[tokio::test]
async fn only_one_identity_of_a_known_role_is_accepted() {
    let fleet = Fleet::new();
    let web = || uri("queuescope://fleet/agent/web");
    let sides = |names, purpose| {
        let client = Arc::new(plain_client(&fleet, &[&TLS13], Some(fleet.forged(names, purpose))));
        let server = fleet.server.clone();
        async move { connect(&server, &client, COORDINATOR).await }
    };
    // The forged certificates are good but for their names.
    let (server, _) = sides(vec![web(), dns("web.example")], ClientAuth).await;
    assert_eq!(server.unwrap().peer.unwrap().subject.to_string(), "agent/web");
    for (names, why) in [
        (vec![], "it names 0 identities"),
        (vec![dns("web")], "it names 0 identities"),
        (vec![web(), web()], "it names 2 identities"),
        (vec![web(), uri("queuescope://fleet/admin/web")], "it names 2 identities"),
        (vec![uri("queuescope://fleet/root/web")], "unknown role 'root'"),
        (vec![uri("queuescope://fleet/Admin/web")], "unknown role 'Admin'"),
        (vec![uri("queuescope://fleet/admin/")], "it is empty"),
        (vec![uri("queuescope://fleet/admin/a/b")], "it has another character"),
        (vec![uri("queuescope://fleet/web")], "it has no name"),
        (vec![uri("https://fleet/agent/web")], "it does not begin with queuescope://fleet/"),
        (vec![uri("queuescope://fleet/coordinator")], "the certificate is a coordinator's"),
    ] {
        server_refused(&sides(names, ClientAuth).await, why);
    }
    server_refused(&sides(vec![web()], ServerAuth).await, "certificate does not allow extended key usage");
    // The purpose must be stated.
    server_refused(&sides(vec![web()], Any).await, "certificate does not allow extended key usage");
}

#[tokio::test]
async fn a_member_is_not_a_coordinator() {
    let fleet = Fleet::new();
    let member = fleet.member("web-1", "admin");
    let (chain, key) = parts(&member);
    let client = client_config(&CurrentCredentials::new(member), TestClock::at(NOW)).unwrap();
    let server = plain_server(chain, key);
    client_refused(&connect(&server, &client, COORDINATOR).await, "certificate does not allow extended key usage");
    let (certificate, key) = fleet.forged(vec![uri("queuescope://fleet/admin/web"), dns(COORDINATOR)], ServerAuth);
    let server = plain_server(vec![certificate], key);
    client_refused(&connect(&server, &client, COORDINATOR).await, "must be a coordinator's");
    let (certificate, key) = fleet.forged(vec![uri("queuescope://fleet/coordinator"), dns(COORDINATOR)], ServerAuth);
    let server = plain_server(vec![certificate], key);
    let (server, client) = connect(&server, &client, COORDINATOR).await;
    assert!(server.is_ok() && client.is_ok());
}

#[tokio::test]
async fn a_revoked_member_is_refused_and_its_open_connection_fails_the_check() {
    let fleet = Fleet::new();
    let credentials = CurrentCredentials::new(fleet.member("web-1", "agent"));
    let client = client_config(&credentials, TestClock::at(NOW)).unwrap();
    let other = client_config(&CurrentCredentials::new(fleet.member("web-2", "agent")), TestClock::at(NOW)).unwrap();
    let open = connect(&fleet.server, &client, COORDINATOR).await.0.unwrap().peer.unwrap();
    fleet.registrar.revocations().check(&open, NOW).unwrap();

    assert_eq!(fleet.registrar.revoke(&"web-1".parse().unwrap(), NOW).unwrap().certificates, 1);
    server_refused(&connect(&fleet.server, &client, COORDINATOR).await, "Revoked");
    assert!(connect(&fleet.server, &other, COORDINATOR).await.0.is_ok());
    let error = fleet.registrar.revocations().check(&open, NOW).unwrap_err();
    assert!(matches!(error, IdentityError::Revoked { .. }), "{error}");

    let again = client_config(&CurrentCredentials::new(fleet.member("web-1", "agent")), TestClock::at(NOW)).unwrap();
    assert!(connect(&fleet.server, &again, COORDINATOR).await.0.is_ok());
    server_refused(&connect(&fleet.server, &client, COORDINATOR).await, "Revoked");
}

/// A resumed session has no certificates to check.
#[tokio::test]
async fn sessions_are_not_resumed() {
    let fleet = Fleet::new();
    let (chain, key) = parts(&fleet.member("web-1", "agent"));
    // It would resume sessions, and keeps those that it is offered.
    let client = Arc::new(plain_client(&fleet, &[&TLS13], Some((chain[0].clone(), key.clone_key()))));
    for _ in 0..3 {
        let (server, client) = connect(&fleet.server, &client, COORDINATOR).await;
        assert_ne!(server.unwrap().kind, HandshakeKind::Resumed);
        assert_ne!(client.unwrap().kind, HandshakeKind::Resumed);
    }
    // The same client resumes a session of a server that offers it.
    let (chain, key) = parts(&fleet.coordinator.get());
    let offering = plain_server(chain, key);
    let client = Arc::new(plain_client(&fleet, &[&TLS13], None));
    assert_ne!(connect(&offering, &client, COORDINATOR).await.1.unwrap().kind, HandshakeKind::Resumed);
    assert_eq!(connect(&offering, &client, COORDINATOR).await.1.unwrap().kind, HandshakeKind::Resumed);
    // A member's own configuration does not.
    let client = client_config(&CurrentCredentials::new(fleet.member("web-2", "agent")), TestClock::at(NOW)).unwrap();
    for _ in 0..2 {
        assert_ne!(connect(&offering, &client, COORDINATOR).await.1.unwrap().kind, HandshakeKind::Resumed);
    }
}
