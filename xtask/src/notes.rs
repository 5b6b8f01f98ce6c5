//! Generates the book's page of report notes from the code that makes them.

use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, FieldValue, Lit, Member, Pat, Token};

/// The page.
pub const PAGE: &str = "docs/reference/notes.md";

const ABOUT: &str = "\
# Notes of reports

Each stage counts what it skipped, cut short or corrected. In text these counts are the lines that begin with `note`, in JSON the field `skipped` of the
`summary`, as counts by reason. This page lists the reasons with their meanings. It is made from the code by
`cargo xtask notes --write`; where a meaning has a value of the run in it, this page has `…`.
";

/// The parts of the page: titles, and their files, the most specific path first.
const PARTS: &[(&str, &[&str])] = &[
    ("Headers of packets", &["crates/wire"]),
    (
        "Captures on both sides of a router (`tap`): notes, and what became of packets",
        &["crates/ingest/src/tap", "crates/meter/src/tap"],
    ),
    ("Captures and tables", &["crates/ingest", "crates/run"]),
    ("Analysis", &["crates/analysis"]),
    ("Folders, captures and tables that are written; queries", &["crates/recording"]),
    ("An interface (`live`)", &["crates/monitor"]),
    ("Load (`traffic`)", &["crates/link/src/traffic"]),
    ("A link in user space (`link`)", &["crates/link"]),
    ("`capture`, and standard output", &["crates/cli"]),
];

/// Notes whose reasons the code composes: file, a text that must be in it, reason, meaning.
const PUT_TOGETHER: &[(&str, &str, &str, &str)] = &[
    (
        "crates/ingest/src/packet_filter.rs",
        "\"left_out_by_input\"",
        "left_out_by_input",
        "packets that `--input` does not match",
    ),
    (
        "crates/ingest/src/packet_filter.rs",
        "\"left_out_by_where\"",
        "left_out_by_where",
        "packets that `--where` does not match",
    ),
    (
        "crates/ingest/src/packet_filter.rs",
        "\"not_victims\"",
        "not_victims",
        "packets that `--victims` does not match: part of the queue, but not examined",
    ),
    (
        "crates/recording/src/spool.rs",
        "Unwritten::new(\"pcapng\"",
        "pcapng_unwritten",
        "packets that are not in the capture (`--pcapng`), because it could not be written",
    ),
    (
        "crates/recording/src/spool.rs",
        "{}_unwritten_bytes\"",
        "pcapng_unwritten_bytes",
        "bytes that these packets would have taken",
    ),
    (
        "crates/recording/src/recording.rs",
        "Unwritten::new(\"log\"",
        "log_unwritten",
        "packets that are not in the folder (`--log`), because it could not be written",
    ),
    (
        "crates/recording/src/outputs.rs",
        "Unwritten::new(\"parquet\"",
        "parquet_unwritten",
        "packets that are not in the table (`--parquet`), because it could not be written",
    ),
    (
        "crates/recording/src/telemetry.rs",
        "Unwritten::new(\"telemetry\"",
        "telemetry_unwritten",
        "packets that are not in the table of `--telemetry`, because it could not be written",
    ),
];

/// Prints the page, or writes it with `--write`.
pub fn run(arguments: &[String]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = page(&root)?;
    match arguments {
        [] => print!("{page}"),
        [write] if write == "--write" => fs::write(root.join(PAGE), page)?,
        _ => bail!("'{}' is not expected here", arguments.join(" ")),
    }
    Ok(())
}

