//! The connection of a member that joins.

use super::common::{COORDINATOR, Fleet, NOW, TestClock, client_refused, connect, dns, parts, plain_server, uri};
use queuescope_fleet::identity::{Fingerprint, join_config};
use rcgen::ExtendedKeyUsagePurpose::ServerAuth;

#[tokio::test]
async fn the_fingerprint_is_enough_to_recognize_the_coordinator() {
    let fleet = Fleet::new();
    let client = join_config(fleet.registrar.authority().fingerprint(), TestClock::at(NOW)).unwrap();
    let (server, client) = connect(&fleet.server, &client, COORDINATOR).await;
    assert_eq!(server.unwrap().peer, None);
    assert_eq!(client.unwrap().peer.as_ref(), Some(fleet.coordinator.get().facts()));
}

#[tokio::test]
async fn another_authority_is_refused() {
    let (ours, theirs) = (Fleet::new(), Fleet::new());
    let (expected, found) = (ours.registrar.authority().fingerprint(), theirs.registrar.authority().fingerprint());
    let client = join_config(expected, TestClock::at(NOW)).unwrap();
    let sides = connect(&theirs.server, &client, COORDINATOR).await;
    client_refused(&sides, &format!("the authority is {found}, and must be {expected}: "));

    // Our authority's certificate is public, so a stranger can send it after its own.
    let (mut chain, key) = parts(&theirs.coordinator.get());
    chain.insert(1, ours.registrar.authority().certificate().clone());
    client_refused(
        &connect(&plain_server(chain.clone(), key.clone_key()), &client, COORDINATOR).await,
        "UnknownIssuer",
    );
    chain.truncate(1);
    client_refused(&connect(&plain_server(chain, key), &client, COORDINATOR).await, "UnknownIssuer");

    // A stranger without the private key can send our whole chain.
    let (chain, _) = parts(&ours.coordinator.get());
    let (_, key) = parts(&theirs.coordinator.get());
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let certified = rustls::sign::CertifiedKey::new(chain, key);
    let mut server = (*ours.server).clone();
    server.cert_resolver = std::sync::Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    client_refused(&connect(&std::sync::Arc::new(server), &client, COORDINATOR).await, "BadSignature");
}

#[tokio::test]
async fn the_certificate_itself_is_not_the_authority() {
    let fleet = Fleet::new();
    let (chain, key) = parts(&fleet.coordinator.get());
    let client = join_config(Fingerprint::of(&chain[0]), TestClock::at(NOW)).unwrap();
    for chain in [vec![chain[0].clone()], vec![chain[0].clone(); 2]] {
        let (server, client) = connect(&plain_server(chain, key.clone_key()), &client, COORDINATOR).await;
        assert!(server.is_err() && client.is_err());
    }
}

#[tokio::test]
async fn times_names_and_kinds_are_checked_at_the_first_contact() {
    let fleet = Fleet::new();
    let clock = TestClock::at(NOW);
    let authority = fleet.registrar.authority();
    let client = join_config(authority.fingerprint(), clock.clone()).unwrap();
    client_refused(
        &connect(&fleet.server, &client, "other.example").await,
        "its certificate is not for 'other.example', but for ",
    );

    let last = fleet.coordinator.get().facts().not_after;
    for (now, why) in [
        (NOW - 301, "NotValidYet"),
        (last + 1, "certificate expired"),
        (authority.not_after() + 1, "the authority expired at 2036-"),
    ] {
        clock.set(now);
        let sides = connect(&fleet.server, &client, COORDINATOR).await;
        client_refused(&sides, why);
    }
    clock.set(last);
    assert!(connect(&fleet.server, &client, COORDINATOR).await.1.is_ok());

    clock.set(NOW);
    let (mut chain, key) = parts(&fleet.member("web-1", "admin"));
    chain.truncate(1);
    chain.push(authority.certificate().clone());
    client_refused(
        &connect(&plain_server(chain, key), &client, COORDINATOR).await,
        "certificate does not allow extended key usage",
    );
    let (certificate, key) = fleet.forged(vec![uri("queuescope://fleet/admin/web"), dns(COORDINATOR)], ServerAuth);
    let server = plain_server(vec![certificate, authority.certificate().clone()], key);
    client_refused(&connect(&server, &client, COORDINATOR).await, "must be a coordinator's");
}
