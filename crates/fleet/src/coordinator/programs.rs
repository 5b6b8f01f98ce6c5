//! The control programs of a coordinator: which there are, who has their definitions, and what became of their runs.

mod choose;
mod held;
mod hosts;
mod raise;
mod run;
mod store;

pub use store::{ProgramStore, ProgramStoreError};

use super::members::shortened;
use super::{Coordinator, Session};
use crate::locked::lock;
use crate::program::Program;
use crate::protocol::{self, InstalledOn, InstalledPart, ProgramPart, ProgramState, ToAgent, to_agent};
use held::LastHeld;
use queuescope_log::{TextError, name_problem};
use run::{Pending, Timetable};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::Stored;

/// The most programs of a coordinator, the most bytes of the values of one, and of all programs: agents get their parts in one message.
const MOST: usize = 256;
const VALUES: usize = 1 << 18;
const ALL: usize = 8 << 20;

/// Why a program was not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The name.
    #[error("'{name}' cannot name a program: {why}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Too many.
    #[error("this coordinator has {MOST} programs already, which is its limit")]
    TooMany,
    /// Too long.
    #[error("{what} would have {bytes} bytes, and can have {most}")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// It cannot be stored.
    #[error(transparent)]
    Store(#[from] ProgramStoreError),
}

/// All programs, by name.
#[derive(Debug)]
pub struct Programs {
    store: ProgramStore,
    all: BTreeMap<String, Known>,
}

/// A program, and what became of it.
#[derive(Debug)]
struct Known {
    stored: Stored,
    program: Arc<Program>,
    /// Bytes of all of its definitions.
    bytes: usize,
    /// When it asks by the clock.
    timetable: Option<Timetable>,
    /// A run that has not begun, and whether one is in progress.
    pending: Option<Pending>,
    is_running: bool,
    held: LastHeld,
    counts: Counts,
    trouble: String,
    /// By the names of members: what they replied about their part, if they did; the part's digest.
    parts: BTreeMap<String, (u64, Option<InstalledPart>)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    runs: u64,
    raised: u64,
    undecided: u64,
    joined: u64,
}

impl Programs {
    /// The programs of a store.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn open(store: ProgramStore) -> Result<Self, ProgramError> {
        let mut all = BTreeMap::new();
        for stored in store.read()? {
            let (name, path) = (stored.name.clone(), store.path(&stored.name));
            let known = Known::new(stored).map_err(|why| ProgramStoreError::Content { path, why: why.to_string() })?;
            all.insert(name, known);
        }
        Ok(Self { store, all })
    }

    /// The definitions of a member, from all programs. Programs that contradict themselves for it note their error.
    fn parts(&mut self, member: &str) -> Vec<ProgramPart> {
        let mut parts = Vec::new();
        for (name, known) in &mut self.all {
            match known.program.definitions(member) {
                Ok(None) => _ = known.parts.remove(member),
                Ok(Some(definitions)) => {
                    let definitions = definitions.text();
                    let mut hasher = DefaultHasher::new();
                    definitions.hash(&mut hasher);
                    let digest = hasher.finish();
                    let replied = known.parts.remove(member).and_then(|(_, replied)| replied);
                    let replied = replied.filter(|replied| replied.digest == digest);
                    known.parts.insert(member.to_owned(), (digest, replied));
                    parts.push(ProgramPart { program: name.clone(), digest, definitions });
                }
                Err(why) => {
                    let error = why.to_string();
                    let failed = InstalledPart { program: name.clone(), digest: 0, error };
                    known.parts.insert(member.to_owned(), (0, Some(failed)));
                }
            }
        }
        parts
    }
}

impl Known {
    fn new(stored: Stored) -> Result<Self, TextError> {
        let values: Vec<_> = stored.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let program = Arc::new(Program::parse(&stored.name, &stored.text, &values)?);
        let bytes = program.definitions_bytes();
        let timetable = program.run().and_then(Timetable::always);
        Ok(Self {
            stored,
            program,
            bytes,
            timetable,
            pending: None,
            is_running: false,
            held: LastHeld::default(),
            counts: Counts::default(),
            trouble: String::new(),
            parts: BTreeMap::new(),
        })
    }

