//! Groups records by what they have in common.

mod folding;
mod grouped;
mod ids;
mod pack;
mod part;
mod sums;
mod way;

pub use folding::Folding;
pub use grouped::{Group, Grouped};
pub use part::{GroupPart, PartError};
pub use way::PartState;

use crate::columns::{KeyBatch, KeyGather, Selected};
use crate::derive::Function;
use crate::schema::{AttributeId, Schema};
use ids::{KeyIds, Ranks, Values};
use pack::Pack;
use sums::Sums;

/// What the records of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey {
    /// An attribute's value.
    Attribute(AttributeId),
    /// An interval of time: intervals are adjacent, and one of them begins at the origin.
    Time {
        /// The attribute.
        attribute: AttributeId,
        /// The length in nanoseconds; zero counts as one.
        width: u64,
        /// Where one interval begins.
        origin: u64,
    },
}

impl GroupKey {
    /// The attribute.
    pub fn attribute(&self) -> AttributeId {
        let (Self::Attribute(attribute) | Self::Time { attribute, .. }) = self;
        *attribute
    }

    /// What records with this key have in common: the key, or the start of its interval.
    fn of(&self, key: u128) -> u128 {
        match *self {
            Self::Attribute(_) => key,
            Self::Time { width, origin, .. } => {
                let (width, origin) = (u128::from(width).max(1), u128::from(origin));
                // An interval that would begin before zero begins at zero.
                if key >= origin {
                    origin + (key - origin) / width * width
                } else {
                    origin.saturating_sub((origin - key).div_ceil(width) * width)
                }
            }
        }
    }

    /// The same for a key of at most 64 bits, without a division of 128 bits.
    #[inline]
    fn of_narrow(&self, key: u64) -> u128 {
        match *self {
            Self::Attribute(_) => key.into(),
            Self::Time { width, origin, .. } if key >= origin => {
                let width = width.max(1);
                (origin + (key - origin) / width * width).into()
            }
            Self::Time { .. } => self.of(key.into()),
        }
    }
}

/// Computes functions for each group of records.
///
/// Memory can be limited: then groups whose keys are too high are left out, and a further pass over the records finds them
/// ([`Grouped::behind`]).
///
/// ```
/// use queuescope_log::{Function, GroupKey, Grouping, Number, Schema, departure};
///
/// let schema = Schema::departure();
/// let port = schema.find("dst_port").ok_or("unknown attribute")?;
/// let mut grouping = Grouping::new(schema, &[GroupKey::Attribute(port)], &[Function::Count]);
/// grouping.add(&[0; departure::SIZE]);
/// let groups: Vec<_> = grouping.finish().iter().collect();
/// assert_eq!(groups, [(vec![0], vec![Number::Unsigned(1)])]);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Grouping<'a> {
    schema: &'a Schema,
    functions: Vec<Function>,
    groups: Groups,
    /// Records that were added one by one.
    gather: KeyGather,
    /// The most bytes of heap memory.
    memory: usize,
    /// Only groups with higher keys count.
    after: Option<Vec<u128>>,
    /// Only groups with these keys or lower ones count: there was no memory for others.
    last: Option<Vec<u128>>,
    scratch: Scratch,
    places: Vec<u32>,
}

/// For each selected record of a batch: the number of its group, a key's number, and a word of these.
#[derive(Debug, Default)]
struct Scratch {
    groups: Vec<u32>,
    numbers: Vec<u32>,
    words: Vec<u128>,
}

/// Groups and their states.
///
/// A group's number is that of its key; with more keys, that of the last word of the keys' numbers.
#[derive(Debug)]
struct Groups {
    keys: Vec<KeyIds>,
    packs: Vec<Pack>,
    sums: Vec<Sums>,
    count: usize,
}

