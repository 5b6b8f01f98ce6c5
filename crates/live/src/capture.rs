//! Copies of the packets of an interface, through a ring of memory that the kernel shares with this process (`AF_PACKET` with
//! `TPACKET_V3`; packet(7), and Documentation/networking/packet_mmap.rst of Linux).
//!
//! The kernel cuts packets to the snap length and puts many of them into each block. It hands a block over when it is full, or some
//! time after its first packet. There is no copy and no system call for a single packet. The kernel counts packets that find no room.

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

/// A running capture: the packets of an interface are copied until this value is dropped.
#[derive(Debug)]
pub struct Capture {
    index: u32,
    dlt: u32,
    is_loopback: bool,
    /// Whether the interface was down at some time: if it is removed while it is down, the kernel reports nothing.
    was_down: bool,
    params: CaptureParams,
    ring: Ring,
    socket: OwnedFd,
    counts: Counts,
    /// Buffer for a packet with a VLAN tag, which the kernel stores outside the packet.
    tagged: Vec<u8>,
}

/// Which packets are copied, and how much of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureParams {
    /// The largest number of bytes copied of a packet, above 0 (snap length).
    pub snaplen: u32,
    /// The direction of the packets.
    pub direction: Direction,
    /// Memory for packets that were not read yet, bytes; rounded down to whole blocks of 1 MiB, at least two.
    pub ring: u64,
}

/// The direction of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Incoming packets.
    In,
    /// Outgoing packets.
    Out,
    /// Both. On a loopback interface, where each packet goes out and comes in, only the incoming ones, so that each is copied once.
    Both,
}

/// What the kernel counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that passed and matched the direction.
    pub passed: u64,
    /// Those of them that were dropped because the ring was full.
    pub dropped: u64,
    /// How often the interface went down.
    pub went_down: u64,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// There may be packets, or the time limit was reached.
    Packets,
    /// A stop was requested.
    Stop,
    /// The interface was removed.
    Gone,
}

/// The kernel hands over a block that is not full at most this long after its first packet, milliseconds.
const RETIRE: u32 = 20;
/// How often to check whether an interface that was down still exists.
const LOOK: Nanos = Nanos(200_000_000);

impl Default for CaptureParams {
    fn default() -> Self {
        Self { snaplen: 128, direction: Direction::Both, ring: 32 << 20 }
    }
}

impl Capture {
    /// Starts to copy the packets of an interface in the network namespace of this thread.
    ///
    /// # Errors
    /// Fails if there is no interface of this name, if the user lacks the capabilities, or if the interface's frames are of an unsupported kind.
    pub fn open(name: &str, params: CaptureParams) -> Result<Self, CaptureError> {
        let system = |what| move |why: io::Error| CaptureError::System { what, why };
        let kind = SocketType::RAW;
        // With protocol 0 no packet arrives until everything is set.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = raised(|| socket_with(AddressFamily::PACKET, kind, flags, None));
        let socket = socket.map_err(|why| match why {
            Errno::PERM | Errno::ACCESS => CaptureError::Refused { name: name.to_owned(), why: why.into() },
            other => CaptureError::System { what: "open a packet socket", why: other.into() },
        })?;
        let index = name_to_index(&socket, name).map_err(|_| CaptureError::NoInterface { name: name.to_owned() })?;
        let bind_to = |protocol| bind(&socket, protocol, index).map_err(system("bind a packet socket"));
        bind_to(0)?;
        let hardware = hardware(&socket).map_err(system("read the kind of an interface"))?;
        let is_loopback = hardware == libc::ARPHRD_LOOPBACK;
        let dlt = link_type(hardware).ok_or(CaptureError::Kind { name: name.to_owned(), hardware })?;
        let direction = match params.direction {
            Direction::Both if is_loopback => Direction::In,
            direction => direction,
        };
        filter(&socket, &program(params.snaplen, direction)).map_err(system("set a packet socket's filter"))?;
        let ring = Ring::new(&socket, params.ring, RETIRE)
            .map_err(system("allocate a ring for packets; try a smaller one"))?;
        bind_to(libc::ETH_P_ALL as u16)?;
        let (counts, tagged) = (Counts::default(), Vec::new());
        Ok(Self { index, dlt, is_loopback, was_down: false, params, ring, socket, counts, tagged })
    }

    /// The link type of its frames, a number of the LINKTYPE_ registry.
    pub fn dlt(&self) -> u32 {
        self.dlt
    }

