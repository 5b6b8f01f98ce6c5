//! The join tokens that a coordinator has made.

use super::error::shown;
use super::files::NewFile;
use super::fingerprint::sha256;
use super::state::{Kind, StateFile};
use super::{Fingerprint, Identity, IdentityError, MemberName, Token, TokenError, hex, lives};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use subtle::ConstantTimeEq;

const FILE: Kind = Kind {
    name: "tokens.json",
    remedy: "restore it from a backup, or create an empty one: tokens that were not used yet are then unknown, and members that joined stay",
};
/// The longest life of a token: 30 days, in seconds.
const LONGEST: u64 = 30 * 86_400;
/// How long a token is remembered after it expired, in seconds: until then, its use is refused as expired or used, later as unknown.
const REMEMBERED: u64 = 7 * 86_400;
/// The most tokens in the file.
const MOST: usize = 65_536;

/// The join tokens of a coordinator, in `tokens.json`. Only the SHA-256 of a token's secret is stored. Any number of threads and processes
/// may use one file: each change takes a lock, reads the file, and replaces it.
#[derive(Debug)]
pub struct Tokens {
    file: StateFile<Content>,
    fingerprint: Fingerprint,
}

/// The tokens by their identifiers.
type Content = BTreeMap<String, Stored>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    member: Identity,
    /// The admin who made it; absent: the coordinator itself, or an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maker: Option<MemberName>,
    /// SHA-256, in hexadecimal digits.
    secret_sha256: String,
    /// Seconds since 1970: from then on it is not accepted.
    expires: u64,
    /// When it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
}

impl Tokens {
    /// The file of a new authority, without tokens.
    pub(super) fn first() -> NewFile {
        StateFile::first(FILE, &Content::new())
    }

    /// Makes an empty file, if the old one was lost.
    ///
    /// # Errors
    /// Fails if there is one, or if it cannot be written.
    pub fn create(dir: &Path) -> Result<(), IdentityError> {
        super::files::Folder::new(dir).lock()?.create_all(&[Self::first()])
    }

    /// Opens the tokens of a folder, for the authority with this fingerprint.
    ///
    /// # Errors
    /// Fails if the file is missing or damaged. A damaged file stays as it is.
    pub fn open(dir: &Path, fingerprint: Fingerprint) -> Result<Self, IdentityError> {
        let file = StateFile::new(dir, FILE);
        file.load()?;
        Ok(Self { file, fingerprint })
    }

    /// Makes a token with which this member can join once, for `life` (a minute to 30 days) from `now` (seconds since 1970). Once this
    /// returns, the token survives a loss of power.
    ///
    /// # Errors
    /// Fails if the life is out of its bounds, if there are 65 536 tokens, or if the file cannot be read or written.
    pub fn invite(&self, member: &Identity, life: Duration, now: u64) -> Result<Token, IdentityError> {
        self.invite_by(None, member, life, now)
    }

    /// The same for a token that an admin makes: it ends when that admin is revoked.
    ///
    /// # Errors
    /// As [`invite`](Self::invite).
    pub fn invite_by(
        &self,
        maker: Option<&MemberName>,
        member: &Identity,
        life: Duration,
        now: u64,
    ) -> Result<Token, IdentityError> {
        let expires = now.saturating_add(lives::seconds("a join token", life, LONGEST)?);
        let token = Token::random(self.fingerprint)?;
        let (maker, secret_sha256) = (maker.cloned(), hash(&token));
        let stored = Stored { member: member.clone(), maker, secret_sha256, expires, used: None };
        self.change(now, |tokens| {
            if tokens.len() >= MOST {
                let remedy = "wait until some have expired for a week, or revoke names that are not to join";
                return Err(IdentityError::Full { what: "join tokens", most: MOST, remedy });
            }
            tokens.insert(token.id(), stored);
            Ok(())
        })?;
        Ok(token)
    }

