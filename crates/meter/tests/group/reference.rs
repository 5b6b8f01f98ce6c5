//! The groups that a burst must have, from all of its packets: simple sums of every address, prefix and port.

use queuescope_meter::{Group, Grouped, Pattern, Subnet};
use queuescope_wire::{Family, FlowKey};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes and packets.
pub type Sum = [u64; 2];

/// A property that flows have in common: the end or port, the prefix length, and the value.
pub type Property = (&'static str, Family, u8, u128);

/// A packet of a burst.
pub type Packet = (FlowKey, u32);

/// All flows of a burst.
pub struct Truth {
    pub flows: BTreeMap<FlowKey, Sum>,
    pub total: Sum,
    /// Whether flows are connections: then a property can be of either end.
    pub connections: bool,
    /// The bytes of connections with each end.
    ends: BTreeMap<(Family, u128), u64>,
}

impl Truth {
    pub fn of(packets: &[Packet], connections: bool) -> Self {
        let mut flows = BTreeMap::<FlowKey, Sum>::new();
        let mut total = [0, 0];
        for (key, size) in packets {
            let sum = flows.entry(*key).or_default();
            for sum in [sum, &mut total] {
                sum[0] += u64::from(*size);
                sum[1] += 1;
            }
        }
        let mut ends = BTreeMap::<_, u64>::new();
        for (key, sum) in &flows {
            [key.src, key.dst].into_iter().for_each(|end| *ends.entry((key.family, end)).or_default() += sum[0]);
        }
        Self { flows, total, connections, ends }
    }

    /// Compares the result with all flows.
    pub fn judge(&self, grouped: &Grouped) -> Verdict {
        let mut verdict = Verdict::default();
        let heavy: BTreeSet<FlowKey> =
            self.flows.iter().filter(|(_, sum)| self.is_enough(**sum)).map(|(key, _)| *key).collect();
        let named = |row: &Group| row.heavy.iter().map(|(key, _)| *key).chain(row.flow).collect::<Vec<_>>();
        let named: BTreeSet<FlowKey> = grouped.rows.iter().flat_map(named).collect();
        verdict.unnamed.extend(heavy.iter().filter(|key| !named.contains(key)).map(|key| format!("flow {key:?}")));

        let groups: Vec<&Group> = grouped.rows.iter().chain(&grouped.overlaps).collect();
        let mut properties = BTreeMap::<Property, Sum>::new();
        let mut having = BTreeMap::<Property, BTreeSet<FlowKey>>::new();
        for (key, sum) in &self.flows {
            for property in self.properties_of(key) {
                add(properties.entry(property).or_default(), *sum);
                having.entry(property).or_default().insert(*key);
            }
        }
        let own = |property| having.get(&property).cloned().unwrap_or_default();
        let enough = properties.iter().filter(|(_, sum)| self.is_enough(**sum)).map(|(property, _)| *property);
        // A prefix of exactly the flows of a row adds no information, so it need not be named, nor wider ones around it.
        let is_row = |property: &Property| {
            is_prefix(*property) && grouped.rows.iter().any(|row| self.are_of(row, &own(*property)))
        };
        let of_rows: BTreeSet<Property> = enough.filter(is_row).collect();
        let mut unnamed = BTreeMap::<Property, Sum>::new();
        for (key, sum) in self.flows.iter().filter(|(key, _)| !heavy.contains(*key)) {
            let fitting: Vec<&&Group> = groups.iter().filter(|group| group.pattern.fits(key)).collect();
            let own = self.properties_of(key);
            for property in &own {
                let is_implied = own.iter().any(|finer| of_rows.contains(finer) && is_part(*finer, *property));
                if !is_implied && !fitting.iter().any(|group| says(group, *property)) {
                    add(unnamed.entry(*property).or_default(), *sum);
                }
            }
        }
        verdict.properties = properties.values().filter(|sum| self.is_enough(**sum)).count();
        let missed = unnamed.iter().filter(|(_, sum)| self.is_enough(**sum));
        verdict.unnamed.extend(missed.map(|(property, sum)| format!("{property:?} with {sum:?} of {:?}", self.total)));

        for group in &grouped.overlaps {
            let own: BTreeSet<_> = self.flows.keys().filter(|key| group.pattern.fits(key)).copied().collect();
            if grouped.rows.iter().any(|row| adds_prefixes(group, row) && self.are_of(row, &own)) {
                verdict.wrong.push(format!("{group:?} repeats a row"));
            }
            let exact = self.sum(|key| group.pattern.fits(key));
            self.hold(group, exact, exact, &mut verdict);
        }
        for (place, group) in grouped.rows.iter().enumerate() {
            let others: Vec<_> = (0..grouped.rows.len()).filter(|other| *other != place).collect();
            let elsewhere = |key: &FlowKey| {
                heavy.contains(key) || others.iter().any(|other| grouped.rows[*other].pattern.fits(key))
            };
            let least = self.sum(|key| self.faces(group, key) && !elsewhere(key));
            let most = self.sum(|key| group.flow.is_none_or(|flow| flow == *key) && group.pattern.fits(key));
            self.hold(group, least, most, &mut verdict);
        }
        verdict
    }

    /// Whether a flow certainly fits a row. Connections fit in either direction, but here their busier end must be the near one.
    fn faces(&self, row: &Group, key: &FlowKey) -> bool {
        let busy = |end: u128| self.ends.get(&(key.family, end)).copied().unwrap_or_default();
        let turned = FlowKey { src: key.dst, dst: key.src, src_port: key.dst_port, dst_port: key.src_port, ..*key };
        let key = if self.connections && busy(key.src) > busy(key.dst) { turned } else { *key };
        Pattern { connections: false, ..row.pattern }.fits(&key)
    }

    /// Whether flows are those of a row: they fit it, and have the same sum.
    fn are_of(&self, row: &Group, flows: &BTreeSet<FlowKey>) -> bool {
        let (found, error) = ([row.weight.bytes, row.weight.packets], [row.error.bytes, row.error.packets]);
        let sum = self.sum(|key| flows.contains(key));
        row.flow.is_none()
            && flows.iter().all(|key| row.pattern.fits(key))
            && (0..2).all(|which| sum[which].abs_diff(found[which]) <= error[which])
    }

    /// All addresses of a flow, their prefixes, and its ports.
    fn properties_of(&self, key: &FlowKey) -> BTreeSet<Property> {
        let lengths: &[u8] = match key.family {
            Family::Link => &[48],
            Family::V4 => &[16, 24, 32],
            Family::V6 => &[32, 48, 64, 128],
        };
        let [src, dst, sport, dport] = if self.connections { BOTH } else { EACH };
        let mut all = BTreeSet::new();
        for (name, address) in [(src, key.src), (dst, key.dst)] {
            let prefix = |length: &u8| (name, key.family, *length, prefix(address, *length, whole_length(key.family)));
            all.extend(lengths.iter().map(prefix));
        }
        for (name, port) in [(sport, key.src_port), (dport, key.dst_port)] {
            if port > 0 {
                all.insert((name, Family::V4, 16, port.into()));
            }
        }
        all
    }

    /// Checks that a group's bytes and packets are within these limits, extended by its stated error.
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

/// The outcome.
#[derive(Default, Debug)]
pub struct Verdict {
    /// The properties with a tenth of the bytes or packets.
    pub properties: usize,
    /// Those of them that are not named.
    pub unnamed: Vec<String>,
    /// The number of compared shares, and the shares that are wrong by more than their stated error.
    pub shares: usize,
    pub wrong: Vec<String>,
    /// The largest stated error, and the largest actual one.
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

/// The names of ends and ports: for each side, and for either side.
const EACH: [&str; 4] = ["src", "dst", "sport", "dport"];
const BOTH: [&str; 4] = ["end", "end", "port", "port"];

fn whole_length(family: Family) -> u8 {
    [48, 32, 128][family as usize]
}

fn is_prefix((name, family, length, _): Property) -> bool {
    ["src", "dst", "end"].contains(&name) && length < whole_length(family)
}

/// Whether a prefix equals another or is within it.
fn is_part(finer: Property, (name, family, length, value): Property) -> bool {
    let inside = prefix(finer.3, length, whole_length(family)) == value;
    is_prefix((name, family, length, value)) && (finer.0, finer.1) == (name, family) && finer.2 >= length && inside
}

/// Whether a group adds only prefixes to another group's requirements.
fn adds_prefixes(group: &Group, other: &Group) -> bool {
    let (own, of) = (&group.pattern, &other.pattern);
    let end = |own: Option<Subnet>, of: Option<Subnet>| own == of || own.is_none_or(|end| !end.is_whole());
    let port = |own: Option<u16>, of: Option<u16>| own == of || own.is_none();
    end(own.src, of.src)
        && end(own.dst, of.dst)
        && port(own.src_port, of.src_port)
        && port(own.dst_port, of.dst_port)
        && (own.protocol == of.protocol || own.protocol.is_none())
}

/// Whether a group names a property, or a finer one within it.
fn says(group: &Group, (name, family, length, value): Property) -> bool {
    let pattern = &group.pattern;
    let end = |end: Option<Subnet>| {
        end.is_some_and(|end| {
            end.family == family && end.length >= length && prefix(end.address, length, whole_length(family)) == value
        })
    };
    let port = |port: Option<u16>| port.map(u128::from) == Some(value);
    match name {
        "src" => end(pattern.src),
        "dst" => end(pattern.dst),
        "end" => end(pattern.src) || end(pattern.dst),
        "sport" => port(pattern.src_port),
        "dport" => port(pattern.dst_port),
        _ => port(pattern.src_port) || port(pattern.dst_port),
    }
}
