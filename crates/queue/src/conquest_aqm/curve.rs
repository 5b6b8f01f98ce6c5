//! The probability with which a packet is chosen, as a function of its flow's weight (section 4.2).

/// The probability with which a packet is chosen, as a function of its flow's weight `w_f` and the threshold `w_T`.
///
/// The paper defines the linear and squared curves up to a factor. Here the factor follows from the weight at which the
/// probability reaches 1.
///
/// ```
/// use queuescope_queue::Curve;
///
/// let curve = Curve::Linear { full: 100.0 };
/// assert_eq!(curve.probability(500.0, 512.0), 0.0);
/// assert_eq!(curve.probability(562.0, 512.0), 0.5);
/// assert_eq!(Curve::Threshold.probability(512.0, 512.0), 1.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Curve {
    /// The probability is 1 from `w_T` on.
    Threshold,
    /// The probability is proportional to `max(w_f - w_T, 0)`.
    Linear {
        /// The distance above `w_T` at which it reaches 1, where it stays; in the unit of weights.
        full: f64,
    },
    /// The probability is proportional to `max(w_f - w_T, 0)^2`.
    Squared {
        /// The distance above `w_T` at which it reaches 1, where it stays; in the unit of weights.
        full: f64,
    },
    /// A table, independent of `w_T`. A switch can approximate any function this way.
    Steps(Steps),
}

impl Curve {
    /// The probability, from 0 to 1.
    #[inline]
    pub fn probability(&self, weight: f64, threshold: f64) -> f64 {
        match self {
            Self::Threshold => f64::from(u8::from(weight >= threshold)),
            Self::Linear { full } => part(weight - threshold, *full),
            Self::Squared { full } => {
                let part = part(weight - threshold, *full);
                part * part
            }
            Self::Steps(steps) => steps.probability(weight),
        }
    }
}

/// `excess / full`, limited to 0..=1.
#[inline]
fn part(excess: f64, full: f64) -> f64 {
    if excess <= 0.0 {
        0.0
    } else if excess >= full {
        1.0
    } else {
        excess / full
    }
}

/// A probability that is constant between weights.
///
/// ```
/// use queuescope_queue::{Step, Steps};
///
/// let steps = Steps::new([Step { from: 100.0, probability: 0.1 }, Step { from: 200.0, probability: 0.5 }])?;
/// assert_eq!([50.0, 150.0, 1e6].map(|weight| steps.probability(weight)), [0.0, 0.1, 0.5]);
///
/// let ramp = Steps::approximate(|weight| weight / 1_000.0, 0.0, 1_000.0, 10)?;
/// assert!((ramp.probability(420.0) - 0.45).abs() < 1e-9, "the middle of 400 to 500");
/// # Ok::<(), queuescope_queue::StepsError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps(Box<[Step]>);

/// One step: it holds from its weight up to the next step's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The lowest weight to which it applies.
    pub from: f64,
    /// The probability, from 0 to 1.
    pub probability: f64,
}

impl Steps {
    /// Creates the table. Below the first step the probability is 0.
    ///
    /// # Errors
    /// Fails if the weights are not finite and increasing, or if a probability is not within 0..=1.
    pub fn new(steps: impl Into<Box<[Step]>>) -> Result<Self, StepsError> {
        let steps = steps.into();
        for (n, step) in steps.iter().enumerate() {
            if !(0.0..=1.0).contains(&step.probability) {
                return Err(StepsError::Probability { probability: step.probability });
            }
            if !step.from.is_finite() || n > 0 && step.from <= steps[n - 1].from {
                return Err(StepsError::Order { from: step.from });
            }
        }
        Ok(Self(steps))
    }

    /// Approximates a function by `count` steps of equal width between two weights. Each step has the value of the
    /// function in its middle, limited to 0..=1. From `to` on, the probability is the value at `to`.
    ///
    /// # Errors
    /// Fails if the weights are not finite or not in order.
    pub fn approximate(function: impl Fn(f64) -> f64, from: f64, to: f64, count: u16) -> Result<Self, StepsError> {
        let count = count.max(1);
        let at = |n: f64| from + (to - from) * n / f64::from(count);
        let height = |weight: f64| {
            let probability = function(weight);
            if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) }
        };
        let step = |n: u16| Step { from: at(f64::from(n)), probability: height(at(f64::from(n) + 0.5)) };
        let last = Step { from: to, probability: height(to) };
        Self::new((0..count).map(step).chain([last]).collect::<Vec<_>>())
    }

    /// The steps, by weight.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The probability for a weight.
    #[inline]
    pub fn probability(&self, weight: f64) -> f64 {
        let above = self.0.partition_point(|step| step.from <= weight);
        if above == 0 { 0.0 } else { self.0[above - 1].probability }
    }
}

