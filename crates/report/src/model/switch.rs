//! Whether an algorithm fits a switch.

use serde::{Deserialize, Serialize};

/// An algorithm on a switch: the verdicts, and what is in which stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchFit {
    /// The algorithm.
    pub algorithm: String,
    /// The switch.
    pub target: String,
    /// Stages that it has.
    pub target_stages: u64,
    /// `feasible`, `workaround` or `infeasible`: the worst of all verdicts.
    pub grade: String,
    /// The verdicts, by aspect.
    pub aspects: Vec<SwitchAspect>,
    /// Why it has no room, if it has none.
    pub room: Option<String>,
    /// The stages, as far as a packet goes through them; those it would take if it does not fit; none if it cannot be placed.
    pub stages: Option<Vec<SwitchStage>>,
}

/// The verdict on one aspect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchAspect {
    /// `metric`, `reaction`, `backflow` or `memory`.
    pub aspect: String,
    /// As `grade` of the whole.
    pub grade: String,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
}

/// What one stage does and uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchStage {
    /// Accesses to registers.
    pub registers: u64,
    /// Tables.
    pub tables: u64,
    /// Blocks of SRAM.
    pub sram_blocks: u64,
    /// Blocks of TCAM.
    pub tcam_blocks: u64,
    /// What is there.
    pub placed: Vec<SwitchPlaced>,
}

/// A part of a program in a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchPlaced {
    /// `ingress` or `egress`.
    pub half: String,
    /// What it is.
    pub name: String,
    /// Whether it began in a stage before.
    pub continued: bool,
}
