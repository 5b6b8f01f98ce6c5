//! The nearest right name to a wrong one.

/// `did you mean ...?`, if one of the names is near.
pub fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, names).map(|name| format!("did you mean `{name}`?"))
}

/// The name that takes the fewest changes to make of the wrong one, if they are few.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer, and comparing takes time by the product of both lengths.
    if wrong.is_empty() || wrong.len() > 64 {
        return None;
    }
    let folded = fold(wrong);
    names
        .map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name))
        .filter(|(distance, name)| *distance <= (name.len().min(wrong.len()) / 3).max(1) && *distance < folded.len())
        .min_by_key(|(distance, name)| (*distance, strsim::damerau_levenshtein(wrong, name)))
        .map(|(_, name)| name)
}

/// Case, and how words are joined, are no difference.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}