    fn state(&self) -> ProgramState {
        let members = self.parts.iter().map(|(member, (digest, replied))| {
            let replied = replied.as_ref();
            let error = replied.map(|replied| replied.error.clone()).unwrap_or_default();
            let is_installed = replied.is_some_and(|replied| replied.digest == *digest && replied.error.is_empty());
            InstalledOn { member: member.clone(), is_installed, error }
        });
        let Stored { name, text, values } = self.stored.clone();
        let Counts { runs, raised, undecided, joined } = self.counts;
        ProgramState {
            name,
            about: self.program.about().to_owned(),
            text,
            values: values.into_iter().collect(),
            runs,
            raised,
            undecided,
            joined,
            trouble: self.trouble.clone(),
            members: members.collect(),
            ..ProgramState::default()
        }
    }
}

impl Coordinator {
    /// Adds a control program, or replaces the one of this name, and sends its definitions to the members that it names. It is stored first.
    ///
    /// # Errors
    /// Fails if the text is wrong, or if it cannot be stored.
    pub fn add_program(&self, name: &str, text: &str, values: BTreeMap<String, String>) -> Result<(), ProgramError> {
        name_problem(name).map_err(|why| ProgramError::Name { name: shortened(name), why })?;
        let bytes = values.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > VALUES {
            return Err(ProgramError::TooLong { what: "the values of the parameters", bytes, most: VALUES });
        }
        let stored = Stored { name: name.to_owned(), text: text.to_owned(), values };
        let known = Known::new(stored)?;
        {
            let mut programs = lock(&self.shared.programs);
            let others = programs.all.iter().filter(|(other, _)| *other != name).map(|(_, known)| known.bytes);
            let bytes = others.sum::<usize>() + known.bytes;
            if bytes > ALL {
                return Err(ProgramError::TooLong { what: "the definitions of all programs", bytes, most: ALL });
            }
            if programs.all.len() >= MOST && !programs.all.contains_key(name) {
                return Err(ProgramError::TooMany);
            }
            programs.store.write(&known.stored)?;
            programs.all.insert(name.to_owned(), known);
        }
        self.end_actions(name);
        self.send_programs();
        Ok(())
    }

    /// Removes a control program, and its definitions from all members. Returns whether there was one of this name.
    ///
    /// # Errors
    /// Fails if its file cannot be removed.
    pub fn remove_program(&self, name: &str) -> Result<bool, ProgramError> {
        {
            let mut programs = lock(&self.shared.programs);
            if !programs.all.contains_key(name) {
                return Ok(false);
            }
            programs.store.remove(name)?;
            programs.all.remove(name);
        }
        self.end_actions(name);
        self.send_programs();
        Ok(true)
    }

    /// All control programs and their states, by name.
    pub fn programs(&self) -> Vec<ProgramState> {
        let mut states: Vec<_> = lock(&self.shared.programs).all.values().map(Known::state).collect();
        for state in &mut states {
            (state.acted, state.refused) = self.action_counts(&state.name);
        }
        states
    }

    /// A host is no member any more.
    pub(super) fn end_programs(&self, member: &str) {
        lock(&self.shared.programs).all.values_mut().for_each(|known| _ = known.parts.remove(member));
    }

    /// Sends to all members what they have to have.
    fn send_programs(&self) {
        let (sessions, _) = lock(&self.shared.members).sessions(&[]);
        sessions.iter().for_each(|session| self.send_program_parts(session));
        self.shared.programs_changed.notify_one();
    }

    /// Sends to a member the definitions that it has to have.
    pub(super) fn send_program_parts(&self, session: &Session) {
        // A later list must not go out before this one.
        let mut programs = lock(&self.shared.programs);
        let parts = programs.parts(session.name());
        let message = Some(to_agent::Message::Programs(protocol::Programs { parts }));
        let is_sent = session.send(ToAgent { message });
        drop(programs);
        if !is_sent {
            self.detach(session);
        }
    }

    /// A member replied which definitions it has.
    pub(super) fn installed(&self, session: &Session, installed: protocol::Installed) {
        let mut programs = lock(&self.shared.programs);
        for part in installed.parts {
            let known = programs.all.get_mut(&part.program);
            let known = known.and_then(|known| known.parts.get_mut(session.name()));
            if let Some((digest, replied)) = known
                && *digest == part.digest
            {
                *replied = Some(InstalledPart { error: part.error.chars().take(LONGEST_ERROR).collect(), ..part });
            }
        }
    }
}

/// The most characters of an error of a member.
const LONGEST_ERROR: usize = 4_096;
