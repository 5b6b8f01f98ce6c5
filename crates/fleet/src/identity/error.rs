//! Errors of identities, certificates, tokens and their files.

use super::{Fingerprint, Identity, MemberName, Serial, Subject, TokenError};
use std::io;
use std::path::PathBuf;

/// Why an identity, a certificate or a file of either is not used. The cause of each is in `source()`; [`with_causes`](Self::with_causes)
/// prints both.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The text is not a role.
    #[error("unknown role {given}: use agent, reader, operator or admin")]
    Role {
        /// The text, quoted.
        given: String,
    },
    /// The text is not a name.
    #[error(
        "{given} is not the name of a member: {why}; use 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'"
    )]
    Name {
        /// The text, quoted.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The text is not an identity.
    #[error(
        "{given} is not an identity: {why}; an identity is queuescope://fleet/ROLE/NAME or queuescope://fleet/coordinator"
    )]
    Uri {
        /// The text, quoted.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text is not a fingerprint.
    #[error("{given} is not a fingerprint: use the 64 lowercase hexadecimal digits of a SHA-256")]
    Fingerprint {
        /// The text, quoted.
        given: String,
    },
    /// The text is not a serial number.
    #[error("{given} is not a serial number of a certificate: use 1 to 40 lowercase hexadecimal digits, in pairs")]
    Serial {
        /// The text, quoted.
        given: String,
    },
    /// A coordinator needs at least one name, and at most a hundred.
    #[error(
        "a coordinator cannot have {count} names: give 1 to 100 DNS names or IP addresses at which members reach it"
    )]
    ServerNames {
        /// The number of names.
        count: usize,
    },
    /// A span of time is too short or too long.
    #[error("{what} cannot last {seconds} seconds: give {least} to {most} seconds")]
    Life {
        /// What would last that long.
        what: &'static str,
        /// The given number of seconds.
        seconds: u64,
        /// The fewest seconds.
        least: u64,
        /// The most seconds.
        most: u64,
    },
    /// A time is outside of what a certificate can say.
    #[error("a certificate cannot say the time {seconds} seconds after 1970: check the clock of this machine")]
    Time {
        /// Seconds since 1970.
        seconds: u64,
    },
    /// A file cannot be read, written or locked.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What failed: a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// A file is missing.
    #[error("there is no {}: {remedy}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What to do.
        remedy: &'static str,
    },
    /// A file that must not be overwritten is there.
    #[error("{} exists and is never overwritten: use it, or choose another folder; if its creation was interrupted, remove it first", .0.display())]
    Exists(PathBuf),
    /// Others can read a private key.
    #[error(
        "the private key in {} has mode {mode:04o}, so other users can read it: run `chmod 600` on it, and replace the key if somebody \
         may have read it",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file is damaged. Nothing in it was changed.
    #[error("{} is damaged: {why}; {remedy}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Nobody has this name.
    #[error(
        "there is no member {name} to revoke: no certificate was issued to it and no open token is for it; check the name \
         (queuescope fleet members lists hosts, and audit.jsonl in the coordinator's folder has all invitations)"
    )]
    Nobody {
        /// The name.
        name: MemberName,
    },
    /// Without this member nobody could invite or revoke.
    #[error(
        "{name} is the last admin, and without one nobody can invite or revoke: invite another (queuescope fleet invite NAME --role admin), \
         let them join, and revoke {name} with their credentials"
    )]
    LastAdmin {
        /// The name.
        name: MemberName,
    },
    /// A list in a file is full.
    #[error("there are {most} {what} already, which is the most: {remedy}")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// The most.
        most: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// A text in PEM does not have what it should.
    #[error("{what} is not usable: {why}")]
    Pem {
        /// What the text should have.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A request for a certificate is not usable.
    #[error("the request for a certificate is not usable: {why}; make it with the same version of queuescope")]
    Request {
        /// What is wrong.
        why: String,
    },
    /// A certificate cannot be read, or does not name exactly one identity.
    #[error("the certificate is not of this fleet: {why}; get another from the coordinator with a join token")]
    Certificate {
        /// What is wrong.
        why: String,
    },
    /// A coordinator's certificate is where a member's should be.
    #[error(
        "the certificate is a coordinator's, and must be a member's: get one from the coordinator with a join token"
    )]
    NotAMember,
    /// A member's certificate is where a coordinator's should be.
    #[error(
        "the certificate is of the member {0}, and must be a coordinator's: use the credentials in the coordinator's folder"
    )]
    NotACoordinator(Identity),
    /// A certificate does not chain to the authority, is not valid now, or has another purpose.
    #[error("the certificate of {subject} does not pass the check against the authority {authority}")]
    Untrusted {
        /// The certificate's subject.
        subject: Subject,
        /// The authority.
        authority: Fingerprint,
        /// What failed.
        source: Box<rustls::Error>,
    },
    /// A certificate's public key does not belong to the private key.
    #[error("the certificate of {subject} is for another private key: request it again, with the key that stays here")]
    OtherKey {
        /// The certificate's subject.
        subject: Subject,
    },
    /// The authority is not the expected one.
    #[error(
        "the authority is {found}, and must be {expected}: check the address, and the join token if this is the first contact"
    )]
    OtherAuthority {
        /// The expected one.
        expected: Fingerprint,
        /// The one that is there.
        found: Fingerprint,
    },
    /// A new certificate is for another subject than the old one.
    #[error("the new certificate is for {found}, and must be for {expected}: the old one stays in use")]
    OtherSubject {
        /// The subject of the old one.
        expected: Subject,
        /// The subject of the new one.
        found: Subject,
    },
    /// A new certificate is older than the one in use.
    #[error(
        "the new certificate is valid from {found} on, before the one in use ({current}): the one in use stays; check the clocks"
    )]
    Older {
        /// The time from which the one in use is valid.
        current: String,
        /// The time from which the new one is valid.
        found: String,
    },
    /// The certificate is revoked.
    #[error("the certificate {serial} of {identity} is revoked: an admin must invite this member again")]
    Revoked {
        /// The member.
        identity: Identity,
        /// The certificate.
        serial: Serial,
    },
    /// The certificate has expired.
    #[error("the certificate of {subject} expired at {at}: join again with a new token, and check the clocks")]
    Expired {
        /// The certificate's subject.
        subject: Subject,
        /// The time at which it expired.
        at: String,
    },
    /// The authority itself has expired.
    #[error("the authority expired at {at}: create another one, and let every member join again")]
    AuthorityExpired {
        /// The time at which it expired.
        at: String,
    },
    /// A join token is not accepted.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A key or certificate cannot be made.
    #[error("cannot make {what}")]
    Make {
        /// What was to be made.
        what: &'static str,
        /// The library's error.
        source: Box<rcgen::Error>,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: without them there are no keys; check /dev/urandom")]
    NoRandomNumbers,
    /// TLS cannot be configured.
    #[error("cannot configure TLS")]
    Tls(#[source] Box<rustls::Error>),
}

impl IdentityError {
    /// The error and its causes, in one line.
    #[must_use]
    pub fn with_causes(&self) -> String {
        let causes = std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    pub(super) fn make(what: &'static str) -> impl FnOnce(rcgen::Error) -> Self {
        move |source| Self::Make { what, source: Box::new(source) }
    }
}

/// Outside text in quotes: control characters are escaped, and a long text is cut.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 80;
    let mut start: String = text.chars().take(MOST).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("'{}'", start.escape_debug())
}

/// A time for people.
pub(super) fn shown(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok());
    match time {
        Some(time) => {
            let (date, hour, minute, second) = (time.date(), time.hour(), time.minute(), time.second());
            format!(
                "{:04}-{:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
                date.year(),
                u8::from(date.month()),
                date.day()
            )
        }
        None => format!("{seconds} s after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_is_cut_and_escaped() {
        assert_eq!(quoted("a\u{1b}[31m"), "'a\\u{1b}[31m'");
        assert_eq!(quoted(&"é".repeat(100)).chars().count(), 83);
    }

    #[test]
    fn times_are_shown_for_people() {
        assert_eq!(shown(1_795_000_000), "2026-11-18 11:06:40 UTC");
        assert_eq!(shown(u64::MAX), format!("{} s after 1970", u64::MAX));
    }
}
