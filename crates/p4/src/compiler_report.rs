//! What the compiler for Tofino reports of a program that it compiled.
//!
//! p4c writes `resources.json` and `metrics.json` into the folder `pipe/logs` of its output. Their formats are part of its open source.

use crate::Used;
use serde::Deserialize;
use serde::de::{Error, IgnoredAny};

/// The resources that a compiled program takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerReport {
    /// The name of the program.
    pub program: String,
    /// The version of the compiler.
    pub compiler: String,
    /// The stages up to the last that has a table.
    pub stages: Vec<CompiledStage>,
    /// The containers of the packet header vector, by their width.
    pub containers: Vec<Containers>,
}

/// What one stage has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompiledStage {
    /// Stateful ALUs, tables, and blocks of memory.
    pub used: Used,
    /// Units that distribute hashes to the memory: for indexes of registers and hashes of the program.
    pub hash_units: u64,
    /// Gateways, which test conditions.
    pub gateways: u64,
    /// Words of instructions: what actions do.
    pub instructions: u64,
}

/// Containers of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Containers {
    /// The width in bits.
    pub bits: u64,
    /// How many hold something, and do not just pass it from the parser to the deparser.
    pub normal: u64,
    /// How many pass something from the parser to the deparser.
    pub tagalong: u64,
}

impl CompilerReport {
    /// Reads the contents of `resources.json` and `metrics.json`.
    ///
    /// # Errors
    /// Fails if one of them is not in the known format, or if they are of different runs of the compiler.
    pub fn from_json(resources: &str, metrics: &str) -> serde_json::Result<Self> {
        let resources: Resources = serde_json::from_str(resources)?;
        let metrics: Metrics = serde_json::from_str(metrics)?;
        if resources.run_id != metrics.run_id {
            let (one, other) = (resources.program_name, metrics.program_name);
            return Err(serde_json::Error::custom(format!("the logs are of different runs: of {one} and of {other}")));
        }
        let mut stages: Vec<CompiledStage> = Vec::new();
        for stage in resources.resources.mau.mau_stages {
            let number = usize::from(stage.stage_number);
            if stages.len() <= number {
                stages.resize_with(number + 1, CompiledStage::default);
            }
            stages[number] = stage.compiled();
        }
        let last = stages.iter().rposition(|stage| stage.used.tables > 0);
        stages.truncate(last.map_or(0, |last| last + 1));
        let Phv { normal, tagalong } = metrics.phv;
        let mut containers: Vec<Containers> = normal
            .iter()
            .map(|it| Containers { bits: it.bit_width, normal: it.containers_occupied, tagalong: 0 })
            .collect();
        for it in tagalong {
            match containers.iter_mut().find(|found| found.bits == it.bit_width) {
                Some(found) => found.tagalong = it.containers_occupied,
                None => {
                    containers.push(Containers { bits: it.bit_width, normal: 0, tagalong: it.containers_occupied });
                }
            }
        }
        containers.sort_by_key(|it| it.bits);
        let program = metrics.program_name;
        let program = program.strip_suffix(".p4").unwrap_or(&program).to_owned();
        Ok(Self { program, compiler: metrics.compiler_version, stages, containers })
    }

    /// The sums over all stages.
    pub fn total(&self) -> CompiledStage {
        self.stages.iter().fold(CompiledStage::default(), |sum, stage| CompiledStage {
            used: sum.used.plus(stage.used),
            hash_units: sum.hash_units + stage.hash_units,
            gateways: sum.gateways + stage.gateways,
            instructions: sum.instructions + stage.instructions,
        })
    }
}

#[derive(Deserialize)]
struct Resources {
    program_name: String,
    run_id: String,
    resources: OfChip,
}

#[derive(Deserialize)]
struct OfChip {
    mau: Mau,
}

#[derive(Deserialize)]
struct Mau {
    mau_stages: Vec<MauStage>,
}

#[derive(Deserialize)]
struct MauStage {
    stage_number: u8,
    rams: Rams,
    tcams: Tcams,
    meter_alus: MeterAlus,
    logical_tables: LogicalTables,
    hash_distribution_units: HashDistributionUnits,
    gateways: Gateways,
    vliw: Vliw,
}

/// The entries of a list; only their number matters.
type Entries = Vec<IgnoredAny>;

#[derive(Deserialize)]
struct Rams {
    srams: Entries,
}

#[derive(Deserialize)]
struct Tcams {
    tcams: Entries,
}

#[derive(Deserialize)]
struct MeterAlus {
    meters: Entries,
}

#[derive(Deserialize)]
struct LogicalTables {
    ids: Entries,
}

#[derive(Deserialize)]
struct HashDistributionUnits {
    units: Entries,
}

#[derive(Deserialize)]
struct Gateways {
    gateways: Entries,
}

#[derive(Deserialize)]
struct Vliw {
    instructions: Vec<Instruction>,
}

#[derive(Deserialize)]
struct Instruction {
    color_usages: Vec<InstructionPart>,
}

#[derive(Deserialize)]
struct InstructionPart {
    usages: Vec<InstructionUsage>,
}

#[derive(Deserialize)]
struct InstructionUsage {
    action_names: Entries,
}

