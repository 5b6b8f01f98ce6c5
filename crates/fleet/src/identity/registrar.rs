//! Joining, renewing and revoking, in the order that keeps their promises.

use super::facts::CertificateFacts;
use super::request::SigningRequest;
use super::{
    Authority, Credentials, CurrentCredentials, Identity, IdentityError, Issued, Lives, MemberName, Revocations, Role,
    Token, Tokens,
};
use rustls::pki_types::ServerName;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A coordinator's folder of identities: the [`Authority`], the [`Tokens`] and the [`Revocations`]. Its calls write to the disk and wait for
/// it, some milliseconds each; an async caller runs them on a thread for blocking work. Times are in seconds since 1970.
#[derive(Debug)]
pub struct Registrar {
    dir: PathBuf,
    authority: Authority,
    tokens: Tokens,
    revocations: Arc<Revocations>,
    lives: Lives,
    /// Held from the check of a member to its registration, so that a revocation comes before or after both.
    turn: Mutex<()>,
}

/// What a revocation ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Certificates that had not expired.
    pub certificates: u64,
    /// Open tokens for the name, or made by it.
    pub tokens: u64,
    /// Other members that joined with tokens which the name made. They stay members.
    pub invited: Vec<Identity>,
}

impl Registrar {
    /// Opens the folder that [`Authority::create`] made.
    ///
    /// # Errors
    /// Fails if a file is missing or damaged, or if others can read the private key.
    pub fn open(dir: &Path, lives: Lives) -> Result<Self, IdentityError> {
        let authority = Authority::open(dir)?;
        let tokens = Tokens::open(dir, authority.fingerprint())?;
        let revocations = Arc::new(Revocations::open(dir)?);
        Ok(Self { dir: dir.to_owned(), authority, tokens, revocations, lives, turn: Mutex::new(()) })
    }

    /// The authority.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The join tokens.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The register and the revocations, which connections check as well.
    #[must_use]
    pub fn revocations(&self) -> &Arc<Revocations> {
        &self.revocations
    }

    /// Makes a join token for a member: see [`Tokens::invite`].
    ///
    /// # Errors
    /// Fails as that does.
    pub fn invite(&self, member: &Identity, life: Duration, now: u64) -> Result<Token, IdentityError> {
        self.tokens.invite(member, life, now)
    }

    /// Makes a join token that ends with the admin who makes it: it cannot be used after that name is revoked.
    ///
    /// # Errors
    /// Fails as [`Tokens::invite`] does, or if the certificate of the admin is revoked or has expired.
    pub fn invite_by(
        &self,
        maker: &CertificateFacts,
        member: &Identity,
        life: Duration,
        now: u64,
    ) -> Result<Token, IdentityError> {
        let _turn = self.turn();
        self.revocations.check(maker, now)?;
        self.tokens.invite_by(Some(&maker.subject.member()?.name), member, life, now)
    }

    /// Exchanges a token for a certificate. A wrong request leaves the token as it is; otherwise the token is used up before the certificate
    /// exists, and the certificate is registered before it is returned.
    ///
    /// # Errors
    /// Fails if the token or the request is not accepted, if the authority has expired, or if a file cannot be written.
    pub fn join(&self, token: &str, request: &str, now: u64) -> Result<Issued, IdentityError> {
        let token: Token = token.parse()?;
        let request = SigningRequest::from_pem(request)?;
        let _turn = self.turn();
        let (member, maker) = self.tokens.redeem_made(&token, now)?;
        let issued = self.authority.issue(&request, &member, self.lives.member, now)?;
        self.revocations.register_made(&issued.facts, None, maker, now)?;
        Ok(issued)
    }

    /// Exchanges a valid certificate for another of the same member.
    ///
    /// # Errors
    /// Fails if the old certificate is a coordinator's, revoked or expired, if the request is not accepted, or if a file cannot be written.
    pub fn renew(&self, old: &CertificateFacts, request: &str, now: u64) -> Result<Issued, IdentityError> {
        let request = SigningRequest::from_pem(request)?;
        let _turn = self.turn();
        self.revocations.check(old, now)?;
        let issued = self.authority.issue(&request, old.subject.member()?, self.lives.member, now)?;
        self.revocations.register(&issued.facts, Some(old), now)?;
        Ok(issued)
    }

    /// Revokes all certificates of a name, and cancels the tokens for it and those that it made.
    ///
    /// # Errors
    /// Fails if nobody has the name, if it is that of the last admin, or if a file cannot be read or written.
    pub fn revoke(&self, name: &MemberName, now: u64) -> Result<Revoked, IdentityError> {
        let _turn = self.turn();
        self.revocations.refresh()?;
        let admins = self.revocations.names(Role::Admin, now);
        if admins.iter().any(|admin| admin == name.as_str()) && admins.len() == 1 {
            return Err(IdentityError::LastAdmin { name: name.clone() });
        }
        let tokens = self.tokens.cancel(name, now)?;
        if tokens == 0 && !self.revocations.is_known(name) {
            return Err(IdentityError::Nobody { name: name.clone() });
        }
        let certificates = self.revocations.revoke(name, now)?;
        Ok(Revoked { certificates, tokens, invited: self.revocations.invited_by(name, now) })
    }

    /// The coordinator's own credentials. If they should be renewed, or have expired, they are replaced by others for the same names.
    ///
    /// # Errors
    /// Fails if they are damaged or missing (see [`rename`](Self::rename)), or if they cannot be renewed and have expired.
    pub fn credentials(&self, now: u64) -> Result<CurrentCredentials, IdentityError> {
        let missing = || IdentityError::Missing {
            path: self.dir.join("credentials.pem"),
            remedy: "give the coordinator its names again",
        };
        let current = CurrentCredentials::new(Credentials::load(&self.dir)?.ok_or_else(missing)?);
        if now >= current.get().renew_at() {
            match self.renew_own(&current, now) {
                Err(error) if current.get().is_expired(now) => return Err(error),
                // The old ones serve until they expire; the caller tries again.
                _ => {}
            }
        }
        Ok(current)
    }

    /// Replaces the coordinator's own credentials by others for the same names, in the folder and in use. The caller does this when
    /// [`Credentials::renew_at`] has passed.
    ///
    /// # Errors
    /// Fails if the authority has expired, or if the file cannot be written; then the old ones stay in use.
    pub fn renew_own(&self, current: &CurrentCredentials, now: u64) -> Result<(), IdentityError> {
        let new = self.authority.coordinator(&current.get().facts().names, self.lives.coordinator, now)?;
        new.save(&self.dir)?;
        current.replace(new)
    }

    /// Gives the coordinator other names, and stores its credentials for these.
    ///
    /// # Errors
    /// Fails if there are no names or more than 100, if the authority has expired, or if the file cannot be written.
    pub fn rename(&self, names: &[ServerName<'static>], now: u64) -> Result<CurrentCredentials, IdentityError> {
        let new = self.authority.coordinator(names, self.lives.coordinator, now)?;
        new.save(&self.dir)?;
        Ok(CurrentCredentials::new(new))
    }

    fn turn(&self) -> std::sync::MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
