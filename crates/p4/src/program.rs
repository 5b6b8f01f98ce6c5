//! An algorithm as a switch runs it: steps, the fields that they read and produce, and registers.

use crate::memory::RegisterInfo;

/// A value that travels with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Field(pub(crate) usize);

/// An array in the memory of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Register(pub(crate) usize);

/// What a packet reaches of a register: the entry of its port, or the entry that a field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub(crate) register: Register,
    pub(crate) index: Option<Field>,
}

/// A half of the pipeline: before the queue, or behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gress {
    /// Before the queue.
    Ingress,
    /// Behind it.
    Egress,
}

/// What a verdict is about (the rows of table I).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// How congestion is measured.
    Metric,
    /// How the algorithm reacts to congestion.
    Reaction,
    /// Whether something known behind the queue is needed before it.
    Backflow,
    /// Whether each register is reached once.
    Memory,
}

/// Which packets take a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// Forwarded packets.
    Traffic,
    /// Packets of the switch's own generator, at a fixed period.
    Generated,
    /// Packets that were sent back from behind the queue.
    FedBack,
    /// Packets that were sent back a second time.
    FedBackAgain,
}

/// A computation on fields.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Addition, subtraction, the larger or smaller of two, a mask, or a shift by a constant.
    Simple,
    /// This many comparisons of the same fields, side by side: each takes a table.
    Compare(usize),
    /// A hash.
    Hash,
    /// A random number.
    Random,
    /// A product with a constant.
    MultiplyBy(f64),
    /// A product of two fields.
    Multiply,
    /// Any other function, of as many bits of its arguments as matter.
    Function {
        /// Its name in a sentence, such as "the square root".
        name: &'static str,
        /// The special unit that a switch may have for it.
        special: Option<Special>,
        /// Bits of all arguments together.
        bits: u32,
    },
    /// A lookup.
    Table(Match),
}

/// Units that a switch may have in addition to its ALUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// An average that forgets exponentially, including its state.
    Average,
    /// A probability that grows linearly between two thresholds.
    Ramp,
    /// A root or reciprocal, to a few bits.
    Root,
}

/// How a table finds its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// By the whole key.
    Exact {
        /// Entries.
        entries: u64,
        /// Bits of the key.
        key_bits: u32,
        /// Bits of the result.
        value_bits: u32,
    },
    /// By ranges of the key.
    Range {
        /// Entries of a ternary memory, with ranges as prefixes.
        prefixes: u64,
        /// Bits of the key.
        key_bits: u32,
        /// Bits of the result.
        value_bits: u32,
    },
}

/// What a register's unit does in one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Micro {
    /// A comparison whose result decides what is done.
    Condition,
    /// The word becomes a field, or its sum or difference with a field.
    Update,
    /// An operation of a special unit.
    Special(Special),
}

/// What happens to the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is dropped, before the queue or behind it.
    Drop,
    /// It is marked with CE.
    Mark,
    /// Its header is changed.
    Rewrite,
    /// A copy of it goes back to the ingress.
    FeedBack,
}

impl Register {
    /// The entry that a field names. Other fields name other entries, whatever their values.
    pub fn at(self, index: Field) -> Entry {
        Entry { register: self, index: Some(index) }
    }
}

impl From<Register> for Entry {
    /// The entry of the packet's port.
    fn from(register: Register) -> Self {
        Self { register, index: None }
    }
}

impl Gress {
    /// Its name in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

impl Aspect {
    /// Its name in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metric => "metric",
            Self::Reaction => "reaction",
            Self::Backflow => "backflow",
            Self::Memory => "memory",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct FieldInfo {
    pub bits: u32,
    pub known: KnownFrom,
    pub name: String,
}

/// From when on a field is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownFrom {
    /// From the packet's arrival.
    Arrival,
    /// Behind the queue, because it describes the queue.
    Queue,
    /// After the packet has left the queue.
    Leaving,
    /// After this step.
    By(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub name: String,
    pub gress: Gress,
    pub aspect: Aspect,
    pub packets: Packets,
    pub does: StepAction,
    pub reads: Vec<Field>,
    /// The actions of its table.
    pub actions: u64,
    /// How the table finds its action, if it has several.
    pub chosen_by: Option<Match>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepAction {
    Compute(Op),
    Access { entry: Entry, micros: Vec<Micro> },
    Act(Act),
}

/// Something that the switch's control plane does from time to time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlPlaneTask {
    pub name: String,
    pub aspect: Aspect,
    /// Whether it learns behind the queue what it writes for steps before the queue.
    pub feeds_back: bool,
}

/// Fields of a half of the pipeline that must be in one group of containers, because operations combine them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldGroup {
    /// The half.
    pub gress: Gress,
    /// The name of the first field.
    pub first: String,
    /// How many fields it has.
    pub fields: u64,
    /// The bits of their containers.
    pub bits: u64,
}

/// An algorithm as steps. Each step belongs to a kind of packet, a half of the pipeline and an aspect: the last ones
/// that were set apply to the steps that follow.
#[derive(Debug, Clone)]
pub struct Program {
    name: &'static str,
    about: &'static str,
    pub(crate) fields: Vec<FieldInfo>,
    pub(crate) registers: Vec<RegisterInfo>,
    pub(crate) steps: Vec<Step>,
    pub(crate) chores: Vec<ControlPlaneTask>,
    /// Unknown for steps in words, and empty there.
    pub(crate) groups: Vec<FieldGroup>,
    /// Containers of 32 bits that the fields take. Unknown for steps in words, and 0 there.
    pub(crate) containers: u64,
    /// Why no program is written for a switch that programs are written for, whatever the placer says.
    pub(crate) refused: Option<String>,
    gress: Gress,
    aspect: Aspect,
    packets: Packets,
    part: Option<&'static str>,
}

impl Program {
    /// A program without steps.
    pub fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            fields: Vec::new(),
            registers: Vec::new(),
            steps: Vec::new(),
            chores: Vec::new(),
            groups: Vec::new(),
            containers: 0,
            refused: None,
            gress: Gress::Ingress,
            aspect: Aspect::Metric,
            packets: Packets::Traffic,
            part: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A description in one sentence.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Puts the following steps into this half.
    pub fn at(&mut self, gress: Gress) -> &mut Self {
        self.gress = gress;
        self
    }

