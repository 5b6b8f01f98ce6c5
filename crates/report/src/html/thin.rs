//! Reduces the samples of a simulation to as many as a page can show: a minute, sampled each millisecond with 64 flows,
//! would make a page of hundreds of megabytes.

use crate::model::{Report, Sim, SimFlowSample, SimLinkSample, SimSample};
use std::borrow::Cow;

/// The most states of links and flows on a page. Each takes about 90 bytes there.
const MOST: usize = 60_000;

/// The report, with its simulation as if sampled at a multiple of its interval: the smallest multiple with which the
/// samples fit a page.
pub(super) fn thinned(report: &Report) -> Cow<'_, Report> {
    let Some(sim) = &report.sim else { return Cow::Borrowed(report) };
    let states: usize = sim.samples.iter().map(|sample| sample.links.len() + sample.flows.len()).sum();
    if states <= MOST {
        return Cow::Borrowed(report);
    }
    // A kept sample has as many states as any other, so with flows that come and go a larger factor may be needed.
    let mut factor = states.div_ceil(MOST);
    let mut samples = coarser(sim, factor);
    while samples.len() > 1
        && samples.iter().map(|sample| sample.links.len() + sample.flows.len()).sum::<usize>() > MOST
    {
        factor += factor.div_ceil(8);
        samples = coarser(sim, factor);
    }
    Cow::Owned(Report { sim: Some(Sim { samples, ..sim.clone() }), ..report.clone() })
}

/// Every `factor`th sample, with the counts since the kept sample before it.
fn coarser(sim: &Sim, factor: usize) -> Vec<SimSample> {
    let chunks = sim.samples.chunks(factor);
    chunks.filter_map(|chunk| chunk.last().map(|last| joined(chunk, last, sim.warmup_ns))).collect()
}

/// The state of `last`, with the sums of the counts in `chunk`.
fn joined(chunk: &[SimSample], last: &SimSample, warmup_ns: u64) -> SimSample {
    // Links restart their counters at the end of the warm-up, flows do not.
    let counts = |sample: &&SimSample| last.at_ns <= warmup_ns || sample.at_ns > warmup_ns;
    let link = |(number, state): (usize, &SimLinkSample)| {
        let parts = || chunk.iter().filter(counts).filter_map(|sample| sample.links.get(number));
        SimLinkSample {
            sent_packets: parts().map(|part| part.sent_packets).sum(),
            sent_bytes: parts().map(|part| part.sent_bytes).sum(),
            lost: parts().map(|part| part.lost).sum(),
            drops: parts().map(|part| part.drops).sum(),
            marks: parts().map(|part| part.marks).sum(),
            ..*state
        }
    };
    let flow = |state: &SimFlowSample| {
        let own = |sample: &&SimFlowSample| sample.number == state.number;
        let parts = chunk.iter().filter_map(|sample| sample.flows.iter().find(own));
        SimFlowSample { delivered_bytes: parts.map(|part| part.delivered_bytes).sum(), ..*state }
    };
    SimSample {
        at_ns: last.at_ns,
        links: last.links.iter().enumerate().map(link).collect(),
        flows: last.flows.iter().map(flow).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, flows: u64) -> SimSample {
        let link = SimLinkSample {
            backlog_packets: at_ns,
            backlog_bytes: at_ns,
            sent_packets: 4,
            sent_bytes: 10,
            lost: 3,
            drops: 1,
            marks: 2,
            drop_probability: None,
        };
        let flow = |number| SimFlowSample {
            number,
            window_bytes: at_ns,
            in_flight_bytes: 0,
            rtt_ns: None,
            delivered_bytes: 5,
        };
        SimSample { at_ns, links: vec![link], flows: (0..flows).map(flow).collect() }
    }

    #[test]
    fn counts_between_kept_samples_are_kept() {
        let chunk = [sample(10, 2), sample(20, 3), sample(30, 2)];
        let whole = joined(&chunk, &chunk[2], 0);
        let link = whole.links[0];
        assert_eq!((whole.at_ns, link.backlog_bytes), (30, 30));
        assert_eq!((link.sent_packets, link.sent_bytes, link.lost, link.drops, link.marks), (12, 30, 9, 3, 6));
        let flows: Vec<_> =
            whole.flows.iter().map(|flow| (flow.number, flow.window_bytes, flow.delivered_bytes)).collect();
        assert_eq!(flows, [(0, 30, 15), (1, 30, 15)]);
    }

    #[test]
    fn links_count_from_the_end_of_the_warm_up() {
        let chunk = [sample(10, 1), sample(20, 1), sample(30, 1)];
        for (warmup, counted) in [(0, 30), (10, 20), (20, 10), (25, 10), (30, 30), (90, 30)] {
            let whole = joined(&chunk, &chunk[2], warmup);
            assert_eq!((whole.links[0].sent_bytes, whole.flows[0].delivered_bytes), (counted, 15), "{warmup}");
        }
    }
}
