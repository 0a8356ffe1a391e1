//! Seals and opens the secrets in rows with the node's key ring, which a rotation replaces.

use std::fmt;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use zeroize::Zeroizing;

use crate::auth::KeyRing;
use crate::auth::SecretContext;
use crate::auth::UnsealError;
use crate::env::Rand;
use crate::types::Secret;

/// The key ring and the source of its nonces; clones share them.
#[derive(Clone)]
pub struct Secrets {
    ring: Arc<RwLock<Arc<KeyRing>>>,
    rand: Arc<dyn Rand>,
}

impl Secrets {
    /// Seals and opens with this ring. Nonces come from `rand`; they need not be secret.
    #[must_use]
    pub fn new(ring: KeyRing, rand: Arc<dyn Rand>) -> Self {
        Self { ring: Arc::new(RwLock::new(Arc::new(ring))), rand }
    }

    /// A ring of one known key, for tests.
    #[cfg(test)]
    pub(crate) fn known(rand: &Arc<dyn Rand>) -> Self {
        let key = Zeroizing::new([7; 32]);
        let ring = KeyRing::new(uuid::Uuid::nil(), key, crate::types::Timestamp::ZERO);
        Self::new(ring, Arc::clone(rand))
    }

    /// The current ring.
    #[must_use]
    pub fn ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.ring.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the ring, after a rotation.
    pub fn replace(&self, ring: KeyRing) {
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ring);
    }

    /// Seals a secret under the active key.
    #[must_use]
    pub fn seal(&self, context: &SecretContext, secret: &[u8]) -> Secret {
        self.ring().seal(context, secret, self.random())
    }

    /// Random bytes that need not be secret, as those of ids.
    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        for part in bytes.chunks_mut(8) {
            part.iter_mut().zip(self.rand.next_u64().to_be_bytes()).for_each(|(to, of)| *to = of);
        }
        bytes
    }

    /// Opens a secret.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open(
        &self,
        context: &SecretContext,
        secret: &Secret,
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        self.ring().open(context, secret)
    }

    /// The secret sealed under the active key; `None` if it is already.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn reseal(
        &self,
        context: &SecretContext,
        secret: &Secret,
    ) -> Result<Option<Secret>, UnsealError> {
        let plain = self.open(context, secret)?;
        Ok((!self.ring().is_current(secret)).then(|| self.seal(context, &plain)))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.ring()).finish()
    }
}
