//! Sizes of flows in bytes.
//!
//! A size is drawn by inverse transform: the quantile of one uniform number, rounded to whole bytes, at least one. The
//! same seed draws from different distributions at the same shares, so two workloads with different
//! distributions differ only by that.

use super::empirical::{Empirical, Interpolation};
use super::{Random, normal};
use libm::{exp, expm1, log, sqrt};
use queuescope_wire::ByteCount;

/// A distribution of sizes.
///
/// ```
/// use queuescope_sim::workload::{Random, Sizes};
/// use queuescope_wire::ByteCount;
///
/// let sizes = Sizes::pareto(1.2, ByteCount(1_000), ByteCount(10_000_000))?;
/// println!("mean {:.0} bytes, median {:.0}", sizes.mean(), sizes.quantile(0.5));
/// assert!(sizes.mean() > 2.0 * sizes.quantile(0.5), "a heavy tail");
/// let mut random = Random::new(1);
/// let size = sizes.sample(&mut random);
/// assert!((ByteCount(1_000)..=ByteCount(10_000_000)).contains(&size));
/// # Ok::<(), queuescope_sim::workload::SizesError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes(Kind);

/// In bytes; all values are valid.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Constant(f64),
    /// Whole numbers from the first to the second.
    Uniform(f64, f64),
    Exponential(f64),
    Pareto {
        shape: f64,
        least: f64,
        most: f64,
    },
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    Empirical(Empirical),
}

/// Why a distribution of sizes is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizesError {
    /// A flow has at least a byte.
    #[error("a flow cannot have 0 bytes: use at least 1")]
    Empty,
    /// A range that ends before it starts.
    #[error("sizes from {least} to {most} bytes are not a range: the second number must not be less than the first")]
    Range {
        /// The lower end in bytes.
        least: u64,
        /// The upper end in bytes.
        most: u64,
    },
    /// A parameter out of its bounds.
    #[error("{what} of {value} is impossible: {why}")]
    Parameter {
        /// The name of the parameter.
        what: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        why: &'static str,
    },
    /// A line of a file of points.
    #[error("line {line}: {why}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A point.
    #[error("point {number}: {why}")]
    Point {
        /// The number of the point, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The points together.
    #[error("the points are not a distribution: {0}")]
    Points(String),
}

/// Web search: the flows of a production cluster of 6000 servers (Alizadeh et al., "Data Center TCP", SIGCOMM 2010,
/// figure 4), by twelve points as they were read off the curve for later work (bytes, percent at or below).
const WEB_SEARCH: [(f64, f64); 12] = [
    (0.0, 0.0),
    (10e3, 15.0),
    (20e3, 20.0),
    (30e3, 30.0),
    (50e3, 40.0),
    (80e3, 53.0),
    (200e3, 60.0),
    (1e6, 70.0),
    (2e6, 80.0),
    (5e6, 90.0),
    (10e6, 97.0),
    (30e6, 100.0),
];

/// Data mining: the flows of a cluster of 1500 servers (Greenberg et al., "VL2", SIGCOMM 2009, figure 2), by thirteen points.
const DATA_MINING: [(f64, f64); 13] = [
    (0.0, 0.0),
    (180.0, 10.0),
    (216.0, 20.0),
    (560.0, 30.0),
    (900.0, 40.0),
    (1100.0, 50.0),
    (1870.0, 60.0),
    (3160.0, 70.0),
    (10e3, 80.0),
    (400e3, 90.0),
    (3.16e6, 95.0),
    (100e6, 98.0),
    (1e9, 100.0),
];

