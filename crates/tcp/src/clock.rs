//! The clock of the timestamp option (RFC 7323 section 5.4). It counts ticks; many segments share one.

use queuescope_wire::Nanos;

/// A clock that counts ticks. It caches its last value, because a division costs about as much as all other work on a
/// segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    tick: u64,
    count: u64,
    /// When the current tick began, and when it ends.
    began: u64,
    ends: u64,
}

impl Clock {
    /// A clock with this tick; `None` without a tick.
    pub(crate) fn new(tick: Option<Nanos>) -> Option<Self> {
        tick.map(|tick| Self { tick: tick.0.max(1), count: 0, began: 0, ends: tick.0.max(1) })
    }

    /// The value at `now`.
    #[inline]
    pub(crate) fn at(&mut self, now: Nanos) -> u32 {
        if now.0 < self.began || now.0 >= self.ends {
            self.count = now.0 / self.tick;
            self.began = self.count * self.tick;
            self.ends = self.began.saturating_add(self.tick);
        }
        self.count as u32
    }

    /// The time since the clock showed `value`, in whole ticks.
    #[inline]
    pub(crate) fn since(&mut self, value: u32, now: Nanos) -> Nanos {
        Nanos(u64::from(self.at(now).wrapping_sub(value)) * self.tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_whole_ticks_and_wraps() {
        let mut clock = Clock::new(Some(Nanos(1_000_000))).unwrap();
        for now in [0, 999_999, 1_000_000, 1_999_999, 5_500_000, 2_000_000, 2_000_001] {
            assert_eq!(clock.at(Nanos(now)), (now / 1_000_000) as u32);
        }
        assert_eq!(clock.since(3, Nanos(5_999_999)), Nanos(2_000_000));
        let wrapped = Nanos(((1 << 32) + 1) * 1_000_000);
        assert_eq!(clock.since(u32::MAX, wrapped), Nanos(2_000_000));
        assert!(Clock::new(None).is_none());
    }
}