impl Instruction {
    /// The actions that it has instructions of.
    fn actions(&self) -> u64 {
        let usages = self.color_usages.iter().flat_map(|part| &part.usages);
        usages.map(|usage| usage.action_names.len() as u64).sum()
    }
}

impl MauStage {
    fn compiled(&self) -> CompiledStage {
        let count = |entries: &Entries| entries.len() as u64;
        CompiledStage {
            used: Used {
                registers: count(&self.meter_alus.meters),
                tables: count(&self.logical_tables.ids),
                sram: count(&self.rams.srams),
                tcam: count(&self.tcams.tcams),
                actions: self.vliw.instructions.iter().map(Instruction::actions).sum(),
            },
            hash_units: count(&self.hash_distribution_units.units),
            gateways: count(&self.gateways.gateways),
            instructions: self.vliw.instructions.len() as u64,
        }
    }
}

#[derive(Deserialize)]
struct Metrics {
    program_name: String,
    run_id: String,
    compiler_version: String,
    phv: Phv,
}

#[derive(Deserialize)]
struct Phv {
    normal: Vec<PhvType>,
    #[serde(default)]
    tagalong: Vec<PhvType>,
}

#[derive(Deserialize)]
struct PhvType {
    bit_width: u64,
    containers_occupied: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage as the compiler describes it, with this many stateful ALUs, tables, and blocks of SRAM and TCAM.
    fn stage(number: usize, [registers, tables, srams, tcams]: [usize; 4]) -> String {
        let list = |count: usize| vec![r#"{"usages": []}"#; count].join(", ");
        let words = r#"{"color_usages": [{"color": 1, "usages": [{"action_names": ["a", "b"]}]}]}"#;
        let words = format!(r#"{{"size": 32, "instructions": [{}]}}"#, vec![words; tables].join(", "));
        let of = |name: &str, count: usize| format!(r#"{{"size": 16, "{name}": [{}]}}"#, list(count));
        format!(
            r#"{{"stage_number": {number}, "rams": {}, "tcams": {}, "meter_alus": {}, "logical_tables": {},
                "hash_distribution_units": {}, "gateways": {}, "vliw": {}, "map_rams": {{}}}}"#,
            of("srams", srams),
            of("tcams", tcams),
            of("meters", registers),
            of("ids", tables),
            of("units", registers),
            of("gateways", 1),
            words,
        )
    }

    fn resources(stages: &[String]) -> String {
        format!(
            r#"{{"program_name": "late.p4", "run_id": "1", "resources": {{"mau": {{"nStages": 12, "mau_stages": [{}]}}}}}}"#,
            stages.join(", ")
        )
    }

    const METRICS: &str = r#"{"program_name": "late.p4", "run_id": "1", "compiler_version": "9.13.4", "phv": {
        "normal": [{"bit_width": 32, "containers_occupied": 7}, {"bit_width": 8, "containers_occupied": 5}],
        "tagalong": [{"bit_width": 8, "containers_occupied": 2}, {"bit_width": 16, "containers_occupied": 3}]}}"#;

    #[test]
    fn stages_are_those_up_to_the_last_with_a_table() {
        let stages = [stage(1, [2, 3, 4, 0]), stage(0, [0, 1, 0, 6]), stage(2, [0; 4])];
        let report = CompilerReport::from_json(&resources(&stages), METRICS).expect("it is in the format");
        assert_eq!((report.program.as_str(), report.compiler.as_str()), ("late", "9.13.4"));
        let used: Vec<_> = report.stages.iter().map(|stage| stage.used).collect();
        let expected = [[0, 1, 0, 6], [2, 3, 4, 0]];
        // Two actions in each word.
        let of =
            |[registers, tables, sram, tcam]: [u64; 4]| Used { registers, tables, sram, tcam, actions: 2 * tables };
        assert_eq!(used, expected.map(of));
        let total = report.total();
        assert_eq!(total.used, Used { registers: 2, tables: 4, sram: 4, tcam: 6, actions: 8 });
        assert_eq!((total.hash_units, total.gateways, total.instructions), (2, 2, 4));
    }

    #[test]
    fn containers_of_both_kinds_are_together() {
        let report = CompilerReport::from_json(&resources(&[]), METRICS).expect("it is in the format");
        let found: Vec<_> = report.containers.iter().map(|it| (it.bits, it.normal, it.tagalong)).collect();
        assert_eq!(found, [(8, 5, 2), (16, 0, 3), (32, 7, 0)]);
        assert!(report.stages.is_empty());
    }

    #[test]
    fn logs_of_different_runs_are_not_read_together() {
        let other = METRICS.replace("late.p4", "other.p4").replace(r#""run_id": "1""#, r#""run_id": "2""#);
        let error = CompilerReport::from_json(&resources(&[]), &other).map_err(|error| error.to_string());
        assert_eq!(error, Err("the logs are of different runs: of late.p4 and of other.p4".to_owned()));
    }

    #[test]
    fn another_format_is_an_error() {
        for (resources, metrics) in [("{}", METRICS), (&*resources(&[]), "[]"), ("", METRICS)] {
            assert!(CompilerReport::from_json(resources, metrics).is_err());
        }
        // A stage number that would take all memory.
        let far = resources(&[stage(usize::MAX, [0; 4])]);
        assert!(CompilerReport::from_json(&far, METRICS).is_err());
    }
}
