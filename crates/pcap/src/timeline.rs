//! Times of a capture whose clock jumped: one wrong time must not distort the times of all later packets.

use queuescope_wire::Nanos;

use crate::reader::ReadStats;

/// The longest disorder of timestamps, 1 s. A time that differs by more from those around it is wrong. Capture programs merge interfaces and
/// processors within milliseconds to tens of milliseconds; NTP steps a clock only from 128 ms on (RFC 5905, section 12, `STEPT`), and usually by
/// seconds. A bound between these would also change captures that are only out of order.
pub(crate) const BOUND: u64 = 1_000_000_000;

/// Follows the times of a capture. It corrects two faults:
///
/// - An outlier: a time more than [`BOUND`] away from the packets before and behind it. It becomes the time of the packet before. The first packet
///   is one if it is that far after both packets behind it; it becomes the time of the second.
/// - A step back of the clock: from one packet on, times are earlier by more than [`BOUND`]. They are moved to continue after the packet before,
///   until the clock returns.
///
/// A gap, after which times stay ahead, is not a fault. Smaller disorder is left to the caller.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The latest corrected time, nanoseconds; `None` before the first packet.
    last: Option<u64>,
    /// Nanoseconds to add to times: the sum of the steps back.
    offset: u64,
    /// The same before the latest step.
    before_step: u64,
}

impl Timeline {
    /// The corrected time of the next packet, if `time` continues that of the packet before without doubt.
    #[inline(always)]
    pub(crate) fn continues(&mut self, time: Nanos) -> Option<Nanos> {
        let (last, at) = (self.last?, time.0.saturating_add(self.offset));
        // Wraps for a time before the last, which is then far above the bound.
        (at.wrapping_sub(last) <= BOUND).then(|| {
            self.last = Some(at);
            Nanos(at)
        })
    }

    /// Whether the time of the packet behind is needed to judge `time`.
    pub(crate) fn is_doubtful(&self, time: Nanos) -> bool {
        self.last.is_none_or(|last| time.0.saturating_add(self.offset).abs_diff(last) > BOUND)
    }

    /// Whether `time` jumps ahead, and `next`, the time of the packet behind, is back. Then one of the two is wrong, and the third packet decides.
    pub(crate) fn needs_third(&self, time: Nanos, next: Nanos) -> bool {
        self.last.is_none_or(|last| time.0.saturating_add(self.offset) > last) && is_before(next, time)
    }

    /// The corrected time of a packet that does not [continue](Self::continues) the times before. `next` is the time of the packet behind, if it
    /// is [needed](Self::is_doubtful) and known, unless the [third](Self::needs_third) contradicts it.
    pub(crate) fn correct(&mut self, time: Nanos, next: Option<Nanos>, stats: &mut ReadStats) -> Nanos {
        let at = time.0.saturating_add(self.offset);
        let next = next.map(|next| next.0.saturating_add(self.offset));
        let next_is_before = |time: u64| next.filter(|next| is_before(Nanos(*next), Nanos(time)));
        let Some(last) = self.last else {
            let first = next_is_before(at);
            stats.time_outliers += u64::from(first.is_some());
            let at = first.unwrap_or(at);
            self.last = Some(at);
            return Nanos(at);
        };
        if at.abs_diff(last) <= BOUND {
            self.last = Some(last.max(at));
            return Nanos(at);
        }
        if at > last {
            let returned = time.0.saturating_add(self.before_step);
            if self.before_step < self.offset && returned.abs_diff(last) <= BOUND {
                self.offset = self.before_step;
                self.last = Some(last.max(returned));
                return Nanos(returned);
            }
            if next_is_before(at).is_some_and(|next| next.saturating_add(BOUND) >= last) {
                stats.time_outliers += 1;
                return Nanos(last);
            }
            self.last = Some(at);
            return Nanos(at);
        }
        if next_is_before(last).is_some() {
            let step = last - at;
            (self.before_step, self.offset) = (self.offset, self.offset.saturating_add(step));
            stats.clock_steps += 1;
            stats.largest_clock_step = stats.largest_clock_step.max(Nanos(step));
        } else {
            stats.time_outliers += 1;
        }
        Nanos(last)
    }
}

