//! The link that a command runs behind, or the one between two interfaces.

use crate::border::{Border, Side};
use crate::carried::{notes, start_network, timing_report};
use crate::command::{IsolatedCommand, OutputTarget, Signal};
use crate::device::Device;
use crate::error::{Error, needed};
use crate::plan::LinkOptions;
use crate::real_time::{PacketRoute, PacketRoutes, Watcher};
use crate::testbed::{NetworkEnd, Testbed};
use crate::timing::{Sleep, sleep_exactly};
use queuescope_ingest::Stop;
use queuescope_run::summary::About;
use queuescope_run::{ScenarioRun, metered_link};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, EntranceParams, LinkId, Simulation, build_without_traffic};
use queuescope_wire::{Class, FlowKey, Nanos};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// How often to check whether the command has ended and whether something failed.
const CHECK_INTERVAL: Nanos = Nanos(20_000_000);
/// How long a command may take to end after each signal.
const GRACE: Nanos = Nanos(1_000_000_000);

/// The network of a command's link, or of one between two interfaces, before it carries packets.
pub struct CommandLink {
    scenario: Scenario,
    simulation: Simulation,
    meters: Vec<LinkId>,
    routes: PointToPoint,
}

impl CommandLink {
    /// Builds the network that `options` describe.
    ///
    /// # Errors
    /// Fails if the options describe no valid link, or the trace cannot be read.
    pub fn new(options: &LinkOptions) -> Result<Self, Error> {
        let (scenario, files) = options.scenario()?;
        let Built { mut simulation, meters, hosts, .. } = build_without_traffic(&scenario, &files)?;
        let (inside, outside) = hosts[0][0];
        let mut way = |hosts, to| -> Result<PacketRoute, Error> {
            let params = EntranceParams { hosts, group: 0, class: Class(0), activity: None };
            Ok(PacketRoute { entrance: simulation.entrance(params)?, to, l4s: false })
        };
        let routes = PointToPoint([way((inside, outside), 1)?, way((outside, inside), 0)?]);
        Ok(Self { scenario, simulation, meters, routes })
    }

    /// The link as a scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The network, and those of its links whose queues are analysed.
    pub fn network(&self) -> (&Simulation, &[LinkId]) {
        (&self.simulation, &self.meters)
    }

    /// The border of an ABC domain at its ends, if the program of its queue is ABC.
    pub fn border(&self) -> Option<Border> {
        self.scenario.network().links.first().and_then(|link| Border::of(link.pipeline.as_ref()))
    }

    /// Carries packets between the ends that [`Program::start`] made or [`LinkEnds::between`], until the watcher ends it.
    ///
    /// # Errors
    /// Fails if an interface is gone, or more packets are under way than there is room for.
    pub fn carry(self, ends: &LinkEnds, stop: &Stop, watcher: &mut impl Watcher) -> Result<ScenarioRun, Error> {
        // Packets of a TUN interface have no place for an activity header.
        let border = self.border().filter(|_| ends.ends.iter().all(|end| matches!(end.device, Device::Ethernet(_))));
        let Self { scenario, simulation, meters, routes } = self;
        let (_, meter) = metered_link(None, &simulation, &meters)?;
        let mut real = start_network(&scenario, simulation, routes, &ends.ends, ends.sleep).with_border(border);
        real.run(Nanos::MAX, CHECK_INTERVAL, stop.waker(), watcher)?;
        let exact = timing_report(&real, &ends.ends)?;
        let skipped = notes(&real).collect();
        let about = About::new(&scenario, meter, Vec::new());
        Ok(ScenarioRun { simulation: real.into_simulation(), about, real_time: Some(exact), skipped })
    }
}

/// The two ends of a link. They belong to the thread that made them.
#[derive(Debug)]
pub struct LinkEnds {
    /// The command's end or the first interface, then the other.
    ends: [NetworkEnd; 2],
    /// How exact the sleeps of the thread are.
    sleep: Sleep,
}

