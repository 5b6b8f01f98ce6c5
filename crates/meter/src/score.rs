//! The accuracy of an estimator in finding packets of contributing flows (ConQuest section 5.1).

use crate::Contribution;
use queuescope_sketch::Estimator;

/// Precision and recall of one estimator at one alpha, over the packets that were queried.
#[derive(Debug, Clone)]
pub struct Score {
    /// The estimator.
    pub estimator: Estimator,
    /// A flow contributes if it has at least this share of the queue.
    pub alpha: f64,
    /// A packet is reported if its flow's estimate is at least this share: alpha, unless precision is traded for recall.
    pub threshold: f64,
    /// The number of queried packets.
    pub asked: u64,
    /// Packets of contributing flows that were reported.
    pub true_positives: u64,
    /// Packets of other flows that were reported.
    pub false_positives: u64,
    /// Packets of contributing flows that were not reported.
    pub false_negatives: u64,
    error_sum: u128,
}

impl Score {
    /// Creates an empty score.
    pub fn new(estimator: Estimator, alpha: f64) -> Self {
        let threshold = alpha;
        let (true_positives, false_positives, false_negatives) = (0, 0, 0);
        Self { estimator, alpha, threshold, asked: 0, true_positives, false_positives, false_negatives, error_sum: 0 }
    }

    /// The same with another threshold for reporting.
    #[must_use]
    pub fn reporting_from(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }

    /// Compares the sketch's `estimate` in bytes with the `truth`. The packet is reported if the estimate is at least the threshold's share
    /// of the queue's length, which a switch knows.
    #[inline]
    pub fn judge(&mut self, truth: Contribution, estimate: u64) {
        self.asked += 1;
        self.error_sum += u128::from(estimate.abs_diff(truth.own));
        let reported = Contribution { own: estimate, ..truth }.is_at_least(self.threshold);
        match (truth.is_at_least(self.alpha), reported) {
            (true, true) => self.true_positives += 1,
            (false, true) => self.false_positives += 1,
            (true, false) => self.false_negatives += 1,
            (false, false) => {}
        }
    }

    /// The share of reported packets that were reported rightly; none if no packet was reported.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.true_positives, self.true_positives + self.false_positives)
    }

    /// The share of packets of contributing flows that were reported; none if there were none of these.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.true_positives, self.true_positives + self.false_negatives)
    }

    /// The mean absolute error of the estimated size, bytes.
    pub fn mean_error(&self) -> Option<f64> {
        (self.asked > 0).then(|| self.error_sum as f64 / self.asked as f64)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_one_of_four_cases() {
        let mut score = Score::new(Estimator::Overlap, 0.1);
        for (own, estimate) in [(10, 10), (10, 9), (9, 10), (9, 0), (50, 80)] {
            score.judge(Contribution { own, total: 100 }, estimate);
        }
        assert_eq!((score.asked, score.true_positives, score.false_positives, score.false_negatives), (5, 2, 1, 1));
        assert_eq!(score.precision(), Some(2.0 / 3.0));
        assert_eq!(score.recall(), Some(2.0 / 3.0));
        assert_eq!(score.mean_error(), Some(41.0 / 5.0));
    }

    #[test]
    fn a_lower_threshold_reports_more() {
        let mut score = Score::new(Estimator::Outer, 0.1).reporting_from(0.05);
        for (own, estimate) in [(10, 5), (10, 4), (9, 5), (9, 4)] {
            score.judge(Contribution { own, total: 100 }, estimate);
        }
        assert_eq!((score.true_positives, score.false_positives, score.false_negatives), (1, 1, 1));
    }

    #[test]
    fn without_queries_there_is_no_precision_or_recall() {
        let score = Score::new(Estimator::Inner, 0.01);
        assert_eq!((score.precision(), score.recall(), score.mean_error()), (None, None, None));
    }
}
