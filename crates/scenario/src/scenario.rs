//! The scenario: everything that the result of a run depends on.

use crate::check::check;
use crate::describe;
use crate::dom::Node;
use crate::explain;
use crate::keys::{KeyVisitor, Table, fields};
use crate::link::{Access, Link, ms};
use crate::observe::{Meter, Record};
use crate::params::tcp_of_profile;
use crate::profile::Profile;
use crate::read::{Findings, read_table};
use crate::set::Override;
use crate::sweep::{self, Sweep};
use crate::topology::{Topology, Wire};
use crate::traffic::{FlowGroup, TrafficDefaults};
use crate::workload::Workload;
use queuescope_tcp::TcpParams;
use queuescope_text::{Place, Problem, Source, TextError};
use queuescope_wire::Nanos;

/// Everything that the result of a run depends on. Values are within their bounds and fit each other.
///
/// ```
/// use queuescope_scenario::{Override, Scenario};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bufferbloat.toml");
/// let text = std::fs::read_to_string(path)?;
/// let scenario = Scenario::parse("bufferbloat.toml", &text, &[Override::new("seed=7")])?;
/// assert_eq!(scenario.seed, 7);
///
/// let error = Scenario::parse("bufferbloat.toml", &text, &[Override::new("sed=7")]).unwrap_err();
/// println!("{error}"); // shows the override, and the nearest key
/// assert!(error.to_string().contains("seed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The format of the file: 1.
    pub format: u64,
    /// The name in reports.
    pub name: String,
    /// What the scenario shows.
    pub about: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The simulated time.
    pub duration: Nanos,
    /// The time at the start that summaries leave out.
    pub warmup: Nanos,
    /// The TCP implementation of hosts that do not choose one.
    pub profile: Profile,
    /// The TCP parameters of hosts that do not set them.
    pub stack: TcpParams,
    /// The kind of network.
    pub topology: Topology,
    /// The bottleneck. For a graph, the defaults of its links.
    pub link: Link,
    /// The links between hosts and switches.
    pub access: Access,
    /// The links of a graph; see [`Network`](crate::Network) for those of any topology.
    pub wires: Vec<Wire>,
    /// Groups of flows with fixed start times.
    pub flows: Vec<FlowGroup>,
    /// Flows that arrive over time.
    pub workloads: Vec<Workload>,
    /// The meters of queues.
    pub meters: Vec<Meter>,
    /// Outputs in addition to the summary.
    pub record: Record,
    /// The variants to run.
    pub sweep: Sweep,
}

fields!(tables: Scenario; choices:);

/// The format of scenario files. It grows when a key gets another name or meaning; new keys do not change it. A file
/// without `format` has format 1.
const FORMAT: u64 = 1;

/// The largest file in bytes; real scenarios are much smaller.
const LARGEST_FILE: usize = 1 << 20;

impl Scenario {
    /// Reads a scenario file. `name` is its name in messages. Overrides are applied in order, before reading.
    ///
    /// # Errors
    /// Returns all problems of the file and the overrides, except those that follow from others.
    pub fn parse(name: &str, text: &str, overrides: &[Override]) -> Result<Self, TextError> {
        let mut sources = vec![Source { name: name.to_owned(), text: text.to_owned() }];
        sources.extend(overrides.iter().map(|one| Source { name: one.option().to_owned(), text: one.text.clone() }));
        let mut findings = Findings::new(Self::tables_with);
        let scenario = Self::read(text, overrides, &mut findings);
        if findings.problems.is_empty() {
            return Ok(scenario);
        }
        let Findings { mut problems, more, .. } = findings;
        problems.sort_by_key(|problem| problem.places().next().map(|place| (place.source, place.span.start)));
        Err(TextError::of_sources(sources, problems, more))
    }

