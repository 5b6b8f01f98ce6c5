//! ABC (Menth et al., Future Internet 2019, sections 3 and 5): activity metered at the edge of a domain, its use in the core, and the exit.
//!
//! The prototype of the paper carries the activity in metadata, because it is the only node of its domain (section 5.1). Here, it is in a header
//! of its own behind that of Ethernet: 16 bits of activity, and the EtherType of what follows.

mod core;
mod edge;

use super::common::{PIPE_PORTS, PORT_BITS};
use crate::ir::{
    AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, InvalidProgram, MatchTable,
    RegisterAction, RegisterArray, SwitchProgram, TableEntries, Unit, Variable, When,
};
use crate::{Aspect, Gress};
pub(super) use core::median;
pub use core::{AbcCoreParams, abc_core, abc_core_median, abc_core_with};
pub use edge::{AbcEdgeParams, abc_edge, abc_edge_with};
use queuescope_queue::{AbcParams, Aggregates, Missing, Others, SwitchAqmParams, SwitchAverage, SwitchMeterParams};
use std::collections::BTreeSet;

const SOURCE: &str = "Menth et al., P4-ABC, Future Internet 2019, section 3";

/// The exit, where no port is outside of the domain, as steps.
pub fn abc_strip() -> crate::Program {
    abc_strip_with(&[]).expect("it has no parameters").steps()
}

/// The exit: removes the activity header from every packet, so that those that leave the domain are as they came into it. Packets that come from
/// one of the ports `outside` of the domain must have none.
///
/// Models the role [`PortRole::exit`](queuescope_queue::PortRole::exit) of [`Abc`](queuescope_queue::Abc), which does not count headers from outside.
///
/// # Errors
/// Fails if a port is twice in the list, or above 511.
pub fn abc_strip_with(outside: &[u16]) -> Result<SwitchProgram, InvalidProgram> {
    let mut p = Builder::new("abc-strip", "removes activity headers where packets leave the domain", SOURCE);
    let arrivals = Arrivals::new(&mut p);
    arrivals.check(&mut p, [0, 1], outside, |_, _| ());
    p.at(Gress::Egress).of(Aspect::Reaction);
    p.when(Condition::compare(arrivals.has_activity, Comparison::Equal, 1), Builder::strip_activity);
    p.build()
}

/// The program of a name with the parameters of [`Abc`](queuescope_queue::Abc); none for another name. Times become the
/// closest that a switch can have ([`SwitchMeterParams::nearest`], [`SwitchAqmParams::nearest`]).
///
/// # Errors
/// Names the parameter that the program cannot have, and what is possible.
pub fn abc_named(name: &str, params: &AbcParams) -> Result<Option<SwitchProgram>, InvalidProgram> {
    abc_at_border(name, params, &[])
}

