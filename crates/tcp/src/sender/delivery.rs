//! How fast data is delivered (draft-cheng-iccrg-delivery-rate-estimation section 3).

use super::sent::Sent;
use super::tally::Tally;
use crate::congestion::RateSample;
use queuescope_wire::Nanos;

/// What is delivered on a connection, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    delivered: u64,
    delivered_at: Nanos,
    transmissions: u64,
    first_sent_at: Nanos,
    /// If not zero: until so much is delivered, samples may be of what the application offered, not of the path.
    limited_until: u64,
}

impl Delivery {
    /// A segment leaves: it takes along what is known now.
    #[inline]
    pub(crate) fn stamp(&mut self, sent: &mut Sent, idle: bool, now: Nanos) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.transmissions += 1;
        sent.serial = self.transmissions;
        sent.sent_at = now;
        sent.delivered = self.delivered;
        sent.delivered_at = self.delivered_at;
        sent.first_sent_at = self.first_sent_at;
        sent.application_limited = self.limited_until > 0;
    }

    /// The application has nothing more to send.
    #[inline]
    pub(crate) fn limit(&mut self, in_network: u64) {
        self.limited_until = (self.delivered + in_network).max(1);
    }

    /// What an ACK says. No sample if it delivered nothing, or was faster than `least`, the least round-trip time: then it
    /// was for a segment that was sent again, and it is not known which copy arrived.
    #[inline]
    pub(crate) fn sample(&mut self, tally: &Tally, lost: u64, least: Option<Nanos>, now: Nanos) -> Option<RateSample> {
        if tally.delivered == 0 {
            return None;
        }
        self.delivered += tally.delivered;
        self.delivered_at = now;
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let newest = tally.newest.as_ref()?;
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at.saturating_sub(newest.first_sent_at);
        let acknowledging = now.saturating_sub(newest.delivered_at);
        let interval = sending.max(acknowledging);
        if interval == Nanos::ZERO || least.is_some_and(|least| interval < least) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered,
            prior_delivered: newest.delivered,
            interval,
            application_limited: newest.application_limited,
            lost,
        })
    }
}
