//! P4air on an interface: its queues, the groups of flows, actions on them, and that nothing of it remains. As root.
#![allow(clippy::disallowed_methods, reason = "tests start programs, and this one starts itself")]

use crate::common::{Ends, until};
use aya::programs::{SchedClassifier, TcAttachType};
use queuescope_live::{GuardCommand, Never, P4air, P4airError, P4airParams, guard, now};
use queuescope_wire::{Nanos, Rate};
use std::io::{BufRead, BufReader, stdin};
use std::process::{Command, Stdio};

/// The environment variables that make this program the guard, and the process that is killed.
const GUARD: &str = "QUEUESCOPE_TEST_IS_GUARD";
const KILLED: &str = "QUEUESCOPE_TEST_P4AIR_IS_KILLED";
/// Longer than any test.
const LONG: Nanos = Nanos(600_000_000_000);

/// The guard; as a test it does nothing.
#[test]
fn is_guard() {
    if std::env::var_os(GUARD).is_some() {
        guard().expect("it can");
    }
}

/// The process that is killed; as a test it does nothing.
#[test]
fn is_killed() {
    if std::env::var_os(KILLED).is_none() {
        return;
    }
    let mut p4air = attached();
    p4air.begin(&command()).unwrap_or_else(|error| panic!("{error}"));
    p4air.renew(now().saturating_add(LONG)).expect("it can");
    println!("\nit acts");
    let _ = stdin().lines().next();
}

fn ends(test: &str) -> Option<Ends> {
    let ends = Ends::needing(&["namespaces", "btf", "tcx", "tp_btf"], "pfifo").inspect(|ends| {
        ends.near.run(|| assert!(tc("qdisc del dev near0 root").0));
    });
    ends.map_err(|why| println!("skipped: {test}: {why}")).ok()
}

fn command() -> GuardCommand {
    GuardCommand {
        program: std::env::current_exe().expect("it has a name"),
        arguments: ["--exact", "p4air::is_guard", "--nocapture"].map(Into::into).to_vec(),
        environment: Some((GUARD.into(), "yes".into())),
    }
}

fn params() -> P4airParams {
    let mut params = P4airParams::new(Rate::from_bits_per_second(50_000_000).expect("it is above zero"));
    params.queues = 16;
    params
}

fn attached() -> P4air {
    P4air::attach("near0", params(), &Never::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether `tc` succeeds, and what it prints.
fn tc(words: &str) -> (bool, String) {
    let output = Command::new("tc").args(words.split(' ')).output().expect("tc is there");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The root qdisc of the near end, as `tc` prints it.
fn root() -> String {
    tc("qdisc show dev near0 root").1
}

fn programs() -> usize {
    let count = |way| SchedClassifier::query_tcx("near0", way).expect("it is there").1.len();
    count(TcAttachType::Egress) + count(TcAttachType::Ingress)
}

#[test]
fn queues_are_made_and_the_default_ones_restored() {
    let Some(ends) = ends("queues_are_made_and_the_default_ones_restored") else { return };
    ends.near.run(|| {
        let before = root();
        let mut p4air = attached();
        // Dry: the programs are there, and nothing is changed.
        assert_eq!((root(), programs(), p4air.is_real()), (before.clone(), 2, false));
        p4air.begin(&command()).unwrap_or_else(|error| panic!("{error}"));
        assert!(p4air.is_real() && root().starts_with("qdisc htb 9a1f: root"), "{}", root());
        let classes = tc("class show dev near0").1;
        let children = classes.lines().filter(|line| line.contains("parent 9a1f:1 ")).count();
        assert!(children == 16 && classes.contains("rate 3125Kbit ceil 50Mbit"), "{classes}");
        let queues = tc("qdisc show dev near0").1;
        assert_eq!(queues.matches("qdisc bfifo").count(), 16, "{queues}");
        p4air.end().expect("it can");
        assert_eq!((root(), programs()), (before.clone(), 2));
        // Dropping it does the same.
        p4air.begin(&command()).expect("it can");
        drop(p4air);
        assert_eq!((root(), programs()), (before, 0));
    });
}

#[test]
fn a_chosen_qdisc_is_not_replaced_and_one_process_is_enough() {
    let Some(ends) = ends("a_chosen_qdisc_is_not_replaced_and_one_process_is_enough") else { return };
    ends.near.run(|| {
        assert!(tc("qdisc replace dev near0 root handle 7: bfifo limit 30000").0);
        let error = attached().begin(&command()).expect_err("it is not the default");
        assert!(matches!(&error, P4airError::Occupied { kind, .. } if kind == "bfifo"), "{error}");
        assert!(root().starts_with("qdisc bfifo 7:"), "{}", root());
        assert!(tc("qdisc del dev near0 root").0);
        let mut first = attached();
        first.begin(&command()).expect("it can");
        let error = attached().begin(&command()).expect_err("the first one runs");
        assert!(matches!(error, P4airError::Busy { .. }), "{error}");
        assert!(root().starts_with("qdisc htb"), "the first one keeps its queues: {}", root());
        // Queues that a crash without a guard has left are replaced.
        drop(first);
        assert!(tc("qdisc add dev near0 root handle 9a1f: htb").0);
        let mut after = attached();
        after.begin(&command()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(tc("qdisc show dev near0").1.matches("qdisc bfifo").count(), 16);
    });
    ends.near.run(|| {
        let mut few = params();
        few.queues = 6;
        let error = P4air::attach("near0", few, &Never::default()).expect_err("each group needs one");
        assert!(error.to_string().contains("7 to 64 queues"), "{error}");
    });
}

#[test]
fn a_killed_process_leaves_no_queues() {
    let Some(ends) = ends("a_killed_process_leaves_no_queues") else { return };
    ends.near.run(|| {
        let before = root();
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["--exact", "p4air::is_killed", "--nocapture"]).env(KILLED, "yes");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        assert!(output.map_while(Result::ok).any(|line| line == "it acts"), "{child:?} attached nothing");
        assert!(root().starts_with("qdisc htb") && programs() == 2);
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        until("the queues are removed", || (root() == before).then_some(()));
        assert_eq!(programs(), 0);
    });
}

#[test]
fn an_interface_that_is_gone_is_no_error() {
    let Some(ends) = ends("an_interface_that_is_gone_is_no_error") else { return };
    ends.near.run(|| {
        let mut p4air = attached();
        p4air.begin(&command()).expect("it can");
        assert!(Command::new("ip").args(["link", "del", "near0"]).status().expect("ip is there").success());
        p4air.end().expect("nothing is left to remove");
    });
}