    /// Assigns the following steps to this aspect.
    pub fn of(&mut self, aspect: Aspect) -> &mut Self {
        self.aspect = aspect;
        self
    }

    /// Assigns the following steps to these packets.
    pub fn by(&mut self, packets: Packets) -> &mut Self {
        self.packets = packets;
        self
    }

    /// Counts the following registers as this part of the program's memory.
    pub fn part(&mut self, part: &'static str) -> &mut Self {
        self.part = Some(part);
        self
    }

    /// The fields that operations combine, if the program is described exactly. Empty for steps in words.
    pub fn groups(&self) -> &[FieldGroup] {
        &self.groups
    }

    /// How many containers of 32 bits the fields of a program take that is described exactly. 0 for steps in words.
    pub fn containers(&self) -> u64 {
        self.containers
    }

    /// A field that arrives with the packet: of its headers, its time of arrival, its length.
    pub fn header(&mut self, name: &str, bits: u32) -> Field {
        self.field(name, bits, KnownFrom::Arrival)
    }

    /// A field of the queue, such as its length. It is known behind the queue; before it only on a switch that provides
    /// it there.
    pub fn queue_state(&mut self, name: &str, bits: u32) -> Field {
        self.field(name, bits, KnownFrom::Queue)
    }

    /// A field of a packet that has left the queue, such as its enqueue and dequeue times, or what it left behind.
    /// Known only behind the queue.
    pub fn leaving(&mut self, name: &str, bits: u32) -> Field {
        self.field(name, bits, KnownFrom::Leaving)
    }

    /// Some bits of a field, at no cost.
    pub fn slice(&mut self, of: Field, name: &str, bits: u32) -> Field {
        let known = self.fields[of.0].known;
        self.field(name, bits, known)
    }

    /// A register with an array of `entries` words.
    pub fn register(&mut self, name: &str, bits: u32, entries: u64) -> Register {
        self.words(name, &[bits], entries)
    }

    /// A register whose entries are pairs of words that are reached together.
    pub fn pair(&mut self, name: &str, bits: u32, entries: u64) -> Register {
        self.words(name, &[bits; 2], entries)
    }

    /// A register whose entries are pairs of words of different lengths.
    pub fn pair_of(&mut self, name: &str, bits: [u32; 2], entries: u64) -> Register {
        self.words(name, &bits, entries)
    }

    /// A computation; its result has `bits` bits.
    pub fn compute(&mut self, name: &str, op: Op, reads: &[Field], bits: u32) -> Field {
        self.step(name, StepAction::Compute(op), reads);
        self.given(name, bits)
    }

    /// Addition, subtraction, minimum and the like.
    pub fn simple(&mut self, name: &str, reads: &[Field], bits: u32) -> Field {
        self.compute(name, Op::Simple, reads, bits)
    }

    /// A comparison.
    pub fn compare(&mut self, name: &str, reads: &[Field]) -> Field {
        self.compute(name, Op::Compare(1), reads, 1)
    }

    /// Reads a register: the entry of a field ([`Register::at`]), or otherwise that of the port.
    pub fn read(&mut self, entry: impl Into<Entry>, name: &str, reads: &[Field]) -> Field {
        self.access(entry.into(), name, &[], reads)
    }

    /// Writes a register, and returns the old value.
    pub fn write(&mut self, entry: impl Into<Entry>, name: &str, reads: &[Field]) -> Field {
        self.access(entry.into(), name, &[Micro::Update], reads)
    }

    /// Changes a register depending on its value, and returns the result.
    pub fn update(&mut self, entry: impl Into<Entry>, name: &str, micros: &[Micro], reads: &[Field]) -> Field {
        self.access(entry.into(), name, micros, reads)
    }

