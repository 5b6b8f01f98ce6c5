//! A flow's share of the link in a round trip, in packets (section III-D).

use queuescope_wire::Nanos;

/// How many packets fill a flow's share of the link in a round trip (the paper's BDP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareForm {
    /// `rate x RTT / flows / packet`, exactly: a switch cannot compute this.
    Exact,
    /// `RTT >> s`, where `2^s` is at most the time between two packets of the flow at its share (section III-D). So it is
    /// up to twice the share, never less: the paper postpones actions to keep the link busy.
    Shift {
        /// Added to `s`. Higher values make the share smaller and the actions more frequent.
        sensitivity: i8,
    },
    /// 1, 3/4, 5/8 or 9/16 of `RTT >> s`, the least of these that is not below the share: at most a third more than it, rounded
    /// down. A switch adds two shifted times, in sixteenths of a packet, and finds both shifts by the number of flows.
    Parts,
}

/// Two right shifts whose sum is more than a half of the first alone: by how many more bits, and the sixteenths that they are.
const PARTS: [([u32; 2], u64); 3] = [([1, 4], 9), ([1, 3], 10), ([1, 2], 12)];

/// Bits of fractions of a packet.
const FRACTION: u32 = 4;

impl ShareForm {
    /// The right shifts whose sum is a flow's share ([`ShareForm::Parts`]), for a link that needs `packet_time` ns for a packet, and this many
    /// flows; if either is 0, as for a nanosecond and one flow. One shift if the sum of two is too little.
    pub fn parts(packet_time: u64, flows: u64) -> (u32, Option<u32>) {
        let between = packet_time.saturating_mul(flows).max(1);
        let shift = between.ilog2();
        // The share is `RTT / between`.
        let is_enough = |sixteenths: u64| u128::from(between) * u128::from(sixteenths) >= 16 << shift;
        match PARTS.into_iter().find(|(_, sixteenths)| is_enough(*sixteenths)) {
            Some(([one, other], _)) => (shift + one, Some(shift + other)),
            None => (shift, None),
        }
    }

    /// The share by shifted round-trip times. An exact share counts as a shift without sensitivity.
    #[inline]
    pub(super) fn shifted(self, rtt: Nanos, packet_time: u64, flows: u32) -> u64 {
        let right = |by: u32| rtt.0.checked_shr(by).unwrap_or(0);
        let sensitivity = match self {
            Self::Parts => {
                // Rounded once: a share of two packets would be one if each part were rounded.
                let fine = |by: u32| (u128::from(rtt.0) << FRACTION).checked_shr(by).unwrap_or(0) as u64;
                let (one, other) = Self::parts(packet_time, flows.into());
                // Both parts together are short of less than two units, so one makes up for it.
                return (fine(one) + other.map_or(0, fine) + 1) >> FRACTION;
            }
            Self::Shift { sensitivity } => sensitivity,
            Self::Exact => 0,
        };
        let between = packet_time.saturating_mul(flows.into()).max(1);
        right((i64::from(between.ilog2()) + i64::from(sensitivity)).clamp(0, 63) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// At 10 Gb/s, a packet of 1500 bytes takes 1200 ns.
    #[test]
    fn shares_worked_by_hand() {
        let rtt = Nanos(100_000_000);
        let shares = |flows| {
            let forms = [ShareForm::Shift { sensitivity: 0 }, ShareForm::Parts, ShareForm::Shift { sensitivity: 1 }];
            forms.map(|form| form.shifted(rtt, 1200, flows))
        };
        // 120 us between two packets, of which 2^16 ns is the power below: exactly 833.3, and 9/16 of 1525.88 are 858.3.
        assert_eq!(shares(100), [1525, 858, 762]);
        // 67.2 us: exactly 1488, so three quarters of 1525.88 are too few.
        assert_eq!(shares(56), [1525, 1525, 762]);
        // At 20 Mb/s, 40 flows with 50 ms have 2.08 packets each, and three quarters of 2.98 are 2.2.
        assert_eq!(ShareForm::Parts.shifted(Nanos(50_000_000), 600_000, 40), 2);
    }

    proptest! {
        #[test]
        fn a_share_is_never_below_the_exact_one(
            rtt in 0u64..2_000_000_000,
            packet_time in 1u64..200_000,
            flows in 1u32..100_000,
        ) {
            let between = packet_time * u64::from(flows);
            let exact = rtt / between;
            let [shift, parts] = [ShareForm::Shift { sensitivity: 0 }, ShareForm::Parts].map(|form| form.shifted(Nanos(rtt), packet_time, flows));
            prop_assert!(shift >= exact && shift <= 2 * exact + 1, "{} {}", shift, exact);
            prop_assert!(parts >= exact && parts <= exact + (exact + 1).div_ceil(3) + 1, "{} {}", parts, exact);
        }
    }
}
