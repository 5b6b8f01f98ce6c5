//! Percentiles by the nearest rank.

/// The smallest value that at least a share of the values, from 0 to 1, does not exceed (nearest rank). The values must be sorted. None if
/// there are no values.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    // Tolerates a share that is not exact in binary, so that it does not move an integral rank.
    let rank = (share * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let thousand: Vec<_> = (1..=1000).collect();
        let of = |share| nearest_rank(&thousand, share);
        assert_eq!([0.0, 0.5, 0.99, 0.999, 1.0].map(of), [1, 500, 990, 999, 1000].map(Some));
        // Nine of ten values are at most the ninth.
        let ten: Vec<_> = (1..=10).collect();
        assert_eq!(nearest_rank(&ten, 0.9), Some(9));
        assert_eq!(nearest_rank(&ten, 0.91), Some(10));
        assert_eq!(nearest_rank(&[7], 0.999), Some(7));
        assert_eq!(nearest_rank::<u64>(&[], 0.5), None);
    }
}