    /// Sets what happens to the packet.
    pub fn act(&mut self, name: &str, act: Act, reads: &[Field]) {
        self.step(name, StepAction::Act(act), reads);
    }

    /// Something that the switch's control plane does in place of a step. `feeds_back`: it carries something learnt
    /// behind the queue to steps before it.
    pub fn control_plane(&mut self, name: &str, feeds_back: bool) {
        self.chores.push(ControlPlaneTask { name: name.to_owned(), aspect: self.aspect, feeds_back });
    }

    /// Sets how many actions the table of the last step has, and how it finds one.
    pub(crate) fn with_actions(&mut self, actions: u64, chosen_by: Match) {
        if let Some(step) = self.steps.last_mut() {
            (step.actions, step.chosen_by) = (actions, Some(chosen_by));
        }
    }

    fn access(&mut self, entry: Entry, name: &str, micros: &[Micro], reads: &[Field]) -> Field {
        let bits = self.registers[entry.register.0].words.iter().copied().max().unwrap_or(0);
        let reads: Vec<_> = entry.index.into_iter().chain(reads.iter().copied()).collect();
        self.step(name, StepAction::Access { entry, micros: micros.to_vec() }, &reads);
        self.given(name, bits)
    }

    fn words(&mut self, name: &str, words: &[u32], entries: u64) -> Register {
        let part = self.part;
        self.registers.push(RegisterInfo { name: name.to_owned(), words: words.to_vec(), entries, part, inputs: 0 });
        Register(self.registers.len() - 1)
    }

    fn step(&mut self, name: &str, does: StepAction, reads: &[Field]) {
        let Self { gress, aspect, packets, .. } = *self;
        self.steps.push(Step {
            name: name.to_owned(),
            gress,
            aspect,
            packets,
            does,
            reads: reads.to_vec(),
            actions: 1,
            chosen_by: None,
        });
    }

    fn given(&mut self, name: &str, bits: u32) -> Field {
        self.field(name, bits, KnownFrom::By(self.steps.len() - 1))
    }

    fn field(&mut self, name: &str, bits: u32, known: KnownFrom) -> Field {
        self.fields.push(FieldInfo { bits, known, name: name.to_owned() });
        Field(self.fields.len() - 1)
    }

    /// The name of a register.
    pub(crate) fn name_of(&self, register: Register) -> &str {
        &self.registers[register.0].name
    }

    /// The step that produces a field, if any.
    pub(crate) fn giver(&self, field: Field) -> Option<usize> {
        match self.fields[field.0].known {
            KnownFrom::By(step) => Some(step),
            KnownFrom::Arrival | KnownFrom::Queue | KnownFrom::Leaving => None,
        }
    }

    /// The steps that must be in earlier stages than a step: those whose results it needs, of the same packet in the
    /// same half. Results of the other half come with the packet, or not at all.
    pub(crate) fn needs(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        let with = |step: usize| (self.steps[step].gress, self.steps[step].packets);
        let givers = self.steps[step].reads.iter().filter_map(|field| self.giver(*field));
        givers.filter(move |giver| with(*giver) == with(step))
    }

    /// The entry that a step reaches.
    pub(crate) fn entry_of(&self, step: usize) -> Option<Entry> {
        match self.steps[step].does {
            StepAction::Access { entry, .. } => Some(entry),
            StepAction::Compute(_) | StepAction::Act(_) => None,
        }
    }
}

impl Match {
    /// A table with an entry for each key of `key_bits` bits.
    pub fn of_all(key_bits: u32, value_bits: u32) -> Self {
        Self::Exact { entries: 1 << key_bits.min(63), key_bits, value_bits }
    }

    /// A table of ranges of a key; each range takes as many prefixes as cover it.
    pub fn of_ranges(ranges: impl IntoIterator<Item = (u64, u64)>, key_bits: u32, value_bits: u32) -> Self {
        let prefixes = ranges.into_iter().map(|(first, last)| prefixes(first, last)).sum();
        Self::Range { prefixes, key_bits, value_bits }
    }
}

/// How many prefixes cover a range, both ends included.
fn prefixes(first: u64, last: u64) -> u64 {
    let (mut at, mut count) = (u128::from(first), 0);
    let end = u128::from(last) + 1;
    while at < end {
        // The largest block that begins here and does not pass the end.
        let aligned = if at == 0 { 64 } else { at.trailing_zeros().min(64) };
        let mut size = 1u128 << aligned;
        while at + size > end {
            size /= 2;
        }
        at += size;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_prefixes() {
        assert_eq!(prefixes(0, 7), 1);
        assert_eq!(prefixes(1, 6), 4); // 1, 2-3, 4-5, 6
        assert_eq!(prefixes(3, 3), 1);
        assert_eq!(prefixes(0, u64::MAX), 1);
        assert_eq!(prefixes(1, u64::MAX), 64);
        assert_eq!(prefixes(5, 4), 0);
    }
}
