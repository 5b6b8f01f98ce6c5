//! The smallest round-trip time, and the probes of it.

use super::probe::AckPhase;
use super::{Bbr3, Bbr3State};
use crate::congestion::Ack;
use queuescope_wire::Nanos;

/// A probe of the round-trip time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProbeRtt {
    /// When it may end; set once little enough is in flight.
    end: Option<Nanos>,
    round_passed: bool,
}

impl Bbr3 {
    pub(super) fn follow_path(&mut self, ack: &Ack, now: Nanos) {
        let expired = now > self.recent_path_at.saturating_add(self.params.probe_rtt_interval);
        if let Some(rtt) = self.params.rtt.of(ack)
            && (expired || self.recent_path.is_none_or(|recent| rtt < recent))
        {
            (self.recent_path, self.recent_path_at) = (Some(rtt), now);
        }
        let old = now > self.path_at.saturating_add(self.params.rtt_window);
        if let Some(recent) = self.recent_path
            && (old || self.path.is_none_or(|path| recent < path))
        {
            (self.path, self.path_at) = (Some(recent), self.recent_path_at);
        }
        if expired && !self.idle_restart && self.state != Bbr3State::ProbeRtt {
            // A larger window that was saved before stays, as in the draft.
            self.enter(Bbr3State::ProbeRtt);
            self.save_window();
            self.probe_rtt = Some(ProbeRtt::default());
            self.cycle.acks = AckPhase::Stopping;
            self.rounds.begin();
            self.stats.rtt_probes += 1;
        }
        if self.state == Bbr3State::ProbeRtt {
            self.follow_probe_rtt(ack, now);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn follow_probe_rtt(&mut self, ack: &Ack, now: Nanos) {
        self.rounds.limit(ack.in_flight);
        let (window, started) = (self.probe_rtt_window(), self.rounds.started);
        let Some(probe) = &mut self.probe_rtt else { return };
        if probe.end.is_some() {
            probe.round_passed |= started;
            if probe.round_passed {
                self.check_probe_rtt_over(now);
            }
        } else if ack.in_flight <= window {
            *probe = ProbeRtt { end: Some(now.saturating_add(self.params.probe_rtt)), round_passed: false };
            self.rounds.begin();
        }
    }

    pub(super) fn check_probe_rtt_over(&mut self, now: Nanos) {
        if self.probe_rtt.and_then(|probe| probe.end).is_none_or(|end| now <= end) {
            return;
        }
        self.probe_rtt = None;
        self.recent_path_at = now;
        self.restore_window();
        self.reset_short_term();
        if self.full.reached {
            self.start_down(now);
            self.enter(Bbr3State::Cruise);
        } else {
            self.enter(Bbr3State::Startup);
        }
    }
}
