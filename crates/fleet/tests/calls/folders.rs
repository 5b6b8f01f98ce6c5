//! Agents that serve a folder which another process records to.

use super::home::{Home, credentials, patiently};
use super::{alert, alerts};
use queuescope_archive::{LeftOutFile, Recorder, RecorderOptions};
use queuescope_fleet::agent::{AgentConnection, AgentEvent, Served};
use queuescope_fleet::answer::{Asked, IpcLimits, Merged};
use queuescope_fleet::protocol::{Member, ProgramState, QueryRequest, QueryResponse, State};
use queuescope_log::{Number, Schema, packet};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const MINUTE: u64 = 60_000_000_000;
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 20, rows: 100 };

fn recorder(folder: &Path) -> Recorder {
    let options = RecorderOptions { memory: 150_000_000, ..RecorderOptions::default() };
    Recorder::open(folder, Schema::packet(), options).expect("it can be made").0
}

/// Records packets, and waits until they are in the folder.
fn record(recorder: &Recorder, times: std::ops::Range<u64>) {
    let schema = Schema::packet();
    for ts in times {
        let mut record = vec![0; packet::SIZE];
        schema.reader(schema.find("ts").expect("ts")).write(&mut record, ts.into());
        assert_eq!(recorder.append(&record).expect("there is room").refused, 0);
    }
    recorder.flush().expect("there is room");
}

fn count(answer: &QueryResponse, request: &QueryRequest) -> u128 {
    let asked = Asked::of_request(request).expect("it is valid");
    match Merged::decode(&answer.rows, &asked, LIMITS).expect("it is whole").groups[0].1[..] {
        [Number::Unsigned(count)] => count,
        ref other => panic!("{other:?}"),
    }
}

