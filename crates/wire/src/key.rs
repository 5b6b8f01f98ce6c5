//! The flow of a packet: [`FlowKey`], and the [`Granularity`] at which packets are grouped into flows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The fields that distinguish flows. A field that a granularity does not use is zero, so that equal flows have equal
/// keys.
///
/// ```
/// use queuescope_wire::{FlowKey, Granularity};
///
/// let (granularity, key) = FlowKey::named("10.0.0.1:443 > 10.0.0.2:50010 tcp").ok_or("not a name")?;
/// assert_eq!(granularity, Granularity::FiveTuple);
/// assert_eq!((key.src_port, key.dst_port, key.protocol), (443, 50010, 6));
/// assert_eq!(key.src, 0x0a00_0001);
/// assert_ne!(key.digest(), FlowKey::default().digest());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, Default, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source address; an IPv4 or MAC address stands in the low bits.
    pub src: u128,
    /// Destination address; an IPv4 or MAC address stands in the low bits.
    pub dst: u128,
    /// Source port, where the protocol has ports.
    pub src_port: u16,
    /// Destination port, where the protocol has ports.
    pub dst_port: u16,
    /// Outermost 802.1Q VLAN identifier; 0 without a tag.
    pub vlan: u16,
    /// EtherType of a frame without an IP header; 0 for IP.
    pub ethertype: u16,
    /// IP protocol number of the transport.
    pub protocol: u8,
    /// Differentiated services codepoint.
    pub dscp: u8,
    /// What kind of addresses these are.
    pub family: Family,
}

/// The kind of a key's addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// No readable network header: the addresses are MAC addresses, or zero.
    #[default]
    Link,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl FlowKey {
    /// A 64-bit digest, the same in every run. Sketches and hash tables start from it.
    #[inline]
    pub fn digest(&self) -> u64 {
        let words = self.words();
        // Three independent folded products, joined by a fourth: each word is combined with a constant before it is
        // multiplied.
        let a = fold(words[0] ^ 0x243f_6a88_85a3_08d3, words[1] ^ 0x1319_8a2e_0370_7344);
        let b = fold(words[2] ^ 0xa409_3822_299f_31d0, words[3] ^ 0x082e_fa98_ec4e_6c89);
        let c = fold(words[4] ^ 0x4528_21e6_38d0_1377, words[5] ^ 0xbe54_66cf_34e9_0c6c);
        fold(a ^ b.rotate_left(21) ^ 0xc0ac_29b7_c97c_50dd, c ^ b ^ 0x3f84_d5b5_b547_0917)
    }

    /// All fields, packed into as few words as possible.
    #[inline]
    pub(crate) fn words(&self) -> [u64; 6] {
        [
            self.src as u64,
            (self.src >> 64) as u64,
            self.dst as u64,
            (self.dst >> 64) as u64,
            u64::from(self.src_port)
                | u64::from(self.dst_port) << 16
                | u64::from(self.vlan) << 32
                | u64::from(self.ethertype) << 48,
            u64::from(self.protocol) | u64::from(self.dscp) << 8 | (self.family as u64) << 16,
        ]
    }
}

/// Compares field by field without branches: a table looks up keys that it nearly always holds.
impl PartialEq for FlowKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.words(), other.words());
        (0..6).fold(0, |differing, word| differing | (a[word] ^ b[word])) == 0
    }
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().hash(state);
    }
}

/// The folded product of two words: the high half of the 128-bit product, combined with the low half.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// How finely packets are grouped into flows.
///
/// ```
/// use queuescope_wire::{FlowKey, Granularity};
///
/// let (_, key) = FlowKey::named("10.0.0.1:443 > 10.0.0.2:50010 tcp").ok_or("not a name")?;
/// let subnets: Granularity = "dst/24".parse()?;
/// let flow = subnets.project(&key);
/// assert_eq!(subnets.name(&flow), "> 10.0.0.0/24");
/// assert_eq!(flow.src_port, 0, "the key has only what the granularity uses");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// Addresses, ports and protocol, each direction a flow of its own. Written `5tuple`.
    FiveTuple,
    /// Addresses, ports and protocol, both directions one flow. Written `conn`.
    Connection,
    /// Source and destination address. Written `src-dst`.
    Pair,
    /// Source address or its prefix. Written `src`, `src/24`, `src/24/56`.
    Source(Prefixes),
    /// Destination address or its prefix. Written `dst`, `dst/24`, `dst/24/56`.
    Destination(Prefixes),
    /// Differentiated services codepoint. Written `dscp`.
    Dscp,
    /// VLAN identifier. Written `vlan`.
    Vlan,
}