/// The page for the current code.
pub fn page(root: &Path) -> Result<String> {
    let mut parts = vec![BTreeMap::new(); PARTS.len()];
    let mut paths = Vec::new();
    sources(root, Path::new("crates"), &mut paths)?;
    let mut constants = BTreeMap::new();
    for path in &paths {
        let text = fs::read_to_string(root.join(path))?;
        if text.contains("const ") && text.contains("&str = ") {
            let file = syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
            let mut texts = Texts::default();
            texts.visit_file(&file);
            let known: &mut BTreeMap<String, BTreeSet<String>> = constants.entry(package(path)).or_default();
            let all_upper = |name: &String| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            for (name, text) in texts.0.into_iter().filter(|(name, _)| all_upper(name)) {
                known.entry(name).or_default().insert(text);
            }
        }
    }
    for path in &paths {
        let text = fs::read_to_string(root.join(path))?;
        if !text.contains("noted(") && !text.contains("Skipped {") && !text.contains("counters! {") {
            continue;
        }
        let file = syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        // A constant of another file of the crate, if its name is unique there.
        let known = constants.get(&package(path)).into_iter().flatten();
        let only = known.filter(|(_, texts)| texts.len() == 1);
        let others = only.filter_map(|(name, texts)| Some((name.clone(), texts.first()?.clone()))).collect();
        let notes = notes(&file, others);
        for (reason, meaning) in notes.with_context(|| format!("a note of {}", path.display()))? {
            let part = part(path)
                .with_context(|| format!("{} makes notes; give it a part in xtask/src/notes.rs", path.display()))?;
            parts[part].entry(reason).or_insert_with(BTreeSet::new).insert(meaning);
        }
    }
    for (file, text, reason, meaning) in PUT_TOGETHER {
        ensure!(fs::read_to_string(root.join(file))?.contains(text), "{file} has no {text}; change xtask/src/notes.rs");
        let part = part(Path::new(file)).with_context(|| format!("{file} has no part"))?;
        parts[part].entry((*reason).to_owned()).or_default().insert((*meaning).to_owned());
    }
    let mut page = ABOUT.to_owned();
    for ((title, _), notes) in PARTS.iter().zip(&parts) {
        page += &format!("\n## {title}\n\n| reason | meaning |\n| --- | --- |\n");
        for (reason, meanings) in notes {
            let meanings: Vec<_> = meanings.iter().map(|meaning| cell(meaning)).collect();
            page += &format!("| `{reason}` | {} |\n", meanings.join("; or: "));
        }
    }
    Ok(page)
}

/// The folder of a file's crate.
fn package(file: &Path) -> PathBuf {
    file.components().take(2).collect()
}

/// The part of the page with a file's notes.
fn part(file: &Path) -> Option<usize> {
    PARTS.iter().position(|(_, folders)| folders.iter().any(|folder| file.starts_with(folder)))
}

/// All sources of crates, in order.
fn sources(root: &Path, folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(root.join(folder))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    entries.sort();
    for entry in entries {
        let Some(name) = entry.file_name() else { continue };
        let path = folder.join(name);
        if entry.is_dir() {
            if !["tests", "examples", "benches", "target"].iter().any(|other| name == *other) {
                sources(root, &path, paths)?;
            }
        } else if path.extension().is_some_and(|it| it == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Reasons and meanings of the notes that a file makes. `others` are named texts of other files.
fn notes(file: &syn::File, others: BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    let mut texts = Texts::default();
    texts.visit_file(file);
    for (name, text) in others {
        texts.0.entry(name).or_insert(text);
    }
    let mut found = Found { texts: &texts.0, notes: Vec::new(), unclear: Vec::new() };
    found.visit_file(file);
    ensure!(found.unclear.is_empty(), "the file does not show the meaning of {}", found.unclear.join(", "));
    Ok(found.notes)
}

/// Named texts of a file: constants and variables.
#[derive(Default)]
struct Texts(BTreeMap<String, String>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.name(item.ident.to_string(), &item.expr);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init) {
            self.name(name.ident.to_string(), &init.expr);
        }
        visit::visit_local(self, local);
    }
}

impl Texts {
    fn name(&mut self, name: String, value: &Expr) {
        if let Some(text) = text(value, &self.0) {
            self.0.entry(name).or_insert(text);
        }
    }
}

/// Collects the notes that a file makes.
struct Found<'a> {
    texts: &'a BTreeMap<String, String>,
    notes: Vec<(String, String)>,
    /// Reasons without a recognisable meaning.
    unclear: Vec<String>,
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let is_noted = matches!(&*call.func, Expr::Path(it) if it.path.is_ident("noted"));
        if let (true, [reason, _, meaning]) = (is_noted, &*call.args.iter().collect::<Vec<_>>()) {
            self.add(reason, meaning);
        }
        visit::visit_expr_call(self, call);
    }

    /// A row of a table of notes.
    fn visit_expr_tuple(&mut self, tuple: &'ast syn::ExprTuple) {
        if let [reason, count, meaning] = &*tuple.elems.iter().collect::<Vec<_>>()
            && matches!(count, Expr::Field(_))
            && text(meaning, self.texts).is_some()
        {
            self.add(reason, meaning);
        }
        visit::visit_expr_tuple(self, tuple);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        let field = |name: &str| {
            let is_it = |member: &Member| matches!(member, Member::Named(ident) if ident == name);
            it.fields.iter().find(|field| is_it(&field.member)).map(|field| &field.expr)
        };
        if it.path.segments.last().is_some_and(|last| last.ident == "Skipped")
            && let (Some(reason), Some(meaning)) = (field("reason"), field("meaning"))
        {
            self.add(reason, meaning);
        }
        visit::visit_expr_struct(self, it);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let parser = Punctuated::<FieldValue, Token![,]>::parse_terminated;
        if item.mac.path.is_ident("counters")
            && let Ok(fields) = item.mac.parse_body_with(parser)
        {
            for field in fields {
                if let (Member::Named(name), Some(meaning)) = (&field.member, text(&field.expr, self.texts))
                    && name != "frames"
                {
                    self.notes.push((name.to_string(), meaning));
                }
            }
        }
    }
}

