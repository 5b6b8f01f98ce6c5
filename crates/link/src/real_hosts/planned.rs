//! The traffic of a scenario's hosts, and what the report needs to know of it afterwards.

use crate::error::Error;
use crate::hosts::{DCTCP_PORT, Load, Outcome, PORT};
use queuescope_live::traffic::{DatagramSender, Ended, LARGEST, Start};
use queuescope_queue::Host;
use queuescope_scenario::Scenario;
use queuescope_sim::{
    Choice, DatagramRecord, Files, FlowRecord, NodeId, Progress, Simulation, TrafficSource, connection_key, traffic_of,
};
use queuescope_tcp::Algorithm;
use queuescope_wire::Nanos;
use std::iter::Peekable;
use std::net::{Ipv4Addr, SocketAddr};

/// The length of the header that precedes a flow's bytes.
const FLOW_HEADER: u64 = 8;

/// A scenario's traffic, ready to be sent.
pub struct PlannedLoad {
    /// What to send.
    pub load: Load,
    /// What the report needs afterwards.
    pub records: PlannedRecords,
}

/// What a report needs to know of flows and datagrams, besides their results.
pub struct PlannedRecords {
    warmup: Nanos,
    /// The group, the two hosts and the source address of each sender of datagrams.
    datagrams: Vec<(u32, [Host; 2], SocketAddr)>,
}

impl PlannedLoad {
    /// Plans the traffic of a scenario's hosts.
    ///
    /// # Errors
    /// Fails if the traffic is not valid, or the kernel cannot have one of its congestion controls.
    pub fn new(scenario: &Scenario, files: &Files, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<Self, Error> {
        let (mut flows, mut congestion, mut datagrams, mut records) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let until = scenario.duration;
        let mut port = 0;
        for source in traffic_of(scenario, files, hosts)? {
            match source {
                TrafficSource::Flows { group, transport, stop, starts } => {
                    let algorithm = match &transport.algorithm {
                        Choice::BuiltIn(params) => params.algorithm(),
                        Choice::Custom(control) => {
                            return Err(Error::NoControl { name: control.name().to_owned() });
                        }
                    };
                    let echoes = matches!(algorithm, Algorithm::Dctcp | Algorithm::Prague);
                    let port = if echoes { DCTCP_PORT } else { PORT };
                    let name = kernel_name(algorithm);
                    let index = congestion.iter().position(|known| known == name).unwrap_or_else(|| {
                        congestion.push(name.to_owned());
                        congestion.len() - 1
                    });
                    let stop = stop.unwrap_or(Nanos::MAX);
                    let starts = starts.take_while(move |start| start.at < until).map(move |start| Start {
                        at: start.at,
                        bytes: start.bytes.map_or(LARGEST, |bytes| bytes.saturating_sub(FLOW_HEADER)),
                        class: group as usize,
                        congestion: index,
                        ends: Some((address(start.from as u32, 0), address(start.to as u32, port))),
                        stop,
                    });
                    flows.push(starts.peekable());
                }
                TrafficSource::Datagrams { params, datagrams: times } => {
                    // Each sender has a port of its own, since a host may have several.
                    let from = address(params.from.0, FIRST_DATAGRAM + port);
                    port = (port + 1) % (u16::MAX - FIRST_DATAGRAM);
                    records.push((params.group, [Host(params.from.0), Host(params.to.0)], from));
                    datagrams.push(DatagramSender {
                        ends: (from, address(params.to.0, PORT)),
                        ecn: params.ecn,
                        datagrams: Box::new(times.map(|it| (it.at, it.size))),
                    });
                }
            }
        }
        let warmup = scenario.warmup;
        let merged = MergedFlows { flows, number: 0 };
        let load = Load { congestion, flows: Box::new(merged), datagrams, warmup };
        Ok(Self { load, records: PlannedRecords { warmup, datagrams: records } })
    }
}

/// The first port of senders of datagrams.
const FIRST_DATAGRAM: u16 = 20_000;

/// Merges the flows of all groups in order of time. Each flow has a source port of its own, the same as in a simulation.
struct MergedFlows<I: Iterator<Item = Start>> {
    flows: Vec<Peekable<I>>,
    number: u64,
}

impl<I: Iterator<Item = Start>> Iterator for MergedFlows<I> {
    type Item = Start;

