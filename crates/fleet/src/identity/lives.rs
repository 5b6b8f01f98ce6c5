//! How long certificates last.

use super::IdentityError;
use std::time::Duration;

/// How much earlier than its issue a certificate begins to be valid, in seconds: a member's clock may be that late.
pub const SKEW: u64 = 300;

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;
/// The longest life of a certificate. Revocations are kept that long.
pub(super) const LONGEST: u64 = 366 * DAY;
/// The longest life of an authority.
const LONGEST_AUTHORITY: u64 = 100 * LONGEST;

/// How long the certificates of a fleet last. The defaults are our choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lives {
    /// The authority: 10 years. When it ends, every member must join again.
    pub authority: Duration,
    /// The coordinator's certificate: 7 days. It renews itself.
    pub coordinator: Duration,
    /// A member's certificate: 7 days. A member renews it after two thirds, so the coordinator may be away for 2 days.
    pub member: Duration,
}

impl Default for Lives {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * DAY);
        Self { authority: days(3653), coordinator: days(7), member: days(7) }
    }
}

/// The seconds of an authority's life.
pub(super) fn authority_seconds(life: Duration) -> Result<u64, IdentityError> {
    seconds("an authority", life, LONGEST_AUTHORITY)
}

/// The seconds of a certificate's life.
pub(super) fn certificate_seconds(life: Duration) -> Result<u64, IdentityError> {
    seconds("a certificate", life, LONGEST)
}

/// The whole seconds of a life, if it is within its bounds.
pub(super) fn seconds(what: &'static str, life: Duration, most: u64) -> Result<u64, IdentityError> {
    let (seconds, least) = (life.as_secs(), MINUTE);
    if (least..=most).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(IdentityError::Life { what, seconds, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_have_bounds() {
        let of = |seconds| certificate_seconds(Duration::from_secs(seconds));
        assert_eq!(of(60).unwrap(), 60);
        assert_eq!(of(LONGEST).unwrap(), LONGEST);
        let text = "a certificate cannot last 59 seconds: give 60 to 31622400 seconds";
        assert_eq!(of(59).unwrap_err().to_string(), text);
        assert!(of(LONGEST + 1).is_err());
        let defaults = Lives::default();
        authority_seconds(defaults.authority).unwrap();
        certificate_seconds(defaults.coordinator).unwrap();
        certificate_seconds(defaults.member).unwrap();
    }
}
