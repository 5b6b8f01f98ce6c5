//! What one ACK delivers.

use super::sent::SentSegment;
use queuescope_wire::Nanos;

/// What one ACK delivers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Retransmitted segments sent later than this are acknowledged for an earlier copy.
    pub(crate) sure_until: Nanos,
    /// Bytes acknowledged cumulatively for the first time.
    pub(crate) acked: u64,
    /// Bytes that were not known to have arrived before.
    pub(crate) delivered: u64,
    /// Those of them that were acknowledged selectively.
    pub(crate) selectively: u64,
    /// Whether retransmitted data is among the bytes that were acknowledged cumulatively and not known to have arrived.
    pub(crate) repaired: bool,
    /// Whether the first segment that was acknowledged cumulatively was sent once. Only segments sent after the last
    /// timeout count.
    pub(crate) first_is_clean: bool,
    /// When the first and the last of the segments that were sent once were sent.
    pub(crate) first_sent_at: Option<Nanos>,
    pub(crate) last_sent_at: Option<Nanos>,
    /// The segment that was sent last.
    pub(crate) newest: Option<NewestSegment>,
    /// The rate sample that persists, in ns-3's method.
    pub(crate) persistent: Option<PersistentSample>,
    /// The last transmission and its time, among segments whose arrived copy is known (RFC 8985 section 6.2 step 2).
    pub(crate) newest_sure: Option<(u64, Nanos)>,
    /// The sequence number after the lowest segment that was sent once, and after the highest of all.
    pub(crate) lowest_sure: Option<u64>,
    pub(crate) highest: u64,
}

impl Tally {
    #[inline(always)]
    pub(crate) fn deliver(&mut self, sent: &SentSegment, bytes: u64) {
        self.delivered += bytes;
        let end = sent.end();
        self.highest = self.highest.max(end);
        if !sent.ever_repeated || sent.sent_at <= self.sure_until {
            self.newest_sure = self.newest_sure.max(Some((sent.serial, sent.sent_at)));
        }
        if !sent.ever_repeated {
            self.lowest_sure = Some(self.lowest_sure.map_or(end, |lowest| lowest.min(end)));
            self.first_sent_at.get_or_insert(sent.sent_at);
            self.last_sent_at = self.last_sent_at.max(Some(sent.sent_at));
        }
        if let Some(persistent) = &mut self.persistent {
            persistent.deliver(sent);
        }
        if self.newest.is_none_or(|newest| sent.serial > newest.serial) {
            self.newest = Some(NewestSegment {
                serial: sent.serial,
                sent_at: sent.sent_at,
                delivered: sent.delivered,
                delivered_at: sent.delivered_at,
                first_sent_at: sent.first_sent_at,
                application_limited: sent.application_limited,
            });
        }
    }
}

/// What a segment recorded when it was sent; see [`SentSegment`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewestSegment {
    pub(crate) serial: u64,
    pub(crate) sent_at: Nanos,
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Nanos,
    pub(crate) first_sent_at: Nanos,
    pub(crate) application_limited: bool,
}

/// A rate sample that persists from ACK to ACK, as in ns-3 3.37 (`TcpRateLinux::TcpRateSample`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PersistentSample {
    /// How many bytes were delivered when the sample's segment was sent, and when the last of them was. Zero: the
    /// sample is not valid.
    pub(crate) prior: u64,
    pub(crate) prior_at: Nanos,
    /// How long it took to send what the sample counts.
    pub(crate) sending: Nanos,
    /// If the sample is new with this ACK: when its acknowledging time starts, and when the segment was sent.
    pub(crate) fresh: Option<(Nanos, Nanos)>,
    pub(crate) application_limited: bool,
}

impl PersistentSample {
    #[inline]
    fn deliver(&mut self, sent: &SentSegment) {
        if self.prior == 0 || sent.delivered > self.prior {
            // Its acknowledging time starts where the previous sample's deliveries end.
            self.fresh = Some((self.prior_at, sent.sent_at));
            (self.prior, self.prior_at) = (sent.delivered, sent.delivered_at);
            self.sending = sent.sent_at.saturating_sub(sent.first_sent_at);
            self.application_limited = sent.application_limited;
        }
    }
}
