//! Explains a query to people.

use super::plan::{AccessPath, Plan};
use crate::derive::{BLOCK, CHUNK};
use queuescope_wire::grouped;
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
        /// All whole chunks.
        chunks: u64,
    },
    /// A term through indexes of these attributes; the first one leaves the fewest records, about `about`.
    Index {
        /// Names of the attributes.
        attributes: Vec<String>,
        /// Records that the first index leaves, approximately.
        about: u64,
        /// Blocks that have all these indexes.
        blocks: u64,
    },
    /// Every record is examined.
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
        let records = view.tail() - view.first();
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
                let chunks = records / CHUNK;
                let first = view.first() / CHUNK;
                let known = (first..first + chunks).filter(|chunk| state.knows(*chunk)).count() as u64;
                steps.push(Step::Filter { known, chunks });
            }
            AccessPath::Scan(_) => steps.push(Step::Scan { records }),
            AccessPath::Indexes { terms, .. } => {
                let whole = (view.first() / BLOCK) as usize..(view.tail() / BLOCK) as usize;
                let mut scanned = records % BLOCK;
                for term in terms {
                    let mut used = Vec::new();
                    for (index, ranges) in &term.indexes {
                        let blocks = whole.clone().filter_map(|block| index.blocks.look(block, Arc::clone));
                        let of_block = |sorted: &crate::derive::Sorted| {
                            ranges.iter().map(|range| sorted.about(range)).sum::<usize>()
                        };
                        let (about, blocks) =
                            blocks.fold((0, 0u64), |(sum, count), sorted| (sum + of_block(&sorted) as u64, count + 1));
                        used.push((about, name(index.attribute), blocks));
                    }
                    used.sort();
                    let blocks = used.iter().map(|(.., blocks)| *blocks).min().unwrap_or(0);
                    scanned = scanned.max(records - blocks * BLOCK);
                    let about = used.first().map_or(0, |(about, ..)| *about);
                    steps.push(Step::Index {
                        attributes: used.into_iter().map(|(_, name, _)| name).collect(),
                        about,
                        blocks,
                    });
                }
                if scanned > 0 {
                    steps.push(Step::Scan { records: scanned });
                }
            }
        }
        steps.extend(self.then.iter().map(|(_, dnf)| Step::Test { terms: dnf.terms().len() }));
        Explained { steps, records }
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
        write!(f, "; of {} records", grouped(self.records))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "all records"),
            Self::Filter { known, chunks } if known == chunks => write!(f, "the matches of a filter of the log"),
            Self::Filter { known, chunks } => {
                write!(
                    f,
                    "the matches of a filter of the log, known of {} of {} chunks",
                    grouped(*known),
                    grouped(*chunks)
                )
            }
            Self::Index { attributes, about, blocks } => {
                let (first, others) =
                    attributes.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
                write!(f, "the index of {first}, about {} records in {} blocks", grouped(*about), grouped(*blocks))?;
                if !others.is_empty() {
                    write!(f, ", where it helps also of {}", others.join(", "))?;
                }
                Ok(())
            }
            Self::Scan { records } => write!(f, "a look at {} records", grouped(*records)),
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
