//! Health checks: the coordinator's own call, and the standard one, both with certificates only.

use super::home::Home;
use super::{MINUTE, code};
use queuescope_fleet::client::join;
use queuescope_fleet::identity::{DefaultTimeProvider, Token, client_config, join_config};
use queuescope_fleet::protocol::PROTOCOL;
use queuescope_fleet::transport::connect;
use std::sync::Arc;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

async fn status(channel: Channel, service: &str) -> Result<ServingStatus, Code> {
    let answer = HealthClient::new(channel).check(HealthCheckRequest { service: service.to_owned() }).await;
    answer.map(|answer| answer.into_inner().status()).map_err(|status| status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_says_that_it_serves_to_those_with_a_certificate() {
    let home = Home::start().await;
    home.join("host", "agent").await;
    let mut host = home.client("host").await;
    let checked = host.check().await.expect("any role may");
    assert_eq!((checked.version.as_str(), checked.protocol), (env!("CARGO_PKG_VERSION"), PROTOCOL));

    let tls = client_config(&super::credentials(&home.path("host")), Arc::new(DefaultTimeProvider)).expect("TLS works");
    let channel = connect(&home.address, tls).await.expect("it listens").channel;
    for service in ["", "queuescope.fleet.v1.Fleet"] {
        assert_eq!(status(channel.clone(), service).await, Ok(ServingStatus::Serving), "'{service}'");
    }
    assert_eq!(status(channel.clone(), "another").await, Err(Code::NotFound));

    // Without a certificate there is no health check.
    let token = home.admin().await.invite("ana", "reader", MINUTE).await.expect("it is an administrator");
    let fingerprint = token.parse::<Token>().expect("it is one").fingerprint();
    let tls = join_config(fingerprint, Arc::new(DefaultTimeProvider)).expect("TLS works");
    let bare = connect(&home.address, tls).await.expect("it listens").channel;
    assert_eq!(status(bare, "").await, Err(Code::Unauthenticated));
    join(&home.address, &token, &home.path("ana")).await.expect("the token is new");

    // A certificate that was revoked is refused, also on a connection that was opened before.
    home.admin().await.revoke("host").await.expect("it is an administrator");
    assert_eq!(status(channel, "").await, Err(Code::PermissionDenied));
    assert_eq!(code(host.check().await), Code::PermissionDenied);
}
