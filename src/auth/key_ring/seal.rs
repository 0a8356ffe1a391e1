//! Seals and opens one secret with AES-256-GCM-SIV (RFC 8452). This cipher stays safe if a nonce is
//! used twice by mistake.

use aes_gcm_siv::Aes256GcmSiv;
use aes_gcm_siv::KeyInit;
use aes_gcm_siv::aead::Aead;
use aes_gcm_siv::aead::Payload;
use bytes::Bytes;
use thiserror::Error;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::KeyRing;
use super::MasterKey;
use super::MasterKeyId;
use crate::types::AccessKeyId;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::RoutingKey;
use crate::types::Secret;

/// The first byte of a sealed secret: its format. Other values are refused.
const VERSION: u8 = 1;
/// Bytes of a nonce.
const NONCE: usize = 12;
/// Bytes before the ciphertext: version, key id, nonce.
const HEADER: usize = 1 + size_of::<MasterKeyId>() + NONCE;

/// Why a secret cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnsealError {
    /// The key ring does not have the master key.
    #[error("it is sealed under master key {0}, which the key ring does not hold")]
    NoKey(MasterKeyId),
    /// A newer program sealed the secret.
    #[error(
        "it is sealed in format {0}, this program reads format 1: use the program that wrote it"
    )]
    Version(u8),
    /// The bytes were changed, or belong to another row.
    #[error("it does not open under its master key: it is damaged, or belongs to another row")]
    Damaged,
}

/// The kind of a secret and its place. A sealed secret opens only with the context under which it
/// was sealed, so it cannot be moved to another row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretContext(Vec<u8>);

impl SecretContext {
    /// A shared key of an account.
    #[must_use]
    pub fn account_key(name: &AccountName, id: AccountId) -> Self {
        Self::of(1, RoutingKey::account(name).as_bytes(), &id.get().to_be_bytes())
    }

    /// The secret from which an account's user delegation keys are derived.
    #[must_use]
    pub fn delegation(name: &AccountName, id: AccountId) -> Self {
        Self::of(2, RoutingKey::account(name).as_bytes(), &id.get().to_be_bytes())
    }

    /// The source of a pending copy, with its signature and token.
    #[must_use]
    pub fn copy_source(blob: &RoutingKey, id: Uuid) -> Self {
        Self::of(3, blob.as_bytes(), id.as_bytes())
    }

    /// The secret of an access key of a user, as text.
    #[must_use]
    pub fn user_key(name: &AccountName, id: AccountId, key: &AccessKeyId) -> Self {
        let owner = [&id.get().to_be_bytes(), key.as_str().as_bytes()].concat();
        Self::of(4, RoutingKey::account(name).as_bytes(), &owner)
    }

    /// The key of an encryption scope.
    #[must_use]
    pub fn scope_key(name: &AccountName, id: AccountId, scope: &str) -> Self {
        let owner = [&id.get().to_be_bytes(), scope.as_bytes()].concat();
        Self::of(5, RoutingKey::account(name).as_bytes(), &owner)
    }

    /// The key of a cluster's authority.
    #[must_use]
    pub fn authority(cluster: u128) -> Self {
        Self::of(6, &[], &cluster.to_be_bytes())
    }

    /// The master key file that a token of a cluster stands for.
    #[must_use]
    pub fn token(id: [u8; 16]) -> Self {
        Self::of(7, &[], &id)
    }

    fn of(kind: u8, row: &[u8], owner: &[u8]) -> Self {
        Self([&[kind], row, owner].concat())
    }
}

impl KeyRing {
    /// Seals a secret under the active key. `nonce` is random and used once.
    ///
    /// # Panics
    /// Never: secrets are far below the cipher's limit of 64 GiB.
    #[must_use]
    pub fn seal(&self, context: &SecretContext, secret: &[u8], nonce: [u8; NONCE]) -> Secret {
        let key = self.active();
        let mut sealed = vec![VERSION];
        sealed.extend_from_slice(&key.id.to_be_bytes());
        let aad = associated(&sealed, context);
        let payload = Payload { msg: secret, aad: &aad };
        let ciphertext = cipher(key).encrypt(&nonce.into(), payload).expect("a short secret");
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&ciphertext);
        Secret::Sealed(sealed.into())
    }

    /// The plain text of a secret. A secret of an earlier release, stored plain, is returned as it
    /// is.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open(
        &self,
        context: &SecretContext,
        secret: &Secret,
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let sealed = match secret {
            Secret::Plain(plain) => return Ok(Zeroizing::new(plain.to_vec())),
            Secret::Sealed(sealed) => sealed,
        };
        let id = named(sealed)?;
        let key = self.key(id).ok_or(UnsealError::NoKey(id))?;
        let head = sealed.get(..HEADER - NONCE).ok_or(UnsealError::Damaged)?;
        let nonce = sealed.get(HEADER - NONCE..HEADER).ok_or(UnsealError::Damaged)?;
        let nonce = <[u8; NONCE]>::try_from(nonce).map_err(|_| UnsealError::Damaged)?;
        let aad = associated(head, context);
        let payload = Payload { msg: sealed.get(HEADER..).ok_or(UnsealError::Damaged)?, aad: &aad };
        let opened = cipher(key).decrypt(&nonce.into(), payload);
        opened.map(Zeroizing::new).map_err(|_| UnsealError::Damaged)
    }

    /// Whether a secret is sealed under the active key. False for a plain one.
    #[must_use]
    pub fn is_current(&self, secret: &Secret) -> bool {
        match secret {
            Secret::Plain(_) => false,
            Secret::Sealed(sealed) => named(sealed) == Ok(self.active().id),
        }
    }
}

/// The master key under which a secret is sealed; `None` when it is plain or malformed.
#[must_use]
pub fn sealed_under(secret: &Secret) -> Option<MasterKeyId> {
    match secret {
        Secret::Plain(_) => None,
        Secret::Sealed(sealed) => named(sealed).ok(),
    }
}

fn named(sealed: &Bytes) -> Result<MasterKeyId, UnsealError> {
    match sealed.split_first().ok_or(UnsealError::Damaged)? {
        (&VERSION, rest) => {
            let id = rest.first_chunk().ok_or(UnsealError::Damaged)?;
            Ok(MasterKeyId::from_be_bytes(*id))
        }
        (&version, _) => Err(UnsealError::Version(version)),
    }
}

/// The associated data that the cipher authenticates: version and key id, then the context.
fn associated(head: &[u8], context: &SecretContext) -> Vec<u8> {
    [head, &context.0].concat()
}

fn cipher(key: &MasterKey) -> Aes256GcmSiv {
    Aes256GcmSiv::new((&*key.key).into())
}
