//! Where an attribute is in a record, and its key: a `u128` in the order of the attribute's values.
//!
//! A key has as many bits as the attribute, in the low bits of a `u128`. Unsigned numbers, addresses and bytes (big
//! endian) are their own keys. For a signed number the sign bit is flipped. For a floating-point number the sign bit is flipped, and if it was
//! set, all other bits too.

use super::{Kind, low_bits};

/// Where an attribute is in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its first byte.
    pub offset: u32,
    /// Its first bit in that byte; 0 is the most significant, as in RFCs.
    pub bit: u8,
    /// Its size in bits.
    pub bits: u32,
    /// Its byte order. Attributes that are not whole bytes are big endian.
    pub order: Order,
}

/// The byte order of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The most significant byte first, as in network protocols.
    #[default]
    Big,
    /// The least significant byte first.
    Little,
}

impl Place {
    /// The number of bytes it touches.
    pub fn bytes(&self) -> u32 {
        (u32::from(self.bit) + self.bits).div_ceil(8)
    }

    /// The first byte behind it.
    pub fn end(&self) -> u32 {
        self.offset + self.bytes()
    }

    /// Its first bit in the record, and the first bit behind it.
    pub(super) fn span(&self) -> (u32, u32) {
        let first = self.offset * 8 + u32::from(self.bit);
        (first, first + self.bits)
    }
}

/// Reads one attribute's keys from records.
///
/// ```
/// use queuescope_log::{Schema, departure};
///
/// let schema = Schema::departure();
/// let port = schema.reader(schema.find("dst_port").ok_or("unknown attribute")?);
/// let mut record = [0; departure::SIZE];
/// port.write(&mut record, 443);
/// assert_eq!(port.key(&record), 443);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// Offset of the 16 bytes to read, which hold the attribute.
    at: u32,
    /// Distance from their low end, in bits.
    shift: u32,
    order: Order,
    sign: Sign,
    /// As many low bits as the attribute has.
    mask: u128,
    /// The highest of these bits.
    top: u128,
    place: Place,
}

/// Where in a record the eight bytes are that hold an attribute, and how to extract it.
struct Narrow {
    at: usize,
    shift: u32,
    mask: u64,
}

/// The meaning of a number's highest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    None,
    Signed,
    Float,
}

/// Bytes that are read at once.
const WIDTH: usize = 16;

impl Reader {
    /// A reader of `place` in records of `record_size` bytes. For an attribute of more than 128 bits, keys have no
    /// meaning.
    pub(super) fn new(kind: Kind, place: Place, record_size: usize) -> Self {
        // 16 bytes within the record, if it has that many.
        let at = place.offset.min(record_size.saturating_sub(WIDTH) as u32);
        let shift = match place.order {
            Order::Big => (u64::from(at) + WIDTH as u64) * 8 - u64::from(place.span().1.min(at * 8 + 128)),
            Order::Little => u64::from(place.offset - at) * 8,
        };
        let mask = low_bits(place.bits);
        let sign = match kind {
            Kind::Signed => Sign::Signed,
            Kind::Float => Sign::Float,
            _ => Sign::None,
        };
        Self { at, shift: shift.min(127) as u32, order: place.order, sign, mask, top: mask ^ (mask >> 1), place }
    }

    /// The attribute's key in a record. Bytes behind the record's end count as zero.
    #[inline]
    pub fn key(&self, record: &[u8]) -> u128 {
        let bytes = match record.get(self.at as usize..).and_then(<[u8]>::first_chunk::<WIDTH>) {
            Some(bytes) => *bytes,
            None => padded(record, self.at as usize),
        };
        let word = match self.order {
            Order::Big => u128::from_be_bytes(bytes),
            Order::Little => u128::from_le_bytes(bytes),
        };
        self.key_of_bits((word >> self.shift) & self.mask)
    }

