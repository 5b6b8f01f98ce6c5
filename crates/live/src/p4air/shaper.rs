//! The queues of P4air: an HTB qdisc with a class for each queue (tc-htb(8)), by rtnetlink.

use super::P4airError;
use crate::{Interfaces, ProbeError};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use queuescope_wire::{ByteCount, Nanos, Rate};
use rustix::io::Errno;
use std::io;

/// The major number of the qdisc, by which it is known as one of queuescope.
pub(super) const HANDLE: u16 = 0x9a1f;
/// The minor number of the first class, that of ants.
pub(super) const FIRST_CLASS: u16 = 0x10;
/// The class above all others, which has the rate of the link.
const LINK: u16 = 1;
/// The place of the class of delayed packets behind the first class.
const LATE: u32 = 2;
/// The kinds of the qdisc and of a class's queue.
const HTB: &str = "htb";
const FIFO: &str = "bfifo";
/// The largest super-packet, with its headers.
const SUPER: ByteCount = ByteCount(66_000);

/// The attributes of HTB (`linux/pkt_sched.h`).
const TCA_OPTIONS: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

/// The rates and limits of the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The rate of all queues together.
    pub rate: Rate,
    /// The number of queues.
    pub queues: u32,
    /// The rate that each queue has at least, if it needs it. What the others do not need is shared.
    pub each: Rate,
    /// The limit of each queue.
    pub limit: ByteCount,
}

impl Shape {
    pub(super) fn new(rate: Rate, queues: u32, buffer: ByteCount) -> Self {
        let queues = queues.max(1);
        let each = Rate::from_bits_per_second(rate.bits_per_second() / u64::from(queues)).unwrap_or(rate);
        Self { rate, queues, each, limit: ByteCount((buffer.0 / u64::from(queues)).clamp(SUPER.0, u32::MAX.into())) }
    }
}

/// The root qdisc of an interface.
#[derive(Debug)]
pub(super) struct Shaper {
    interface: String,
    index: u32,
    netlink: Interfaces,
}

impl Shaper {
    pub fn new(interface: &str, index: u32) -> Result<Self, P4airError> {
        let netlink = Interfaces::open().map_err(|why| ProbeError::System { what: "the interfaces", why })?;
        Ok(Self { interface: interface.to_owned(), index, netlink })
    }

    /// Checks that the interface has its default qdisc, or one of ours.
    pub fn check(&self) -> Result<(), P4airError> {
        match self.root()? {
            Some((kind, handle)) if handle.major != 0 && !(kind == HTB && handle.major == HANDLE) => {
                Err(P4airError::Occupied { interface: self.interface.clone(), kind })
            }
            _ => Ok(()),
        }
    }