impl Sizes {
    /// The names of published distributions; see [`named`](Self::named).
    pub const NAMES: [&'static str; 3] = ["web-search", "data-mining", "web-rack"];

    /// A published distribution, by its name:
    ///
    /// - `web-search`: DCTCP's, by straight lines between twelve points; mean 1.711 MB, median 73 kB;
    /// - `data-mining`: VL2's, by straight lines between thirteen points; mean 12.66 MB, median 1.1 kB;
    /// - `web-rack`: a web rack of a data centre, as ConQuest (section 5.1) states it: mean 38.8 kB, median 1.44 kB.
    ///   The curve behind these two is not published; this is the lognormal that has both (mu 7.2724, sigma 2.5667).
    pub fn named(name: &str) -> Option<Self> {
        let of_percent = |points: &[(f64, f64)]| {
            let points: Vec<_> = points.iter().map(|(bytes, percent)| (*bytes, percent / 100.0)).collect();
            Empirical::new(&points, Interpolation::Linear).ok().map(Self::empirical)
        };
        match name {
            "web-search" => of_percent(&WEB_SEARCH),
            "data-mining" => of_percent(&DATA_MINING),
            "web-rack" => Self::lognormal_with(1440.0, 38_800.0).ok(),
            _ => None,
        }
    }

    /// The points of a distribution that was published as points, by its name.
    pub fn named_points(name: &str) -> Option<Empirical> {
        match Self::named(name)?.0 {
            Kind::Empirical(points) => Some(points),
            _ => None,
        }
    }

    /// All flows have the same size.
    ///
    /// # Errors
    /// Fails for 0 bytes.
    pub fn constant(bytes: ByteCount) -> Result<Self, SizesError> {
        if bytes.0 == 0 { Err(SizesError::Empty) } else { Ok(Self(Kind::Constant(bytes.0 as f64))) }
    }

    /// Each number of bytes from `least` to `most`, both included, is equally likely.
    ///
    /// # Errors
    /// Fails if the range is empty, or includes 0 bytes.
    pub fn uniform(least: ByteCount, most: ByteCount) -> Result<Self, SizesError> {
        range(least, most)?;
        Ok(Self(Kind::Uniform(least.0 as f64, most.0 as f64)))
    }

    /// Exponential.
    ///
    /// # Errors
    /// Fails for a mean of 0 bytes.
    pub fn exponential(mean: ByteCount) -> Result<Self, SizesError> {
        if mean.0 == 0 { Err(SizesError::Empty) } else { Ok(Self(Kind::Exponential(mean.0 as f64))) }
    }

    /// Bounded Pareto: the share above x bytes falls as x^-shape, and no flow is smaller than `least` or larger
    /// than `most`. A shape below 2 is a heavy tail; 1.2 is common for files.
    ///
    /// # Errors
    /// Fails if the shape is not above 0 and at most 100, or if the bounds are not a valid range.
    pub fn pareto(shape: f64, least: ByteCount, most: ByteCount) -> Result<Self, SizesError> {
        range(least, most)?;
        if !(shape > 0.0 && shape <= 100.0) {
            let why = "use a number above 0 and up to 100, such as 1.2";
            return Err(SizesError::Parameter { what: "a shape", value: shape.to_string(), why });
        }
        Ok(Self(Kind::Pareto { shape, least: least.0 as f64, most: most.0 as f64 }))
    }

    /// Lognormal: the natural logarithm of the bytes is normal with mean `mu` and standard deviation `sigma`.
    ///
    /// # Errors
    /// Fails if the mean exceeds 2^60 bytes, or if sigma is out of its bounds.
    pub fn lognormal(mu: f64, sigma: f64) -> Result<Self, SizesError> {
        let parameter = |what, value: f64, why| Err(SizesError::Parameter { what, value: value.to_string(), why });
        if !(0.0..=8.0).contains(&sigma) {
            return parameter("a sigma", sigma, "use a number from 0 to 8");
        }
        if !(mu >= 0.0 && mu + 0.5 * sigma * sigma <= 41.5) {
            return parameter("a mu", mu, "the median must be at least a byte, and the mean below 2^60 bytes");
        }
        Ok(Self(Kind::Lognormal { mu, sigma }))
    }

    /// The lognormal distribution with this median and mean, in bytes: mu is ln median, sigma is sqrt(2 ln(mean /
    /// median)).
    ///
    /// # Errors
    /// Fails if the mean is below the median, or as [`lognormal`](Self::lognormal).
    pub fn lognormal_with(median: f64, mean: f64) -> Result<Self, SizesError> {
        if !(median >= 1.0 && mean >= median) {
            let why = "it must be at least the median, and that at least 1 byte";
            return Err(SizesError::Parameter { what: "a mean", value: mean.to_string(), why });
        }
        Self::lognormal(log(median), sqrt(2.0 * log(mean / median)))
    }

    /// Given by points.
    pub fn empirical(points: Empirical) -> Self {
        Self(Kind::Empirical(points))
    }

    /// The mean in bytes. Exact before sizes are rounded to whole bytes and raised to at least one, which changes it by
    /// less than a byte.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Kind::Constant(bytes) => *bytes,
            Kind::Uniform(least, most) => 0.5 * (least + most),
            Kind::Exponential(mean) => *mean,
            Kind::Pareto { shape, least, most } => {
                // Sums with opposite signs would lose all digits if the shape is near 1.
                let width = log(most / least);
                least * decay((shape - 1.0) * width) / decay(shape * width)
            }
            Kind::Lognormal { mu, sigma } => exp(mu + 0.5 * sigma * sigma),
            Kind::Empirical(points) => points.mean(),
        }
    }

    /// The size in bytes that a share of flows (above 0 and below 1) does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        match &self.0 {
            Kind::Constant(bytes) => *bytes,
            Kind::Uniform(least, most) => least + (share * (most - least + 1.0)).floor(),
            Kind::Exponential(mean) => -mean * libm::log1p(-share),
            Kind::Pareto { shape, least, most } => {
                // The share above `most` without that bound.
                let beyond = exp(-shape * log(most / least));
                (least * exp(-libm::log1p(-share * (1.0 - beyond)) / shape)).min(*most)
            }
            Kind::Lognormal { mu, sigma } => exp(mu + sigma * normal::quantile(share)),
            Kind::Empirical(points) => points.quantile(share),
        }
    }

    /// The share of flows of at most this many bytes.
    pub fn cumulative(&self, bytes: f64) -> f64 {
        match &self.0 {
            Kind::Constant(all) => f64::from(u8::from(bytes >= *all)),
            Kind::Uniform(least, most) => ((bytes.floor() - least + 1.0) / (most - least + 1.0)).clamp(0.0, 1.0),
            Kind::Exponential(mean) => -expm1(-bytes.max(0.0) / mean),
            Kind::Pareto { least, .. } if bytes < *least => 0.0,
            Kind::Pareto { most, .. } if bytes >= *most => 1.0,
            Kind::Pareto { shape, least, most } => {
                expm1(-shape * log(bytes / least)) / expm1(-shape * log(most / least))
            }
            Kind::Lognormal { .. } if bytes <= 0.0 => 0.0,
            Kind::Lognormal { mu, sigma } if *sigma == 0.0 => f64::from(u8::from(log(bytes) >= *mu)),
            Kind::Lognormal { mu, sigma } => normal::cumulative((log(bytes) - mu) / sigma),
            Kind::Empirical(points) => points.cumulative(bytes),
        }
    }

    /// The size of one flow: at least a byte.
    pub fn sample(&self, random: &mut Random) -> ByteCount {
        // The cast saturates at the largest value.
        ByteCount(self.quantile(random.open()).round().max(1.0) as u64)
    }
}

/// `(1 - e^-t) / t`, which is 1 at 0.
fn decay(t: f64) -> f64 {
    if t == 0.0 { 1.0 } else { -expm1(-t) / t }
}

fn range(least: ByteCount, most: ByteCount) -> Result<(), SizesError> {
    match (least.0, most.0) {
        (0, _) => Err(SizesError::Empty),
        (least, most) if most < least => Err(SizesError::Range { least, most }),
        _ => Ok(()),
    }
}
