//! Options of sockets that no library has.

use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::mem::{MaybeUninit, size_of};

/// Numbers alone, of which each pattern of bits is one.
///
/// # Safety
/// Only for types that are so.
#[allow(unsafe_code, reason = "only who looks at a type of the kernel's can say that it is so")]
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty),*) => {
        $(
            // SAFETY: it has numbers alone.
            #[allow(unsafe_code, reason = "see `Plain`")]
            unsafe impl Plain for $name {}
        )*
    };
}

plain!(libc::tcp_info, libc::tpacket_stats_v3);

/// Sets one.
pub(crate) fn set<T>(socket: &impl AsFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as there are.
    #[allow(unsafe_code, reason = "no library has this option")]
    let result = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads one. What an older kernel does not have of it is zero.
pub(crate) fn get<T: Plain>(socket: &impl AsFd, level: libc::c_int, option: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes no more bytes than there are, and zeros are a value of it, as is what it writes.
    #[allow(unsafe_code, reason = "no library has this option")]
    unsafe {
        let into = value.as_mut_ptr().cast();
        match libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, into, &raw mut length) {
            0 => Ok(value.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
