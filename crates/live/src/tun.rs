//! A TUN interface, whose other end is this program: it reads the packets that are routed to the interface, and writes packets that
//! arrive from it.

mod incoming;

use crate::ProbeError;
use crate::capabilities::raised;
pub use incoming::Incoming;
use incoming::VNET_HEADER;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl;
use std::io::{self, IoSlice};

/// A TUN interface. It is in the network namespace of the thread that created it, and disappears when this value is dropped.
#[derive(Debug)]
pub struct Tun {
    device: OwnedFd,
    name: String,
}

/// Flags of `linux/if_tun.h`: packets without Ethernet, each after a header about offloads and nothing else, and a name that is not
/// taken.
const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const IFF_TUN_EXCL: u16 = 0x8000;
/// Offloads that the reader handles: checksums, and super-packets of TCP, with CWR or without.
const OFFLOADS: usize = 0x01 | 0x02 | 0x04 | 0x08;
/// The longest name of an interface, including the terminating zero.
const NAME: usize = 16;

/// The relevant part of `struct ifreq` of `linux/if.h`.
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: i16,
    rest: [u8; 22],
}

impl Tun {
    /// The operation that fails if `/dev/net/tun` is missing or closed to the user.
    pub(crate) const OPEN_DEVICE: &str = "open /dev/net/tun";

    /// Creates an interface. `%d` in the name stands for the lowest free number.
    ///
    /// # Errors
    /// Fails if the user lacks the right, `/dev/net/tun` is missing, or the name is taken or invalid.
    pub fn open(name: &str) -> Result<Self, ProbeError> {
        let refused =
            |what: &'static str| move |why: Errno| ProbeError::Refused { what, why: io::Error::from(why).to_string() };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let device = open("/dev/net/tun", flags, Mode::empty()).map_err(refused(Self::OPEN_DEVICE))?;
        let flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL as i16;
        let mut request = Request { name: [0; NAME], flags, rest: [0; 22] };
        if name.len() >= NAME {
            return Err(refused("make a TUN interface")(Errno::NAMETOOLONG));
        }
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: TUNSETIFF reads and writes an ifreq, which this is in length and layout.
        #[allow(unsafe_code, reason = "there is no other way to such an interface")]
        let made = raised(|| unsafe { ioctl::ioctl(&device, ioctl::Updater::<TUNSETIFF, Request>::new(&mut request)) });
        made.map_err(refused("make a TUN interface"))?;
        // SAFETY: TUNSETOFFLOAD takes a number.
        #[allow(unsafe_code, reason = "there is no other way to such an interface")]
        let left = unsafe { ioctl::ioctl(&device, ioctl::IntegerSetter::<TUNSETOFFLOAD>::new_usize(OFFLOADS)) };
        left.map_err(refused("make a TUN interface that hands over super-packets"))?;
        let length = request.name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let name = String::from_utf8_lossy(&request.name[..length]).into_owned();
        Ok(Self { device, name })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet or super-packet. Returns whether there was one.
    ///
    /// # Errors
    /// Fails if the interface is gone or down.
    #[inline]
    pub fn read(&self, incoming: &mut Incoming) -> io::Result<bool> {
        match rustix::io::read(&self.device, incoming.buffer()) {
            Ok(length) => {
                incoming.filled(length);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// Writes a packet, which starts with its IP header. Returns whether it was accepted; if not, the kernel lacked memory.
    ///
    /// # Errors
    /// Fails if the interface is gone or down.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        // The packet is neither a super-packet nor does it lack a checksum.
        match rustix::io::writev(&self.device, &[IoSlice::new(&[0; VNET_HEADER]), IoSlice::new(packet)]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// `_IOW('T', 202, int)`.
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<i32>(b'T', 202);
/// `_IOW('T', 208, unsigned int)`.
const TUNSETOFFLOAD: ioctl::Opcode = ioctl::opcode::write::<u32>(b'T', 208);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_size_of_ifreq() {
        assert_eq!(size_of::<Request>(), size_of::<libc::ifreq>());
    }
}
