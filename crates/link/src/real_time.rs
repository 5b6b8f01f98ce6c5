//! The network of a simulation, whose time is the real one.

use crate::connections::Connections;
use crate::frames::{Frame, Frames};
use crate::machine_limit::{MachineLimit, Watch};
use crate::rewrite::{set_ecn, set_window};
use crate::testbed::End;
use crate::timing::{GoesFirst, Sleep, Timing};
use queuescope_live::{Incoming, now, timespec};
use queuescope_queue::{Dropped, Headers, MarkReason};
use queuescope_sim::{Entrance, ExternalPacket, InFlight, LinkId, Observer, Simulation};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{Departure, Ecn, FlowId, FlowKey, FlowTable, Nanos, Packet, PacketId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io;

/// Reads from one end before others have their turn.
const BATCH: usize = 16;
/// A sleep ends this much before something is due, at most: by as much as sleeps are too long here. So nobody sleeps where more than
/// 480 Mb/s of packets of 1500 bytes are on their way.
const EARLIEST: Nanos = Nanos(25_000);
/// Flows that are told apart at a time.
const FLOWS: usize = 1 << 16;

/// Told what happens to packets at the links of the network, in order of time, which counts from the beginning of the run.
pub trait Watcher {
    /// A packet left the queue of a link.
    fn departed(&mut self, _link: LinkId, _departure: &Departure, _packet: &InFlight, _frame: &Frame) {}

    /// A packet was dropped at a link.
    fn dropped(&mut self, _link: LinkId, _dropped: &Dropped, _packet: &InFlight, _frame: &Frame) {}

    /// A packet that has left the queue of a link was lost on it.
    fn lost(&mut self, _link: LinkId, _packet: &InFlight, _now: Nanos, _frame: &Frame) {}

    /// A packet was marked at a link; `marked` shows it as it is now.
    fn marked(
        &mut self,
        _link: LinkId,
        _marked: &Packet,
        _reason: MarkReason,
        _now: Nanos,
        _packet: &InFlight,
        _frame: &Frame,
    ) {
    }

    /// It begins, at `origin` by the clock that [`now`] reads.
    fn begins(&mut self, _origin: Nanos) {}

    /// Asked now and then, and when there is something to read from the waker: whether it goes on.
    fn look(&mut self, now: Nanos) -> Running;
}

/// Where a packet comes in, and the number of the end that it is for.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Where it comes into the network.
    pub entrance: Entrance,
    /// Whose it is when it leaves that.
    pub to: u32,
    /// Whether packets that are ECN-capable are ECT(1) from here on (RFC 9331): the kernel's TCP sends ECT(0), whatever its congestion
    /// control.
    pub l4s: bool,
}

/// Which way a packet takes.
pub trait Ways {
    /// That of a packet that was read from the end with a number. None: there is none.
    fn way(&self, from: usize, key: &FlowKey) -> Option<&Way>;
}

/// Why a link ends.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An interface cannot be read or written any more.
    #[error("the interface {name} of the link is gone: {why}")]
    Interface {
        /// Its name.
        name: String,
        /// What the kernel said.
        why: io::Error,
    },
    /// More packets wait, or are on their way, than there is room for.
    #[error(
        "{packets} packets wait or are on their way, more than there is room for: give queues a limit, or send less"
    )]
    Full {
        /// How many.
        packets: usize,
    },
    /// A call that does not fail as a rule.
    #[error("cannot {what}: {why}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        why: io::Error,
    },
}

/// Whether a link goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// It goes on.
    On,
    /// That was all.
    Over,
}

/// A network in real time.
#[derive(Debug)]
pub struct RealTime<'a, W> {
    simulation: Simulation,
    ways: W,
    ends: &'a [End; 2],
    frames: Frames,
    flows: FlowTable<FlowKey>,
    /// What is known of connections, if there is who reads TCP headers.
    connections: Option<Connections>,
    parser: Parser,
    timing: Timing,
    sleep: Sleep,
    watch: Watch,
    /// Packets that came.
    came: u64,
    /// When it began, by the kernel's clock.
    origin: Nanos,
    counts: Counts,
}

/// What was remarkable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came and were for nobody.
    pub no_way: u64,
    /// Packets that the machine had no memory for as they were given to their end.
    pub not_taken: u64,
    /// Super-packets that cannot be cut, and went through whole.
    pub uncut: u64,
}

impl<'a, W: Ways> RealTime<'a, W> {
    /// A network whose packets come from and go to `ends`, by `ways`, where sleeps are as exact as that. Its time begins now.
    pub fn begin(simulation: Simulation, ways: W, ends: &'a [End; 2], sleep: Sleep) -> Self {
        Self {
            simulation,
            ways,
            ends,
            frames: Frames::default(),
            flows: FlowTable::with_limit(FLOWS),
            connections: None,
            parser: Parser::new(Tunnel::Outer),
            timing: Timing::default(),
            sleep,
            watch: Watch::new(),
            came: 0,
            origin: now(),
            counts: Counts::default(),
        }
    }

