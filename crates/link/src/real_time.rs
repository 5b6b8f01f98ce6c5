//! Runs the network of a simulation in real time.

use crate::border::Border;
use crate::connections::Connections;
use crate::frames::{Frame, Frames};
use crate::held_back::{HeldBack, LoadMonitor};
use crate::rewrite::{set_ecn, set_window};
use crate::testbed::NetworkEnd;
use crate::timing::{RealTimePriority, Sleep, Timing};
use queuescope_live::{Incoming, Transfer, now, timespec};
use queuescope_queue::{Dropped, Headers, Host, MarkReason};
use queuescope_sim::{Entrance, ExternalPacket, InFlight, LinkId, Observer, Simulation};
use queuescope_wire::parse::{Parser, Tunnel};
use queuescope_wire::{Departure, Ecn, Family, FlowId, FlowKey, FlowTable, Nanos, Packet, PacketId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io;

/// Packets to read from one end before the other has its turn.
const BATCH: usize = 16;
/// A sleep ends before the next event by the time by which sleeps are too long here, and by this at most. So the thread does not sleep
/// while more than 480 Mb/s of packets of 1500 bytes are on their way.
const EARLIEST: Nanos = Nanos(25_000);
/// The largest number of flows that are kept at a time.
const FLOWS: usize = 1 << 16;

/// Receives the events at the links of the network, in order of time. Time counts from the start of the run.
pub trait Watcher {
    /// A packet left the queue of a link.
    fn departed(&mut self, _link: LinkId, _departure: &Departure, _packet: &InFlight, _frame: &Frame) {}

    /// A packet was dropped at a link.
    fn dropped(&mut self, _link: LinkId, _dropped: &Dropped, _packet: &InFlight, _frame: &Frame) {}

    /// A packet that has left the queue of a link was lost on it.
    fn lost(&mut self, _link: LinkId, _packet: &InFlight, _now: Nanos, _frame: &Frame) {}

    /// A packet was marked at a link; `marked` is the packet with its mark.
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

    /// The run starts, at `origin` of the clock that [`now`] reads.
    fn begins(&mut self, _origin: Nanos) {}

    /// Called periodically, and when the waker is readable. Returns whether the run continues.
    fn look(&mut self, now: Nanos) -> RunState;
}

/// Where a packet enters the network, and which end receives it.
#[derive(Debug, Clone, Copy)]
pub struct PacketRoute {
    /// Where it enters the network.
    pub entrance: Entrance,
    /// The index of the end that receives it when it leaves the network.
    pub to: u32,
    /// Whether ECN-capable packets are changed to ECT(1) when they enter (RFC 9331). The kernel's TCP sends ECT(0) with every
    /// congestion control.
    pub l4s: bool,
}

/// Maps packets to routes.
pub trait PacketRoutes {
    /// The route of a packet of flow `key` that was read from end `from`; `None` if no host has its destination address.
    fn way(&self, from: usize, key: &FlowKey) -> Option<&PacketRoute>;
}

/// Why a link failed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An interface cannot be read or written any more.
    #[error("the interface {name} of the link is gone: {why}")]
    Interface {
        /// The interface's name.
        name: String,
        /// The error of the system call.
        why: io::Error,
    },
    /// More packets wait or are on their way than there is room for.
    #[error(
        "{packets} packets wait or are on their way, more than there is room for: give queues a limit, or send less"
    )]
    Full {
        /// The number of packets.
        packets: usize,
    },
    /// A system call failed that rarely fails.
    #[error("cannot {what}: {why}")]
    System {
        /// What failed.
        what: &'static str,
        /// The error of the system call.
        why: io::Error,
    },
}

/// Whether a run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It continues.
    On,
    /// It is over.
    Over,
}

/// A network that runs in real time.
#[derive(Debug)]
pub struct RealTime<'a, W> {
    simulation: Simulation,
    routes: W,
    ends: &'a [NetworkEnd; 2],
    frames: Frames,
    flows: FlowTable<FlowKey>,
    /// The state of connections, if a switch program reads TCP headers.
    connections: Option<Connections>,
    /// The border of an ABC domain, if frames may have activity headers.
    border: Option<Border>,
    parser: Parser,
    timing: Timing,
    sleep: Sleep,
    load: LoadMonitor,
    /// Packets that arrived from both ends.
    arrived: u64,
    /// When the run started, by the kernel's clock.
    origin: Nanos,
    counts: TransitCounts,
}

/// Packets that the network could not carry as they arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransitCounts {
    /// Packets for an address that no host has.
    pub no_route: u64,
    /// Packets that an end did not accept, because the machine had no memory for them.
    pub not_accepted: u64,
    /// Super-packets that could not be segmented, and passed as one packet.
    pub unsegmented: u64,
    /// Super-packets that could not be read.
    pub unreadable: u64,
    /// Packets that were longer than the MTU of the interface to which they went.
    pub too_long: u64,
}

