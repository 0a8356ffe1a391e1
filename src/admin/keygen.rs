//! New account keys, and new secrets that user delegation keys are derived from.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::SysError;
use rand::rngs::SysRng;
use zeroize::Zeroizing;

use crate::auth::DelegationSecret;

/// Bytes of a key before encoding, as in Azure.
const KEY_BYTES: usize = 64;

/// A new random key in base64, from the operating system's generator: [`crate::env::Rand`] must not
/// be used for secrets.
///
/// # Errors
/// The operating system returns no random bytes.
pub fn new_key() -> Result<String, SysError> {
    let mut bytes = [0; KEY_BYTES];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

/// Random bytes of a secret of an access key.
const SECRET_KEY_BYTES: usize = 30;

/// A new random secret of an access key, of 40 characters as those of AWS; as [`new_key`].
///
/// # Errors
/// As [`new_key`].
pub(super) fn new_secret_key() -> Result<Zeroizing<String>, SysError> {
    let mut bytes = Zeroizing::new([0; SECRET_KEY_BYTES]);
    SysRng.try_fill_bytes(&mut *bytes)?;
    Ok(Zeroizing::new(STANDARD.encode(*bytes)))
}

/// A new key of an encryption scope; as [`new_key`].
///
/// # Errors
/// As [`new_key`].
pub(super) fn new_scope_key() -> Result<Zeroizing<[u8; 32]>, SysError> {
    let mut bytes = Zeroizing::new([0; 32]);
    SysRng.try_fill_bytes(&mut *bytes)?;
    Ok(bytes)
}

/// Random bytes of a login code and of a session of the console.
const CONSOLE_SECRET_BYTES: usize = 32;

/// A new random login code, or session, of the console: 43 characters that an address and a cookie
/// can hold; as [`new_key`].
///
/// # Errors
/// As [`new_key`].
pub(super) fn new_console_secret() -> Result<Zeroizing<String>, SysError> {
    let mut bytes = Zeroizing::new([0; CONSOLE_SECRET_BYTES]);
    SysRng.try_fill_bytes(&mut *bytes)?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

/// A new secret that an account's user delegation keys are derived from, as [`new_key`].
///
/// # Errors
/// As [`new_key`].
pub fn new_delegation_secret() -> Result<Zeroizing<[u8; DelegationSecret::BYTES]>, SysError> {
    let mut bytes = Zeroizing::new([0; DelegationSecret::BYTES]);
    SysRng.try_fill_bytes(&mut *bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::AccountKeys;

    #[test]
    fn new_keys_are_long_distinct_and_usable() {
        let keys = [new_key().unwrap(), new_key().unwrap()];
        assert_ne!(keys[0], keys[1]);
        for key in &keys {
            assert_eq!(STANDARD.decode(key).unwrap().len(), KEY_BYTES);
        }
        assert!(AccountKeys::new(&keys).is_ok());
    }
}
