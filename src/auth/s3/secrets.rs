//! The secrets of an access key, and the signing keys derived from them.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use ring::hmac;
use zeroize::Zeroizing;

/// Derived keys that are kept for each secret: clients of several regions, and the change of day.
const DERIVED_MAX: usize = 4;

/// Up to two secrets of one access key: with two, one can be replaced while clients use the other.
/// Clones share the derived keys.
#[derive(Clone)]
pub struct S3Secrets(Arc<[Secret]>);

struct Secret {
    /// As clients hold it. It is text, whatever it encodes.
    text: Zeroizing<String>,
    /// For version 2.
    sha1: hmac::Key,
    derived: Mutex<Vec<(Scope, hmac::Key)>>,
}

/// The scope of a signing key of version 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// `YYYYMMDD`.
    pub(super) date: String,
    pub(super) region: String,
    pub(super) service: String,
}

impl fmt::Display for Scope {
    /// As it stands in a credential and in the string to sign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/aws4_request", self.date, self.region, self.service)
    }
}

impl S3Secrets {
    /// Secrets as clients hold them.
    #[must_use]
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Self {
        Self(texts.iter().map(|text| Secret::new(text.as_ref())).collect())
    }

    /// As clients hold them.
    pub(in crate::auth) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|secret| secret.text.as_str())
    }

    /// The signing key that made `signature` from `text`, compared in constant time.
    pub(super) fn verify_v4(
        &self,
        scope: &Scope,
        text: &[u8],
        signature: &[u8],
    ) -> Option<hmac::Key> {
        // No early exit, so that the time does not reveal which secret matched.
        self.0.iter().fold(None, |found, secret| {
            let known = secret.known(scope);
            let is_new = known.is_none();
            let key = known.unwrap_or_else(|| derive(&secret.text, scope));
            if hmac::verify(&key, text, signature).is_err() {
                return found;
            }
            if is_new {
                secret.keep(scope, &key);
            }
            Some(key)
        })
    }

    /// Derived keys that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let of = |secret: &Secret| secret.derived.lock().unwrap().len();
        self.0.iter().map(of).sum()
    }

    /// Whether `signature` is that of version 2, compared in constant time.
    pub(super) fn verify_v2(&self, text: &[u8], signature: &[u8]) -> bool {
        self.0.iter().fold(false, |found, secret| {
            hmac::verify(&secret.sha1, text, signature).is_ok() | found
        })
    }
}

impl Secret {
    fn new(text: &str) -> Self {
        Self {
            text: Zeroizing::new(text.to_owned()),
            sha1: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()),
            derived: Mutex::default(),
        }
    }

    fn known(&self, scope: &Scope) -> Option<hmac::Key> {
        let derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        derived.iter().find(|(of, _)| of == scope).map(|(_, key)| key.clone())
    }

    /// Keeps a key that a signature has proven to be in use: others could fill the cache.
    fn keep(&self, scope: &Scope, key: &hmac::Key) {
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if derived.iter().any(|(of, _)| of == scope) {
            return;
        }
        if derived.len() == DERIVED_MAX {
            derived.remove(0);
        }
        derived.push((scope.clone(), key.clone()));
    }
}

/// Four steps of HMAC-SHA-256, from the secret over date, region and service.
fn derive(secret: &str, scope: &Scope) -> hmac::Key {
    let first = Zeroizing::new(format!("AWS4{secret}"));
    let first = hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes());
    let steps = [&scope.date, &scope.region, &scope.service, "aws4_request"];
    steps.into_iter().fold(first, |key, step| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, step.as_bytes()).as_ref())
    })
}

impl fmt::Debug for S3Secrets {
    /// Shows the number of secrets only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3Secrets({})", self.0.len())
    }
}
