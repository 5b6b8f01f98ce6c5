//! The link of a command.

use crate::carried::{begun, notes, real_time};
use crate::command::{Behind, Prints, Signal};
use crate::error::Error;
use crate::plan::LinkOptions;
use crate::real_time::{Watcher, Way, Ways};
use crate::testbed::{End, Testbed};
use crate::timing::{Sleep, sleep_exactly};
use queuescope_ingest::Stop;
use queuescope_run::summary::About;
use queuescope_run::{Ran, metered_link};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, EntranceParams, LinkId, Simulation, build_without_traffic};
use queuescope_wire::{Class, FlowKey, Nanos};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// How often it is looked whether the command has ended, and what went wrong.
const LOOK: Nanos = Nanos(20_000_000);
/// How long a command that was sent a signal may take to end, each time.
const GRACE: Nanos = Nanos(1_000_000_000);

/// The link of a command: its network, before it carries anything.
pub struct CommandLink {
    scenario: Scenario,
    simulation: Simulation,
    meters: Vec<LinkId>,
    ways: BothWays,
}

impl CommandLink {
    /// As the options say.
    ///
    /// # Errors
    /// If there can be no such link, or its trace cannot be read.
    pub fn new(options: &LinkOptions) -> Result<Self, Error> {
        let (scenario, files) = options.scenario()?;
        let Built { mut simulation, meters, hosts, .. } = build_without_traffic(&scenario, &files)?;
        let (inside, outside) = hosts[0][0];
        let mut way = |hosts, to| -> Result<Way, Error> {
            let params = EntranceParams { hosts, group: 0, class: Class(0), activity: None };
            Ok(Way { entrance: simulation.entrance(params)?, to, l4s: false })
        };
        let ways = BothWays([way((inside, outside), 1)?, way((outside, inside), 0)?]);
        Ok(Self { scenario, simulation, meters, ways })
    }

    /// The link as a scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Its network, and the links of that whose queues are analysed.
    pub fn network(&self) -> (&Simulation, &[LinkId]) {
        (&self.simulation, &self.meters)
    }

    /// Carries what comes, between the ends that the program has [begun](Program::begin) with, until the watcher says that it is over.
    ///
    /// # Errors
    /// If an interface is gone.
    pub fn carry(self, ends: &Ends, stop: &Stop, watcher: &mut impl Watcher) -> Result<Ran, Error> {
        let Self { scenario, simulation, meters, ways } = self;
        let (_, meter) = metered_link(None, &simulation, &meters)?;
        let mut real = begun(&scenario, simulation, ways, &ends.ends, ends.sleep);
        real.run(Nanos::MAX, LOOK, stop.waker(), watcher)?;
        let exact = real_time(&real, &ends.ends)?;
        let skipped = notes(&real).collect();
        let about = About::of(&scenario, meter, Vec::new());
        Ok(Ran { simulation: real.into_simulation(), about, real_time: Some(exact), skipped })
    }
}

/// The ends of a command's link, for the thread that made them.
#[derive(Debug)]
pub struct Ends {
    /// That of the command, and the other.
    ends: [End; 2],
    /// How exactly the thread sleeps.
    sleep: Sleep,
}

/// A command that runs behind a link, and how it is ended if it does not end by itself.
#[derive(Debug)]
pub struct Program {
    behind: Behind,
    /// When it is sent what next.
    next: Option<(Nanos, Signal)>,
    status: Option<ExitStatus>,
}

impl Program {
    /// Makes the ends of a link and begins the command `words` at one of them; sleeps of this thread are as exact from now on as is said.
    /// `keeper` is as for [`Behind::run`].
    ///
    /// # Errors
    /// If this user may not make the ends, or the keeper cannot be run.
    pub fn begin(keeper: &Path, words: &[OsString], prints: Prints) -> Result<(Self, Ends), Error> {
        let sleep = sleep_exactly().map_err(Error::system("cannot wake up when it is time"))?;
        let Testbed { inside, outside, .. } = Testbed::new()?;
        let no_namespace = || io::Error::other("the command's end is in no namespace");
        let run_behind = || Behind::run(inside.namespace.as_ref().ok_or_else(no_namespace)?, keeper, words, prints);
        let behind = run_behind().map_err(Error::system("cannot run a command behind a link"))?;
        Ok((Self { behind, next: None, status: None }, Ends { ends: [inside, outside], sleep }))
    }

    /// Whether it has ended. If a signal asks for an end at `now`, or the viewer does (`is_over`), the command gets signals, one after
    /// another. A signal that came here may have come to the command, too, so that it gets some time first; what the viewer wants it
    /// does not know yet.
    ///
    /// # Errors
    /// Those of the system.
    pub fn has_ended(&mut self, now: Nanos, is_signalled: bool, is_over: bool) -> io::Result<bool> {
        self.status = self.behind.ended()?;
        if self.status.is_none() && (is_signalled || is_over) {
            self.status = self.end(now, is_signalled)?;
        }
        Ok(self.status.is_some())
    }

    /// Its status as shells have it; 1 if it has none.
    pub fn code(&self) -> u8 {
        let code = |status: ExitStatus| status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        self.status.map_or(1, |status| code(status).unwrap_or(1) as u8)
    }

    fn end(&mut self, now: Nanos, is_signalled: bool) -> io::Result<Option<ExitStatus>> {
        let later = now.saturating_add(GRACE);
        let first = if is_signalled { (later, Signal::TERM) } else { (now, Signal::INT) };
        let (at, signal) = *self.next.get_or_insert(first);
        if now < at {
            return Ok(None);
        }
        if signal == Signal::KILL {
            return self.behind.end().map(Some);
        }
        self.next = Some((later, if signal == Signal::INT { Signal::TERM } else { Signal::KILL }));
        self.behind.signal(signal).map(|()| None)
    }
}

/// Two ends with everything on both sides.
struct BothWays([Way; 2]);

impl Ways for BothWays {
    fn way(&self, from: usize, _key: &FlowKey) -> Option<&Way> {
        self.0.get(from)
    }
}
