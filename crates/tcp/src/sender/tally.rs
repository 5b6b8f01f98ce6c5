//! What one ACK has delivered.

use super::flight::Sent;
use queuescope_wire::Nanos;

/// What one ACK has delivered.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Bytes acknowledged cumulatively for the first time.
    pub(crate) acked: u64,
    /// Bytes that were not known to have arrived before.
    pub(crate) delivered: u64,
    /// Of those, selectively.
    pub(crate) selectively: u64,
    /// Whether data that was sent again is among it.
    pub(crate) repaired: bool,
    /// Whether the first segment that was acknowledged cumulatively was sent once.
    pub(crate) first_is_clean: bool,
    /// When the first and the last of the segments were sent that were sent once.
    pub(crate) first_sent_at: Option<Nanos>,
    pub(crate) last_sent_at: Option<Nanos>,
    /// The segment that was sent last.
    pub(crate) newest: Option<Sent>,
}

impl Tally {
    #[inline]
    pub(crate) fn deliver(&mut self, sent: &Sent, bytes: u64) {
        self.delivered += bytes;
        if sent.ever_repeated {
            self.repaired = true;
        } else {
            self.first_sent_at.get_or_insert(sent.sent_at);
            self.last_sent_at = self.last_sent_at.max(Some(sent.sent_at));
        }
        let later = |newest: Sent| (sent.sent_at, sent.seq) > (newest.sent_at, newest.seq);
        if self.newest.is_none_or(later) {
            self.newest = Some(*sent);
        }
    }
}
