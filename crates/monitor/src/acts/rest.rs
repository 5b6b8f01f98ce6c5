//! Why nothing is done to flows.

use std::fmt;

/// Why nothing is done, where something was asked for before, or may be again.
///
/// A file that cannot be understood stops acting, as one that is gone does. It was changed, so what it said before is no longer the
/// word of whoever writes it, and what it says now is not known. To go on would drop packets that nobody asks to drop any longer; to
/// stop leaves the queue as it is without this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// The policy file says so.
    Off,
    /// The policy file asks for nothing: it is empty, or has no action.
    Nothing,
    /// The policy file is not there.
    Missing,
    /// The policy file cannot be read or not be understood, for this reason.
    Unclear(String),
    /// Its time is over.
    Over,
}

impl Rest {
    /// For programs.
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

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("the policy file says off"),
            Self::Nothing => f.write_str("the policy file is empty or names no action (write `off` to say so)"),
            Self::Missing => f.write_str("the policy file is not there"),
            Self::Unclear(why) => {
                // The parser writes how to use it behind that.
                let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                write!(f, "the policy file is refused: {}", why.trim_start_matches("error: "))
            }
            Self::Over => f.write_str("the time of --act-for is over"),
        }
    }
}
