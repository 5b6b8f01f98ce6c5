//! The layout of the running kernel's structure of a congestion control, from its types (BTF). The library that reads BTF elsewhere does
//! not export the numbers of members, so this module reads the few types that it needs.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// The layout of the structure, and of the structure around it in which the kernel receives it.
#[derive(Debug)]
pub(super) struct Layout {
    /// The number of the type `tcp_congestion_ops`.
    pub operations: u32,
    /// The number of the type around it.
    pub value_type: u32,
    value_bytes: usize,
    /// The offset of the inner structure, bytes.
    data: usize,
    members: BTreeMap<String, Member>,
}

/// A member of the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub index: u32,
    /// Its offset in bytes from the start of the structure.
    pub offset: usize,
}

/// Why the types cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum LayoutError {
    #[error("the kernel's types are truncated, or of an unknown kind")]
    Broken,
    #[error("the kernel's types have no {0}, as Linux has since 5.6 with CONFIG_BPF_JIT=y")]
    Missing(String),
}

const OPERATIONS: &str = "tcp_congestion_ops";
const VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// A bit of the member `flags`: sockets negotiate ECN and send ECN-capable packets (`TCP_CONG_NEEDS_ECN`).
const NEEDS_ECN: u32 = 2;
/// The size of a name with its terminating zero, bytes.
const NAME: usize = 16;

impl Layout {
    /// Finds the layout in the types of a kernel.
    pub fn new(btf: &[u8]) -> Result<Self, LayoutError> {
        let types = Types::new(btf)?;
        let (operations, _, members) = types.find(OPERATIONS)?;
        let (value_type, value_bytes, around) = types.find(VALUE)?;
        let data = around.get("data").ok_or_else(|| LayoutError::Missing("data".to_owned()))?.offset;
        Ok(Self { operations, value_type, value_bytes, data, members })
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Result<Member, LayoutError> {
        self.members.get(name).copied().ok_or_else(|| LayoutError::Missing(name.to_owned()))
    }

    /// The value to register: the name, the flags, and at the offset of each member the program that implements it.
    pub fn value(&self, name: &str, needs_ecn: bool, programs: &[(usize, OwnedFd)]) -> Result<Vec<u8>, LayoutError> {
        let mut value = vec![0; self.value_bytes];
        let mut put = |offset: usize, bytes: &[u8]| {
            let place = value.get_mut(self.data + offset..).and_then(|rest| rest.get_mut(..bytes.len()));
            place.map(|place| place.copy_from_slice(bytes)).ok_or(LayoutError::Broken)
        };
        put(self.member("name")?.offset, name.as_bytes().get(..NAME - 1).unwrap_or(name.as_bytes()))?;
        put(self.member("flags")?.offset, &(if needs_ecn { NEEDS_ECN } else { 0 }).to_ne_bytes())?;
        for (offset, program) in programs {
            put(*offset, &u64::from(program.as_raw_fd().unsigned_abs()).to_ne_bytes())?;
        }
        Ok(value)
    }
}

/// A sequence of types, as in `Documentation/bpf/btf.rst` of Linux.
struct Types<'a> {
    types: &'a [u8],
    names: &'a [u8],
}

impl<'a> Types<'a> {
    const MAGIC: u16 = 0xeb9f;
    const STRUCT: u32 = 4;

    fn new(btf: &'a [u8]) -> Result<Self, LayoutError> {
        let word = |n: usize| word(btf, 4 + 4 * n);
        let magic = btf.first_chunk().map(|magic| u16::from_ne_bytes(*magic));
        let header = word(0).filter(|_| magic == Some(Self::MAGIC)).ok_or(LayoutError::Broken)?;
        let section = |n: usize| btf.get(header.checked_add(word(n)?)? as usize..)?.get(..word(n + 1)? as usize);
        section(1).zip(section(3)).map(|(types, names)| Self { types, names }).ok_or(LayoutError::Broken)
    }

    /// Finds a structure by name: its number, its size in bytes and its members.
    fn find(&self, name: &str) -> Result<(u32, usize, BTreeMap<String, Member>), LayoutError> {
        let (mut at, mut number) = (0, 1);
        while at < self.types.len() {
            let [called, info, size] = self.words(at)?;
            let (kind, entries) = (info >> 24 & 0x1f, info as usize & 0xffff);
            let end = at + 12 + Self::trailing_bytes(kind, entries)?;
            if kind == Self::STRUCT && self.is_called(called, name) {
                let members = (0..entries).map(|index| self.member(at + 12, index, info >> 31 == 1));
                return Ok((number, size as usize, members.collect::<Result<_, _>>()?));
            }
            (at, number) = (end, number + 1);
        }
        Err(LayoutError::Missing(name.to_owned()))
    }

    fn member(&self, from: usize, index: usize, has_bits: bool) -> Result<(String, Member), LayoutError> {
        let [called, _, offset] = self.words(from + 12 * index)?;
        // The offset is in bits; with `has_bits`, the upper eight bits are the width of a bit field.
        let offset = if has_bits { offset & 0xff_ffff } else { offset };
        let name = self.names.get(called as usize..).and_then(|rest| rest.split(|byte| *byte == 0).next());
        let name = String::from_utf8_lossy(name.ok_or(LayoutError::Broken)?).into_owned();
        Ok((name, Member { index: index as u32, offset: offset as usize / 8 }))
    }

