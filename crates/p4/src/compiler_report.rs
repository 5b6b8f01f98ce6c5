//! What the compiler for Tofino reports of a program that it compiled.
//!
//! p4c writes `resources.json` and `metrics.json` into the folder `pipe/logs` of its output. Their formats are part of its open source.

use crate::Used;
use serde::Deserialize;
use serde::de::IgnoredAny;

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
    /// Instructions: what actions do.
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
    /// Fails if one of them is not in the known format.
    pub fn from_json(resources: &str, metrics: &str) -> serde_json::Result<Self> {
        let resources: Resources = serde_json::from_str(resources)?;
        let metrics: Metrics = serde_json::from_str(metrics)?;
        let mut stages: Vec<CompiledStage> = Vec::new();
        for stage in resources.resources.mau.mau_stages {
            if stages.len() <= stage.stage_number {
                stages.resize_with(stage.stage_number + 1, CompiledStage::default);
            }
            if let Some(place) = stages.get_mut(stage.stage_number) {
                *place = stage.compiled();
            }
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
        Ok(Self { program: metrics.program_name, compiler: metrics.compiler_version, stages, containers })
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
    stage_number: usize,
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
    instructions: Entries,
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
            },
            hash_units: count(&self.hash_distribution_units.units),
            gateways: count(&self.gateways.gateways),
            instructions: count(&self.vliw.instructions),
        }
    }
}

#[derive(Deserialize)]
struct Metrics {
    program_name: String,
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
