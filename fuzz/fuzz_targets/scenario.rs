//! Parses any bytes as a scenario file, with the text before a NUL as overrides, one per line. Either the scenario's
//! explanation parses to the same scenario, or its problems can be displayed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_scenario::{Override, Scenario};

fuzz_target!(|data: &[u8]| {
    let (overrides, file) = match data.iter().position(|byte| *byte == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (&data[..0], data),
    };
    let overrides: Vec<_> = String::from_utf8_lossy(overrides).lines().map(Override::new).collect();
    match Scenario::parse_bytes("scenario.toml", file, &overrides) {
        Ok(scenario) => {
            let explained = scenario.explain();
            let again = Scenario::parse("explained.toml", &explained, &[])
                .unwrap_or_else(|error| panic!("{error}\n{explained}"));
            assert_eq!(again, scenario, "{explained}");
            let network = scenario.network();
            for flows in &scenario.flows {
                assert!(scenario.base_rtt(&network, flows).is_some());
            }
        }
        Err(error) => {
            assert!(error.count() > 0);
            assert!(!error.render(100, false).is_empty());
        }
    }
});
