//! What a coordinator allows, with a clock of the test and hosts that only collect what comes.

use super::*;
use crate::coordinator::{AlertStore, CoordinatorOptions, ProgramStore, Programs};
use crate::protocol::{Hello, PROTOCOL, ToAgent};
use proptest::prelude::*;
use std::path::Path;
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;

const SECOND: u64 = 1_000_000_000;

const TEXT: &str = r#"
    [run]
    every = "1s"
    [[ask]]
    name = "sent"
    group = "src_ip,dst_ip"
    [[raise]]
    name = "heavy"
    condition = "sent > 10"
    [[act]]
    after = "heavy"
    hosts = ["web-*"]
    do = "drop"
    for = "20s"
    per_minute = 5
    most = 2
    dry = false
    only = ["10.0.0.0/24"]
    [[act]]
    after = "heavy"
    hosts = ["db"]
    do = "limit 10Mbps"
    for = "5s"
"#;

fn program() -> Program {
    Program::parse("heavy", TEXT, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn coordinator(folder: &Path) -> Coordinator {
    let alerts = AlertStore::open(&folder.join("alerts.jsonl"), AlertStore::KEPT).expect("there is room");
    let programs = Programs::open(ProgramStore::open(&folder.join("programs")).expect("there is room"));
    let actions = Actions::new(ActionStore::open(&folder.join("actions.jsonl")).expect("there is room"), None);
    let options = CoordinatorOptions::default();
    Coordinator::with_actions(options, 1, alerts, programs.expect("there is room"), actions)
}

/// A stream of a host that does nothing.
fn attach(coordinator: &Coordinator, name: &str) -> (Session, Receiver<ToAgent>) {
    let hello = Hello { protocol: PROTOCOL, ..Hello::default() };
    coordinator.attach(name, hello, None).unwrap_or_else(|error| panic!("{error}"))
}

fn flow(last: u8) -> Flow {
    Flow { src: Some([10, 0, 0, last].into()), dst: Some([10, 0, 0, 200].into()), ..Flow::default() }
}

fn at(steady: u64) -> Now {
    Now { steady: Nanos(steady), wall: Nanos(1_000 * SECOND + steady) }
}

/// What came of actions since the last call.
fn came(from: &mut Receiver<ToAgent>) -> Vec<to_agent::Message> {
    let all = std::iter::from_fn(|| from.try_recv().ok()).filter_map(|message| message.message);
    all.filter(|message| matches!(message, to_agent::Message::Act(_) | to_agent::Message::Hold(_))).collect()
}

fn acts(from: &mut Receiver<ToAgent>) -> Vec<(u64, u64, bool)> {
    let all = came(from).into_iter().filter_map(|message| match message {
        to_agent::Message::Act(act) => Some((act.id, act.nanoseconds, act.dry)),
        _ => None,
    });
    all.collect()
}

fn states(coordinator: &Coordinator) -> Vec<(u64, ActionState)> {
    coordinator.actions(usize::MAX).0.iter().map(|record| (record.id, record.state)).collect()
}

struct Fixture {
    _dir: TempDir,
    actions: Actions,
    session: Session,
    messages: Receiver<ToAgent>,
    program: Program,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        let (session, messages) = attach(&coordinator(dir.path()), "web-1");
        let actions = Actions::new(ActionStore::default(), None);
        Self { _dir: dir, actions, session, messages, program: program() }
    }

    fn decide(&mut self, now: u64, last: u8) {
        let flow = flow(last);
        let cause = Cause { program: "heavy", number: 0, act: &self.program.acts()[0], text: "alert 1", flow: &flow };
        self.actions.decide(at(now), cause, "web-1", Some(&self.session)).expect("there is room");
    }

    fn last(&self) -> ActionRecord {
        self.actions.store.newest(1).pop().expect("there is one")
    }
}

#[test]
fn limits_of_a_program_hold() {
    let mut all = Fixture::new();
    for last in [1, 2, 3] {
        all.decide(0, last);
    }
    assert_eq!(acts(&mut all.messages), [(1, 20 * SECOND, false), (2, 20 * SECOND, false)]);
    assert!(all.last().reason.contains("which is `most`"), "{:?}", all.last());
    // The same flow again: one action with another end.
    all.decide(SECOND, 1);
    assert_eq!(acts(&mut all.messages), [(1, 20 * SECOND, false)]);
    assert_eq!(all.actions.open.len(), 2);
    assert_eq!(all.actions.store.get(1).map(|record| record.until), Some(at(21 * SECOND).wall));
    all.decide(SECOND, 1);
    all.decide(SECOND, 2);
    all.decide(SECOND, 2);
    assert!(all.last().reason.contains("which is `per_minute`"), "{:?}", all.last());
    assert_eq!(acts(&mut all.messages).len(), 2);
    let other = Flow { src: Some([192, 0, 2, 1].into()), ..flow(1) };
    let cause = Cause { program: "heavy", number: 0, act: &all.program.acts()[0], text: "alert 1", flow: &other };
    all.actions.decide(at(0), cause, "web-1", Some(&all.session)).expect("there is room");
    assert!(all.last().reason.contains("not in `only`"), "{:?}", all.last());
    let flow = flow(1);
    let cause = Cause { program: "heavy", number: 1, act: &all.program.acts()[1], text: "alert 1", flow: &flow };
    all.actions.decide(at(0), cause, "db", None).expect("there is room");
    assert_eq!(all.last().reason, "the host is absent");
    assert!(acts(&mut all.messages).is_empty());
}

#[test]
fn actions_that_no_host_begins_leave_room_for_others() {
    let mut all = Fixture::new();
    let session = all.session.clone();
    // More than `per_minute`, each refused or failed before the next.
    for number in 1..=12 {
        all.decide(number, 1);
        let state = if number % 2 == 0 { ActState::ActRefused } else { ActState::ActFailed };
        let acted = Acted { id: number, state: state.into(), reason: "not allowed".to_owned(), ..Acted::default() };
        all.actions.acted(at(number), &session, &acted).expect("there is room");
        assert_eq!(all.last().reason, "not allowed", "{:?}", all.last());
    }
    assert_eq!(acts(&mut all.messages).len(), 12);
    // Five dry runs count; one of them is refused a later end, which does not.
    let reply = |all: &mut Fixture, id, state: ActState| {
        let acted = Acted { id, state: state.into(), left: 5, ..Acted::default() };
        all.actions.acted(at(100), &session, &acted).expect("there is room");
    };
    all.decide(100, 1);
    reply(&mut all, 13, ActState::ActDry);
    all.decide(100, 1);
    reply(&mut all, 13, ActState::ActRefused);
    for _ in 0..4 {
        all.decide(100, 1);
        reply(&mut all, 13, ActState::ActDry);
    }
    assert_eq!(acts(&mut all.messages).len(), 6);
    all.decide(100, 1);
    assert!(
        acts(&mut all.messages).is_empty() && all.last().reason.contains("which is `per_minute`"),
        "{:?}",
        all.last()
    );
}

#[test]
fn hosts_that_refuse_all_actions_are_left_alone() {
    let mut all = Fixture::new();
    let session = all.session.clone();
    for number in 1..=100 {
        all.decide(number, 1);
        let refused = Acted { id: number, state: ActState::ActRefused.into(), ..Acted::default() };
        all.actions.acted(at(number), &session, &refused).expect("there is room");
    }
    assert_eq!(acts(&mut all.messages).len(), 60);
    assert!(all.last().reason.contains("hosts did not begin 60 actions"), "{:?}", all.last());
    all.decide(61 * SECOND, 1);
    assert_eq!(acts(&mut all.messages).len(), 1);
}

#[test]
fn a_pattern_without_hosts_is_a_refusal() {
    let dir = tempfile::tempdir().expect("there is room");
    let coordinator = coordinator(dir.path());
    let (_mail, mut messages) = attach(&coordinator, "mail");
    coordinator.act("heavy", &program(), 0, &flow(1), "alert 1");
    assert!(acts(&mut messages).is_empty());
    let (actions, _) = coordinator.actions(usize::MAX);
    let shown: Vec<_> = actions.iter().map(|action| (action.member.as_str(), action.reason.as_str())).collect();
    assert_eq!(shown, [("", "no host matches `hosts` = [\"web-*\"]"), ("db", "the host is absent")]);
    assert!(actions[0].about().starts_with("1 on no host: drop "), "{}", actions[0].about());
    assert_eq!(coordinator.action_counts("heavy"), (0, 2));
}

#[test]
fn ten_thousand_actions_a_minute_are_refused_and_counted() {
    let mut all = Fixture::new();
    for number in 0..10_000u64 {
        all.decide(number * 60 * SECOND / 10_000, (number % 200) as u8);
    }
    let sent = acts(&mut all.messages).len();
    let of = &all.actions.programs["heavy"];
    assert!(sent <= 5 && of.acted == sent as u64 && of.refused == 10_000 - of.acted, "{sent} {of:?}");
    // Those that are not stored are counted.
    let stored = all.actions.store.newest(usize::MAX);
    let refused = stored.iter().filter(|record| record.state == ActionState::Refused).count() as u64;
    assert!(
        refused <= 60 && refused + all.actions.more_refused == of.refused,
        "{refused} {:?}",
        all.actions.more_refused
    );
}

#[test]
fn hosts_report_about_their_own_actions_only() {
    let mut all = Fixture::new();
    let folder = tempfile::tempdir().expect("there is room");
    let (other, _messages) = attach(&coordinator(folder.path()), "mail");
    all.decide(0, 1);
    let acted =
        |id, state: ActState| Acted { id, state: state.into(), touched: 5, packets: 9, left: 7, ..Acted::default() };
    let mut report = |session: &Session, acted: &Acted| {
        all.actions.acted(at(SECOND), session, acted).expect("there is room");
        let record = all.actions.store.newest(1).pop().expect("there is one");
        (record.state, record.touched)
    };
    let own = all.session.clone();
    // Forged: of another host, of no action, of no meaning.
    assert_eq!(report(&other, &acted(1, ActState::ActExpired)), (ActionState::Sent, 0));
    assert_eq!(report(&own, &acted(99, ActState::ActExpired)), (ActionState::Sent, 0));
    assert_eq!(report(&own, &acted(1, ActState::ActUnspecified)), (ActionState::Sent, 0));
    assert_eq!(report(&own, &Acted { state: 77, ..acted(1, ActState::ActSent) }), (ActionState::Sent, 0));
    assert_eq!(report(&own, &acted(1, ActState::ActApplied)), (ActionState::Applied, 5));
    assert_eq!(report(&own, &Acted { touched: 2, ..acted(1, ActState::ActApplied) }), (ActionState::Applied, 5));
    assert_eq!(report(&own, &acted(1, ActState::ActExpired)), (ActionState::Expired, 5));
    // An action that is over stays over.
    assert_eq!(report(&own, &acted(1, ActState::ActApplied)), (ActionState::Expired, 5));
    all.decide(0, 3);
    for state in [ActState::ActApplied, ActState::ActRefused] {
        all.actions.acted(at(0), &own, &acted(2, state)).expect("there is room");
    }
    // What is refused is its later end.
    assert!(all.last().state == ActionState::Applied && all.last().reason.contains("no later end"), "{:?}", all.last());
    assert_eq!(all.actions.open.len(), 1);
    let reason = "x".repeat(9_000) + "\u{1b}[31m";
    all.decide(0, 2);
    let refused = Acted { reason, ..acted(3, ActState::ActRefused) };
    all.actions.acted(at(0), &own, &refused).expect("there is room");
    assert!(all.last().reason.chars().count() == 512 && all.last().state == ActionState::Refused);
}

#[test]
fn actions_end_with_their_stream_their_program_and_late_hosts() {
    let dir = tempfile::tempdir().expect("there is room");
    let coordinator = coordinator(dir.path());
    let program = program();
    let (first, mut messages) = attach(&coordinator, "web-1");
    coordinator.act("heavy", &program, 0, &flow(1), "alert 1");
    let sent = acts(&mut messages);
    assert_eq!(sent.len(), 1);
    // The other act is for a host that nobody knows: it is missed, because it has a name.
    assert_eq!(states(&coordinator), [(1, ActionState::Sent), (2, ActionState::Refused)]);
    coordinator.hold(&[]);
    assert_eq!(came(&mut messages), [to_agent::Message::Hold(Hold { ids: vec![1] })]);
    coordinator.detach(&first);
    assert_eq!(states(&coordinator)[0], (1, ActionState::Undone));
    let (_second, mut messages) = attach(&coordinator, "web-1");
    coordinator.act("heavy", &program, 0, &flow(1), "alert 2");
    assert_eq!(acts(&mut messages), [(3, 20 * SECOND, false)]);
    coordinator.end_actions("other");
    assert_eq!(came(&mut messages), [to_agent::Message::Hold(Hold { ids: vec![3] })]);
    assert!(states(&coordinator)[2].1.is_open());
    coordinator.end_actions("heavy");
    assert_eq!(states(&coordinator)[2], (3, ActionState::Undone));
    assert_eq!(came(&mut messages).last(), Some(&to_agent::Message::Hold(Hold { ids: Vec::new() })));
    let mut late = Fixture::new();
    late.decide(0, 1);
    late.decide(0, 2);
    let acted = Acted { id: 2, state: ActState::ActApplied.into(), ..Acted::default() };
    late.actions.acted(at(0), &late.session.clone(), &acted).expect("there is room");
    late.actions.hold(at(25 * SECOND - 1)).expect("there is room");
    assert_eq!(late.actions.open.len(), 2);
    late.actions.hold(at(25 * SECOND)).expect("there is room");
    let ends: Vec<_> =
        late.actions.store.newest(2).iter().map(|record| (record.state, record.reason.clone())).collect();
    assert_eq!(ends[0], (ActionState::Failed, "the host did not reply".to_owned()));
    assert_eq!(ends[1], (ActionState::Expired, "the host did not report its end".to_owned()));
}

#[test]
fn decisions_survive_and_nothing_is_done_again() {
    let dir = tempfile::tempdir().expect("there is room");
    let before = coordinator(dir.path());
    let (_session, _messages) = attach(&before, "web-1");
    before.act("heavy", &program(), 0, &flow(1), "alert 1");
    // As after kill -9: nothing is ended, and the last line may be torn.
    let path = dir.path().join("actions.jsonl");
    let mut text = std::fs::read(&path).expect("it is there");
    text.extend(b"{\"id\":3,\"at");
    std::fs::write(&path, text).expect("there is room");
    let after = coordinator(dir.path());
    let (records, _) = after.actions(usize::MAX);
    let first = &records[0];
    assert_eq!((first.id, first.state, &*first.reason), (1, ActionState::Undone, "the coordinator ended"));
    let (_session, mut messages) = attach(&after, "web-1");
    after.hold(&[]);
    assert!(came(&mut messages).is_empty());
    after.act("heavy", &program(), 0, &flow(1), "alert 2");
    assert_eq!(acts(&mut messages), [(3, 20 * SECOND, false)]);
    std::fs::write(&path, "{}\n").expect("there is room");
    let error = ActionStore::open(&path).expect_err("it is wrong").to_string();
    assert!(error.contains("line 1, is not an action"), "{error}");
}

#[test]
fn the_file_of_actions_does_not_grow_for_ever() {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join("actions.jsonl");
    let record = ActionRecord {
        id: 0,
        at: Nanos(5),
        until: Nanos(6),
        program: "heavy".to_owned(),
        cause: "alert 1".to_owned(),
        member: "web-1".to_owned(),
        flow: "src_ip 10.0.0.1".to_owned(),
        action: "drop".to_owned(),
        dry: true,
        state: ActionState::Refused,
        reason: "a limit".to_owned(),
        touched: 0,
        packets: 0,
    };
    let mut store = ActionStore::with(&path, 100_000).expect("there is room");
    for _ in 0..12_000 {
        let id = store.next_id();
        store.finish(ActionRecord { id, ..record.clone() }).expect("there is room");
    }
    let length = std::fs::metadata(&path).expect("it is there").len();
    let newest = store.newest(2);
    drop(store);
    let mut again = ActionStore::open(&path).expect("it is whole");
    assert!(length < 3_000_000, "{length}");
    assert_eq!((again.newest(2), again.next_id()), (newest, 12_001));
    assert_eq!(again.newest(usize::MAX).len(), 4_096);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever hosts report and when alerts come: no more than `most` and `per_minute`, and one action for each flow.
    #[test]
    fn limits_hold_at_all_times(steps in prop::collection::vec((0u64..8 * SECOND, 0u8..4, 0u8..6), 1..50)) {
        let mut all = Fixture::new();
        let session = all.session.clone();
        let (mut now, mut sent) = (0, Vec::new());
        for (later, last, what) in steps {
            now += later;
            match what {
                0 => all.actions.hold(at(now)).map(drop).expect("there is room"),
                1 => {
                    let id = u64::from(last) + 1;
                    let acted = Acted { id, state: ActState::ActExpired.into(), ..Acted::default() };
                    all.actions.acted(at(now), &session, &acted).expect("there is room");
                }
                _ => all.decide(now, last),
            }
            sent.extend(acts(&mut all.messages).iter().map(|_| now));
            let recent = sent.iter().filter(|at| now - **at < 60 * SECOND).count();
            prop_assert!(recent <= 5 && all.actions.open.len() <= 2);
            let flows: BTreeSet<_> = all.actions.open.values().map(|open| open.flow).collect();
            prop_assert_eq!(flows.len(), all.actions.open.len());
        }
    }
}
