//! Random bytes of the system, for serial numbers and secrets.

use super::IdentityError;

/// Random bytes.
///
/// # Errors
/// Fails if the system gives none.
pub(super) fn bytes<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut bytes).map_err(|_| IdentityError::NoRandomNumbers)?;
    Ok(bytes)
}
