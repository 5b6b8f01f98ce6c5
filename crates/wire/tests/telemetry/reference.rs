//! An independent encoder and decoder of reports and INT headers, bit by bit, from the layouts of the specifications.
//! Nothing here is fast: a message is a string of `0` and `1`, and its fields are a map from names to text.

use std::collections::BTreeMap;

/// Fields by name: numbers in decimal, bytes in hexadecimal. A field that is not there has no entry.
pub type Fields = BTreeMap<&'static str, String>;

/// A group of reports: its header, and each report or what is wrong with it. Or what is wrong with the group.
pub type Group = Result<(Fields, Vec<Result<Fields, &'static str>>), &'static str>;

/// A message as text of `0` and `1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bits(pub String);

impl Bits {
    pub fn of(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:08b}")).collect())
    }

    pub fn put(&mut self, width: usize, value: u64) -> &mut Self {
        let text = format!("{value:064b}");
        assert!(!text[..64 - width].contains('1'), "{value} has more than {width} bits");
        self.0.push_str(&text[64 - width..]);
        self
    }

    pub fn put_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.push_str(&Self::of(bytes).0);
        self
    }

    /// Takes bits from the front; none if there are fewer.
    pub fn take(&mut self, width: usize) -> Option<u64> {
        if self.0.len() < width {
            return None;
        }
        let rest = self.0.split_off(width);
        let front = std::mem::replace(&mut self.0, rest);
        Some(front.chars().fold(0, |value, bit| value * 2 + u64::from(bit == '1')))
    }

    /// Takes words of 32 bits from the front.
    pub fn take_words(&mut self, words: u64) -> Option<Bits> {
        let width = words as usize * 32;
        if self.0.len() < width {
            return None;
        }
        let rest = self.0.split_off(width);
        Some(Bits(std::mem::replace(&mut self.0, rest)))
    }

    pub fn words(&self) -> u64 {
        (self.0.len() / 32) as u64
    }

    pub fn bytes(&self) -> Vec<u8> {
        let bits: Vec<char> = self.0.chars().collect();
        bits.chunks(8).map(|byte| u8::from_str_radix(&byte.iter().collect::<String>(), 2).unwrap()).collect()
    }

    pub fn hex(&self) -> String {
        hex(&self.bytes())
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Metadata of bits 1 to 8, which packets and reports have in common, as fields with their widths.
const COMMON: [(usize, &[(&str, usize)]); 8] = [
    (1, &[("ingress_interface", 16), ("egress_interface", 16)]),
    (2, &[("latency", 32)]),
    (3, &[("queue", 8), ("queue_occupancy", 24)]),
    (4, &[("ingress_time", 64)]),
    (5, &[("egress_time", 64)]),
    (6, &[("logical_ingress_interface", 32), ("logical_egress_interface", 32)]),
    (7, &[("tx_utilisation", 32)]),
    (8, &[("buffer", 8), ("buffer_occupancy", 24)]),
];

/// Fields of one metadata bit. Reserved bits have a field of 32 bits without a name.
pub fn layout(bit: usize, in_report: bool) -> &'static [(&'static str, usize)] {
    match bit {
        0 if !in_report => &[("node", 32)],
        15 if in_report => &[("drop_queue", 8), ("drop_reason", 8), ("", 16)],
        15 => &[("checksum_complement", 32)],
        _ => COMMON.iter().find(|(own, _)| *own == bit).map_or(&[("", 32)], |(_, fields)| fields),
    }
}

/// The bits that are set in a bitmap of 16, from the most significant one.
pub fn set_bits(bitmap: u64) -> Vec<usize> {
    format!("{bitmap:016b}").chars().enumerate().filter(|(_, bit)| *bit == '1').map(|(at, _)| at).collect()
}

/// Words of 4 bytes that the bits of a bitmap need.
pub fn needed(bitmap: u64) -> u64 {
    set_bits(bitmap)
        .into_iter()
        .map(|bit| layout(bit, true).iter().map(|(_, width)| *width as u64).sum::<u64>() / 32)
        .sum()
}

