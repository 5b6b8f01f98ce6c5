//! RED behind the queue of a switch, in integers.

use super::state::Ramp;
use super::{RedAdaptation, RedParams, RedThresholds, RedUnit};

/// RED as the data plane of a switch computes it, for one port: an average that moves by a shift, and a table of probabilities.
///
/// The switch knows the length of the queue behind it only. So a packet is judged when it leaves, by the queue that it found, and has waited even if it
/// is dropped. The average is in units of 2^-16 packets. The table has an entry for each eighth of a packet, with the probability in the middle.
///
/// As in Kunze et al. (IM 2021, section IV), the packets since the last drop are not counted: each packet is drawn for by itself. Nor does the average
/// fall while the link is idle, because nothing happens then.
///
/// ```
/// use queuescope_queue::{SwitchRed, SwitchVerdict};
///
/// let mut red = SwitchRed::new(&SwitchRed::defaults()).expect("a switch can have them");
/// // A queue of 40 packets: the average reaches 30 packets, twice the highest threshold.
/// let verdicts: Vec<_> = (0..1000).map(|_| red.judge(40, u32::MAX)).collect();
/// assert_eq!(verdicts[0], SwitchVerdict::Pass);
/// assert_eq!(verdicts[999], SwitchVerdict::Certain);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRed {
    shift: u32,
    /// The probability of each eighth of a packet, in units of 2^-32; `None` if it is 1.
    chances: Vec<Option<u32>>,
    average: u32,
}

/// What is decided about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchVerdict {
    /// It passes.
    Pass,
    /// It is dropped by chance, or marked if it can be.
    Early,
    /// The average is where every packet is dropped.
    Certain,
}

impl SwitchRed {
    /// The longest queue that is distinguished, in packets.
    pub const LONGEST: u32 = (1 << 9) - 1;
    /// The fraction bits of the average.
    pub const FRACTION_BITS: u32 = 16;
    /// The fraction bits of the average that choose a probability.
    pub const KEY_FRACTION_BITS: u32 = 3;
    /// The bits of an average that choose a probability.
    pub const KEY_BITS: u32 = 9 + Self::KEY_FRACTION_BITS;

    /// The parameters of [`Red`](super::Red) that are closest to its defaults of those that a switch can have.
    pub fn defaults() -> RedParams {
        RedParams { weight: Some(1.0 / 512.0), wait: false, at_egress: true, ..RedParams::default() }
    }

    /// Starts with an average of 0.
    ///
    /// # Errors
    /// Names the parameter that a switch cannot have, and what is possible.
    pub fn new(params: &RedParams) -> Result<Self, (&'static str, &'static str)> {
        let (shift, RedThresholds { min, max }) = checked(params)?;
        let ramp = Ramp { min, max, gentle: params.gentle, nonlinear: params.nonlinear };
        let chance = |key: u32| {
            let average = (f64::from(key) + 0.5) / f64::from(1 << Self::KEY_FRACTION_BITS);
            let probability = if average < min { 0.0 } else { ramp.probability(average, params.max_probability) };
            (probability < 1.0).then_some((probability * (1u64 << 32) as f64) as u32)
        };
        Ok(Self { shift, chances: (0..1 << Self::KEY_BITS).map(chance).collect(), average: 0 })
    }

    /// Judges a packet that found `queue` packets, with a random number. The average has the packet in it.
    pub fn judge(&mut self, queue: u32, random: u32) -> SwitchVerdict {
        let length = i64::from(queue.min(Self::LONGEST)) << Self::FRACTION_BITS;
        let average = i64::from(self.average);
        self.average = (average + ((length - average) >> self.shift)) as u32;
        match self.chances.get((self.average >> (Self::FRACTION_BITS - Self::KEY_FRACTION_BITS)) as usize) {
            Some(Some(chance)) if random >= *chance => SwitchVerdict::Pass,
            Some(Some(_)) => SwitchVerdict::Early,
            Some(None) | None => SwitchVerdict::Certain,
        }
    }

    /// The logarithm of 1 / w_q.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The table: ranges of eighths of a packet, and the probability of each in units of 2^-32; `None` if it is 1.
    pub fn ranges(&self) -> Vec<((u16, u16), Option<u32>)> {
        let mut ranges: Vec<((u16, u16), Option<u32>)> = Vec::new();
        for (key, chance) in (0..).zip(&self.chances) {
            match ranges.last_mut() {
                Some(((_, last), same)) if same == chance => *last = key,
                _ => ranges.push(((key, key), *chance)),
            }
        }
        ranges
    }

    /// The word of its register.
    pub fn word(&self) -> u64 {
        self.average.into()
    }
}