impl<'a> Grouping<'a> {
    /// No groups yet.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn new(schema: &'a Schema, keys: &[GroupKey], functions: &[Function]) -> Self {
        let mut attributes: Vec<_> = keys.iter().map(GroupKey::attribute).collect();
        attributes.extend(functions.iter().filter_map(Function::attribute));
        attributes.sort_unstable();
        attributes.dedup();
        let mut gather = KeyGather::new(schema, &attributes);
        if functions.iter().any(|function| matches!(function, Function::User(_))) {
            gather = gather.with_records();
        }
        Self {
            schema,
            functions: functions.to_vec(),
            groups: Groups::new(schema, keys, functions),
            gather,
            memory: usize::MAX,
            after: None,
            last: None,
            scratch: Scratch::default(),
            places: Vec::new(),
        }
    }

    /// Limits its memory in bytes, roughly: batches that are being added come on top.
    #[must_use]
    pub fn with_memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }

    /// Leaves out groups up to these keys: those that an earlier pass found.
    #[must_use]
    pub fn after(self, keys: Vec<u128>) -> Self {
        Self { after: Some(keys), ..self }
    }

    /// Adds a record.
    #[inline]
    pub fn add(&mut self, record: &[u8]) {
        self.gather.push(record);
        if self.gather.is_full() {
            self.flush();
        }
    }

    /// Adds the selected records of a batch, which has the attributes of all keys and functions.
    ///
    /// # Panics
    /// Panics if there is a function of the caller: it needs whole records.
    pub fn add_batch(&mut self, batch: &KeyBatch, selected: Selected<'_>) {
        let Self { groups, after, last, places, .. } = self;
        let mut selected = selected;
        if after.is_some() || last.is_some() {
            places.clear();
            selected.places(|place| {
                let key = || groups.keys.iter().map(|by| by.key.of(batch.keys(by.attribute()).get(place)));
                let is_behind = after.as_ref().is_none_or(|after| key().gt(after.iter().copied()));
                if is_behind && last.as_ref().is_none_or(|last| key().le(last.iter().copied())) {
                    places.push(place as u32);
                }
            });
            selected = Selected::Some(places);
        }
        if !selected.is_empty() {
            groups.add(batch, selected, &mut self.scratch, self.schema.record_size());
            self.shrink();
        }
    }

    /// Adds the groups of other records; both may take the memory of both.
    pub fn join(&mut self, mut other: Self) {
        other.flush();
        self.flush();
        self.memory = self.memory.saturating_add(other.memory);
        self.last = match (self.last.take(), other.last.take()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.groups.join(&other.groups, self.last.as_deref());
        if self.last.is_some() {
            self.keep();
        }
        self.shrink();
    }

    /// The groups, and the values of each.
    pub fn finish(mut self) -> Grouped {
        self.flush();
        Grouped::new(self.groups, self.last)
    }

    fn flush(&mut self) {
        let batch = self.gather.take();
        self.add_batch(&batch, Selected::All(batch.rows()));
    }

    /// Discards the higher half of the groups until half of the memory is free: tables double when they grow.
    fn shrink(&mut self) {
        while self.groups.heap() > self.memory / 2 && self.groups.count > 1 {
            self.last = Some(self.groups.median());
            self.keep();
        }
    }

    /// Discards the groups behind the last.
    fn keep(&mut self) {
        let keys: Vec<_> = self.groups.keys.iter().map(|ids| ids.key).collect();
        let all = std::mem::replace(&mut self.groups, Groups::new(self.schema, &keys, &self.functions));
        self.groups.join(&all, self.last.as_deref());
    }
}

impl Groups {
    fn new(schema: &Schema, keys: &[GroupKey], functions: &[Function]) -> Self {
        let keys: Vec<_> = keys.iter().map(|key| KeyIds::new(*key, schema, keys.len() == 1)).collect();
        let sums = functions.iter().map(|function| Sums::new(function, schema)).collect();
        Self { packs: Pack::all(&keys), keys, sums, count: 0 }
    }

    /// Adds the selected records of a batch.
    fn add(&mut self, batch: &KeyBatch, selected: Selected<'_>, scratch: &mut Scratch, size: usize) {
        let Scratch { groups, numbers, words } = scratch;
        groups.clear();
        match self.keys.as_mut_slice() {
            [] => groups.resize(selected.len(), 0),
            [only] => only.assign(batch, selected, groups),
            several => {
                for (number, pack) in self.packs.iter_mut().enumerate() {
                    words.clear();
                    words.resize(selected.len(), 0);
                    let mut part = 0;
                    if number > 0 {
                        pack.join(part, words, groups);
                        part += 1;
                    }
                    for key in &mut several[pack.keys.clone()] {
                        numbers.clear();
                        key.assign(batch, selected, numbers);
                        pack.join(part, words, numbers);
                        part += 1;
                    }
                    pack.assign(words, groups);
                }
            }
        }
        self.recount();
        for sums in &mut self.sums {
            sums.add(batch, selected, groups, self.count, size);
        }
    }

    fn recount(&mut self) {
        let of_keys = self.keys.last().map_or(1, KeyIds::len);
        self.count = self.packs.last().map_or(of_keys, Pack::len);
    }