    /// The same with TCP headers of packets, for switch programs that read and rewrite them.
    #[must_use]
    pub fn with_tcp_headers(self) -> Self {
        Self { connections: Some(Connections::default()), ..self }
    }

    /// Moves packets until `end`, or until the watcher says that it is over, who is asked every `every`, and whenever there is
    /// something to read from `waker`.
    ///
    /// # Errors
    /// If an interface is gone.
    pub fn run(
        &mut self,
        end: Nanos,
        every: Nanos,
        waker: BorrowedFd<'_>,
        watcher: &mut impl Watcher,
    ) -> Result<(), LinkError> {
        let mut look = Nanos::ZERO;
        let mut first = GoesFirst::begin(self.now());
        let mut incoming = Incoming::default();
        watcher.begins(self.origin);
        // When it was last looked at the clock, what had moved then, and how long was waited since.
        let (mut last, mut moved, mut waited) = (self.now(), 0, Nanos::ZERO);
        loop {
            let read = self.read(&mut incoming, watcher)?;
            let at = self.now();
            let all = self.came + self.timing.packets();
            if all > moved {
                self.watch.moved(at.saturating_sub(last).saturating_sub(waited));
            }
            (last, moved, waited) = (at, all, Nanos::ZERO);
            self.watch.turn(at, &self.simulation);
            first.turn(at);
            self.go_on(at, watcher)?;
            if at >= look {
                look = at.saturating_add(every);
                if watcher.look(at) == Running::Over {
                    return Ok(());
                }
            }
            if at >= end {
                return Ok(());
            }
            if self.simulation.is_full() {
                return Err(LinkError::Full { packets: self.simulation.on_their_way() });
            }
            if !read {
                let early = self.sleep.p50.min(EARLIEST);
                let due = self.simulation.next_time().unwrap_or(Nanos::MAX).saturating_sub(early);
                let before = self.now();
                if self.wait(due.min(look).min(end), waker)? {
                    look = Nanos::ZERO;
                }
                waited = self.now().saturating_sub(before);
            }
        }
    }

    /// The simulation goes on until `at`, and what it delivers is given to its end.
    fn go_on(&mut self, at: Nanos, watcher: &mut impl Watcher) -> Result<(), LinkError> {
        let Self { simulation, ends, frames, timing, origin, counts, .. } = self;
        let mut hands = Delivery { ends, frames, timing, counts, watcher, origin: *origin, failure: None };
        simulation.run_until(at, &mut hands);
        hands.failure.map_or(Ok(()), Err)
    }

    /// Reads what has come, a batch from each end; whether there may be more.
    fn read(&mut self, incoming: &mut Incoming, watcher: &mut impl Watcher) -> Result<bool, LinkError> {
        let mut more = false;
        for from in 0..self.ends.len() {
            more |= self.read_from(from, incoming, watcher)?;
        }
        Ok(more)
    }

    fn read_from(
        &mut self,
        from: usize,
        incoming: &mut Incoming,
        watcher: &mut impl Watcher,
    ) -> Result<bool, LinkError> {
        for _ in 0..BATCH {
            let end = &self.ends[from];
            if !end.tun.read(incoming).map_err(|why| gone(end, why))? {
                return Ok(false);
            }
            let at = self.now();
            self.counts.uncut += u64::from(incoming.is_uncut());
            while let Some(bytes) = incoming.take() {
                self.come(from, bytes, at, watcher)?;
            }
        }
        Ok(true)
    }

    /// A packet has come from an end.
    fn come(&mut self, from: usize, bytes: &[u8], at: Nanos, watcher: &mut impl Watcher) -> Result<(), LinkError> {
        self.came += 1;
        let length = bytes.len() as u32;
        let seen = self.parser.parse(LinkType::RawIp, length, bytes);
        let Some(&Way { entrance, to, l4s }) = self.ways.way(from, &seen.key) else {
            self.counts.no_way += 1;
            return Ok(());
        };
        // A connection may change how its packets are to be treated, each side for itself.
        let dscp = if self.connections.is_some() { 0 } else { seen.key.dscp };
        let key = FlowKey { dscp, ..seen.key };
        let flow = flow_of(&mut self.flows, &mut self.connections, &key, at);
        let tcp = self.connections.is_some().then(|| {
            let reverse = flow_of(&mut self.flows, &mut self.connections, &reversed(&key), at);
            let (segment, window) = self.connections.as_mut()?.read(bytes, [flow, reverse])?;
            Some(((segment, reverse), window))
        });
        let (tcp, window) = tcp.flatten().unzip();
        let packet = ExternalPacket {
            tag: self.frames.insert(bytes, seen, window, to),
            flow,
            tcp,
            bytes: length,
            ecn: if l4s && seen.ecn == Ecn::Ect0 { Ecn::Ect1 } else { seen.ecn },
        };
        let Self { simulation, ends, frames, timing, origin, counts, .. } = self;
        let mut hands = Delivery { ends, frames, timing, counts, watcher, origin: *origin, failure: None };
        simulation.come(&entrance, &packet, at, &mut hands);
        hands.failure.map_or(Ok(()), Err)
    }