/// Reads the metadata of a node, which fill `bits`.
pub fn hop(bitmap: u64, bits: &Bits, in_report: bool) -> Fields {
    let mut fields = Fields::new();
    fields.insert("raw", bits.hex());
    let mut left = bits.clone();
    let (mut unavailable, mut unknown) = (0u64, 0u64);
    let mut order = set_bits(bitmap);
    let last = !in_report && order.last() == Some(&15);
    if last {
        order.pop();
    }
    let mut read = |bit: usize, part: &mut Bits, fields: &mut Fields| {
        let widths = layout(bit, in_report);
        if widths == [("", 32)] {
            unknown |= 0x8000 >> bit;
            part.take(32).unwrap();
            return;
        }
        let whole: usize = widths.iter().map(|(_, width)| width).sum();
        if part.0[..whole].chars().all(|bit| bit == '1') {
            unavailable |= 0x8000 >> bit;
            part.0 = part.0.split_off(whole);
            return;
        }
        for (name, width) in widths {
            let value = part.take(*width).unwrap();
            if !name.is_empty() {
                fields.insert(name, value.to_string());
            }
        }
    };
    for bit in order {
        read(bit, &mut left, &mut fields);
    }
    if last {
        let mut complement = Bits(left.0.split_off(left.0.len() - 32));
        read(15, &mut complement, &mut fields);
    }
    fields.insert("domain_specific", left.hex());
    fields.insert("unavailable", unavailable.to_string());
    fields.insert("unknown", unknown.to_string());
    fields
}

/// The reports of a payload, or the kind of the first thing that is wrong with each.
pub fn reports(payload: &[u8]) -> Group {
    let mut bits = Bits::of(payload);
    if payload.len() < 8 {
        return Err("cut group");
    }
    if bits.take(4) != Some(2) {
        return Err("version");
    }
    let mut group = Fields::new();
    for (name, width) in [("hardware", 6), ("sequence", 22), ("node", 32)] {
        group.insert(name, bits.take(width).unwrap().to_string());
    }
    if bits.0.is_empty() {
        return Err("no report");
    }
    let mut reports = Vec::new();
    while !bits.0.is_empty() {
        match report(&mut bits, &group["node"]) {
            Ok(report) => reports.push(report),
            Err(end) => {
                reports.push(Err(end));
                break;
            }
        }
    }
    Ok((group, reports))
}

/// Takes a report from the front. The outer error ends the group, the inner one does not.
fn report(bits: &mut Bits, node: &str) -> Result<Result<Fields, &'static str>, &'static str> {
    if bits.0.len() < 32 {
        return Err("cut header");
    }
    let mut number = |width| bits.take(width).unwrap();
    let (rep_type, in_type, length, metadata) = (number(4), number(4), number(8), number(8));
    let flags = [number(1), number(1), number(1), number(1)];
    number(4);
    let mut body = if length == 255 && bits.0.len() >= 255 * 32 {
        std::mem::take(bits)
    } else {
        bits.take_words(length).ok_or("cut report")?
    };
    let mut fields = Fields::new();
    for (name, flag) in ["dropped", "congested", "tracked", "intermediate"].into_iter().zip(flags) {
        fields.insert(name, flag.to_string());
    }
    match rep_type {
        0 => {}
        1 => {
            let Some(mut fixed) = body.take_words(2) else { return Ok(Err("metadata too long")) };
            let Some(own) = body.take_words(metadata) else { return Ok(Err("metadata too long")) };
            let bitmap = fixed.take(16).unwrap();
            if needed(bitmap) > metadata {
                return Ok(Err("metadata too short"));
            }
            fields.extend(hop(bitmap, &own, true));
            fields.insert("node", node.to_owned());
            fields.insert("instructions", bitmap.to_string());
            for name in ["domain", "domain_instructions", "domain_status"] {
                fields.insert(name, fixed.take(16).unwrap().to_string());
            }
        }
        _ => {
            fields.insert("unread_report", format!("{rep_type} {in_type} {}", body.hex()));
            return Ok(Ok(fields));
        }
    }
    let inner = match in_type {
        0 if body.0.is_empty() => String::new(),
        1 => tlvs(&mut body),
        2 => format!("domain {}", body.hex()),
        3 => format!("ethernet {}", body.hex()),
        4 | 5 => format!("ip {}", body.hex()),
        other => format!("unread {other} {}", body.hex()),
    };
    fields.insert("inner", inner);
    Ok(Ok(fields))
}

