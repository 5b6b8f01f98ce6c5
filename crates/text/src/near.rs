//! The correct name that is most similar to a wrong one.

/// Returns `did you mean ...?` if one of the names is similar.
pub fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, names).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the name with the fewest edits from the wrong one, if they are few.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer, and the comparison takes time proportional to the product of both lengths.
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

/// Ignores case and how words are joined.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}
