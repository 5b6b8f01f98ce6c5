//! The delivery rate (draft-cheng-iccrg-delivery-rate-estimation section 3; for ns-3's rules see [`RateMethod`]).

use super::sent::SentSegment;
use super::tally::{PersistentSample, Tally};
use crate::congestion::RateSample;
use crate::params::RateMethod;
use queuescope_wire::Nanos;

/// How many bytes a connection has delivered, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    delivered: u64,
    delivered_at: Nanos,
    transmissions: u64,
    first_sent_at: Nanos,
    /// If not zero: until this many bytes are delivered, samples may reflect what the application offered, not the
    /// path.
    limited_until: u64,
    /// Whether samples were limited when the next segment became due, if that was before it was sent.
    limited_then: Option<bool>,
    /// The state of ns-3's method, where it is used.
    persistent: Option<Box<PersistentRate>>,
}

/// What ns-3's method keeps from ACK to ACK.
#[derive(Debug, Clone, Copy, Default)]
struct PersistentRate {
    sample: PersistentSample,
    /// How long it took to acknowledge what the sample counts.
    acknowledging: Nanos,
    /// The last rate: bytes, and the time that they took.
    rate: Option<(u64, Nanos)>,
}

impl Delivery {
    /// Nothing is delivered yet.
    pub(crate) fn new(method: RateMethod) -> Self {
        Self { persistent: (method == RateMethod::Ns3).then(Box::default), ..Self::default() }
    }

    /// The sample that an ACK may replace, where samples persist.
    #[inline]
    pub(crate) fn persistent(&self) -> Option<PersistentSample> {
        self.persistent.as_ref().map(|persistent| PersistentSample { fresh: None, ..persistent.sample })
    }

    /// Whether a segment is sent with nothing in flight. ns-3 looks at what is in the network, the draft at what is
    /// outstanding.
    #[inline]
    pub(crate) fn begins(&self, outstanding: bool, in_network: u64) -> bool {
        if self.persistent.is_some() { in_network == 0 } else { !outstanding }
    }

    /// Records the current state in a segment that is sent.
    #[inline]
    pub(crate) fn stamp(&mut self, sent: &mut SentSegment, idle: bool, now: Nanos) {
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
        sent.application_limited = self.limited_then.take().unwrap_or(self.is_limited());
    }

    /// Whether segments sent now give samples of what the application offers.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limited_until > 0
    }

    /// Sets whether samples were limited when the next segment became due.
    #[inline]
    pub(crate) fn limit_next(&mut self, limited: bool) {
        self.limited_then = Some(limited);
    }

    /// An ACK delivered `bytes` bytes.
    #[inline]
    pub(crate) fn deliver(&mut self, bytes: u64, now: Nanos) {
        if bytes > 0 {
            self.delivered += bytes;
            self.delivered_at = now;
        }
    }

    /// The application has nothing more to send.
    #[inline]
    pub(crate) fn limit(&mut self, in_network: u64) {
        self.limited_until = (self.delivered + in_network).max(1);
    }

    /// The sample of an ACK. `None` if it delivered nothing (ns-3 repeats the last sample), or if its interval is
    /// shorter than `least`, the least round-trip time: then it belongs to a retransmitted segment, and which copy
    /// arrived is unknown.
    #[inline]
    pub(crate) fn sample(&mut self, tally: &Tally, lost: u64, least: Option<Nanos>, now: Nanos) -> Option<RateSample> {
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        if self.persistent.is_some() {
            return self.persistent_sample(tally, lost, least, now);
        }
        if tally.delivered == 0 {
            return None;
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
            amount: self.delivered.saturating_sub(newest.delivered),
            interval,
            application_limited: newest.application_limited,
            lost,
        })
    }

    /// The sample of an ACK by ns-3's rules.
    fn persistent_sample(&mut self, tally: &Tally, lost: u64, least: Option<Nanos>, now: Nanos) -> Option<RateSample> {
        let persistent = self.persistent.as_mut()?;
        if let Some(sample) = tally.persistent {
            persistent.sample = sample;
            if let Some((since, sent_at)) = sample.fresh {
                persistent.acknowledging = now.saturating_sub(since);
                self.first_sent_at = sent_at;
            }
        }
        let amount = self.delivered.saturating_sub(persistent.sample.prior);
        if persistent.sample.prior_at > Nanos::ZERO {
            let interval = persistent.sample.sending.max(persistent.acknowledging);
            if interval > Nanos::ZERO && least.is_none_or(|least| interval >= least) {
                let (before, time) = persistent.rate.unwrap_or_default();
                // An application-limited sample counts only if it is not below the previous rate.
                let faster = u128::from(amount) * u128::from(time.0) >= u128::from(before) * u128::from(interval.0);
                if faster || !persistent.sample.application_limited {
                    persistent.rate = Some((amount, interval));
                }
            } else {
                persistent.sample.prior_at = Nanos::ZERO;
            }
        }
        // Without a rate of its own, the sample repeats the previous one.
        let (amount, interval) = persistent.rate?;
        Some(RateSample {
            delivered: self.delivered,
            prior_delivered: persistent.sample.prior,
            amount,
            interval,
            application_limited: persistent.sample.application_limited,
            lost,
        })
    }
}