    /// Waits for packets until `due`; whether there is something to read from `waker`.
    fn wait(&self, due: Nanos, waker: BorrowedFd<'_>) -> Result<bool, LinkError> {
        let pause = due.saturating_sub(self.now());
        if pause == Nanos::ZERO {
            return Ok(false);
        }
        let [one, other] = self.ends;
        let mut doors = [
            PollFd::from_borrowed_fd(waker, PollFlags::IN),
            PollFd::new(&one.tun, PollFlags::IN),
            PollFd::new(&other.tun, PollFlags::IN),
        ];
        match poll(&mut doors, Some(&timespec(pause))) {
            Ok(_) => Ok(doors[0].revents().contains(PollFlags::IN)),
            Err(Errno::INTR) => Ok(true),
            Err(why) => Err(LinkError::System { what: "wait for packets", why: why.into() }),
        }
    }

    /// The time since it began.
    fn now(&self) -> Nanos {
        now().saturating_sub(self.origin)
    }

    /// How late packets were given to their ends.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// How exact sleeps are here.
    pub fn sleep(&self) -> Sleep {
        self.sleep
    }

    /// How long the machine held packets back.
    pub fn machine_limit(&self) -> MachineLimit {
        self.watch.machine_limit()
    }

    /// What was remarkable.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the parser could not read.
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// The network as it is.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// The network, when it is over.
    pub fn into_simulation(self) -> Simulation {
        self.simulation
    }
}

/// Gives what arrives to the end that it is for.
struct Delivery<'a, O> {
    ends: &'a [End; 2],
    frames: &'a mut Frames,
    timing: &'a mut Timing,
    counts: &'a mut Counts,
    watcher: &'a mut O,
    origin: Nanos,
    failure: Option<LinkError>,
}

impl<O: Watcher> Observer for Delivery<'_, O> {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        if let Some(tag) = packet.foreign() {
            self.watcher.departed(link, departure, packet, self.frames.at(tag));
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, _headers: &Headers) {
        if let Some(tag) = packet.foreign() {
            self.watcher.dropped(link, dropped, packet, self.frames.at(tag));
            self.frames.remove(tag);
        }
    }

    fn lost(&mut self, link: LinkId, _id: PacketId, packet: &InFlight, _headers: &Headers, now: Nanos) {
        if let Some(tag) = packet.foreign() {
            self.watcher.lost(link, packet, now, self.frames.at(tag));
            self.frames.remove(tag);
        }
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &InFlight) {
        if let Some(tag) = packet.foreign() {
            self.watcher.marked(link, marked, reason, now, packet, self.frames.at(tag));
        }
    }

    fn delivered(&mut self, _id: PacketId, packet: &InFlight, headers: &Headers, due: Nanos) {
        let Some(tag) = packet.foreign() else { return };
        let frame = self.frames.at(tag);
        if frame.seen.is_some_and(|seen| seen.ecn != packet.ecn) {
            set_ecn(frame.bytes_mut(), packet.ecn);
        }
        if let Some((window, field)) = frame.window.and_then(|window| Some((window, window.changed(headers)?))) {
            set_window(frame.bytes_mut(), window.header.into(), field);
        }
        let end = &self.ends[frame.to as usize];
        self.timing.record(now().saturating_sub(self.origin).saturating_sub(due));
        match end.tun.write(frame.bytes()) {
            Ok(true) => {}
            Ok(false) => self.counts.not_taken += 1,
            Err(why) => self.failure = Some(gone(end, why)),
        }
        self.frames.remove(tag);
    }
}

fn gone(end: &End, why: io::Error) -> LinkError {
    LinkError::Interface { name: end.tun.name().to_owned(), why }
}

/// The id of a flow; idle ones are taken back if there are many.
fn flow_of(flows: &mut FlowTable<FlowKey>, connections: &mut Option<Connections>, key: &FlowKey, at: Nanos) -> FlowId {
    const IDLE: Nanos = Nanos(60_000_000_000);
    if flows.is_full() {
        flows.expire(at.saturating_sub(IDLE), |flow, _| connections.iter_mut().for_each(|it| it.forget(flow)));
    }
    flows.intern(key, key.digest(), at).0
}

/// That of the packets in the opposite direction.
fn reversed(key: &FlowKey) -> FlowKey {
    FlowKey { src: key.dst, dst: key.src, src_port: key.dst_port, dst_port: key.src_port, ..*key }
}
