//! An interface whose Ethernet frames this program reads and writes in place of a switch (`AF_PACKET`, packet(7)).
//!
//! The interface exists already, and keeps its name and its queue. The kernel also gives its frames to its own network stack, so the
//! interface should have no address. Frames arrive as a cable would carry them: super-packets are segmented, checksums completed,
//! and VLAN tags put back that the kernel has taken out ([`Incoming`]).

use crate::capabilities::raised;
use crate::capture::{Direction, bind, filter, hardware, program};
use crate::tun::Incoming;
use crate::{Interfaces, option};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of_val, zeroed};

/// An interface whose frames are read and written.
#[derive(Debug)]
pub struct EthernetPort {
    socket: OwnedFd,
    name: String,
    mtu: u32,
    /// Frames that the kernel had no room for. Reading the kernel's count resets it.
    dropped: Cell<u64>,
}

/// Why an interface cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum EthernetError {
    /// There is no interface of this name in the thread's network namespace.
    #[error("there is no interface {name} here; `ip link` lists all")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The user lacks the capabilities.
    #[error("cannot read the frames of {name}: {why}; `queuescope doctor capture` shows what grants it")]
    Refused {
        /// The interface.
        name: String,
        /// The error of the kernel.
        why: io::Error,
    },
    /// Its frames are not Ethernet.
    #[error("{name} is not an Ethernet interface: name one end of a veth pair, or a network card")]
    Kind {
        /// The interface.
        name: String,
    },
    /// The interface is down.
    #[error("the interface {name} is down: bring it up with `ip link set {name} up`")]
    Down {
        /// The interface.
        name: String,
    },
    /// A system call failed that normally succeeds.
    #[error("cannot {what} ({name}): {why}")]
    System {
        /// The interface.
        name: String,
        /// The operation.
        what: &'static str,
        /// The error of the system.
        why: io::Error,
    },
}

/// What came of reading or writing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// The frame was read or written.
    Done,
    /// There is no frame to read, or the kernel had no memory for one that was written.
    Nothing,
    /// The kernel cannot pass the frame on: it read a super-packet of an unknown kind, or was to write a frame that is longer than
    /// the MTU of the interface.
    Unfit,
}

/// Memory for frames that were not read yet, bytes.
const ROOM: libc::c_int = 32 << 20;
/// The longest frame that a filter accepts: all of it.
const WHOLE: u32 = u32::MAX;

