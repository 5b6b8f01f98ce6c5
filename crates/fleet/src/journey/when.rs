//! The time that a question is about.

use queuescope_log::{DateError, date_text, parse_date};
use queuescope_wire::Nanos;
use std::fmt;
use std::str::FromStr;

/// A moment or a range of time, by the clock of each host, in nanoseconds since 1970.
///
/// ```
/// use queuescope_fleet::journey::WhenAsked;
///
/// let when: WhenAsked = "2026-11-27T12:00:00Z..2026-11-27T12:00:01Z".parse()?;
/// assert!(matches!(when, WhenAsked::Range(from, to) if to.0 - from.0 == 1_000_000_000));
/// assert!("1.2s".parse::<WhenAsked>().is_err());
/// # Ok::<(), queuescope_fleet::journey::WhenError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenAsked {
    /// A moment.
    Moment(Nanos),
    /// From one moment until another, which is not included.
    Range(Nanos, Nanos),
}

impl fmt::Display for WhenAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Moment(at) => write!(f, "at {}", date_text(at)),
            Self::Range(from, to) => write!(f, "from {} to {}", date_text(from), date_text(to)),
        }
    }
}

impl FromStr for WhenAsked {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<Self, WhenError> {
        let date = |date: &str| {
            parse_date(date.trim()).map_err(|error| match date.parse::<Nanos>() {
                // As the local command has it.
                Ok(_) => WhenError::NoOrigin(text.to_owned()),
                Err(_) => WhenError::Date(error),
            })
        };
        let Some((from, to)) = text.split_once("..") else { return Ok(Self::Moment(date(text)?)) };
        match (date(from)?, date(to)?) {
            (from, to) if from < to => Ok(Self::Range(from, to)),
            _ => Err(WhenError::Backwards(text.to_owned())),
        }
    }
}

/// Why a text is neither a moment nor a range of time.
#[derive(Debug, thiserror::Error)]
pub enum WhenError {
    /// A date is missing or invalid.
    #[error(transparent)]
    Date(#[from] DateError),
    /// It counts from the first packet, which hosts do not have in common.
    #[error(
        "'{0}' counts from the first packet, and the hosts of a fleet have no first packet in common: give a date, such as 2026-11-27T12:00:00Z, or two, as FROM..TO"
    )]
    NoOrigin(String),
    /// The range is empty.
    #[error("'{0}' is an empty range of time: write FROM..TO, such as 2026-11-27T12:00:00Z..2026-11-27T12:00:01Z")]
    Backwards(String),
}
