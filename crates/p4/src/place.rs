//! Where each part of a program goes: the earliest stage behind all that it needs which has room, the longest chain first.

use crate::graph::{Node, tails};
use crate::program::{Does, Gress, Match, Op, Program};
use crate::target::{PerStage, Target};

/// Where each part goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// In order, as many as are needed: there may be more than the target has.
    pub stages: Vec<Stage>,
}

/// A stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// What is in it.
    pub placed: Vec<Placed>,
    /// What that takes.
    pub used: Used,
}

/// What of a stage is taken, of both halves of the pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Accesses to registers.
    pub registers: u64,
    /// Tables and actions.
    pub tables: u64,
    /// Blocks of static memory.
    pub sram: u64,
    /// Blocks of ternary memory.
    pub tcam: u64,
}

/// A step, or all that a register does, in a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its half of the pipeline.
    pub gress: Gress,
    /// What it does.
    pub name: String,
    /// Whether it is the rest of a table that began in an earlier stage.
    pub continued: bool,
    pub(crate) steps: Vec<usize>,
}

impl Placement {
    /// What is taken of all stages.
    pub fn used(&self) -> Used {
        self.stages.iter().fold(Used::default(), |sum, stage| sum.plus(stage.used))
    }

    /// The stage of a step, from 0.
    pub(crate) fn stage_of(&self, step: usize) -> Option<usize> {
        self.stages.iter().position(|stage| stage.placed.iter().any(|placed| placed.steps.contains(&step)))
    }
}

impl Used {
    fn plus(self, other: Self) -> Self {
        Self {
            registers: self.registers + other.registers,
            tables: self.tables + other.tables,
            sram: self.sram + other.sram,
            tcam: self.tcam + other.tcam,
        }
    }

    fn fits(self, has: &PerStage) -> bool {
        self.registers <= has.registers && self.tables <= has.tables && self.sram <= has.sram && self.tcam <= has.tcam
    }
}

/// Places all nodes, over as many stages as it takes; or tells why that cannot be.
///
/// If the longest chain first takes more stages than there are, one or two other nodes are tried before all. That finds what
/// trying everything finds, for all small programs that the tests draw; it is no proof for large ones.
pub(crate) fn place(program: &Program, nodes: &[Node], target: &Target) -> Result<Placement, String> {
    let tails = tails(nodes).map_err(|node| {
        format!("\"{}\" needs what comes of itself, of another register's stage", name(program, &nodes[node]))
    })?;
    let in_order = |first: [usize; 2]| {
        // The longest chain first; of equals, as they are written.
        let key = |node: usize| (!first.contains(&node), std::cmp::Reverse(tails[node]), node);
        let mut order: Vec<_> = (0..nodes.len()).collect();
        order.sort_by_key(|node| key(*node));
        place_in_order(program, nodes, target, &order)
    };
    let none = nodes.len();
    let plain = in_order([none; 2])?;
    if plain.stages.len() <= target.stages || tails.iter().any(|tail| *tail > target.stages) {
        return Ok(plain);
    }
    let pairs = (0..nodes.len()).flat_map(|one| (one..nodes.len()).map(move |other| [one, other]));
    let mut others = pairs.filter_map(|first| in_order(first).ok());
    Ok(others.find(|other| other.stages.len() <= target.stages).unwrap_or(plain))
}

fn place_in_order(program: &Program, nodes: &[Node], target: &Target, order: &[usize]) -> Result<Placement, String> {
    let mut stages = Vec::new();
    for gress in [Gress::Ingress, Gress::Egress] {
        let mut left: Vec<_> = order.iter().copied().filter(|node| nodes[*node].gress == gress).collect();
        // The last stage of each, which has the result.
        let mut end = vec![None; nodes.len()];
        let mut at = 0;
        while !left.is_empty() {
            for &node in &left {
                let is_ready = nodes[node].needs.iter().all(|need| end[*need].is_some_and(|end| end < at));
                if is_ready {
                    end[node] = put(program, &nodes[node], &mut stages, at, target)?;
                }
            }
            left.retain(|node| end[*node].is_none());
            at += 1;
        }
    }
    Ok(Placement { stages })
}

