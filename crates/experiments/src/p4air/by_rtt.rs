//! P4air with queues by group and by round-trip time, which is not in the paper, beside P4air and FQ-CoDel.
//!
//! - *Mixes*: the 35 mixes of figure 7(e).
//! - *Times*: the eight settings of figure 7(d).
//! - *Others*: other rates, round-trip times and numbers of flows, also with BBRv3 and Prague. None of them was used for the
//!   design.
//!
//! Both P4airs are measured with and without the ACKs of the flows on their way through the switch. Without them, there is no
//! receive window to lower, and packets of model-based and delay-based flows are dropped.

mod outcome;
mod settings;

use super::figure_7::{self, DELAY, USED};
use super::{data_of, program};
use crate::error::Result;
use crate::results::Values;
use crate::study::Cell;
pub use outcome::outcome;
use queuescope_sim::Simulation;
use queuescope_sketch::FlowGroup;
use settings::{Scheme, settings};

pub const MIXES: &str = "by-rtt-mixes";
pub const TIMES: &str = "by-rtt-times";
pub const OTHERS: &str = "by-rtt-others";

const SCHEME: &str = "scheme";
const SETTING: &str = "setting";

/// Flows of these controls that end in the group that suits them.
const RECOGNISED: [(&str, FlowGroup, &str); 2] =
    [("bbr3", FlowGroup::ModelBased, "BBRv3 model-based (%)"), ("prague", FlowGroup::Scalable, "Prague scalable (%)")];

/// What readers must know about the runs.
pub fn remark(small: bool) -> String {
    let count = |figure| settings(small).iter().filter(|setting| setting.figure == figure).count();
    format!(
        "By round-trip time: {}, {} and {} settings of figure 7(e), of 7(d) and of others, each with {} schemes; one run of each.",
        count(MIXES),
        count(TIMES),
        count(OTHERS),
        Scheme::ALL.len()
    )
}

pub fn cells(small: bool) -> Vec<Cell> {
    let cell = |setting: &settings::Setting, scheme: Scheme| Cell {
        figure: setting.figure,
        parameters: vec![(SETTING, setting.name.clone()), (SCHEME, scheme.name().to_owned())],
        // No run of the design had this seed.
        seed: 7,
        scenario: setting.scenario(scheme, 7),
    };
    settings(small).iter().flat_map(|setting| Scheme::ALL.map(|scheme| cell(setting, scheme))).collect()
}

/// Fairness, utilisation, the delay in the queue, and how many flows of BBRv3 and Prague are in their group.
pub fn measure(cell: &Cell, simulation: &Simulation) -> Result<Values> {
    let scenario = cell.parsed()?;
    let mut values = figure_7::of_link(simulation)?;
    let Some(program) = program(simulation) else { return Ok(values) };
    let flows = simulation.flows();
    for (control, group, name) in RECOGNISED {
        let is_of = |group: u32| {
            let name = scenario.flows.get(group as usize).map_or("", |group| group.name.as_str());
            name.split('-').next() == Some(control)
        };
        let own: Vec<_> = flows.iter().filter(|flow| is_of(flow.group)).collect();
        let found = own.iter().filter(|flow| program.group(data_of(flow)) == Some(group)).count();
        if !own.is_empty() {
            values.insert(name.to_owned(), 100.0 * found as f64 / own.len() as f64);
        }
    }
    Ok(values)
}
