//! Random reports and INT headers, as their fields and as their bytes.

use super::reference::{Bits, Fields, hex, layout, set_bits};
use proptest::collection::vec;
use proptest::prelude::*;

/// A message, and what a decoder must read from it.
#[derive(Debug, Clone)]
pub struct Model<T> {
    pub bytes: Vec<u8>,
    pub expected: T,
}

/// Values for every bit of a bitmap: all its bits are 1 if it is not available.
type Values = Vec<Option<[u64; 3]>>;

/// The reserved bits, which have no meaning in version 2.
const RESERVED: u64 = 0x007e;

fn values() -> impl Strategy<Value = Values> {
    vec(prop_oneof![9 => any::<[u64; 3]>().prop_map(Some), 1 => Just(None)], 16)
}

/// Bitmaps, most of them without reserved bits.
fn bitmap() -> impl Strategy<Value = u64> {
    prop_oneof![3 => any::<u16>().prop_map(|bits| u64::from(bits) & !RESERVED), 1 => any::<u16>().prop_map(u64::from)]
}

/// The metadata of a node, and its fields.
fn node(bitmap: u64, values: &Values, domain: &[u8], in_report: bool) -> (Bits, Fields) {
    let (mut bits, mut fields) = (Bits::default(), Fields::new());
    let (mut unavailable, mut unknown) = (0u64, 0u64);
    let mut placed = false;
    for bit in set_bits(bitmap) {
        if bit == 15 && !in_report {
            bits.put_bytes(domain);
            placed = true;
        }
        let widths = layout(bit, in_report);
        if widths == [("", 32)] {
            unknown |= 0x8000 >> bit;
        }
        let numbers: Vec<u64> = (0..widths.len())
            .map(|at| values[bit].map_or(u64::MAX, |values| values[at]) & (u64::MAX >> (64 - widths[at].1)))
            .collect();
        let all_ones = numbers.iter().zip(widths).all(|(number, (_, width))| number.count_ones() as usize == *width);
        if all_ones && widths != [("", 32)] {
            unavailable |= 0x8000 >> bit;
        }
        for (number, (name, width)) in numbers.into_iter().zip(widths) {
            bits.put(*width, number);
            if !name.is_empty() && !all_ones {
                fields.insert(name, number.to_string());
            }
        }
    }
    if !placed {
        bits.put_bytes(domain);
    }
    fields.insert("unavailable", unavailable.to_string());
    fields.insert("unknown", unknown.to_string());
    fields.insert("domain_specific", hex(domain));
    fields.insert("raw", bits.hex());
    (bits, fields)
}

fn words(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 4]>(), 0..=most).prop_map(|words| words.concat())
}

/// What follows the main contents: its type, its bytes, its text.
fn inner() -> impl Strategy<Value = (u64, Vec<u8>, String)> {
    let tlv = (0..16u64, any::<u16>(), words(4), 0..16u64);
    let tlvs = vec(tlv, 0..4).prop_map(|tlvs| {
        let (mut bits, mut text) = (Bits::default(), "tlvs".to_owned());
        for (kind, template, data, reserved) in tlvs {
            bits.put(4, kind).put(4, reserved).put(8, data.len() as u64 / 4).put(16, template.into()).put_bytes(&data);
            let kind = match kind {
                0 => "domain".to_owned(),
                1 => "ethernet".to_owned(),
                2 | 3 => "ip".to_owned(),
                other => format!("unread {other}"),
            };
            text += &format!("; {kind} {template} {}", hex(&data));
        }
        (1, bits.bytes(), text)
    });
    prop_oneof![
        Just((0, Vec::new(), String::new())),
        tlvs,
        (2..16u64, words(16)).prop_map(|(kind, data)| {
            let text = match kind {
                2 => "domain".to_owned(),
                3 => "ethernet".to_owned(),
                4 | 5 => "ip".to_owned(),
                other => format!("unread {other}"),
            };
            let text = format!("{text} {}", hex(&data));
            (kind, data, text)
        }),
    ]
}

