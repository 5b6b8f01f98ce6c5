//! How much more is acknowledged at once than the bandwidth explains: ACKs that were held up and came together (Linux's
//! `tcp_bbr` since 5.1; draft-cardwell-iccrg-bbr-congestion-control-01 section 4.5.5).
//!
//! ns-3 counts the time in whole seconds, so that nothing is explained by the bandwidth, and begins anew after 4096 bytes:
//! the window has room for some two segments more.

use queuescope_wire::Nanos;

/// How late ACKs are allowed for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AggregationParams {
    /// So many times what came more than explained is added to the window: 1.
    pub gain: f64,
    /// It is the largest of one to two times so many round trips: 5.
    pub rounds: u32,
    /// No more is added than the bandwidth gives in so long: 100 ms.
    pub most: Nanos,
    /// Counting begins anew when so much was counted, in segments ([`Limit::Segments`]) or bytes.
    pub limit: Limit,
    /// Time is counted in whole numbers of this.
    pub time_unit: Nanos,
}

/// After how much counting begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Linux: 2^20.
    Segments(u64),
    /// ns-3: 4096.
    Bytes(u64),
}

impl AggregationParams {
    /// As Linux.
    pub fn linux() -> Self {
        let limit = Limit::Segments(1 << 20);
        Self { gain: 1.0, rounds: 5, most: Nanos(100_000_000), limit, time_unit: Nanos(1) }
    }

    /// As ns-3.37.
    pub fn ns3() -> Self {
        Self { limit: Limit::Bytes(4096), time_unit: Nanos(1_000_000_000), ..Self::linux() }
    }
}

/// What came more than explained.
#[derive(Debug, Clone)]
pub(super) struct Aggregation {
    params: AggregationParams,
    limit: u64,
    began: Nanos,
    acked: u64,
    /// The most of this stretch of round trips, and of the one before.
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

    /// Nothing was in flight: what comes from now on is counted anew.
    pub fn restart(&mut self, now: Nanos) {
        (self.began, self.acked) = (now, 0);
    }

    /// So much was acknowledged, at a bandwidth in bytes per second.
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

    /// Room in the window for it, in bytes.
    #[inline]
    pub fn room(&self, bandwidth: f64) -> u64 {
        let extra = self.params.gain * self.extra[0].max(self.extra[1]) as f64;
        extra.min(bandwidth * self.params.most.as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes a millisecond is 1 MB/s; ACKs for ten each come every 10 ms: what is more than explained is what came with
    /// the last ACK.
    #[test]
    fn acks_that_come_together_make_room_for_what_they_held_up() {
        let mut aggregation = Aggregation::new(AggregationParams::linux(), 1_000);
        for ack in 1..100 {
            aggregation.on_ack(10_000, 1e6, 1 << 30, ack % 4 == 0, Nanos(ack * 10_000_000));
        }
        assert_eq!(aggregation.room(1e6), 10_000);
        assert_eq!(aggregation.room(1e4), 1_000, "no more than 100 ms");
        // Single ACKs for as many round trips as are remembered: at most the segment of the ACK itself is left.
        for ack in 0..1_000 {
            aggregation.on_ack(1_000, 1e6, 1 << 30, ack % 10 == 0, Nanos(1_000_000_000 + ack * 1_000_000));
        }
        assert_eq!(aggregation.room(1e6), 1_000);
    }

    #[test]
    fn ns3_makes_room_for_what_fits_in_4096_bytes() {
        let mut aggregation = Aggregation::new(AggregationParams::ns3(), 1_448);
        for ack in 1..100 {
            aggregation.on_ack(1_448, 1e6, 1 << 30, false, Nanos(ack * 1_448_000));
        }
        assert_eq!(aggregation.room(1e6), 2 * 1_448);
    }
}
