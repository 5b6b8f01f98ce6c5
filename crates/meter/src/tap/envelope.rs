//! The line on which packets lie that met an empty queue. It gives the offset and the drift between two clocks.
//!
//! Two captures of a packet show how far the second clock is ahead of the first, plus the time through the router. That time is shortest,
//! and always the same, if the queue was empty; all other points lie above. So the clocks are the lower envelope of these points (Moon,
//! Skelly and Towsley, "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999; Paxson's thesis, chapter 12).
//! Their line is the edge of the lower hull around the mean time. This module deviates: it takes the line on which the most time intervals
//! have a packet, with almost none below it. An edge of the hull may join two packets that both waited, if the queue was empty only part of
//! the time, and one wrong match below all others would bend every edge.

use super::{Clock, ClockEstimate};
use queuescope_wire::Nanos;

/// The number of time intervals with points, and of points in each.
const STRETCHES: usize = 2048;
const POINTS: usize = 12;
/// The shortest interval, nanoseconds.
const SHORTEST: u64 = 1_000_000;
/// No clock drifts by more than one part in this number; cheap crystals stay within a tenth of that.
const STEEPEST: i64 = 1000;
/// The number of groups of intervals from each of which one point is tried as part of the line.
const TRIED: usize = 32;
/// The number of intervals on a line that makes it credible.
const CREDIBLE: u32 = 10;
/// The tried distances of packets from the line, in order, as multiples of the captures' resolution.
const WIDTHS: [u64; 7] = [1, 4, 16, 64, 256, 1024, 4096];

/// Keeps the lowest points of each time interval, in bounded memory.
#[derive(Debug, Clone)]
pub struct Envelope {
    origin: Option<u64>,
    width: u64,
    stretches: Vec<Vec<Point>>,
    count: u64,
    /// Whether all times are multiples of a microsecond.
    coarse: bool,
}

/// A packet that was captured at `x` by the first clock and `y` nanoseconds later by the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    x: u64,
    y: i64,
}

/// A line through a point.
#[derive(Debug, Clone, Copy)]
struct Line {
    through: Point,
    dx: i64,
    dy: i64,
}

impl Envelope {
    /// Creates an envelope without points.
    pub fn new() -> Self {
        Self { origin: None, width: SHORTEST, stretches: Vec::new(), count: 0, coarse: true }
    }

    /// Adds a packet that was captured at `before` by the clock before the router and at `after` by the one behind it.
    #[inline]
    pub fn add(&mut self, before: Nanos, after: Nanos) {
        let Some(y) = difference(before, after) else { return };
        self.count += 1;
        self.coarse &= before.0.is_multiple_of(1000) && after.0.is_multiple_of(1000);
        let origin = *self.origin.get_or_insert(before.0);
        let mut index = before.0.saturating_sub(origin) / self.width;
        while index >= STRETCHES as u64 {
            self.double();
            index /= 2;
        }
        let index = index as usize;
        if self.stretches.len() <= index {
            self.stretches.resize_with(index + 1, Vec::new);
        }
        insert(&mut self.stretches[index], Point { x: before.0, y });
    }

    /// The number of points that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The resolution of the times, nanoseconds: a microsecond or a nanosecond.
    fn resolution(&self) -> u64 {
        if self.coarse { 1000 } else { 100 }
    }

    /// Doubles the length of intervals.
    fn double(&mut self) {
        self.width *= 2;
        let old = std::mem::take(&mut self.stretches);
        for pair in old.chunks(2) {
            let mut stretch = pair[0].clone();
            for point in pair.get(1).into_iter().flatten() {
                insert(&mut stretch, *point);
            }
            self.stretches.push(stretch);
        }
    }

    /// The line of the packets with the shortest time through the router; none without points.
    pub fn fit(&self) -> Option<ClockEstimate> {
        let occupied: Vec<&[Point]> = self.stretches.iter().map(Vec::as_slice).filter(|s| !s.is_empty()).collect();
        let lines = self.candidates(&occupied);
        let stretches = occupied.len() as u32;
        let below = 1 + stretches / 100;
        let enough = CREDIBLE.min(stretches.div_ceil(2).max(3));
        for width in WIDTHS {
            let within = (self.resolution() * width) as i64;
            let judged = lines.iter().map(|line| (line, line.judge(&occupied, within)));
            let best = judged.filter(|(_, score)| score.below <= below).max_by_key(|(_, score)| score.on);
            if let Some((line, score)) = best
                && score.on >= enough
            {
                return line.polish(&occupied, within, stretches);
            }
        }
        // Too few packets to estimate a drift: the lowest one gives the offset.
        let lowest = occupied.iter().flat_map(|points| points.iter()).min_by_key(|point| point.y)?;
        Some(ClockEstimate {
            clock: Clock::new(Nanos(lowest.x), lowest.y, 0.0),
            within: Nanos(self.resolution()),
            span: (Nanos(lowest.x), Nanos(lowest.x)),
            stretches,
            supporting: 1,
            with_drift: false,
        })
    }

