//! CoDel's control law as a table, for switches: how many drops are due by now.
//!
//! CoDel (RFC 8289, section 5) reads the time of the next drop, compares it, and stores a new one that is
//! `interval / sqrt(count)` later. A switch reaches each register once per packet, and most have no root. Here the time
//! at which a drop is due is not stored. It follows from the time since which the delay has been at or above target:
//! the first drop is due one interval after that, the second one interval later, and each further one
//! `interval / sqrt(count)` after the drop before. So a table has the number of drops that are due after each time, and
//! a register the number of those that were made. If fewer were made than are due, this packet is the next.
//!
//! Of the pseudocode in the RFC, this has no continued rate: each dropping state begins with a count of 1. Its
//! first drop is due one interval after the last packet below target left, not after the first packet above it. The
//! table has [`DropSchedule::LENGTH`] drops, for 45 intervals; behind its end, drops keep the last distance, rounded to
//! a power of two. A queue that stands for 73 minutes without a packet below target is beyond the clock of 32 bits: then
//! nothing more is due until there is one.

use queuescope_wire::Nanos;

/// Drops that are due, by the time since the delay was last below target. Times are in units of 1024 ns.
///
/// ```
/// use queuescope_queue::DropSchedule;
///
/// let schedule = DropSchedule::new("100ms".parse()?);
/// let due = [99, 101, 199, 201, 271, 342].map(|ms: u64| schedule.due((ms * 1_000_000 / 1024) as u32));
/// assert_eq!(due, [0, 1, 1, 2, 3, 4]);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropSchedule {
    /// The bits of a time that the table leaves out.
    shift: u32,
    /// When each drop of the table is due, without these bits.
    times: Vec<u32>,
    /// When the last drop of the table is due.
    end: u32,
    /// Behind the end, a drop is due after each 2^`tail` units.
    tail: u32,
}

impl DropSchedule {
    /// The number of drops in the table.
    pub const LENGTH: usize = 512;
    /// The bits of a time that the table compares.
    pub const KEY_BITS: u32 = 16;
    /// The longest interval: 48 s. The table then ends before half the time at which 32 bits wrap.
    pub const LONGEST: Nanos = Nanos(47_000_000 << 10);

    /// The schedule for an interval. One above [`LONGEST`](Self::LONGEST) counts as that.
    pub fn new(interval: Nanos) -> Self {
        let interval = (interval.min(Self::LONGEST).0 >> 10) as f64;
        let spacing = |count: usize| interval / libm::sqrt(count as f64);
        let mut due = interval;
        let exact: Vec<f64> = std::iter::once(due)
            .chain((1..Self::LENGTH).map(|count| {
                due += spacing(count);
                due
            }))
            .collect();
        let end = libm::ceil(due) as u32;
        // The end, rounded up, must be a key.
        let shift = (0..).find(|shift| end.div_ceil(1 << shift) < 1 << Self::KEY_BITS).unwrap_or(0);
        let times = exact.iter().map(|time| (libm::ceil(*time) as u32).div_ceil(1 << shift)).collect();
        let tail = libm::round(libm::log2(spacing(Self::LENGTH - 1).max(1.0))) as u32;
        // A time that is due is the first with these bits, so the end has none of those that are left out.
        Self { shift, times, end: end.div_ceil(1 << shift) << shift, tail }
    }

    /// How many drops are due when the delay was last below target this long ago, in units of 1024 ns.
    #[inline]
    pub fn due(&self, elapsed: u32) -> u32 {
        let key = elapsed.min(self.end) >> self.shift;
        let in_table = self.times.partition_point(|time| *time <= key) as u32;
        let behind = (elapsed.max(self.end) - self.end) >> self.tail;
        in_table.saturating_add(behind)
    }

    /// The entries of the table, from the lowest: a range of keys, and the number of drops that are due there. A key is a time without its low
    /// bits, of which there are [`shift`](Self::shift). The last range reaches to the highest key.
    pub fn entries(&self) -> impl Iterator<Item = ((u32, u32), u32)> {
        let ends = self.times.iter().skip(1).map(|next| next - 1).chain([(1 << Self::KEY_BITS) - 1]);
        let all = self.times.iter().zip(ends).zip(1..);
        all.filter(|((start, end), _)| **start <= *end).map(|((start, end), count)| ((*start, end), count))
    }

