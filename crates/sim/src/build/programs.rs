//! Fits programs of switches to the ports and hosts of a scenario.

use queuescope_queue::{AckWindowParams, Contract, Host, Others, P4airParams, PipelineParams, Port, PortRole};
use queuescope_wire::{Class, Rate};

/// The program for these ports; `managed` says for each port whether the program manages it.
pub(crate) fn fitted(pipeline: PipelineParams, managed: &[bool], promises: &[(Host, Promise)]) -> PipelineParams {
    match pipeline {
        PipelineParams::AckWindow(params) => {
            PipelineParams::AckWindow(AckWindowParams { bottlenecks: ports(managed), ..params })
        }
        PipelineParams::P4air(params) => PipelineParams::P4air(P4airParams { ports: ports(managed), ..params }),
        PipelineParams::Abc(mut params) => {
            let role = params.ports.first().copied().unwrap_or_default();
            params.ports = managed.iter().map(|managed| if *managed { role } else { PortRole::default() }).collect();
            let aggregates = &mut params.aggregates;
            let reference = match aggregates.others {
                Others::EachHost { contract, .. } | Others::Together(contract) => contract.reference,
                Others::Inside => Contract::default().reference,
            };
            for (host, promise) in promises {
                let contract = Contract { reference: promise.reference.unwrap_or(reference), class: promise.class };
                aggregates.hosts.push((*host, aggregates.contracts.len() as u32));
                aggregates.contracts.push(contract);
            }
            PipelineParams::Abc(params)
        }
        other @ (PipelineParams::HashToQueues(_)
        | PipelineParams::PieCp(_)
        | PipelineParams::PieDp(_)
        | PipelineParams::PieTable(_)
        | PipelineParams::EgressPi(_)
        | PipelineParams::CodelDp(_)
        | PipelineParams::EcnSharpDp(_)
        | PipelineParams::ConQuestAqm(_)) => other,
    }
}

/// The ports that are managed.
fn ports(managed: &[bool]) -> Vec<Port> {
    (0..).map(Port).zip(managed).filter_map(|(port, managed)| managed.then_some(port)).collect()
}

/// The promises to a host; where one is missing, the program's default applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Promise {
    pub reference: Option<Rate>,
    pub class: Class,
}
