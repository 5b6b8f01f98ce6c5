//! Names, roles, certificates and tokens.
//!
//! A fleet has one certificate authority, in its coordinator's folder. Each member has a certificate that states its [`Identity`]: a name and a
//! [`Role`]. It gets the first one for a join [`Token`], which is good once, and renews it while it runs. Nothing here reads a clock: `now` is
//! an argument, in seconds since 1970, and connections get a clock when they are configured.
//!
//! - [`Registrar`]: a coordinator's side: invite, join, renew, revoke. Its parts are the [`Authority`], the [`Tokens`] and the [`Revocations`].
//! - [`Credentials`]: a member's side: the private key, the certificate and the authority, in one file. [`CurrentCredentials`] are those in use.
//! - [`server_config`], [`client_config`] and [`join_config`]: TLS 1.3 connections with these.
//!
//! # Example
//!
//! A coordinator invites a member, which joins. In between, [`join_config`] would connect the two.
//!
//! ```
//! use queuescope_fleet::identity::{Authority, Credentials, Identity, Lives, PendingKey, Registrar, Subject, Token};
//! use std::time::Duration;
//!
//! let (dir, now) = (tempfile::tempdir()?, 1_795_000_000);
//! Authority::create(dir.path(), &["coordinator.example".try_into()?], &Lives::default(), now)?;
//! let registrar = Registrar::open(dir.path(), Lives::default())?;
//! let host = Identity::parse("web-1", "agent")?;
//! let token = registrar.invite(&host, Duration::from_secs(3600), now)?.text();
//!
//! let pending = PendingKey::generate()?;
//! let issued = registrar.join(&token, pending.request(), now)?;
//! let authority = registrar.authority().certificate_pem();
//! let expected = token.parse::<Token>()?.fingerprint();
//! let credentials = Credentials::accept_from(expected, pending, &issued.pem, authority, now)?;
//! assert_eq!(credentials.subject(), &Subject::Member(host));
//! assert!(registrar.join(&token, PendingKey::generate()?.request(), now).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod authority;
mod credentials;
mod current;
mod error;
mod facts;
mod files;
mod fingerprint;
mod hex;
mod lives;
mod name;
mod pem;
mod random;
mod registrar;
mod request;
mod revocations;
mod role;
mod state;
mod tls;
mod token;
mod tokens;
mod trust;

pub use authority::{Authority, Issued};
pub use credentials::Credentials;
pub use current::CurrentCredentials;
pub use error::IdentityError;
pub use facts::{CertificateFacts, Serial};
pub use fingerprint::Fingerprint;
pub use lives::{Lives, SKEW};
pub use name::{Identity, MemberName, Subject};
pub use registrar::{Registrar, Revoked};
pub use request::{PendingKey, SigningRequest};
pub use revocations::Revocations;
pub use role::Role;
pub use rustls::pki_types::ServerName;
pub use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
pub use tls::{client_config, connection_error, join_config, peer, server_config};
pub use token::{Token, TokenError};
pub use tokens::Tokens;
