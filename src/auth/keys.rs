//! The keys of an account.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use sha2::Sha256;
use thiserror::Error;

use crate::auth::s3::S3Secrets;

/// The published key of the well-known development account. It is public.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The largest number of keys of an account. With two, one can be replaced while clients use the
/// other.
const KEYS_MAX: usize = 2;
/// The shortest decoded key in bytes. Shorter ones can be guessed.
const KEY_BYTES_MIN: usize = 16;

/// Why keys are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// No key, or more than two.
    #[error("an account has one or two keys")]
    Count,
    /// Not base64.
    #[error("the key is not base64")]
    NotBase64,
    /// Empty.
    #[error("the key is empty")]
    Empty,
    /// Too short to be safe.
    #[error("a key has at least 16 bytes before encoding")]
    TooShort,
}

/// One or two keys of an account with prepared HMAC state, so that a request costs only the hashing
/// of its own bytes.
#[derive(Clone)]
pub struct AccountKeys {
    keys: Vec<Hmac<Sha256>>,
    s3: S3Secrets,
    well_known: bool,
}

impl AccountKeys {
    /// Decodes keys in base64.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn new<K: AsRef<str>>(base64_keys: &[K]) -> Result<Self, KeyError> {
        Self::at_least(KEY_BYTES_MIN, base64_keys)
    }

    /// As [`Self::new`], for an account for development: its keys may be short.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn of_any_length<K: AsRef<str>>(base64_keys: &[K]) -> Result<Self, KeyError> {
        Self::at_least(1, base64_keys)
    }

    fn at_least<K: AsRef<str>>(bytes_min: usize, base64_keys: &[K]) -> Result<Self, KeyError> {
        if base64_keys.is_empty() || base64_keys.len() > KEYS_MAX {
            return Err(KeyError::Count);
        }
        let keys = base64_keys.iter().map(|key| prepare(key.as_ref(), bytes_min));
        let keys = keys.collect::<Result<_, _>>()?;
        let well_known = base64_keys.iter().any(|key| key.as_ref().trim() == DEVELOPMENT_KEY);
        let texts: Vec<&str> = base64_keys.iter().map(|key| key.as_ref().trim()).collect();
        Ok(Self { keys, s3: S3Secrets::new(&texts), well_known })
    }

    /// The same keys as the secrets of the account's S3 access key: there a key is the text that
    /// users hold.
    #[must_use]
    pub const fn s3(&self) -> &S3Secrets {
        &self.s3
    }

    /// Whether one of them is the published development key.
    #[must_use]
    pub const fn are_well_known(&self) -> bool {
        self.well_known
    }

    /// Whether `signature` is that of `text` under one of the keys, compared in constant time.
    #[must_use]
    pub fn verify(&self, text: &[u8], signature: &[u8]) -> bool {
        // No early exit, so that the time does not reveal which key matched.
        self.keys.iter().fold(false, |matched, key| {
            let mac = key.clone().chain_update(text);
            mac.verify_slice(signature).is_ok() | matched
        })
    }

    /// The base64 signature of `text` under the first key, as a client would send it.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> String {
        let key = self.keys.first().expect("the constructor refuses no keys");
        STANDARD.encode(key.clone().chain_update(text).finalize().into_bytes())
    }
}

fn prepare(base64_key: &str, bytes_min: usize) -> Result<Hmac<Sha256>, KeyError> {
    let bytes = STANDARD.decode(base64_key.trim()).map_err(|_| KeyError::NotBase64)?;
    if bytes.is_empty() {
        return Err(KeyError::Empty);
    }
    if bytes.len() < bytes_min {
        return Err(KeyError::TooShort);
    }
    Ok(Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length"))
}

impl fmt::Debug for AccountKeys {
    /// Shows the number of keys only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountKeys({})", self.keys.len())
    }
}