    fn is_called(&self, at: u32, name: &str) -> bool {
        let rest = self.names.get(at as usize..).and_then(|rest| rest.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    fn words(&self, at: usize) -> Result<[u32; 3], LayoutError> {
        let [one, two, three] = [0, 4, 8].map(|more| word(self.types, at + more));
        one.zip(two).zip(three).map(|((one, two), three)| [one, two, three]).ok_or(LayoutError::Broken)
    }

    /// The number of bytes of a type after its three words.
    fn trailing_bytes(kind: u32, entries: usize) -> Result<usize, LayoutError> {
        match kind {
            // A pointer, a forward, a typedef, three qualifiers, a function, a float, a type tag.
            2 | 7..=12 | 16 | 18 => Ok(0),
            // An integer, a variable, a declaration tag.
            1 | 14 | 17 => Ok(4),
            // An array.
            3 => Ok(12),
            // An enumeration, the parameters of a prototype.
            6 | 13 => Ok(8 * entries),
            // The members of a structure or union, the variables of a section, a 64-bit enumeration.
            4 | 5 | 15 | 19 => Ok(12 * entries),
            _ => Err(LayoutError::Broken),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// BTF as a kernel has it: a structure of three members after other types, and the structure around it.
    fn types() -> Vec<u8> {
        let names = b"\0u32\0ssthresh\0name\0flags\0tcp_congestion_ops\0data\0bpf_struct_ops_tcp_congestion_ops\0";
        let at = |name: &str| {
            let whole = [name.as_bytes(), b"\0"].concat();
            names.windows(whole.len()).position(|here| here == whole).expect("it is there") as u32
        };
        let named = |kind: u32, entries: u32| kind << 24 | entries;
        let words = [
            vec![at("u32"), named(1, 0), 4, 32],
            // An enumeration of two values, an array, a prototype with a parameter, and a forward with the structure's name.
            vec![0, named(6, 2), 4, 0, 0, 0, 1],
            vec![0, named(3, 0), 0, 1, 1, 16],
            vec![0, named(13, 1), 0, 0, 1],
            vec![at("tcp_congestion_ops"), named(7, 0), 0],
            // With the widths of bit fields above the offsets.
            vec![at("tcp_congestion_ops"), named(4, 3) | 1 << 31, 32],
            vec![at("ssthresh"), 4, 0, at("name"), 3, 64, at("flags"), 1, 5 << 24 | 192],
            vec![at("bpf_struct_ops_tcp_congestion_ops"), named(4, 1), 128, at("data"), 6, 64 * 8],
        ]
        .concat();
        let header = [0, 4 * words.len() as u32, 4 * words.len() as u32, names.len() as u32];
        let mut bytes = [0xeb9f_u16.to_ne_bytes().as_slice(), &[1, 0], &24u32.to_ne_bytes()].concat();
        bytes.extend(header.iter().chain(&words).flat_map(|word| word.to_ne_bytes()));
        bytes.extend_from_slice(names);
        bytes
    }

    #[test]
    fn members_are_found_and_filled() {
        let layout = Layout::new(&types()).expect("all types are there");
        assert_eq!((layout.operations, layout.value_type, layout.value_bytes, layout.data), (6, 7, 128, 64));
        assert_eq!(layout.member("name"), Ok(Member { index: 1, offset: 8 }));
        assert_eq!(layout.member("release"), Err(LayoutError::Missing("release".to_owned())));
        let file = || OwnedFd::from(std::io::pipe().expect("there is one").0);
        let programs = [(layout.member("ssthresh").expect("it is there").offset, file())];
        let value = layout.value("vegas_3f2a9c", true, &programs).expect("there is room");
        assert_eq!(value[..64], [0; 64]);
        assert_eq!(value[64..72], (programs[0].1.as_raw_fd() as u64).to_ne_bytes());
        assert_eq!(value[72..88], *b"vegas_3f2a9c\0\0\0\0");
        assert_eq!(value[88..96], [NEEDS_ECN.to_ne_bytes(), [0; 4]].concat());
        assert_eq!(layout.value("vegas", true, &[(60, file())]), Err(LayoutError::Broken));
    }

    #[test]
    fn a_missing_member_and_a_wrong_magic_number_are_errors() {
        let mut other = types();
        let place = other.windows(4).rposition(|here| here == b"data").expect("it is there");
        other[place] = b'D';
        assert_eq!(Layout::new(&other).map(|_| ()), Err(LayoutError::Missing("data".to_owned())));
        other[0] ^= 1;
        assert_eq!(Layout::new(&other).map(|_| ()), Err(LayoutError::Broken));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]
        #[test]
        fn broken_types_are_refused(cut: prop::sample::Index, place: prop::sample::Index, byte: u8) {
            let mut bytes = types();
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Layout::new(&bytes).is_err());
            let mut bytes = types();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            // A changed byte may go unnoticed, but must not panic.
            let _ = Layout::new(&bytes);
        }
    }
}
