//! The printed programs, as they are in `printed`: `UPDATE_GOLDEN=1` writes them.

use queuescope_p4::algorithms::executable;
use queuescope_p4::ir::{Architecture, print, refusal};
use std::path::Path;

#[test]
#[allow(clippy::disallowed_methods, reason = "the expected programs are files, and the environment asks to write them")]
fn programs_are_printed_as_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed");
    for program in executable().expect("the defaults fit") {
        for architecture in Architecture::ALL {
            let path = folder.join(format!("{}.{}.p4", program.name(), architecture.name()));
            if refusal(&program, architecture).is_some() {
                continue;
            }
            let printed = print(&program, architecture);
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&path, &printed).expect("the folder is writable");
            }
            let expected = std::fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
            assert_eq!(printed, expected, "{}", path.display());
        }
    }
}