/// How many leading bits of an address are part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefixes {
    /// Bits of an IPv4 address, up to 32.
    pub v4: u8,
    /// Bits of an IPv6 address, up to 128.
    pub v6: u8,
}

impl Prefixes {
    /// Whole addresses.
    pub const WHOLE: Self = Self { v4: 32, v6: 128 };

    fn apply(self, address: u128, family: Family) -> u128 {
        match family {
            Family::Link => address,
            Family::V4 => address & high_bits(self.v4) >> 96,
            Family::V6 => address & high_bits(self.v6),
        }
    }
}

/// A mask of the `count` highest of 128 bits.
fn high_bits(count: u8) -> u128 {
    if count == 0 { 0 } else { u128::MAX << (128 - u32::from(count.min(128))) }
}

impl Granularity {
    /// The key of the flow that `key` belongs to at this granularity. `key` must have all fields.
    pub fn project(self, key: &FlowKey) -> FlowKey {
        let FlowKey { src, dst, src_port, dst_port, ethertype, family, .. } = *key;
        match self {
            Self::FiveTuple => FlowKey { vlan: 0, dscp: 0, ..*key },
            Self::Connection if (dst, dst_port) < (src, src_port) => {
                FlowKey { src: dst, dst: src, src_port: dst_port, dst_port: src_port, vlan: 0, dscp: 0, ..*key }
            }
            Self::Connection => FlowKey { vlan: 0, dscp: 0, ..*key },
            Self::Pair => FlowKey { src, dst, ethertype, family, ..FlowKey::default() },
            Self::Source(bits) => FlowKey { src: bits.apply(src, family), ethertype, family, ..FlowKey::default() },
            Self::Destination(bits) => {
                FlowKey { dst: bits.apply(dst, family), ethertype, family, ..FlowKey::default() }
            }
            Self::Dscp => FlowKey { dscp: key.dscp, ethertype, protocol: 0, family, ..FlowKey::default() },
            Self::Vlan => FlowKey { vlan: key.vlan, ..FlowKey::default() },
        }
    }
}

/// The bits of a key's fields that are kept: the coarsest key from which several granularities can still be projected.
///
/// ```
/// use queuescope_wire::{FlowKey, Granularity, KeyMask};
///
/// let mask = KeyMask::covering(&["src".parse()?, "dst/24".parse()?]);
/// let (_, key) = FlowKey::named("10.0.0.1:443 > 10.0.0.2:50010 tcp").ok_or("not a name")?;
/// let reduced = *mask.mask(&key).key();
/// assert_eq!((reduced.src_port, reduced.dst_port), (0, 0));
/// let pairs: Granularity = "src".parse()?;
/// assert_eq!(pairs.name(&pairs.project(&reduced)), "10.0.0.1 >");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyMask {
    src: Ends,
    dst: Ends,
    ports: u16,
    protocol: u8,
    vlan: u16,
    dscp: u8,
}

/// A key reduced to the fields that some granularity uses: made by [`KeyMask::mask`], and passed to
/// [`Flows::intern`](crate::Flows::intern).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskedKey {
    pub(crate) key: FlowKey,
    pub(crate) digest: u64,
}

impl MaskedKey {
    /// The reduced key.
    pub fn key(&self) -> &FlowKey {
        &self.key
    }
}

/// The bits of an address that are kept, by [`Family`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends([u128; 3]);

impl KeyMask {
    /// Keeps every field.
    pub const WHOLE: Self = Self {
        src: Ends([u128::MAX; 3]),
        dst: Ends([u128::MAX; 3]),
        ports: u16::MAX,
        protocol: u8::MAX,
        vlan: u16::MAX,
        dscp: u8::MAX,
    };

