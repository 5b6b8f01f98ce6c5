//! Nothing of a probe remains, however its process ends.
#![allow(clippy::disallowed_methods, reason = "tests start programs, and this one starts itself")]

use crate::common::{Ends, until};
use aya::maps::loaded_maps;
use aya::programs::{SchedClassifier, TcAttachType, loaded_programs};
use queuescope_live::{Acting, Probe, ProbeParams};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, stdin};
use std::process::{Command, Stdio};

/// The environment variable that makes this program the process that is killed.
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
    // Runs until it is killed, or until the other end of standard input is closed.
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

/// The number of loaded programs that use any of these maps, and of the maps that are loaded.
fn loaded(maps: &BTreeSet<u32>) -> (usize, usize) {
    let uses = |program: &aya::programs::ProgramInfo| {
        program.map_ids().ok().flatten().is_some_and(|ids| ids.iter().any(|id| maps.contains(id)))
    };
    let programs = loaded_programs().filter_map(Result::ok).filter(uses).count();
    (programs, loaded_maps().filter_map(Result::ok).filter(|map| maps.contains(&map.id())).count())
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    let ends = match Ends::new("tbf rate 50mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: a_killed_process_leaves_nothing_behind: {why}"),
    };
    assert!(before_the_queue(&ends).0.is_empty());
    let mut child = ends.near.run(|| {
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["--exact", "killed::is_killed", "--nocapture"]).env(KILLED, "yes");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
    });
    let output = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert!(output.map_while(Result::ok).any(|line| line == "it acts"), "{child:?} attached nothing");
    let (before, maps) = before_the_queue(&ends);
    assert_eq!(before.len(), 1);
    let (programs, known) = loaded(&maps);
    // Two programs that can be before the queue, and two tracepoints.
    assert!(programs == 4 && known == maps.len() && known >= 6, "{programs} {known} {maps:?}");

    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert!(before_the_queue(&ends).0.is_empty());
    // The kernel frees them some time after their last use.
    until("programs and maps are gone", || (loaded(&maps) == (0, 0)).then_some(()));
}

/// The names of the programs before the queue.
fn names() -> Vec<String> {
    let (_, programs) = SchedClassifier::query_tcx("near0", TcAttachType::Egress).expect("it is there");
    programs.iter().filter_map(|program| program.name_as_str().map(str::to_owned)).collect()
}

#[test]
fn the_acting_program_is_attached_only_while_acting() {
    let ends = match Ends::new("tbf rate 50mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: the_acting_program_is_attached_only_while_acting: {why}"),
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
