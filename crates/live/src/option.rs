//! Socket options that no library covers.

use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::mem::{MaybeUninit, size_of};

/// Types that consist of numbers only, so that every bit pattern is valid.
///
/// # Safety
/// Implement it only for such types.
#[allow(unsafe_code, reason = "only a look at the kernel's type can justify it")]
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty),*) => {
        $(
            // SAFETY: the type consists of numbers only.
            #[allow(unsafe_code, reason = "see `Plain`")]
            unsafe impl Plain for $name {}
        )*
    };
}

plain!(libc::tcp_info, libc::tpacket_stats, libc::tpacket_stats_v3);

/// Sets an option.
pub(crate) fn set<T>(socket: &impl AsFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has.
    #[allow(unsafe_code, reason = "no library has this option")]
    let result = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option. Fields that an older kernel does not know are zero.
pub(crate) fn get<T: Plain>(socket: &impl AsFd, level: libc::c_int, option: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes as the value has, and `Plain` makes any bytes valid, zeros included.
    #[allow(unsafe_code, reason = "no library has this option")]
    unsafe {
        let into = value.as_mut_ptr().cast();
        match libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, into, &raw mut length) {
            0 => Ok(value.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
