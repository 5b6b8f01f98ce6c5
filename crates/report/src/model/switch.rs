//! The fit of an algorithm on a switch.

use serde::{Deserialize, Serialize};

/// The fit of an algorithm on a switch: the verdicts, and the contents of each stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchFit {
    /// The algorithm.
    pub algorithm: String,
    /// The switch.
    pub target: String,
    /// Number of stages of the switch.
    pub target_stages: u64,
    /// `feasible`, `workaround` or `infeasible`: the worst verdict.
    pub grade: String,
    /// The verdicts, by aspect.
    pub aspects: Vec<SwitchAspect>,
    /// The resource that is exhausted, if it does not fit.
    #[serde(alias = "room")]
    pub exhausted: Option<String>,
    /// Why `p4 generate` writes no program for this switch, if that is so whatever the verdicts and the room: the program's registers do what the
    /// switch's cannot, or its compiler rejects the program. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The stages in the order of the pipeline. If the program does not fit: those that it would need. None if it
    /// cannot be placed.
    pub stages: Option<Vec<SwitchStage>>,
    /// The bits of the program's registers, by named part. Absent if it has no named parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub register_memory: Vec<SwitchMemory>,
}

/// What the compiler for Tofino gave a program, beside what the placer gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchCompiled {
    /// The name of the compiled program.
    pub program: String,
    /// The version of the compiler.
    pub compiler: String,
    /// The stages by the compiler.
    pub compiled: Vec<SwitchResources>,
    /// The stages by the placer. None if the program was not made by `p4 generate`, or cannot be placed.
    pub placed: Option<Vec<SwitchResources>>,
    /// Containers of the packet header vector, by width.
    pub containers: Vec<SwitchContainers>,
}

/// Resources of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchResources {
    /// Register accesses: stateful ALUs.
    pub registers: u64,
    /// Tables and actions.
    pub tables: u64,
    /// Blocks of static memory.
    pub sram: u64,
    /// Blocks of ternary memory.
    pub tcam: u64,
    /// Actions of tables.
    #[serde(default)]
    pub actions: u64,
    /// Hash distribution units. None for the placer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_units: Option<u64>,
    /// Gateways. None for the placer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateways: Option<u64>,
    /// Words of instructions, each of which has up to two actions. None for the placer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
}

/// Containers of one width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchContainers {
    /// The width in bits.
    pub bits: u64,
    /// How many hold what the pipeline works with.
    pub normal: u64,
    /// How many only carry something from the parser to the deparser.
    pub tagalong: u64,
}

/// A named part of a program's register memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchMemory {
    /// The part.
    pub part: String,
    /// Bits that the program needs. The words of the switch may be wider.
    pub bits: u64,
}

/// The verdict on one aspect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchAspect {
    /// `metric`, `reaction`, `backflow` or `memory`.
    pub aspect: String,
    /// The verdict on this aspect, as `grade` of the whole.
    pub grade: String,
    /// The reasons, a sentence each.
    pub reasons: Vec<String>,
}

/// The contents and resources of one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchStage {
    /// Register accesses.
    pub registers: u64,
    /// Tables.
    pub tables: u64,
    /// SRAM blocks.
    pub sram_blocks: u64,
    /// TCAM blocks.
    pub tcam_blocks: u64,
    /// The parts in the stage.
    pub placed: Vec<SwitchPlaced>,
}

/// A part of a program in a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchPlaced {
    /// `ingress` or `egress`.
    #[serde(alias = "half")]
    pub control: String,
    /// The part.
    pub name: String,
    /// Whether it began in an earlier stage.
    pub continued: bool,
}
