//! A distribution of sizes, given by points of its cumulative curve.

use super::SizesError;
use libm::{exp, log};

/// A distribution given by points (bytes, share of flows of at most this many bytes).
/// Two points with the same bytes are a jump: that share of flows has exactly this size. Two with the same share are a
/// gap: no flow has a size in between. A first point with a share above 0 is a jump, too.
///
/// ```
/// use queuescope_sim::workload::{Empirical, Interpolation};
///
/// let sizes = Empirical::parse("100 0\n1000 0.5\n100000 1\n", Interpolation::Linear)?;
/// assert_eq!(sizes.quantile(0.5), 1000.0);
/// assert_eq!(sizes.cumulative(550.0), 0.25);
/// assert_eq!(sizes.mean(), 0.5 * 550.0 + 0.5 * 50_500.0);
/// # Ok::<(), queuescope_sim::workload::SizesError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Empirical {
    /// Bytes, and the share at or below; neither decreases, and the last share is 1.
    points: Vec<(f64, f64)>,
    interpolation: Interpolation,
    stated_mean: Option<f64>,
}

/// How the curve runs between two points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Every size between them is equally likely: the cumulative curve is a straight line.
    #[default]
    Linear,
    /// Every ratio between them is equally likely: a straight line with a logarithmic axis of bytes, as such curves
    /// are usually plotted. A point at 0 bytes counts as a point at 1.
    Log,
    /// Only the sizes of the points occur, each with the share that it adds.
    Step,
}

impl Empirical {
    /// From points (bytes, share of flows at or below it, from 0 to 1).
    ///
    /// # Errors
    /// Fails if there are no points, if a value is negative or not a number, if points decrease, or if the last share is not 1.
    pub fn new(points: &[(f64, f64)], interpolation: Interpolation) -> Result<Self, SizesError> {
        for (index, (bytes, share)) in points.iter().enumerate() {
            let before = index.checked_sub(1).map_or((0.0, 0.0), |before| points[before]);
            check(*bytes, *share, before).map_err(|why| SizesError::Point { number: index + 1, why })?;
        }
        match points.last() {
            None => return Err(SizesError::Points("there is no point".to_owned())),
            Some((_, share)) if *share != 1.0 => {
                return Err(SizesError::Points(format!("the last share is {share}, and must be 1")));
            }
            Some((bytes, _)) if *bytes < 1.0 => {
                return Err(SizesError::Points("no size is as large as a byte".to_owned()));
            }
            Some(_) => {}
        }
        let least = if interpolation == Interpolation::Log { 1.0 } else { 0.0 };
        let points = points.iter().map(|(bytes, share)| (bytes.max(least), *share)).collect();
        Ok(Self { points, interpolation, stated_mean: None })
    }

    /// Reads a point on each line: bytes and the share at or below it, separated by spaces or a comma. Shares end
    /// at 1, or at 100 if they are percent. A first line with a single number states the mean, which is kept as
    /// [`stated_mean`](Self::stated_mean). Empty lines and text behind a `#` are ignored.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if a line is not two numbers; the error has the number of the line.
    pub fn parse(text: &str, interpolation: Interpolation) -> Result<Self, SizesError> {
        let (mut points, mut stated_mean, mut before) = (Vec::new(), None, (0.0, 0.0));
        for (index, line) in text.lines().enumerate() {
            let wrong = |why: String| SizesError::Line { line: index + 1, why };
            let fields: Vec<_> = line.split('#').next().unwrap_or_default().split([',', ' ', '\t']).collect();
            let fields: Vec<_> = fields.into_iter().map(str::trim).filter(|field| !field.is_empty()).collect();
            let number = |text: &str| {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
                number.ok_or_else(|| wrong(format!("'{text}' is not a number that a size or a share can be")))
            };
            match *fields.as_slice() {
                [] => {}
                [mean] if points.is_empty() && stated_mean.is_none() => stated_mean = Some(number(mean)?),
                [bytes, share] => {
                    let point = (number(bytes)?, number(share)?);
                    check(point.0, point.1 / 100.0, (before.0, before.1 / 100.0)).map_err(wrong)?;
                    points.push(point);
                    before = point;
                }
                _ => {
                    let found = fields.len();
                    return Err(wrong(format!("a point is two numbers, bytes and share, and here are {found}")));
                }
            }
        }
        // In computed files, the last share may differ from 1 by a rounding error.
        let Some(last) = points.last().map(|(_, share)| *share) else {
            return Err(SizesError::Points("there is no point".to_owned()));
        };
        if (last - 1.0).abs() > 1e-6 && (last - 100.0).abs() > 1e-4 {
            let why = format!("the last share is {last}, and should be 1, or 100 where shares are percent");
            return Err(SizesError::Points(why));
        }
        points.iter_mut().for_each(|(_, share)| *share /= last);
        Ok(Self { stated_mean, ..Self::new(&points, interpolation)? })
    }

