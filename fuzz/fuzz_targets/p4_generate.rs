//! Takes any text as the parameters of an algorithm, as `p4 generate --set` does: a program that prints for both targets and runs, or an error.
//!
//! The first byte chooses the algorithm, and the others are the text, with a parameter on each line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_p4::algorithms::{EXECUTABLE, executable_with};
use queuescope_p4::ir::{Architecture, Trace, explain, print, print_entries, print_p4runtime};
use queuescope_scenario::Management;

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let name = match EXECUTABLE[usize::from(*first) % EXECUTABLE.len()] {
        // The names that scenarios have.
        "conquest" | "conquest-ingress" => "conquest-aqm",
        // Its only parameter is one of CoDel's.
        "step" => return,
        name => name,
    };
    let text = String::from_utf8_lossy(text);
    let set: Vec<_> = std::iter::once(name).chain(text.lines()).collect();
    match Management::parse("--set", &set.join(",")) {
        Ok(Management::Program(params)) => {
            let program = match executable_with(&params) {
                Ok(program) => program.expect("it is one of them"),
                // A switch cannot have all parameters of ConQuest.
                Err(error) if name == "conquest-aqm" => return assert!(!error.to_string().is_empty()),
                Err(error) => panic!("valid parameters fit: {error}"),
            };
            for architecture in Architecture::ALL {
                assert!(print(&program, architecture).ends_with("main;\n"));
                let entries = [print_entries(&program, architecture), print_p4runtime(&program, &[])];
                assert_eq!(entries[0].is_some(), entries[1].is_some());
            }
            assert!(!explain(&program).is_empty());
            assert_eq!(Trace::new(&program, 1, 20).packets.len(), 20);
        }
        Ok(Management::Discipline(_)) => panic!("{name} is a program"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