/// Puts a node into a stage, if there is room, and what is left of a table into those that follow: the last of them.
fn put(
    program: &Program,
    node: &Node,
    stages: &mut Vec<Stage>,
    at: usize,
    target: &Target,
) -> Result<Option<usize>, String> {
    let has = &target.per_stage;
    let mut needs = used(program, node, target);
    if needs.registers > 0 && needs.sram > has.sram {
        return Err(format!("\"{}\" takes more memory than a stage has", name(program, node)));
    }
    for stage in at.. {
        if stages.len() <= stage {
            stages.resize_with(stage + 1, Stage::default);
        }
        let here = &mut stages[stage];
        let free = Used { sram: has.sram - here.used.sram, tcam: has.tcam - here.used.tcam, ..needs };
        // A register is in one stage; a table may be in several, from where it has the first block.
        let part = match needs {
            Used { registers: 0, .. } => {
                Used { sram: needs.sram.min(free.sram), tcam: needs.tcam.min(free.tcam), ..needs }
            }
            _ => needs,
        };
        let nothing = part.sram + part.tcam == 0 && needs.sram + needs.tcam > 0;
        let after = here.used.plus(part);
        if nothing || !after.fits(has) {
            if stage == at {
                return Ok(None);
            }
            continue;
        }
        here.used = after;
        let (gress, name) = (node.gress, name(program, node));
        here.placed.push(Placed { gress, name, continued: stage > at, steps: node.steps.clone() });
        needs = Used { sram: needs.sram - part.sram, tcam: needs.tcam - part.tcam, ..needs };
        if needs.sram + needs.tcam == 0 {
            return Ok(Some(stage));
        }
    }
    Ok(None)
}

/// What a node is called: its steps; of a register, its accesses.
fn name(program: &Program, node: &Node) -> String {
    let mut names: Vec<&str> = Vec::new();
    for step in &node.steps {
        let step = &program.steps[*step];
        if !names.contains(&step.name.as_str()) {
            names.push(&step.name);
        }
    }
    names.join("; ")
}

/// What a node takes.
fn used(program: &Program, node: &Node, target: &Target) -> Used {
    let has = &target.per_stage;
    let blocks = |bits: u64, of: u64| bits.div_ceil(of.max(1));
    let mut used = Used { tables: 1, ..Used::default() };
    for step in &node.steps {
        match &program.steps[*step].does {
            Does::Access { register, .. } => {
                let register = &program.registers[register.0];
                let bits = register.entries * u64::from(register.words * register.bits);
                // One block more than the words take, for the access itself.
                used = Used { registers: 1, sram: blocks(bits, has.sram_bits) + 1, ..used };
            }
            Does::Compute(op) => match substitute(op, target) {
                Some(Match::Exact { entries, key_bits, value_bits }) => {
                    used.sram += blocks(entries * u64::from(key_bits + value_bits), has.sram_bits);
                }
                Some(Match::Range { prefixes, key_bits, value_bits }) => {
                    let (entries, width) = has.tcam_block;
                    let side_by_side = u64::from(key_bits.div_ceil(width.max(1)));
                    used.tcam += prefixes.div_ceil(entries.max(1)) * side_by_side;
                    used.sram += blocks(prefixes * u64::from(value_bits), has.sram_bits);
                }
                None => {}
            },
            Does::Act(_) => {}
        }
    }
    used
}

/// The table that an operation is, or that stands in for it.
pub(crate) fn substitute(op: &Op, target: &Target) -> Option<Match> {
    match op {
        Op::Table(table) => Some(*table),
        Op::Function { special, bits, .. } if special.is_none_or(|it| !target.specials.contains(&it)) => {
            Some(Match::of_all(*bits, 32))
        }
        _ => None,
    }
}
