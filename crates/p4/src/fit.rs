//! The verdict on a program, by aspect and with reasons, from one placement.

use crate::fold::{Bundle, bundles, is_power_of_two};
use crate::graph::nodes;
use crate::memory::RegisterInfo;
use crate::place::{Placement, place};
use crate::program::{Act, Aspect, FieldGroup, Gress, KnownFrom, Op, Packets, Program, Step, StepAction};
use crate::target::Target;

/// Whether a program fits a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// A verdict for each aspect, in the order of table I.
    pub aspects: [(Aspect, Verdict); 4],
    /// Where the parts go. For a program that reaches a register more than once, where they would go if it could.
    /// `None` if even that is impossible.
    pub placement: Option<Placement>,
    /// Why there is no room: how many stages are missing, which part fits no stage, or which fields fit no group of containers.
    pub room: Option<String>,
    /// Why no program is written for this switch, whatever the aspects and the room: a register action that its unit cannot do, or a rejection by its compiler.
    pub refused: Option<String>,
}

/// How well something can be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Possible as it is.
    #[default]
    Feasible,
    /// Possible with a substitute.
    Workaround,
    /// Not possible.
    Infeasible,
}

/// A grade, and the reasons for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The worst grade of the reasons.
    pub grade: Grade,
    /// The reasons, as sentences without a final period; empty if it is feasible.
    pub reasons: Vec<String>,
}

impl Grade {
    /// The grade in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feasible => "feasible",
            Self::Workaround => "workaround",
            Self::Infeasible => "infeasible",
        }
    }
}

impl Fit {
    /// Judges a program on a target.
    pub fn new(program: &Program, target: &Target) -> Self {
        let bundles = bundles(program, target);
        let mut judge = Judge { program, target, verdicts: Default::default() };
        for step in &program.steps {
            judge.computation(step);
            judge.packets(step);
        }
        let placed = place(program, &nodes(program, &bundles), target);
        judge.registers(&bundles, placed.as_ref().ok().map(|(placement, _)| placement));
        judge.backflow();
        judge.chores();
        let room = match &placed {
            Ok((Placement { stages }, is_certain)) if stages.len() > target.stages => {
                let takes = if *is_certain { "it takes" } else { "as far as was tried, it takes" };
                Some(format!("{takes} {} stages, and there are {}", stages.len(), target.stages))
            }
            Ok(_) => {
                let groups = program.groups.iter().find_map(|group| too_large(group, target));
                groups
                    .or_else(|| too_many_containers(program, target))
                    .or_else(|| program.registers.iter().find_map(|register| too_many_inputs(register, target)))
            }
            Err(why) => Some(why.clone()),
        };
        let [metric, reaction, backflow, memory] = judge.verdicts;
        let aspects = [
            (Aspect::Metric, metric),
            (Aspect::Reaction, reaction),
            (Aspect::Backflow, backflow),
            (Aspect::Memory, memory),
        ];
        let refused = program.refused.clone().filter(|_| target.has_programs);
        Self { aspects, placement: placed.ok().map(|(placement, _)| placement), room, refused }
    }

    /// The verdict of an aspect.
    pub fn verdict(&self, aspect: Aspect) -> &Verdict {
        &self.aspects[aspect as usize].1
    }

    /// The overall grade: feasible if all aspects are, there is room, and no program is refused.
    pub fn grade(&self) -> Grade {
        let worst = self.aspects.iter().map(|(_, verdict)| verdict.grade).max().unwrap_or_default();
        if self.room.is_some() || self.refused.is_some() { Grade::Infeasible } else { worst }
    }

    /// Why the program does not fit, as sentences without a final period: empty if it does.
    pub fn reasons(&self) -> Vec<String> {
        let infeasible = self.aspects.iter().filter(|(_, verdict)| verdict.grade == Grade::Infeasible);
        let aspects = infeasible.flat_map(|(_, verdict)| verdict.reasons.iter().cloned());
        self.refused.iter().cloned().chain(aspects).chain(self.room.clone()).collect()
    }
}

/// Why the fields of a group do not fit, if so.
fn too_large(group: &FieldGroup, target: &Target) -> Option<String> {
    let FieldGroup { gress, first, fields, bits } = group;
    let most = target.group_bits?;
    (*bits > most).then(|| {
        format!(
            "\"{first}\" and {} more fields at {} are combined with each other: they take {bits} bits of containers, and a group has {most}",
            fields - 1,
            gress.name()
        )
    })
}

/// Why there are too few containers, if so.
fn too_many_containers(program: &Program, target: &Target) -> Option<String> {
    let (takes, most) = (program.containers, target.containers?);
    (takes > most).then(|| {
        format!("its fields take {takes} containers of 32 bits, and there are {most} besides those of headers")
    })
}

/// Why the unit of a register cannot read what its actions do, if so.
fn too_many_inputs(register: &RegisterInfo, target: &Target) -> Option<String> {
    let (inputs, most) = (register.inputs, target.register.inputs);
    (inputs > most).then(|| format!("the actions of {} read {inputs} fields, and the unit reads {most}", register.name))
}

/// The widest key of a table that stands in for a computation: a million entries.
const WIDEST_TABLE: u32 = 20;

struct Judge<'a> {
    program: &'a Program,
    target: &'a Target,
    verdicts: [Verdict; 4],
}