/// The logarithm of 1 / w_q, and the thresholds, if a switch can have these parameters.
fn checked(params: &RedParams) -> Result<(u32, RedThresholds), (&'static str, &'static str)> {
    let thresholds = params.thresholds.ok_or(("thresholds", "must be given: a switch does not know its link"))?;
    if params.unit != RedUnit::Packets {
        return Err(("unit", "must be packets: a switch does not know the queue in bytes"));
    }
    if params.adaptation != RedAdaptation::Fixed {
        return Err(("adaptation", "must be fixed: the table of probabilities does not change"));
    }
    if params.wait {
        return Err(("wait", "must be false: the packets since the last drop are not counted"));
    }
    if !params.at_egress {
        return Err(("at-egress", "must be true: a switch knows the queue behind it only"));
    }
    if thresholds.min > thresholds.max {
        return Err(("thresholds", "must have the lower one first"));
    }
    if !(0.0..=255.0).contains(&thresholds.min) || !(0.0..=255.0).contains(&thresholds.max) {
        return Err((
            "thresholds",
            "must be from 0 to 255 packets: an average has 9 bits, and twice the highest counts",
        ));
    }
    let shift = params.weight.map(|weight| -libm::log2(weight)).filter(|shift| shift.fract() == 0.0);
    match shift {
        Some(shift) if (1.0..=16.0).contains(&shift) => Ok((shift as u32, thresholds)),
        _ => Err(("weight", "must be a power of two from 1/65536 to 1/2, such as 0.001953125: a switch shifts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn red(params: RedParams) -> SwitchRed {
        SwitchRed::new(&params).expect("a switch can have them")
    }

    /// By hand: w_q = 1/2, and thresholds of 2 and 4 packets with a probability of 1/2 at 4.
    #[test]
    fn averages_and_probabilities_by_hand() {
        let thresholds = Some(RedThresholds { min: 2.0, max: 4.0 });
        let params = RedParams { weight: Some(0.5), thresholds, max_probability: 0.5, ..SwitchRed::defaults() };
        let mut red = red(params);
        let half = 1 << 31;
        // 3, 4.5 (1/2 + 1/2 * 0.5625 / 4 in the middle of its eighth), 5.25, 5.625.
        assert_eq!((red.judge(6, 0), red.word()), (SwitchVerdict::Early, 3 << 16));
        assert_eq!((red.judge(6, half), red.word()), (SwitchVerdict::Early, 9 << 15));
        let at = |eighths: usize| f64::from(red.chances[eighths].expect("below 1")) / (1u64 << 32) as f64;
        assert!((at(36) - (0.5 + 0.5 * 0.5625 / 4.0)).abs() < 1e-9);
        // A quarter between 2.5 and 2.625, and nothing below 2.
        assert!((at(20) - 0.5 * 0.5625 / 2.0).abs() < 1e-9);
        assert_eq!((red.chances[15], red.chances[64]), (Some(0), None));
        // The floor of a negative change: the average falls by at least one unit.
        let mut low = SwitchRed { average: 1, ..red.clone() };
        assert_eq!((low.judge(0, 0), low.word()), (SwitchVerdict::Pass, 0));
    }

    #[test]
    fn ranges_are_the_table() {
        let red = red(SwitchRed::defaults());
        let ranges = red.ranges();
        assert_eq!(ranges.first(), Some(&((0, 39), Some(0))), "below 5 packets");
        assert_eq!(ranges.last(), Some(&((240, 4095), None)), "from 30 packets on");
        let all = ranges.iter().flat_map(|((low, high), chance)| (*low..=*high).map(move |_| *chance));
        assert!(all.eq(red.chances.iter().copied()));
    }

    #[test]
    fn what_a_switch_cannot_have_is_refused() {
        let defaults = SwitchRed::defaults;
        for (key, params) in [
            ("unit", RedParams { unit: RedUnit::Bytes, ..defaults() }),
            ("thresholds", RedParams { thresholds: None, ..defaults() }),
            ("thresholds", RedParams { thresholds: Some(RedThresholds { min: 5.0, max: 256.0 }), ..defaults() }),
            ("thresholds", RedParams { thresholds: Some(RedThresholds { min: 9.0, max: 8.0 }), ..defaults() }),
            ("thresholds", RedParams { thresholds: Some(RedThresholds { min: f64::NAN, max: 8.0 }), ..defaults() }),
            ("at-egress", RedParams { at_egress: false, ..defaults() }),
            ("wait", RedParams { wait: true, ..defaults() }),
            ("weight", RedParams { weight: Some(0.002), ..defaults() }),
            ("weight", RedParams { weight: None, ..defaults() }),
            ("weight", RedParams { weight: Some(1.0), ..defaults() }),
            (
                "adaptation",
                RedParams { adaptation: RedAdaptation::Adaptive(crate::AredParams::default()), ..defaults() },
            ),
        ] {
            assert_eq!(SwitchRed::new(&params).map_err(|(key, _)| key), Err(key), "{params:?}");
        }
    }

    /// `docs/explanation/disciplines.md` has the distance: rounding down moves an average by up to 2^shift units.
    #[test]
    fn averages_are_those_of_red() {
        let mut worst = 0.0f64;
        for shift in [1, 4, 9, 12] {
            let weight = libm::exp2(-f64::from(shift));
            let mut red = red(RedParams { weight: Some(weight), ..SwitchRed::defaults() });
            let (mut random, mut queue, mut average) = (1u64, 0i64, 0.0);
            for _ in 0..100_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                queue = (queue + (random >> 40) as i64 % 5 - 2).clamp(0, 60);
                average += weight * (queue as f64 - average);
                red.judge(queue as u32, u32::MAX);
                let distance = (red.word() as f64 / 65536.0 - average).abs();
                worst = worst.max(distance);
                assert!(distance <= libm::exp2(f64::from(shift) - 16.0) + 1e-9, "{shift}: {distance}");
            }
        }
        println!("averages are off by at most {worst:.5} packets");
    }

    proptest! {
        /// Of longer queues, more packets are dropped.
        #[test]
        fn probabilities_do_not_fall(min in 0.0f64..100.0, way in 0.0f64..155.0, gentle in any::<bool>(), max_probability in 0.0f64..1.0) {
            let thresholds = Some(RedThresholds { min, max: min + way });
            let red = red(RedParams { thresholds, gentle, max_probability, ..SwitchRed::defaults() });
            let rank = |chance: &Option<u32>| chance.map_or(1 << 32, u64::from);
            prop_assert!(red.chances.windows(2).all(|two| rank(&two[0]) <= rank(&two[1])));
        }
    }
}
