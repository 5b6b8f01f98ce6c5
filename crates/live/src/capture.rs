//! Copies of the packets of an interface, as the kernel keeps them for us in a ring of memory (`AF_PACKET` with `TPACKET_V3`;
//! packet(7), and Documentation/networking/packet_mmap.rst of Linux).
//!
//! The kernel cuts packets and puts them into blocks, many in each; a block is ours when it is full, or some time after its first
//! packet. Nothing is copied and nothing is called for a packet. What finds no room is counted by the kernel.

mod error;
mod packets;
mod ring;

pub use error::CaptureError;
pub use packets::Captured;

use crate::capabilities::raised;
use crate::{option, timespec};
use packets::packets;
use queuescope_wire::Nanos;
use ring::Ring;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::ops::ControlFlow;

/// The packets of an interface are copied for as long as this is kept.
#[derive(Debug)]
pub struct Capture {
    index: u32,
    dlt: u32,
    is_loopback: bool,
    /// Whether the interface has been down: if it goes then, the kernel does not say so.
    was_down: bool,
    params: CaptureParams,
    ring: Ring,
    socket: OwnedFd,
    counts: Counts,
    /// Where a packet is put together whose tag the kernel holds apart.
    tagged: Vec<u8>,
}

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureParams {
    /// Bytes of a packet at most, above 0.
    pub snaplen: u32,
    /// Which packets.
    pub direction: Direction,
    /// Memory for packets that nobody has read yet, bytes; whole blocks of 1 MiB, at least two.
    pub ring: u64,
}

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Those that come in.
    In,
    /// Those that go out.
    Out,
    /// Both; on a loopback interface, where each packet does both, each once, as it comes in.
    Both,
}

/// What the kernel counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came or went, and that were to be copied.
    pub passed: u64,
    /// Those of them for which there was no room.
    pub dropped: u64,
    /// Times that the interface went down.
    pub went_down: u64,
}

/// Why waiting has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// There may be packets, or the time is over.
    Packets,
    /// Somebody wants an end.
    Stop,
    /// There is no such interface any more.
    Gone,
}

/// A block that is not full is ours so long after its first packet at the latest, milliseconds.
const RETIRE: u32 = 20;
/// How often it is looked whether an interface that is down is still there.
const LOOK: Nanos = Nanos(200_000_000);

impl Default for CaptureParams {
    fn default() -> Self {
        Self { snaplen: 128, direction: Direction::Both, ring: 32 << 20 }
    }
}

impl Capture {
    /// Begins to copy the packets of an interface of the network namespace that this thread is in.
    ///
    /// # Errors
    /// If there is none of the name, this user may not, or its frames are of a kind that is not read.
    pub fn open(name: &str, params: CaptureParams) -> Result<Self, CaptureError> {
        let system = |what| move |why: io::Error| CaptureError::System { what, why };
        let kind = SocketType::RAW;
        // Of no protocol yet: nothing comes until all is set.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = raised(|| socket_with(AddressFamily::PACKET, kind, flags, None));
        let socket = socket.map_err(|why| match why {
            Errno::PERM | Errno::ACCESS => CaptureError::Refused { name: name.to_owned(), why: why.into() },
            other => CaptureError::System { what: "open a packet socket", why: other.into() },
        })?;
        let index = name_to_index(&socket, name).map_err(|_| CaptureError::NoInterface { name: name.to_owned() })?;
        let bound = |protocol| bind(&socket, protocol, index).map_err(system("bind a packet socket"));
        bound(0)?;
        let hardware = hardware(&socket).map_err(system("find out the kind of an interface"))?;
        let is_loopback = hardware == libc::ARPHRD_LOOPBACK;
        let dlt = link_type(hardware).ok_or(CaptureError::Kind { name: name.to_owned(), hardware })?;
        let direction = match params.direction {
            Direction::Both if is_loopback => Direction::In,
            direction => direction,
        };
        filter(&socket, &program(params.snaplen, direction)).map_err(system("set a packet socket's filter"))?;
        let ring =
            Ring::of(&socket, params.ring, RETIRE).map_err(system("make a ring for packets; try a smaller one"))?;
        bound(libc::ETH_P_ALL as u16)?;
        let (counts, tagged) = (Counts::default(), Vec::new());
        Ok(Self { index, dlt, is_loopback, was_down: false, params, ring, socket, counts, tagged })
    }

    /// What its frames begin with, a number of the LINKTYPE_ registry.
    pub fn dlt(&self) -> u32 {
        self.dlt
    }

