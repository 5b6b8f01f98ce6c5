//! A switch as a pipeline: its stages, the resources of each, and what its units can do.

use crate::{Micro, Special};

/// A switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// How many stages there are. Both halves of the pipeline pass all of them, and share their resources.
    pub stages: usize,
    /// The resources of each stage.
    pub per_stage: PerStage,
    /// Whether programs are written for it ([`Architecture::Tna`](crate::ir::Architecture::Tna)).
    pub has_programs: bool,
    /// Bits of the containers that one of their units reads: those of its group. `None` if it reads all.
    pub group_bits: Option<u64>,
    /// Containers of 32 bits for the fields of a program. `None` if there are always enough.
    pub containers: Option<u64>,
    /// What a register's unit does in one access.
    pub register: RegisterUnit,
    /// Special units in addition to the ALUs.
    pub specials: Vec<Special>,
    /// Whether two fields, or a field and any constant, can be multiplied.
    pub multiplies: bool,
    /// Whether there are steps before the queue.
    pub ingress: bool,
    /// Whether steps before the queue know the state of the queue and share memory with those behind it.
    pub queue_state_at_ingress: bool,
    /// Whether a control plane reads and writes registers from time to time.
    pub control_plane: bool,
    /// Whether the switch generates packets.
    pub generator: bool,
    /// Whether packets can go back from behind the queue.
    pub feeds_back: bool,
    /// Units of each stage that compute hashes and the entries of registers. The placer does not limit them.
    pub hash_units: u64,
}

/// The resources of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerStage {
    /// Accesses to registers per packet.
    pub registers: u64,
    /// Tables and actions that are independent of each other.
    pub tables: u64,
    /// Blocks of static memory, for exact matches, results and registers.
    pub sram: u64,
    /// Bits of such a block.
    pub sram_bits: u64,
    /// Blocks of ternary memory, for ranges.
    pub tcam: u64,
    /// Entries and key bits of such a block.
    pub tcam_block: (u64, u32),
    /// Actions of all tables. A Tofino's stage has 32 words of instructions, and two tables can use different parts of a word.
    pub actions: u64,
    /// Actions of a table.
    pub table_actions: u64,
}

/// What a register's unit does in one access.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisterUnit {
    /// How many comparisons.
    pub conditions: usize,
    /// How many additions, subtractions and assignments.
    pub updates: usize,
    /// Words of an entry.
    pub words: u32,
    /// Fields that the actions of a register read, all of them together.
    pub inputs: u64,
    /// Special functions.
    pub specials: Vec<Special>,
}

impl RegisterUnit {
    /// What of an access exceeds the unit, as a sentence without a final period; `None` if nothing does.
    pub(crate) fn refuses(&self, micros: &[Micro], words: u32) -> Option<String> {
        let count = |wanted: Micro| micros.iter().filter(|micro| **micro == wanted).count();
        let (conditions, updates) = (count(Micro::Condition), count(Micro::Update));
        let special = micros.iter().find_map(|micro| match micro {
            Micro::Special(special) if !self.specials.contains(special) => Some(special),
            _ => None,
        });
        if let Some(special) = special {
            return Some(format!("it takes {}", special.name()));
        }
        if words > self.words {
            return Some(format!("it takes {words} words"));
        }
        let many = |count: usize, most: usize, what: &str| {
            (count > most).then(|| format!("it takes {count} {what}, and the unit does {most}"))
        };
        many(conditions, self.conditions, "comparisons").or_else(|| many(updates, self.updates, "changes"))
    }
}

impl Special {
    /// Its name in a reason.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Average => "an average",
            Self::Ramp => "a probability between thresholds",
            Self::Root => "a root",
        }
    }
}

impl Target {
    /// All targets.
    pub fn all() -> Vec<Self> {
        vec![Self::tofino(), Self::tofino_registers_only(), Self::plain(), Self::generous()]
    }

    /// A Tofino with its special functions: 12 stages with 4 stateful ALUs, 16 logical tables, 80 blocks of 1024 x 128
    /// bits and 24 of 512 x 44, and 6 hash units each, and groups of 16 containers of up to 32 bits (the publicly known numbers, which its open-source compiler also has). A register
    /// action has two comparisons and two changes, and a pair of words (Kunze et al., section III: "a small
    /// microprogram").
    pub fn tofino() -> Self {
        Self {
            name: "tofino",
            about: "a Tofino with its special functions",
            stages: 12,
            has_programs: true,
            per_stage: PerStage {
                registers: 4,
                tables: 16,
                sram: 80,
                sram_bits: 1024 * 128,
                tcam: 24,
                tcam_block: (512, 44),
                actions: 64,
                table_actions: 32,
            },
            group_bits: Some(16 * 32),
            // It has 64, and the headers of the printed programs take some: with 51 they compiled, with 56 they did not.
            containers: Some(52),
            register: RegisterUnit {
                conditions: 2,
                updates: 2,
                words: 2,
                inputs: 2,
                specials: vec![Special::Average, Special::Root],
            },
            specials: vec![Special::Average, Special::Ramp, Special::Root],
            multiplies: false,
            ingress: true,
            queue_state_at_ingress: false,
            control_plane: true,
            generator: true,
            feeds_back: true,
            hash_units: 6,
        }
    }

    /// A Tofino whose registers only read, change and write one word ("restricted to basic register functionality",
    /// section IV).
    pub fn tofino_registers_only() -> Self {
        Self {
            name: "tofino-registers",
            about: "a Tofino without its special functions: one change of one word in an access",
            has_programs: false,
            register: RegisterUnit { conditions: 1, updates: 1, words: 1, inputs: 2, specials: Vec::new() },
            specials: Vec::new(),
            ..Self::tofino()
        }
    }

    /// What every switch of this kind has, and no more: steps behind the queue and registers of one word. It has no
    /// steps before the queue, no special functions, no generated or returned packets, and no control plane. Kunze et
    /// al. conclude that AQMs should respect these limits (section VIII).
    pub fn plain() -> Self {
        Self {
            name: "plain",
            about: "the least of them: only behind the queue, no special functions, no generator, nothing sent back, no control \
                    plane",
            ingress: false,
            control_plane: false,
            generator: false,
            feeds_back: false,
            ..Self::tofino_registers_only()
        }
    }

    /// A switch with what the paper wants of the next generation: the state of the queue before it, multiplication,
    /// more stages.
    pub fn generous() -> Self {
        Self {
            name: "generous",
            about: "a switch that multiplies, and knows the queue before it",
            stages: 32,
            has_programs: false,
            per_stage: PerStage {
                registers: 16,
                tables: 64,
                sram: 160,
                tcam: 48,
                actions: 256,
                ..Self::tofino().per_stage
            },
            group_bits: None,
            containers: None,
            register: RegisterUnit {
                conditions: 16,
                updates: 8,
                words: 4,
                inputs: 8,
                specials: vec![Special::Average, Special::Root],
            },
            multiplies: true,
            queue_state_at_ingress: true,
            ..Self::tofino()
        }
    }
}
