//! The selection of cells.

/// A congestion control.
pub struct Tcp {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Whether flows are ECN-capable.
    pub ecn: bool,
}

/// A way to manage the queue.
pub struct Aqm {
    /// Its name in tables.
    pub name: &'static str,
    /// The lines of `[link]` for a rate in Mb/s and whether packets may be marked.
    pub lines: fn(u64, bool) -> String,
}

/// Congestion controls.
pub const TCPS: [Tcp; 5] = [
    Tcp { name: "newreno", ecn: false },
    Tcp { name: "cubic", ecn: false },
    Tcp { name: "bbr", ecn: false },
    Tcp { name: "vegas", ecn: false },
    Tcp { name: "dctcp", ecn: true },
];

/// Ways to manage the queue.
pub const AQMS: [Aqm; 6] = [
    Aqm { name: "tail drop", lines: |_, _| LIMIT.to_owned() },
    Aqm { name: "PIE", lines: |_, _| format!("{LIMIT}[link.discipline.pie]\n") },
    Aqm { name: "CoDel", lines: |_, ecn| format!("{LIMIT}[link.discipline.codel]\necn = {ecn}\n") },
    Aqm {
        name: "RED",
        lines: |_, ecn| {
            format!(
                "{LIMIT}[link.discipline.red]\ntarget-delay = \"15ms\"\nthresholds = \"none\"\nweight = \"none\"\n\
                 adaptation = \"adaptive\"\necn = {ecn}\n"
            )
        },
    },
    Aqm { name: "FQ-CoDel", lines: |_, ecn| format!("{LIMIT}[link.discipline.fq-codel]\necn = {ecn}\n") },
    Aqm { name: "ABC", lines: |rate, _| abc(rate) },
];

const LIMIT: &str = "limit = \"100ms\"\n";

/// Numbers of flows, rates in Mb/s, and round-trip times in milliseconds.
pub const FLOWS: [u64; 3] = [1, 5, 20];
pub const RATES: [u64; 2] = [20, 100];
pub const RTTS: [u64; 3] = [10, 40, 80];

/// How many values each parameter has.
const SIZES: [usize; 5] = [TCPS.len(), FLOWS.len(), AQMS.len(), RATES.len(), RTTS.len()];

/// ABC as in its paper, which is for 4170 packets per second, 50 Mb/s.
fn abc(rate: u64) -> String {
    let scaled = |packets: f64| packets * rate as f64 / 50.0;
    let buffer = scaled(24.0).round();
    format!(
        "limit = \"{buffer}packets\"\n[link.pipeline.abc.aqm]\nleast = {:?}\nbase = {:?}\ngamma = {:?}\n\
         [link.pipeline.abc.queue-length.counted]\nbuffer = {buffer}\n",
        scaled(6.0),
        scaled(20.0),
        scaled(16.0)
    )
}

/// A cell: the index of its value for each parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridPoint(pub [usize; 5]);

/// Selects up to `most` cells. Any first part of them is a fair selection: each cell is one whose pairs of values
/// occurred least so far.
pub fn places(most: usize) -> Vec<GridPoint> {
    let mut met: [[[[u32; 6]; 5]; 6]; 5] = Default::default();
    let mut left = all();
    let mut chosen = Vec::new();
    while chosen.len() < most && !left.is_empty() {
        let gain =
            |place: &GridPoint| -> f64 { pairs(place).map(|[a, x, b, y]| 0.25f64.powi(met[a][x][b][y] as i32)).sum() };
        // The first of those that are equally good.
        let best = (0..left.len()).rev().max_by(|one, other| gain(&left[*one]).total_cmp(&gain(&left[*other])));
        let place = left.remove(best.unwrap_or(0));
        pairs(&place).for_each(|[a, x, b, y]| met[a][x][b][y] += 1);
        chosen.push(place);
    }
    chosen
}

fn all() -> Vec<GridPoint> {
    let mut all = vec![GridPoint([0; 5])];
    for (parameter, size) in SIZES.into_iter().enumerate() {
        let with = |place: GridPoint, value| {
            let mut place = place;
            place.0[parameter] = value;
            place
        };
        all = all.into_iter().flat_map(|place| (0..size).map(move |value| with(place, value))).collect();
    }
    all
}

/// The pairs of values in a cell: two parameters, each with its value.
fn pairs(place: &GridPoint) -> impl Iterator<Item = [usize; 4]> + use<> {
    let values = place.0;
    (0..values.len()).flat_map(move |a| (a + 1..values.len()).map(move |b| [a, values[a], b, values[b]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_pair_of_values_occurs_about_equally_often() {
        let places = places(60);
        let mut met: BTreeMap<[usize; 4], usize> = BTreeMap::new();
        places.iter().flat_map(pairs).for_each(|pair| *met.entry(pair).or_default() += 1);
        for (a, many) in SIZES.into_iter().enumerate() {
            for (b, others) in SIZES.into_iter().enumerate().skip(a + 1) {
                let fair = 60.0 / (many * others) as f64;
                for (x, y) in (0..many).flat_map(|x| (0..others).map(move |y| (x, y))) {
                    let times = *met.get(&[a, x, b, y]).unwrap_or(&0) as f64;
                    assert!(times >= 1.0 && (times / fair - 1.0).abs() <= 0.6, "{a} {x} {b} {y}: {times} of {fair}");
                }
            }
        }
    }

    #[test]
    fn a_selection_begins_like_a_smaller_one() {
        assert_eq!(places(60)[..10], places(10));
        let mut every = places(usize::MAX);
        assert_eq!(every.len(), 540);
        every.sort_unstable_by_key(|place| place.0);
        every.dedup();
        assert_eq!(every.len(), 540);
    }
}
