//! Percentiles, as one of the values.

/// The value that a share of them, from 0 to 1, does not exceed: the nearest rank, of values in order. None of none.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    // A share that is not exact in binary does not move a rank that is whole.
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
        // Nine of ten are not above the ninth.
        let ten: Vec<_> = (1..=10).collect();
        assert_eq!(nearest_rank(&ten, 0.9), Some(9));
        assert_eq!(nearest_rank(&ten, 0.91), Some(10));
        assert_eq!(nearest_rank(&[7], 0.999), Some(7));
        assert_eq!(nearest_rank::<u64>(&[], 0.5), None);
    }
}
