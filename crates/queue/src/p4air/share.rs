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
    /// 1, 3/4, 5/8 or 9/16 of `RTT >> s`, the least of these that is not below the share: at most a third more than it. A
    /// switch adds two shifted times, and finds both shifts by the number of flows.
    Parts,
}

/// Two right shifts whose sum is more than a half of the first alone: by how many more bits, and the sixteenths that they are.
const PARTS: [([u32; 2], u64); 3] = [([1, 4], 9), ([1, 3], 10), ([1, 2], 12)];

impl ShareForm {
    /// The right shifts whose sum is a flow's share ([`ShareForm::Parts`]), for a link that needs `packet_time` ns for a packet, and this many
    /// flows; 0 counts as 1 for both. One shift if the sum of two is too little.
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
                let (one, other) = Self::parts(packet_time, flows.into());
                return right(one) + other.map_or(0, right);
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
        // 120 us between two packets, of which 2^16 ns is the power below: exactly 833, and 9/16 of 1525 are 857.
        assert_eq!(shares(100), [1525, 762 + 95, 762]);
        // 67.2 us: exactly 1488, so three quarters of 1525 are too few.
        assert_eq!(shares(56), [1525, 1525, 762]);
    }

    proptest! {
        #[test]
        fn a_share_is_never_too_small_by_more_than_its_rounding(
            rtt in 0u64..2_000_000_000,
            packet_time in 1u64..200_000,
            flows in 1u32..100_000,
        ) {
            let between = packet_time * u64::from(flows);
            let exact = rtt / between;
            let [shift, parts] = [ShareForm::Shift { sensitivity: 0 }, ShareForm::Parts].map(|form| form.shifted(Nanos(rtt), packet_time, flows));
            prop_assert!(shift >= exact && shift <= 2 * exact + 1, "{} {}", shift, exact);
            // Each of the two parts is rounded down.
            prop_assert!(parts + 1 >= exact && parts <= exact + exact.div_ceil(3) + 1, "{} {}", parts, exact);
        }
    }
}
