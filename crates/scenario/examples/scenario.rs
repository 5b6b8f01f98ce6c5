//! `cargo run -p queuescope-scenario --example scenario -- schema > docs/scenario.schema.json`
//! `cargo run -p queuescope-scenario --example scenario -- reference`
//! `cargo run -p queuescope-scenario --example scenario -- explain FILE [KEY=VALUE...]`

#![allow(clippy::disallowed_methods, reason = "a tool of the project, which opens the file given on the command line")]

use queuescope_scenario::{Override, Scenario};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["schema"] => println!("{}", serde_json::to_string_pretty(&Scenario::schema())?),
        ["reference"] => print!("{}", Scenario::reference()),
        ["explain", file, changes @ ..] => {
            let changes: Vec<_> = changes.iter().map(|change| Override::new(*change)).collect();
            match Scenario::parse_bytes(file, &std::fs::read(file)?, &changes) {
                Ok(scenario) => print!("{}", scenario.explain()),
                Err(error) => return Err(error.to_string().into()),
            }
        }
        _ => return Err("schema, reference, or explain FILE [KEY=VALUE...]".into()),
    }
    Ok(())
}