    /// The low bits of a time that the table leaves out.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// When the last drop of the table is due, in units of 1024 ns.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Behind the end, a drop is due after each two to the power of this many units.
    pub fn tail(&self) -> u32 {
        self.tail
    }
}

/// The two registers of a port that follow a [`DropSchedule`]. Each packet accesses each of them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduledDrops {
    /// When the last packet below target left, in units of 1024 ns, modulo 2^32.
    pub last_below: u32,
    /// How many drops were made since then; at first, the highest number.
    pub count: u32,
}

impl Default for ScheduledDrops {
    /// Nothing is due before the first packet below target: the count is the highest number.
    fn default() -> Self {
        Self { last_below: 0, count: u32::MAX }
    }
}

impl ScheduledDrops {
    /// Whether the packet that leaves at `now`, in units of 1024 ns, is to be dropped.
    #[inline]
    pub fn decide(&mut self, schedule: &DropSchedule, below: bool, now: u32) -> bool {
        if below {
            *self = Self { last_below: now, count: 0 };
            return false;
        }
        let is_due = self.count < schedule.due(now.wrapping_sub(self.last_below));
        self.count += u32::from(is_due);
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// CoDel's law in real numbers: when each drop is due, if each is made on time.
    fn law(interval: f64, drops: usize) -> Vec<f64> {
        let mut next = interval;
        let mut due = vec![next];
        for count in 1..drops {
            next += interval / (count as f64).sqrt();
            due.push(next);
        }
        due
    }

    #[test]
    fn drops_are_due_when_the_law_says() {
        // With the third from the end, the end is just below a power of two.
        let longest = (DropSchedule::LONGEST.0 >> 10) as u32;
        for interval in [195, 1_953, 97_656, 5_855, 976_562, longest] {
            let schedule = DropSchedule::new(Nanos(u64::from(interval) << 10));
            for (drop, exact) in law(f64::from(interval), DropSchedule::LENGTH).into_iter().enumerate() {
                // The first time at which that many drops are due.
                let (mut before, mut after) = (0, schedule.end());
                while before + 1 < after {
                    let middle = before + (after - before) / 2;
                    if schedule.due(middle) > drop as u32 { after = middle } else { before = middle }
                }
                let late = f64::from(after) - exact;
                assert!((0.0..f64::from(1 << schedule.shift()) + 1.0).contains(&late), "{interval}, {drop}: {late}");
            }
        }
    }

    #[test]
    fn behind_the_table_the_distance_stays() {
        let schedule = DropSchedule::new(Nanos(97_656 << 10));
        let last = 97_656.0 / (511f64).sqrt();
        let ratio = f64::from(1 << schedule.tail()) / last;
        assert!((0.707..=1.415).contains(&ratio), "{ratio}");
        let (end, step) = (schedule.end(), 1 << schedule.tail());
        assert_eq!([end - 1, end, end + step - 1, end + step].map(|time| schedule.due(time)), [511, 512, 512, 513]);
    }

    proptest! {
        #[test]
        fn entries_are_the_table(interval in 0..=DropSchedule::LONGEST.0, key in 0u32..1 << DropSchedule::KEY_BITS) {
            let schedule = DropSchedule::new(Nanos(interval));
            prop_assert!(schedule.end() >> schedule.shift() < 1 << DropSchedule::KEY_BITS);
            let found = schedule.entries().find(|((start, end), _)| (*start..=*end).contains(&key));
            let elapsed = (key << schedule.shift()).min(schedule.end());
            prop_assert_eq!(found.map_or(0, |(_, count)| count), schedule.due(elapsed));
        }

        #[test]
        fn more_time_is_never_fewer_drops(interval in 0u64..=1 << 45, one in 0u32.., other in 0u32..) {
            let schedule = DropSchedule::new(Nanos(interval));
            prop_assert!(schedule.due(one.min(other)) <= schedule.due(one.max(other)));
        }
    }
}