/// Invalid steps.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum StepsError {
    /// The weights do not increase.
    #[error("a step from weight {from} is out of order: weights are finite, and each is above the one before")]
    Order {
        /// The step's weight.
        from: f64,
    },
    /// The value is not a probability.
    #[error("a step cannot have the probability {probability}: use 0 to 1")]
    Probability {
        /// The value that was given.
        probability: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_functions_by_hand() {
        let table = [
            // w_f, threshold, linear, squared; w_T = 100, full = 200
            (0.0, 0.0, 0.0, 0.0),
            (99.0, 0.0, 0.0, 0.0),
            (100.0, 1.0, 0.0, 0.0),
            (150.0, 1.0, 0.25, 0.0625),
            (200.0, 1.0, 0.5, 0.25),
            (300.0, 1.0, 1.0, 1.0),
            (1e18, 1.0, 1.0, 1.0),
        ];
        for (weight, threshold, linear, squared) in table {
            let probability = |curve: Curve| curve.probability(weight, 100.0);
            assert_eq!(probability(Curve::Threshold), threshold, "{weight}");
            assert_eq!(probability(Curve::Linear { full: 200.0 }), linear, "{weight}");
            assert_eq!(probability(Curve::Squared { full: 200.0 }), squared, "{weight}");
        }
        // With `full` = 0 the curve is a threshold that excludes the threshold weight itself.
        assert_eq!(Curve::Linear { full: 0.0 }.probability(100.0, 100.0), 0.0);
        assert_eq!(Curve::Linear { full: 0.0 }.probability(100.1, 100.0), 1.0);
    }

    #[test]
    fn steps_hold_from_their_weight_on() {
        let step = |from, probability| Step { from, probability };
        let steps = Steps::new([step(10.0, 0.1), step(20.0, 0.7), step(30.0, 0.2)]).unwrap();
        let probabilities = [0.0, 9.9, 10.0, 19.9, 20.0, 29.0, 30.0, 1e9].map(|weight| steps.probability(weight));
        assert_eq!(probabilities, [0.0, 0.0, 0.1, 0.1, 0.7, 0.7, 0.2, 0.2]);
        assert_eq!(Steps::default().probability(5.0), 0.0);

        let error = |steps: &[Step]| Steps::new(steps).unwrap_err().to_string();
        assert_eq!(
            error(&[step(1.0, 0.1), step(1.0, 0.2)]),
            "a step from weight 1 is out of order: weights are finite, and each is above the one before"
        );
        assert_eq!(error(&[step(1.0, 1.1)]), "a step cannot have the probability 1.1: use 0 to 1");
        assert!(Steps::new([step(f64::NAN, 0.5)]).is_err() && Steps::new([step(0.0, f64::NAN)]).is_err());
    }

    proptest! {
        /// The plain reading of a table: the last step that is not above the weight.
        #[test]
        fn the_last_step_not_above_the_weight_decides(
            steps in prop::collection::btree_map(0..1_000u32, 0.0..=1.0f64, 0..20), weight in 0.0..1_100.0f64
        ) {
            let list = steps.iter().map(|(from, probability)| Step { from: f64::from(*from), probability: *probability });
            let table = Steps::new(list.collect::<Vec<_>>()).unwrap();
            let mut expected = 0.0;
            for (from, probability) in steps {
                if f64::from(from) <= weight {
                    expected = probability;
                }
            }
            prop_assert_eq!(table.probability(weight), expected);
        }

        /// Steps approximate a function within half a step's width times its slope.
        #[test]
        fn steps_approximate_any_function(
            count in 1..200u16, bend in 0.2..4.0f64, weight in 0.0..1_500.0f64, from in 0.0..100.0f64
        ) {
            let to = from + 1_000.0;
            let width = 1_000.0 / f64::from(count);
            let functions: [(&dyn Fn(f64) -> f64, f64); 3] = [
                (&|weight| ((weight - from) / 1_000.0).max(0.0).powf(1.0 + bend), (1.0 + bend) / 1_000.0),
                (&|weight| 0.5 + 0.5 * (weight * bend / 100.0).sin(), bend / 200.0),
                (&|weight| 1.0 - (-(weight - from).max(0.0) * bend / 500.0).exp(), bend / 500.0),
            ];
            for (function, slope) in functions {
                let steps = Steps::approximate(function, from, to, count).unwrap();
                prop_assert_eq!(steps.steps().len(), usize::from(count) + 1);
                let expected = if weight < from { 0.0 } else { function(weight.min(to)).clamp(0.0, 1.0) };
                let error = (steps.probability(weight) - expected).abs();
                prop_assert!(error <= slope * width / 2.0 + 1e-9, "{error} at {weight}");
            }
        }
    }
}
