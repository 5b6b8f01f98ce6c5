//! Values of arguments that need parsing.

use std::str::FromStr;

/// A share, above 0 and at most 1. Written as a number or as a percentage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alpha(pub f64);

impl FromStr for Alpha {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
        match number.parse::<f64>().map(|number| number / scale) {
            Ok(share) if share > 0.0 && share <= 1.0 => Ok(Self(share)),
            _ => Err(format!(
                "'{text}' is not a share: use a number above 0 and up to 1, or a percentage, such as 0.01 or 1%"
            )),
        }
    }
}

/// A factor by which something grows, at least 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor(pub f64);

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().trim_end_matches(['x', 'X']).parse::<f64>() {
            Ok(factor) if factor >= 2.0 && factor.is_finite() => Ok(Self(factor)),
            _ => Err(format!("'{text}' is not a factor: use a number of at least 2, such as 4 or 4x")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_0_and_at_most_1() {
        assert_eq!("1%".parse(), Ok(Alpha(0.01)));
        assert_eq!("0.3".parse(), Ok(Alpha(0.3)));
        for text in ["0", "101%", "-1%", "NaN", "inf", "", "%"] {
            assert!(text.parse::<Alpha>().is_err(), "{text}");
        }
    }
}
