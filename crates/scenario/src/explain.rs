//! Writing: turns typed values into TOML that reads back.

use crate::keys::{Bounded, Choice, Field, KeyVisitor, Table};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// A value as TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// On the line of its key.
    Inline(String),
    /// Under a header of its own.
    Table(Lines),
    /// A choice under a header of its own. It is inherited as a whole or not at all.
    Choice(Lines),
    /// Each under a header in double brackets.
    List(Vec<Lines>),
}

impl Written {
    /// The text on the line of its key; empty if the value has its own lines.
    pub fn inline(self) -> String {
        match self {
            Self::Inline(text) => text,
            _ => String::new(),
        }
    }
}

/// The keys of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines(Vec<Line>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    name: Cow<'static, str>,
    value: Written,
    doc: &'static str,
    /// Whether the value is inherited from another part of the scenario. It is written as a comment, so that it still
    /// follows that part when the text is read back.
    inherited: bool,
}

/// Writes a whole file, with descriptions of its keys or without.
pub(crate) fn document<T: Table>(table: &T, has_docs: bool) -> String {
    let mut text = String::new();
    lines_of(table).render("", false, has_docs, &mut text);
    text
}

pub(crate) fn write_table<T: Table>(table: &T) -> Written {
    Written::Table(lines_of(table))
}

pub(crate) fn write_choice<C: Choice>(choice: &C) -> Written {
    let mut writer = Lines::default();
    choice.clone().keys(&mut writer);
    if writer.0.is_empty() {
        return Written::Inline(quoted(choice.name()));
    }
    let line = Line { name: choice.name().into(), value: Written::Table(writer), doc: "", inherited: false };
    Written::Choice(Lines(vec![line]))
}

/// Writes a text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn lines_of<T: Table>(table: &T) -> Lines {
    let mut lines = Lines::default();
    table.clone().keys(&mut lines);
    lines
}

impl Lines {
    /// Marks the values that are the same as in `base` as inherited.
    fn inherit(&mut self, base: &Self) {
        for line in &mut self.0 {
            if let Some(base) = base.0.iter().find(|other| other.name == line.name) {
                line.inherit(&base.value);
            }
        }
    }

    fn render(&self, path: &str, inherited: bool, has_docs: bool, text: &mut String) {
        for line in &self.0 {
            if let Written::Inline(value) = &line.value {
                let comment = if inherited || line.inherited { "# " } else { "" };
                let shown = format!("{comment}{} = {value}", line.name);
                // The first part of the description; the reference has all of it.
                let end = [". ", "; ", ": "].iter().filter_map(|stop| line.doc.find(stop)).min();
                let doc = end.map_or(line.doc, |end| &line.doc[..end]).trim_end_matches('.');
                let room = if shown.chars().count() < 36 { 36 - shown.chars().count() } else { 1 };
                match doc.is_empty() || !has_docs {
                    true => text.push_str(&format!("{shown}\n")),
                    false => text.push_str(&format!("{shown}{:room$} # {doc}\n", "")),
                }
            }
        }
        for line in &self.0 {
            let path = if path.is_empty() { line.name.to_string() } else { format!("{path}.{}", line.name) };
            let inherited = inherited || line.inherited;
            let comment = if inherited { "# " } else { "" };
            match &line.value {
                Written::Inline(_) => {}
                Written::Table(lines) | Written::Choice(lines) => {
                    // Leave out a header that has no keys of its own.
                    if !matches!(line.value, Written::Choice(_)) {
                        text.push_str(&format!("\n{comment}[{path}]\n"));
                    }
                    lines.render(&path, inherited, has_docs, text);
                }
                Written::List(items) => {
                    for lines in items {
                        text.push_str(&format!("\n{comment}[[{path}]]\n"));
                        lines.render(&path, inherited, has_docs, text);
                    }
                }
            }
        }
    }
}

impl Line {
    fn inherit(&mut self, base: &Written) {
        match (&mut self.value, base) {
            (Written::Table(lines), Written::Table(base)) => lines.inherit(base),
            (value, base) => self.inherited = value == base,
        }
    }
}

impl KeyVisitor for Lines {
    const WRITES: bool = true;

    fn key<T: Field>(&mut self, name: &'static str, field: &mut T, doc: &'static str) {
        self.0.push(Line { name: name.into(), value: field.write(), doc, inherited: false });
    }

    fn within<T: Bounded>(&mut self, name: &'static str, field: &mut T, _bounds: RangeInclusive<T>, doc: &'static str) {
        self.key(name, field, doc);
    }

    fn maybe<T: Field>(&mut self, name: &'static str, field: &mut Option<T>, doc: &'static str) {
        if let Some(value) = field {
            self.key(name, value, doc);
        }
    }

    fn inherited<T: Field>(&mut self, name: &'static str, field: &mut T, from: &T, doc: &'static str) {
        let mut line = Line { name: name.into(), value: field.write(), doc, inherited: false };
        line.inherit(&from.write());
        self.0.push(line);
    }

    fn list<T: Table>(
        &mut self,
        name: &'static str,
        field: &mut Vec<T>,
        fresh: impl Fn(usize) -> T,
        inherited: bool,
        doc: &'static str,
    ) {
        let items = field.iter().enumerate().map(|(index, item)| {
            let mut lines = lines_of(item);
            if inherited {
                lines.inherit(&lines_of(&fresh(index)));
            }
            lines
        });
        let value = Written::List(items.collect());
        self.0.push(Line { name: name.into(), value, doc, inherited: false });
    }

    fn one_of(&mut self, _names: &'static [&'static str], _required: bool) {}
}

impl Lines {
    /// The names, values and descriptions of the keys.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Written, &'static str)> {
        self.0.iter().map(|line| (line.name.as_ref(), &line.value, line.doc))
    }

    /// The name of the first key.
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(|line| line.name.as_ref())
    }

    /// Adds a key whose name is not known at compile time, with its value as TOML.
    pub fn push_owned(&mut self, name: String, value: String) {
        self.0.push(Line { name: name.into(), value: Written::Inline(value), doc: "", inherited: false });
    }
}
