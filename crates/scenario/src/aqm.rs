//! The short form of a discipline or switch program: `codel,target=10ms`.

use crate::dom::{Entry, Node};
use crate::params::with_limit;
use crate::scenario::Scenario;
use crate::set::{Override, PathSegment, chosen, parts, segments, set};
use queuescope_queue::{DisciplineParams, Limit, PipelineParams};
use queuescope_text::{Place, Problem, TextError, nearest, quoted};
use std::collections::BTreeSet;
use std::ops::Range;

/// How a queue is managed: by a discipline, or by a switch program around a tail-drop queue. The limit is not set.
#[derive(Debug, Clone, PartialEq)]
pub enum Management {
    /// A discipline.
    Discipline(DisciplineParams),
    /// A switch program.
    Program(PipelineParams),
}

impl Management {
    /// Reads a name with parameters as in scenarios: `pie`, `codel,target=10ms,interval=200ms`,
    /// `multi-queue,scheduler=strict-priority`. `option` is its name in messages.
    ///
    /// # Errors
    /// Returns the problems, with their places in `text`.
    pub fn parse(option: &'static str, text: &str) -> Result<Self, TextError> {
        Self::of(option, &[Override::aqm(option, text)])
    }

    /// What the link of a scenario has with these overrides.
    fn of(option: &'static str, overrides: &[Override]) -> Result<Self, TextError> {
        let link = Scenario::parse(option, NETWORK, overrides)?.link;
        Ok(match link.pipeline {
            Some(program) => Self::Program(program),
            None => Self::Discipline(link.discipline),
        })
    }

    /// Reads the same, with further parameters: each is `KEY=VALUE`, and a text of its own in messages.
    ///
    /// # Errors
    /// Returns the problems, with their places in these texts.
    pub fn parse_with(option: &'static str, text: &str, parameters: &[String]) -> Result<Self, TextError> {
        let first = parts(text).into_iter().next().unwrap_or(0..0);
        let name = names().find(|name| *name == text[first.clone()].trim()).unwrap_or_default();
        let parameters = parameters.iter().map(|it| Override::parameter(option, name, it.clone()));
        Self::of(option, &[Override::aqm(option, text)].into_iter().chain(parameters).collect::<Vec<_>>())
    }

    /// The same discipline or program with this limit.
    #[must_use]
    pub fn with_limit(self, limit: Limit) -> Self {
        match self {
            Self::Discipline(params) => Self::Discipline(with_limit(&params, limit)),
            Self::Program(params) => Self::Program(params.with_limit(limit)),
        }
    }

    /// The name in scenarios and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Discipline(params) => params.name(),
            Self::Program(params) => params.name(),
        }
    }

    /// Splits a comma-separated list of such texts. A part with an equals sign is a parameter of the name before it.
    pub fn split(text: &str) -> Vec<&str> {
        let mut spans = Vec::<Range<usize>>::new();
        for part in parts(text) {
            let is_parameter = parameter(text[part.clone()].trim()).is_some();
            match spans.last_mut().filter(|_| is_parameter) {
                Some(last) => last.end = part.end,
                None => spans.push(part),
            }
        }
        spans.into_iter().map(|span| text[span].trim()).collect()
    }
}

/// A short scenario. Its link is fast, so that no parameter is refused because of it.
const NETWORK: &str = "[link]\nrate = \"1000gbps\"\n[[flows]]\n";

/// Sets the discipline or program of `link` from a text, which is source `source`. Returns the entries that it
/// replaced.
pub(crate) fn apply(text: &str, source: usize, root: &mut Node) -> Result<Vec<Entry>, Problem> {
    let mut parts = parts(text).into_iter();
    let first = parts.next().unwrap_or(0..0);
    let value = Node::bare(&text[first.clone()], source, first.start);
    let place = value.place.clone();
    let name = chosen(&value).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(Problem::new("no discipline is given")
            .at(place, "a name is missing here")
            .help(format!("there are {}", names().collect::<Vec<_>>().join(", "))));
    }
    if !names().any(|known| known == name) {
        let near = nearest(&name, names()).or_else(|| names().find(|known| known.starts_with(&name)));
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let help = format!("{near}there are {}", names().collect::<Vec<_>>().join(", "));
        let wrong = Problem::new(format!("no discipline or switch program is named '{}'", quoted(&name)));
        return Err(wrong.at(place, "not one of them").help(help));
    }
    let path: Vec<_> = place_of(&name).map(|name| PathSegment::new(name, place.clone())).into();
    let mut replaced = set(root, &path, value)?;
    let mut names_set = BTreeSet::new();
    for part in parts {
        let Some((key, value)) = parameter(&text[part.clone()]) else {
            return Err(Problem::new("a parameter has no '='")
                .at(Place { source, span: part }, "nothing is set here")
                .help(format!("write NAME,KEY=VALUE, for example {name},target=10ms")));
        };
        if key.trim() == "limit" {
            return Err(Problem::new("the limit is not a parameter of the discipline")
                .at(Place { source, span: part }, "a limit")
                .help("use --limit"));
        }
        if !names_set.insert(key.trim()) {
            return Err(Problem::new(format!("'{}' is set twice", quoted(key.trim())))
                .at(Place { source, span: part }, "set again here")
                .help("give each parameter one value"));
        }
        let value = Node::bare(value, source, part.start + key.len() + 1);
        let below = segments(key, source, part.start);
        let path: Vec<_> = path.iter().cloned().chain([PathSegment::new(&name, place.clone())]).chain(below).collect();
        replaced.extend(set(root, &path, value)?);
    }
    Ok(replaced)
}

