//! What is done to a flow above its share of the link, and to its ACKs (section III-C).

use super::share::ShareForm;
use super::{ActEvery, ActOn, FlowAction, Headers, P4air, Port};
use crate::DropReason;
use queuescope_sketch::{FlowGroup, RoundTrip, SendingRate, SlowStartEnd};
use queuescope_tcp::Flags;
use queuescope_wire::Nanos;

/// What becomes of a packet at ingress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Drop(DropReason),
    Mark,
    Delay,
}

impl P4air {
    /// What becomes of a packet of data that has been counted.
    pub(super) fn judge(
        &mut self,
        port: Port,
        entry: u32,
        ended: Option<&RoundTrip>,
        is_tcp: bool,
        now: Nanos,
    ) -> Verdict {
        let flow = self.flows.at(entry);
        let group = flow.group;
        if flow.has_ended {
            return Verdict::Pass;
        }
        if group.long_lived().is_some() {
            // The packet that ends a round trip takes that to egress.
            return if ended.is_some() { Verdict::Pass } else { self.act(port, entry, group) };
        }
        let fair = self.fair_share(port, &flow.rate, true);
        let params = &self.params.fingerprint;
        let Some(end) = params.end_of_slow_start(&flow.rate, ended, fair).filter(|end| {
            // Without TCP there is no slow start that could end by itself.
            is_tcp || *end == SlowStartEnd::FairShare
        }) else {
            return Verdict::Pass;
        };
        match end {
            SlowStartEnd::SentLess => self.stats.slow_start_less += 1,
            SlowStartEnd::FairShare => self.stats.slow_start_share += 1,
        }
        self.move_to(entry, FlowGroup::DelayBased, now);
        if is_tcp && end == SlowStartEnd::FairShare {
            return Verdict::Drop(DropReason::SlowStart);
        }
        Verdict::Pass
    }

    /// The action on a packet of a long-lived flow, if it is above its share.
    pub(super) fn act(&mut self, port: Port, entry: u32, group: FlowGroup) -> Verdict {
        let actions = self.params.actions;
        let flow = self.flows.at(entry);
        let is_above = match self.params.act_on {
            ActOn::Share => flow.rate.sent() > self.fair_share(port, &flow.rate, false),
            ActOn::Delay { .. } => flow.late > 0,
        };
        let every = self.params.act_every;
        let flow = self.flows.at_mut(entry);
        if !is_above || (flow.is_above && every == ActEvery::RoundTrip) {
            return Verdict::Pass;
        }
        self.stats.above_share += u64::from(!flow.is_above);
        flow.is_above = true;
        if every == ActEvery::RoundTrip {
            flow.late = 0;
        }
        match actions.of(group) {
            FlowAction::Nothing | FlowAction::Window => Verdict::Pass,
            FlowAction::Mark => Verdict::Mark,
            FlowAction::Drop => {
                self.stats.dropped += 1;
                Verdict::Drop(DropReason::FairShare)
            }
            FlowAction::Delay if self.params.delay_passes == 0 => Verdict::Pass,
            FlowAction::Delay => {
                self.stats.delayed += 1;
                Verdict::Delay
            }
        }
    }

    /// Lowers the window in an ACK of a flow that is above its share.
    pub(super) fn lower_window(&mut self, port: Port, headers: &mut Headers) {
        let Some(tcp) = headers.tcp.as_mut().filter(|tcp| tcp.flags.contains(Flags::ACK)) else { return };
        let Some(entry) = self.flows.find(headers.reverse) else { return };
        let flow = self.flows.at(entry);
        if flow.port == port
            || !(flow.is_above || flow.was_above)
            || self.params.actions.of(flow.group) != FlowAction::Window
        {
            return;
        }
        let packets = self.fair_share(flow.port, &flow.rate, false);
        let window = u64::from(packets).saturating_mul(self.params.packet.0).max(self.params.least_window.0);
        if window < tcp.window {
            tcp.window = window;
            self.stats.lowered += 1;
        }
    }

    /// Packets that fill a flow's share of its link in a round trip; at least 1. `joins` is whether the flow is not yet one
    /// of the long-lived flows.
    #[inline]
    pub(super) fn fair_share(&self, port: Port, rate: &SendingRate, joins: bool) -> u32 {
        let Some(Some(state)) = self.ports.get(usize::from(port.0)) else { return u32::MAX };
        let Some(rtt) = rate.rtt() else { return u32::MAX };
        let flows = state.shares.all_flows().saturating_add(u32::from(joins)).max(1);
        let packets = match self.params.share {
            ShareForm::Exact => state.rate.bytes_in(rtt).0 / u64::from(flows) / self.params.packet.0.max(1),
            form => form.shifted(rtt, state.packet_time, flows),
        };
        u32::try_from(packets).unwrap_or(u32::MAX).max(1)
    }
}