impl EthernetPort {
    /// Opens an interface in the network namespace of this thread. From now on it receives frames for every address.
    ///
    /// # Errors
    /// Fails if the interface is missing, down or not Ethernet, or if the user lacks the capabilities.
    pub fn open(name: &str) -> Result<Self, EthernetError> {
        let name = name.to_owned();
        let system = |what| {
            let name = name.clone();
            move |why: io::Error| EthernetError::System { name, what, why }
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // With protocol 0 no frame arrives until everything is set.
        let socket = raised(|| socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None));
        let socket = socket.map_err(|why| match why {
            Errno::PERM | Errno::ACCESS => EthernetError::Refused { name: name.clone(), why: why.into() },
            other => system("open a packet socket")(other.into()),
        })?;
        let index = name_to_index(&socket, &name).map_err(|_| EthernetError::NoInterface { name: name.clone() })?;
        bind(&socket, 0, index).map_err(system("bind a packet socket"))?;
        if hardware(&socket).map_err(system("read the kind of an interface"))? != libc::ARPHRD_ETHER {
            return Err(EthernetError::Kind { name });
        }
        let mtu = Interfaces::open().and_then(|interfaces| interfaces.mtu(index));
        let mtu = mtu.map_err(system("read the MTU of an interface"))?;
        filter(&socket, &program(WHOLE, Direction::In)).map_err(system("set a packet socket's filter"))?;
        let set = |what: libc::c_int| option::set(&socket, libc::SOL_PACKET, what, &1);
        set(libc::PACKET_VNET_HDR).map_err(system("read super-packets of an interface"))?;
        set(libc::PACKET_AUXDATA).map_err(system("read the VLAN tags of an interface"))?;
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let all = option::set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous);
        all.map_err(system("receive the frames for all addresses"))?;
        let room = |what| option::set(&socket, libc::SOL_SOCKET, what, &ROOM);
        // Without the right to exceed the system's limit, there is less room.
        raised(|| room(libc::SO_RCVBUFFORCE))
            .or_else(|_| room(libc::SO_RCVBUF))
            .map_err(system("give a packet socket memory"))?;
        bind(&socket, libc::ETH_P_ALL as u16, index).map_err(system("bind a packet socket"))?;
        match socket_error(&socket) {
            Ok(Err(Errno::NETDOWN)) => Err(EthernetError::Down { name }),
            _ => Ok(Self { socket, name, mtu, dropped: Cell::new(0) }),
        }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The longest packet that the interface carried when it was opened, in bytes behind the Ethernet header (MTU).
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// How many frames the kernel dropped because they were not read in time.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn unread(&self) -> io::Result<u64> {
        let read: libc::tpacket_stats = option::get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        self.dropped.set(self.dropped.get() + u64::from(read.tp_drops));
        Ok(self.dropped.get())
    }

    /// Reads a frame or a super-packet.
    ///
    /// # Errors
    /// Fails if the interface is gone or down.
    #[inline]
    pub fn read(&self, incoming: &mut Incoming) -> io::Result<Transfer> {
        match self.receive(incoming) {
            Ok(Some(Received { length, tag })) => {
                incoming.filled_frame(length, tag);
                Ok(Transfer::Done)
            }
            Ok(None) => Ok(Transfer::Unfit),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Transfer::Nothing),
            // The kernel has taken a super-packet that it cannot describe.
            Err(Errno::INVAL) => Ok(Transfer::Unfit),
            Err(why) => Err(why.into()),
        }
    }

    /// Receives a frame into the buffer. None if it is longer than the buffer.
    fn receive(&self, incoming: &mut Incoming) -> Result<Option<Received>, Errno> {
        let (header, frame) = incoming.frame_buffer();
        let part = |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut parts = [part(header), part(frame)];
        // Aligned as a control message is.
        let mut control = MaybeUninit::<[u64; 16]>::uninit();
        // SAFETY: `msghdr` has integers and pointers only, so zeros are valid. The kernel writes into `parts`, which are buffers of the lengths
        // stated, and into `control`, whose length is stated, too. The macros read control messages within the length that the kernel set, and
        // `read_unaligned` copies a structure of integers that the message has room for, which its length shows.
        #[allow(unsafe_code, reason = "no library reads the auxiliary data of packet sockets")]
        #[allow(clippy::unnecessary_cast, reason = "lengths have other types in other C libraries")]
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = parts.as_mut_ptr();
            message.msg_iovlen = parts.len() as _;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control) as _;
            let length = libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0);
            let Ok(length) = usize::try_from(length) else {
                return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
            };
            if message.msg_flags & libc::MSG_TRUNC != 0 {
                return Ok(None);
            }
            let mut tag = None;
            let mut next = libc::CMSG_FIRSTHDR(&raw const message);
            while let Some(found) = next.as_ref() {
                let room = libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as libc::c_uint) as usize;
                let is_auxiliary = (found.cmsg_level, found.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA);
                if is_auxiliary && found.cmsg_len as usize >= room {
                    tag = tag_of(&libc::CMSG_DATA(next).cast::<libc::tpacket_auxdata>().read_unaligned());
                }
                next = libc::CMSG_NXTHDR(&raw const message, next);
            }
            Ok(Some(Received { length, tag }))
        }
    }

    /// Writes a frame, which is in parts. It needs neither segmentation nor a checksum.
    ///
    /// # Errors
    /// Fails if the interface is gone or down.
    #[inline]
    pub fn write(&self, [addresses, header, rest]: [&[u8]; 3]) -> io::Result<Transfer> {
        let parts = [&[0; Incoming::OFFLOAD_HEADER][..], addresses, header, rest].map(IoSlice::new);
        match rustix::io::writev(&self.socket, &parts) {
            Ok(_) => Ok(Transfer::Done),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => Ok(Transfer::Nothing),
            Err(Errno::MSGSIZE) => Ok(Transfer::Unfit),
            Err(why) => Err(why.into()),
        }
    }
}

impl AsFd for EthernetPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A frame that was received.
struct Received {
    /// Its length in bytes, with the header about offloads.
    length: usize,
    /// Its VLAN tag, if the kernel has taken that out of the frame.
    tag: Option<[u8; 4]>,
}

/// The VLAN tag that the kernel has taken out of a frame.
fn tag_of(about: &libc::tpacket_auxdata) -> Option<[u8; 4]> {
    if about.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let has_kind = about.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if has_kind { about.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), about.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}
