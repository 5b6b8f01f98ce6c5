//! The control plane of PIE_CP, as a program in Python.

use crate::ir::Architecture;
use queuescope_queue::{PieCpDecay, PieCpParams};

const BOTH: &str = include_str!("control.py");
const V1MODEL: &str = concat!(include_str!("../bmv2_switch.py"), include_str!("control.v1model.py"));
const TNA: &str = include_str!("control.tna.py");

/// The control plane of [`pie_cp_with`](super::pie_cp_with) as a program in Python: for BMv2 by way of its command line, for Tofino as a script
/// of `bfrt_python`. It reads delays, computes as [`PieCp`](queuescope_queue::PieCp) does, and writes probabilities.
pub fn pie_cp_control(params: &PieCpParams, architecture: Architecture) -> String {
    let (about, modules, end) = match architecture {
        Architecture::V1model => (
            "PIE_CP's control plane for BMv2: reads the delays of ports, and writes their drop probabilities.",
            "import argparse\nimport re\nimport subprocess\nimport sys\nimport time\n",
            V1MODEL,
        ),
        Architecture::Tna => (
            "PIE_CP's control plane for Tofino, for bfshell -b: reads the delays of ports, and writes their drop probabilities.",
            "import time\n",
            TNA,
        ),
    };
    let decays_with_one = if params.decay == PieCpDecay::AsPublished { "True" } else { "False" };
    let values = [
        ("@TARGET@", format!("{:?}", params.target.as_secs_f64())),
        ("@ALPHA@", format!("{:?}", params.gains.alpha)),
        ("@BETA@", format!("{:?}", params.gains.beta)),
        ("@PERIOD@", format!("{:?}", params.period.max(params.latency).as_secs_f64())),
        ("@DECAYS_WITH_ONE@", decays_with_one.to_owned()),
    ];
    let both = values.into_iter().fold(BOTH.to_owned(), |text, (mark, value)| text.replace(mark, &value));
    format!("\"\"\"{about}\"\"\"\n\n{modules}\n{both}{end}")
}
