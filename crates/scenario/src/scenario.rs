//! The scenario: all that a run depends on.

use crate::check::check;
use crate::describe;
use crate::dom::Node;
use crate::explain;
use crate::keys::{Keys, Table, fields};
use crate::link::{Access, Link, ms};
use crate::observe::{Meter, Record};
use crate::params::of_profile;
use crate::profile::Profile;
use crate::read::{Findings, read_table};
use crate::set::Override;
use crate::sweep::{self, Sweep};
use crate::topology::{Topology, Wire};
use crate::traffic::{FlowGroup, Setting};
use crate::workload::Workload;
use queuescope_tcp::TcpParams;
use queuescope_text::{Place, Problem, Source, TextError};
use queuescope_wire::Nanos;

/// All that a run depends on. Its values are within their bounds and fit each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The format of the file: [`FORMAT`].
    pub format: u64,
    /// What reports call it.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// What all that is random follows from.
    pub seed: u64,
    /// How long it is simulated.
    pub duration: Nanos,
    /// What passes before this does not count in summaries.
    pub warmup: Nanos,
    /// Whose version of TCP hosts have that do not say.
    pub profile: Profile,
    /// The sender and receiver of hosts that do not say.
    pub stack: TcpParams,
    /// Which switches there are.
    pub topology: Topology,
    /// The bottleneck; of a graph, what its links have that they do not say.
    pub link: Link,
    /// The links of hosts.
    pub access: Access,
    /// The links of a graph; see [`Network`](crate::Network) for those of any topology.
    pub wires: Vec<Wire>,
    /// Flows that are there.
    pub flows: Vec<FlowGroup>,
    /// Flows that come and go.
    pub workloads: Vec<Workload>,
    /// Who watches which link.
    pub meters: Vec<Meter>,
    /// What is recorded.
    pub record: Record,
    /// Which variants are to be run.
    pub sweep: Sweep,
}

fields!(tables: Scenario; choices:);

/// The format of scenario files. It grows when a key gets another name or meaning; new keys do not change it. A file
/// without `format` has format 1.
pub const FORMAT: u64 = 1;

/// No scenario is longer by far.
const LARGEST_FILE: usize = 1 << 20;

impl Scenario {
    /// Reads a scenario file; `name` is what messages call it. Overrides are made in order, before it is read.
    ///
    /// # Errors
    /// All that is wrong with the file and the overrides, as far as one problem does not hide another.
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

    /// The same for a file whose bytes may not be text.
    ///
    /// # Errors
    /// As [`Self::parse`]; and where the file is not UTF-8.
    pub fn parse_bytes(name: &str, bytes: &[u8], overrides: &[Override]) -> Result<Self, TextError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(name, text, overrides),
            Err(error) => {
                let start = error.valid_up_to();
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LARGEST_FILE)]).into_owned();
                // What stands before the place is text, so it is as long there.
                let place = Place { source: 0, span: start..start + '\u{fffd}'.len_utf8() };
                let problem = Problem::new("the file is not UTF-8 text")
                    .at(place, format!("byte {start} (0x{:02x}) begins no character", bytes.get(start).unwrap_or(&0)))
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
        // What follows from a broken line would be told beside it.
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

    /// The scenario with all that it left to defaults, as TOML that reads back as the same.
    pub fn explain(&self) -> String {
        explain::document(self)
    }

    /// The JSON schema of scenario files, for editors.
    pub fn schema() -> serde_json::Value {
        describe::schema(&describe::table_info(&Self::fresh()), "queuescope scenario")
    }

    /// All keys with their values, bounds and defaults, in Markdown.
    pub fn reference() -> String {
        describe::reference(&describe::table_info(&Self::fresh()))
    }

    /// The tables that have a key of this name, by their headers; those nearest to the top, and few.
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
            stack: of_profile(Profile::Linux),
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

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("format", &mut self.format, "Version of the format of this file.");
        keys.ensure("format", self.format == FORMAT, || {
            let label = format!("format {}, and this version of queuescope reads format {FORMAT}", self.format);
            (label, "use a newer version of queuescope".to_owned())
        });
        keys.key("name", &mut self.name, "What reports call the scenario.");
        keys.key("about", &mut self.about, "What it shows.");
        keys.within("seed", &mut self.seed, 0..=i64::MAX as u64, "What all that is random follows from.");
        keys.within("duration", &mut self.duration, Nanos(1)..=ms(7 * 86_400_000), "How long it is simulated.");
        keys.key("warmup", &mut self.warmup, "What passes before this does not count in summaries.");
        keys.ensure("warmup", self.warmup < self.duration, || {
            ("nothing is left after the warm-up".to_owned(), format!("`duration` is {}", self.duration))
        });
        keys.key("profile", &mut self.profile, "Whose version of TCP hosts have that do not say.");
        keys.key("topology", &mut self.topology, "Which switches there are, and which links between them.");
        keys.key(
            "link",
            &mut self.link,
            "The bottleneck: the link of a dumbbell, each link of a parking lot; of a graph, what its links have that they do \
             not say.",
        );
        let stack = of_profile(self.profile);
        keys.inherited("stack", &mut self.stack, &stack, "The TCP of hosts; what is not said is as in `profile`.");
        keys.key("access", &mut self.access, "The links between hosts and switches.");
        let link = self.link.clone();
        keys.list(
            "wires",
            &mut self.wires,
            |_| Wire::like(&link),
            true,
            "The links of a graph, with their queues at `from`. What is not said is as in `[link]`.",
        );
        let (from, to) = self.topology.ends().unwrap_or_default();
        let setting = Setting { profile: self.profile, stack: self.stack, from, to };
        keys.list(
            "flows",
            &mut self.flows,
            |index| FlowGroup::fresh_at(index, &setting),
            false,
            "A group of flows that are alike, each between two hosts of its own.",
        );
        keys.list(
            "workloads",
            &mut self.workloads,
            |index| Workload::fresh_at(index, &setting),
            false,
            "Flows that come and go.",
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
            "Who watches a link for bursts and the flows that fill its queue.",
        );
        keys.key("record", &mut self.record, "What is recorded beside the summary.");
        keys.key(
            "sweep",
            &mut self.sweep,
            "Variants to run: for a path of keys a list of values, as `\"link.rate\" = [\"10mbps\", \"100mbps\"]`; each \
             combination of all lists is a run.",
        );
    }
}
