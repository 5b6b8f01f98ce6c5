//! What a member may do.

use super::IdentityError;
use super::error::quoted;
use std::fmt;
use std::str::FromStr;

/// The role of a member. An admin may do what an operator may, and an operator what a reader may. An agent's role is separate: it may attach
/// its log, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A host that records packets.
    Agent,
    /// Queries, cuts and alerts.
    Reader,
    /// Also programs and actions.
    Operator,
    /// Also invitations and revocations.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Reader, Self::Operator, Self::Admin];

    /// The role's name, as in certificates.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Reader => "reader",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Whether a member of this role may do what `needed` may.
    #[must_use]
    pub fn allows(self, needed: Self) -> bool {
        match (self, needed) {
            (Self::Agent, _) | (_, Self::Agent) => self == needed,
            _ => self >= needed,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| IdentityError::Role { given: quoted(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_allows_those_below_it_and_agents_are_separate() {
        use Role::{Admin, Agent, Operator, Reader};
        let allowed = |role: Role| Role::ALL.into_iter().filter(|&needed| role.allows(needed)).collect::<Vec<_>>();
        assert_eq!(allowed(Agent), [Agent]);
        assert_eq!(allowed(Reader), [Reader]);
        assert_eq!(allowed(Operator), [Reader, Operator]);
        assert_eq!(allowed(Admin), [Reader, Operator, Admin]);
    }

    #[test]
    fn roles_are_parsed_by_their_names() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse::<Role>().unwrap(), role);
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        let error = "Admin".parse::<Role>().unwrap_err();
        assert_eq!(error.to_string(), "unknown role 'Admin': use agent, reader, operator or admin");
    }
}
