//! Counts with digits in groups, for people.

/// Writes `number` with a comma before each group of three digits: `1,234,567`.
///
/// ```
/// assert_eq!(queuescope_wire::grouped(1_234_567), "1,234,567");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1_000, 123_456, 1_234_567].map(grouped), ["0", "999", "1,000", "123,456", "1,234,567"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
