//! Groups the flows of a burst: finds the few keys, as specific as possible, that explain it.
//!
//! These are the heavy hitters of a lattice of keys (Zhang et al., *Online Identification of Hierarchical Heavy Hitters*, IMC 2004),
//! chosen so that few rows explain much, as the compressed clusters of AutoFocus are (Estan, Savage and Varghese, *Automatically Inferring
//! Patterns of Resource Consumption in Network Traffic*, SIGCOMM 2003). Both count a key's residue: what remains of it without the keys
//! named before. So rows are disjoint here.
//!
//! The order differs from theirs. They go from the finest key up, and would report an incast of two senders as two flows. Here the best
//! explanation (bytes times specificity) comes first; it is widened while that costs specificity but gains bytes, and narrowed while it keeps
//! nearly all of its bytes. A flow that is heavy by itself stays visible: as a row, or named in the row of its group. See
//! `docs/explanation/grouping.md`.

mod amount;
mod cells;
mod explosion;
mod fields;
mod lattice;
mod overlap;
mod pattern;

use crate::{Amount, Share, Unit};
use lattice::{Lattice, Members};
use queuescope_wire::{Family, FlowKey, Granularity};

pub use explosion::Explosion;
pub use pattern::{Pattern, Subnet};

/// Parameters that determine which groups are named.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupParams {
    /// phi: the smallest share of the burst's bytes or packets that a group must have, 0.01 to 1. The default is 0.1.
    pub least: f64,
    /// The smallest share of the burst's bytes or packets with which a flow is heavy by itself, 0.01 to 1. The default is
    /// 0.1.
    pub heavy: f64,
    /// A group is narrowed only while it keeps at least this share of its bytes, 0.5 to 1. The default is 0.9.
    pub keep: f64,
    /// A flow with more than this share of a group's bytes is not a member of the group, and a port or address with less than this
    /// share of a wider group does not stand for it, 0.5 to 1. The default is 0.75: three times all others
    /// together.
    pub dominance: f64,
    /// The prefix lengths that a group may have for IPv4, shortest first, at most three.
    pub v4: Vec<u8>,
    /// The same for IPv6.
    pub v6: Vec<u8>,
}

impl Default for GroupParams {
    fn default() -> Self {
        Self { least: 0.1, heavy: 0.1, keep: 0.9, dominance: 0.75, v4: vec![16, 24], v6: vec![32, 48, 64] }
    }
}

impl GroupParams {
    /// With every share within its bounds: below 0.01 there would be too many groups to search.
    fn bounded(&self) -> Self {
        let part = |value: f64, least: f64| if value >= least { value.min(1.0) } else { least };
        let lengths = |lengths: &[u8]| lengths.iter().copied().take(fields::PREFIXES).collect();
        Self {
            least: part(self.least, 0.01),
            heavy: part(self.heavy, 0.01),
            keep: part(self.keep, 0.5),
            dominance: part(self.dominance, 0.5),
            v4: lengths(&self.v4),
            v6: lengths(&self.v6),
        }
    }
}

/// The explanation of a burst. The rows and the rest are disjoint; together they are the whole burst.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouped {
    /// The groups and flows that explain the burst: first those with many of its bytes, best explanation first; then, of the rest, those
    /// with many of its packets.
    pub rows: Vec<Group>,
    /// Addresses, prefixes and ports that many flows have in common and that no row names. Their flows are in rows or in the rest, and a
    /// flow may be in several. None has the flows of a row and adds only a prefix.
    pub overlaps: Vec<Group>,
    /// Flows that belong to no row.
    pub rest: Weight,
}

/// The sampling of a burst of which not all flows were kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled<'a> {
    /// The number of flows for which each of the first flows stands.
    pub stand_for: &'a [f32],
    /// The sampling unit, which limits what each of these flows adds to its own share.
    pub unit: Unit,
    /// The whole burst.
    pub total: Amount,
}

/// Flows that have something in common, or a single flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What the flows have in common. Flows of earlier rows, and heavy flows if the group has no whole address, may fit it as well, but are
    /// not counted here.
    pub pattern: Pattern,
    /// The size of the group; an estimate if not all flows were kept.
    pub weight: Weight,
    /// The possible error of bytes and packets; 0 if all flows were kept.
    pub error: Amount,
    /// The number of distinct sources; for connections, of distinct far ends. If not all flows were kept, a lower bound, as for
    /// destinations.
    pub sources: u64,
    /// The number of distinct destinations; for connections, of distinct near ends.
    pub destinations: u64,
    /// Its flows that are heavy by themselves, heaviest first, to be shown below it. Their bytes are included in `weight`.
    pub heavy: Vec<(FlowKey, Share)>,
    /// Whether other flows fit `pattern` as well: flows of earlier rows, or heavy flows. Then the group is only the rest of what has the pattern.
    /// Always false for overlaps.
    pub remainder: bool,
    /// The flow, if the row is a single one.
    pub flow: Option<FlowKey>,
    /// The name for this pattern of many flows, if there is one.
    pub explosion: Option<Explosion>,
}

/// The size of a set of flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// Flows.
    pub flows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their packets.
    pub packets: u64,
}

