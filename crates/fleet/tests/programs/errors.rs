//! Error messages for wrong programs: each file in `wrong/` with the messages about it.
//!
//! After a change, `UPDATE_GOLDEN=1 cargo test -p queuescope-fleet --test it programs::errors` rewrites the texts; read them.

use queuescope_fleet::program::Program;
use std::path::Path;

#[test]
fn each_mistake_in_a_program_is_shown_under_a_caret() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/wrong");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == "toml"));
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.file_name().expect("it has one").to_string_lossy();
        let shown = match Program::parse(&name, &text, &[]) {
            Ok(_) => panic!("{name}: nothing is wrong with it"),
            Err(error) => error.render(100, false),
        };
        let golden = path.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, shown).expect("the text is written");
            continue;
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(shown, expected, "{}: if that is better, UPDATE_GOLDEN=1", path.display());
    }
}

#[test]
fn two_parts_for_a_host_do_not_define_the_same() {
    let part = "[[install]]\nhosts = [\"HOSTS\"]\n[[install.filter]]\nname = \"web\"\nexpression = \"tcp port 443\"\n";
    let text = ["web-*", "*-1"].map(|hosts| part.replace("HOSTS", hosts)).concat();
    let program = Program::parse("parts", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let filters = |host: &str| program.definitions(host).map(|all| all.map_or(0, |all| all.filters().len()));
    assert_eq!(filters("web-2").ok(), Some(1));
    assert_eq!(filters("mail").ok(), Some(0));
    assert!(filters("web-1").is_err_and(|error| error.to_string().contains("web")));
}
