//! Records that are lost before they are written leave a gap. Once it is reported it is never forgotten, wherever the recorder
//! is stopped.

use super::power::{Before, Noted, before};
use super::schema;
use crate::folder::Folder;
use crate::recorder::recover;
use crate::{ArchiveQuery, History, Sources};
use proptest::prelude::*;
use proptest::sample::Index;
use queuescope_log::Dnf;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// What a process does with its journals, and how it ends.
#[derive(Debug, Clone)]
struct Session {
    /// How many records are lost, and how many are written behind them.
    steps: Vec<(u64, u32)>,
    finishes: bool,
    ends: End,
}

#[derive(Debug, Clone)]
enum End {
    Well,
    /// After a part of its operations, the last of them incomplete.
    Killed(Index, Index),
    /// With these pages of what was not synced.
    PowerLost(Index, Vec<bool>),
}

fn session() -> impl Strategy<Value = Session> {
    let step = (prop_oneof![Just(0u64), 1..9u64], prop_oneof![2 => Just(0u32), 1 => 1..40u32]);
    let ends = prop_oneof![
        Just(End::Well),
        any::<(Index, Index)>().prop_map(|(moment, part)| End::Killed(moment, part)),
        (any::<Index>(), prop::collection::vec(any::<bool>(), 16)).prop_map(|(at, pages)| End::PowerLost(at, pages)),
    ];
    (prop::collection::vec(step, 0..4), any::<bool>(), ends).prop_map(|(steps, finishes, ends)| Session {
        steps,
        finishes,
        ends,
    })
}

/// Continues with a folder, and leaves it as the end of the session does.
fn run(folder: &Folder, session: &Session) {
    let tail = recover(folder).unwrap_or_else(|error| panic!("{error}")).tail;
    let (noted, mut closed, mut next) = (Noted::default(), Vec::new(), tail.next);
    let mut journal = folder.journal(noted.clone(), 30, tail);
    for (lost, count) in &session.steps {
        journal.pass_by(*lost, &mut closed).expect("there is room");
        next += lost;
        let numbers = next as u32..next as u32 + count;
        journal.write(&super::records(numbers), &mut closed).expect("there is room");
        next += u64::from(*count);
    }
    if session.finishes {
        journal.finish().expect("there is room");
    }
    let done = noted.done();
    let files = |moment: &Index| before(&done[..moment.index(done.len() + 1)]).0;
    let put = |file: &Before, bytes: &[u8]| fs::write(&file.path, bytes).expect("there is room");
    match &session.ends {
        End::Well => before(&done).0.iter().for_each(|file| put(file, &file.bytes)),
        End::Killed(moment, part) => {
            let files = files(moment);
            for (number, file) in files.iter().enumerate() {
                let (last, since) = (number + 1 == files.len(), file.lengths.iter().rev().nth(1).copied());
                let written = since.filter(|_| last).unwrap_or(file.bytes.len());
                put(file, &file.bytes[..written + part.index(file.bytes.len() - written + 1)]);
            }
        }
        End::PowerLost(moment, pages) => {
            for file in files(moment) {
                let page = |number: usize| if pages[number % 16] { file.bytes.len() } else { 0 };
                put(&file, &file.after(64, page, file.bytes.len()));
            }
        }
    }
}

/// What a folder has; each record holds its position.
fn read(path: &Path) -> Sources {
    let history = History::open(path).unwrap_or_else(|error| panic!("{error}"));
    let (needed, mut next) = ([schema().find("number").expect("it is there")], 0);
    let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let outcome = history.each(ask, &mut |position, record| {
        assert!(position >= next && record == (position as u32).to_be_bytes(), "at {position}");
        next = position + 1;
        ControlFlow::Continue(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_reported_gap_stays(sessions in prop::collection::vec(session(), 1..8)) {
        let path = tempfile::tempdir().expect("there is room");
        let folder = Folder::create(path.path(), &schema()).expect("there is room");
        let mut reported = 0;
        for session in sessions {
            run(&folder, &session);
            read(&folder.path);
            let recovered = recover(&folder).unwrap_or_else(|error| panic!("{error}"));
            prop_assert!(recovered.tail.next >= reported, "recovery continues at {}, before {reported}", recovered.tail.next);
            reported = recovered.tail.next;
            let sources = read(&folder.path);
            prop_assert_eq!((sources.records, sources.records + sources.lost), (recovered.records, reported));
            // The same if nothing is done at all.
            prop_assert_eq!(recover(&folder).expect("it is whole").tail, recovered.tail);
        }
    }
}
