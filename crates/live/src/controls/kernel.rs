//! The calls of `bpf(2)` that no library offers: programs of the type `struct_ops`, the map that holds them, and the link that registers
//! them. Errors quote the kernel's log.

use super::object::Function;
use aya_obj::btf::{Btf, BtfType, Int, IntEncoding};
use aya_obj::generated::{BPF_F_LINK, bpf_attach_type, bpf_attr, bpf_cmd, bpf_map_type, bpf_prog_type};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ffi::{CStr, c_char};
use std::io::{self, ErrorKind};
use std::mem::size_of;

/// The size of the verifier's log, bytes.
const LOG: usize = 1 << 16;
/// How often to load a program whose verification signals interrupt.
const TRIES: usize = 8;

/// Loads a program that implements a member of a structure of the kernel.
pub(super) fn load_program(
    function: &Function<'_>,
    license: &CStr,
    structure: u32,
    member: u32,
) -> io::Result<OwnedFd> {
    let load = |log: &mut [u8]| {
        let mut attr = no_attributes();
        attr.__bindgen_anon_3.prog_type = bpf_prog_type::BPF_PROG_TYPE_STRUCT_OPS as u32;
        attr.__bindgen_anon_3.prog_name = object_name(function.name);
        attr.__bindgen_anon_3.insn_cnt = function.instructions.len() as u32;
        attr.__bindgen_anon_3.insns = function.instructions.as_ptr() as u64;
        attr.__bindgen_anon_3.license = license.as_ptr() as u64;
        attr.__bindgen_anon_3.attach_btf_id = structure;
        attr.__bindgen_anon_3.expected_attach_type = member;
        if !log.is_empty() {
            attr.__bindgen_anon_3.log_level = 1;
            attr.__bindgen_anon_3.log_size = log.len() as u32;
            attr.__bindgen_anon_3.log_buf = log.as_mut_ptr() as u64;
        }
        // SAFETY: instructions, licence and log outlive the call, and have the stated lengths.
        #[allow(unsafe_code, reason = "no library has these programs")]
        unsafe {
            file(bpf_cmd::BPF_PROG_LOAD, &attr)
        }
    };
    // The log costs time, so it is requested only after a failure.
    uninterrupted(|| load(&mut [])).or_else(|why| {
        let mut log = vec![0; LOG];
        load(&mut log).map_err(|_| reason(&log).map_or(why, io::Error::other))
    })
}

/// Repeats a verification that a signal interrupted, a few times.
fn uninterrupted<T>(mut check: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let is_interrupted = |why: &io::Error| matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
    for _ in 1..TRIES {
        match check() {
            Err(why) if is_interrupted(&why) => {}
            checked => return checked,
        }
    }
    check()
}

/// Registers a structure of the type `value_type` with the kernel, until the returned file is closed.
pub(super) fn register(name: &str, value: &[u8], value_type: u32) -> io::Result<OwnedFd> {
    let types = placeholder_types()?;
    let mut attr = no_attributes();
    attr.__bindgen_anon_1.map_type = bpf_map_type::BPF_MAP_TYPE_STRUCT_OPS as u32;
    attr.__bindgen_anon_1.map_name = object_name(name);
    attr.__bindgen_anon_1.key_size = size_of::<u32>() as u32;
    attr.__bindgen_anon_1.value_size = value.len() as u32;
    attr.__bindgen_anon_1.max_entries = 1;
    // The link registers the structure; no further link is needed to remove it.
    attr.__bindgen_anon_1.map_flags = BPF_F_LINK;
    attr.__bindgen_anon_1.btf_fd = raw_number(&types);
    attr.__bindgen_anon_1.btf_vmlinux_value_type_id = value_type;
    // SAFETY: `attr` has no addresses.
    #[allow(unsafe_code, reason = "no library supports these maps")]
    let map = unsafe { file(bpf_cmd::BPF_MAP_CREATE, &attr) }?;

    let key = 0u32;
    let mut attr = no_attributes();
    attr.__bindgen_anon_2.map_fd = raw_number(&map);
    attr.__bindgen_anon_2.key = std::ptr::from_ref(&key) as u64;
    attr.__bindgen_anon_2.__bindgen_anon_1.value = value.as_ptr() as u64;
    // SAFETY: key and value outlive the call, and have the lengths of the map's key and value.
    #[allow(unsafe_code, reason = "no library supports these maps")]
    unsafe {
        call(bpf_cmd::BPF_MAP_UPDATE_ELEM, &attr)?;
    }

    let mut attr = no_attributes();
    attr.link_create.__bindgen_anon_1.map_fd = raw_number(&map);
    attr.link_create.attach_type = bpf_attach_type::BPF_STRUCT_OPS as u32;
    // SAFETY: `attr` has no addresses.
    #[allow(unsafe_code, reason = "no library supports these links")]
    unsafe {
        file(bpf_cmd::BPF_LINK_CREATE, &attr)
    }
}

