//! Names of members, and what a certificate names.

use super::error::quoted;
use super::{IdentityError, Role};
use std::fmt;
use std::str::FromStr;

/// What all identities begin with.
const PREFIX: &str = "queuescope://fleet/";
/// The rest of a coordinator's.
const COORDINATOR: &str = "coordinator";
/// The most characters of a name.
const LONGEST: usize = 64;

/// The name of a member: 1 to 64 of the characters `A-Z a-z 0-9 . _ -`. It is neither `.` nor `..`, so that it can name a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberName(String);

impl MemberName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for MemberName {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let why = match text {
            "" => "it is empty",
            _ if text.len() > LONGEST => "it is too long",
            "." | ".." => "it means a folder",
            _ if !text.bytes().all(ordinary) => "it has another character",
            _ => return Ok(Self(text.to_owned())),
        };
        Err(IdentityError::Name { given: quoted(text), why })
    }
}

impl TryFrom<String> for MemberName {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl From<MemberName> for String {
    fn from(name: MemberName) -> Self {
        name.0
    }
}

/// A member: its name, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its name.
    pub name: MemberName,
    /// Its role.
    pub role: Role,
}

impl Identity {
    /// Parses both.
    ///
    /// # Errors
    /// Fails if the name or the role is wrong.
    pub fn parse(name: &str, role: &str) -> Result<Self, IdentityError> {
        Ok(Self { name: name.parse()?, role: role.parse()? })
    }

    /// The identity as a certificate states it: `queuescope://fleet/ROLE/NAME`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("{PREFIX}{self}")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.name)
    }
}

/// What a certificate names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A coordinator: the certificate is a server's.
    Coordinator,
    /// A member: the certificate is a client's.
    Member(Identity),
}

impl Subject {
    /// The text that a certificate has as its alternative name: `queuescope://fleet/coordinator` or `queuescope://fleet/ROLE/NAME`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("{PREFIX}{self}")
    }

    /// The member.
    ///
    /// # Errors
    /// Fails if it is a coordinator.
    pub fn member(&self) -> Result<&Identity, IdentityError> {
        match self {
            Self::Coordinator => Err(IdentityError::NotAMember),
            Self::Member(identity) => Ok(identity),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coordinator => f.write_str(COORDINATOR),
            Self::Member(identity) => identity.fmt(f),
        }
    }
}

impl FromStr for Subject {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let wrong = |why: String| IdentityError::Uri { given: quoted(text), why };
        let rest = text.strip_prefix(PREFIX).ok_or_else(|| wrong(format!("it does not begin with {PREFIX}")))?;
        if rest == COORDINATOR {
            return Ok(Self::Coordinator);
        }
        let (role, name) = rest.split_once('/').ok_or_else(|| wrong("it has no name".to_owned()))?;
        Identity::parse(name, role).map(Self::Member).map_err(|error| wrong(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wrong_name_is_explained() {
        let why = |text: &str| text.parse::<MemberName>().unwrap_err().to_string();
        let rule = "use 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'";
        assert_eq!(why(""), format!("'' is not the name of a member: it is empty; {rule}"));
        assert_eq!(why("a/b"), format!("'a/b' is not the name of a member: it has another character; {rule}"));
        assert_eq!(why(".."), format!("'..' is not the name of a member: it means a folder; {rule}"));
        let long = "x".repeat(65);
        assert_eq!(why(&long), format!("'{long}' is not the name of a member: it is too long; {rule}"));
        assert_eq!(long[..64].parse::<MemberName>().unwrap().as_str(), &long[..64]);
    }

    #[test]
    fn only_the_exact_forms_are_subjects() {
        assert_eq!("queuescope://fleet/coordinator".parse::<Subject>().unwrap(), Subject::Coordinator);
        let host = Subject::Member(Identity::parse("web-1.example", "agent").unwrap());
        assert_eq!("queuescope://fleet/agent/web-1.example".parse::<Subject>().unwrap(), host);
        for wrong in [
            "",
            "queuescope://fleet/",
            "queuescope://fleet/agent",
            "queuescope://fleet/agent/",
            "queuescope://fleet/coordinator/",
            "queuescope://fleet/coordinator/c1",
            "queuescope://fleet/Agent/web",
            "queuescope://fleet/root/web",
            "queuescope://fleet/admin/web/1",
            "queuescope://fleet/admin/../web",
            "queuescope://fleet/admin/web?",
            "queuescope://fleet//admin/web",
            "queuescope://other/admin/web",
            "Queuescope://fleet/admin/web",
            " queuescope://fleet/admin/web",
            "queuescope://fleet/admin/web\0",
            "queuescope://fleet/admin/wéb",
        ] {
            let error = wrong.parse::<Subject>().expect_err(wrong);
            assert!(matches!(error, IdentityError::Uri { .. }), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), tail in "(/?[a-z.]{0,12}){0,4}") {
            for text in [text, format!("{PREFIX}{tail}")] {
                if let Ok(name) = text.parse::<MemberName>() {
                    prop_assert_eq!(name.as_str(), &text);
                }
                if let Ok(subject) = text.parse::<Subject>() {
                    prop_assert_eq!(subject.uri(), text);
                }
            }
        }

        #[test]
        fn a_member_comes_back_from_its_uri(name in "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", role in 0usize..4) {
            let subject = Subject::Member(Identity::parse(&name, Role::ALL[role].name()).unwrap());
            prop_assert_eq!(subject.uri().parse::<Subject>().unwrap(), subject);
        }
    }
}
