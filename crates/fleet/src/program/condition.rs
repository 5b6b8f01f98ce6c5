//! Conditions over the answers to a program's questions: `sent - received > 10`.

use crate::answer::{Asked, Merged};
use queuescope_log::{Function, Group, GroupKey, Number, Relation};
use queuescope_text::{Problem, did_you_mean, quoted};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Comparisons of numbers with what the answers to questions say, all of which must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// At least one. The first has the groups and the value of an alert.
    comparisons: Vec<Comparison>,
}

#[derive(Debug, Clone, PartialEq)]
struct Comparison {
    first: Operand,
    second: Option<(Operator, Operand)>,
    relation: Relation,
    threshold: Number,
    needs_all: bool,
}

/// What an answer says, of the first function of its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operand {
    /// The index of the question.
    question: usize,
    of: Of,
}

/// The value of each group, or one number for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Each,
    Least,
    Greatest,
    Total,
    /// The number of groups.
    Groups,
    /// Of the times between adjacent groups, which are intervals of time: the mean and the standard deviation.
    Gap,
    GapDeviation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Minus,
    Over,
}

/// The functions over all groups of an answer.
const FUNCTIONS: [(&str, Of); 6] = [
    ("min", Of::Least),
    ("max", Of::Greatest),
    ("total", Of::Total),
    ("groups", Of::Groups),
    ("gap", Of::Gap),
    ("gap_stddev", Of::GapDeviation),
];

/// A question by its name.
pub(super) struct Named<'a> {
    pub name: &'a str,
    pub asked: &'a Asked,
}

/// A group with which a condition holds; without keys if the condition is about all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The question whose group it is, and the group's keys.
    pub keys: Option<(usize, Vec<u128>)>,
    /// The number that was compared.
    pub value: Number,
}