/// Types for a map whose real types are the kernel's: the call requires some types, but does not use them.
fn placeholder_types() -> io::Result<OwnedFd> {
    let mut types = Btf::new();
    let name = types.add_string("int");
    types.add_type(BtfType::Int(Int::new(name, 4, IntEncoding::Signed, 0)));
    let bytes = types.to_bytes();
    let mut attr = no_attributes();
    attr.__bindgen_anon_7.btf = bytes.as_ptr() as u64;
    attr.__bindgen_anon_7.btf_size = bytes.len() as u32;
    // SAFETY: the bytes outlive the call.
    #[allow(unsafe_code, reason = "the library's own function is private")]
    unsafe {
        file(bpf_cmd::BPF_BTF_LOAD, &attr)
    }
}

/// Attributes of a call, all zero, which the kernel takes as defaults.
fn no_attributes() -> bpf_attr {
    // SAFETY: the type has only integer fields.
    #[allow(unsafe_code, reason = "the type has no other constructor")]
    unsafe {
        std::mem::zeroed()
    }
}

/// A `bpf(2)` call that returns a file descriptor.
///
/// # Safety
/// As [`call`].
#[allow(unsafe_code, reason = "see `call`")]
unsafe fn file(command: bpf_cmd, attr: &bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: as for `call`; these commands return an open descriptor that nothing else owns.
    unsafe { Ok(OwnedFd::from_raw_fd(call(command, attr)?)) }
}

/// A `bpf(2)` call.
///
/// # Safety
/// Addresses in `attr` must be of memory that outlives the call and has the lengths that `attr` states.
#[allow(unsafe_code, reason = "no library exports this call")]
unsafe fn call(command: bpf_cmd, attr: &bpf_attr) -> io::Result<RawFd> {
    // SAFETY: the kernel reads `size_of::<bpf_attr>()` bytes of `attr`, and the caller guarantees its addresses.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as u32, std::ptr::from_ref(attr), size_of::<bpf_attr>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as RawFd) }
}

fn raw_number(file: &OwnedFd) -> u32 {
    file.as_raw_fd().unsigned_abs()
}

/// A name for listings of programs and maps, cut to the kernel's limit.
fn object_name(name: &str) -> [c_char; 16] {
    let mut object_name = [0; 16];
    object_name.iter_mut().zip(name.bytes().take(15)).for_each(|(to, from)| *to = from as c_char);
    object_name
}

/// The reason of a rejection: the last line of the verifier's log before its statistics.
fn reason(log: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    let mut lines = text.trim_end_matches('\0').lines().rev();
    lines.find(|line| !line.trim().is_empty() && !line.starts_with("processed ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn interrupted_verifications_are_repeated_and_rejected_ones_are_not() {
        let checked = |mut answers: Vec<Errno>| {
            let mut times = 0;
            let result = uninterrupted(|| {
                times += 1;
                answers.pop().map_or(Ok(()), |why| Err(why.into()))
            });
            (times, result.is_ok())
        };
        assert_eq!(checked(vec![Errno::INTR, Errno::AGAIN]), (3, true));
        assert_eq!(checked(vec![Errno::AGAIN, Errno::ACCESS]), (1, false));
        assert_eq!(checked(vec![Errno::AGAIN; 100]), (TRIES, false));
    }

    #[test]
    fn the_reason_is_the_last_line_before_the_statistics() {
        let log = b"0: R1=ctx()\nR0 !read_ok\nprocessed 1 insns (limit 1000000)\n\0\0\0";
        assert_eq!(reason(log).as_deref(), Some("R0 !read_ok"));
        assert_eq!([reason(b"\0\0"), reason(b"")], [None, None]);
        assert_eq!(object_name("a_name_that_is_too_long").map(|byte| byte as u8), *b"a_name_that_is_\0");
    }
}