    /// Marks a token as used, and returns the member that may join with it. Of several calls with the same token, also in other processes,
    /// one succeeds. The mark survives a loss of power before this returns, so a token whose certificate was lost on its way is used up.
    ///
    /// # Errors
    /// Fails if the token is of another authority, unknown, expired or used, or if the file cannot be read or written.
    pub fn redeem(&self, token: &Token, now: u64) -> Result<Identity, IdentityError> {
        self.redeem_made(token, now).map(|(member, _)| member)
    }

    /// The same with the admin who made the token.
    pub(super) fn redeem_made(&self, token: &Token, now: u64) -> Result<(Identity, Option<MemberName>), IdentityError> {
        let id = token.id();
        if token.fingerprint() != self.fingerprint {
            let (token, coordinator) = (token.fingerprint(), self.fingerprint);
            return Err(TokenError::OtherAuthority { id, token, coordinator }.into());
        }
        let given = hash(token);
        self.change(now, |tokens| {
            let unknown = || TokenError::Unknown { id: id.clone() };
            let stored = tokens.get_mut(&id).ok_or_else(unknown)?;
            if !bool::from(given.as_bytes().ct_eq(stored.secret_sha256.as_bytes())) {
                return Err(unknown().into());
            }
            if let Some(at) = stored.used {
                return Err(TokenError::Used { id, at: shown(at) }.into());
            }
            if now >= stored.expires {
                return Err(TokenError::Expired { id, at: shown(stored.expires) }.into());
            }
            stored.used = Some(now);
            Ok((stored.member.clone(), stored.maker.clone()))
        })
    }

    /// Cancels the tokens that were not used and are for this name, or were made by it, and returns their number.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn cancel(&self, name: &MemberName, now: u64) -> Result<u64, IdentityError> {
        self.change(now, |tokens| {
            let before = tokens.len();
            tokens.retain(|_, token| {
                token.used.is_some() || (token.member.name != *name && token.maker.as_ref() != Some(name))
            });
            Ok((before - tokens.len()) as u64)
        })
    }

    /// The number of tokens that are neither used nor expired.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open_tokens(&self, now: u64) -> Result<u64, IdentityError> {
        let tokens = self.file.load()?;
        Ok(tokens.values().filter(|token| token.used.is_none() && now < token.expires).count() as u64)
    }

    /// Changes the tokens, without those that expired long ago.
    fn change<R>(
        &self,
        now: u64,
        change: impl FnOnce(&mut Content) -> Result<R, IdentityError>,
    ) -> Result<R, IdentityError> {
        let changed = self.file.update(|tokens| {
            tokens.retain(|_, token| now < token.expires.saturating_add(REMEMBERED));
            change(tokens)
        });
        changed.map(|(result, _)| result)
    }
}