    /// Keeps what at least one of `granularities` needs.
    pub fn covering(granularities: &[Granularity]) -> Self {
        let none = Ends([0; 3]);
        let mut mask = Self { src: none, dst: none, ports: 0, protocol: 0, vlan: 0, dscp: 0 };
        for granularity in granularities {
            match granularity {
                Granularity::FiveTuple | Granularity::Connection => {
                    mask.src.widen(Prefixes::WHOLE);
                    mask.dst.widen(Prefixes::WHOLE);
                    (mask.ports, mask.protocol) = (u16::MAX, u8::MAX);
                }
                Granularity::Pair => {
                    mask.src.widen(Prefixes::WHOLE);
                    mask.dst.widen(Prefixes::WHOLE);
                }
                Granularity::Source(bits) => mask.src.widen(*bits),
                Granularity::Destination(bits) => mask.dst.widen(*bits),
                Granularity::Dscp => mask.dscp = u8::MAX,
                Granularity::Vlan => mask.vlan = u16::MAX,
            }
        }
        mask
    }

    /// Reduces `key`, which has all fields, and computes the digest of the result.
    #[inline]
    pub fn mask(&self, key: &FlowKey) -> MaskedKey {
        let key = self.apply(key);
        MaskedKey { digest: key.digest(), key }
    }

    /// The part of `key` that this mask keeps.
    #[inline]
    pub(crate) fn apply(&self, key: &FlowKey) -> FlowKey {
        let family = key.family as usize;
        FlowKey {
            src: key.src & self.src.0[family],
            dst: key.dst & self.dst.0[family],
            src_port: key.src_port & self.ports,
            dst_port: key.dst_port & self.ports,
            vlan: key.vlan & self.vlan,
            ethertype: key.ethertype,
            protocol: key.protocol & self.protocol,
            dscp: key.dscp & self.dscp,
            family: key.family,
        }
    }
}

impl Ends {
    fn widen(&mut self, bits: Prefixes) {
        self.0[Family::Link as usize] = u128::MAX;
        self.0[Family::V4 as usize] |= high_bits(bits.v4) >> 96;
        self.0[Family::V6 as usize] |= high_bits(bits.v6);
    }
}

/// As the command line spells it; [`FromStr`] parses it.
impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (end, bits) = match self {
            Self::FiveTuple => return f.pad("5tuple"),
            Self::Connection => return f.pad("conn"),
            Self::Pair => return f.pad("src-dst"),
            Self::Dscp => return f.pad("dscp"),
            Self::Vlan => return f.pad("vlan"),
            Self::Source(bits) => ("src", *bits),
            Self::Destination(bits) => ("dst", *bits),
        };
        if bits == Prefixes::WHOLE { f.pad(end) } else { f.pad(&format!("{end}/{}/{}", bits.v4, bits.v6)) }
    }
}

impl FromStr for Granularity {
    type Err = GranularityError;

    fn from_str(text: &str) -> Result<Self, GranularityError> {
        let unknown = || GranularityError::Unknown { text: text.to_owned() };
        match text {
            "5tuple" => return Ok(Self::FiveTuple),
            "conn" => return Ok(Self::Connection),
            "src-dst" => return Ok(Self::Pair),
            "dscp" => return Ok(Self::Dscp),
            "vlan" => return Ok(Self::Vlan),
            _ => {}
        }
        let (end, bits) = text.split_once('/').map_or((text, None), |(end, bits)| (end, Some(bits)));
        let bits = match bits {
            None => Prefixes::WHOLE,
            Some(bits) => {
                let prefix = || GranularityError::Prefix { text: text.to_owned() };
                let length = |text: &str, most: u8| {
                    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                    text.parse().ok().filter(|&length| plain && length <= most).ok_or_else(prefix)
                };
                match bits.split_once('/') {
                    Some((v4, v6)) => Prefixes { v4: length(v4, 32)?, v6: length(v6, 128)? },
                    None => match length(bits, 128)? {
                        v4 @ 0..=32 => Prefixes { v4, v6: v4 * 2 },
                        v6 => Prefixes { v4: 32, v6 },
                    },
                }
            }
        };
        match end {
            "src" => Ok(Self::Source(bits)),
            "dst" => Ok(Self::Destination(bits)),
            _ => Err(unknown()),
        }
    }
}