    /// Adds other groups, those up to the keys of `last`.
    fn join(&mut self, other: &Self, last: Option<&[u128]>) {
        let rows = Rows::new(other);
        // The numbers here of the values that are used, so that each value is looked up once.
        let mut own: Vec<_> = rows.values.iter().map(|values| vec![None; values.len()]).collect();
        let mut numbers = Vec::with_capacity(own.len());
        for group in 0..other.count {
            if last.is_some_and(|last| rows.keys(group).gt(last.iter().copied())) {
                continue;
            }
            numbers.clear();
            for (at, number) in rows.numbers(group).enumerate() {
                let value = || rows.values[at].get(number);
                numbers.push(match own[at].get_mut(number as usize) {
                    Some(known) => *known.get_or_insert_with(|| self.keys[at].number(value())),
                    None => number,
                });
            }
            let number = self.number(&numbers);
            for (sums, other) in self.sums.iter_mut().zip(&other.sums) {
                sums.join(number, &other.state(group), self.count);
            }
        }
    }

    /// The number of the group with these numbers of keys, which may be new.
    fn number(&mut self, numbers: &[u32]) -> usize {
        let mut number = numbers.first().copied().unwrap_or(0);
        for (at, pack) in self.packs.iter_mut().enumerate() {
            let before = (at > 0).then_some(number);
            let word = pack.word(before.into_iter().chain(numbers[pack.keys.clone()].iter().copied()));
            number = pack.number(word);
        }
        self.recount();
        number as usize
    }

    /// Keys that about half of the groups do not exceed.
    fn median(&self) -> Vec<u128> {
        let rows = Rows::new(self);
        let order = rows.order();
        rows.keys(order[(order.len() - 1) / 2] as usize).collect()
    }

    /// Bytes of heap memory that they take.
    fn heap(&self) -> usize {
        self.keys.iter().map(KeyIds::heap).sum::<usize>()
            + self.packs.iter().map(Pack::heap).sum::<usize>()
            + self.sums.iter().map(Sums::heap).sum::<usize>()
    }
}

/// The keys of groups, by their numbers.
#[derive(Debug)]
struct Rows {
    count: usize,
    /// The values of each key, by their numbers.
    values: Vec<Values>,
    /// For each group the number of each key's value, one group after another.
    numbers: Vec<u32>,
}

impl Rows {
    fn new(groups: &Groups) -> Self {
        let width = groups.keys.len();
        let words: Vec<_> = groups.packs.iter().map(Pack::words).collect();
        let mut numbers = vec![0; groups.count * width];
        for (group, of_group) in numbers.chunks_exact_mut(width.max(1)).enumerate() {
            let mut left = group as u32;
            if groups.packs.is_empty() {
                of_group[0] = left;
            }
            for (pack, words) in groups.packs.iter().zip(&words).rev() {
                let mut parts = pack.parts(words[left as usize]);
                let keys = of_group[pack.keys.clone()].iter_mut().rev();
                keys.zip(parts.by_ref()).for_each(|(number, part)| *number = part);
                left = parts.next().unwrap_or(0);
            }
        }
        Self { count: groups.count, values: groups.keys.iter().map(KeyIds::values).collect(), numbers }
    }

    /// The numbers of a group's keys.
    fn numbers(&self, group: usize) -> impl Iterator<Item = u32> + Clone + '_ {
        let width = self.values.len();
        self.numbers[group * width..(group + 1) * width].iter().copied()
    }

    /// The keys of a group.
    fn keys(&self, group: usize) -> impl Iterator<Item = u128> + '_ {
        self.numbers(group).zip(&self.values).map(|(number, values)| values.get(number))
    }

    /// The numbers of all groups, sorted by their keys.
    fn order(&self) -> Vec<u32> {
        let ranks: Vec<Ranks> = self.values.iter().map(Values::ranks).collect();
        let ranked = |group: u32| self.numbers(group as usize).zip(&ranks).map(|(number, ranks)| ranks.get(number));
        let mut order: Vec<_> = (0..self.count as u32).collect();
        if self.values.len() <= 2 {
            // Both in one number are faster to compare than one after the other.
            let both = |group: u32| ranked(group).fold(0, |both, rank| both << 32 | u64::from(rank));
            let mut ranked: Vec<_> = order.iter().map(|group| (both(*group), *group)).collect();
            ranked.sort_unstable();
            order.iter_mut().zip(ranked).for_each(|(place, (_, group))| *place = group);
        } else {
            order.sort_unstable_by(|a, b| ranked(*a).cmp(ranked(*b)));
        }
        order
    }
}