    /// Candidates for the line: the edges of the lower hull, and lines between low points that are far apart, because a wrong point far
    /// below hides an edge.
    fn candidates(&self, occupied: &[&[Point]]) -> Vec<Line> {
        let mut hull = Vec::new();
        for point in occupied.iter().flat_map(|points| points.iter()) {
            push_on_hull(&mut hull, *point);
        }
        let mut lines: Vec<Line> = hull.windows(2).filter_map(|ends| Line::between(ends[0], ends[1])).collect();
        // Over a short time, low points can be identified without the drift; over a longer time, with the drift of the hull's longest
        // edge.
        let slope = lines.iter().max_by_key(|line| line.dx).copied();
        let height = |point: &Point| slope.map_or(i128::from(point.y), |line| line.above(point) / i128::from(line.dx));
        let low: Vec<Point> = occupied
            .chunks(occupied.len().div_ceil(TRIED).max(1))
            .filter_map(|group| {
                group.iter().flat_map(|points| points.iter()).min_by_key(|point| height(point)).copied()
            })
            .collect();
        for (number, first) in low.iter().enumerate() {
            lines.extend(low[number + 1..].iter().filter_map(|second| Line::between(*first, *second)));
        }
        lines
    }
}

impl Default for Envelope {
    fn default() -> Self {
        Self::new()
    }
}

/// The numbers of intervals whose lowest point is on a line, and of those whose lowest point is below it.
struct Score {
    on: u32,
    below: u32,
}

impl Line {
    fn between(a: Point, b: Point) -> Option<Self> {
        let dx = i64::try_from(b.x.checked_sub(a.x)?).ok().filter(|&dx| dx > 0)?;
        let dy = b.y.checked_sub(a.y)?;
        (dy.unsigned_abs() <= (dx / STEEPEST) as u64).then_some(Self { through: a, dx, dy })
    }

    /// How far a point is above the line, in nanoseconds times `dx`.
    fn above(&self, point: &Point) -> i128 {
        let x = i128::from(point.x) - i128::from(self.through.x);
        let y = i128::from(point.y) - i128::from(self.through.y);
        y * i128::from(self.dx) - x * i128::from(self.dy)
    }

    fn judge(&self, occupied: &[&[Point]], within: i64) -> Score {
        let margin = i128::from(within) * i128::from(self.dx);
        let mut score = Score { on: 0, below: 0 };
        for points in occupied {
            let lowest = points.iter().map(|point| self.above(point)).min().unwrap_or(i128::MAX);
            score.below += u32::from(lowest < -margin);
            score.on += u32::from((-margin..=margin).contains(&lowest));
        }
        score
    }

    /// The longest edge of the lower hull of the points that support this line, moved down to the lowest of them. Least squares
    /// through them had four times the error if timestamps are rounded to microseconds, because the lowest point of an interval
    /// depends on its number of packets.
    fn polish(&self, occupied: &[&[Point]], within: i64, stretches: u32) -> Option<ClockEstimate> {
        let margin = i128::from(within) * i128::from(self.dx);
        let on: Vec<Point> = occupied
            .iter()
            .filter_map(|points| points.iter().min_by_key(|point| self.above(point)))
            .filter(|point| (-margin..=margin).contains(&self.above(point)))
            .copied()
            .collect();
        let (first, last) = (on.first()?, on.last()?);
        let mut hull = Vec::new();
        on.iter().for_each(|point| push_on_hull(&mut hull, *point));
        let edge = hull.windows(2).filter_map(|ends| Line::between(ends[0], ends[1])).max_by_key(|line| line.dx);
        let edge = edge.filter(|_| on.len() >= 3);
        let (with_drift, drift) = (edge.is_some(), edge.map_or(0.0, |edge| edge.dy as f64 / edge.dx as f64));
        let through = Clock::new(Nanos(first.x), first.y, drift * 1e6);
        let lowest = on.iter().map(|point| point.y - through.offset_at(Nanos(point.x))).min().unwrap_or(0);
        Some(ClockEstimate {
            clock: Clock::new(Nanos(first.x), first.y + lowest, drift * 1e6),
            within: Nanos(within as u64),
            span: (Nanos(first.x), Nanos(last.x)),
            stretches,
            supporting: on.len() as u32,
            with_drift,
        })
    }
}

/// `after - before`, if that is less than 146 years.
pub(super) fn difference(before: Nanos, after: Nanos) -> Option<i64> {
    let y = i128::from(after.0) - i128::from(before.0);
    i64::try_from(y).ok().filter(|y| y.unsigned_abs() < 1 << 62)
}