/// A granularity that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GranularityError {
    /// The name is unknown.
    #[error(
        "'{text}' is not a flow key: use 5tuple, conn (both directions), src-dst, src, dst, dscp or vlan; \
         src and dst take a prefix length, as in dst/24 or dst/24/56 (IPv4/IPv6)"
    )]
    Unknown {
        /// The text as written.
        text: String,
    },
    /// The prefix length is out of range.
    #[error(
        "'{text}' has an invalid prefix length: IPv4 has 0 to 32 and IPv6 0 to 128, as in dst/24 or dst/24/56 (IPv4/IPv6)"
    )]
    Prefix {
        /// The text as written.
        text: String,
    },
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(src: [u8; 4], dst: [u8; 4], src_port: u16, dst_port: u16) -> FlowKey {
        let [src, dst] = [src, dst].map(|octets| u128::from(u32::from_be_bytes(octets)));
        FlowKey { src, dst, src_port, dst_port, protocol: 6, family: Family::V4, vlan: 7, dscp: 46, ethertype: 0 }
    }

    #[test]
    fn both_directions_are_one_connection() {
        let key = v4([10, 0, 0, 1], [10, 0, 1, 7], 443, 50010);
        let back = v4([10, 0, 1, 7], [10, 0, 0, 1], 50010, 443);
        assert_eq!(Granularity::Connection.project(&key), Granularity::Connection.project(&back));
        assert_ne!(Granularity::FiveTuple.project(&key), Granularity::FiveTuple.project(&back));
    }

    #[test]
    fn an_invalid_granularity_is_an_error() {
        for text in ["", "tuple", "dst/33/0", "dst/129", "src/", "src/+4", "src/1/2/3", "vlan/3", "dst/256"] {
            assert!(text.parse::<Granularity>().is_err(), "{text}");
        }
    }

    pub(crate) fn granularity() -> impl Strategy<Value = Granularity> {
        let prefixes = (0..=32u8, 0..=128u8).prop_map(|(v4, v6)| Prefixes { v4, v6 });
        prop_oneof![
            Just(Granularity::FiveTuple),
            Just(Granularity::Connection),
            Just(Granularity::Pair),
            Just(Granularity::Dscp),
            Just(Granularity::Vlan),
            prefixes.clone().prop_map(Granularity::Source),
            prefixes.prop_map(Granularity::Destination),
        ]
    }

    fn key() -> impl Strategy<Value = FlowKey> {
        let family = prop_oneof![Just(Family::V4), Just(Family::V6), Just(Family::Link)];
        let numbers = (any::<u16>(), any::<u16>(), 0..4096u16, any::<u8>(), 0..64u8);
        (any::<[u128; 2]>(), numbers, family).prop_map(
            |(addresses, (src_port, dst_port, vlan, protocol, dscp), family)| {
                let [src, dst] = addresses.map(|a| if family == Family::V6 { a } else { u128::from(a as u32) });
                FlowKey { src, dst, src_port, dst_port, vlan, dscp, protocol, family, ethertype: 0 }
            },
        )
    }

    proptest! {
        #[test]
        fn display_reads_back(granularity in granularity()) {
            prop_assert_eq!(granularity.to_string().parse(), Ok(granularity));
        }

        #[test]
        fn projecting_through_the_finest_key_loses_nothing(
            wanted in prop::collection::vec(granularity(), 1..4), key in key()
        ) {
            let finest = KeyMask::covering(&wanted).apply(&key);
            for granularity in wanted {
                prop_assert_eq!(granularity.project(&finest), granularity.project(&key));
            }
        }

        #[test]
        fn projection_is_idempotent_and_digest_follows_equality(
            granularity in granularity(), key in key(), other in key()
        ) {
            let once = granularity.project(&key);
            prop_assert_eq!(granularity.project(&once), once);
            prop_assert_eq!(once.digest() == granularity.project(&other).digest(), once == granularity.project(&other));
        }
    }
}
