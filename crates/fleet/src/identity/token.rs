//! The text of a join token.

use super::{Fingerprint, IdentityError, hex, random};
use std::fmt;
use std::str::FromStr;

/// What a token begins with: its version.
const VERSION: &str = "qs1";
/// The most characters that are read: a token has 118.
const LONGEST: usize = 256;

/// Why a join token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The text is not a token.
    #[error("this is not a join token: {0}; copy the whole token, without spaces or quotes")]
    Malformed(&'static str),
    /// The coordinator has not made this token, or has forgotten it.
    #[error(
        "the join token {id} is unknown: it was cancelled, belongs to another coordinator, or expired more than a week ago; request another from an admin"
    )]
    Unknown {
        /// The token's identifier, which is not secret.
        id: String,
    },
    /// Its time is over.
    #[error("the join token {id} expired at {at}: request another from an admin")]
    Expired {
        /// The token's identifier.
        id: String,
        /// When it expired.
        at: String,
    },
    /// A member joined with it.
    #[error("the join token {id} was used at {at}, and a token is good for one member: request another from an admin")]
    Used {
        /// The token's identifier.
        id: String,
        /// When it was used.
        at: String,
    },
    /// It was made by another authority.
    #[error(
        "the join token {id} is for the authority {token}, and this coordinator's is {coordinator}: check the coordinator's address"
    )]
    OtherAuthority {
        /// The token's identifier.
        id: String,
        /// The authority that the token names.
        token: Fingerprint,
        /// The coordinator's own.
        coordinator: Fingerprint,
    },
}

/// A join token: a secret with which one member can join once. Its text is `qs1.ID.SECRET.FINGERPRINT`, in lowercase hexadecimal digits: 8
/// bytes that name it, 16 secret bytes, and the SHA-256 of the authority's certificate, by which the member recognizes the coordinator.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: [u8; 8],
    secret: [u8; 16],
    fingerprint: Fingerprint,
}

impl Token {
    /// Another random token of an authority.
    pub(super) fn random(fingerprint: Fingerprint) -> Result<Self, IdentityError> {
        Ok(Self { id: random::bytes()?, secret: random::bytes()?, fingerprint })
    }

    /// The token's identifier, which is not secret.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(&self.id)
    }

    /// The SHA-256 of the authority's certificate.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The whole text, with the secret: only for the member that joins.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{VERSION}.{}.{}.{}", self.id(), hex::encode(&self.secret), self.fingerprint)
    }

    pub(super) fn secret(&self) -> &[u8; 16] {
        &self.secret
    }
}

/// Without the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id()).field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let wrong = TokenError::Malformed;
        if text.len() > LONGEST {
            return Err(wrong("it is too long"));
        }
        let parts: Vec<&str> = text.split('.').collect();
        if parts.first().is_none_or(|version| *version != VERSION) {
            return Err(wrong("it does not begin with 'qs1.'"));
        }
        let [_, id, secret, fingerprint] = parts[..] else { return Err(wrong("it does not have four parts")) };
        Ok(Self {
            id: hex::decode(id).ok_or(wrong("its second part does not have 16 hexadecimal digits"))?,
            secret: hex::decode(secret).ok_or(wrong("its third part does not have 32 hexadecimal digits"))?,
            fingerprint: fingerprint.parse().map_err(|_| wrong("its last part does not have 64 hexadecimal digits"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_comes_back_from_its_text_and_hides_its_secret() {
        let token = Token::random(Fingerprint::of(b"x")).unwrap();
        assert_eq!(token.text().parse::<Token>().unwrap(), token);
        assert_eq!(token.text().len(), 3 + 1 + 16 + 1 + 32 + 1 + 64);
        assert!(!format!("{token:?}").contains(&hex::encode(token.secret())));
        assert_ne!(Token::random(token.fingerprint()).unwrap(), token);
    }

    #[test]
    fn a_wrong_token_is_explained() {
        let why = |text: &str| text.parse::<Token>().unwrap_err().to_string();
        let with =
            |why: &str| format!("this is not a join token: {why}; copy the whole token, without spaces or quotes");
        let text = Token::random(Fingerprint::of(b"x")).unwrap().text();
        assert_eq!(why(""), with("it does not begin with 'qs1.'"));
        assert_eq!(why(&format!(" {text}")), with("it does not begin with 'qs1.'"));
        assert_eq!(why(&text.replace("qs1", "qs2")), with("it does not begin with 'qs1.'"));
        assert_eq!(why(&format!("{text}.")), with("it does not have four parts"));
        assert_eq!(why(&format!("{text}\n")), with("its last part does not have 64 hexadecimal digits"));
        assert_eq!(why("qs1.00.1.2"), with("its second part does not have 16 hexadecimal digits"));
        assert_eq!(why("qs1.0123456789abcdef.1.2"), with("its third part does not have 32 hexadecimal digits"));
        assert_eq!(why(&"q".repeat(257)), with("it is too long"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_token_or_refused(text in any::<String>(), parts in "qs1\\.[0-9a-f]{14,17}\\.[0-9a-fA-F]{31,33}\\.[0-9a-f]{64}") {
            prop_assert!(text.parse::<Token>().is_err());
            if let Ok(token) = parts.parse::<Token>() {
                prop_assert_eq!(token.text(), parts);
            }
        }

        #[test]
        fn bytes_make_a_token(id in any::<[u8; 8]>(), secret in any::<[u8; 16]>(), authority in any::<[u8; 4]>()) {
            let token = Token { id, secret, fingerprint: Fingerprint::of(&authority) };
            prop_assert_eq!(token.text().parse::<Token>().unwrap(), token);
        }
    }
}