/// The keys of a scenario below which a discipline or a switch program is.
fn place_of(name: &str) -> [&'static str; 2] {
    ["link", if PipelineParams::NAMES.contains(&name) { "pipeline" } else { "discipline" }]
}

/// The path to a parameter of a discipline or a switch program. The key begins where `place` does.
pub(crate) fn path(name: &str, key: &str, place: &Place) -> Vec<PathSegment> {
    let below = segments(key, place.source, place.span.start);
    let above = place_of(name).into_iter().chain([name]).map(|name| PathSegment::new(name, place.clone()));
    above.chain(below).collect()
}

/// The key and the value of a parameter, if it is one.
fn parameter(part: &str) -> Option<(&str, &str)> {
    part.split_once('=').filter(|(key, _)| !key.trim_start().starts_with('{'))
}

/// All disciplines, then all switch programs.
fn names() -> impl Iterator<Item = &'static str> {
    DisciplineParams::NAMES.iter().chain(PipelineParams::NAMES).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::{CodelParams, MultiQueueParams, Scheduler};
    use queuescope_wire::Nanos;

    fn parse(text: &str) -> Result<Management, String> {
        Management::parse("--aqm", text).map_err(|error| error.to_string())
    }

    /// Parameters with a text of their own are the same, and errors are about that text.
    #[test]
    fn parameters_have_texts_of_their_own() {
        let with = |text: &str, set: &[&str]| {
            let set: Vec<_> = set.iter().map(|it| (*it).to_owned()).collect();
            Management::parse_with("--set", text, &set).map_err(|error| error.to_string())
        };
        assert_eq!(with("codel", &["target=10ms", " ecn = true"]), parse("codel,target=10ms,ecn=true"));
        assert_eq!(with("pie-dp,act=false", &["target=1ms"]), parse("pie-dp,act=false,target=1ms"));
        assert_eq!(with("pie-cp", &["gains.alpha=0.5"]), parse("pie-cp,gains.alpha=0.5"));
        for (set, text, why) in [
            ("targt=1ms", "targt=1ms", "unknown key"),
            ("target=never", "target=never", "target"),
            ("target", "target", "nothing is set here"),
        ] {
            let error = with("pie-dp", &[set]).expect_err("it is not valid");
            assert!(error.contains(text) && error.contains(why) && !error.contains("pie-dp,"), "{error}");
        }
        assert!(with("pye", &["target=1ms"]).is_err_and(|error| error.contains("pye")));
    }

    #[test]
    fn each_name_is_read_with_its_defaults() {
        for params in DisciplineParams::defaults() {
            assert_eq!(parse(params.name()), Ok(Management::Discipline(params)));
        }
        for params in PipelineParams::defaults() {
            assert_eq!(parse(params.name()), Ok(Management::Program(params)));
        }
    }

    #[test]
    fn parameters_are_those_of_scenarios() {
        let codel = CodelParams { target: Nanos(10_000_000), ..CodelParams::default() };
        let codel = Ok(Management::Discipline(DisciplineParams::Codel(codel)));
        assert_eq!(parse("codel, target = 10ms"), codel);
        assert_eq!(parse("{ codel = { target = \"10ms\" } }"), codel);
        let queues = MultiQueueParams { scheduler: Scheduler::StrictPriority, ..MultiQueueParams::default() };
        let queues = Ok(Management::Discipline(DisciplineParams::MultiQueue(queues)));
        assert_eq!(parse("multi-queue,scheduler=strict-priority"), queues);
    }

    #[test]
    fn errors_point_into_the_text() {
        for (text, wrong, help) in [
            ("nonsense", "no discipline or switch program is named 'nonsense'", "conquest-aqm, abc"),
            ("fq-codl", "no discipline or switch program is named 'fq-codl'", "did you mean `fq-codel`?"),
            ("conquest-aqn", "no discipline or switch program is named 'conquest-aqn'", "did you mean `conquest-aqm`?"),
            ("conquest", "is named 'conquest'", "did you mean `conquest-aqm`?"),
            ("codel,limit=10", "not a parameter", "use --limit"),
            ("codel,tagret=10ms", "`codel` has no key 'tagret'", "did you mean `target`?"),
            ("codel,target=soon", "[--aqm:1:14]", "target"),
            ("codel,10ms", "a parameter has no '='", "codel,target=10ms"),
            ("codel,target=5ms, target = 10ms", "'target' is set twice", "one value"),
            ("", "no discipline is given", "there are tail-drop"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(wrong) && error.contains(help) && error.contains("[--aqm:"), "{text}: {error}");
        }
    }

    #[test]
    fn parameters_in_a_list_belong_to_the_name_before_them() {
        let list = "tail-drop, codel,target=10ms,interval=200ms,{ pie = { ecn = true, target = \"1ms\" } },pi2";
        let parts =
            ["tail-drop", "codel,target=10ms,interval=200ms", "{ pie = { ecn = true, target = \"1ms\" } }", "pi2"];
        assert_eq!(Management::split(list), parts);
    }
}
