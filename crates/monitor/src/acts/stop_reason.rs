//! Why acting on flows has stopped.

use std::fmt;

/// Why there is no acting, although an action was requested earlier or may be requested later.
///
/// An invalid file stops acting, as a missing file does. Someone changed it, so the old policy no longer holds, and the new one is
/// unknown. To go on could drop packets that nobody wants dropped any more. To stop leaves the queue as it is without this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The policy file says `off`.
    Off,
    /// The policy file is empty or names no action.
    Nothing,
    /// The policy file does not exist.
    Missing,
    /// The policy file cannot be read or is invalid; the text is the reason.
    Unclear(String),
    /// The time of `--act-for` is over.
    Over,
}

impl StopReason {
    /// The name in machine-readable output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Nothing => "file_empty",
            Self::Missing => "file_missing",
            Self::Unclear(_) => "file_refused",
            Self::Over => "time_over",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("the policy file says off"),
            Self::Nothing => f.write_str("the policy file is empty or names no action (write `off` to say so)"),
            Self::Missing => f.write_str("the policy file does not exist"),
            Self::Unclear(why) => {
                // The argument parser prints its usage after the reason.
                let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                write!(f, "the policy file is invalid: {}", why.trim_start_matches("error: "))
            }
            Self::Over => f.write_str("the time of --act-for is over"),
        }
    }
}