/// Whether `time` is before `other` by more than the bound.
pub(crate) fn is_before(time: Nanos, other: Nanos) -> bool {
    time.0.saturating_add(BOUND) < other.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// The corrected times of packets, and the counts.
    fn corrected(times: &[u64]) -> (Vec<u64>, ReadStats) {
        let (mut timeline, mut stats) = (Timeline::default(), ReadStats::default());
        let mut place = |index: usize| {
            let time = Nanos(times[index]);
            let at = timeline.continues(time).unwrap_or_else(|| {
                let behind = |count| times.get(index + count).copied().map(Nanos);
                let next = timeline.is_doubtful(time).then(|| behind(1)).flatten().filter(|next| {
                    !timeline.needs_third(time, *next) || behind(2).is_none_or(|third| is_before(third, time))
                });
                timeline.correct(time, next, &mut stats)
            });
            at.0
        };
        let placed = (0..times.len()).map(&mut place).collect();
        (placed, stats)
    }

    #[test]
    fn later_packets_keep_their_distances_behind_a_step_back() {
        let (times, stats) = corrected(&[100, 101, 40, 41, 43].map(|at| at * SECOND / 2));
        assert_eq!(times, [100, 101, 101, 102, 104].map(|at| at * SECOND / 2));
        assert_eq!((stats.clock_steps, stats.largest_clock_step, stats.time_outliers), (1, Nanos(61 * SECOND / 2), 0));
    }

    #[test]
    fn times_are_kept_again_when_the_clock_returns() {
        let (times, stats) =
            corrected(&[100 * SECOND, 100 * SECOND, 0, 5, 100 * SECOND + 20, 100 * SECOND + 30, 300 * SECOND]);
        assert_eq!(times, [0, 0, 0, 5, 20, 30, 200 * SECOND].map(|at| 100 * SECOND + at));
        assert_eq!((stats.clock_steps, stats.time_outliers), (1, 0));
    }

    #[test]
    fn disorder_within_the_bound_is_left_alone() {
        let times = [10 * SECOND, 9 * SECOND, 11 * SECOND, 10 * SECOND + 1, 11 * SECOND + 1];
        assert_eq!(corrected(&times), (times.to_vec(), ReadStats::default()));
    }

    #[test]
    fn the_last_packet_may_come_after_a_gap() {
        let (times, stats) = corrected(&[1, 2, 1_000 * SECOND]);
        assert_eq!((times, stats), (vec![1, 2, 1_000 * SECOND], ReadStats::default()));
    }

    /// Times that never decrease, with gaps.
    fn monotone() -> impl Strategy<Value = Vec<u64>> {
        let gap = prop_oneof![8 => 0..5_000_000_u64, 1 => 0..3 * SECOND, 1 => 0..100_000 * SECOND];
        (0..100 * SECOND, prop::collection::vec(gap, 3..40)).prop_map(|(start, gaps)| {
            let times = gaps.iter().scan(start, |time, gap| {
                *time += gap;
                Some(*time)
            });
            times.collect()
        })
    }

    proptest! {
        #[test]
        fn times_that_never_decrease_are_unchanged(times in monotone()) {
            prop_assert_eq!(corrected(&times), (times, ReadStats::default()));
        }

        #[test]
        fn an_outlier_changes_no_other_packet(
            times in monotone(),
            at in any::<prop::sample::Index>(),
            ahead: bool,
            further in 1..u64::from(u32::MAX) * SECOND,
        ) {
            // The last packet could also come after a gap, and the packets behind an early first one too.
            let at = at.index(times.len() - 1);
            prop_assume!(ahead || at > 0);
            let mut wrong = times.clone();
            wrong[at] = if ahead {
                times[at + 1 + usize::from(at == 0)] + BOUND + further
            } else {
                let latest = times[at - 1].checked_sub(BOUND + 1);
                prop_assume!(latest.is_some());
                latest.unwrap_or_default().saturating_sub(further % (200 * SECOND))
            };
            let (placed, stats) = corrected(&wrong);
            let mut expected = times.clone();
            expected[at] = if at == 0 { times[1] } else { times[at - 1] };
            prop_assert_eq!(placed, expected);
            prop_assert_eq!(stats, ReadStats { time_outliers: 1, ..ReadStats::default() });
        }

        #[test]
        fn behind_a_step_back_distances_are_kept(
            // A gap as long as the step could also be the clock's return.
            gaps in prop::collection::vec(0..SECOND / 2, 4..40), at in any::<prop::sample::Index>(), further in 0..100 * SECOND,
        ) {
            let times: Vec<u64> = gaps.iter().scan(200 * SECOND, |time, gap| { *time += gap; Some(*time) }).collect();
            // The step is behind the second packet or later, and two packets behind it confirm it.
            let at = 2 + at.index(times.len() - 3);
            let step = times[at] - times[at - 1] + BOUND + 3 * SECOND / 2 + further;
            let stepped: Vec<u64> = (0..).zip(&times).map(|(index, time)| if index < at { *time } else { time - step }).collect();
            let (placed, stats) = corrected(&stepped);
            let moved = times[at] - times[at - 1];
            let expected: Vec<u64> = (0..).zip(&times).map(|(index, time)| if index < at { *time } else { time - moved }).collect();
            prop_assert_eq!(placed, expected);
            prop_assert_eq!((stats.clock_steps, stats.largest_clock_step, stats.time_outliers), (1, Nanos(step - moved), 0));
        }
    }
}
