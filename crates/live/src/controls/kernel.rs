//! The calls of `bpf(2)` that no library has: programs of the kind `struct_ops`, the map that holds them, and the link that makes them
//! known. What fails is told in the kernel's words.

use super::object::Function;
use aya_obj::btf::{Btf, BtfType, Int, IntEncoding};
use aya_obj::generated::{BPF_F_LINK, bpf_attach_type, bpf_attr, bpf_cmd, bpf_map_type, bpf_prog_type};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ffi::{CStr, c_char};
use std::io::{self, ErrorKind};
use std::mem::size_of;

/// Bytes of what the kernel says of a program that it does not take.
const LOG: usize = 1 << 16;
/// Times that a program is checked if signals break that off.
const TRIES: usize = 8;

/// Loads a program that becomes a member of a structure of the kernel's.
pub(super) fn load_program(
    function: &Function<'_>,
    license: &CStr,
    structure: u32,
    member: u32,
) -> io::Result<OwnedFd> {
    let load = |log: &mut [u8]| {
        let mut attr = nothing();
        attr.__bindgen_anon_3.prog_type = bpf_prog_type::BPF_PROG_TYPE_STRUCT_OPS as u32;
        attr.__bindgen_anon_3.prog_name = named(function.name);
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
        // SAFETY: instructions, licence and log last until it returns, and are as long as is said.
        #[allow(unsafe_code, reason = "no library has these programs")]
        unsafe {
            file(bpf_cmd::BPF_PROG_LOAD, &attr)
        }
    };
    // A log takes time: it is for those who want to know why.
    uninterrupted(|| load(&mut [])).or_else(|why| {
        let mut log = vec![0; LOG];
        load(&mut log).map_err(|_| said(&log).map_or(why, io::Error::other))
    })
}

/// A signal breaks the kernel's check of a program off: then it begins again, a few times.
fn uninterrupted<T>(mut check: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let is_broken_off = |why: &io::Error| matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
    for _ in 1..TRIES {
        match check() {
            Err(why) if is_broken_off(&why) => {}
            checked => return checked,
        }
    }
    check()
}

/// Makes a structure known whose type is `value_type`, for as long as what this gives is open.
pub(super) fn register(name: &str, value: &[u8], value_type: u32) -> io::Result<OwnedFd> {
    let types = some_types()?;
    let mut attr = nothing();
    attr.__bindgen_anon_1.map_type = bpf_map_type::BPF_MAP_TYPE_STRUCT_OPS as u32;
    attr.__bindgen_anon_1.map_name = named(name);
    attr.__bindgen_anon_1.key_size = size_of::<u32>() as u32;
    attr.__bindgen_anon_1.value_size = value.len() as u32;
    attr.__bindgen_anon_1.max_entries = 1;
    // It is the link that makes it known, and no link that ends it.
    attr.__bindgen_anon_1.map_flags = BPF_F_LINK;
    attr.__bindgen_anon_1.btf_fd = number(&types);
    attr.__bindgen_anon_1.btf_vmlinux_value_type_id = value_type;
    // SAFETY: it has no addresses.
    #[allow(unsafe_code, reason = "no library has these maps")]
    let map = unsafe { file(bpf_cmd::BPF_MAP_CREATE, &attr) }?;

    let key = 0u32;
    let mut attr = nothing();
    attr.__bindgen_anon_2.map_fd = number(&map);
    attr.__bindgen_anon_2.key = std::ptr::from_ref(&key) as u64;
    attr.__bindgen_anon_2.__bindgen_anon_1.value = value.as_ptr() as u64;
    // SAFETY: key and value last until it returns, and are as long as those of the map.
    #[allow(unsafe_code, reason = "no library has these maps")]
    unsafe {
        call(bpf_cmd::BPF_MAP_UPDATE_ELEM, &attr)?;
    }

    let mut attr = nothing();
    attr.link_create.__bindgen_anon_1.map_fd = number(&map);
    attr.link_create.attach_type = bpf_attach_type::BPF_STRUCT_OPS as u32;
    // SAFETY: it has no addresses.
    #[allow(unsafe_code, reason = "no library has these links")]
    unsafe {
        file(bpf_cmd::BPF_LINK_CREATE, &attr)
    }
}

/// Types for a map whose own are the kernel's: it wants some, and looks at none.
fn some_types() -> io::Result<OwnedFd> {
    let mut types = Btf::new();
    let name = types.add_string("int");
    types.add_type(BtfType::Int(Int::new(name, 4, IntEncoding::Signed, 0)));
    let bytes = types.to_bytes();
    let mut attr = nothing();
    attr.__bindgen_anon_7.btf = bytes.as_ptr() as u64;
    attr.__bindgen_anon_7.btf_size = bytes.len() as u32;
    // SAFETY: these bytes last until it returns.
    #[allow(unsafe_code, reason = "the library keeps its own call to itself")]
    unsafe {
        file(bpf_cmd::BPF_BTF_LOAD, &attr)
    }
}

/// What is asked for, before anything is said of it: the kernel takes zeros for what is not said.
fn nothing() -> bpf_attr {
    // SAFETY: it has numbers alone.
    #[allow(unsafe_code, reason = "it has no other beginning")]
    unsafe {
        std::mem::zeroed()
    }
}

/// A call that gives something to close.
///
/// # Safety
/// As of [`call`].
#[allow(unsafe_code, reason = "see `call`")]
unsafe fn file(command: bpf_cmd, attr: &bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: as of `call`; and what these commands give is open, and nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(call(command, attr)?)) }
}

/// A call.
///
/// # Safety
/// Addresses in `attr` must be of things that last until it returns, and that are as long as `attr` says.
#[allow(unsafe_code, reason = "no library has this call")]
unsafe fn call(command: bpf_cmd, attr: &bpf_attr) -> io::Result<RawFd> {
    // SAFETY: the kernel reads as many bytes of `attr` as there are, and what is in it is right.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as u32, std::ptr::from_ref(attr), size_of::<bpf_attr>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as RawFd) }
}

fn number(file: &OwnedFd) -> u32 {
    file.as_raw_fd().unsigned_abs()
}

/// A name for lists of programs and maps, cut to what the kernel takes.
fn named(name: &str) -> [c_char; 16] {
    let mut named = [0; 16];
    named.iter_mut().zip(name.bytes().take(15)).for_each(|(to, from)| *to = from as c_char);
    named
}

/// Why a program was not taken: the last line of the log but for its counts.
fn said(log: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    let mut lines = text.trim_end_matches('\0').lines().rev();
    lines.find(|line| !line.trim().is_empty() && !line.starts_with("processed ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_a_signal_broke_off_begins_again_and_what_was_refused_does_not() {
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
    fn why_is_the_last_line_but_the_counts() {
        let log = b"0: R1=ctx()\nR0 !read_ok\nprocessed 1 insns (limit 1000000)\n\0\0\0";
        assert_eq!(said(log).as_deref(), Some("R0 !read_ok"));
        assert_eq!([said(b"\0\0"), said(b"")], [None, None]);
        assert_eq!(named("a_name_that_is_too_long").map(|byte| byte as u8), *b"a_name_that_is_\0");
    }
}