impl<'a, W: PacketRoutes> RealTime<'a, W> {
    /// A network whose packets come from and go to `ends`, by `routes`. `sleep` is how exact sleeps are. Its time starts now.
    pub fn begin(simulation: Simulation, routes: W, ends: &'a [NetworkEnd; 2], sleep: Sleep) -> Self {
        Self {
            simulation,
            routes,
            ends,
            frames: Frames::default(),
            flows: FlowTable::with_limit(FLOWS),
            connections: None,
            border: None,
            parser: Parser::new(Tunnel::Outer),
            timing: Timing::default(),
            sleep,
            load: LoadMonitor::new(),
            arrived: 0,
            origin: now(),
            counts: TransitCounts::default(),
        }
    }

    /// Parses TCP headers of packets as well, for switch programs that read and rewrite them.
    #[must_use]
    pub fn with_tcp_headers(self) -> Self {
        Self { connections: Some(Connections::default()), ..self }
    }

    /// Reads and writes activity headers of frames, at the border of an ABC domain.
    #[must_use]
    pub fn with_border(self, border: Option<Border>) -> Self {
        Self { border, ..self }
    }

    /// Moves packets until `end`, or until the watcher ends the run. The watcher is called at intervals of `every`, and whenever
    /// `waker` is readable.
    ///
    /// # Errors
    /// Fails if an interface is gone, or more packets wait or are on their way than there is room for.
    pub fn run(
        &mut self,
        end: Nanos,
        every: Nanos,
        waker: BorrowedFd<'_>,
        watcher: &mut impl Watcher,
    ) -> Result<(), LinkError> {
        let mut next_look = Nanos::ZERO;
        let mut priority = RealTimePriority::new(self.now());
        let mut incoming = Incoming::default();
        watcher.begins(self.origin);
        // When the clock was last read, how many packets had moved by then, and how long the thread has waited since.
        let (mut last, mut moved, mut waited) = (self.now(), 0, Nanos::ZERO);
        loop {
            let read = self.read(&mut incoming, watcher)?;
            let at = self.now();
            let all = self.arrived + self.timing.packets();
            if all > moved {
                self.load.moved(at.saturating_sub(last).saturating_sub(waited));
            }
            (last, moved, waited) = (at, all, Nanos::ZERO);
            self.load.check(at, &self.simulation);
            priority.check(at);
            self.advance(at, watcher)?;
            if at >= next_look {
                next_look = at.saturating_add(every);
                if watcher.look(at) == RunState::Over {
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
                if self.wait(due.min(next_look).min(end), waker)? {
                    next_look = Nanos::ZERO;
                }
                waited = self.now().saturating_sub(before);
            }
        }
    }

    /// Runs the simulation until `at`, and writes delivered packets to their end.
    fn advance(&mut self, at: Nanos, watcher: &mut impl Watcher) -> Result<(), LinkError> {
        let Self { simulation, ends, frames, timing, origin, counts, border, .. } = self;
        let border = border.as_ref();
        let mut delivery = Delivery { ends, frames, timing, counts, border, watcher, origin: *origin, failure: None };
        simulation.run_until(at, &mut delivery);
        delivery.failure.map_or(Ok(()), Err)
    }

    /// Reads a batch of packets from each end. Returns whether there may be more.
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
            match end.device.read(incoming).map_err(|why| gone(end, why))? {
                Transfer::Done => {}
                Transfer::Nothing => return Ok(false),
                Transfer::Unfit => {
                    self.counts.unreadable += 1;
                    continue;
                }
            }
            let at = self.now();
            self.counts.unsegmented += u64::from(incoming.is_uncut());
            while let Some(bytes) = incoming.take() {
                self.receive(from, bytes, at, watcher)?;
            }
        }
        Ok(true)
    }

    /// Handles a packet that arrived from an end.
    fn receive(
        &mut self,
        from: usize,
        bytes: &mut [u8],
        at: Nanos,
        watcher: &mut impl Watcher,
    ) -> Result<(), LinkError> {
        self.arrived += 1;
        let (activity, bytes) = match &mut self.border {
            None => (None, bytes),
            Some(border) => match border.enter(from, bytes) {
                Some(entered) => entered,
                None => return Ok(()),
            },
        };
        let seen = self.parser.parse(self.ends[from].device.link_type(), bytes.len() as u32, bytes);
        let Some(&PacketRoute { entrance, to, l4s }) = self.routes.way(from, &seen.key) else {
            self.counts.no_route += 1;
            return Ok(());
        };
        // The two sides of a connection may change the DSCP independently, so it does not identify the connection.
        let dscp = if self.connections.is_some() { 0 } else { seen.key.dscp };
        let key = FlowKey { dscp, ..seen.key };
        let flow = flow_of(&mut self.flows, &mut self.connections, &key, at);
        let tcp = self.connections.is_some().then(|| {
            let reverse = flow_of(&mut self.flows, &mut self.connections, &reversed(&key), at);
            let packet = bytes.get(seen.link_header.into()..).unwrap_or_default();
            let (segment, window) = self.connections.as_mut()?.read(packet, [flow, reverse])?;
            Some(((segment, reverse), window))
        });
        let (tcp, window) = tcp.flatten().unzip();
        let packet = ExternalPacket {
            tag: self.frames.insert(bytes, seen, window, to),
            flow,
            tcp,
            bytes: (bytes.len() as u32).saturating_sub(seen.link_header.into()),
            abc: self.border.is_some().then(|| (source_of(&seen.key), activity)),
            ecn: if l4s && seen.ecn == Ecn::Ect0 { Ecn::Ect1 } else { seen.ecn },
        };
        let Self { simulation, ends, frames, timing, origin, counts, border, .. } = self;
        let border = border.as_ref();
        let mut delivery = Delivery { ends, frames, timing, counts, border, watcher, origin: *origin, failure: None };
        simulation.come(&entrance, &packet, at, &mut delivery);
        delivery.failure.map_or(Ok(()), Err)
    }

    /// Waits for packets until `due`. Returns whether `waker` may be readable.
    fn wait(&self, due: Nanos, waker: BorrowedFd<'_>) -> Result<bool, LinkError> {
        let pause = due.saturating_sub(self.now());
        if pause == Nanos::ZERO {
            return Ok(false);
        }
        let [one, other] = self.ends;
        let mut polled = [
            PollFd::from_borrowed_fd(waker, PollFlags::IN),
            PollFd::new(&one.device, PollFlags::IN),
            PollFd::new(&other.device, PollFlags::IN),
        ];
        match poll(&mut polled, Some(&timespec(pause))) {
            Ok(_) => Ok(polled[0].revents().contains(PollFlags::IN)),
            Err(Errno::INTR) => Ok(true),
            Err(why) => Err(LinkError::System { what: "wait for packets", why: why.into() }),
        }
    }

    /// The time since the run started.
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
    pub fn held_back(&self) -> HeldBack {
        self.load.held_back()
    }

    /// Packets that the network could not carry as they arrived.
    pub fn counts(&self) -> TransitCounts {
        self.counts
    }

    /// The border of an ABC domain, with its counts, if frames may have activity headers.
    pub fn border(&self) -> Option<&Border> {
        self.border.as_ref()
    }

    /// The parser, with its counts of what it could not read.
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// The network in its present state.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// The network after the run.
    pub fn into_simulation(self) -> Simulation {
        self.simulation
    }
}

