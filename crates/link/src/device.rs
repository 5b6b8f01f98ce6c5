//! What packets are read from and written to: an interface of our own, or one that exists.

use queuescope_live::{EthernetPort, Incoming, Transfer, Tun};
use queuescope_wire::ActivityHeader;
use queuescope_wire::parse::LinkType;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// An interface whose packets this program carries.
#[derive(Debug)]
pub enum Device {
    /// Our own, whose packets begin with their IP header.
    Tun(Tun),
    /// One that exists, with Ethernet frames.
    Ethernet(EthernetPort),
}

impl Device {
    /// The interface's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Tun(tun) => tun.name(),
            Self::Ethernet(port) => port.name(),
        }
    }

    /// The first header of its packets.
    pub fn link_type(&self) -> LinkType {
        match self {
            Self::Tun(_) => LinkType::RawIp,
            Self::Ethernet(_) => LinkType::Ethernet,
        }
    }

    /// Reads a packet or super-packet.
    ///
    /// # Errors
    /// Fails if the interface is gone or down.
    #[inline]
    pub fn read(&self, incoming: &mut Incoming) -> io::Result<Transfer> {
        match self {
            Self::Tun(tun) => Ok(if tun.read(incoming)? { Transfer::Done } else { Transfer::Nothing }),
            Self::Ethernet(port) => port.read(incoming),
        }
    }

    /// Writes a packet; a frame may get an activity header.
    ///
    /// # Errors
    /// Fails if the interface is gone or down.
    #[inline]
    pub fn write(&self, packet: &[u8], header: Option<ActivityHeader>) -> io::Result<Transfer> {
        match self {
            Self::Tun(tun) => Ok(if tun.write(packet)? { Transfer::Done } else { Transfer::Nothing }),
            Self::Ethernet(port) => match header.and_then(|header| header.push(packet)) {
                Some((addresses, header, rest)) => port.write([addresses, &header, rest]),
                None => port.write([packet, &[], &[]]),
            },
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(tun) => tun.as_fd(),
            Self::Ethernet(port) => port.as_fd(),
        }
    }
}