    /// Reads a scenario file from bytes, as [`Self::parse`] does from text.
    ///
    /// # Errors
    /// As [`Self::parse`]; also fails if the file is not UTF-8.
    pub fn parse_bytes(name: &str, bytes: &[u8], overrides: &[Override]) -> Result<Self, TextError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(name, text, overrides),
            Err(error) => {
                let start = error.valid_up_to();
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LARGEST_FILE)]).into_owned();
                // The text before the place is valid UTF-8, so the offset is the same in the lossy text.
                let place = Place { source: 0, span: start..start + '\u{fffd}'.len_utf8() };
                let problem = Problem::new("the file is not UTF-8 text")
                    .at(
                        place,
                        format!("byte {start} (0x{:02x}) does not start a character", bytes.get(start).unwrap_or(&0)),
                    )
                    .help("save it as UTF-8");
                Err(TextError::new(name, &text, vec![problem]))
            }
        }
    }

    fn read(text: &str, overrides: &[Override], findings: &mut Findings) -> Self {
        let mut scenario = Self::fresh();
        if text.len() > LARGEST_FILE {
            let problem = || {
                let place = Place { source: 0, span: 0..0 };
                Problem::new("the file is too large to be a scenario").at(place, format!("{} bytes", text.len()))
            };
            findings.problem(problem);
            return scenario;
        }
        let mut syntax = Vec::new();
        let mut root = Node::document(text, &mut syntax);
        for problem in syntax {
            findings.problem(|| problem);
        }
        // A syntax error would cause further, misleading problems.
        if !findings.problems.is_empty() {
            return scenario;
        }
        Override::apply_all(overrides, &mut root, findings);
        read_table(&mut scenario, &root, findings);
        check(&scenario, findings);
        if findings.problems.is_empty() {
            sweep::check(&scenario.sweep, &root, findings);
        }
        scenario
    }

    /// Writes the scenario with all defaults, as TOML that reads back as the same scenario.
    pub fn explain(&self) -> String {
        explain::document(self, true)
    }

    /// The values of the scenario with all defaults, as TOML without descriptions. Equal scenarios have the same text,
    /// also in versions that describe keys in other words, so a digest of it identifies a scenario.
    pub fn canonical(&self) -> String {
        explain::document(self, false)
    }

    /// The JSON schema of scenario files, for editors.
    pub fn schema() -> serde_json::Value {
        describe::schema(&describe::table_info(&Self::fresh()), "queuescope scenario")
    }

    /// The reference of all keys with their values, bounds and defaults, in Markdown.
    pub fn reference() -> String {
        describe::reference(&describe::table_info(&Self::fresh()))
    }

    /// The headers of a few tables that have a key of this name, nearest to the top level first.
    fn tables_with(key: &str) -> Vec<String> {
        describe::tables_with(&describe::table_info(&Self::fresh()), key)
    }
}

impl Table for Scenario {
    fn fresh() -> Self {
        Self {
            format: FORMAT,
            name: String::new(),
            about: String::new(),
            seed: 1,
            duration: ms(10_000),
            warmup: Nanos::ZERO,
            profile: Profile::Linux,
            stack: tcp_of_profile(Profile::Linux),
            topology: Topology::Dumbbell,
            link: Link::fresh(),
            access: Access::fresh(),
            wires: Vec::new(),
            flows: Vec::new(),
            workloads: Vec::new(),
            meters: Vec::new(),
            record: Record::fresh(),
            sweep: Sweep::default(),
        }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("format", &mut self.format, "Version of the format of this file.");
        keys.ensure("format", self.format == FORMAT, || {
            let label = format!(
                "the scenario is of format {}, and this version of queuescope reads format {FORMAT}",
                self.format
            );
            (label, "use a newer version of queuescope".to_owned())
        });
        keys.key("name", &mut self.name, "The name in reports.");
        keys.key("about", &mut self.about, "What the scenario shows.");
        keys.within("seed", &mut self.seed, 0..=i64::MAX as u64, "The seed of all random numbers.");
        keys.within("duration", &mut self.duration, Nanos(1)..=ms(7 * 86_400_000), "The simulated time.");
        keys.key("warmup", &mut self.warmup, "The time at the start that summaries leave out.");
        keys.ensure("warmup", self.warmup < self.duration, || {
            ("the warm-up is not shorter than the scenario".to_owned(), format!("`duration` is {}", self.duration))
        });
        keys.key("profile", &mut self.profile, "The TCP implementation of hosts that do not choose one.");
        keys.key("topology", &mut self.topology, "The switches, and the links between them.");
        keys.key(
            "link",
            &mut self.link,
            "The bottleneck: the link of a dumbbell, or each link of a parking lot. For a graph, the defaults of its links.",
        );
        let stack = tcp_of_profile(self.profile);
        keys.inherited("stack", &mut self.stack, &stack, "The TCP of hosts. Defaults are those of `profile`.");
        keys.key("access", &mut self.access, "The links between hosts and switches.");
        let link = self.link.clone();
        keys.list(
            "wires",
            &mut self.wires,
            |_| Wire::like(&link),
            true,
            "The links of a graph, with their queues at `from`. Defaults are those of `[link]`.",
        );
        let (from, to) = self.topology.ends().unwrap_or_default();
        let setting = TrafficDefaults { profile: self.profile, stack: self.stack, from, to };
        keys.list(
            "flows",
            &mut self.flows,
            |index| FlowGroup::fresh_at(index, &setting),
            false,
            "A group of equal flows, each between its own two hosts.",
        );
        keys.list(
            "workloads",
            &mut self.workloads,
            |index| Workload::fresh_at(index, &setting),
            false,
            "Flows that arrive over time.",
        );
        let first = match self.topology {
            Topology::Dumbbell => "bottleneck".to_owned(),
            Topology::ParkingLot { .. } => "hop1".to_owned(),
            Topology::Graph => self.wires.first().map(|wire| wire.name.clone()).unwrap_or_default(),
        };
        keys.list(
            "meters",
            &mut self.meters,
            |_| Meter::on(&first),
            false,
            "A meter of a link's queue, which finds bursts and the flows that fill the queue.",
        );
        keys.key("record", &mut self.record, "Outputs in addition to the summary.");
        keys.key(
            "sweep",
            &mut self.sweep,
            "Variants to run. Each path of keys has a list of values, for example `\"link.rate\" = [\"10mbps\", \"100mbps\"]`. \
             Each combination of values is a run.",
        );
    }
}
