//! Sets of hosts, by patterns of their names.

use std::collections::BTreeSet;
use std::fmt;

/// Hosts whose names match one of some patterns, in which `*` is any number of characters; without patterns, all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    patterns: Vec<String>,
}

impl Hosts {
    /// Hosts that match one of these patterns.
    pub fn new(patterns: Vec<String>) -> Self {
        Self { patterns }
    }

    /// Whether a host belongs to the set.
    pub fn contains(&self, name: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| matches(pattern, name))
    }

    /// The hosts of the set: those of `known` that match, and names without `*` even if nothing is known of them, so that they are missed.
    pub fn of<'a>(&self, known: impl Iterator<Item = &'a str>) -> Vec<String> {
        let named = self.patterns.iter().filter(|pattern| !pattern.contains('*')).cloned();
        let all: BTreeSet<_> = known.filter(|name| self.contains(name)).map(str::to_owned).chain(named).collect();
        all.into_iter().collect()
    }
}

impl fmt::Display for Hosts {
    /// As a program has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.patterns)
    }
}

/// Whether a name is of a pattern. The parts between the asterisks are found from left to right, each as early as possible; the last one must be at
/// the end.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return name.ends_with(rest) };
    for part in middle.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: `*` is nothing, or one character and another `*`.
    fn slow(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], _) if slow(rest, name) => true,
            ([b'*', ..], [_, more @ ..]) => slow(pattern, more),
            ([a, rest @ ..], [b, more @ ..]) => a == b && slow(rest, more),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_defined(pattern in "[ab*]{0,7}", name in "[ab]{0,9}") {
            prop_assert_eq!(matches(&pattern, &name), slow(pattern.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn names_are_missed_and_patterns_are_not() {
        let hosts = Hosts::new(vec!["web-*".to_owned(), "db-1".to_owned()]);
        assert_eq!(hosts.of(["web-1", "web-2", "mail"].into_iter()), ["db-1", "web-1", "web-2"]);
        assert_eq!(Hosts::default().of(["a", "b"].into_iter()), ["a", "b"]);
    }
}