    fn next(&mut self) -> Option<Start> {
        let heads = self.flows.iter_mut().enumerate().filter_map(|(n, flows)| Some((flows.peek()?.at, n)));
        let (_, first) = heads.min()?;
        let mut start = self.flows[first].next()?;
        if let Some((from, _)) = &mut start.ends {
            from.set_port(connection_key([Host(0); 2], self.number).src_port);
        }
        self.number += 1;
        Some(start)
    }
}

impl PlannedRecords {
    /// Adds the results of flows and datagrams to a simulation, for its report.
    pub fn record(&self, sent: &Outcome, simulation: &mut Simulation) {
        for flow in &sent.flows {
            simulation.add_record(self.flow(flow));
        }
        for ((group, hosts, from), sent_here) in self.datagrams.iter().zip(&sent.sent) {
            let delivered = sent.came.get(from).copied().unwrap_or_default();
            simulation.add_datagram_record(DatagramRecord {
                group: *group,
                hosts: *hosts,
                sent: *sent_here,
                delivered,
            });
        }
    }

    fn flow(&self, flow: &Ended) -> FlowRecord {
        let host = |at: &SocketAddr| match at {
            SocketAddr::V4(at) => Host(u32::from(*at.ip()) & 0xff_ffff),
            SocketAddr::V6(_) => Host(0),
        };
        let hosts = flow.start.ends.map_or([Host(0); 2], |(from, to)| [host(&from), host(&to)]);
        let mut key = connection_key(hosts, flow.number);
        if let Some((_, to)) = flow.start.ends {
            // Receivers that echo each mark have a port of their own.
            key.dst_port = to.port();
        }
        let started = flow.start.at.saturating_add(flow.late);
        let [midway, end] = flow.progress.map(|progress| Progress {
            delivered: progress.acked.saturating_sub(FLOW_HEADER),
            retransmissions: u64::from(progress.retransmitted),
            timeouts: u64::from(progress.timeouts),
        });
        // The receiver's answer is under way for half a round trip.
        let finished = flow
            .result
            .as_ref()
            .ok()
            .map(|done| started.saturating_add(done.took).saturating_sub(Nanos(done.min_rtt.0 / 2)));
        let has_started = started < self.warmup;
        let ended = finished.unwrap_or(flow.start.stop);
        FlowRecord {
            number: flow.number,
            group: flow.start.class as u32,
            key,
            hosts,
            started,
            finished,
            bytes: (flow.start.bytes < LARGEST).then_some(flow.start.bytes + FLOW_HEADER),
            in_warmup: if has_started && ended <= self.warmup { end } else { midway },
            delivered: end.delivered,
            retransmissions: end.retransmissions,
            timeouts: end.timeouts,
            smoothed_rtt: Some(flow.progress[1].rtt).filter(|rtt| *rtt > Nanos::ZERO),
        }
    }
}

/// The address of a host, as in the captures of a simulation.
pub fn ip(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(10 << 24 | host & 0xff_ffff)
}

fn address(host: u32, port: u16) -> SocketAddr {
    SocketAddr::from((ip(host), port))
}

/// The kernel's name of a congestion control.
fn kernel_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::NewReno => "reno",
        Algorithm::Cubic => "cubic",
        Algorithm::Bbr => "bbr",
        Algorithm::Vegas => "vegas",
        Algorithm::Illinois => "illinois",
        Algorithm::Dctcp => "dctcp",
        Algorithm::HighSpeed => "highspeed",
        Algorithm::Scalable => "scalable",
        Algorithm::Htcp => "htcp",
        Algorithm::Bic => "bic",
        Algorithm::Hybla => "hybla",
        Algorithm::Yeah => "yeah",
        Algorithm::Veno => "veno",
        Algorithm::Westwood => "westwood",
        Algorithm::Lola => "lola",
        Algorithm::Bbr3 => "bbr3",
        Algorithm::Prague => "prague",
    }
}