impl Found<'_> {
    /// Adds a note, if its reason is a word.
    fn add(&mut self, reason: &Expr, meaning: &Expr) {
        let none = BTreeMap::new();
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        let is_word = |text: &String| text.chars().all(is_letter);
        if let Some(reason) = text(reason, &none).filter(is_word) {
            match text(meaning, self.texts) {
                Some(meaning) => self.notes.push((reason, meaning)),
                None => self.unclear.push(reason),
            }
        }
    }
}

/// The text of an expression, if it can be determined; inserted values become `…`.
fn text(expr: &Expr, names: &BTreeMap<String, String>) -> Option<String> {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        Expr::Reference(it) => text(&it.expr, names),
        Expr::Unary(it) => text(&it.expr, names),
        // The text for a value, if there is one.
        Expr::MethodCall(call) if call.method == "map" => match call.args.first()? {
            Expr::Closure(closure) => text(&closure.body, names),
            _ => None,
        },
        Expr::MethodCall(call) if call.method.to_string().starts_with("unwrap_or") => text(&call.receiver, names),
        Expr::MethodCall(call) if call.method == "to_owned" || call.method == "to_string" => {
            text(&call.receiver, names)
        }
        Expr::Path(path) => names.get(&path.path.get_ident()?.to_string()).cloned(),
        Expr::If(it) => {
            let last = |block: &syn::Block| match block.stmts.last()? {
                syn::Stmt::Expr(expr, None) => text(expr, names),
                _ => None,
            };
            let (_, other) = it.else_branch.as_ref()?;
            let other = match &**other {
                Expr::Block(block) => last(&block.block),
                expr => text(expr, names),
            };
            Some(format!("{}; or: {}", last(&it.then_branch)?, other?))
        }
        Expr::Macro(it) if it.mac.path.is_ident("format") => {
            let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
            text(it.mac.parse_body_with(parser).ok()?.first()?, names).map(|text| filled(&text))
        }
        Expr::Macro(it) if it.mac.path.is_ident("concat") => {
            let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
            it.mac.parse_body_with(parser).ok()?.iter().map(|part| text(part, names)).collect()
        }
        _ => None,
    }
}

/// The text of a `format!` string, with `…` for inserted values.
fn filled(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out += before;
        if let Some(after) = after.strip_prefix('{') {
            out.push('{');
            rest = after;
        } else {
            out.push('…');
            rest = after.split_once('}').map_or("", |(_, after)| after);
        }
    }
    (out + rest).replace("}}", "}")
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_found_however_they_are_written() {
        let file = "
            const GONE: &str = \"it is gone\";
            fn notes() {
                let late = format!(\"packets late by {} and {{}}\", by);
                let split = if on { \"split\" } else { \"not split\" };
                noted(\"late\", count, &late);
                noted(\"split\", count, split);
                noted(\"gone\", 1, GONE);
                noted(&format!(\"{}_unwritten\", what), 1, GONE);
                noted(name, 1, \"unknown\");
                let rows = [(\"zeros\", read.holes, \"zeros\"), (\"other\", 3, \"no count\")];
                let skipped = Skipped { reason: \"short\".to_owned(), count, meaning: \"too short\".to_owned() };
            }
            counters! { frames: \"all\", cut: \"cut short\", }
            mod tests { fn not() { noted(\"test\", 1, \"of a test\"); } }
        ";
        let mut found =
            notes(&syn::parse_file(file).expect("it is Rust"), BTreeMap::new()).expect("each has a meaning");
        found.sort();
        let found: Vec<_> = found.iter().map(|(reason, meaning)| (&**reason, &**meaning)).collect();
        assert_eq!(
            found,
            [
                ("cut", "cut short"),
                ("gone", "it is gone"),
                ("late", "packets late by … and {}"),
                ("short", "too short"),
                ("split", "split; or: not split"),
                ("zeros", "zeros"),
            ]
        );
    }

    #[test]
    fn a_note_whose_meaning_is_elsewhere_is_an_error() {
        let file = syn::parse_file("fn notes() { noted(\"late\", count, super::LATE); }").expect("it is Rust");
        assert!(notes(&file, BTreeMap::new()).is_err_and(|error| error.to_string().contains("late")));
        let others = BTreeMap::from([("LATE".to_owned(), "too late".to_owned())]);
        let file = syn::parse_file("fn notes() { noted(\"late\", count, LATE); }").expect("it is Rust");
        assert_eq!(notes(&file, others).expect("it has a meaning"), [("late".to_owned(), "too late".to_owned())]);
    }
}
