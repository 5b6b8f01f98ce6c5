//! Explains a query to people.

use super::plan::{AccessPath, Plan};
use crate::derive::{BLOCK, CHUNK};
use queuescope_wire::grouped;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How a query finds its records.
///
/// ```
/// use queuescope_log::{Log, Memory, Options, Schema, Step, departure};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// log.append(&[0; 10 * departure::SIZE]);
/// let scope = log.scope();
/// let expression = scope.parse("dst_port == 443")?.dnf(&scope)?;
/// let snapshot = log.snapshot();
/// let explained = snapshot.query().matching(&expression).explain();
/// println!("{explained}");
/// assert_eq!(explained.records, 10);
/// assert!(matches!(explained.steps[0], Step::Scan { records: 10 }), "there is no index");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Records in the snapshot.
    pub records: u64,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Every record matches.
    All,
    /// The matches of a filter of the log; known for this many whole chunks.
    Filter {
        /// Chunks whose matches are known.
        known: u64,
        /// All whole chunks that are not outside the time range.
        chunks: u64,
    },
    /// A term through indexes of these attributes; the first one leaves the fewest records, about `about`.
    Index {
        /// Names of the attributes.
        attributes: Vec<String>,
        /// Records that the first index leaves, approximately.
        about: u64,
        /// Blocks that have all these indexes, and are not outside the time range.
        blocks: u64,
    },
    /// Every record is examined, of chunks that are not outside the time range.
    Scan {
        /// The number of records.
        records: u64,
    },
    /// Records that were found are tested again.
    Test {
        /// The number of terms to test at most.
        terms: usize,
    },
    /// Chunks outside the time range are skipped.
    Time {
        /// The attribute.
        attribute: String,
        /// Start, in nanoseconds.
        from: u64,
        /// End, in nanoseconds; not included.
        to: u64,
    },
}

impl Plan<'_> {
    /// The steps of the query.
    pub fn explain(&self) -> Explained {
        let view = self.reading.view();
        let chunks: Vec<_> = self.examined().collect();
        let examined: u64 = chunks.iter().map(|(_, records)| records).sum();
        let mut steps = Vec::new();
        let name = |id| self.schema.attribute(id).name.clone();
        if let Some(time) = &self.time {
            steps.push(Step::Time {
                attribute: name(time.attribute),
                from: time.from,
                to: time.last.saturating_add(1),
            });
        }
        match &self.way {
            AccessPath::All => steps.push(Step::All),
            AccessPath::Filter(state) => {
                let whole = || chunks.iter().filter(|(_, records)| *records == CHUNK);
                let known = whole().filter(|(chunk, _)| state.knows(*chunk)).count() as u64;
                steps.push(Step::Filter { known, chunks: whole().count() as u64 });
            }
            AccessPath::Scan(_) => steps.push(Step::Scan { records: examined }),
            AccessPath::Indexes { terms, .. } => {
                let mut blocks: BTreeMap<u64, u64> = BTreeMap::new();
                for (chunk, records) in &chunks {
                    *blocks.entry(chunk * CHUNK / BLOCK).or_default() += records;
                }
                // Only whole blocks have indexes.
                blocks.retain(|block, _| (block + 1) * BLOCK <= view.tail());
                let mut scanned = examined - blocks.values().sum::<u64>();
                for term in terms {
                    let mut used = Vec::new();
                    let mut indexed = blocks.clone();
                    for (index, ranges) in &term.indexes {
                        let look = |block: &u64| index.blocks.look(*block as usize, Arc::clone);
                        let about = |sorted: &crate::derive::Sorted| {
                            ranges.iter().map(|range| sorted.about(range)).sum::<usize>() as u64
                        };
                        let found = blocks.keys().filter_map(look);
                        used.push((found.map(|sorted| about(&sorted)).sum::<u64>(), name(index.attribute)));
                        indexed.retain(|block, _| look(block).is_some());
                    }
                    used.sort();
                    scanned = scanned.max(examined - indexed.values().sum::<u64>());
                    let about = used.first().map_or(0, |(about, _)| *about);
                    let attributes = used.into_iter().map(|(_, name)| name).collect();
                    steps.push(Step::Index { attributes, about, blocks: indexed.len() as u64 });
                }
                if scanned > 0 {
                    steps.push(Step::Scan { records: scanned });
                }
            }
        }
        steps.extend(self.then.iter().map(|(_, dnf)| Step::Test { terms: dnf.terms().len() }));
        Explained { steps, records: view.tail() - view.first() }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            step.fmt(f)?;
        }
        write!(f, "; of {}", counted(self.records, "record"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "all records"),
            Self::Filter { known, chunks } if known == chunks => write!(f, "the matches of a filter of the log"),
            Self::Filter { known, chunks } => {
                let (known, chunks) = (grouped(*known), counted(*chunks, "chunk"));
                write!(f, "the matches of a filter of the log, known of {known} of {chunks}")
            }
            Self::Index { attributes, about, blocks } => {
                let (first, others) =
                    attributes.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
                let (about, blocks) = (counted(*about, "record"), counted(*blocks, "block"));
                write!(f, "the index of {first}, about {about} in {blocks}")?;
                if !others.is_empty() {
                    write!(f, ", where it helps also of {}", others.join(", "))?;
                }
                Ok(())
            }
            Self::Scan { records } => write!(f, "a look at {}", counted(*records, "record")),
            Self::Test { terms: 1 } => write!(f, "a test of what was found"),
            Self::Test { terms } => write!(f, "a test of what was found, of {terms} terms"),
            Self::Time { attribute, from, to } => match (from, to) {
                (0, to) => write!(f, "only chunks with {attribute} before {to} ns"),
                (from, &u64::MAX) => write!(f, "only chunks with {attribute} from {from} ns on"),
                (from, to) => write!(f, "only chunks with {attribute} from {from} to {to} ns"),
            },
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}