impl Condition {
    /// Reads a condition over questions.
    pub(super) fn read(text: &str, questions: &[Named<'_>]) -> Result<Self, Problem> {
        let mut start = 0;
        let mut comparisons = Vec::new();
        for part in text.split(" and ") {
            let comparison = Comparison::read(part, questions);
            comparisons.push(comparison.map_err(|problem| {
                problem.moved(|span| Range { start: start + span.start, end: start + span.end }.into())
            })?);
            start += part.len() + " and ".len();
        }
        let mut groups = comparisons.iter().filter_map(|comparison| Some(questions[comparison.groups()?].asked.keys()));
        if let Some(first) = groups.next()
            && groups.any(|other| other != first)
        {
            let problem = Problem::new("all comparisons of groups must have the same groups").at(0..text.len(), "here");
            return Err(problem.help("give their questions the same `group`, or use min, max, total or groups"));
        }
        Ok(Self { comparisons })
    }

    /// Whether it can hold for answers that lack some hosts, although it would not hold with all of them: it compares two answers, or asks for less
    /// than a number, or for more of what does not grow with each host.
    pub fn needs_all(&self) -> bool {
        self.comparisons.iter().any(|comparison| comparison.needs_all)
    }

    /// The index of the question whose groups it is about; `None`: it is about all groups together.
    pub fn question(&self) -> Option<usize> {
        self.comparisons.iter().find_map(Comparison::groups)
    }

    /// The indices of the questions that it compares, each once, in the order of its text.
    pub fn questions(&self) -> Vec<usize> {
        let operands = self.comparisons.iter().flat_map(|comparison| {
            std::iter::once(comparison.first).chain(comparison.second.map(|(_, second)| second))
        });
        let mut questions = Vec::new();
        for Operand { question, .. } in operands {
            if !questions.contains(&question) {
                questions.push(question);
            }
        }
        questions
    }

    /// The groups with which it holds, those with the most extreme values first. It looks at the groups of all of its questions; those that a question
    /// lacks have a value of 0 there.
    pub fn held(&self, answers: &[&Merged]) -> Vec<Held> {
        let values: Vec<_> = self.comparisons.iter().map(|comparison| comparison.values(answers)).collect();
        let each = || self.comparisons.iter().zip(&values);
        let holds = |keys: Option<&Vec<u128>>| each().all(|(comparison, values)| comparison.holds(values.of(keys)));
        // The first comparison of groups has the value.
        let first = each().find_map(|(comparison, values)| Some((comparison, values, comparison.groups()?)));
        let Some((comparison, first, question)) = first else {
            let value = values.first().filter(|_| holds(None)).map(|values| values.otherwise);
            return value.map(|value| Held { keys: None, value }).into_iter().collect();
        };
        let all: BTreeSet<_> = values.iter().flat_map(|values| values.groups.keys()).collect();
        let mut held: Vec<_> = all
            .into_iter()
            .filter(|keys| holds(Some(keys)))
            .map(|keys| Held { keys: Some((question, keys.clone())), value: first.of(Some(keys)) })
            .collect();
        let is_low = matches!(comparison.relation, Relation::Less | Relation::AtMost);
        held.sort_by(|a, b| {
            let order = a.value.compare(b.value);
            if is_low { order } else { order.reverse() }.then_with(|| a.keys.cmp(&b.keys))
        });
        held
    }
}

/// The values of a comparison for each group, and that of groups which no answer has.
struct Values {
    groups: BTreeMap<Vec<u128>, Number>,
    otherwise: Number,
}

impl Values {
    fn of(&self, keys: Option<&Vec<u128>>) -> Number {
        keys.and_then(|keys| self.groups.get(keys)).copied().unwrap_or(self.otherwise)
    }
}

impl Comparison {
    fn read(text: &str, questions: &[Named<'_>]) -> Result<Self, Problem> {
        let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
        let example = "lost > 10, sent - received > 10, or min(bytes) / max(bytes) < 0.4";
        let Some(start) = text.find(is_sign) else {
            let problem = Problem::new("a condition compares answers with a number").at(0..text.len(), "here");
            return Err(problem.help(example));
        };
        let end = text[start..].find(|c| !is_sign(c)).map_or(text.len(), |length| start + length);
        let symbol = &text[start..end];
        let Some(relation) = Relation::ALL.into_iter().find(|relation| relation.symbol() == symbol) else {
            let problem = Problem::new(format!("'{}' compares nothing", quoted(symbol)));
            return Err(problem.at(start..end, "not a comparison").help("there are <, <=, ==, !=, >= and >"));
        };
        let operator = text[..start].find(['-', '/']);
        let first = Operand::read(text, 0..operator.unwrap_or(start), questions)?;
        let second = match operator {
            None => None,
            Some(at) => {
                let operator = if text[at..].starts_with('-') { Operator::Minus } else { Operator::Over };
                Some((operator, Operand::read(text, at + 1..start, questions)?))
            }
        };
        if let Some((_, second)) = second
            && (first.of, second.of) == (Of::Each, Of::Each)
            && questions[first.question].asked.keys() != questions[second.question].asked.keys()
        {
            let problem = Problem::new("both questions must have the same groups").at(0..start, "here");
            return Err(problem.help("give both the same `group`, or use min, max, total or groups"));
        }
        let (number, at) = trimmed(text, end..text.len());
        let threshold = threshold(number, first, second, questions);
        let threshold = threshold.map_err(|why| Problem::new(why).at(at, "here"))?;
        let function = questions[first.question].asked.functions().first();
        let grows = first.of == Of::Groups
            || !matches!(first.of, Of::Least | Of::Gap | Of::GapDeviation)
                && matches!(
                    function,
                    Some(Function::Count | Function::Sum(_) | Function::Max(_) | Function::Distinct(_))
                );
        let needs_all = second.is_some() || !grows || !matches!(relation, Relation::Greater | Relation::AtLeast);
        Ok(Self { first, second, relation, threshold, needs_all })
    }

    /// The question whose groups it compares; `None`: it is about all groups.
    fn groups(&self) -> Option<usize> {
        let second = self.second.map(|(_, second)| second);
        std::iter::once(self.first).chain(second).find(|operand| operand.of == Of::Each).map(|operand| operand.question)
    }

    fn holds(&self, value: Number) -> bool {
        !value.to_f64().is_nan() && self.relation.orderings().contains(value.compare(self.threshold))
    }

    fn values(&self, answers: &[&Merged]) -> Values {
        let nothing = Number::Unsigned(0);
        let missing = |operand: Operand| if operand.of == Of::Each { nothing } else { operand.over(answers) };
        let first = missing(self.first);
        let otherwise = self.second.map_or(first, |(operator, second)| operator.of(first, missing(second)));
        let groups = self.each(answers).into_iter().filter_map(|held| Some((held.keys?.1, held.value))).collect();
        Values { groups, otherwise }
    }

    /// The value of each group, or the one for all.
    fn each(&self, answers: &[&Merged]) -> Vec<Held> {
        match (self.first.of, self.second) {
            (Of::Each, Some((operator, second))) if second.of == Of::Each => {
                let (first, second) = (self.first.question, second.question);
                joined(&answers[first].groups, &answers[second].groups)
                    .into_iter()
                    .map(|(keys, a, b)| Held { keys: Some((first, keys)), value: operator.of(a, b) })
                    .collect()
            }
            (Of::Each, second) => {
                let second = second.map(|(operator, second)| (operator, second.over(answers)));
                let value = |a| second.map_or(a, |(operator, b)| operator.of(a, b));
                let question = self.first.question;
                let groups = answers[question].groups.iter();
                groups
                    .map(|(keys, values)| Held { keys: Some((question, keys.clone())), value: value(first(values)) })
                    .collect()
            }
            (_, Some((operator, second))) if second.of == Of::Each => {
                let a = self.first.over(answers);
                let groups = answers[second.question].groups.iter();
                groups
                    .map(|(keys, values)| Held {
                        keys: Some((second.question, keys.clone())),
                        value: operator.of(a, first(values)),
                    })
                    .collect()
            }
            (_, second) => {
                let a = self.first.over(answers);
                let value = second.map_or(a, |(operator, second)| operator.of(a, second.over(answers)));
                vec![Held { keys: None, value }]
            }
        }
    }
}

impl Operand {
    fn read(text: &str, span: Range<usize>, questions: &[Named<'_>]) -> Result<Self, Problem> {
        let (words, at) = trimmed(text, span);
        let (name, of, name_at) = match words.split_once('(') {
            None => (words, Of::Each, at),
            Some((function, rest)) => {
                let function = function.trim();
                let Some(name) = rest.trim_end().strip_suffix(')').map(str::trim) else {
                    return Err(Problem::new("a bracket is not closed").at(at, "here"));
                };
                let Some((_, of)) = FUNCTIONS.iter().find(|(known, _)| *known == function) else {
                    let problem = Problem::new(format!("there is no function `{}`", quoted(function)));
                    return Err(problem.at(at, "here").help("there are min, max, total, groups, gap and gap_stddev"));
                };
                (name, *of, at)
            }
        };
        let question = questions.iter().position(|question| question.name == name);
        let Some(question) = question else {
            let message = match name {
                "" => "the name of a question is missing".to_owned(),
                _ => format!("there is no question `{}`", quoted(name)),
            };
            let names = || questions.iter().map(|question| question.name);
            let help = did_you_mean(name, names()).or_else(|| {
                (!questions.is_empty()).then(|| format!("there are {}", names().collect::<Vec<_>>().join(", ")))
            });
            return Err(Problem::new(message).at(name_at, "here").help_if(help));
        };
        let keys = questions[question].asked.keys();
        if matches!(of, Of::Gap | Of::GapDeviation) && !matches!(keys, [GroupKey::Time { .. }]) {
            let problem = Problem::new(format!("the groups of `{name}` are not intervals of time")).at(name_at, "here");
            return Err(problem.help("use group = \"ts/1ms\""));
        }
        // A question without groups has one value.
        let of = if of == Of::Each && questions[question].asked.keys().is_empty() { Of::Total } else { of };
        Ok(Self { question, of })
    }

    /// One number for all groups of an answer; of none, 0.
    fn over(self, answers: &[&Merged]) -> Number {
        let groups = &answers[self.question].groups;
        let values = groups.iter().map(|(_, values)| first(values));
        let nothing = Number::Unsigned(0);
        match self.of {
            Of::Groups => Number::Unsigned(groups.len() as u128),
            Of::Each | Of::Total => values.reduce(plus).unwrap_or(nothing),
            Of::Least => values.min_by(|a, b| a.compare(*b)).unwrap_or(nothing),
            Of::Greatest => values.max_by(|a, b| a.compare(*b)).unwrap_or(nothing),
            Of::Gap => Number::Float(gaps(groups).0),
            Of::GapDeviation => Number::Float(gaps(groups).1),
        }
    }
}

impl Operator {
    fn of(self, a: Number, b: Number) -> Number {
        match (self, whole(a), whole(b)) {
            (Self::Minus, Some(a), Some(b)) => Number::Signed(a.saturating_sub(b)),
            (Self::Minus, ..) => Number::Float(a.to_f64() - b.to_f64()),
            // 0 / 0 compares with nothing.
            (Self::Over, ..) => Number::Float(a.to_f64() / b.to_f64()),
        }
    }
}

/// The value of a question's first function.
fn first(values: &[Number]) -> Number {
    values.first().copied().unwrap_or(Number::Unsigned(0))
}

fn whole(number: Number) -> Option<i128> {
    match number {
        Number::Unsigned(number) => i128::try_from(number).ok(),
        Number::Signed(number) => Some(number),
        Number::Float(_) => None,
    }
}

/// The mean and the standard deviation of the times between adjacent intervals of an answer, in nanoseconds; not a number if there are fewer than two gaps.
fn gaps(groups: &[Group]) -> (f64, f64) {
    let mut times: Vec<_> = groups.iter().filter_map(|(keys, _)| keys.first().copied()).collect();
    times.sort_unstable();
    let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    if gaps.len() < 2 {
        return (f64::NAN, f64::NAN);
    }
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

fn plus(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Unsigned(a), Number::Unsigned(b)) => Number::Unsigned(a.saturating_add(b)),
        _ => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => Number::Signed(a.saturating_add(b)),
            _ => Number::Float(a.to_f64() + b.to_f64()),
        },
    }
}

/// The groups of two answers by their keys.
fn joined(first_groups: &[Group], second_groups: &[Group]) -> Vec<(Vec<u128>, Number, Number)> {
    let nothing = (Number::Unsigned(0), Number::Unsigned(0));
    let mut all: BTreeMap<Vec<u128>, (Number, Number)> = BTreeMap::new();
    for (keys, values) in first_groups {
        all.entry(keys.clone()).or_insert(nothing).0 = first(values);
    }
    for (keys, values) in second_groups {
        all.entry(keys.clone()).or_insert(nothing).1 = first(values);
    }
    all.into_iter().map(|(keys, (a, b))| (keys, a, b)).collect()
}

/// The number to compare with: an amount of what is compared, or a plain number for a ratio and for numbers of groups.
fn threshold(
    text: &str,
    first: Operand,
    second: Option<(Operator, Operand)>,
    questions: &[Named<'_>],
) -> Result<Number, String> {
    let plain = || {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(Number::Float).ok_or_else(|| format!("'{}' is not a number", quoted(text)))
    };
    let is_ratio = matches!(second, Some((Operator::Over, _)));
    if is_ratio || first.of == Of::Groups {
        return plain();
    }
    if matches!(first.of, Of::Gap | Of::GapDeviation) {
        let time = text.parse::<Nanos>().map_err(|error| error.to_string())?;
        return Ok(Number::Float(time.0 as f64));
    }
    let asked = questions[first.question].asked;
    let function = asked.functions().first().unwrap_or(&Function::Count);
    let negative = text.strip_prefix('-').filter(|_| second.is_some());
    let number = function.read_value(negative.unwrap_or(text).trim(), asked.schema())?;
    Ok(match (negative, whole(number)) {
        (None, _) => number,
        (Some(_), Some(number)) => Number::Signed(-number),
        (Some(_), None) => Number::Float(-number.to_f64()),
    })
}

/// A part of a text without surrounding blanks, and its span.
fn trimmed(text: &str, span: Range<usize>) -> (&str, Range<usize>) {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    let part = part.trim();
    (part, start..start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Texts;
    use proptest::prelude::*;
    use queuescope_log::Schema;

    fn asked(select: &str, group: &str) -> Asked {
        Asked::new(&Texts { select, group, ..Texts::default() }, Schema::packet()).expect("it is a question")
    }

    fn merged(groups: &[(u128, u64)]) -> Merged {
        let group = |(key, value): &(u128, u64)| (vec![*key], vec![Number::Unsigned((*value).into())]);
        let groups: BTreeMap<_, _> = groups.iter().map(group).collect();
        Merged { groups: groups.into_iter().collect(), packets: 0, records: 0, left_out: 0 }
    }

    /// What holds for the answers to `a` and `b`: the keys and the values, as fractions.
    fn held(condition: &str, a: &[(u128, u64)], b: &[(u128, u64)]) -> Vec<(Option<u128>, f64)> {
        let asked = asked("count", "dst_port");
        let questions = [Named { name: "a", asked: &asked }, Named { name: "b", asked: &asked }];
        let condition = Condition::read(condition, &questions).unwrap_or_else(|problem| panic!("{problem:?}"));
        let held = condition.held(&[&merged(a), &merged(b)]);
        held.into_iter().map(|held| (held.keys.map(|(_, keys)| keys[0]), held.value.to_f64())).collect()
    }

    #[test]
    fn each_form_of_a_condition() {
        let (a, b) = ([(1, 10), (2, 20), (3, 5)], [(1, 4), (2, 20), (4, 8)]);
        assert_eq!(held("a > 9", &a, &b), [(Some(2), 20.0), (Some(1), 10.0)]);
        assert_eq!(held("a < 10", &a, &b), [(Some(3), 5.0)]);
        assert_eq!(held("a - b > 0", &a, &b), [(Some(1), 6.0), (Some(3), 5.0)]);
        assert_eq!(held("a - b < -7", &a, &b), [(Some(4), -8.0)]);
        assert_eq!(held("min(a) / max(a) <= 0.25", &a, &b), [(None, 0.25)]);
        assert_eq!(held("total(a) > 34", &a, &b), [(None, 35.0)]);
        assert_eq!(held("total(a) > 35", &a, &b), []);
        assert_eq!(held("groups(a) == 3", &a, &b), [(None, 3.0)]);
        assert_eq!(held("a / total(a) > 0.5", &a, &b), [(Some(2), 20.0 / 35.0)]);
        assert_eq!(held("total(a) - b >= 27", &a, &b), [(Some(1), 31.0), (Some(4), 27.0)]);
        assert_eq!(held("a > 1 and b > 5", &a, &b), [(Some(2), 20.0)]);
        assert_eq!(held("a > 1 and groups(b) > 5", &a, &b), []);
        assert_eq!(held("groups(b) > 2 and a > 19", &a, &b), [(Some(2), 20.0)]);
        // A group that another question lacks has 0 there.
        assert_eq!(held("a > 1 and b < 1", &a, &b), [(Some(3), 5.0)]);
        assert_eq!(held("b < 1 and a > 1", &a, &b), [(Some(3), 0.0)]);
        assert_eq!(held("a > 9 and b < 5", &a, &[]), [(Some(2), 20.0), (Some(1), 10.0)]);
        // 0 / 0 compares with nothing, and an answer without groups has a total of 0.
        assert_eq!(held("total(a) / total(b) < 1", &[], &[]), []);
        assert_eq!(held("total(a) < 1", &[], &[]), [(None, 0.0)]);
    }

    #[test]
    fn gaps_are_between_adjacent_intervals() {
        let asked = asked("count", "ts/1ms");
        let questions = [Named { name: "t", asked: &asked }];
        let read = |text| Condition::read(text, &questions).unwrap_or_else(|problem| panic!("{problem:?}"));
        let times = merged(&[(300_000_000, 1), (100_000_000, 2), (200_000_000, 1), (401_000_000, 3)]);
        let value = |text| read(text).held(&[&times])[0].value.to_f64();
        assert!((value("gap(t) > 1ms") - 100_333_333.3).abs() < 1.0);
        // Gaps of 100, 100 and 101 ms.
        assert!((value("gap_stddev(t) < 1ms") - 471_404.5).abs() < 1.0);
        let two = merged(&[(1, 1), (2, 1)]);
        assert!(read("gap_stddev(t) < 1ms").held(&[&two]).is_empty());
    }

    #[test]
    fn more_hosts_could_end_some_conditions() {
        let (count, least) = (asked("count", "dst_port"), asked("min(ts)", "dst_port"));
        let questions = [Named { name: "n", asked: &count }, Named { name: "t", asked: &least }];
        let needs_all = |text| Condition::read(text, &questions).map(|condition| condition.needs_all());
        for grows in ["n > 3", "max(n) >= 3", "total(n) > 3", "groups(t) > 3"] {
            assert_eq!(needs_all(grows), Ok(false), "{grows}");
        }
        let values = asked("distinct(src_ip)", "");
        let of_values = [Named { name: "d", asked: &values }];
        let read = Condition::read("d > 500", &of_values);
        assert_eq!(read.map(|condition| condition.needs_all()), Ok(false), "a union only grows");
        let gaps = asked("count", "ts/1ms");
        let of_times = [Named { name: "g", asked: &gaps }];
        for gap in ["gap(g) > 1ms", "gap_stddev(g) >= 1us"] {
            let read = Condition::read(gap, &of_times);
            assert_eq!(read.map(|condition| condition.needs_all()), Ok(true), "{gap}");
        }
        for other in ["n < 3", "n == 3", "min(n) > 3", "t > 3s", "n - n > 3", "n / total(n) > 0.5", "n > 3 and n < 9"] {
            assert_eq!(needs_all(other), Ok(true), "{other}");
        }
    }

    proptest! {
        /// The same as over all keys of both answers one by one.
        #[test]
        fn differences_are_those_of_each_key(
            a in proptest::collection::btree_map(0u128..9, 0u64..20, 0..9),
            b in proptest::collection::btree_map(0u128..9, 0u64..20, 0..9),
            threshold in 0i64..15,
        ) {
            let list = |map: &BTreeMap<u128, u64>| map.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>();
            let found: BTreeMap<_, _> =
                held(&format!("a - b >= {threshold}"), &list(&a), &list(&b)).into_iter().map(|(key, value)| (key.unwrap(), value)).collect();
            let value = |map: &BTreeMap<u128, u64>, key| map.get(&key).copied().unwrap_or(0) as f64;
            let expected: BTreeMap<_, _> = (0u128..9)
                .filter(|key| a.contains_key(key) || b.contains_key(key))
                .map(|key| (key, value(&a, key) - value(&b, key)))
                .filter(|(_, value)| *value >= threshold as f64)
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
