//! Agents, a coordinator and its users over real connections on loopback.

mod folders;
mod health;
mod home;
mod measures;
mod programs;
mod times;

use home::{Home, PATIENCE, credentials, patiently};
use queuescope_fleet::client::{AlertFollower, Client, ClientError, Followed, join};
use queuescope_fleet::identity::{DefaultTimeProvider, Token, client_config, join_config};
use queuescope_fleet::protocol::fleet_client::FleetClient;
use queuescope_fleet::protocol::{
    CutMember, FromAgent, Hello, MembersRequest, PROTOCOL, QueryRequest, State, ToAgent, from_agent,
};
use queuescope_fleet::transport::connect;
use queuescope_log::packet;
use queuescope_wire::Nanos;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};

const MINUTE: Nanos = Nanos(60_000_000_000);

/// The code of a refused call.
fn code<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Code {
    match result {
        Err(ClientError::Refused(status)) => status.code(),
        other => panic!("{other:?} in place of a refusal"),
    }
}

/// Empty records.
fn records(count: usize) -> Vec<u8> {
    vec![0; count * packet::SIZE]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_once_and_roles_limit_calls() {
    let home = Home::start().await;
    let token = home.admin().await.invite("ana", "reader", MINUTE).await.expect("it is an administrator");
    let joined = join(&home.address, &token, &home.path("ana")).await.expect("the token is new");
    assert_eq!((joined.name.to_string().as_str(), joined.role.to_string().as_str()), ("ana", "reader"));
    assert_eq!(code(join(&home.address, &token, &home.path("again")).await), Code::PermissionDenied);
    let mut ana = home.client("ana").await;
    assert!(ana.members().await.expect("readers may").is_empty());
    assert_eq!(code(ana.invite("bob", "admin", MINUTE).await), Code::PermissionDenied);
    assert_eq!(code(ana.revoke("admin").await), Code::PermissionDenied);
    home.join("host", "agent").await;
    let mut host = home.client("host").await;
    assert_eq!(code(host.members().await), Code::PermissionDenied);
    assert_eq!(code(host.cut(&[], MINUTE).await), Code::PermissionDenied);
    let audit = std::fs::read_to_string(home.path("home/audit.jsonl")).expect("it is there");
    let lines = audit.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    let seen: Vec<_> = lines
        .map(|line| {
            [&line["name"], &line["call"], &line["about"]].map(text).join(" ")
                + if line["error"].is_null() { "" } else { "!" }
        })
        .collect();
    let expected = [
        "admin invite ana as reader",
        "ana join ",
        " join !",
        "ana invite !",
        "ana revoke !",
        "admin invite host as agent",
        "host join ",
        "host members !",
        "host cut !",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_certificate_there_is_only_joining() {
    let home = Home::start().await;
    let token = home.admin().await.invite("ana", "reader", MINUTE).await.expect("it is an administrator");
    let fingerprint = token.parse::<Token>().expect("it is one").fingerprint();
    let tls = join_config(fingerprint, Arc::new(DefaultTimeProvider)).expect("TLS works");
    let link = connect(&home.address, tls).await.expect("it listens");
    let refused = FleetClient::new(link.channel).members(MembersRequest {}).await.expect_err("it has no certificate");
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(refused.message().contains("queuescope fleet join"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_members_while_their_streams_are_open() {
    let mut home = Home::start().await;
    let (one, two) = (home.host("one").await, home.host("two").await);
    assert_eq!(one.recorder.append(&records(3)).expect("there is room").refused, 0);
    home.wait_for("one", State::Answered).await;
    home.wait_for("two", State::Answered).await;
    let cut = home.admin().await.cut(&[], MINUTE).await.expect("nobody else makes one");
    let positions: Vec<_> = cut.members.iter().map(|member| (member.name.as_str(), member.position)).collect();
    assert_eq!((positions, cut.void.as_str()), (vec![("one", 3), ("two", 0)], ""));
    two.serving.abort();
    home.wait_for("two", State::Absent).await;
    let next = home.admin().await.cut(&[], MINUTE).await.expect("nobody else makes one");
    assert_eq!(next.members.iter().map(CutMember::state).collect::<Vec<_>>(), [State::Answered, State::Absent]);
    // The coordinator starts again: agents come back, and numbers of cuts go on.
    home.stop().await;
    home.run().await;
    home.wait_for("one", State::Answered).await;
    // Who does not come back is missed.
    home.wait_for("two", State::Absent).await;
    let later = home.admin().await.cut(&["one".to_owned()], MINUTE).await.expect("nobody else makes one");
    assert!(later.cut > next.cut && later.members[0].position == 3, "{later:?}");
    // Nothing stays frozen.
    assert_eq!(one.recorder.append(&records(1)).expect("there is room").refused, 0);
    assert_eq!(one.recorder.log().snapshot().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_come_once_even_if_both_end_meanwhile() {
    let mut home = Home::start().await;
    let host = home.host("host").await;
    alert(&host.folder, "first");
    host.recorder.alerted(0);
    assert_eq!(alerts(&home, 1).await, ["first"]);
    home.stop().await;
    alert(&host.folder, "second");
    host.recorder.alerted(0);
    home.run().await;
    assert_eq!(alerts(&home, 2).await, ["first", "second"]);
    host.serving.abort();
    alert(&host.folder, "third");
    let _again = home.serve("host", &host.recorder, &host.folder);
    assert_eq!(alerts(&home, 3).await, ["first", "second", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_alerts_survives_the_coordinator() {
    let mut home = Home::start().await;
    let host = home.host("host").await;
    let mut follower = AlertFollower::new(&home.address, credentials(&home.path("home/admin")), 1);
    let (seen, mut come) = mpsc::unbounded_channel();
    let following = tokio::spawn(async move {
        loop {
            let came = follower.next().await;
            let is_over = came.is_err();
            seen.send(came).expect("somebody waits");
            if is_over {
                return;
            }
        }
    });
    let (mut broken, mut triggers) = (0, Vec::new());
    let mut next = async |count: usize, triggers: &mut Vec<String>| {
        while triggers.len() < count {
            match come.recv().await.expect("it goes on").expect("it is not refused") {
                Followed::Alert(alert) => triggers.push(alert.trigger),
                Followed::Broken { .. } => broken += 1,
                Followed::Connected => {}
            }
        }
    };
    alert(&host.folder, "first");
    next(1, &mut triggers).await;
    home.stop().await;
    ["second", "third"].iter().for_each(|trigger| alert(&host.folder, trigger));
    home.run().await;
    next(3, &mut triggers).await;
    assert_eq!(triggers, ["first", "second", "third"]);
    assert!(broken > 0, "it says that the connection broke");
    assert!(!following.is_finished());
    // It is not tried again with a certificate that was revoked.
    home.join("second", "admin").await;
    let revoked = home.client("second").await.revoke("admin").await.expect("there is another");
    assert_eq!(revoked.certificates, 1);
    let refused = loop {
        if let Err(error) = come.recv().await.expect("it goes on") {
            break error;
        }
    };
    assert!(refused.to_string().contains("revoked"), "{refused}");
    following.await.expect("it ends");
    // The first connection is tried once.
    home.stop().await;
    let mut late = AlertFollower::new(&home.address, credentials(&home.path("second")), 1);
    assert!(matches!(late.next().await, Err(ClientError::Connect(_))));
}

/// Adds an alert to a folder, as recording does.
fn alert(folder: &Path, trigger: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join("alerts.jsonl")).expect("it can");
    let line = format!("{{\"kind\":\"alert\",\"trigger\":\"{trigger}\",\"at_ns\":5,\"value\":1.5,\"packets\":7}}\n");
    file.write_all(line.as_bytes()).expect("there is room");
}

/// The alerts of the coordinator, when there are `count`.
async fn alerts(home: &Home, count: usize) -> Vec<String> {
    let mut client = home.admin().await;
    patiently("alerts", async || {
        let mut stream = client.alerts(1, false).await.expect("it answers");
        let mut names = Vec::new();
        while let Some(alert) = stream.message().await.expect("it is whole") {
            assert_eq!((alert.member.as_str(), alert.number), ("host", names.len() as u64 + 1));
            names.push(alert.trigger);
        }
        (names.len() >= count).then_some(names)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_host_is_no_member() {
    let home = Home::start().await;
    let host = home.host("host").await;
    home.wait_for("host", State::Answered).await;
    assert_eq!(home.admin().await.revoke("host").await.expect("it is an administrator").certificates, 1);
    let mut admin = home.admin().await;
    patiently("the host is no member", async || admin.members().await.expect("it answers").is_empty().then_some(()))
        .await;
    // An agent that was accepted before goes on, as its recording does; one that starts is refused.
    assert!(!host.serving.is_finished());
    host.serving.abort();
    let again = home.serve("host", &host.recorder, &host.folder);
    let ended = tokio::time::timeout(PATIENCE, again).await.expect("it ends").expect("it does not panic");
    assert!(ended.to_string().contains("revoked"), "{ended}");
    let refused = Client::connect(&home.address, &credentials(&home.path("host"))).await;
    let refused = match refused {
        Err(refused) => refused.to_string(),
        // TLS 1.3 clients learn of a refusal with their first call.
        Ok(mut client) => client.members().await.expect_err("it is revoked").to_string(),
    };
    assert!(refused.contains("it was revoked"), "{refused}");
}

/// Opens the stream of an agent by hand.
async fn attach(
    home: &Home,
    name: &str,
    protocol: u32,
) -> Result<(mpsc::Sender<FromAgent>, Streaming<ToAgent>), tonic::Status> {
    home.join(name, "agent").await;
    attach_again(home, name, protocol).await
}

/// The same of a host that has joined.
async fn attach_again(
    home: &Home,
    name: &str,
    protocol: u32,
) -> Result<(mpsc::Sender<FromAgent>, Streaming<ToAgent>), tonic::Status> {
    let tls = client_config(&credentials(&home.path(name)), Arc::new(DefaultTimeProvider)).expect("TLS works");
    let link = connect(&home.address, tls).await.expect("it listens");
    let (go, messages) = mpsc::channel(8);
    let hello = Hello { version: "9.9.9".to_owned(), protocol, ..Hello::default() };
    go.send(FromAgent { message: Some(from_agent::Message::Hello(hello)) }).await.expect("there is room");
    let come = FleetClient::new(link.channel).attach(ReceiverStream::new(messages)).await?;
    Ok((go, come.into_inner()))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_is_refused_with_one_line() {
    let home = Home::start().await;
    let refused = attach(&home, "new", PROTOCOL + 2).await.expect_err("it is too new");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("new has version 9.9.9") && !refused.message().contains('\n'), "{refused:?}");
    home.wait_for("new", State::OtherVersion).await;
    attach(&home, "near", PROTOCOL + 1).await.expect("a neighbour");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_name_another_takes_learns_why() {
    let home = Home::start().await;
    let (_go, mut come) = attach(&home, "twin", PROTOCOL).await.expect("it is a member");
    let (_other, _its) = attach_again(&home, "twin", PROTOCOL).await.expect("so is the other");
    let why = loop {
        match come.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended without a reason"),
            Err(why) => break why,
        }
    };
    let text = "another agent came as twin, from 127.0.0.1:";
    assert!(why.code() == Code::Aborted && why.message().starts_with(text), "{why:?}");
    home.wait_for("twin", State::Answered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_answer_costs_its_own_part() {
    let home = Home::start().await;
    let (_go, _come) = attach(&home, "mute", PROTOCOL).await.expect("it is a member");
    let host = home.host("host").await;
    assert_eq!(host.recorder.append(&records(5)).expect("there is room").refused, 0);
    home.wait_for("host", State::Answered).await;
    let request = QueryRequest { select: "count".to_owned(), within: 1_000, ..QueryRequest::default() };
    let answer = home.admin().await.query(request).await.expect("it answers");
    let states: Vec<_> =
        answer.members.iter().map(|member| (member.name.as_str(), member.state(), member.records)).collect();
    assert_eq!(states, [("host", State::Answered, 5), ("mute", State::Late, 0)]);
    let cut = home.admin().await.cut(&[], MINUTE).await.expect("nobody else makes one");
    let states: Vec<_> = cut.members.iter().map(|member| (member.name.as_str(), member.state())).collect();
    assert_eq!(states, [("host", State::Answered), ("mute", State::Late)]);
}