/// The same, where the ports of `border` are on the other side of the domain's border than all others: within the domain for the
/// edge, outside of it for the core and the exit.
///
/// # Errors
/// As [`abc_named`]. Fails if a port is listed twice, or above 511.
pub fn abc_at_border(name: &str, params: &AbcParams, border: &[u16]) -> Result<Option<SwitchProgram>, InvalidProgram> {
    let role = params.ports.first().copied().unwrap_or_default();
    let fail = |name, key: &str, why: &str| Err(InvalidProgram::of_parameter(name, key, why));
    let (edge, core, median, strip) = ("abc-edge", "abc-core", "abc-core-median", "abc-strip");
    let Some(name) = [edge, core, median, strip].into_iter().find(|it| *it == name) else { return Ok(None) };
    let roles = [("meters", role.meters, name == edge), ("strips", role.strips, name == strip)];
    if let Some((key, _, should)) = roles.into_iter().find(|(_, does, should)| does != should) {
        return fail(name, key, &format!("must be {should}: each role is a program of its own"));
    }
    if params.classes.iter().any(|class| class.surcharge != 0.0) || params.classes.len() != 1 {
        return fail(name, "surcharges", "must be [0.0]: the programs have one delay class");
    }
    if params.missing != Missing::Average {
        return fail(name, "missing", "must be average");
    }
    let aqm = match (role.aqm, name == core || name == median) {
        (Some(_), false) if name == strip => return fail(name, "aqm", "must be none: the exit does not drop"),
        (None, true) => return fail(name, "aqm", "must not be none"),
        (None, false) => None,
        (Some(aqm), _) => match SwitchAqmParams::nearest(&aqm) {
            Some(nearest) => Some(nearest),
            None if !SwitchAqmParams::MEMORY.contains(&aqm.memory) && name != median => {
                let why = "must be 340 us to 22 s: it becomes 2^1 to 2^16 packets, at 4170 packets/s";
                return fail(name, "aqm.memory", why);
            }
            None => {
                let why = "must have whole numbers below 512, with gamma a power of two from 4 to 256: a switch shifts";
                return fail(name, "aqm", why);
            }
        },
    };
    let program = match aqm {
        _ if name == edge => {
            let Aggregates { contracts, hosts, others } = &params.aggregates;
            let why = "must have each host as an aggregate of its own";
            let Others::EachHost { contract: other, .. } = others else { return fail(name, "aggregates", why) };
            let aggregates: BTreeSet<_> = hosts.iter().map(|(_, aggregate)| aggregate).collect();
            if aggregates.len() < hosts.len() {
                return fail(name, "aggregates", why);
            }
            let meter = SwitchMeterParams::nearest(&params.meter, other.reference);
            let contracts = hosts.iter().filter_map(|(host, aggregate)| {
                let contract = contracts.get(*aggregate as usize)?;
                Some((host.0, contract.reference))
            });
            abc_edge_with(&AbcEdgeParams { meter, contracts: contracts.collect(), inside: border.to_vec(), aqm })?
        }
        Some(aqm) => {
            let average = if name == median { SwitchAverage::MEDIAN } else { aqm.average };
            abc_core_with(&AbcCoreParams { aqm: SwitchAqmParams { average, ..aqm }, outside: border.to_vec() })?
        }
        None => abc_strip_with(border)?,
    };
    Ok(Some(program))
}

/// What a packet brings along from where it arrived, and the activity header that it may have.
#[derive(Clone, Copy)]
struct Arrivals {
    port: Variable,
    has_activity: Variable,
    malformed: Variable,
}

impl Arrivals {
    fn new(p: &mut Builder) -> Self {
        let [port, has_activity, malformed] =
            [Input::ArrivalPort, Input::HasActivity, Input::Malformed].map(|input| p.input(input));
        Self { port, has_activity, malformed }
    }

    /// Before the queue: drops and counts packets whose activity header is malformed, or comes from outside the domain, where anybody could write
    /// what they like (section 3.4). `sides` says whether a port is outside: 1 or 0, first the ports that are not listed, then those that are.
    fn check(self, p: &mut Builder, sides: [u64; 2], listed: &[u16], then: impl FnOnce(&mut Builder, Variable)) {
        p.at(Gress::Ingress).of(Aspect::Metric);
        let outside = p.variable("outside", 1, Unit::Number);
        let entries = listed.iter().map(|port| (vec![u64::from(*port)], vec![sides[1]]));
        p.look_up(MatchTable {
            name: "domain".into(),
            about: "Whether packets that arrive at a port come from outside of the domain".into(),
            keys: vec![self.port.into()],
            entries: TableEntries::Exact(entries.collect()),
            results: vec![outside],
            otherwise: vec![sides[0]],
        });
        let refused = p.register(RegisterArray {
            name: "refused".into(),
            about: "Packets that came to the port with an activity header that is malformed or forged".into(),
            bits: 32,
            unit: Unit::Packets,
            entries: PIPE_PORTS,
            initial: 0,
        });
        let is = |variable: Variable| Condition::compare(variable, Comparison::Equal, 1);
        let forged = Condition::All(vec![is(self.has_activity), is(outside)]);
        p.choose(
            Condition::Any(vec![is(self.malformed), forged]),
            |p| {
                p.comment("Only the domain writes activities.");
                let one = AluExpression::AddSaturating(AluTerm::Word, AluTerm::Value(1.into()));
                let count = change("count_refused", one, AluOutput::Nothing);
                p.access(refused, self.port.slice(0, PORT_BITS), count, None);
                p.drop_packet();
            },
            |p| then(p, outside),
        );
    }
}

/// An action that always makes the same change.
fn change(name: impl Into<crate::ir::Name>, value: AluExpression, output: AluOutput) -> RegisterAction {
    RegisterAction {
        name: name.into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value }],
        output,
    }
}