/// All TLVs as text.
fn tlvs(bits: &mut Bits) -> String {
    let mut text = "tlvs".to_owned();
    while !bits.0.is_empty() {
        let mut header = bits.clone();
        let (kind, _, length, template) = (header.take(4), header.take(4), header.take(8), header.take(16));
        let (Some(length), Some(template)) = (length, template) else { return text + "; cut" };
        let Some(data) = header.take_words(length) else { return text + "; cut" };
        *bits = header;
        let kind = match kind.unwrap() {
            0 => "domain".to_owned(),
            1 => "ethernet".to_owned(),
            2 | 3 => "ip".to_owned(),
            other => format!("unread {other}"),
        };
        text += &format!("; {kind} {template} {}", data.hex());
    }
    text
}

/// The headers from a shim on: their fields, and the hops of INT-MD.
pub fn int(data: &[u8]) -> Result<(Fields, Vec<Fields>), &'static str> {
    let mut bits = Bits::of(data);
    if data.len() < 4 {
        return Err("cut shim");
    }
    let (kind, npt) = (bits.take(4).unwrap(), bits.take(2).unwrap());
    bits.take(2);
    let (words, high, low) = (bits.take(8).unwrap(), bits.take(8).unwrap(), bits.take(8).unwrap());
    let next = match npt {
        0 => format!("unchanged {}", low >> 2),
        1 => format!("port {}", high << 8 | low),
        2 => format!("protocol {low}"),
        _ => format!("unknown {}", high << 8 | low),
    };
    let stated = words as usize * 4;
    let mut fields = Fields::new();
    fields.insert("next", next);
    fields.insert("words", words.to_string());
    fields.insert("missing", stated.saturating_sub(data.len() - 4).to_string());
    bits.0.truncate(stated * 8);
    match kind {
        1 => {
            let mut first = header(&mut bits, words, &mut fields, "md")?;
            for name in ["discard", "hops_exceeded", "mtu_exceeded"] {
                fields.insert(name, first.take(1).unwrap().to_string());
            }
            first.take(12);
            let hop_words = first.take(5).unwrap();
            fields.insert("hop_words", hop_words.to_string());
            fields.insert("remaining_hops", first.take(8).unwrap().to_string());
            let hops = stack(&mut bits, words - 3, hop_words, &fields)?;
            fields.insert("hop_count", hops.len().to_string());
            Ok((fields, hops.into_iter().flatten().collect()))
        }
        3 => {
            let mut first = header(&mut bits, words, &mut fields, "mx")?;
            fields.insert("discard", first.take(1).unwrap().to_string());
            fields.insert("source_inserted", bits.hex());
            Ok((fields, Vec::new()))
        }
        2 => {
            fields.insert("destination", bits.hex());
            Ok((fields, Vec::new()))
        }
        other => {
            fields.insert("unread", format!("{other} {}", bits.hex()));
            Ok((fields, Vec::new()))
        }
    }
}

/// The three words that MD and MX have; returns the first one behind its version.
fn header(bits: &mut Bits, words: u64, fields: &mut Fields, kind: &str) -> Result<Bits, &'static str> {
    if words < 3 {
        return Err("too short");
    }
    let mut first = bits.take_words(1).ok_or("cut header")?;
    let mut others = bits.take_words(2).ok_or("cut header")?;
    if first.take(4) != Some(2) {
        return Err("version");
    }
    fields.insert("kind", kind.to_owned());
    for name in ["instructions", "domain", "domain_instructions", "domain_flags"] {
        fields.insert(name, others.take(16).unwrap().to_string());
    }
    Ok(first)
}

/// The hops of a stack, of which each is none if it was not captured.
fn stack(bits: &mut Bits, words: u64, hop_words: u64, fields: &Fields) -> Result<Vec<Option<Fields>>, &'static str> {
    let bitmap: u64 = fields["instructions"].parse().unwrap();
    if needed(bitmap) > hop_words {
        return Err("hop too short");
    }
    // From the top of the stack; what does not fill a hop is the source's own.
    let mut lengths = Vec::new();
    let mut left = words;
    while hop_words > 0 && left >= hop_words {
        lengths.push(hop_words);
        left -= hop_words;
    }
    if left > 0 {
        let may_have_own = fields["domain_instructions"] != "0";
        match lengths.last_mut() {
            Some(source) if may_have_own => *source += left,
            _ => return Err("stack"),
        }
    }
    Ok(lengths.into_iter().map(|length| Some(hop(bitmap, &bits.take_words(length)?, false))).collect())
}
