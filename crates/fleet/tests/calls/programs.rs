//! Control programs over real connections.

use super::home::{Home, patiently};
use super::{attach, code, records};
use queuescope_archive::{Recorder, RecorderOptions};
use queuescope_fleet::agent::Served;
use queuescope_fleet::protocol::{Alert, PROTOCOL, ProgramState, State};
use queuescope_log::{Schema, packet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tonic::Code;

/// Raises an alert for each host of the network that sent more than five packets; agents also have a trigger.
const BUSY: &str = r#"
    about = "many packets"
    [[install]]
    hosts = ["host-*"]
    [[install.aggregate]]
    name = "packets"
    function = "count"
    [[install.trigger]]
    name = "any"
    condition = "packets > 0"
    [run]
    every = "10ms"
    [[ask]]
    name = "sent"
    [[raise]]
    name = "busy"
    condition = "sent > 5"
"#;

/// Compares two hosts.
const LOST: &str = r#"
    [run]
    every = "10ms"
    within = "2s"
    [[ask]]
    name = "sent"
    hosts = ["host-1"]
    [[ask]]
    name = "received"
    hosts = ["host-2"]
    [[raise]]
    name = "lost"
    condition = "sent - received > 5"
"#;

async fn program(home: &Home, name: &str, is_right: impl Fn(&ProgramState) -> bool) -> ProgramState {
    let mut client = home.admin().await;
    patiently(&format!("the program {name}"), async move || {
        let programs = client.programs().await.expect("it answers");
        programs.into_iter().find(|program| program.name == name && is_right(program))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_installed_asks_and_survives_the_coordinator() {
    let mut home = Home::start().await;
    let host = home.host("host-1").await;
    home.wait_for("host-1", State::Answered).await;
    home.join("ana", "reader").await;
    home.join("olga", "operator").await;
    let mut olga = home.client("olga").await;
    let none = BTreeMap::new;
    assert_eq!(code(home.client("ana").await.add_program("busy", BUSY, none()).await), Code::PermissionDenied);
    assert_eq!(code(olga.add_program("a b", BUSY, none()).await), Code::InvalidArgument);
    assert_eq!(code(olga.add_program("busy", "[run]\nevry = 3", none()).await), Code::InvalidArgument);
    olga.add_program("busy", BUSY, none()).await.expect("operators may");
    let is_installed = |program: &ProgramState| program.members.iter().all(|member| member.is_installed);
    let state = program(&home, "busy", |program| program.members.len() == 1 && is_installed(program)).await;
    assert_eq!((state.about.as_str(), state.text.as_str()), ("many packets", BUSY));
    let (_, installed) = host.recorder.installed();
    assert_eq!(installed.iter().map(|installed| installed.name.as_str()).collect::<Vec<_>>(), ["busy"]);
    assert_eq!(host.recorder.append(&records(6)).expect("it is open").refused, 0);
    let raised = program(&home, "busy", |program| program.raised > 0).await;
    assert!(raised.runs >= raised.raised, "{raised:?}");
    // Another coordinator in the same folder goes on; the agent keeps what it has.
    home.stop().await;
    home.run().await;
    home.wait_for("host-1", State::Answered).await;
    program(&home, "busy", |program| program.members.len() == 1 && is_installed(program) && program.raised > 0).await;
    let (changes, still) = host.recorder.installed();
    assert_eq!((still[0].number, changes), (installed[0].number, installed[0].number), "it was installed again");
    // Who comes later gets its part, too.
    let later = home.host("host-2").await;
    program(&home, "busy", |program| program.members.len() == 2 && is_installed(program)).await;
    assert_eq!(later.recorder.installed().1.len(), 1);
    let mut olga = home.client("olga").await;
    assert!(olga.remove_program("busy").await.expect("operators may"));
    assert!(!olga.remove_program("busy").await.expect("operators may"));
    for recorder in [&host.recorder, &later.recorder] {
        patiently("the definitions are gone", async || recorder.installed().1.is_empty().then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_waits_for_both_hosts() {
    let home = Home::start().await;
    let sender = home.host("host-1").await;
    home.wait_for("host-1", State::Answered).await;
    assert_eq!(sender.recorder.append(&records(20)).expect("it is open").refused, 0);
    home.admin().await.add_program("lost", LOST, BTreeMap::new()).await.expect("administrators may");
    let undecided = program(&home, "lost", |program| program.undecided > 1).await;
    assert!(undecided.raised == 0 && undecided.trouble.contains("host-2 (absent)"), "{undecided:?}");
    let receiver = home.host("host-2").await;
    assert_eq!(receiver.recorder.append(&records(10)).expect("it is open").refused, 0);
    program(&home, "lost", |program| program.raised > 0 && program.trouble.is_empty()).await;
    let mut alerts = home.admin().await.alerts(1, false).await.expect("administrators may");
    let first = alerts.message().await.expect("it answers").expect("there is one");
    assert_eq!((first.member.as_str(), first.trigger.as_str()), ("", "lost.lost"));
    assert!(first.value == 10.0 || first.value == 20.0, "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_cannot_install_is_reported() {
    let home = Home::start().await;
    let _host = home.host("host-1").await;
    home.wait_for("host-1", State::Answered).await;
    let mut admin = home.admin().await;
    admin.add_program("first", BUSY, BTreeMap::new()).await.expect("administrators may");
    program(&home, "first", |program| program.members.iter().any(|member| member.is_installed)).await;
    // It defines an aggregate that the first has.
    admin.add_program("second", BUSY, BTreeMap::new()).await.expect("administrators may");
    let second =
        program(&home, "second", |program| program.members.iter().any(|member| !member.error.is_empty())).await;
    assert!(second.members[0].error.contains("packets") && !second.members[0].is_installed, "{second:?}");
    // Once the first is gone, a change of the second installs it.
    assert!(admin.remove_program("first").await.expect("administrators may"));
    program(&home, "second", |program| program.members.iter().any(|member| member.is_installed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_and_long_programs_are_installed_or_refused() {
    let home = Home::start().await;
    let host = home.host("host-1").await;
    home.wait_for("host-1", State::Answered).await;
    let mut admin = home.admin().await;
    // More than gRPC takes in one message, if nothing is said.
    let filter = |program: usize, number: usize| {
        let hosts: Vec<_> =
            (0..200).map(|host| format!("2001:0db8:0000:0000:0000:0000:{number:04x}:{host:04x}")).collect();
        let hosts = hosts.join(", ");
        format!("[[install.filter]]\nname = \"f_{program}_{number}\"\nexpression = \"src_ip in {{{hosts}}}\"\n")
    };
    let long =
        |program: usize| format!("[[install]]\n{}", (0..28).map(|number| filter(program, number)).collect::<String>());
    let mut refused = None;
    for number in 0..60 {
        match admin.add_program(&format!("long_{number}"), &long(number), BTreeMap::new()).await {
            Ok(()) => {}
            refusal => {
                refused = Some(number);
                assert_eq!(code(refusal), Code::InvalidArgument);
                break;
            }
        }
    }
    let added = refused.expect("there is a limit");
    assert!(added * long(0).len() > 5 << 20, "{added}");
    program(&home, &format!("long_{}", added - 1), |program| program.members.iter().all(|member| member.is_installed))
        .await;
    assert_eq!(host.recorder.installed().1.len(), added);
    let values = BTreeMap::from([("a".to_owned(), "x".repeat(300_000))]);
    let text = format!("[parameters]\na = {{ about = \"\" }}\n{BUSY}");
    assert_eq!(code(admin.add_program("values", &text, values).await), Code::InvalidArgument);
    // A program that takes over a name from another installs, whatever the order of their own names is.
    for number in 0..added {
        assert!(admin.remove_program(&format!("long_{number}")).await.expect("administrators may"));
    }
    admin.add_program("pb", BUSY, BTreeMap::new()).await.expect("administrators may");
    program(&home, "pb", |program| program.members.iter().all(|member| member.is_installed)).await;
    admin.add_program("pa", BUSY, BTreeMap::new()).await.expect("administrators may");
    program(&home, "pa", |program| program.members.iter().any(|member| !member.error.is_empty())).await;
    let other = BUSY.replace("\"packets\"", "\"others\"").replace("packets > 0", "others > 0");
    admin.add_program("pb", &other, BTreeMap::new()).await.expect("administrators may");
    for name in ["pa", "pb"] {
        program(&home, name, |program| {
            !program.members.is_empty() && program.members.iter().all(|member| member.is_installed)
        })
        .await;
    }
}

/// Asks the hosts whose packets passed switch 3, and no others.
const PASSED: &str = r#"
    [run]
    every = "10ms"
    within = "60s"
    [[ask]]
    name = "sent"
    hosts = { saw = "hops >= 1 and switch_1 == 3", names = ["host-*"] }
    [[raise]]
    name = "busy"
    condition = "sent > 5"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_chosen_by_what_their_packets_passed() {
    let home = Home::start().await;
    let names = ["host-1", "host-2", "host-3", "other"];
    let mut hosts = Vec::new();
    for (name, switch) in names.into_iter().zip([3, 4, 3, 3]) {
        let host = home.host(name).await;
        home.wait_for(name, State::Answered).await;
        let schema = Schema::packet();
        let mut record = vec![0; packet::SIZE];
        for (name, key) in [("hops", 1), ("switch_1", switch)] {
            schema.reader(schema.find(name).expect(name)).write(&mut record, key);
        }
        let all = record.repeat(4);
        assert_eq!(host.recorder.append(&all).expect("it is open").refused, 0);
        hosts.push(host);
    }
    home.admin().await.add_program("passed", PASSED, BTreeMap::new()).await.expect("administrators may");
    program(&home, "passed", |program| program.raised > 0 && program.trouble.is_empty()).await;
    let mut alerts = home.admin().await.alerts(1, false).await.expect("administrators may");
    let first = alerts.message().await.expect("it answers").expect("there is one");
    assert_eq!((first.trigger.as_str(), first.value), ("passed.busy", 8.0), "four packets of two hosts");
    assert_eq!(first.detail, "seen at host-1, host-3");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_host_saw_it_and_nothing_is_asked() {
    let home = Home::start().await;
    let host = home.host("host-1").await;
    home.wait_for("host-1", State::Answered).await;
    assert_eq!(host.recorder.append(&records(20)).expect("it is open").refused, 0);
    home.admin().await.add_program("passed", PASSED, BTreeMap::new()).await.expect("administrators may");
    let state = program(&home, "passed", |program| program.runs > 1).await;
    assert_eq!((state.raised, state.undecided, state.trouble.as_str()), (0, 0, ""));
}

/// Records of packets that passed a switch.
fn passed(switch: u128, count: usize) -> Vec<u8> {
    let schema = Schema::packet();
    let mut record = vec![0; packet::SIZE];
    for (name, key) in [("hops", 1), ("switch_1", switch)] {
        schema.reader(schema.find(name).expect(name)).write(&mut record, key);
    }
    record.repeat(count)
}

/// A host that did not record a packet, and has none that passed a switch.
pub async fn shedding_host(home: &Home, name: &str) {
    home.join(name, "agent").await;
    let folder = home.path(&format!("{name}-log"));
    let options = RecorderOptions { memory: 150_000_000, ..RecorderOptions::default() };
    let recorder = Arc::new(Recorder::open(&folder, Schema::packet(), options).expect("it is new").0);
    home.serve_as(name, Served::new(recorder, folder, "a test".to_owned(), Arc::new(AtomicU64::new(1))));
    home.wait_for(name, State::Shedding).await;
}

async fn first_alert(home: &Home, trigger: &str) -> Alert {
    let mut alerts = home.admin().await.alerts(1, false).await.expect("administrators may");
    loop {
        let alert = alerts.message().await.expect("it answers").expect("there is one");
        if alert.trigger == trigger {
            return alert;
        }
    }
}

/// One condition that more hosts cannot make false, and one that they can.
const BOTH: &str = r#"
    [run]
    every = "10ms"
    within = "2s"
    [[ask]]
    name = "sent"
    hosts = { saw = "hops >= 1 and switch_1 == 3" }
    [[raise]]
    name = "busy"
    condition = "sent > 5"
    [[raise]]
    name = "idle"
    condition = "sent < 100"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_do_not_say_what_they_saw_are_unknown() {
    let home = Home::start().await;
    let (_go, _come) = attach(&home, "mute", PROTOCOL).await.expect("it is a member");
    let host = home.host("seeing").await;
    home.wait_for("seeing", State::Answered).await;
    assert_eq!(host.recorder.append(&passed(3, 6)).expect("it is open").refused, 0);
    let other = home.host("other").await;
    home.wait_for("other", State::Answered).await;
    assert_eq!(other.recorder.append(&passed(4, 6)).expect("it is open").refused, 0);
    shedding_host(&home, "shedding").await;
    home.admin().await.add_program("both", BOTH, BTreeMap::new()).await.expect("administrators may");
    let state = program(&home, "both", |program| program.raised > 0).await;
    assert!(state.undecided > 0 && state.raised == 1, "{state:?}");
    let unknown = "mute (unknown whether it saw this: late), shedding (unknown whether it saw this: shedding)";
    let alert = first_alert(&home, "both.busy").await;
    assert_eq!((alert.value, alert.detail), (6.0, format!("seen at seeing; without {unknown}")));
    assert_eq!(state.trouble, format!("conditions that need all hosts were not evaluated, without {unknown}"));
    // Without such a condition, the program says it, too.
    let grows = BOTH.split_once("    [[raise]]\n    name = \"idle\"").expect("it is the last").0;
    home.admin().await.add_program("grows", grows, BTreeMap::new()).await.expect("administrators may");
    let state = program(&home, "grows", |program| program.raised > 0).await;
    assert_eq!((state.undecided, state.trouble), (0, format!("questions were put without {unknown}")));
}

/// Two questions, of which one goes to a host that is absent.
const TWO: &str = r#"
    [run]
    every = "10ms"
    within = "60s"
    [[ask]]
    name = "here"
    hosts = { saw = "switch_1 == 3", names = ["one", "two"] }
    [[ask]]
    name = "there"
    hosts = { saw = "switch_1 == 4", names = ["one", "two"] }
    [[ask]]
    name = "gone"
    hosts = ["gone"]
    [[raise]]
    name = "first"
    condition = "here > 1"
    [[raise]]
    name = "second"
    condition = "there > 1"
    [[raise]]
    name = "difference"
    condition = "here - there > 1"
    [[raise]]
    name = "never"
    condition = "there - gone > 1"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn alerts_name_the_hosts_of_their_own_questions() {
    let home = Home::start().await;
    let mut hosts = Vec::new();
    for (name, switch, count) in [("one", 3, 6), ("two", 4, 3)] {
        let host = home.host(name).await;
        home.wait_for(name, State::Answered).await;
        assert_eq!(host.recorder.append(&passed(switch, count)).expect("it is open").refused, 0);
        hosts.push(host);
    }
    home.admin().await.add_program("two", TWO, BTreeMap::new()).await.expect("administrators may");
    let state = program(&home, "two", |program| program.raised > 2 && program.undecided > 0).await;
    assert_eq!(state.trouble, "conditions that need all hosts were not evaluated, without gone (absent)");
    let mut details = BTreeMap::new();
    for name in ["first", "second", "difference"] {
        let alert = first_alert(&home, &format!("two.{name}")).await;
        details.insert(name, (alert.value, alert.packets, alert.detail));
    }
    assert_eq!(details["first"], (6.0, 6, "seen at one".to_owned()));
    assert_eq!(details["second"], (3.0, 3, "seen at two".to_owned()));
    assert_eq!(details["difference"], (3.0, 6, "here seen at one; there seen at two".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_with_other_records_are_named() {
    let home = Home::start().await;
    home.join("queue", "agent").await;
    let folder = home.path("queue-log");
    let options = RecorderOptions { memory: 200_000_000, ..RecorderOptions::default() };
    let recorder = Arc::new(Recorder::open(&folder, Schema::queued(), options).expect("it is new").0);
    home.serve_as("queue", Served::new(recorder, folder, "a test".to_owned(), Arc::default()));
    home.wait_for("queue", State::Answered).await;
    let named = PASSED.replace("host-*", "queue");
    home.admin().await.add_program("queue", &named, BTreeMap::new()).await.expect("administrators may");
    let state = program(&home, "queue", |program| !program.trouble.is_empty()).await;
    let expected = "the hosts of the question sent: programs ask only about packets (`packet`), and these hosts record something else: queue";
    assert_eq!(state.trouble, expected);
    home.admin().await.add_program("nobody", PASSED, BTreeMap::new()).await.expect("administrators may");
    let state = program(&home, "nobody", |program| !program.trouble.is_empty()).await;
    assert_eq!(state.trouble, "the hosts of the question sent: no host has a name that it asks for");
}