    /// The same distribution in another unit: each size is multiplied by `bytes` (for tables in packets).
    #[must_use]
    pub fn in_units_of(mut self, bytes: f64) -> Self {
        self.points.iter_mut().for_each(|(size, _)| *size *= bytes);
        self.stated_mean = self.stated_mean.map(|mean| mean * bytes);
        self
    }

    /// The conditional distribution of sizes of at most this many bytes.
    ///
    /// # Errors
    /// Fails if no size is that small, or if all are below a byte.
    pub fn at_most(&self, bytes: f64) -> Result<Self, SizesError> {
        let share = self.cumulative(bytes);
        if share <= 0.0 {
            return Err(SizesError::Points(format!("no size is as small as {bytes} bytes")));
        }
        let kept = self.points.iter().take_while(|(size, _)| *size <= bytes);
        let mut points: Vec<_> = kept.map(|(size, below)| (*size, below / share)).collect();
        if points.last().is_none_or(|(_, share)| *share < 1.0) {
            points.push((bytes, 1.0));
        }
        Self::new(&points, self.interpolation)
    }

    /// The points: bytes, and the share of flows at or below.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The mean in bytes: exact for the assumed curve between the points.
    pub fn mean(&self) -> f64 {
        let (first, share) = self.points[0];
        let parts = self.points.windows(2).map(|pair| {
            let [(from, below), (to, at)] = [pair[0], pair[1]];
            let middle = match self.interpolation {
                Interpolation::Linear => 0.5 * (from + to),
                Interpolation::Log if to > from => (to - from) / (log(to) - log(from)),
                Interpolation::Log | Interpolation::Step => to,
            };
            (at - below) * middle
        });
        first * share + parts.sum::<f64>()
    }

    /// The mean in bytes that the file stated, if it did. It depends on what its authors assumed between the
    /// points.
    pub fn stated_mean(&self) -> Option<f64> {
        self.stated_mean
    }

    /// The size in bytes that a share `share` of flows does not exceed; the share is from 0 to 1.
    pub fn quantile(&self, share: f64) -> f64 {
        let at = self.points.partition_point(|(_, below)| *below < share).min(self.points.len() - 1);
        let (to, above) = self.points[at];
        let Some((from, below)) = at.checked_sub(1).map(|before| self.points[before]) else { return to };
        let part = (share - below) / (above - below);
        match self.interpolation {
            Interpolation::Linear => from + (to - from) * part,
            Interpolation::Log => from * exp((log(to) - log(from)) * part),
            Interpolation::Step => to,
        }
    }

    /// The share of flows of at most this many bytes.
    pub fn cumulative(&self, bytes: f64) -> f64 {
        let at = self.points.partition_point(|(size, _)| *size <= bytes);
        let Some((from, below)) = at.checked_sub(1).map(|before| self.points[before]) else { return 0.0 };
        let Some((to, above)) = self.points.get(at) else { return 1.0 };
        let part = match self.interpolation {
            Interpolation::Linear => (bytes - from) / (to - from),
            Interpolation::Log => (log(bytes) - log(from)) / (log(*to) - log(from)),
            Interpolation::Step => 0.0,
        };
        below + (above - below) * part
    }
}