/// Writes delivered packets to the end that receives them, and passes events to the watcher.
struct Delivery<'a, O> {
    ends: &'a [NetworkEnd; 2],
    frames: &'a mut Frames,
    timing: &'a mut Timing,
    counts: &'a mut TransitCounts,
    border: Option<&'a Border>,
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
        let header = self.border.and_then(|border| border.leave(frame.to as usize, headers.activity));
        match end.device.write(frame.on_wire(), header) {
            Ok(Transfer::Done) => {}
            Ok(Transfer::Nothing) => self.counts.not_accepted += 1,
            Ok(Transfer::Unfit) => self.counts.too_long += 1,
            Err(why) => self.failure = Some(gone(end, why)),
        }
        self.frames.remove(tag);
    }
}

fn gone(end: &NetworkEnd, why: io::Error) -> LinkError {
    LinkError::Interface { name: end.device.name().to_owned(), why }
}

/// The id of a flow. If there are many flows, idle ones are removed first.
fn flow_of(flows: &mut FlowTable<FlowKey>, connections: &mut Option<Connections>, key: &FlowKey, at: Nanos) -> FlowId {
    const IDLE: Nanos = Nanos(60_000_000_000);
    if flows.is_full() {
        flows.expire(at.saturating_sub(IDLE), |flow, _| connections.iter_mut().for_each(|it| it.forget(flow)));
    }
    flows.intern(key, key.digest(), at).0
}

/// The host that sends packets of a flow, whose aggregate ABC meters: its address. Longer addresses are hashed.
fn source_of(key: &FlowKey) -> Host {
    Host(match key.family {
        Family::V4 => key.src as u32,
        _ => FlowKey { src: key.src, family: key.family, ..FlowKey::default() }.digest() as u32,
    })
}

/// The flow key of the opposite direction.
fn reversed(key: &FlowKey) -> FlowKey {
    FlowKey { src: key.dst, dst: key.src, src_port: key.dst_port, dst_port: key.src_port, ..*key }
}
