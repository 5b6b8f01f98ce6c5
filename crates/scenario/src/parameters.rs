//! The parameters of a discipline or switch program, for readers: values, bounds and descriptions.

use crate::aqm::Management;
use crate::describe::{TableInfo, ValueKind};
use crate::explain::{Lines, Written};
use crate::keys::{Bounded, Choice, Field, KeyVisitor, Table};
use std::ops::RangeInclusive;

/// A parameter, as an override names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its key, such as `target`, or `gains.alpha` in a table.
    pub key: String,
    /// Its value, as it can be written.
    pub value: String,
    /// The values that it takes: bounds, or names. Empty if its type says all.
    pub range: String,
    /// What it is, in a sentence without a final period.
    pub about: &'static str,
}

impl Management {
    /// The parameters with their values, in the order of the reference. Lists, choices and deeper tables are left out.
    ///
    /// ```
    /// use queuescope_scenario::Management;
    ///
    /// let management = Management::parse("--aqm", "egress-pi,target=250us")?;
    /// let parameters = management.parameters();
    /// let target = parameters.iter().find(|parameter| parameter.key == "target").expect("it has one");
    /// assert_eq!((&*target.value, &*target.range), ("250us", "0s to 8ms"));
    /// # Ok::<(), queuescope_scenario::TextError>(())
    /// ```
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut list = List::default();
        match self {
            Self::Discipline(params) => params.clone().keys(&mut list),
            Self::Program(params) => params.clone().keys(&mut list),
        }
        list.0
    }
}

/// Visits the keys of a table with its values.
#[derive(Default)]
struct List(Vec<Parameter>);

impl List {
    /// Adds a value, and those below it.
    fn add(&mut self, key: &str, written: &Written, (range, kind): (Option<String>, &ValueKind), about: &'static str) {
        let about = about.trim_end_matches('.');
        match written {
            Written::Inline(text) => {
                let range = range.unwrap_or_else(|| names(kind));
                self.0.push(Parameter { key: key.to_owned(), value: text.trim_matches('"').to_owned(), range, about });
            }
            Written::Table(lines) => self.below(key, lines, kind.keys_of(None)),
            Written::Choice(lines) => {
                for (option, value, _) in lines.entries() {
                    self.0.push(Parameter { key: key.to_owned(), value: option.to_owned(), range: names(kind), about });
                    if let Written::Table(lines) = value {
                        self.below(&format!("{key}.{option}"), lines, kind.keys_of(Some(option)));
                    }
                }
            }
            Written::List(_) => {}
        }
    }

    fn below(&mut self, path: &str, lines: &Lines, info: Option<&TableInfo>) {
        for (name, value, about) in lines.entries() {
            let known = info.and_then(|info| info.value_of(name)).unwrap_or((None, &ValueKind::Number));
            self.add(&format!("{path}.{name}"), value, known, about);
        }
    }
}

/// The values of a kind that has few.
fn names(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Bool => "true, false".to_owned(),
        ValueKind::Text { what, examples, .. } if what.starts_with("one of") => examples.join(", "),
        kind => kind.options().join(", "),
    }
}

impl KeyVisitor for List {
    const WRITES: bool = true;

    fn key<T: Field>(&mut self, name: &'static str, field: &mut T, doc: &'static str) {
        self.add(name, &field.write(), (None, &T::kind()), doc);
    }

    fn within<T: Bounded>(&mut self, name: &'static str, field: &mut T, bounds: RangeInclusive<T>, doc: &'static str) {
        let [low, high] = [bounds.start(), bounds.end()].map(|end| end.write().inline().trim_matches('"').to_owned());
        self.add(name, &field.write(), (Some(format!("{low} to {high}")), &ValueKind::Number), doc);
    }

    fn maybe<T: Field>(&mut self, name: &'static str, field: &mut Option<T>, doc: &'static str) {
        if let Some(field) = field {
            self.key(name, field, doc);
        }
    }

    fn inherited<T: Field>(&mut self, name: &'static str, field: &mut T, _from: &T, doc: &'static str) {
        self.key(name, field, doc);
    }

    fn list<T: Table>(
        &mut self,
        _name: &'static str,
        _field: &mut Vec<T>,
        _fresh: impl Fn(usize) -> T,
        _inherited: bool,
        _doc: &'static str,
    ) {
    }

    fn one_of(&mut self, _names: &'static [&'static str], _required: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::PipelineParams;

    fn listed(text: &str) -> Vec<Parameter> {
        Management::parse("--set", text).expect("it is valid").parameters()
    }

    #[test]
    fn values_bounds_and_names_are_listed() {
        let lines = listed("pie-table,trend=as-published,gains.alpha=7").into_iter();
        let lines = lines.map(|it| format!("{}={} ({})", it.key, it.value, it.range)).collect::<Vec<_>>();
        assert_eq!(
            lines,
            [
                "target=125us (0s to 65535us)",
                "max-delay=500us (1us to 4ms)",
                "update=117us (1us to 1000s)",
                "gains.alpha=7.0 (0.0 to 1000000.0)",
                "gains.beta=157.44140625 (0.0 to 1000000.0)",
                "layout=as-stated (as-stated, as-published)",
                "trend=as-published (as-stated, as-published)",
                "act=true (true, false)",
            ]
        );
    }

    /// What a choice has below it is listed behind its name.
    #[test]
    fn choices_have_their_own_parameters() {
        let lines = listed("conquest-aqm,act-at.ingress.action.limit.burst=4,curve.linear.full=9").into_iter();
        let lines: Vec<_> = lines.map(|it| format!("{}={} ({})", it.key, it.value, it.range)).collect();
        for expected in [
            "curve=linear (threshold, linear, squared, steps)",
            "curve.linear.full=9.0 (1e-12 to 1000000000000000.0)",
            "act-at=ingress (egress, ingress)",
            "act-at.ingress.hold=2ms (0s to 1000s)",
            "act-at.ingress.registers=1024 (1 to 1048576)",
            "act-at.ingress.action=limit (respond, drop, limit, reroute)",
            "act-at.ingress.action.limit.interval=12us (1us to 1000s)",
            "act-at.ingress.action.limit.burst=4 (1 to 65536)",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:#?}");
        }
    }

    /// What is listed can be written: it gives the same parameters.
    #[test]
    fn values_read_back() {
        let others = [
            "egress-pi,target=250us,alpha-shift=3",
            "pie-dp,act=false,beta-shift=1,trend=as-published",
            "pie-table,layout=as-published,gains.beta=7.5",
            "conquest-aqm,act-at.ingress.action.limit.burst=4,curve.linear.full=9",
            "conquest-aqm,act-at.ingress.action=reroute",
        ];
        let defaults = PipelineParams::defaults();
        for text in defaults.iter().map(PipelineParams::name).chain(others) {
            let program = Management::parse("--set", text).expect("it is valid");
            let set: String = program.parameters().into_iter().map(|it| format!(",{}={}", it.key, it.value)).collect();
            let again = format!("{}{set}", program.name());
            assert_eq!(Management::parse("--set", &again), Ok(program), "{again}");
        }
    }
}
