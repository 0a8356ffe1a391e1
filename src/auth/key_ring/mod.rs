//! The key ring: a store's master keys. The secrets in its rows are sealed under them.
//!
//! 1. This file: the keys. Secrets are sealed under the active key and opened with any key.
//! 2. `seal.rs`: sealing and opening one secret. The only file that names `aes_gcm_siv`.
//! 3. `text.rs`: the key ring as a file. Layouts: `api-spec/secrets.md`.
//!
//! The code does no I/O: callers pass random bytes in. Only secrets are sealed, never content, so a
//! rotation rewrites few rows.

mod seal;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use uuid::Uuid;
use zeroize::Zeroizing;

use crate::types::Timestamp;

pub use seal::{SecretContext, UnsealError, sealed_under};
pub use text::KeyRingError;

/// Bytes of a master key.
const KEY_BYTES: usize = 32;

/// The number of a master key in its ring, from 1.
pub type MasterKeyId = u32;

/// The use of a master key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It seals and opens secrets.
    Active,
    /// It only opens secrets that were sealed before the rotation.
    Retired,
}

impl KeyState {
    /// The word for it in the master key file and in lists.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retired => "retired",
        }
    }
}

/// One master key.
#[derive(Clone)]
pub struct MasterKey {
    id: MasterKeyId,
    created: Timestamp,
    state: KeyState,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

impl MasterKey {
    /// Its number.
    #[must_use]
    pub const fn id(&self) -> MasterKeyId {
        self.id
    }

    /// The time at which it was made, in whole seconds.
    #[must_use]
    pub const fn created(&self) -> Timestamp {
        self.created
    }

    /// Its use.
    #[must_use]
    pub const fn state(&self) -> KeyState {
        self.state
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({}, {})", self.id, self.state.word())
    }
}

/// A store's master keys. Its `Debug` shows none.
#[derive(Clone, Debug)]
pub struct KeyRing {
    id: Uuid,
    /// The keys by ascending number; exactly one is active.
    keys: Vec<MasterKey>,
}

impl KeyRing {
    /// A new ring of one key. `id` and `key` are random.
    #[must_use]
    pub fn new(id: Uuid, key: Zeroizing<[u8; KEY_BYTES]>, now: Timestamp) -> Self {
        let created = now.whole_seconds();
        Self { id, keys: vec![MasterKey { id: 1, created, state: KeyState::Active, key }] }
    }

    /// The ring's own id, which the store remembers.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// All keys, by number.
    #[must_use]
    pub fn keys(&self) -> &[MasterKey] {
        &self.keys
    }

    /// The same ring with one more key. The new key is active, all others are retired. `key` is
    /// random.
    #[must_use]
    pub fn rotated(&self, key: Zeroizing<[u8; KEY_BYTES]>, now: Timestamp) -> Self {
        let mut keys = self.keys.clone();
        keys.iter_mut().for_each(|key| key.state = KeyState::Retired);
        let id = keys.last().map_or(0, |last| last.id) + 1;
        keys.push(MasterKey { id, created: now.whole_seconds(), state: KeyState::Active, key });
        Self { id: self.id, keys }
    }

    /// The active key.
    ///
    /// # Panics
    /// Never: the constructors and `from_text` ensure that one key is active.
    #[must_use]
    pub fn active(&self) -> &MasterKey {
        let active = self.keys.iter().find(|key| key.state == KeyState::Active);
        active.expect("a ring has an active key")
    }

    fn key(&self, id: MasterKeyId) -> Option<&MasterKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}