/// The names and contents of the files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let files = entries.map(|entry| entry.expect("it can be listed").path()).filter(|path| path.is_file());
    files.map(|path| (path.display().to_string(), std::fs::read(path).expect("it can be read"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_serves_the_folder_of_another_process() {
    let home = Home::start().await;
    let folder = home.path("recorded");
    assert!(Served::of_folder(folder.clone(), String::new()).is_err(), "there is no folder yet");
    let other = recorder(&folder);
    record(&other, 0..10);
    home.join("reader", "agent").await;
    home.serve_as("reader", Served::of_folder(folder.clone(), "folder".to_owned()).expect("it is a log"));
    let own = home.host("own").await;
    home.wait_for("reader", State::Answered).await;
    home.wait_for("own", State::Answered).await;
    let mut admin = home.admin().await;
    let all = QueryRequest { select: "count".to_owned(), within: 60_000, ..QueryRequest::default() };
    assert_eq!(count(&admin.query(all.clone()).await.expect("it answers"), &all), 10);
    // What is recorded meanwhile is found.
    record(&other, 10..25);
    assert_eq!(count(&admin.query(all.clone()).await.expect("it answers"), &all), 25);
    let early = QueryRequest { from: Some(5), to: Some(12), ..all.clone() };
    assert_eq!(count(&admin.query(early.clone()).await.expect("it answers"), &early), 7);
    // It has no part in cuts, and they do not wait for it.
    let cut = admin.cut(&[], Nanos(MINUTE)).await.expect("nobody else makes one");
    let states: Vec<_> = cut.members.iter().map(|member| (member.name.as_str(), member.state())).collect();
    assert_eq!(states, [("own", State::Answered), ("reader", State::Failed)]);
    assert!(cut.void.is_empty() && cut.members[1].problem.contains("--at"), "{cut:?}");
    // A cut by time has it: not surely complete while the other process records, and complete afterwards.
    let names = ["reader".to_owned()];
    let by_time = admin.cut_at(&names, Nanos(11), Nanos(MINUTE)).await.expect("it answers");
    let [member] = &by_time.members[..] else { panic!("{by_time:?}") };
    assert_eq!((member.state(), member.position), (State::Answered, 12));
    assert!(member.problem.contains("does not say"), "{member:?}");
    let before = files(&folder);
    // Programs are refused with their reason.
    let program = "[[install]]\n[[install.filter]]\nname = \"any\"\nexpression = \"length > 1\"\n";
    admin.add_program("filter", program, BTreeMap::new()).await.expect("administrators may");
    let refused = patiently("the reply of the reader", async || {
        let programs: Vec<ProgramState> = admin.programs().await.expect("it answers");
        let mut members = programs.into_iter().flat_map(|program| program.members);
        members.find(|member| member.member == "reader" && !member.error.is_empty())
    })
    .await;
    assert!(refused.error.contains("another process records to"), "{refused:?}");
    assert_eq!(files(&folder), before, "nothing was written");
    other.finish().expect("there is room");
    let by_time = admin.cut_at(&names, Nanos(11), Nanos(MINUTE)).await.expect("it answers");
    let [member] = &by_time.members[..] else { panic!("{by_time:?}") };
    assert_eq!((member.position, member.lacks.as_str()), (12, ""));
    assert!(!member.problem.contains("does not say"), "{member:?}");
    // It does not say that it recorded at a time behind its last record.
    let late = admin.cut_at(&names, Nanos(1_000), Nanos(MINUTE)).await.expect("it answers");
    let [member] = &late.members[..] else { panic!("{late:?}") };
    let ended = "its recording has ended: it has no records after 1970-01-01T00:00:00.000000024Z";
    assert_eq!((member.state(), member.position, member.lacks.as_str()), (State::Answered, 25, ended));
    let late = QueryRequest { at: Some(1_000), members: names.to_vec(), ..all.clone() };
    let answer = admin.query(late).await.expect("it answers");
    assert_eq!(answer.members[0].problem, ended);
    assert_eq!(count(&admin.query(all.clone()).await.expect("it answers"), &all), 25);
    drop(own);
}

/// A recording that has ended, with alerts of these names.
fn ended(folder: &Path, times: std::ops::Range<u64>, triggers: &[&str]) {
    let recorder = recorder(folder);
    record(&recorder, times);
    triggers.iter().for_each(|trigger| alert(folder, trigger));
    recorder.finish().expect("there is room");
}

/// How often a member left something out.
fn left_out(member: &Member, reason: &str) -> u64 {
    member.left_out.iter().filter(|left_out| left_out.reason == reason).map(|left_out| left_out.count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_recording_in_the_folder_is_served_from_its_start() {
    let home = Home::start().await;
    let folder = home.path("recorded");
    ended(&folder, 0..10, &["first", "second"]);
    home.join("host", "agent").await;
    home.serve_as("host", Served::of_folder(folder.clone(), "folder".to_owned()).expect("it is a log"));
    assert_eq!(alerts(&home, 2).await, ["first", "second"]);
    std::fs::rename(&folder, home.path("earlier")).expect("it is there");
    let gone = home.wait_for("host", State::Failed).await;
    assert!(gone.trouble.contains("is gone"), "{gone:?}");
    let all = QueryRequest { select: "count".to_owned(), within: 60_000, ..QueryRequest::default() };
    let mut admin = home.admin().await;
    let answer = admin.query(all.clone()).await.expect("it answers");
    let [member] = &answer.members[..] else { panic!("{answer:?}") };
    assert!(member.state() == State::Failed && member.problem.contains("is gone"), "{member:?}");
    // The new one has as many alerts as the coordinator has stored of the other.
    ended(&folder, 0..3, &["third", "fourth"]);
    assert_eq!(alerts(&home, 4).await, ["first", "second", "third", "fourth"]);
    let member = home.wait_for("host", State::Answered).await;
    assert_eq!((left_out(&member, "folder_replaced"), left_out(&member, "alerts_replaced")), (1, 0), "{member:?}");
    assert_eq!(count(&admin.query(all.clone()).await.expect("it answers"), &all), 3);
    // Later alerts come once.
    alert(&folder, "fifth");
    assert_eq!(alerts(&home, 5).await, ["first", "second", "third", "fourth", "fifth"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_say_what_was_left_out_in_their_time() {
    let home = Home::start().await;
    let folder = home.path("recorded");
    ended(&folder, 0..10, &[]);
    let mut left_out = LeftOutFile::in_folder(&folder, 3).expect("there is none yet");
    left_out
        .note(7, 0, &[("shed", 12, "packets left out because they took more time than --cpu allows")])
        .expect("there is room");
    left_out.end().expect("there is room");
    home.join("host", "agent").await;
    home.serve_as("host", Served::of_folder(folder.clone(), "folder".to_owned()).expect("it is a log"));
    // A host that records itself says the same of its own folder.
    let own = home.host("own").await;
    assert_eq!(own.recorder.append(&[0; packet::SIZE]).expect("there is room").refused, 0);
    std::fs::copy(folder.join("left_out.jsonl"), own.folder.join("left_out.jsonl")).expect("there is room");
    home.wait_for("host", State::Answered).await;
    home.wait_for("own", State::Answered).await;
    let mut admin = home.admin().await;
    for (from, to, notes) in [(0, 4, 1), (7, 8, 1), (8, 10, 0), (0, 3, 0)] {
        let request = QueryRequest {
            select: "count".to_owned(),
            within: 60_000,
            from: Some(from),
            to: Some(to),
            ..QueryRequest::default()
        };
        let answer = admin.query(request).await.expect("it answers");
        for member in &answer.members {
            let found: Vec<_> = member.notes.iter().filter(|note| note.contains("--cpu")).collect();
            assert_eq!(found.len(), notes, "{from} to {to}: {member:?}");
            let expected = "12 packets left out because they took more time than --cpu allows (from 1970-01-01T00:00:00.000000003Z to \
                            1970-01-01T00:00:00.000000007Z)";
            assert!(found.iter().all(|note| *note == expected), "{member:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_alert_of_a_folder_is_no_trouble() {
    let home = Home::start().await;
    let folder = home.path("recorded");
    ended(&folder, 0..10, &[]);
    home.join("host", "agent").await;
    let connection = AgentConnection {
        coordinator: home.address.clone(),
        credentials: credentials(&home.path("host")),
        folder: home.path("host"),
    };
    let served = Served::of_folder(folder.clone(), "folder".to_owned()).expect("it is a log");
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let serving = tokio::spawn(async move {
        let report = |event: AgentEvent| seen.lock().expect("no panic").push(event);
        let Err(why) = served.serve(&connection, &report).await;
        why
    });
    home.wait_for("host", State::Answered).await;
    alert(&folder, "first");
    assert_eq!(alerts(&home, 1).await, ["first"]);
    alert(&folder, "second");
    assert_eq!(alerts(&home, 2).await, ["first", "second"]);
    let member = home.wait_for("host", State::Answered).await;
    assert_eq!(left_out(&member, "alerts_replaced") + left_out(&member, "folder_replaced"), 0, "{member:?}");
    let events = events.lock().expect("no panic");
    assert!(matches!(events[..], [AgentEvent::Attached]), "{events:?}");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_a_file_that_was_cut_or_replaced_are_not_lost() {
    let home = Home::start().await;
    let folder = home.path("recorded");
    ended(&folder, 0..10, &["first", "second"]);
    home.join("host", "agent").await;
    let serve = || home.serve_as("host", Served::of_folder(folder.clone(), "folder".to_owned()).expect("it is a log"));
    let serving = serve();
    assert_eq!(alerts(&home, 2).await, ["first", "second"]);
    std::fs::write(folder.join("alerts.jsonl"), "").expect("there is room");
    alert(&folder, "third");
    assert_eq!(alerts(&home, 3).await, ["first", "second", "third"]);
    let member = home.wait_for("host", State::Answered).await;
    assert_eq!(left_out(&member, "alerts_replaced"), 0, "{member:?}");
    // The same happens while no agent runs, with as many alerts as there were.
    serving.abort();
    std::fs::remove_file(folder.join("alerts.jsonl")).expect("it is there");
    ["fourth", "fifth"].iter().for_each(|trigger| alert(&folder, trigger));
    let serving = serve();
    assert_eq!(alerts(&home, 5).await, ["first", "second", "third", "fourth", "fifth"]);
    // It is cut to a part of what it was: later alerts are new.
    serving.abort();
    std::fs::remove_file(folder.join("alerts.jsonl")).expect("it is there");
    alert(&folder, "fourth");
    let _serving = serve();
    let member = patiently("the cut is noticed", async || {
        let members = home.admin().await.members().await.expect("it answers");
        members.into_iter().find(|member| left_out(member, "alerts_cut") > 0)
    })
    .await;
    assert_eq!(left_out(&member, "alerts_cut"), 1);
    alert(&folder, "sixth");
    assert_eq!(alerts(&home, 6).await.pop().as_deref(), Some("sixth"));
}
