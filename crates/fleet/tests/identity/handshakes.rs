//! Connections of members with the coordinator.

use super::common::{COORDINATOR, Fleet, NOW, TestClock, client_refused, connect, parts, plain_client, server_refused};
use queuescope_fleet::identity::{CurrentCredentials, IdentityError, Subject, client_config, server_config};
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, ProtocolVersion};
use std::sync::Arc;

#[tokio::test]
async fn both_sides_see_each_other() {
    let fleet = Fleet::new();
    let member = fleet.member("web-1", "agent");
    let facts = member.facts().clone();
    let client = client_config(&CurrentCredentials::new(member), TestClock::at(NOW)).unwrap();
    for name in [COORDINATOR, "127.0.0.1"] {
        let (server, client) = connect(&fleet.server, &client, name).await;
        let (server, client) = (server.unwrap(), client.unwrap());
        assert_eq!(server.peer.as_ref(), Some(&facts));
        assert_eq!(client.peer.as_ref(), Some(fleet.coordinator.get().facts()));
        for side in [server, client] {
            assert_eq!((side.alpn.as_deref(), side.version), (Some(&b"h2"[..]), ProtocolVersion::TLSv1_3));
            assert_ne!(side.kind, HandshakeKind::Resumed);
        }
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_connected_as_nobody() {
    let fleet = Fleet::new();
    let client = Arc::new(plain_client(&fleet, &[&TLS13], None));
    let (server, client) = connect(&fleet.server, &client, COORDINATOR).await;
    assert_eq!(server.unwrap().peer, None);
    assert_eq!(client.unwrap().peer.unwrap().subject, Subject::Coordinator);
}

#[tokio::test]
async fn tls_1_2_is_refused() {
    let fleet = Fleet::new();
    let client = Arc::new(plain_client(&fleet, &[&TLS12], None));
    let sides = connect(&fleet.server, &client, COORDINATOR).await;
    server_refused(&sides, "Tls12NotOfferedOrEnabled");
    let (chain, key) = parts(&fleet.coordinator.get());
    let mut old = (*super::common::plain_server(chain, key)).clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS12]).unwrap();
    old = builder.with_no_client_auth().with_cert_resolver(old.cert_resolver);
    let client = client_config(&CurrentCredentials::new(fleet.member("web-1", "agent")), TestClock::at(NOW)).unwrap();
    let sides = connect(&Arc::new(old), &client, COORDINATOR).await;
    assert!(sides.0.is_err() && sides.1.is_err(), "{sides:?}");
}

#[tokio::test]
async fn another_protocol_than_http_2_is_refused() {
    let fleet = Fleet::new();
    let mut client = plain_client(&fleet, &[&TLS13], None);
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    let sides = connect(&fleet.server, &Arc::new(client), COORDINATOR).await;
    server_refused(&sides, "peer doesn't support any known protocol");
}

#[tokio::test]
async fn certificates_are_refused_before_and_after_their_time() {
    let fleet = Fleet::new();
    let member = CurrentCredentials::new(fleet.short_lived("web-1"));
    let clock = TestClock::at(NOW);
    let client = client_config(&member, clock.clone()).unwrap();
    let last = member.get().facts().not_after;
    // The member's clock stays where the coordinator's certificate is valid.
    for (now, why) in
        [(NOW - 301, "certificate not valid yet"), (NOW - 300, ""), (last, ""), (last + 1, "certificate expired")]
    {
        fleet.clock.set(now);
        let sides = connect(&fleet.server, &client, COORDINATOR).await;
        match why {
            "" => assert!(sides.0.is_ok() && sides.1.is_ok(), "{now}: {sides:?}"),
            why => server_refused(&sides, why),
        }
    }
    // The other way round: the member's clock is wrong, or the coordinator did not renew.
    fleet.clock.set(NOW);
    let last = fleet.coordinator.get().facts().not_after;
    for (now, why) in [(NOW - 301, "certificate not valid yet"), (last, ""), (last + 1, "certificate expired")] {
        clock.set(now);
        let sides = connect(&fleet.server, &client, COORDINATOR).await;
        match why {
            "" => assert!(sides.0.is_ok() && sides.1.is_ok(), "{now}: {sides:?}"),
            why => client_refused(&sides, why),
        }
    }
}

#[tokio::test]
async fn a_coordinator_is_refused_under_another_name() {
    let fleet = Fleet::new();
    let client = client_config(&CurrentCredentials::new(fleet.member("web-1", "agent")), TestClock::at(NOW)).unwrap();
    for name in ["other.example", "127.0.0.2"] {
        let why = format!(
            "its certificate is not for '{name}', but for {COORDINATOR}, 127.0.0.1: connect to one of these names"
        );
        client_refused(&connect(&fleet.server, &client, name).await, &why);
    }
}

#[tokio::test]
async fn members_and_coordinators_of_another_authority_are_refused() {
    let (ours, theirs) = (Fleet::new(), Fleet::new());
    let stranger = theirs.member("web-1", "admin");
    let client = client_config(&CurrentCredentials::new(stranger), TestClock::at(NOW)).unwrap();
    client_refused(&connect(&ours.server, &client, COORDINATOR).await, "UnknownIssuer");
    // A client that trusts our coordinator, with a certificate of their authority.
    let (chain, key) = parts(&theirs.member("web-2", "admin"));
    let client = Arc::new(plain_client(&ours, &[&TLS13], Some((chain[0].clone(), key))));
    server_refused(&connect(&ours.server, &client, COORDINATOR).await, "UnknownIssuer");
}

#[test]
fn configurations_need_their_own_kind_of_credentials() {
    let fleet = Fleet::new();
    let member = CurrentCredentials::new(fleet.member("web-1", "agent"));
    let error = server_config(&member, fleet.registrar.revocations().clone(), fleet.clock.clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the certificate is of the member agent/web-1, and must be a coordinator's: use the credentials in the coordinator's folder"
    );
    let error = client_config(&fleet.coordinator, fleet.clock.clone()).unwrap_err();
    assert!(matches!(error, IdentityError::NotAMember), "{error}");
}
