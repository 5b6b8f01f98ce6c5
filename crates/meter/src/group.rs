//! Grouping the blame: the few keys, as specific as they can be, that explain a burst.
//!
//! These are the heavy hitters of a lattice of keys (Zhang et al., *Online Identification of Hierarchical Heavy
//! Hitters*, IMC 2004), chosen so that few rows say much, as the compressed clusters of AutoFocus do (Estan, Savage and
//! Varghese, *Automatically Inferring Patterns of Resource Consumption in Network Traffic*, SIGCOMM 2003). Both count a
//! key's residue: what is left of it once what was named before is taken away. So rows are disjoint here.
//!
//! The order differs from theirs. They go from the finest key up, and would tell an incast of two senders as two flows;
//! here the best explanation comes first (bytes times specificity), is widened while that costs
//! specificity but gains bytes, and narrowed while it keeps nearly all of its bytes. A flow that is heavy by itself
//! stays visible: as a row, or named in the row of its group. See `docs/explanation/grouping.md`.

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

/// Which groups are named.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupParams {
    /// phi: the least part of the burst's bytes or packets that a group must have, 0.01 to 1. The default is a tenth.
    pub least: f64,
    /// The least part of the burst's bytes or packets with which a flow is heavy by itself, 0.01 to 1. The default is a
    /// tenth.
    pub heavy: f64,
    /// A group is narrowed only while it keeps at least this part of its bytes, 0.5 to 1. The default is nine tenths.
    pub keep: f64,
    /// A flow with more than this part of a group's bytes is no member of it, and a port or address with less than this
    /// part of a wider group does not stand for it, 0.5 to 1. The default is three quarters: three times all others
    /// together.
    pub dominance: f64,
    /// Prefix lengths that a group may have for IPv4, shortest first, at most three.
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
    /// With every part within its bounds: below a hundredth, the groups would be too many to be looked for.
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

/// A burst, explained. The rows and the rest are disjoint; together they are everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouped {
    /// What explains the burst: what has many of its bytes, best explanation first, then of the rest what has many of its
    /// packets.
    pub rows: Vec<Group>,
    /// Addresses, prefixes and ports that many flows have and that the rows do not say. Their flows are in rows, or in the
    /// rest, and one may be in several. None has the flows of a row and says only a prefix more.
    pub overlaps: Vec<Group>,
    /// Flows that belong to no row.
    pub rest: Weight,
}

/// What is known of a burst where not all flows were kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled<'a> {
    /// The first flows stand for others too, each for so many.
    pub stand_for: &'a [f32],
    /// How much one of those is at most of itself.
    pub unit: Unit,
    /// The whole burst.
    pub total: Amount,
}

/// Flows that have something in common, or a single one.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What they have in common. Flows that earlier rows have, and heavy flows beside a group without a whole address,
    /// may fit too and are not counted here.
    pub pattern: Pattern,
    /// How much they are; where not all flows were kept, an estimate.
    pub weight: Weight,
    /// By how much bytes and packets may be wrong; 0 where all flows were kept.
    pub error: Amount,
    /// Distinct sources; of connections, distinct far ends. Where not all flows were kept, there are at least as many; so
    /// of destinations.
    pub sources: u64,
    /// Distinct destinations; of connections, distinct near ends.
    pub destinations: u64,
    /// Its flows that are heavy by themselves, heaviest first: to be shown below it. Their bytes are among its own.
    pub heavy: Vec<(FlowKey, Share)>,
    /// The flow, if the row is a single one.
    pub flow: Option<FlowKey>,
    /// What so many flows are, if there is a name for it.
    pub explosion: Option<Explosion>,
}

/// How much something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// Flows.
    pub flows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their packets.
    pub packets: u64,
}

/// Explains a burst whose flows are keys of one granularity, each with its share. These are all flows of the burst, or
/// they and `sampled` say what is known of it.
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

/// The row of what was found.
fn row(lattice: &Lattice, found: &Members, granularity: Granularity) -> Group {
    let all = &lattice.all;
    let single = lattice.flows_of(found).next().filter(|_| found.single).map(|(key, _)| written(*key, granularity));
    // A heavy flow is a cell of its own.
    let alone = found.cells.iter().filter(|cell| all.cells[**cell].flows == 1 && single.is_none());
    let alone = alone.flat_map(|cell| all.flows_in(*cell));
    let heavy = alone.filter(|(_, share)| Amount::of(share).reaches(lattice.heavy));
    let mut heavy: Vec<_> = heavy.map(|(key, share)| (written(*key, granularity), *share)).collect();
    heavy.sort_unstable_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then_with(|| a.cmp(b)));
    let pattern = lattice.pattern(found, granularity);
    let many = |end: Option<Subnet>, digest: fn(&FlowKey) -> u64| {
        // A connection may have to be turned to fit.
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
        flow: single,
        explosion: None,
    };
    let targets = || {
        all.distinct(&found.cells, |key| {
            FlowKey { dst: key.dst, dst_port: key.dst_port, family: key.family, ..FlowKey::default() }.digest()
        })
    };
    let asking = || {
        let (mut asking, mut flows) = (0.0, 0.0);
        for (key, _) in lattice.flows_of(found) {
            asking += f64::from(u8::from(key.dst_port <= key.src_port));
            flows += 1.0;
        }
        asking / flows
    };
    group.explosion = Explosion::of(&group, targets, asking);
    group
}

/// A connection's ends are in the order of their addresses; here each one's busier end is its destination, so that what
/// many connections share is on the same side in all.
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

/// The key as the granularity has it.
fn written(key: FlowKey, granularity: Granularity) -> FlowKey {
    if granularity == Granularity::Connection { granularity.project(&key) } else { key }
}
