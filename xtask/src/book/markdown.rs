//! The links of a Markdown page, and the places in it that can be linked to.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// The links of a page, and its headings.
pub struct Page {
    /// The links as they are written, including those of pictures.
    pub links: Vec<String>,
    /// The anchors of its headings.
    pub anchors: BTreeSet<String>,
}

impl Page {
    /// Parses a page.
    pub fn parse(text: &str) -> Self {
        let (mut links, mut anchors, mut times) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        let mut heading = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let name = anchor(&heading.take().unwrap_or_default());
                    let before = times.entry(name.clone()).and_modify(|times| *times += 1).or_insert(0_u32);
                    anchors.insert(if *before == 0 { name } else { format!("{name}-{before}") });
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push(dest_url.to_string());
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let named = ["src", "srcset", "href"].into_iter().flat_map(|name| attributes(&html, name));
                    links.extend(named.map(str::to_owned));
                    anchors.extend(attributes(&html, "id").map(str::to_owned));
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        Self { links, anchors }
    }
}

/// The anchor of a heading, as mdBook creates it (and GitHub, for the letters in use here).
fn anchor(heading: &str) -> String {
    let letter = |letter: char| match letter {
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ if letter.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().chars().filter_map(letter).collect()
}

/// The values of an attribute in an HTML text.
pub fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.match_indices(name).filter_map(move |(at, _)| {
        let is_word = html[..at].ends_with(char::is_whitespace);
        let (value, _) = html[at + name.len()..].strip_prefix("=\"")?.split_once('"')?;
        is_word.then_some(value)
    })
}

/// Pages of the folders `docs` and `bench` that a text names by their paths from the root.
pub fn named(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    text.split(move |letter| !is_part(letter))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| (word.starts_with("docs/") || word.starts_with("bench/")) && word.ends_with(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_mdbooks_anchors() {
        for (heading, name) in [
            ("What fits, and what does not", "what-fits-and-what-does-not"),
            ("14d: in a queue", "14d-in-a-queue"),
            ("The switch program `pie-cp`", "the-switch-program-pie-cp"),
            ("`[[flows]]`", "flows"),
            ("Größe 1/2 -- x_y", "größe-12----x_y"),
        ] {
            assert_eq!(Page::parse(&format!("# {heading}\n")).anchors.into_iter().collect::<Vec<_>>(), [name]);
        }
    }

    #[test]
    fn pages_are_named_by_their_paths() {
        let text = "//! See `docs/how-to/tap.md`. And bench/targets.md, ../docs/x.md, docs/report.schema.json.";
        assert_eq!(named(text).collect::<Vec<_>>(), ["docs/how-to/tap.md", "bench/targets.md"]);
    }
}
