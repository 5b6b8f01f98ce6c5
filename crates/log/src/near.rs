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
        .map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name))
        .filter(|(distance, name)| *distance <= (name.len().min(wrong.len()) / 3).max(1) && *distance < folded.len())
        .min_by_key(|(distance, name)| (*distance, strsim::damerau_levenshtein(wrong, name)))
        .map(|(_, name)| name)
}

/// Case, and how words are joined, are no difference.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '.')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let near = |wrong| nearest(wrong, ["src_ip", "dst_ip", "dst_port", "ts"].into_iter());
        assert_eq!(near("dstport"), Some("dst_port"));
        assert_eq!(near("DST_PROT"), Some("dst_port"));
        assert_eq!(near("srcip"), Some("src_ip"));
        assert_eq!(
            nearest("dst_prot", ["dstPort", "dst_port"].into_iter()),
            Some("dst_port"),
            "it is joined the same way"
        );
        assert_eq!(near("bandwidth"), None);
        assert_eq!(near("a"), None, "one letter is near to nothing");
        assert_eq!(near(""), None);
        assert_eq!(near(&"ts".repeat(100)), None);
    }
}
