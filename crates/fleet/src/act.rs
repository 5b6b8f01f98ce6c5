//! Actions on flows: what a control program may do on hosts, from its text to the message that an agent gets.
//!
//! An action is about one flow on one host, and ends: after its time, when the agent ends, and soon after the agent has lost its coordinator.
//! `agent/acts.rs` has an agent's side, `coordinator/actions.rs` the coordinator's.

mod flow;
mod minute;
mod network;

pub use flow::{Flow, FlowError};
pub use minute::Minute;
pub use network::{AddressBlock, AddressBlockError};

use crate::protocol::{self, act};
use queuescope_wire::{Nanos, Rate, UnitError};
use std::fmt;
use std::str::FromStr;

/// The longest time of an action; a host may allow less.
pub const LONGEST: Nanos = Nanos(3_600_000_000_000);
/// An agent ends all actions if nothing has come from the coordinator for this time.
pub const LEASE: Nanos = Nanos(3_000_000_000);

/// What to do with the packets of a flow.
///
/// ```
/// use queuescope_fleet::act::Action;
///
/// let limit: Action = "limit 10Mbps".parse()?;
/// assert!(matches!(limit, Action::Limit(rate) if rate.bits_per_second() == 10_000_000));
/// assert!("slow".parse::<Action>().is_err());
/// # Ok::<_, queuescope_fleet::act::ActionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Mark those that are ECN-capable with CE (RFC 3168).
    Mark,
    /// Drop all.
    Drop,
    /// Drop those above this rate.
    Limit(Rate),
}

/// Why a text is not an action.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// Another word.
    #[error("'{0}' is not an action: use mark, drop, or limit with a rate, such as limit 10Mbps")]
    Unknown(String),
    /// The rate.
    #[error(transparent)]
    Rate(#[from] UnitError),
}

/// What an agent does: an action on a flow for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The flow.
    pub flow: Flow,
    /// What to do with its packets.
    pub action: Action,
    /// For how long.
    pub time: Nanos,
    /// Dry run: packets are counted, and none is changed.
    pub dry: bool,
}

/// Why a message has no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The flow.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The action.
    #[error("the message has no action that this version knows")]
    Action,
    /// The rate.
    #[error("a rate of 0 bits per second is not a limit")]
    Rate,
    /// The time.
    #[error("{0} is not a time for an action: at most {LONGEST}, and more than 0")]
    Time(Nanos),
}

impl FromStr for Action {
    type Err = ActionError;

    fn from_str(text: &str) -> Result<Self, ActionError> {
        match text.trim().split_once(' ').unwrap_or((text.trim(), "")) {
            ("mark", "") => Ok(Self::Mark),
            ("drop", "") => Ok(Self::Drop),
            ("limit", rate) if !rate.is_empty() => Ok(Self::Limit(rate.parse()?)),
            _ => Err(ActionError::Unknown(text.chars().take(64).collect())),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mark => f.write_str("mark"),
            Self::Drop => f.write_str("drop"),
            Self::Limit(rate) => write!(f, "limit {rate}"),
        }
    }
}

impl Order {
    /// The order of a message.
    ///
    /// # Errors
    /// Fails if the message has none that is possible.
    pub fn of_message(message: &protocol::Act) -> Result<Self, OrderError> {
        let flow = Flow::of_message(message.flow.as_ref())?;
        let action = match message.action {
            Some(act::Action::Mark(true)) => Action::Mark,
            Some(act::Action::Drop(true)) => Action::Drop,
            Some(act::Action::Limit(bits)) => Action::Limit(Rate::from_bits_per_second(bits).ok_or(OrderError::Rate)?),
            _ => return Err(OrderError::Action),
        };
        let time = Nanos(message.nanoseconds);
        if time == Nanos::ZERO || time > LONGEST {
            return Err(OrderError::Time(time));
        }
        Ok(Self { flow, action, time, dry: message.dry })
    }

    /// The message of an action.
    pub fn message(&self, id: u64, program: &str, cause: &str) -> protocol::Act {
        let action = match self.action {
            Action::Mark => act::Action::Mark(true),
            Action::Drop => act::Action::Drop(true),
            Action::Limit(rate) => act::Action::Limit(rate.bits_per_second()),
        };
        protocol::Act {
            id,
            program: program.to_owned(),
            cause: cause.to_owned(),
            flow: Some(self.flow.message()),
            action: Some(action),
            nanoseconds: self.time.0,
            dry: self.dry,
        }
    }
}