impl Judge<'_> {
    fn add(&mut self, aspect: Aspect, grade: Grade, reason: String) {
        let verdict = &mut self.verdicts[aspect as usize];
        verdict.grade = verdict.grade.max(grade);
        if !verdict.reasons.contains(&reason) {
            verdict.reasons.push(reason);
        }
    }

    /// Judges what a step computes.
    fn computation(&mut self, step: &Step) {
        let StepAction::Compute(op) = &step.does else { return };
        let (target, name) = (self.target, &step.name);
        let by_table = |what: &str, bits: u32| match bits {
            0..=WIDEST_TABLE => {
                (Grade::Workaround, format!("\"{name}\": a table of {} entries for {what}", 1u64 << bits))
            }
            _ => (Grade::Infeasible, format!("\"{name}\": there is no unit for {what}, and a table is too large")),
        };
        let (grade, reason) = match op {
            Op::MultiplyBy(factor) if !target.multiplies && !is_power_of_two(*factor) => {
                let shift = factor.log2().round();
                (Grade::Workaround, format!("\"{name}\": a shift by {shift} for the product with {factor:.1}"))
            }
            Op::Multiply if !target.multiplies => {
                let bits = step.reads.iter().map(|field| self.program.fields[field.0].bits).sum();
                by_table("the product", bits)
            }
            Op::Function { name, special, bits } if special.is_none_or(|it| !target.specials.contains(&it)) => {
                by_table(name, *bits)
            }
            _ => return,
        };
        self.add(step.aspect, grade, reason);
    }

    /// Judges which packets take a step, where, and what they know there.
    fn packets(&mut self, step: &Step) {
        if step.gress == Gress::Ingress && !self.target.ingress {
            self.add(step.aspect, Grade::Infeasible, "there are no steps before the queue".to_owned());
        }
        if step.packets == Packets::Generated && !self.target.generator {
            self.add(step.aspect, Grade::Infeasible, "the switch makes no packets of its own".to_owned());
        }
        for field in &step.reads {
            let giver = self.program.giver(*field).map(|giver| self.program.steps[giver].packets);
            // A packet sent back is a copy of one that passed, with all its fields.
            let is_carried = |from| match step.packets {
                Packets::FedBack => matches!(from, Packets::Traffic | Packets::FedBack),
                Packets::FedBackAgain => from != Packets::Generated,
                own @ (Packets::Traffic | Packets::Generated) => from == own,
            };
            if giver.is_some_and(|from| !is_carried(from)) {
                let field = &self.program.fields[field.0].name;
                let reason = format!("\"{}\" needs {field}, which another packet has", step.name);
                self.add(step.aspect, Grade::Infeasible, reason);
            }
        }
        if step.does == StepAction::Act(Act::FeedBack) {
            let (grade, reason) = match self.target.feeds_back {
                true => (Grade::Workaround, "packets go back from behind the queue"),
                false => (Grade::Infeasible, "no packet can go back from behind the queue"),
            };
            self.add(Aspect::Backflow, grade, format!("\"{}\": {reason}", step.name));
        }
    }

    /// Judges that each register is accessed once. Otherwise, the reason names the stages of the accesses.
    fn registers(&mut self, bundles: &[Bundle], placement: Option<&Placement>) {
        for bundle in bundles {
            let Some(why) = &bundle.refused else { continue };
            let (first, last) = bundle.ends;
            let register = &self.program.registers[bundle.register.0].name;
            if first == last {
                let Step { aspect, name, .. } = &self.program.steps[first];
                self.add(*aspect, Grade::Infeasible, format!("\"{name}\": {why}"));
                continue;
            }
            let stage = |step| placement.and_then(|placement| placement.stage_of(step)).map(|stage| stage + 1);
            let reached = match (stage(first), stage(last)) {
                (Some(first), Some(last)) if first != last => format!("in stage {first} and again in stage {last}"),
                _ => "twice".to_owned(),
            };
            let both = format!("{register} is reached {reached}, and has one access");
            self.add(Aspect::Memory, Grade::Infeasible, format!("{both}: {why}"));
        }
    }

    /// Judges what is known behind the queue and needed before it.
    fn backflow(&mut self) {
        let (program, target) = (self.program, self.target);
        let is_first = |step: &&Step| !matches!(step.packets, Packets::FedBack | Packets::FedBackAgain);
        for step in program.steps.iter().filter(is_first).filter(|step| step.gress == Gress::Ingress) {
            for field in &step.reads {
                let field = &program.fields[field.0];
                let late = match field.known {
                    KnownFrom::Arrival => false,
                    KnownFrom::Queue => !target.queue_state_at_ingress,
                    KnownFrom::Leaving => true,
                    KnownFrom::By(step) => program.steps[step].gress == Gress::Egress,
                };
                if late {
                    let reason = format!("\"{}\" needs {}, which is known behind the queue", step.name, field.name);
                    self.add(Aspect::Backflow, Grade::Infeasible, reason);
                }
            }
        }
        if target.queue_state_at_ingress {
            return;
        }
        for (index, register) in program.registers.iter().enumerate() {
            let in_half = |gress| {
                let own = |step: &usize| program.entry_of(*step).is_some_and(|entry| entry.register.0 == index);
                (0..program.steps.len()).filter(own).any(|step| program.steps[step].gress == gress)
            };
            if in_half(Gress::Ingress) && in_half(Gress::Egress) {
                let reason = format!("{} is needed before the queue, and changed behind it", register.name);
                self.add(Aspect::Backflow, Grade::Infeasible, reason);
            }
        }
    }

    /// Judges what the control plane does.
    fn chores(&mut self) {
        for chore in &self.program.chores {
            let (grade, by) = match self.target.control_plane {
                true => (Grade::Workaround, "the control plane does it"),
                false => (Grade::Infeasible, "there is no control plane"),
            };
            self.add(chore.aspect, grade, format!("\"{}\": {by}", chore.name));
            if chore.feeds_back && !self.target.queue_state_at_ingress {
                let reason = format!("\"{}\": {by}, from behind the queue to before it", chore.name);
                self.add(Aspect::Backflow, grade, reason);
            }
        }
    }
}