/// Checks whether a point can come after the previous one.
fn check(bytes: f64, share: f64, before: (f64, f64)) -> Result<(), String> {
    if !(0.0..=1e18).contains(&bytes) {
        return Err(format!("{bytes} bytes are not the size of a flow"));
    }
    // A share above 1 by a rounding error is reported at the end.
    if !(0.0..=1.000_001).contains(&share) {
        return Err(format!("a share of {share} is not within 0 and 1"));
    }
    if bytes < before.0 {
        return Err(format!("{bytes} bytes come after {}: sizes must not decrease", before.0));
    }
    if share < before.1 {
        return Err("the share is less than that of the point before: shares must not decrease".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_are_read_however_they_are_written() {
        let points = [(0.0, 0.0), (100.0, 0.25), (400.0, 1.0)];
        let expected = Empirical::new(&points, Interpolation::Linear).unwrap();
        let read = |text: &str| Empirical::parse(text, Interpolation::Linear).unwrap();
        for text in
            ["0 0\n100 0.25\n400 1", "0,0\r\n100,0.25\r\n400,1.0\r\n", "# bytes share\n0\t0 \n\n100 25 # a\n400  100\n"]
        {
            assert_eq!(read(text), expected, "{text:?}");
        }
        let stated = read("200.5\n0 0\n100 0.25\n400 1");
        assert_eq!((stated.stated_mean(), stated.mean()), (Some(200.5), 200.0));
        let packets = read("200.5\n0 0\n100 0.25\n400 1").in_units_of(1500.0);
        assert_eq!((packets.mean(), packets.stated_mean()), (300_000.0, Some(300_750.0)));
    }

    #[test]
    fn the_small_ones_of_a_distribution_are_in_proportion() {
        let points = [(0.0, 0.0), (100.0, 0.25), (100.0, 0.5), (400.0, 1.0)];
        for interpolation in [Interpolation::Linear, Interpolation::Log, Interpolation::Step] {
            let all = Empirical::new(&points, interpolation).unwrap();
            for most in [50.0, 100.0, 200.0, 400.0, 500.0] {
                let Ok(some) = all.at_most(most) else {
                    assert!(interpolation == Interpolation::Step && most == 50.0, "{interpolation:?} {most}");
                    continue;
                };
                assert!(some.quantile(1.0) <= most);
                for bytes in [10.0, 50.0, 99.0, 100.0, 150.0, 200.0, 300.0] {
                    let expected = (all.cumulative(bytes) / all.cumulative(most)).min(1.0);
                    let found = some.cumulative(bytes);
                    assert!((found - expected).abs() < 1e-12, "{interpolation:?} {most} {bytes}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn errors_in_a_file_name_the_line() {
        let wrong = |text: &str| Empirical::parse(text, Interpolation::Linear).unwrap_err().to_string();
        assert!(wrong("0 0\n1x 1").starts_with("line 2: '1x' is not a number"), "{}", wrong("0 0\n1x 1"));
        assert!(wrong("0 0\n10 0.5\n9 1").starts_with("line 3: 9 bytes come after 10"));
        assert!(wrong("0 0\n10 0.5\n11 0.4").starts_with("line 3: the share is less"));
        assert!(wrong("0 0\n10 0.5 1").starts_with("line 2: a point is two numbers"));
        assert!(wrong("0 0\n7\n10 1").starts_with("line 2: a point is two numbers"));
        assert!(wrong("0 0\n10 -1").starts_with("line 2: '-1' is not a number"));
        assert!(wrong("0 0\n10 nan").starts_with("line 2: 'nan' is not a number"));
        assert!(wrong("0 0\n10 101").starts_with("line 2: a share of 1.01 "));
        assert!(wrong("0 0\n10 0.97").contains("the last share is 0.97, and should be 1, or 100"));
        assert!(wrong("# nothing\n").contains("no point"));
        assert!(wrong("0 1").contains("no size is as large as a byte"));
        let wrong = |points| Empirical::new(points, Interpolation::Step).unwrap_err().to_string();
        assert!(wrong(&[(1.0, 0.5), (f64::NAN, 1.0)]).starts_with("point 2: NaN bytes"));
        assert!(wrong(&[(1.0, 0.5), (2.0, 0.9)]).contains("the last share is 0.9"));
    }

    /// Jumps, gaps and a first point above 0, with hand-computed results.
    #[test]
    fn jumps_and_gaps_are_kept() {
        let points = [(10.0, 0.2), (20.0, 0.4), (20.0, 0.6), (40.0, 0.6), (80.0, 1.0)];
        let linear = Empirical::new(&points, Interpolation::Linear).unwrap();
        for (share, bytes) in
            [(0.1, 10.0), (0.2, 10.0), (0.3, 15.0), (0.5, 20.0), (0.6, 20.0), (0.8, 60.0), (1.0, 80.0)]
        {
            assert!((linear.quantile(share) - bytes).abs() < 1e-12, "{share}: {}", linear.quantile(share));
        }
        for (bytes, share) in [(9.0, 0.0), (10.0, 0.2), (15.0, 0.3), (20.0, 0.6), (30.0, 0.6), (60.0, 0.8), (99.0, 1.0)]
        {
            assert!((linear.cumulative(bytes) - share).abs() < 1e-12, "{bytes}: {}", linear.cumulative(bytes));
        }
        assert!((linear.mean() - (2.0 + 3.0 + 4.0 + 24.0)).abs() < 1e-12);
        let step = Empirical::new(&points, Interpolation::Step).unwrap();
        assert_eq!([0.2, 0.21, 0.6, 0.61].map(|share| step.quantile(share)), [10.0, 20.0, 20.0, 80.0]);
        assert!((step.mean() - (2.0 + 4.0 + 4.0 + 32.0)).abs() < 1e-12);
        let log = Empirical::new(&[(0.0, 0.0), (10_000.0, 1.0)], Interpolation::Log).unwrap();
        assert!((log.quantile(0.25) - 10.0).abs() < 1e-9 && (log.cumulative(100.0) - 0.5).abs() < 1e-12);
        assert!((log.mean() - 9_999.0 / 10_000f64.ln()).abs() < 1e-9);
    }

    /// The mean is the integral of the quantiles, for each interpolation.
    fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((0..5_000u32, 0..4u32), 1..12).prop_filter_map("a curve", |steps| {
            let all: u32 = steps.iter().map(|(_, flows)| flows).sum();
            let sum = |now: &mut (u32, u32), (bytes, flows): (u32, u32)| {
                *now = (now.0 + bytes, now.1 + flows);
                Some((f64::from(now.0), f64::from(now.1) / f64::from(all)))
            };
            let points: Vec<_> = steps.into_iter().scan((0, 0), sum).collect();
            (all > 0 && points.last()?.0 >= 1.0).then_some(points)
        })
    }

    proptest! {
        #[test]
        fn means_are_integrals_of_quantiles(points in points()) {
            for interpolation in [Interpolation::Linear, Interpolation::Log, Interpolation::Step] {
                let curve = Empirical::new(&points, interpolation).unwrap();
                const PARTS: u32 = 20_000;
                let sizes = (0..PARTS).map(|n| curve.quantile((f64::from(n) + 0.5) / f64::from(PARTS)));
                let mean = sizes.sum::<f64>() / f64::from(PARTS);
                let largest = curve.quantile(1.0);
                let computed = curve.mean();
                prop_assert!((computed - mean).abs() <= 1e-3 * largest, "{interpolation:?}: {computed} is not {mean}");
            }
        }

        #[test]
        fn quantiles_are_the_least_sizes_of_their_shares(points in points(), share in 0.0..1.0f64) {
            for interpolation in [Interpolation::Linear, Interpolation::Log, Interpolation::Step] {
                let curve = Empirical::new(&points, interpolation).unwrap();
                let bytes = curve.quantile(share);
                prop_assert!(curve.cumulative(bytes * (1.0 + 1e-12)) >= share - 1e-9);
                prop_assert!(bytes <= 1.0 || curve.cumulative(bytes * (1.0 - 1e-9) - 1e-9) <= share + 1e-9);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([0-9]{1,3}[ ,\t.]|[-+a-z#\n]|\\PC){0,40}") {
            let _ = Empirical::parse(&text, Interpolation::Log);
        }
    }
}
