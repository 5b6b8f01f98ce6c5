//! What a path of keys goes through, so that an override knows what cannot stand beside what it sets.

use super::{ChoiceInfo, Kind, TableInfo, inner};

/// What a path of keys goes through.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level<'a> {
    /// A table, or a list of such.
    Table(&'a TableInfo),
    /// The name of a choice.
    Choice(&'a [ChoiceInfo]),
    /// Nothing that is known of.
    Other,
}

impl<'a> Level<'a> {
    /// What is below a key.
    pub fn below(self, name: &str) -> Self {
        match self {
            Self::Table(info) => {
                let key = info.keys.iter().find(|key| key.name == name);
                match key.map(|key| inner(&key.kind)) {
                    Some(Kind::Table(info) | Kind::Tables(info)) => Self::Table(info),
                    Some(Kind::Choice { options, .. }) => Self::Choice(options),
                    _ => Self::Other,
                }
            }
            Self::Choice(options) => {
                let option = options.iter().find(|option| option.name == name);
                option.map_or(Self::Other, |option| Self::Table(&option.keys))
            }
            Self::Other => Self::Other,
        }
    }

    /// Whether a key can only stand there without another.
    pub fn excludes(self, name: &str, other: &str) -> bool {
        name != other
            && match self {
                Self::Table(info) => {
                    info.groups.iter().any(|(names, _)| names.contains(&name) && names.contains(&other))
                }
                Self::Choice(_) => true,
                Self::Other => false,
            }
    }

    /// The keys that a key can only stand beside with a certain value: with the key's own value that leaves them alone,
    /// and with theirs.
    pub fn rivals(self, name: &str) -> impl Iterator<Item = (&'static str, (&'static str, &'static str))> {
        let rivals = match self {
            Self::Table(info) => info.rivals.as_slice(),
            _ => &[],
        };
        let both = rivals.iter().flat_map(|[one, other]| [(*one, *other), (*other, *one)]);
        both.filter(move |(own, _)| own.0 == name).map(|(own, other)| (own.1, other))
    }
}
