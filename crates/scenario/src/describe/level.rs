//! The tables and choices along a path of keys, so that an override knows which other keys it excludes.

use super::{ChoiceInfo, KeyInfo, TableInfo, ValueKind, inner};

/// A table or a choice on a path of keys.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathLevel<'a> {
    /// A table or a list of tables, and whether its defaults come from another part of the scenario.
    Table(&'a TableInfo, bool),
    /// The options of a choice.
    Choice(&'a [ChoiceInfo]),
    /// Anything else.
    Other,
}

impl<'a> PathLevel<'a> {
    /// The level below a key.
    pub fn below(self, name: &str) -> Self {
        match self {
            Self::Table(info, _) => {
                let Some(key) = info.keys.iter().find(|key| key.name == name) else { return Self::Other };
                match inner(&key.kind) {
                    ValueKind::Table(info) | ValueKind::Tables(info) => Self::Table(info, key.inherited),
                    ValueKind::Choice { options, .. } => Self::Choice(options),
                    _ => Self::Other,
                }
            }
            Self::Choice(options) => {
                let option = options.iter().find(|option| option.name == name);
                option.map_or(Self::Other, |option| Self::Table(&option.keys, false))
            }
            Self::Other => Self::Other,
        }
    }

    /// Whether two keys exclude each other.
    pub fn excludes(self, name: &str, other: &str) -> bool {
        name != other
            && match self {
                Self::Table(info, _) => {
                    info.groups.iter().any(|(names, _)| names.contains(&name) && names.contains(&other))
                }
                Self::Choice(_) => true,
                Self::Other => false,
            }
    }

    /// Whether a table has a key that excludes this one: one that is `written`, or else one by default.
    pub fn has_instead(self, name: &str, written: impl Fn(&str) -> bool) -> bool {
        let Self::Table(info, inherited) = self else { return false };
        let mut groups = info.groups.iter().filter(|(names, _)| names.contains(&name));
        groups.any(|(names, _)| {
            let by_default = !inherited && !names.iter().any(|name| written(name));
            let stands = |key: &KeyInfo| if by_default { key.default.is_some() } else { written(key.name) };
            info.keys.iter().any(|key| key.name != name && names.contains(&key.name) && stands(key))
        })
    }

    /// The rivals of a key ([`KeyVisitor::rivals`](crate::keys::KeyVisitor::rivals)): the key's own neutral value, and
    /// each rival with its neutral value.
    pub fn rivals(self, name: &str) -> impl Iterator<Item = (&'static str, (&'static str, &'static str))> {
        let rivals = match self {
            Self::Table(info, _) => info.rivals.as_slice(),
            _ => &[],
        };
        let both = rivals.iter().flat_map(|[one, other]| [(*one, *other), (*other, *one)]);
        both.filter(move |(own, _)| own.0 == name).map(|(own, other)| (own.1, other))
    }
}
