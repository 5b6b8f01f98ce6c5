//! Credentials in use, which are renewed without a restart.

use super::request::PendingKey;
use super::{Credentials, IdentityError};
use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The credentials that a process uses now. Clones share them. Connections that are opened after a renewal use the new ones; those that are
/// open stay.
#[derive(Debug, Clone)]
pub struct CurrentCredentials(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    current: ArcSwap<Credentials>,
    /// Held by the one that replaces them.
    turn: Mutex<()>,
}

impl CurrentCredentials {
    /// Uses these credentials.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        Self(Arc::new(Shared { current: ArcSwap::from_pointee(credentials), turn: Mutex::new(()) }))
    }

    /// The credentials in use.
    #[must_use]
    pub fn get(&self) -> Arc<Credentials> {
        self.0.current.load_full()
    }

    /// Uses other credentials from now on.
    ///
    /// # Errors
    /// Fails if they are of another authority or subject, or older; then those in use stay.
    pub fn replace(&self, new: Credentials) -> Result<(), IdentityError> {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.get().check_successor(&new)?;
        self.0.current.store(Arc::new(new));
        Ok(())
    }

    /// Takes the answer to a request to renew them: checks it as [`Credentials::renewed`] does, stores the new credentials in the folder, and
    /// uses them.
    ///
    /// # Errors
    /// Fails if the answer is wrong, or if the file cannot be written; then those in use stay, here and in the folder.
    pub fn renew(
        &self,
        dir: &Path,
        pending: PendingKey,
        certificate: &str,
        now: u64,
    ) -> Result<Arc<Credentials>, IdentityError> {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Arc::new(self.get().renewed(pending, certificate, now)?);
        new.save(dir)?;
        self.0.current.store(new.clone());
        Ok(new)
    }
}

impl ResolvesServerCert for CurrentCredentials {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current.load().certified().clone())
    }
}

impl ResolvesClientCert for CurrentCredentials {
    fn resolve(&self, _authorities: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let certified = self.0.current.load().certified().clone();
        certified.key.choose_scheme(schemes).is_some().then_some(certified)
    }

    fn has_certs(&self) -> bool {
        true
    }
}