    /// A reader whose keys are the bits in the record: even minus zero is preserved.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_bits(self) -> Self {
        Self { sign: Sign::None, ..self }
    }

    /// The keys of consecutive records of `size` bytes, for an attribute of at most 64 bits.
    pub(crate) fn fill(&self, records: &[u8], size: usize, keys: &mut [u64]) {
        let records = records.chunks_exact(size);
        let Some(narrow) = self.narrow(size) else {
            for (key, record) in keys.iter_mut().zip(records) {
                *key = self.key(record) as u64;
            }
            return;
        };
        let Narrow { at, shift, mask } = narrow;
        let bytes = |record: &[u8]| record[at..].first_chunk().copied().unwrap_or_default();
        match self.order {
            Order::Big => {
                for (key, record) in keys.iter_mut().zip(records) {
                    *key = u64::from_be_bytes(bytes(record)) >> shift & mask;
                }
            }
            Order::Little => {
                for (key, record) in keys.iter_mut().zip(records) {
                    *key = u64::from_le_bytes(bytes(record)) >> shift & mask;
                }
            }
        }
    }

    /// For consecutive records of `size` bytes, sets a bit for each whose key passes `holds`, for an attribute of at most 64
    /// bits. Words behind the last record stay as they are.
    pub(crate) fn test(&self, records: &[u8], size: usize, bits: &mut [u64], holds: impl Fn(u64) -> bool) {
        let Some(Narrow { at, shift, mask }) = self.narrow(size) else {
            return each(records, size, bits, |record| holds(self.key(record) as u64));
        };
        let bytes = |record: &[u8]| record[at..].first_chunk().copied().unwrap_or_default();
        match self.order {
            Order::Big => {
                each(records, size, bits, |record| holds(u64::from_be_bytes(bytes(record)) >> shift & mask));
            }
            Order::Little => {
                each(records, size, bits, |record| holds(u64::from_le_bytes(bytes(record)) >> shift & mask));
            }
        }
    }

    /// Where eight bytes of a record of `size` bytes hold it, if they do and a shift and a mask are enough.
    fn narrow(&self, size: usize) -> Option<Narrow> {
        let at = (self.place.offset as usize).min(size.checked_sub(8)?);
        let behind = (at as u32 + 8) * 8;
        if self.sign != Sign::None || self.place.span().1 > behind {
            return None;
        }
        let shift = match self.order {
            Order::Big => behind - self.place.span().1,
            Order::Little => (self.place.offset - at as u32) * 8,
        };
        Some(Narrow { at, shift, mask: self.mask as u64 })
    }

    /// The key of a value with these bits.
    #[inline]
    pub(crate) fn key_of_bits(&self, bits: u128) -> u128 {
        match self.sign {
            Sign::None => bits,
            Sign::Signed => bits ^ self.top,
            // Minus zero is zero.
            Sign::Float if bits == self.top => self.top,
            Sign::Float if bits & self.top != 0 => !bits & self.mask,
            Sign::Float => bits | self.top,
        }
    }

    /// The bits of the value with this key.
    #[inline]
    pub(crate) fn bits_of_key(&self, key: u128) -> u128 {
        match self.sign {
            Sign::None => key,
            Sign::Signed => key ^ self.top,
            Sign::Float if key & self.top != 0 => key ^ self.top,
            Sign::Float => !key & self.mask,
        }
    }

    /// Writes the value with this key into a record; bytes behind the record's end are left out.
    pub fn write(&self, record: &mut [u8], key: u128) {
        let bits = self.bits_of_key(key) & self.mask;
        let (place, bytes) = (self.place, self.place.bytes() as usize);
        if bytes > WIDTH {
            return;
        }
        let low = (bytes as u32 * 8) - u32::from(place.bit) - place.bits;
        let (mut value, mut mask) = ((bits << low).to_be_bytes(), (self.mask << low).to_be_bytes());
        let (value, mask) = (&mut value[WIDTH - bytes..], &mut mask[WIDTH - bytes..]);
        if place.order == Order::Little {
            value.reverse();
            mask.reverse();
        }
        let at = (place.offset as usize).min(record.len());
        for (byte, (value, mask)) in record[at..].iter_mut().zip(value.iter().zip(mask.iter())) {
            *byte = (*byte & !mask) | value;
        }
    }
}

/// A bit for each record that passes `holds`.
#[inline]
fn each(records: &[u8], size: usize, bits: &mut [u64], holds: impl Fn(&[u8]) -> bool) {
    for (word, part) in bits.iter_mut().zip(records.chunks(64 * size)) {
        // Forwards, because processors prefetch in that direction.
        let records = part.chunks_exact(size).enumerate();
        *word = records.fold(0, |word, (at, record)| word | u64::from(holds(record)) << at);
    }
}