    /// Whether it is a loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Waits until there is a block to read, until `most` has passed, or until `stop` is readable.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn wait(&mut self, stop: BorrowedFd<'_>, most: Option<Nanos>) -> Result<Woken, CaptureError> {
        let look = self.was_down.then_some(LOOK);
        let most = most.into_iter().chain(look).min().map(timespec);
        let mut descriptors = [PollFd::new(&self.socket, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        match poll(&mut descriptors, most.as_ref()) {
            Ok(0) if self.was_down && self.is_gone() => Ok(Woken::Gone),
            Ok(_) if !descriptors[1].revents().is_empty() => Ok(Woken::Stop),
            Ok(_) if descriptors[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => Ok(self.handle_error()),
            // Packets that were in the ring when the interface went down say nothing of its state, so `is_gone` keeps checking.
            Ok(_) => Ok(Woken::Packets),
            Err(Errno::INTR) => Ok(Woken::Packets),
            Err(why) => Err(CaptureError::System { what: "wait for packets", why: why.into() }),
        }
    }

    /// Calls `each` with the packets of the next block, in the order of their arrival, until it breaks; a break discards the rest of the
    /// block. Returns whether there was a block.
    ///
    /// # Errors
    /// Fails if the kernel's description of the block is inconsistent.
    pub fn block(&mut self, mut each: impl FnMut(&Captured<'_>) -> ControlFlow<()>) -> Result<bool, CaptureError> {
        let Some(block) = self.ring.block() else { return Ok(false) };
        let result = packets(block, self.params.snaplen, self.dlt, &mut self.tagged, &mut each);
        self.ring.give_back();
        result.map(|()| true)
    }

    /// Stops copying, and calls `each` with all packets that were copied before, until no block has come for some time.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn finish(&mut self, mut each: impl FnMut(&Captured<'_>) -> ControlFlow<()>) -> Result<(), CaptureError> {
        // If the kernel refuses this filter, packets keep coming; then the number of blocks limits the loop.
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
                    // Reading the error clears it.
                    let _ = socket_error(&self.socket);
                }
                _ => return Ok(()),
            }
        }
    }

    /// The kernel's counts so far.
    pub fn counts(&mut self) -> Counts {
        // Reading resets the kernel's counts.
        let read = option::get::<libc::tpacket_stats_v3>(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Ok(read) = read {
            self.counts.passed += u64::from(read.tp_packets);
            self.counts.dropped += u64::from(read.tp_drops);
        }
        self.counts
    }

    /// Handles an error that the socket reports.
    fn handle_error(&mut self) -> Woken {
        // Reading the error clears it.
        let _ = socket_error(&self.socket);
        if self.is_gone() {
            return Woken::Gone;
        }
        // Packets come again once the interface is up.
        self.counts.went_down += 1;
        self.was_down = true;
        Woken::Packets
    }

    fn is_gone(&self) -> bool {
        index_to_name(&self.socket, self.index).is_err()
    }
}

/// The link type for a kind of interface (`ARPHRD_`); none if its frames are unsupported.
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

/// `BPF_RET | BPF_K` of linux/bpf_common.h: accepts this number of bytes of the packet.
const RETURN: u16 = 0x06;

/// A filter in classic BPF that cuts packets to the snap length, and accepts one direction.
pub(crate) fn program(snaplen: u32, direction: Direction) -> Vec<libc::sock_filter> {
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

/// Attaches a filter to a packet socket.
pub(crate) fn filter(socket: &impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel copies the program during the call.
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Binds the socket to an interface and a protocol; protocol 0 accepts no packet.
pub(crate) fn bind(socket: &impl AsFd, protocol: u16, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads `length` bytes, which is the size of the address.
    #[allow(unsafe_code, reason = "no library binds packet sockets")]
    let result = unsafe {
        let length = size_of_val(&address) as libc::socklen_t;
        libc::bind(socket.as_fd().as_raw_fd(), std::ptr::from_ref(&address).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kind of interface that a socket is bound to (`ARPHRD_` of linux/if_arp.h).
pub(crate) fn hardware(socket: &impl AsFd) -> io::Result<u16> {
    // SAFETY: the type has only integer fields, so zeros are valid; the kernel writes at most `length` bytes.
    #[allow(unsafe_code, reason = "no library reads a packet socket's address")]
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
