//! An interface whose other end is a program (TUN): what is routed to it can be read, and what is written comes from it.

mod incoming;

use crate::ProbeError;
use crate::capabilities::raised;
pub use incoming::Incoming;
use incoming::WORDS;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl;
use std::io::{self, IoSlice};

/// Such an interface. It is in the network namespace of the thread that made it, and gone when this is.
#[derive(Debug)]
pub struct Tun {
    door: OwnedFd,
    name: String,
}

/// Of `linux/if_tun.h`: packets without Ethernet, before them how they are to be cut and nothing else, and a name that nobody else
/// has.
const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const IFF_TUN_EXCL: u16 = 0x8000;
/// What may be left to who reads: sums, and cutting TCP's super-packets, with CWR or without.
const OFFLOADS: usize = 0x01 | 0x02 | 0x04 | 0x08;
/// The longest name of an interface, with the zero behind it.
const NAME: usize = 16;

/// `struct ifreq` of `linux/if.h`, as far as it matters here.
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: i16,
    rest: [u8; 22],
}

impl Tun {
    /// What was to be done if there is no door to such interfaces, or none for this user.
    pub(crate) const DOOR: &str = "open /dev/net/tun";

    /// Makes one. In a name, `%d` is the lowest number that is free.
    ///
    /// # Errors
    /// If this user may not, or has no `/dev/net/tun`; or the name is taken, or none.
    pub fn open(name: &str) -> Result<Self, ProbeError> {
        let refused =
            |what: &'static str| move |why: Errno| ProbeError::Refused { what, why: io::Error::from(why).to_string() };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let door = open("/dev/net/tun", flags, Mode::empty()).map_err(refused(Self::DOOR))?;
        let flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL as i16;
        let mut request = Request { name: [0; NAME], flags, rest: [0; 22] };
        if name.len() >= NAME {
            return Err(refused("make a TUN interface")(Errno::NAMETOOLONG));
        }
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: TUNSETIFF reads and writes an ifreq, which this is in length and layout.
        #[allow(unsafe_code, reason = "there is no other way to such an interface")]
        let made = raised(|| unsafe { ioctl::ioctl(&door, ioctl::Updater::<TUNSETIFF, Request>::new(&mut request)) });
        made.map_err(refused("make a TUN interface"))?;
        // SAFETY: TUNSETOFFLOAD takes a number.
        #[allow(unsafe_code, reason = "there is no other way to such an interface")]
        let left = unsafe { ioctl::ioctl(&door, ioctl::IntegerSetter::<TUNSETOFFLOAD>::new_usize(OFFLOADS)) };
        left.map_err(refused("make a TUN interface that gives packets uncut"))?;
        let length = request.name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let name = String::from_utf8_lossy(&request.name[..length]).into_owned();
        Ok(Self { door, name })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a packet, or many at once; whether there was one.
    ///
    /// # Errors
    /// If the interface is gone, or not up.
    #[inline]
    pub fn read(&self, incoming: &mut Incoming) -> io::Result<bool> {
        match rustix::io::read(&self.door, incoming.room()) {
            Ok(length) => {
                incoming.filled(length);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// A packet comes from the interface, from its IP header on. Whether it was taken: if not, there was no memory for it.
    ///
    /// # Errors
    /// If the interface is gone, or not up.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        // Nothing is to be cut or completed.
        match rustix::io::writev(&self.door, &[IoSlice::new(&[0; WORDS]), IoSlice::new(packet)]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.door.as_fd()
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
    fn a_request_is_as_long_as_the_kernels() {
        assert_eq!(size_of::<Request>(), size_of::<libc::ifreq>());
    }
}