    /// Makes the qdisc, in place of the default one or of one that a crash has left. After an error, it may be there in part.
    pub fn make(&self, shape: &Shape) -> Result<(), P4airError> {
        self.check()?;
        self.remove()?;
        let globals = [3, 10, u32::from(FIRST_CLASS), 0, 0];
        let globals = globals.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        let options = TcAttribute::Options(vec![option(TCA_HTB_INIT, globals)]);
        let attributes = vec![TcAttribute::Kind(HTB.to_owned()), options];
        let message = self.message(TcHandle::ROOT, handle(0), attributes);
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), "make the queues", HTB)?;
        self.class(LINK, handle(0), [shape.rate, shape.rate], 0)?;
        for queue in 0..shape.queues {
            let minor = FIRST_CLASS + queue as u16;
            self.class(minor, handle(LINK), [shape.each, shape.rate], u32::from(queue == LATE))?;
            let limit = DefaultNla::new(TCA_OPTIONS, (shape.limit.0 as u32).to_ne_bytes().to_vec());
            let attributes = vec![TcAttribute::Kind(FIFO.to_owned()), TcAttribute::Other(limit)];
            let message = self.message(handle(minor), TcHandle::default(), attributes);
            self.request(RouteNetlinkMessage::NewQueueDiscipline(message), "limit a queue", FIFO)?;
        }
        Ok(())
    }

    /// Removes the qdisc if it is one of ours.
    pub fn remove(&self) -> Result<(), P4airError> {
        remove_from(&self.netlink, self.index).map_err(|why| self.failed("remove the queues", why))
    }

    /// The kind and the number of the root qdisc, if the kernel reports one.
    fn root(&self) -> Result<Option<(String, TcHandle)>, P4airError> {
        root_of(&self.netlink, self.index).map_err(|why| self.failed("read the qdisc", why))
    }

    /// Adds a class with a rate and a ceiling.
    fn class(&self, minor: u16, parent: TcHandle, rates: [Rate; 2], prio: u32) -> Result<(), P4airError> {
        let bytes = rates.map(|rate| rate.bits_per_second() / 8);
        let spec = |bytes: u64| {
            let rate = u32::try_from(bytes).unwrap_or(u32::MAX);
            // struct tc_ratespec: cell_log, the link layer (Ethernet), overhead, cell_align, mpu, rate.
            let mut spec = vec![0, 1, 0, 0, 0, 0, 0, 0];
            spec.extend(rate.to_ne_bytes());
            spec
        };
        // A millisecond and two packets, in units of 64 ns.
        let burst = rates.map(|rate| {
            let time = rate.time_for(ByteCount(2 * 1514)).saturating_add(Nanos(1_000_000));
            u32::try_from(time.0 >> 6).unwrap_or(u32::MAX)
        });
        let quantum = 1514u32;
        let mut params: Vec<u8> = bytes.into_iter().flat_map(spec).collect();
        params.extend([burst[0], burst[1], quantum, 0, prio].iter().flat_map(|word| word.to_ne_bytes()));
        let options = vec![
            option(TCA_HTB_PARMS, params),
            option(TCA_HTB_RATE64, bytes[0].to_ne_bytes().to_vec()),
            option(TCA_HTB_CEIL64, bytes[1].to_ne_bytes().to_vec()),
        ];
        let attributes = vec![TcAttribute::Kind(HTB.to_owned()), TcAttribute::Options(options)];
        let message = self.message(parent, handle(minor), attributes);
        self.request(RouteNetlinkMessage::NewTrafficClass(message), "make a class", HTB)
    }

    fn message(&self, parent: TcHandle, own: TcHandle, attributes: Vec<TcAttribute>) -> TcMessage {
        let mut message = TcMessage::with_index(self.index.cast_signed());
        (message.header.parent, message.header.handle) = (parent, own);
        message.attributes = attributes;
        message
    }

    fn request(&self, message: RouteNetlinkMessage, what: &'static str, kind: &'static str) -> Result<(), P4airError> {
        match self.netlink.request(message, NLM_F_CREATE | NLM_F_EXCL) {
            Ok(_) => Ok(()),
            Err(why) if is(&why, Errno::NOENT) => Err(P4airError::NoQdisc { kind }),
            Err(why) => Err(self.failed(what, why)),
        }
    }

    fn failed(&self, what: &'static str, why: io::Error) -> P4airError {
        P4airError::Qdisc { what, interface: self.interface.clone(), why }
    }
}

/// Removes the root qdisc of an interface if it is one of ours. An interface that is gone has none.
pub(super) fn remove_from(netlink: &Interfaces, index: u32) -> io::Result<()> {
    let found = match root_of(netlink, index) {
        Err(why) if is(&why, Errno::NODEV) => return Ok(()),
        found => found?,
    };
    if !found.is_some_and(|(kind, handle)| kind == HTB && handle.major == HANDLE) {
        return Ok(());
    }
    let mut message = TcMessage::with_index(index.cast_signed());
    (message.header.parent, message.header.handle) = (TcHandle::ROOT, handle(0));
    match netlink.request(RouteNetlinkMessage::DelQueueDiscipline(message), 0) {
        Err(why) if !is(&why, Errno::NODEV) && !is(&why, Errno::NOENT) => Err(why),
        _ => Ok(()),
    }
}

fn root_of(netlink: &Interfaces, index: u32) -> io::Result<Option<(String, TcHandle)>> {
    let mut message = TcMessage::with_index(index.cast_signed());
    message.header.parent = TcHandle::ROOT;
    // Without this flag, some kernels answer only the listeners of a multicast group.
    let answer = match netlink.request(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_ECHO) {
        // There is no root qdisc.
        Err(why) if is(&why, Errno::NOENT) => None,
        answer => answer?,
    };
    let Some(RouteNetlinkMessage::NewQueueDiscipline(found)) = answer else { return Ok(None) };
    let kind = found.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    });
    Ok(kind.map(|kind| (kind, found.header.handle)))
}

fn handle(minor: u16) -> TcHandle {
    TcHandle { major: HANDLE, minor }
}

fn option(kind: u16, bytes: Vec<u8>) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, bytes))
}

fn is(why: &io::Error, number: Errno) -> bool {
    why.raw_os_error() == Some(number.raw_os_error())
}