impl LinkEnds {
    /// Two interfaces of this namespace as the ends of a link: what arrives at the first one passes the queue of the link and leaves by the second one, and
    /// the other way around. From now on, sleeps of this thread are as exact as this records.
    ///
    /// # Errors
    /// Fails if one of them cannot be opened, or if frames with an activity header do not fit the one within the domain.
    pub fn between([first, second]: [&str; 2], border: Option<&Border>) -> Result<Self, Error> {
        let ends = [NetworkEnd::at(first)?, NetworkEnd::at(second)?];
        border.map_or(Ok(()), |border| check_mtu(border.sides(), &ends))?;
        let sleep = sleep_exactly().map_err(Error::system("cannot set the timer slack of the thread"))?;
        Ok(Self { ends, sleep })
    }
}

/// Checks that frames which come from outside of a domain fit the interface within it, with their header.
fn check_mtu(sides: [Side; 2], ends: &[NetworkEnd; 2]) -> Result<(), Error> {
    let mtu = |end: &NetworkEnd| match &end.device {
        Device::Ethernet(port) => port.mtu(),
        Device::Tun(_) => u32::MAX,
    };
    let (inside, outside) = match sides {
        [Side::Outside, Side::Inside] => (&ends[1], &ends[0]),
        [Side::Inside, Side::Outside] => (&ends[0], &ends[1]),
        _ => return Ok(()),
    };
    let (within, without) = (mtu(inside), mtu(outside));
    if within >= needed(without) {
        return Ok(());
    }
    let name = |end: &NetworkEnd| end.device.name().to_owned();
    Err(Error::Mtu { inside: name(inside), mtu: within, outside: name(outside), outside_mtu: without })
}

/// A command that runs behind a link. If it does not end by itself, signals end it.
#[derive(Debug)]
pub struct Program {
    command: IsolatedCommand,
    /// The next signal, and when to send it.
    next: Option<(Nanos, Signal)>,
    status: Option<ExitStatus>,
}

impl Program {
    /// Makes the ends of a link, and starts the command `words` at one of them. From now on, sleeps of this thread are as exact as
    /// [`LinkEnds`] records. `keeper` is as for [`IsolatedCommand::run`].
    ///
    /// # Errors
    /// Fails if this user lacks the rights to make the ends, or the keeper cannot be run.
    pub fn start(keeper: &Path, words: &[OsString], output: OutputTarget) -> Result<(Self, LinkEnds), Error> {
        let sleep = sleep_exactly().map_err(Error::system("cannot set the timer slack of the thread"))?;
        let Testbed { inside, outside, .. } = Testbed::new()?;
        let no_namespace = || io::Error::other("the command's end has no namespace");
        let run_behind =
            || IsolatedCommand::run(inside.namespace.as_ref().ok_or_else(no_namespace)?, keeper, words, output);
        let command = run_behind().map_err(Error::system("cannot run a command behind a link"))?;
        Ok((Self { command, next: None, status: None }, LinkEnds { ends: [inside, outside], sleep }))
    }

    /// Whether the command has ended. If a signal requests an end at `now`, or the viewer does (`is_over`), the command gets one signal after
    /// another. The signal that came to this process may have reached the command as well, so the command gets some time before the first.
    /// A request of the viewer reaches only this process, so the command gets a signal at once.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn has_ended(&mut self, now: Nanos, is_signalled: bool, is_over: bool) -> io::Result<bool> {
        self.status = self.command.status()?;
        if self.status.is_none() && (is_signalled || is_over) {
            self.status = self.end(now, is_signalled)?;
        }
        Ok(self.status.is_some())
    }

    /// The exit status as shells report it; 1 if there is none.
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
            return self.command.end().map(Some);
        }
        self.next = Some((later, if signal == Signal::INT { Signal::TERM } else { Signal::KILL }));
        self.command.signal(signal).map(|()| None)
    }
}

/// A network of two ends: every packet goes to the other end.
struct PointToPoint([PacketRoute; 2]);

impl PacketRoutes for PointToPoint {
    fn way(&self, from: usize, _key: &FlowKey) -> Option<&PacketRoute> {
        self.0.get(from)
    }
}