    /// Whether it is a loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Waits until a block is ours, this time is over, or there is something to read from `stop`.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self, stop: BorrowedFd<'_>, most: Option<Nanos>) -> Result<Woken, CaptureError> {
        let look = self.was_down.then_some(LOOK);
        let most = most.into_iter().chain(look).min().map(timespec);
        let mut either = [PollFd::new(&self.socket, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        match poll(&mut either, most.as_ref()) {
            Ok(0) if self.was_down && self.is_gone() => Ok(Woken::Gone),
            Ok(_) if !either[1].revents().is_empty() => Ok(Woken::Stop),
            Ok(_) if either[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => Ok(self.troubled()),
            // Those that stood in the ring as it went down say nothing of it: it is looked for from then on.
            Ok(_) => Ok(Woken::Packets),
            Err(Errno::INTR) => Ok(Woken::Packets),
            Err(why) => Err(CaptureError::System { what: "wait for packets", why: why.into() }),
        }
    }

    /// Tells the packets of the next block that is ours, in the order in which they came, until one is told to be the last (then the
    /// rest of the block is gone): whether there was such a block.
    ///
    /// # Errors
    /// If what the kernel says of a block cannot be.
    pub fn block(&mut self, mut each: impl FnMut(&Captured<'_>) -> ControlFlow<()>) -> Result<bool, CaptureError> {
        let Some(block) = self.ring.block() else { return Ok(false) };
        let told = packets(block, self.params.snaplen, self.dlt, &mut self.tagged, &mut each);
        self.ring.give_back();
        told.map(|()| true)
    }

    /// No more packets are copied; those that were come in blocks still, until [`block`](Self::block) has none for some time: tells
    /// all of them.
    ///
    /// # Errors
    /// As of [`block`](Self::block).
    pub fn finish(&mut self, mut each: impl FnMut(&Captured<'_>) -> ControlFlow<()>) -> Result<(), CaptureError> {
        // If this is refused, it does not end before packets do, so there is another end.
        let nothing = [libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: 0 }];
        let is_quiet = filter(&self.socket, &nothing).is_ok();
        let most = timespec(Nanos(u64::from(3 * RETIRE) * 1_000_000));
        let mut blocks = 0;
        loop {
            while self.block(&mut each)? {
                blocks += 1;
                if !is_quiet && blocks > self.ring.blocks() {
                    return Ok(());
                }
            }
            let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut socket, Some(&most)) {
                Ok(n) if n > 0 && !socket[0].revents().contains(PollFlags::ERR) => {}
                Err(Errno::INTR) => {}
                Ok(n) if n > 0 => {
                    // Reading it takes the error away.
                    let _ = socket_error(&self.socket);
                }
                _ => return Ok(()),
            }
        }
    }

    /// What the kernel has counted by now.
    pub fn counts(&mut self) -> Counts {
        // Reading them sets them back.
        let read = option::get::<libc::tpacket_stats_v3>(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Ok(read) = read {
            self.counts.passed += u64::from(read.tp_packets);
            self.counts.dropped += u64::from(read.tp_drops);
        }
        self.counts
    }

    /// The kernel told an error.
    fn troubled(&mut self) -> Woken {
        // Reading it takes it away.
        let _ = socket_error(&self.socket);
        if self.is_gone() {
            return Woken::Gone;
        }
        // Packets come again when it is up again.
        self.counts.went_down += 1;
        self.was_down = true;
        Woken::Packets
    }

    fn is_gone(&self) -> bool {
        index_to_name(&self.socket, self.index).is_err()
    }
}

/// What frames of a kind of interface begin with; nothing, if that is not read.
fn link_type(hardware: u16) -> Option<u32> {
    const ETHERNET: u32 = 1;
    const RAW: u32 = 101;
    /// `ARPHRD_RAWIP` of linux/if_arp.h.
    const RAWIP: u16 = 519;
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(ETHERNET),
        libc::ARPHRD_NONE | RAWIP | libc::ARPHRD_TUNNEL | libc::ARPHRD_TUNNEL6 | libc::ARPHRD_SIT => Some(RAW),
        _ => None,
    }
}

/// `BPF_RET | BPF_K` of linux/bpf_common.h: so many bytes of the packet.
const RETURN: u16 = 0x06;

/// A filter (the kernel's classic language) that cuts packets, and takes those of a direction.
fn program(snaplen: u32, direction: Direction) -> Vec<libc::sock_filter> {
    /// `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP | BPF_JEQ | BPF_K`.
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let (keep, skip) = (step(RETURN, 0, 0, snaplen), step(RETURN, 0, 0, 0));
    let whether_out = [
        step(LOAD, 0, 0, (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32),
        step(IF_EQUAL, 0, 1, u32::from(libc::PACKET_OUTGOING)),
    ];
    match direction {
        Direction::Both => vec![keep],
        Direction::Out => [&whether_out[..], &[keep, skip]].concat(),
        Direction::In => [&whether_out[..], &[skip, keep]].concat(),
    }
}

fn filter(socket: &impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel reads the steps, and keeps a copy.
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Takes packets of a protocol of an interface; 0 is none.
fn bind(socket: &impl AsFd, protocol: u16, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads as many bytes as there are.
    #[allow(unsafe_code, reason = "no library binds packet sockets")]
    let result = unsafe {
        let length = size_of_val(&address) as libc::socklen_t;
        libc::bind(socket.as_fd().as_raw_fd(), std::ptr::from_ref(&address).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kind of interface that a socket is bound to (`ARPHRD_` of linux/if_arp.h).
fn hardware(socket: &impl AsFd) -> io::Result<u16> {
    // SAFETY: it has numbers alone, of which zeros are values; the kernel writes no more bytes than there are.
    #[allow(unsafe_code, reason = "no library reads such an address")]
    unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        let mut length = size_of_val(&address) as libc::socklen_t;
        let into = (&raw mut address).cast();
        match libc::getsockname(socket.as_fd().as_raw_fd(), into, &raw mut length) {
            0 => Ok(address.sll_hatype),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
