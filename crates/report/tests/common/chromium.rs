//! A headless browser, and the messages of pages that it opens.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Writes a page, with `script` at its end.
pub fn page(write: impl FnOnce(&mut File) -> io::Result<()>, script: &str, directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(format!("{name}.html"));
    let mut file = File::create(&path).unwrap();
    write(&mut file).unwrap();
    writeln!(file, "<script>{script}</script>").unwrap();
    path
}

/// Opens the pages as frames of one page, at burst 1, each with its width, and returns the messages that they post to
/// it.
pub fn messages(directory: &Path, pages: &[(PathBuf, u32)]) -> Option<Vec<String>> {
    let frames: Vec<String> = pages
        .iter()
        .map(|(page, width)| {
            format!("<iframe src='file://{}#burst-1' width={width} height=300></iframe>", page.display())
        })
        .collect();
    let note = "onmessage = ({ data }) => document.body.append(document.createElement('hr'), data)";
    let outer = directory.join("frames.html");
    let style = "iframe { border: 0 }";
    std::fs::write(&outer, format!("<body><script>{note}</script><style>{style}</style>{}", frames.concat())).unwrap();
    let dom = opened(directory, &outer, "")?;
    let messages: Vec<String> =
        dom.split("<hr>").skip(1).map(|text| unescaped(text.split("</body>").next().unwrap_or(text))).collect();
    assert_eq!(messages.len(), pages.len(), "every page posts a message: {messages:?}");
    Some(messages)
}

/// The browser of this machine, if it is installed.
static BROWSER: LazyLock<Option<&str>> = LazyLock::new(|| {
    let works = |browser: &&str| {
        let version = Command::new(browser).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works);
    if browser.is_none() {
        eprintln!("skipped: chromium is not installed");
    }
    browser
});

/// The contents of a page after its scripts have run; none without a browser.
pub fn opened(directory: &Path, page: &Path, fragment: &str) -> Option<String> {
    let browser = (*BROWSER)?;
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=2000,2000",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}{fragment}", page.display()))
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Checks that the scripts of a page reached their end without an error.
pub fn sound(dom: &str) -> String {
    assert!(dom.contains("data-ready=\"true\""), "the script did not reach its end:\n{}", root(dom));
    assert!(!dom.contains("data-errors"), "{}", root(dom));
    dom.to_owned()
}

/// The opening tag, which has the state of the page.
pub fn root(dom: &str) -> &str {
    dom.lines().find(|line| line.contains("<html")).unwrap_or("no page at all")
}

/// The text of a part of a page.
pub fn words(html: &str) -> String {
    unescaped(&html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect::<String>())
}

pub fn unescaped(text: &str) -> String {
    text.replace("&gt;", ">").replace("&lt;", "<").replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}

/// A text in a message, with plain spaces before units.
pub fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap().replace('\u{202f}', " ")
}

/// A list of texts in a message.
pub fn strings(value: &serde_json::Value) -> Vec<String> {
    value.as_array().unwrap_or_else(|| panic!("a list: {value}")).iter().map(text).collect()
}
