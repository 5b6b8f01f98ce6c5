//! Places each part of a program in the earliest stage that has room and is after everything the part needs. The
//! longest chain goes first. If that takes too many stages, other orders are tried.

mod plan;

use crate::graph::{Chains, Node, chains};
use crate::memory::RegisterInfo;
use crate::program::{Gress, Match, Op, Program, StepAction};
use crate::target::{PerStage, Target};
use plan::{Plan, Search};

/// Where each part goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The stages in order, as many as are needed. There may be more than the target has.
    pub stages: Vec<Stage>,
}

/// A stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// The parts in it.
    pub placed: Vec<Placed>,
    /// The resources that these take.
    pub used: Used,
}

/// Resources taken of a stage, by both halves of the pipeline.
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
    /// Actions.
    pub actions: u64,
}

/// A part in a stage: a step, or everything that a register does in a half of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its half of the pipeline.
    pub gress: Gress,
    /// What it does.
    pub name: String,
    /// Whether it continues a table that began in an earlier stage.
    pub continued: bool,
    pub(crate) steps: Vec<usize>,
}

impl Placement {
    /// The resources taken of all stages.
    pub fn used(&self) -> Used {
        self.stages.iter().fold(Used::default(), |sum, stage| sum.plus(stage.used))
    }

    /// The stage of a step, counted from 0.
    pub(crate) fn stage_of(&self, step: usize) -> Option<usize> {
        self.stages.iter().position(|stage| stage.placed.iter().any(|placed| placed.steps.contains(&step)))
    }
}

impl Used {
    fn all_of(has: &PerStage) -> Self {
        let PerStage { registers, tables, sram, tcam, actions, .. } = *has;
        Self { registers, tables, sram, tcam, actions }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            registers: self.registers + other.registers,
            tables: self.tables + other.tables,
            sram: self.sram + other.sram,
            tcam: self.tcam + other.tcam,
            actions: self.actions + other.actions,
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            registers: self.registers - other.registers,
            tables: self.tables - other.tables,
            sram: self.sram - other.sram,
            tcam: self.tcam - other.tcam,
            actions: self.actions - other.actions,
        }
    }

    fn times(self, times: u64) -> Self {
        let Self { registers, tables, sram, tcam, actions } = self;
        Self {
            registers: registers * times,
            tables: tables * times,
            sram: sram * times,
            tcam: tcam * times,
            actions: actions * times,
        }
    }

    fn within(self, has: Self) -> bool {
        self.registers <= has.registers
            && self.tables <= has.tables
            && self.sram <= has.sram
            && self.tcam <= has.tcam
            && self.actions <= has.actions
    }
}

/// How many tries of a part in a stage the search for a better placement may take.
const MOST_LOOKS: u64 = 500_000;

/// A placement, and whether it is certain that the target has too few stages, if it does.
pub(crate) type Placing = (Placement, bool);

/// Places all nodes, over as many stages as it takes. The error says why that is impossible.
pub(crate) fn place(program: &Program, nodes: &[Node], target: &Target) -> Result<Placing, String> {
    let chains = chains(nodes).map_err(|node| {
        format!("\"{}\" depends on its own result, in another register's stage", name(program, &nodes[node].steps))
    })?;
    let needs: Vec<_> = nodes.iter().map(|node| used(program, node, target)).collect();
    if let Some(large) = needs.iter().position(|needs| !some_stage_has(*needs, &target.per_stage)) {
        return Err(format!("\"{}\" takes more than a stage has", name(program, &nodes[large].steps)));
    }
    let (plan, is_certain) = planned(Plan::new(nodes, &needs, target), &chains, target);
    Ok((drawn(program, nodes, &plan), is_certain))
}

/// Places the longest chain first. If that takes more stages than there are, some stages may be too small for the parts
/// that must be in them, whatever the order: then it is certain. Otherwise, the search puts one or two other nodes
/// first, and then tries all placements, up to a number of tries. Small programs are searched completely.
fn planned<'a>(mut plan: Plan<'a>, chains: &[Chains], target: &Target) -> (Plan<'a>, bool) {
    // Among equals, in the order of the program, so each comes after what it needs.
    let mut order: Vec<_> = (0..chains.len()).collect();
    order.sort_by_key(|node| (std::cmp::Reverse(chains[*node].behind), *node));
    plan.in_order(&order);
    if plan.stages() <= target.stages || too_many_for_some_stages(chains, plan.needs, target) {
        return (plan, true);
    }
    let mut search = plan.other_orders(&order, MOST_LOOKS / 2);
    if search != Search::Found {
        search = plan.all_ways(&order, chains, MOST_LOOKS);
    }
    if search != Search::Found {
        plan.in_order(&order);
    }
    (plan, search != Search::GivenUp)
}

