//! A link that sends one packet at a time, in exact integer arithmetic.

use queuescope_wire::{ByteCount, Nanos, Rate};

/// A link that sends one packet at a time.
///
/// The time when it is free again is kept as whole nanoseconds and a remainder in units of `1 / rate`
/// nanoseconds, so a busy period of any length ends exactly where the sum of its bits says, without drift. With the rounding of
/// ns-3 ([`Transmitter::round_each`]) it drifts.
///
/// ```
/// use queuescope_sim::Transmitter;
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let mut link = Transmitter::new("7mbps".parse()?);
/// for _ in 0..7_000 {
///     link.send(ByteCount(1_000));
/// }
/// assert_eq!(link.free_at(), Nanos(8_000_000_000), "7000 times 8/7 ms, without drift");
/// link.wait_until(Nanos(9_000_000_000));
/// assert_eq!(link.free_at(), Nanos(9_000_000_000));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Transmitter {
    rate: Rate,
    free: Nanos,
    /// In units of `1 / rate` nanoseconds; below `rate`.
    remainder: u64,
    /// Whether each packet takes whole nanoseconds.
    whole: bool,
}

impl Transmitter {
    /// A link that is free from time zero.
    pub fn new(rate: Rate) -> Self {
        Self { rate, free: Nanos::ZERO, remainder: 0, whole: false }
    }

    /// From now on the transmission time of each packet is rounded to the nearest nanosecond (ns-3's `DataRate::CalculateBytesTxTime`): at
    /// 10 Gb/s, 1 502 bytes take 1 202 ns in place of 1 201.6.
    pub fn round_each(&mut self) {
        (self.whole, self.remainder) = (true, 0);
    }

    /// When it is free to send the next packet, rounded down.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.free
    }

    /// Nothing was to be sent before `now`: it is not free any earlier.
    #[inline]
    pub fn wait_until(&mut self, now: Nanos) {
        if now > self.free {
            (self.free, self.remainder) = (now, 0);
        }
    }

    /// Sends a packet as soon as it is free.
    #[inline]
    pub fn send(&mut self, size: ByteCount) {
        let rate = self.rate.bits_per_second();
        // Within both bounds the sum is below 2^64; beyond them the result is exact, too, but slower.
        if size.0 < 1 << 30 && rate < 1 << 63 {
            let carried = if self.whole { rate / 2 } else { self.remainder };
            let work = size.0 * 8_000_000_000 + carried;
            self.free = self.free.saturating_add(Nanos(work / rate));
            self.remainder = if self.whole { 0 } else { work % rate };
        } else {
            let carried = if self.whole { rate / 2 } else { self.remainder };
            let work = u128::from(size.0) * 8_000_000_000 + u128::from(carried);
            let whole = u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX);
            self.free = self.free.saturating_add(Nanos(whole));
            self.remainder = if self.whole { 0 } else { (work % u128::from(rate)) as u64 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 10^9 packets of 1 byte at 7 bits per nanosecond: 8/7 ns each, which no fixed-point time per packet could represent.
    /// After each 7 packets the state is the same, exactly 8 ns later; so it is after any multiple of 7.
    #[test]
    fn nothing_drifts() {
        let mut link = Transmitter::new(Rate::from_bits_per_second(7_000_000_000).unwrap());
        for round in 0..1_000u64 {
            assert_eq!((link.free, link.remainder), (Nanos(round * 8), 0));
            for _ in 0..7 {
                link.send(ByteCount(1));
            }
        }
    }

    #[test]
    fn with_rounding_each_packet_takes_whole_nanoseconds() {
        // 1201.6 and 43.2 ns; and 2^33 bytes at 2^63 + 1 bits per second, which takes the slow path: 7.45 ns.
        let ten_gigabits = 10_000_000_000;
        for (rate, size, exact, whole) in [
            (ten_gigabits, 1_502, [1_201, 2_403, 3_604], [1_202, 2_404, 3_606]),
            (ten_gigabits, 54, [43, 86, 129], [43, 86, 129]),
            ((1 << 63) + 1, 1 << 33, [7, 14, 22], [7, 14, 21]),
        ] {
            for (rounds, ends) in [(false, exact), (true, whole)] {
                let mut link = Transmitter::new(Rate::from_bits_per_second(rate).unwrap());
                if rounds {
                    link.round_each();
                }
                let sent = [(); 3].map(|()| {
                    link.send(ByteCount(size));
                    link.free_at().0
                });
                assert_eq!(sent, ends);
            }
        }
    }

    proptest! {
        #[test]
        fn a_busy_period_ends_where_the_sum_of_its_bits_says(
            rate in 1..u64::MAX, sizes in prop::collection::vec(0..1u64 << 33, 1..40), start in 0..1u64 << 40
        ) {
            let mut link = Transmitter::new(Rate::from_bits_per_second(rate).unwrap());
            link.wait_until(Nanos(start));
            for size in &sizes {
                link.send(ByteCount(*size));
            }
            let bits = sizes.iter().map(|size| u128::from(*size) * 8_000_000_000).sum::<u128>();
            let end = u128::from(start) + bits / u128::from(rate);
            match u64::try_from(end) {
                Ok(end) => prop_assert_eq!((link.free, u128::from(link.remainder)), (Nanos(end), bits % u128::from(rate))),
                Err(_) => prop_assert_eq!(link.free, Nanos::MAX),
            }
        }
    }
}
