//! The control plane of P4air, as a program in Python.

use super::NAME;
use crate::ir::InvalidProgram;
use queuescope_queue::{SwitchP4airParams, SwitchRegister};

const SWITCH: &str = include_str!("../bmv2_switch.py");
const CONTROL: &str = include_str!("control.py");

/// The registers of the groups' flows, first queues and room, by the ends of their names.
const OF_GROUPS: [(&str, &str, &str); 3] =
    [("@COUNTS@", "", "_flows"), ("@BOUNDS@", "first_", ""), ("@ROOMS@", "", "_room")];

/// The control plane of [`p4air_with`](super::p4air_with) for BMv2, as a program in Python that runs beside the switch, by way of its command line: it removes flows that have
/// ended, as [`SwitchP4air::remove`](queuescope_queue::SwitchP4air::remove) does, so that the entry of each is free for another flow.
///
/// A long-lived flow has ended if none of its packets with data came for [`idle`](queuescope_queue::P4airParams::idle). The registers do not have the port of a flow: all
/// managed flows must leave by one port, which is an argument of the program. It ends with an error if another port has long-lived flows. A packet that changes a counter
/// between the program's reading and writing of it is not counted, because BMv2 does not do both at once.
///
/// ```
/// use queuescope_p4::algorithms::p4air_control;
/// use queuescope_queue::SwitchP4airParams;
///
/// let script = p4air_control(&SwitchP4airParams::default())?;
/// assert!(script.contains("IDLE = 10.0  # seconds"));
/// # Ok::<(), queuescope_p4::ir::InvalidProgram>(())
/// ```
///
/// # Errors
/// Names the parameter that a switch cannot have.
pub fn p4air_control(params: &SwitchP4airParams) -> Result<String, InvalidProgram> {
    params.check().map_err(|error| InvalidProgram::of_parameter(NAME, error.key, error.why))?;
    let quoted = |names: Vec<&str>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let named = |(_, begin, end): (&str, &str, &str)| {
        let names = SwitchRegister::ALL.iter().map(|register| register.name);
        names.filter(|name| name.starts_with(begin) && name.ends_with(end) && !name.starts_with("long_lived")).collect()
    };
    let initial = SwitchRegister::ALL.iter().map(|register| (register.name, register.initial(params)));
    let initial = initial.filter(|(_, word)| *word != 0).map(|(name, word)| format!("\"{name}\": {word}"));
    let values = [
        ("@IDLE@", format!("{:?}", params.p4air.idle.as_secs_f64())),
        ("@QUEUES@", params.p4air.queues.to_string()),
        ("@QUEUE_BITS@", params.queue_bits().to_string()),
        ("@FIRST_LONG_LIVED@", SwitchP4airParams::LONG_LIVED.to_string()),
        ("@FLOW_MARK@", SwitchRegister::FLOW_MARK.to_string()),
        ("@INITIAL@", initial.collect::<Vec<_>>().join(", ")),
    ];
    let groups = OF_GROUPS.map(|of| (of.0, quoted(named(of))));
    let values = values.into_iter().chain(groups);
    let text = values.fold(CONTROL.to_owned(), |text, (mark, value)| text.replace(mark, &value));
    let (constants, rest) = text.split_once("\n\n\n").unwrap_or((&text, ""));
    Ok(format!("{ABOUT}\n\n{MODULES}\n{constants}\n{SWITCH}\n\n{rest}"))
}

const ABOUT: &str = "\"\"\"P4air's control plane for BMv2: removes flows that have ended.\"\"\"";
const MODULES: &str = "import argparse\nimport re\nimport subprocess\nimport sys\nimport time\n";