/// Keeps the points of an interval that can be lowest for some drift: those that no other point undercuts by more than a drift explains.
fn insert(stretch: &mut Vec<Point>, point: Point) {
    let undercuts = |low: &Point, high: &Point| high.y - low.y >= (low.x.abs_diff(high.x) as i64) / STEEPEST;
    if stretch.iter().any(|low| undercuts(low, &point)) {
        return;
    }
    stretch.retain(|high| !undercuts(&point, high));
    let at = stretch.partition_point(|other| other.x < point.x);
    stretch.insert(at, point);
    let mut hull = Vec::with_capacity(stretch.len());
    for point in stretch.iter() {
        push_on_hull(&mut hull, *point);
    }
    if hull.len() > POINTS {
        // Removes the point that the hull needs least.
        let bend = |at: usize| Line::between(hull[at - 1], hull[at + 1]).map_or(0, |line| line.above(&hull[at]));
        if let Some(least) = (1..hull.len() - 1).max_by_key(|&at| bend(at)) {
            hull.remove(least);
        }
    }
    *stretch = hull;
}

/// Andrew's monotone chain, for points in order of time.
fn push_on_hull(hull: &mut Vec<Point>, point: Point) {
    while let [.., a, b] = hull[..] {
        let cross = (i128::from(b.x) - i128::from(a.x)) * (i128::from(point.y) - i128::from(a.y))
            - (i128::from(b.y) - i128::from(a.y)) * (i128::from(point.x) - i128::from(a.x));
        if cross > 0 {
            break;
        }
        hull.pop();
    }
    hull.push(point);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1_700_000_000_000_000_000;

    /// A router that the packets pass; each is given by its time and its sojourn time. A sojourn time of zero means an empty queue.
    fn envelope(packets: impl IntoIterator<Item = (u64, u64)>, clock: &Clock) -> Envelope {
        let mut envelope = Envelope::new();
        for (at, wait) in packets {
            envelope.add(Nanos(START + at), clock.convert(Nanos(START + at)) + Nanos(wait));
        }
        envelope
    }

    #[test]
    fn without_packets_there_is_no_estimate() {
        assert_eq!(Envelope::new().fit(), None);
    }

    #[test]
    fn few_packets_give_an_offset_but_no_drift() {
        let estimate = envelope([(0, 700), (5_000, 300)], &Clock::new(Nanos(START), -50_000, 0.0)).fit().unwrap();
        assert!(!estimate.with_drift && estimate.drift_error_ppm().is_none());
        assert_eq!(estimate.clock.convert(Nanos(START)), Nanos(START - 50_000 + 300));
    }

    #[test]
    fn a_queue_that_empties_only_at_the_start_does_not_bend_the_clock() {
        let clock = Clock::new(Nanos(START), 400_000_000, 20.0);
        let idle = (0..100).map(|n| (n * 10_000_000, 0));
        let busy =
            (0..10_000).map(|n| (1_000_000_000 + n * 10_000_000, 50_000 + (n * n * 7919) % 20_000_000 + n * 300));
        let estimate = envelope(idle.chain(busy), &clock).fit().unwrap();
        assert!((estimate.clock.drift_ppm() - 20.0).abs() < 0.002, "{}", estimate.clock.drift_ppm());
    }

    #[test]
    fn a_wrong_match_below_all_others_does_not_bend_the_clock() {
        let clock = Clock::new(Nanos(START), 400_000_000, -35.0);
        let packets = (0..20_000u64).map(|n| (n * 1_000_000, if n % 7 == 0 { 0 } else { 40_000 + n % 90_000 }));
        let mut envelope = envelope(packets, &clock);
        envelope.add(Nanos(START + 7_000_000_000), Nanos(START + 7_300_000_000));
        let estimate = envelope.fit().unwrap();
        assert!((estimate.clock.drift_ppm() + 35.0).abs() < 0.001, "{}", estimate.clock.drift_ppm());
        assert!(estimate.clock.offset_at(Nanos(START)).abs_diff(400_000_000) <= 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Any clock, and any sojourn times of which some are zero: the clock is found to within a few nanoseconds everywhere, or to within the
        /// resolution if timestamps are rounded to microseconds.
        #[test]
        fn the_clock_is_found(
            offset in -10_000_000_000_000..10_000_000_000_000i64,
            drift in -300.0..300.0f64,
            gap in 1_000..50_000_000u64,
            waits in prop::collection::vec(prop_oneof![1 => Just(0), 3 => 1..30_000_000u64], 400..1500),
            micros in any::<bool>()
        ) {
            let clock = Clock::new(Nanos(START), offset, drift);
            let round = |time: u64| if micros { time / 1000 * 1000 } else { time };
            let mut envelope = Envelope::new();
            for (n, wait) in waits.iter().enumerate() {
                let at = START + n as u64 * gap;
                envelope.add(Nanos(round(at)), Nanos(round(clock.convert(Nanos(at)).0 + wait)));
            }
            let estimate = envelope.fit().unwrap();
            // At the worst end of the supported range.
            for at in [estimate.span.0, estimate.span.1] {
                let error = estimate.clock.offset_at(at) - clock.offset_at(at);
                let allowed = if micros { 2_000 } else { 200 };
                prop_assert!(error.abs() <= allowed, "off by {error} ns: {estimate:?}");
            }
        }
    }
}
