//! The definitions that a coordinator's programs install on this host.

use super::Served;
use crate::locked::lock;
use crate::protocol::{Installed, InstalledPart, ProgramPart, Programs};
use queuescope_log::{Definitions, name_problem};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why there are no definitions.
const NOT_OWN: &str =
    "it serves a folder that another process records to, so it computes no definitions: give them to that process";
/// The most programs of a host.
const MOST: usize = 256;

/// What is installed, by the names of programs. It outlives streams: while the coordinator is away, triggers go on.
#[derive(Debug, Default)]
pub struct InstalledPrograms {
    /// The number of lists that came.
    lists: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last list that was followed.
    list: u64,
    parts: BTreeMap<String, InstalledPart>,
}

impl InstalledPrograms {
    /// A list came: returns its number.
    pub(super) fn receive(&self) -> u64 {
        self.lists.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Served {
    /// Installs the parts of programs, and removes what is not among them. A part that is there already stays as it is, with the windows of its
    /// triggers. This takes as long as the records in memory take to be examined. Returns `None` if a later list was followed already.
    pub(super) fn install(&self, number: u64, programs: Programs) -> Option<Installed> {
        let recorder = self.source.own().map(|records| &*records.0);
        let mut state = lock(&self.programs.state);
        if state.list > number {
            return None;
        }
        state.list = number;
        let parts = &mut state.parts;
        // What goes or changes makes room for the names of the others.
        let is_same = |known: &InstalledPart| {
            let mut wanted = programs.parts.iter().filter(|part| part.program == known.program);
            wanted.any(|part| part.digest == known.digest)
        };
        let gone: Vec<_> = parts.values().filter(|known| !is_same(known)).map(|known| known.program.clone()).collect();
        for name in gone {
            recorder.inspect(|recorder| _ = recorder.uninstall(&name));
            parts.remove(&name);
        }
        for (count, part) in programs.parts.into_iter().enumerate() {
            let ProgramPart { program, digest, definitions } = part;
            let is_there = |known: &InstalledPart| known.digest == digest && known.error.is_empty();
            if parts.get(&program).is_some_and(is_there) {
                continue;
            }
            let installed = match count {
                MOST.. => Err(format!("this host has {MOST} programs already, which is its limit")),
                _ => self.install_part(&program, &definitions),
            };
            let error = installed.err().unwrap_or_default();
            parts.insert(program.clone(), InstalledPart { program, digest, error });
        }
        Some(Installed { parts: parts.values().cloned().collect() })
    }

    fn install_part(&self, program: &str, definitions: &str) -> Result<(), String> {
        name_problem(program)?;
        let recorder = &*self.source.own().ok_or(NOT_OWN)?.0;
        let schema = recorder.log().schema();
        let parsed = Definitions::parse(program, definitions, schema).map_err(|error| error.to_string())?;
        recorder.install(program, &parsed).map_err(|error| error.to_string())
    }
}
