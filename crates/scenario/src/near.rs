//! The nearest right name to a wrong one.

/// `did you mean ...?`, if one of the names is near.
pub(crate) fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, names).map(|name| format!("did you mean `{name}`?"))
}

/// The name that takes the fewest changes to make of the wrong one, if they are few.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer, and comparing takes time by the product of both lengths.
    if wrong.is_empty() || wrong.len() > 64 {
        return None;
    }
    let folded = fold(wrong);
    names
        .filter(|name| !name.is_empty())
        .map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name))
        .filter(|(distance, name)| *distance <= (name.len().min(wrong.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Case, and how words are joined, are no difference.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let names = ["rate", "delay", "limit", "discipline", "fq-codel"];
        let near = |wrong| nearest(wrong, names.iter().copied());
        assert_eq!(near("rates"), Some("rate"));
        assert_eq!(near("dleay"), Some("delay"));
        assert_eq!(near("fqcodel"), Some("fq-codel"));
        assert_eq!(near("FQ_CoDel"), Some("fq-codel"));
        assert_eq!(near("dicsiplin"), Some("discipline"));
        assert_eq!(near("bandwidth"), None);
        assert_eq!(near("name"), None, "half of it is other than `rate`");
        assert_eq!(near(""), None);
        assert_eq!(near(&"rate".repeat(1000)), None);
    }
}
