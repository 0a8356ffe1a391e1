//! User delegation keys: derived from a secret of the account, what entitles the holder to it, and
//! the words of the key itself, so that no key is stored. A new secret revokes them all; rotation
//! of the account's own keys revokes none.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::auth::Error;
use crate::types::Timestamp;

/// How long a user delegation key lives at most.
pub const DELEGATION_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The words a key is derived from, in this order.
const WORDS: [&str; 7] = ["skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid"];

/// The secret from which an account's user delegation keys are derived: 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct DelegationSecret([u8; 32]);

impl DelegationSecret {
    /// Its length.
    pub const BYTES: usize = 32;

    /// The secret of an account's row; `None` when it has none.
    #[must_use]
    pub fn stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Wraps a secret.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A secret for another purpose, which a line of its own keeps apart: `label` begins as no
    /// entitlement does.
    pub(in crate::auth) fn derive(&self, label: &str, text: &[u8]) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.of(label, text).finalize().into_bytes().into())
    }

    /// Whether `derived` is [`Self::derive`] of this, compared in constant time.
    pub(in crate::auth) fn verifies(&self, label: &str, text: &[u8], derived: &[u8]) -> bool {
        self.of(label, text).verify_slice(derived).is_ok()
    }

    fn of(&self, label: &str, text: &[u8]) -> Hmac<Sha256> {
        mac(&self.0).chain_update(label).chain_update(b"\n").chain_update(text)
    }
}

impl fmt::Debug for DelegationSecret {
    /// Never shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DelegationSecret(..)")
    }
}

/// A user delegation key: its fields, and their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegationKey {
    /// Its holder: the object id of the principal.
    pub object: String,
    /// The principal's tenant.
    pub tenant: String,
    /// From when on, as written.
    pub start: String,
    /// Until when, as written.
    pub expiry: String,
    /// The service version that issued it.
    pub version: String,
    /// The tenant of the users it is delegated to, or empty.
    pub delegated_tenant: String,
}

impl DelegationKey {
    /// The service it is for.
    pub const SERVICE: &'static str = "b";

    /// The base64 key that its holder signs with, who is entitled to it by
    /// [`crate::auth::Entitlement::text`].
    #[must_use]
    pub fn value(&self, secret: &DelegationSecret, entitlement: &str) -> String {
        STANDARD.encode(key(secret, entitlement, |name| self.word(name)))
    }

    /// One of its words by the name it has in a signature.
    #[must_use]
    pub fn word(&self, name: &str) -> &str {
        match name {
            "skoid" => &self.object,
            "sktid" => &self.tenant,
            "skt" => &self.start,
            "ske" => &self.expiry,
            "sks" => Self::SERVICE,
            "skv" => &self.version,
            "skdutid" => &self.delegated_tenant,
            _ => "",
        }
    }
}

/// The key with these words of the holder of an entitlement.
fn key<'a>(secret: &DelegationSecret, by: &str, word: impl Fn(&str) -> &'a str) -> [u8; 32] {
    // One line for each word. A line break in a word becomes a space.
    let words = WORDS.map(|name| word(name).replace('\n', " ")).join("\n");
    digest(&secret.0, format!("{by}\n{words}").as_bytes())
}

/// Whether the key with these words of the holder of `entitlement` is that of a signature. The
/// signature is compared in constant time.
pub(super) fn signed<'a>(
    secret: &DelegationSecret,
    entitlement: &str,
    word: impl Fn(&str) -> &'a str,
    signed: &SignedText<'_>,
) -> bool {
    let key = key(secret, entitlement, word);
    mac(&key).chain_update(signed.text).verify_slice(signed.signature).is_ok()
}

/// A text and its signature.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedText<'a> {
    pub(super) text: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// Checks that the key is valid now and not for too long, and that the signature does not outlive
/// it.
pub(super) fn check<'a>(
    word: impl Fn(&str) -> &'a str,
    expiry: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let time = |name: &str| {
        Timestamp::from_iso(word(name)).ok_or_else(|| {
            Error::sas(format!("{name}={} is not a time in ISO 8601 form.", word(name)))
        })
    };
    let (from, until) = (time("skt")?, time("ske")?);
    if word("sks") != DelegationKey::SERVICE {
        return Err(Error::sas(format!("sks={} is not the blob service.", word("sks"))));
    }
    if until <= from || until.since(from) > DELEGATION_MAX {
        return Err(Error::sas("A user delegation key lives at most 7 days.".to_owned()));
    }
    if now < from || until <= now {
        return Err(Error::sas(format!(
            "Signature not valid in the specified key time frame: Start [{from}] - Expiry [{until}] - Current [{now}]"
        )));
    }
    if expiry.since(from) > DELEGATION_MAX {
        return Err(Error::sas("se is more than 7 days behind skt.".to_owned()));
    }
    Ok(())
}

fn digest(key: &[u8], text: &[u8]) -> [u8; 32] {
    mac(key).chain_update(text).finalize().into_bytes().into()
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}