/// Explains a burst whose flows are keys of one granularity, each with its share. If `sampled` is given, the flows are a sample of the
/// burst; otherwise they are all of its flows.
///
/// Memory and time grow with the number of flows and with `1 / params.least`.
pub fn group(
    flows: &[(FlowKey, Share)],
    sampled: Option<Sampled<'_>>,
    granularity: Granularity,
    params: &GroupParams,
) -> Grouped {
    let params = params.bounded();
    let oriented = oriented(flows, granularity);
    let flows = oriented.as_deref().unwrap_or(flows);
    let mut lattice = Lattice::new(flows, sampled, granularity, &params);
    let row = |lattice: &Lattice, found: &Members| {
        let mut row = row(lattice, found, granularity);
        row.error = sampled.map_or(Amount::default(), |sampled| {
            let of_sample = found.cells.iter().map(|cell| lattice.all.cells[*cell].of_sample);
            sampled.unit.error(of_sample.fold(Amount::default(), Amount::and))
        });
        row
    };
    let (mut rows, mut picks) = (Vec::new(), Vec::new());
    while let Some(found) = lattice.next() {
        rows.push((found.measure, found.score, row(&lattice, &found)));
        picks.push(found.picks);
    }
    rows.sort_by(|(m, a, x), (n, b, y)| {
        let bytes = y.weight.bytes.cmp(&x.weight.bytes);
        let found = m.cmp(n).then(b.total_cmp(a));
        found.then(bytes).then_with(|| (&x.pattern, x.flow).cmp(&(&y.pattern, y.flow)))
    });
    let overlaps = overlap::overlaps(&lattice, &picks, granularity == Granularity::Connection);
    let mut overlaps: Vec<_> = overlaps.iter().map(|members| row(&lattice, members)).collect();
    overlaps.sort_by_key(|group| (std::cmp::Reverse((group.weight.bytes, group.weight.packets)), group.pattern));
    Grouped { rows: rows.into_iter().map(|(.., group)| group).collect(), overlaps, rest: lattice.rest() }
}

/// Makes the row of a result.
fn row(lattice: &Lattice, found: &Members, granularity: Granularity) -> Group {
    let all = &lattice.all;
    let single = lattice.flows_of(found).next().filter(|_| found.single).map(|(key, _)| written(*key, granularity));
    // A heavy flow is a cell of its own.
    let alone = found.cells.iter().filter(|cell| all.cells[**cell].flows == 1 && single.is_none());
    let alone = alone.flat_map(|cell| all.flows_in(*cell));
    let heavy = alone.filter(|(_, share)| Amount::from_share(share).reaches(lattice.heavy));
    let mut heavy: Vec<_> = heavy.map(|(key, share)| (written(*key, granularity), *share)).collect();
    heavy.sort_unstable_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then_with(|| a.cmp(b)));
    let pattern = lattice.pattern(found, granularity);
    let many = |end: Option<Subnet>, digest: fn(&FlowKey) -> u64| {
        // A connection may have to be turned around to fit.
        let facing = |key: &FlowKey| digest(&if pattern.fits_as_it_is(key) { *key } else { turned(*key) });
        if end.is_some_and(|end| end.is_whole()) { 1 } else { all.distinct(&found.cells, facing) }
    };
    let mut group = Group {
        pattern,
        weight: lattice.weight(found.cells.iter().copied()),
        error: Amount::default(),
        sources: many(pattern.src, |key| FlowKey { src: key.src, family: key.family, ..FlowKey::default() }.digest()),
        destinations: many(pattern.dst, |key| {
            FlowKey { dst: key.dst, family: key.family, ..FlowKey::default() }.digest()
        }),
        heavy,
        remainder: single.is_none() && lattice.is_remainder(found, &pattern),
        flow: single,
        explosion: None,
    };
    let targets = || {
        all.distinct(&found.cells, |key| {
            FlowKey { dst: key.dst, dst_port: key.dst_port, family: key.family, ..FlowKey::default() }.digest()
        })
    };
    let requesting = || {
        let (mut requesting, mut flows) = (0.0, 0.0);
        for (key, _) in lattice.flows_of(found) {
            requesting += f64::from(u8::from(key.dst_port <= key.src_port));
            flows += 1.0;
        }
        requesting / flows
    };
    group.explosion = Explosion::from_group(&group, targets, requesting);
    group
}

/// Turns connections so that the busier end is the destination. Their ends are otherwise in the order of the addresses, and what many
/// connections have in common would be on different sides. None for other granularities.
fn oriented(flows: &[(FlowKey, Share)], granularity: Granularity) -> Option<Vec<(FlowKey, Share)>> {
    if granularity != Granularity::Connection {
        return None;
    }
    let hasher = foldhash::fast::FixedState::with_seed(0);
    let mut ends = hashbrown::HashMap::<(Family, u128), u64, _>::with_hasher(hasher);
    for (key, share) in flows {
        *ends.entry((key.family, key.src)).or_default() += share.bytes;
        *ends.entry((key.family, key.dst)).or_default() += share.bytes;
    }
    let busy = |key: &FlowKey, end: u128| ends.get(&(key.family, end)).copied().unwrap_or_default();
    let turn = |(key, share): &(FlowKey, Share)| {
        let turns = busy(key, key.src) > busy(key, key.dst);
        (if turns { turned(*key) } else { *key }, *share)
    };
    Some(flows.iter().map(turn).collect())
}

fn turned(key: FlowKey) -> FlowKey {
    FlowKey { src: key.dst, dst: key.src, src_port: key.dst_port, dst_port: key.src_port, ..key }
}

/// The key in the form of the granularity.
fn written(key: FlowKey, granularity: Granularity) -> FlowKey {
    if granularity == Granularity::Connection { granularity.project(&key) } else { key }
}