/// Whether a part fits an empty stage, or several if it may begin in one and continue in others.
fn some_stage_has(needs: Used, has: &PerStage) -> bool {
    if needs.actions > has.table_actions {
        return false;
    }
    let has = Used::all_of(has);
    let part =
        if needs.registers > 0 { needs } else { Used { sram: needs.sram.min(1), tcam: needs.tcam.min(1), ..needs } };
    part.within(has)
}

/// Whether, for some numbers `before` and `behind`, the parts with at least that many nodes before and after them take more
/// than the stages in between hold.
fn too_many_for_some_stages(chains: &[Chains], needs: &[Used], target: &Target) -> bool {
    let has = Used::all_of(&target.per_stage);
    let mut bounds: Vec<_> = chains.iter().map(|it| it.before).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut ends: Vec<_> = chains.iter().map(|it| it.behind).collect();
    ends.sort_unstable();
    ends.dedup();
    let pairs = bounds.iter().flat_map(|before| ends.iter().map(move |behind| (*before, *behind)));
    pairs.into_iter().any(|(before, behind)| {
        let parts = chains.iter().zip(needs).filter(|(it, _)| it.before >= before && it.behind >= behind);
        let all = parts.fold(Used::default(), |sum, (_, needs)| sum.plus(*needs));
        !all.within(has.times(target.stages.saturating_sub(before + behind) as u64))
    })
}

/// The placement that a plan describes.
fn drawn(program: &Program, nodes: &[Node], plan: &Plan) -> Placement {
    let mut stages = vec![Stage::default(); plan.stages()];
    for (node, at, used) in plan.parts() {
        let stage = &mut stages[at];
        stage.used = stage.used.plus(used);
        let continued = plan.begin(node).is_some_and(|begin| begin < at);
        for gress in [Gress::Ingress, Gress::Egress] {
            let own = nodes[node].steps.iter().copied().filter(|step| program.steps[*step].gress == gress);
            let steps: Vec<_> = own.collect();
            if !steps.is_empty() {
                stage.placed.push(Placed { gress, name: name(program, &steps), continued, steps });
            }
        }
    }
    for stage in &mut stages {
        stage.placed.sort_by_key(|placed| placed.gress);
    }
    Placement { stages }
}

/// The joint name of steps.
fn name(program: &Program, steps: &[usize]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for step in steps {
        let step = &program.steps[*step];
        if !names.contains(&step.name.as_str()) {
            names.push(&step.name);
        }
    }
    names.join("; ")
}

/// The resources that a node takes.
fn used(program: &Program, node: &Node, target: &Target) -> Used {
    let has = &target.per_stage;
    let blocks = |bits: u64, of: u64| bits.div_ceil(of.max(1));
    let tables = match &program.steps[node.steps[0]].does {
        StepAction::Compute(Op::Compare(count)) => *count as u64,
        // Each half of the pipeline has its own actions.
        _ => {
            let has_steps = |gress: &Gress| node.steps.iter().any(|step| program.steps[*step].gress == *gress);
            [Gress::Ingress, Gress::Egress].iter().filter(|gress| has_steps(gress)).count() as u64
        }
    };
    let actions = node.steps.iter().map(|step| program.steps[*step].actions).sum();
    let mut used = Used { tables, actions, ..Used::default() };
    let mut register_blocks = 0;
    for step in &node.steps {
        let step = &program.steps[*step];
        let matched = match &step.does {
            StepAction::Access { entry, .. } => {
                let register = &program.registers[entry.register.0];
                used.registers = 1;
                register_blocks = blocks_of(register, has);
                step.chosen_by
            }
            StepAction::Compute(op) => step.chosen_by.or_else(|| substitute(op, target)),
            StepAction::Act(_) => None,
        };
        match matched {
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
        }
    }
    used.sram += register_blocks;
    used
}

/// Blocks of static memory that a register takes: one more than its words fill, for the access itself.
pub(crate) fn blocks_of(register: &RegisterInfo, has: &PerStage) -> u64 {
    register.placed_bits().div_ceil(has.sram_bits.max(1)) + 1
}

/// The table that an operation is, or that replaces it.
pub(crate) fn substitute(op: &Op, target: &Target) -> Option<Match> {
    match op {
        Op::Table(table) => Some(*table),
        Op::Function { special, bits, .. } if special.is_none_or(|it| !target.specials.contains(&it)) => {
            Some(Match::of_all(*bits, 32))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