fn hash(token: &Token) -> String {
    hex::encode(&sha256(token.secret()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NOW: u64 = 1_795_000_000;
    const HOUR: Duration = Duration::from_secs(3600);
    const WEEK: u64 = 7 * 86_400;

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let dir = tempfile::tempdir().unwrap();
        Tokens::create(dir.path()).unwrap();
        let tokens = Tokens::open(dir.path(), Fingerprint::of(b"authority")).unwrap();
        (dir, tokens)
    }

    fn web() -> Identity {
        Identity::parse("web-1", "agent").unwrap()
    }

    fn why(result: Result<Identity, IdentityError>) -> TokenError {
        match result {
            Err(IdentityError::Token(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_token_is_good_once_and_remembered_when_it_is_opened_again() {
        let (dir, tokens) = tokens();
        let token = tokens.invite(&web(), HOUR, NOW).unwrap();
        assert_eq!(tokens.open_tokens(NOW).unwrap(), 1);
        assert_eq!(tokens.redeem(&token, NOW + 1).unwrap(), web());
        let error = why(tokens.redeem(&token, NOW + 2));
        assert_eq!(
            error.to_string(),
            format!(
                "the join token {} was used at 2026-11-18 11:06:41 UTC, and a token is good for one member: request another from an admin",
                token.id()
            )
        );
        let again = Tokens::open(dir.path(), token.fingerprint()).unwrap();
        assert!(matches!(why(again.redeem(&token, NOW + 2)), TokenError::Used { .. }));
        assert_eq!(again.open_tokens(NOW).unwrap(), 0);
        assert!(!fs::read_to_string(dir.path().join("tokens.json")).unwrap().contains(&hex::encode(token.secret())));
    }

    #[test]
    fn expired_tokens_are_refused_and_later_forgotten() {
        let (dir, tokens) = tokens();
        let token = tokens.invite(&web(), HOUR, NOW).unwrap();
        assert_eq!(tokens.open_tokens(NOW + 3600).unwrap(), 0);
        let error = why(tokens.redeem(&token, NOW + 3600));
        assert!(error.to_string().contains(" expired at 2026-11-18 12:06:40 UTC: "), "{error}");
        assert!(matches!(why(tokens.redeem(&token, NOW + 3599 + WEEK)), TokenError::Expired { .. }));
        assert!(matches!(why(tokens.redeem(&token, NOW + 3600 + WEEK)), TokenError::Unknown { .. }));
        // A clock that was ahead for a moment costs nothing, unless something was written then.
        assert_eq!(tokens.redeem(&token, NOW + 10).unwrap(), web());
        assert!(matches!(why(tokens.redeem(&token, NOW + 3600)), TokenError::Used { .. }));
        tokens.invite(&web(), HOUR, NOW + 3600 + WEEK).unwrap();
        assert!(!fs::read_to_string(dir.path().join("tokens.json")).unwrap().contains(&token.id()));
    }

    #[test]
    fn other_secrets_and_authorities_are_refused() {
        let (dir, tokens) = tokens();
        let token = tokens.invite(&web(), HOUR, NOW).unwrap();
        let stranger = tokens.invite(&web(), HOUR, NOW).unwrap();
        let mixed = token.text().replace(&hex::encode(token.secret()), &hex::encode(stranger.secret()));
        assert!(matches!(why(tokens.redeem(&mixed.parse().unwrap(), NOW)), TokenError::Unknown { .. }));
        let other = Tokens::open(dir.path(), Fingerprint::of(b"other")).unwrap();
        let error = why(other.redeem(&token, NOW)).to_string();
        assert!(error.contains("is for the authority ") && error.contains("and this coordinator's is "), "{error}");
        assert_eq!(tokens.redeem(&token, NOW).unwrap(), web());
    }

    #[test]
    fn cancelled_tokens_are_unknown() {
        let (_dir, tokens) = tokens();
        let [used, open] = [0, 1].map(|_| tokens.invite(&web(), HOUR, NOW).unwrap());
        let other = tokens.invite(&Identity::parse("web-2", "agent").unwrap(), HOUR, NOW).unwrap();
        tokens.redeem(&used, NOW).unwrap();
        assert_eq!(tokens.cancel(&web().name, NOW).unwrap(), 1);
        assert!(matches!(why(tokens.redeem(&open, NOW)), TokenError::Unknown { .. }));
        assert!(matches!(why(tokens.redeem(&used, NOW)), TokenError::Used { .. }));
        tokens.redeem(&other, NOW).unwrap();
    }

    #[test]
    fn lives_and_numbers_are_bounded() {
        let (dir, tokens) = tokens();
        let error = tokens.invite(&web(), Duration::from_secs(LONGEST + 1), NOW).unwrap_err().to_string();
        assert_eq!(error, "a join token cannot last 2592001 seconds: give 60 to 2592000 seconds");
        let stored = || Stored { member: web(), maker: None, secret_sha256: String::new(), expires: NOW, used: None };
        let full: Content = (0..MOST).map(|number| (number.to_string(), stored())).collect();
        let fill = |tokens: &mut _| {
            *tokens = full;
            Ok(())
        };
        tokens.file.update(fill).unwrap();
        let error = tokens.invite(&web(), HOUR, NOW).unwrap_err().to_string();
        assert!(error.starts_with("there are 65536 join tokens already, which is the most: wait until "), "{error}");
        let error = Tokens::create(dir.path()).unwrap_err().to_string();
        assert!(error.contains("tokens.json exists and is never overwritten"), "{error}");
        tokens.invite(&web(), HOUR, NOW + WEEK).unwrap();
    }
}
