//! Nothing of a probe stays, however its process ends.
#![allow(clippy::disallowed_methods, reason = "tests start programs, and this one starts itself")]

use crate::common::{Ends, until};
use aya::maps::loaded_maps;
use aya::programs::{SchedClassifier, TcAttachType, loaded_programs};
use queuescope_live::{Acting, Probe, ProbeParams};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, stdin};
use std::process::{Command, Stdio};

/// What this program is told by when it is to be the process that is killed.
const KILLED: &str = "QUEUESCOPE_TEST_IS_KILLED";

/// The process that is killed; as a test it does nothing.
#[test]
fn is_killed() {
    if std::env::var_os(KILLED).is_none() {
        return;
    }
    let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
    probe.act(&Acting { dry: false, ..Acting::default() }).expect("it can");
    println!("\nit acts");
    // Until it is killed, or nobody is there any longer.
    let _ = stdin().lines().next();
}

/// The programs before the queue: their numbers, and those of their maps.
fn before_the_queue(ends: &Ends) -> (BTreeSet<u32>, BTreeSet<u32>) {
    ends.near.run(|| {
        let (_, programs) = SchedClassifier::query_tcx("near0", TcAttachType::Egress).expect("it is there");
        let maps = programs.iter().filter_map(|program| program.map_ids().ok().flatten()).flatten().collect();
        (programs.iter().map(aya::programs::ProgramInfo::id).collect(), maps)
    })
}

/// Programs that use any of these maps, and those of the maps that there are.
fn there(maps: &BTreeSet<u32>) -> (usize, usize) {
    let uses = |program: &aya::programs::ProgramInfo| {
        program.map_ids().ok().flatten().is_some_and(|ids| ids.iter().any(|id| maps.contains(id)))
    };
    let programs = loaded_programs().filter_map(Result::ok).filter(uses).count();
    (programs, loaded_maps().filter_map(Result::ok).filter(|map| maps.contains(&map.id())).count())
}

#[test]
fn nothing_stays_of_a_process_that_is_killed() {
    let ends = match Ends::new("tbf rate 50mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: nothing_stays_of_a_process_that_is_killed: {why}"),
    };
    assert!(before_the_queue(&ends).0.is_empty());
    let mut child = ends.near.run(|| {
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["--exact", "killed::is_killed", "--nocapture"]).env(KILLED, "yes");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
    });
    let said = BufReader::new(child.stdout.take().expect("it says something")).lines();
    assert!(said.map_while(Result::ok).any(|line| line == "it acts"), "{child:?} attached nothing");
    let (before, maps) = before_the_queue(&ends);
    assert_eq!(before.len(), 1);
    let (programs, known) = there(&maps);
    // Of both programs that can be before the queue, and of both tracepoints.
    assert!(programs == 4 && known == maps.len() && known >= 6, "{programs} {known} {maps:?}");

    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert!(before_the_queue(&ends).0.is_empty());
    // The kernel frees them when nobody can run them any longer, some time after.
    until("programs and maps are gone", || (there(&maps) == (0, 0)).then_some(()));
}

/// Which programs are before the queue.
fn names() -> Vec<String> {
    let (_, programs) = SchedClassifier::query_tcx("near0", TcAttachType::Egress).expect("it is there");
    programs.iter().filter_map(|program| program.name_as_str().map(str::to_owned)).collect()
}

#[test]
fn what_acts_is_gone_from_the_interface_when_nothing_is_done() {
    let ends = match Ends::new("tbf rate 50mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: what_acts_is_gone_from_the_interface_when_nothing_is_done: {why}"),
    };
    let seen = ends.near.run(|| {
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        let mut seen = vec![names()];
        for _ in 0..2 {
            probe.act(&Acting { dry: false, ..Acting::default() }).expect("it can");
            seen.push(names());
            probe.rest().expect("it can");
            seen.push(names());
        }
        seen
    });
    assert_eq!(seen, [["stamp"], ["act"], ["stamp"], ["act"], ["stamp"]]);
}
