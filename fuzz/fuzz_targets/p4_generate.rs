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
    let name = EXECUTABLE[usize::from(*first) % EXECUTABLE.len()];
    let text = String::from_utf8_lossy(text);
    let set: Vec<_> = std::iter::once(name).chain(text.lines()).collect();
    match Management::parse("--set", &set.join(",")) {
        Ok(Management::Program(params)) => {
            let program = executable_with(&params).expect("valid parameters fit").expect("it is one of them");
            for architecture in Architecture::ALL {
                assert!(print(&program, architecture).ends_with("main;\n"));
                let entries = [print_entries(&program, architecture), print_p4runtime(&program)];
                assert_eq!(entries[0].is_some(), entries[1].is_some());
            }
            assert!(!explain(&program).is_empty());
            assert_eq!(Trace::new(&program, 1, 20).packets.len(), 20);
        }
        Ok(Management::Discipline(_)) => panic!("{name} is a program"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