/// A report without its group. `to_the_end` fills it up to more than 255 words.
fn report(to_the_end: bool) -> impl Strategy<Value = Model<Fields>> {
    let kind = prop_oneof![1 => Just(0), 4 => Just(1u64), 1 => 2..16u64];
    let padding = if to_the_end { vec(any::<u8>(), 1020..1100).boxed() } else { Just(Vec::new()).boxed() };
    let parts = (kind, inner(), any::<[bool; 4]>(), any::<[u8; 2]>(), padding);
    let main = (bitmap(), values(), words(5), any::<[u16; 3]>());
    (parts, main).prop_map(
        |((kind, (mut in_type, mut data, mut text), flags, [reserved, md], padding), (bitmap, values, domain, ds))| {
            if !padding.is_empty() {
                (in_type, data, text) = (4, padding.clone(), format!("ip {}", hex(&padding)));
            }
            let mut expected = Fields::new();
            for (name, flag) in ["dropped", "congested", "tracked", "intermediate"].into_iter().zip(flags) {
                expected.insert(name, u8::from(flag).to_string());
            }
            let mut body = Bits::default();
            let mut metadata = u64::from(md);
            match kind {
                0 => _ = expected.insert("inner", text),
                1 => {
                    let (own, fields) = node(bitmap, &values, &domain, true);
                    expected.extend(fields);
                    metadata = own.words();
                    body.put(16, bitmap);
                    expected.insert("instructions", bitmap.to_string());
                    for (name, number) in ["domain", "domain_instructions", "domain_status"].iter().zip(ds) {
                        expected.insert(name, number.to_string());
                        body.put(16, number.into());
                    }
                    body.put_bytes(&own.bytes());
                    expected.insert("inner", text);
                }
                _ => _ = expected.insert("unread_report", format!("{kind} {in_type} {}", hex(&data))),
            }
            body.put_bytes(&data);
            let length = if padding.is_empty() { body.words() } else { 255 };
            let mut bits = Bits::default();
            bits.put(4, kind).put(4, in_type).put(8, length).put(8, metadata);
            for flag in flags {
                bits.put(1, flag.into());
            }
            bits.put(4, u64::from(reserved) & 0x0f).put_bytes(&body.bytes());
            Model { bytes: bits.bytes(), expected }
        },
    )
}

/// A group of reports. The last one may be of the length that reaches to the end.
pub fn group() -> impl Strategy<Value = Model<(Fields, Vec<Fields>)>> {
    let last = prop_oneof![6 => Just(None), 1 => report(true).prop_map(Some)];
    let header = (0..64u64, 0..1u64 << 22, any::<u32>());
    (header, report(false), vec(report(false), 0..4), last).prop_map(
        |((hardware, sequence, id), first, others, last)| {
            let mut bits = Bits::default();
            bits.put(4, 2).put(6, hardware).put(22, sequence).put(32, id.into());
            let mut group = Fields::new();
            for (name, number) in [("hardware", hardware), ("sequence", sequence), ("node", id.into())] {
                group.insert(name, number.to_string());
            }
            let mut reports = Vec::new();
            for mut report in std::iter::once(first).chain(others).chain(last) {
                if report.expected.contains_key("instructions") {
                    report.expected.insert("node", id.to_string());
                }
                bits.put_bytes(&report.bytes);
                reports.push(report.expected);
            }
            Model { bytes: bits.bytes(), expected: (group, reports) }
        },
    )
}

