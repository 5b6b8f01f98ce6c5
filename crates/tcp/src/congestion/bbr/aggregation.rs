//! ACK aggregation: how much more is acknowledged at once than the bandwidth explains, because ACKs were held up and
//! arrived together (Linux's `tcp_bbr` since 5.1; draft-cardwell-iccrg-bbr-congestion-control-01 section 4.5.5).
//!
//! ns-3 counts time in whole seconds, so the bandwidth explains nothing, and it restarts the count after 4096 bytes:
//! the window gains room for about two segments.

use queuescope_wire::Nanos;

/// How much aggregation of ACKs is allowed for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AggregationParams {
    /// The unexplained bytes are multiplied by this and added to the window: 1.
    pub gain: f64,
    /// They are the largest of one to two periods of this many round trips: 5.
    pub rounds: u32,
    /// At most what the bandwidth delivers in this time is added: 100 ms.
    pub most: Nanos,
    /// The count restarts at this amount, in segments ([`Limit::Segments`]) or bytes.
    pub limit: Limit,
    /// Time is counted in whole multiples of this.
    pub time_unit: Nanos,
}

/// The amount at which the count restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// In segments. Linux: 2^20.
    Segments(u64),
    /// In bytes. ns-3: 4096.
    Bytes(u64),
}

impl AggregationParams {
    /// Those of Linux.
    pub fn linux() -> Self {
        let limit = Limit::Segments(1 << 20);
        Self { gain: 1.0, rounds: 5, most: Nanos(100_000_000), limit, time_unit: Nanos(1) }
    }

    /// Those of ns-3 3.37.
    pub fn ns3() -> Self {
        Self { limit: Limit::Bytes(4096), time_unit: Nanos(1_000_000_000), ..Self::linux() }
    }
}

/// Measures unexplained deliveries.
#[derive(Debug, Clone)]
pub(in crate::congestion) struct Aggregation {
    params: AggregationParams,
    limit: u64,
    began: Nanos,
    acked: u64,
    /// The largest of the current period of round trips, and of the one before.
    extra: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    pub fn new(params: AggregationParams, mss: u64) -> Self {
        let limit = match params.limit {
            Limit::Segments(segments) => segments.saturating_mul(mss),
            Limit::Bytes(bytes) => bytes,
        };
        Self { params, limit, began: Nanos::ZERO, acked: 0, extra: [0; 2], rounds: 0 }
    }

    /// Changes how many round trips a period has.
    pub fn set_rounds(&mut self, rounds: u32) {
        self.params.rounds = rounds;
    }

    /// Nothing was in flight: the count restarts.
    pub fn restart(&mut self, now: Nanos) {
        (self.began, self.acked) = (now, 0);
    }

    /// An ACK acknowledged `acked` bytes. `bandwidth` is in bytes per second.
    #[inline]
    pub fn on_ack(&mut self, acked: u64, bandwidth: f64, window: u64, round_start: bool, now: Nanos) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= self.params.rounds {
                self.rounds = 0;
                self.extra = [0, self.extra[0]];
            }
        }
        let mut elapsed = now.saturating_sub(self.began);
        if self.params.time_unit.0 > 1 {
            elapsed = Nanos(elapsed.0 - elapsed.0 % self.params.time_unit.0);
        }
        let mut explained = (bandwidth * 1e-9 * elapsed.0 as f64) as u64;
        if self.acked <= explained || self.acked.saturating_add(acked) >= self.limit {
            self.restart(now);
            explained = 0;
        }
        self.acked = self.acked.saturating_add(acked);
        let extra = self.acked.saturating_sub(explained).min(window);
        self.extra[0] = self.extra[0].max(extra);
    }

    /// The room that the window gets for aggregation, in bytes.
    #[inline]
    pub fn room(&self, bandwidth: f64) -> u64 {
        let extra = self.params.gain * self.extra[0].max(self.extra[1]) as f64;
        extra.min(bandwidth * self.params.most.as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes per millisecond is 1 MB/s. ACKs for ten segments arrive every 10 ms: the unexplained bytes are those
    /// of the last ACK.
    #[test]
    fn acks_that_arrive_together_enlarge_the_window() {
        let mut aggregation = Aggregation::new(AggregationParams::linux(), 1_000);
        for ack in 1..100 {
            aggregation.on_ack(10_000, 1e6, 1 << 30, ack % 4 == 0, Nanos(ack * 10_000_000));
        }
        assert_eq!(aggregation.room(1e6), 10_000);
        assert_eq!(aggregation.room(1e4), 1_000, "no more than 100 ms");
        // Single ACKs for as many round trips as are remembered leave at most the segment of the ACK itself.
        for ack in 0..1_000 {
            aggregation.on_ack(1_000, 1e6, 1 << 30, ack % 10 == 0, Nanos(1_000_000_000 + ack * 1_000_000));
        }
        assert_eq!(aggregation.room(1e6), 1_000);
    }

    #[test]
    fn ns3_allows_for_what_fits_in_4096_bytes() {
        let mut aggregation = Aggregation::new(AggregationParams::ns3(), 1_448);
        for ack in 1..100 {
            aggregation.on_ack(1_448, 1e6, 1 << 30, false, Nanos(ack * 1_448_000));
        }
        assert_eq!(aggregation.room(1e6), 2 * 1_448);
    }
}
