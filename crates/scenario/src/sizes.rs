//! The sizes of flows.

use crate::describe::ValueKind;
use crate::dom::{Node, TomlValue};
use crate::explain::Written;
use crate::keys::{Field, KeyVisitor, Table};
use crate::read::{Findings, shortened};
use queuescope_text::Problem;
use queuescope_text::did_you_mean;
use queuescope_wire::ByteCount;

/// The distribution of the sizes of flows.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All flows have this size.
    Fixed(ByteCount),
    /// A well-known distribution.
    Named(NamedSizes),
    /// Points of a cumulative distribution, with linear interpolation: bytes, and the share of flows that are at most
    /// that large. Both increase; the last share is 1.
    Points(Vec<(ByteCount, f64)>),
    /// A lognormal distribution.
    Lognormal(Lognormal),
}

/// Well-known distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedSizes {
    /// A web search cluster (Alizadeh et al., DCTCP, SIGCOMM 2010).
    WebSearch,
    /// A data mining cluster (Greenberg et al., VL2, SIGCOMM 2009).
    DataMining,
    /// A rack of web servers: lognormal, with the mean and median of Chen et al. (ConQuest, CoNEXT 2019).
    WebRack,
}

/// A lognormal distribution by its mean and median, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lognormal {
    /// The mean.
    pub mean: ByteCount,
    /// The median; below the mean.
    pub median: ByteCount,
}

impl NamedSizes {
    /// All of them.
    pub const ALL: &[Self] = &[Self::WebSearch, Self::DataMining, Self::WebRack];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web-search",
            Self::DataMining => "data-mining",
            Self::WebRack => "web-rack",
        }
    }
}

impl Sizes {
    pub(crate) fn fresh() -> Self {
        Self::Named(NamedSizes::WebSearch)
    }
}

impl Table for Lognormal {
    fn fresh() -> Self {
        Self { mean: ByteCount(38_800), median: ByteCount(1_440) }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("mean", &mut self.mean, ByteCount(1)..=ByteCount(1 << 40), "The mean of a lognormal distribution.");
        keys.required("mean");
        keys.within("median", &mut self.median, ByteCount(1)..=ByteCount(1 << 40), "Its median.");
        keys.required("median");
        keys.ensure("median", self.median < self.mean, || {
            (
                "the median is not below the mean".to_owned(),
                "the median of a lognormal distribution is below its mean".to_owned(),
            )
        });
    }
}

const HELP: &str = "write a size as \"100kB\", a name, points as [[\"10kB\", 0.5], [\"1MB\", 1.0]], or \
                    { mean = \"38.8kB\", median = \"1.44kB\" }";

impl Field for Sizes {
    fn blank() -> Self {
        Self::fresh()
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        match &node.value {
            TomlValue::Text(text) if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                let mut size = ByteCount(1);
                size.read(node, findings);
                if size == ByteCount(0) {
                    findings
                        .problem(|| Problem::new("a flow cannot have 0 bytes").at(node.place.clone(), "").help(HELP));
                } else {
                    *self = Self::Fixed(size);
                }
            }
            TomlValue::Text(text) => match NamedSizes::ALL.iter().find(|named| named.name() == text) {
                Some(named) => *self = Self::Named(*named),
                None => findings.problem(|| {
                    let names = NamedSizes::ALL.iter().map(|named| named.name());
                    let near = did_you_mean(text, names.clone()).map(|near| format!("{near} ")).unwrap_or_default();
                    Problem::new(format!("no distribution of sizes is named '{}'", shortened(text)))
                        .at(node.place.clone(), "unknown name")
                        .help(format!("{near}there are {}; or {HELP}", names.collect::<Vec<_>>().join(", ")))
                }),
            },
            TomlValue::Table(_) => {
                let mut lognormal = Lognormal::fresh();
                crate::read::read_table(&mut lognormal, node, findings);
                *self = Self::Lognormal(lognormal);
            }
            TomlValue::List(items) => {
                if let Some(points) = points(node, items, findings) {
                    *self = Self::Points(points);
                }
            }
            _ => findings.problem(|| {
                Problem::new("this is not a distribution of sizes")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help(HELP)
            }),
        }
    }

    fn write(&self) -> Written {
        let size = |size: &ByteCount| size.write().inline();
        Written::Inline(match self {
            Self::Fixed(fixed) => size(fixed),
            Self::Named(named) => crate::explain::quoted(named.name()),
            Self::Points(points) => {
                let points: Vec<_> =
                    points.iter().map(|(bytes, share)| format!("[{}, {share:?}]", size(bytes))).collect();
                format!("[{}]", points.join(", "))
            }
            Self::Lognormal(it) => format!("{{ mean = {}, median = {} }}", size(&it.mean), size(&it.median)),
        })
    }

    fn kind() -> ValueKind {
        let names = ValueKind::Text {
            what: "a size or a name",
            examples: &["web-search", "data-mining", "web-rack", "100kB"],
            pattern: Some(r"^(web-search|data-mining|web-rack|\s*[0-9._]+\s*[A-Za-z]+\s*)$"),
        };
        let point = ValueKind::List(Box::new(ValueKind::AnyOf(vec![ByteCount::kind(), ValueKind::Number])));
        ValueKind::AnyOf(vec![names, ValueKind::List(Box::new(point)), crate::describe::table_kind::<Lognormal>()])
    }
}

/// Reads the points of a cumulative distribution, or reports what is wrong with them.
fn points(node: &Node, items: &[Node], findings: &mut Findings) -> Option<Vec<(ByteCount, f64)>> {
    let mut points: Vec<(ByteCount, f64)> = Vec::with_capacity(items.len());
    for item in items {
        let pair = match &item.value {
            TomlValue::List(pair) => pair.as_slice(),
            _ => &[],
        };
        let [size, share] = pair else {
            findings.problem(|| {
                Problem::new("a point is a size and a share").at(item.place.clone(), "not a pair").help(HELP)
            });
            return None;
        };
        let before = findings.count();
        let mut point = (ByteCount(0), 0.0);
        point.0.read(size, findings);
        point.1.read(share, findings);
        if findings.count() > before {
            return None;
        }
        let last = points.last().copied();
        let wrong = match last {
            Some((bytes, _)) if point.0 <= bytes => Some((size, "sizes must increase")),
            Some((_, before)) if point.1 <= before => Some((share, "shares must increase")),
            _ if !(0.0..=1.0).contains(&point.1) => Some((share, "a share is from 0 to 1")),
            _ => None,
        };
        if let Some((node, why)) = wrong {
            findings
                .problem(|| Problem::new("the distribution does not increase").at(node.place.clone(), why).help(HELP));
            return None;
        }
        points.push(point);
    }
    let (&(largest, last), place) = match (points.last(), items.last()) {
        (Some(last), Some(item)) => (last, &item.place),
        _ => (&(ByteCount(0), 0.0), &node.place),
    };
    if last != 1.0 || largest == ByteCount(0) {
        findings.problem(|| {
            Problem::new("the distribution is not complete").at(place.clone(), "the last share must be 1").help(HELP)
        });
        return None;
    }
    Some(points)
}