/// INT headers from the shim on, with the fields and the hops. `npt` and `value` are those of the shim.
pub fn int(npt: u64, value: u16) -> impl Strategy<Value = Model<(Fields, Vec<Fields>)>> {
    let kind = prop_oneof![4 => Just(1u64), 1 => Just(3), 1 => (0..16u64).prop_filter("md, mx", |&kind| kind % 2 == 0 || kind > 3)];
    let hops = vec(values(), 0..6);
    let domain = (any::<bool>(), 0..4usize, any::<u64>());
    let header = (any::<[bool; 3]>(), any::<u8>(), any::<[u16; 3]>(), any::<[u16; 2]>());
    (kind, bitmap(), hops, domain, header, words(5)).prop_map(
        move |(kind, bitmap, hops, (own, domain_words, seed), (flags, remaining, ds, reserved), data)| {
            let mut bits = Bits::default();
            let mut expected = Fields::new();
            let mut stack = Vec::new();
            let mut body = Bits::default();
            let per_hop = super::reference::needed(bitmap) as usize + domain_words;
            // Only a source with a domain has metadata of its own, which are shorter than those of a hop.
            let own = if own && per_hop > 1 && !hops.is_empty() { 1 + seed as usize % (per_hop - 1) } else { 0 };
            let ds_instructions = if own > 0 { ds[1] | 1 } else { ds[1] };
            match kind {
                1 | 3 => {
                    body.put(4, 2).put(1, flags[0].into());
                    expected.insert("discard", u8::from(flags[0]).to_string());
                    if kind == 1 {
                        body.put(1, flags[1].into()).put(1, flags[2].into());
                        body.put(12, u64::from(reserved[0]) >> 4).put(5, per_hop as u64).put(8, remaining.into());
                        expected.insert("hops_exceeded", u8::from(flags[1]).to_string());
                        expected.insert("mtu_exceeded", u8::from(flags[2]).to_string());
                        expected.insert("hop_words", per_hop.to_string());
                        expected.insert("remaining_hops", remaining.to_string());
                        let count = if per_hop == 0 { 0 } else { hops.len() };
                        expected.insert("hop_count", count.to_string());
                    } else {
                        body.put(16, reserved[0].into()).put(11, u64::from(reserved[1]) >> 5);
                    }
                    body.put(16, bitmap);
                    expected.insert("instructions", bitmap.to_string());
                    expected.insert("kind", if kind == 1 { "md" } else { "mx" }.to_owned());
                    let numbers = [ds[0], ds_instructions, ds[2]];
                    for (name, number) in ["domain", "domain_instructions", "domain_flags"].iter().zip(numbers) {
                        body.put(16, number.into());
                        expected.insert(name, number.to_string());
                    }
                    if kind == 3 {
                        body.put_bytes(&data);
                        expected.insert("source_inserted", hex(&data));
                    } else if per_hop > 0 {
                        for (at, values) in hops.iter().enumerate() {
                            let more = if at + 1 == hops.len() { own } else { 0 };
                            let length = (domain_words + more) * 4;
                            let domain: Vec<u8> = (0..length).map(|byte| seed.to_be_bytes()[byte % 8]).collect();
                            let (own, fields) = node(bitmap, values, &domain, false);
                            body.put_bytes(&own.bytes());
                            stack.push(fields);
                        }
                    }
                }
                2 => {
                    body.put_bytes(&data);
                    expected.insert("destination", hex(&data));
                }
                other => {
                    body.put_bytes(&data);
                    expected.insert("unread", format!("{other} {}", hex(&data)));
                }
            }
            bits.put(4, kind).put(2, npt).put(2, u64::from(reserved[1]) & 3).put(8, body.words());
            bits.put(16, value.into()).put_bytes(&body.bytes());
            expected.insert(
                "next",
                match npt {
                    0 => format!("unchanged {}", value as u8 >> 2),
                    1 => format!("port {value}"),
                    2 => format!("protocol {}", value as u8),
                    _ => format!("unknown {value}"),
                },
            );
            expected.insert("words", body.words().to_string());
            expected.insert("missing", "0".to_owned());
            Model { bytes: bits.bytes(), expected: (expected, stack) }
        },
    )
}