/// 16 bytes from `at` on, zero behind the record's end.
#[cold]
fn padded(record: &[u8], at: usize) -> [u8; WIDTH] {
    let mut bytes = [0; WIDTH];
    let rest = record.get(at..).unwrap_or_default();
    let count = rest.len().min(WIDTH);
    bytes[..count].copy_from_slice(&rest[..count]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(kind: Kind, offset: u32, bytes: u32, order: Order, record: usize) -> Reader {
        Reader::new(kind, Place { offset, bit: 0, bits: bytes * 8, order }, record)
    }

    /// The bits one by one.
    fn slow(record: &[u8], place: Place) -> u128 {
        let mut bytes = record[place.offset as usize..place.end() as usize].to_vec();
        if place.order == Order::Little {
            bytes.reverse();
        }
        let bit = |at: u32| u128::from(bytes[at as usize / 8] >> (7 - at % 8) & 1);
        (u32::from(place.bit)..u32::from(place.bit) + place.bits).fold(0, |key, at| key << 1 | bit(at))
    }

    fn place() -> impl Strategy<Value = (Place, usize)> {
        let bits = (0..40u32, 0..8u8, 1..=121u32).prop_map(|(offset, bit, bits)| Place {
            offset,
            bit,
            bits,
            order: Order::Big,
        });
        let bytes = (0..40u32, 1..=16u32, prop_oneof![Just(Order::Big), Just(Order::Little)])
            .prop_map(|(offset, bytes, order)| Place { offset, bit: 0, bits: bytes * 8, order });
        (prop_oneof![bits, bytes], 0..20usize).prop_map(|(place, behind)| (place, place.end() as usize + behind))
    }

    proptest! {
        #[test]
        fn a_key_is_the_bits_of_its_place((place, size) in place(), noise in prop::collection::vec(any::<u8>(), 80)) {
            let reader = Reader::new(Kind::Unsigned, place, size);
            prop_assert_eq!(reader.key(&noise[..size]), slow(&noise, place));
        }

        #[test]
        fn many_keys_are_as_one(
            (mut place, size) in place(), signed in any::<bool>(), noise in prop::collection::vec(any::<u8>(), 200),
        ) {
            place.bits = place.bits.min(64);
            let reader = Reader::new(if signed { Kind::Signed } else { Kind::Unsigned }, place, size);
            let records = &noise[..noise.len() / size * size];
            let mut keys = vec![0; records.len() / size];
            reader.fill(records, size, &mut keys);
            for (key, record) in keys.into_iter().zip(records.chunks_exact(size)) {
                prop_assert_eq!(u128::from(key), reader.key(record));
            }
        }

        #[test]
        fn what_is_written_is_read_and_nothing_else_changes(
            (place, size) in place(), noise in prop::collection::vec(any::<u8>(), 80), key in any::<u128>(),
        ) {
            let reader = Reader::new(Kind::Unsigned, place, size);
            let mut record = noise[..size].to_vec();
            let before = reader.key(&record);
            reader.write(&mut record, key & low_bits(place.bits));
            prop_assert_eq!(reader.key(&record), key & low_bits(place.bits));
            reader.write(&mut record, before);
            prop_assert_eq!(record, &noise[..size]);
        }

        #[test]
        fn signed_numbers_are_in_order(a in any::<i64>(), b in any::<i64>()) {
            let reader = whole(Kind::Signed, 0, 8, Order::Little, 8);
            let key = |n: i64| reader.key(&n.to_le_bytes());
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
            prop_assert_eq!(reader.bits_of_key(key(a)), u128::from(a as u64));
        }

        #[test]
        fn floats_are_in_total_order(a in any::<f64>(), b in any::<f64>(), c in any::<u32>(), d in any::<u32>()) {
            let reader = whole(Kind::Float, 0, 8, Order::Big, 20);
            let key = |n: f64| reader.key(&n.to_be_bytes());
            // Adding zero removes the sign of zero.
            prop_assert_eq!(key(a).cmp(&key(b)), (a + 0.0).total_cmp(&(b + 0.0)));
            let reader = whole(Kind::Float, 0, 4, Order::Big, 4);
            let key = |n: u32| reader.key(&n.to_be_bytes());
            let float = |n: u32| if n == 1 << 31 { 0.0 } else { f32::from_bits(n) };
            prop_assert_eq!(key(c).cmp(&key(d)), float(c).total_cmp(&float(d)));
        }
    }

    #[test]
    fn zero_has_one_sign() {
        let reader = whole(Kind::Float, 0, 8, Order::Big, 8);
        assert_eq!(reader.key(&(-0.0f64).to_be_bytes()), reader.key(&0.0f64.to_be_bytes()));
        assert!(reader.key(&(-f64::MIN_POSITIVE).to_be_bytes()) < reader.key(&0.0f64.to_be_bytes()));
    }

    #[test]
    fn behind_the_end_of_a_record_is_zero() {
        let reader = whole(Kind::Unsigned, 20, 4, Order::Big, 40);
        assert_eq!(reader.key(&[0xff; 22]), 0xffff_0000);
        assert_eq!(reader.key(&[0xff; 3]), 0);
        let mut record = [0; 22];
        reader.write(&mut record, 0x1234_5678);
        assert_eq!(&record[20..], [0x12, 0x34]);
    }
}
