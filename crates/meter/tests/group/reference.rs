//! What a burst's groups must be, from all of its packets: plain sums of every address, prefix and port.

use queuescope_meter::{Group, Grouped};
use queuescope_wire::{Family, FlowKey};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes and packets.
pub type Sum = [u64; 2];

/// A property that flows have in common: which end or port, how many bits of it, what they are.
pub type Property = (&'static str, Family, u8, u128);

/// A packet of a burst.
pub type Packet = (FlowKey, u32);

/// All flows of a burst.
pub struct Truth {
    pub flows: BTreeMap<FlowKey, Sum>,
    pub total: Sum,
}

impl Truth {
    pub fn of(packets: &[Packet]) -> Self {
        let mut flows = BTreeMap::<FlowKey, Sum>::new();
        let mut total = [0, 0];
        for (key, size) in packets {
            let sum = flows.entry(*key).or_default();
            for sum in [sum, &mut total] {
                sum[0] += u64::from(*size);
                sum[1] += 1;
            }
        }
        Self { flows, total }
    }

    /// Holds what was found against all flows.
    pub fn judge(&self, grouped: &Grouped) -> Verdict {
        let mut verdict = Verdict::default();
        let heavy: BTreeSet<FlowKey> =
            self.flows.iter().filter(|(_, sum)| self.is_enough(**sum)).map(|(key, _)| *key).collect();
        let named = |row: &Group| row.heavy.iter().map(|(key, _)| *key).chain(row.flow).collect::<Vec<_>>();
        let named: BTreeSet<FlowKey> = grouped.rows.iter().flat_map(named).collect();
        verdict.unnamed.extend(heavy.iter().filter(|key| !named.contains(key)).map(|key| format!("flow {key:?}")));

        let groups: Vec<&Group> = grouped.rows.iter().chain(&grouped.overlaps).collect();
        let mut properties = BTreeMap::<Property, Sum>::new();
        let mut unnamed = BTreeMap::<Property, Sum>::new();
        for (key, sum) in &self.flows {
            let fitting: Vec<&&Group> = groups.iter().filter(|group| group.pattern.fits(key)).collect();
            for property in properties_of(key) {
                add(properties.entry(property).or_default(), *sum);
                if !heavy.contains(key) && !fitting.iter().any(|group| says(group, property)) {
                    add(unnamed.entry(property).or_default(), *sum);
                }
            }
        }
        verdict.properties = properties.values().filter(|sum| self.is_enough(**sum)).count();
        let missed = unnamed.iter().filter(|(_, sum)| self.is_enough(**sum));
        verdict.unnamed.extend(missed.map(|(property, sum)| format!("{property:?} with {sum:?} of {:?}", self.total)));

        for group in &grouped.overlaps {
            let exact = self.sum(|key| group.pattern.fits(key));
            self.hold(group, exact, exact, &mut verdict);
        }
        for (place, group) in grouped.rows.iter().enumerate() {
            let others: Vec<_> = (0..grouped.rows.len()).filter(|other| *other != place).collect();
            let elsewhere = |key: &FlowKey| {
                heavy.contains(key) || others.iter().any(|other| grouped.rows[*other].pattern.fits(key))
            };
            let least = self.sum(|key| group.pattern.fits(key) && !elsewhere(key));
            let most = self.sum(|key| group.flow.is_none_or(|flow| flow == *key) && group.pattern.fits(key));
            self.hold(group, least, most, &mut verdict);
        }
        verdict
    }

    /// A group's bytes and packets are between these, but for the error that it states.
    fn hold(&self, group: &Group, least: Sum, most: Sum, verdict: &mut Verdict) {
        let (found, error) = ([group.weight.bytes, group.weight.packets], [group.error.bytes, group.error.packets]);
        for which in [0, 1] {
            verdict.shares += 1;
            verdict.error = verdict.error.max(error[which] as f64 / self.total[which] as f64);
            let off = least[which].saturating_sub(found[which]).max(found[which].saturating_sub(most[which]));
            verdict.off = verdict.off.max(off as f64 / self.total[which] as f64);
            if off > error[which] {
                verdict.wrong.push(format!(
                    "{group:?}: {} and not {}..{} (+-{})",
                    found[which], least[which], most[which], error[which]
                ));
            }
        }
    }

    fn is_enough(&self, sum: Sum) -> bool {
        sum[0] * 10 >= self.total[0] || sum[1] * 10 >= self.total[1]
    }

    fn sum(&self, having: impl Fn(&FlowKey) -> bool) -> Sum {
        self.flows.iter().filter(|(key, _)| having(key)).fold([0, 0], |mut sum, (_, own)| {
            add(&mut sum, *own);
            sum
        })
    }
}

/// What came of it.
#[derive(Default, Debug)]
pub struct Verdict {
    /// Properties with a tenth of the bytes or packets.
    pub properties: usize,
    /// What has a tenth and is not named.
    pub unnamed: Vec<String>,
    /// Shares that were held against the truth, and those that are off by more than their error.
    pub shares: usize,
    pub wrong: Vec<String>,
    /// The largest error that was stated, and the farthest that a share was off.
    pub error: f64,
    pub off: f64,
}

fn add(sum: &mut Sum, own: Sum) {
    sum[0] += own[0];
    sum[1] += own[1];
}

fn prefix(address: u128, length: u8, whole: u8) -> u128 {
    if length == 0 { 0 } else { address >> (whole - length) << (whole - length) }
}

/// All sources, destinations, their prefixes, and ports of a flow.
fn properties_of(key: &FlowKey) -> Vec<Property> {
    let lengths: &[u8] = match key.family {
        Family::Link => &[48],
        Family::V4 => &[16, 24, 32],
        Family::V6 => &[32, 48, 64, 128],
    };
    let whole = lengths[lengths.len() - 1];
    let mut all = Vec::new();
    for (name, address) in [("src", key.src), ("dst", key.dst)] {
        all.extend(lengths.iter().map(|length| (name, key.family, *length, prefix(address, *length, whole))));
    }
    for (name, port) in [("sport", key.src_port), ("dport", key.dst_port)] {
        if port > 0 {
            all.push((name, Family::V4, 16, port.into()));
        }
    }
    all
}

/// Whether a group names a property, or one that is part of it.
fn says(group: &Group, (name, family, length, value): Property) -> bool {
    let pattern = &group.pattern;
    let end = |end: Option<queuescope_meter::Subnet>| {
        end.is_some_and(|end| {
            let whole = [48, 32, 128][family as usize];
            end.family == family && end.length >= length && prefix(end.address, length, whole) == value
        })
    };
    match name {
        "src" => end(pattern.src),
        "dst" => end(pattern.dst),
        "sport" => pattern.src_port.map(u128::from) == Some(value),
        _ => pattern.dst_port.map(u128::from) == Some(value),
    }
}
