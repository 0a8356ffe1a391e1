//! Temporary access keys: id, secret and session token. They are derived from the delegation secret
//! of an account, and not stored. The token says who holds them and until when; a new delegation
//! secret ends them all.
//!
//! A token is the base64 (URL alphabet, no padding) of: version 1 · the length of the account's
//! name u8 · the name · what it says, in postcard's wire format · 16 random bytes · HMAC-SHA-256 of
//! all that. Layout: `api-spec/secrets.md`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::auth::DelegationSecret;
use crate::auth::s3::S3Secrets;
use crate::types::AccessKeyId;
use crate::types::AccountName;
use crate::types::Role;
use crate::types::Timestamp;
use crate::types::spelled_id;

/// The first byte of a token.
const VERSION: u8 = 1;
/// Random bytes of a token, so that no two have the same keys.
const RANDOM: usize = 16;
/// Bytes of the HMAC.
const MAC: usize = 32;
/// The longest token, bytes of its text.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// The prefix of ids of temporary keys.
const BEGIN: &str = "BT";
/// Symbols of such an id after that.
const ID_SYMBOLS: usize = 18;
/// Bytes of a secret before encoding.
const SECRET_BYTES: usize = 30;
/// Labels for derivations from the delegation secret. No text of a user delegation key begins with
/// them.
const OF_MAC: &str = "temporary key: token";
const OF_ID: &str = "temporary key: id";
const OF_SECRET: &str = "temporary key: secret";
const OF_PROOF: &str = "temporary key: access key";

/// The holder of temporary keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionHolder {
    /// The user that an access key belongs to. The keys end with it.
    User {
        /// The id of the access key that asked for them.
        key: AccessKeyId,
        /// The canonical id of the user: another one may get a key of that id.
        user: String,
        /// Which secret the access key had: [`secret_proof`].
        proof: [u8; 32],
    },
    /// The principal of a token of an issuer.
    Subject {
        /// The issuer.
        issuer: String,
        /// The claim `oid`, or `sub` if there is no `oid`.
        object: String,
        /// The groups of the token that had a role then.
        groups: Vec<String>,
        /// The highest role that the token claimed.
        claimed: Option<Role>,
    },
}

/// Represents the secret of an access key in session tokens. When the key gets another secret, the
/// temporary keys that it requested become invalid. The proof reveals nothing about the secret.
#[must_use]
pub fn secret_proof(delegation: &DelegationSecret, secrets: &S3Secrets) -> [u8; 32] {
    let mut text = Vec::new();
    secrets.texts().for_each(|secret| {
        text.extend_from_slice(secret.as_bytes());
        text.push(0);
    });
    let text = Zeroizing::new(text);
    *delegation.derive(OF_PROOF, &text)
}

/// The content of a session token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The holder of the keys.
    pub holder: SessionHolder,
    /// When they end.
    pub expires: Timestamp,
    /// The role that was asked for, as its name in the request.
    pub role: String,
    /// The name that the client gave the session.
    pub name: String,
}

/// Temporary access keys.
#[derive(Clone)]
pub struct SessionKeys {
    /// The id.
    pub access_key_id: String,
    /// The secret, as clients hold it.
    pub secret: Zeroizing<String>,
}

impl std::fmt::Debug for SessionKeys {
    /// Never shows the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionKeys({})", self.access_key_id)
    }
}

/// Why a session token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SessionError {
    /// No account of this store issued it, or its keys were revoked.
    #[error("the session token is not valid")]
    Invalid,
    /// It has expired.
    #[error("the session token has expired")]
    Expired,
}

/// A session token whose MAC is not verified.
#[derive(Clone, Debug)]
pub struct SessionToken {
    account: AccountName,
    bytes: Vec<u8>,
    /// Where its content begins.
    said: usize,
}

impl SessionToken {
    /// Reads the text of a token.
    ///
    /// # Errors
    /// [`SessionError::Invalid`].
    pub fn parse(text: &str) -> Result<Self, SessionError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(SessionError::Invalid);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| SessionError::Invalid)?;
        let (account, said) = match bytes.as_slice() {
            [VERSION, len, rest @ ..] if rest.len() >= RANDOM + MAC => {
                let name = rest.get(..usize::from(*len)).ok_or(SessionError::Invalid)?;
                let name = str::from_utf8(name).map_err(|_| SessionError::Invalid)?;
                let name = AccountName::new(name).map_err(|_| SessionError::Invalid)?;
                (name, 2 + usize::from(*len))
            }
            _ => return Err(SessionError::Invalid),
        };
        Ok(Self { account, bytes, said })
    }

    /// The account that it names.
    #[must_use]
    pub const fn account(&self) -> &AccountName {
        &self.account
    }

    /// Opens a token: returns its content and the keys.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn open(
        &self,
        delegation: &DelegationSecret,
        now: Timestamp,
    ) -> Result<(Session, SessionKeys), SessionError> {
        let end = self.bytes.len().checked_sub(MAC).ok_or(SessionError::Invalid)?;
        let (body, mac) = self.bytes.split_at_checked(end).ok_or(SessionError::Invalid)?;
        if !delegation.verifies(OF_MAC, body, mac) {
            return Err(SessionError::Invalid);
        }
        let said = body.len().checked_sub(RANDOM).and_then(|end| body.get(self.said..end));
        let said = said.ok_or(SessionError::Invalid)?;
        let Ok((session, [])) = postcard::take_from_bytes::<Session>(said) else {
            return Err(SessionError::Invalid);
        };
        if session.expires <= now {
            return Err(SessionError::Expired);
        }
        Ok((session, keys(delegation, body)))
    }
}

impl Session {
    /// The token and the keys of a new session; `random` makes them unlike all others.
    #[must_use]
    pub fn issue(
        &self,
        account: &AccountName,
        delegation: &DelegationSecret,
        random: [u8; RANDOM],
    ) -> (String, SessionKeys) {
        let name = account.as_str().as_bytes();
        let len = u8::try_from(name.len()).unwrap_or_default();
        let mut body = vec![VERSION, len];
        body.extend_from_slice(name);
        body = postcard::to_extend(self, body).expect("plain structs encode");
        body.extend_from_slice(&random);
        let keys = keys(delegation, &body);
        let mac = delegation.derive(OF_MAC, &body);
        body.extend_from_slice(&*mac);
        (URL_SAFE_NO_PAD.encode(&body), keys)
    }
}

impl SessionKeys {
    /// Prepared to verify signatures.
    #[must_use]
    pub fn secrets(&self) -> S3Secrets {
        S3Secrets::new(&[&*self.secret])
    }
}

fn keys(delegation: &DelegationSecret, body: &[u8]) -> SessionKeys {
    let id = delegation.derive(OF_ID, body);
    let secret = delegation.derive(OF_SECRET, body);
    let secret = STANDARD.encode(secret.get(..SECRET_BYTES).unwrap_or_default());
    let access_key_id = spelled_id(BEGIN, id.get(..ID_SYMBOLS).unwrap_or_default());
    SessionKeys { access_key_id, secret: Zeroizing::new(secret) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECRET: DelegationSecret = DelegationSecret::new([5; 32]);
    const RANDOM_BYTES: [u8; RANDOM] = [6; RANDOM];

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.plus(Duration::from_secs(seconds))
    }

    fn account() -> AccountName {
        AccountName::new("abc").unwrap()
    }

    fn session() -> Session {
        Session {
            holder: SessionHolder::User {
                key: AccessKeyId::new("KEY").unwrap(),
                user: "c".to_owned(),
                proof: secret_proof(&SECRET, &S3Secrets::new(&["secret"])),
            },
            expires: at(1000),
            role: "r".to_owned(),
            name: "n".to_owned(),
        }
    }

    fn of_subject() -> Session {
        let holder = SessionHolder::Subject {
            issuer: "https://i".to_owned(),
            object: "o".to_owned(),
            groups: vec!["g".to_owned()],
            claimed: Some(Role::Reader),
        };
        Session { holder, ..session() }
    }

    #[test]
    fn tokens_say_who_holds_their_keys_until_they_end() {
        for session in [session(), of_subject()] {
            let (text, keys) = session.issue(&account(), &SECRET, RANDOM_BYTES);
            let token = SessionToken::parse(&text).unwrap();
            assert_eq!(token.account(), &account());
            let (said, again) = token.open(&SECRET, at(999)).unwrap();
            assert_eq!(said, session);
            assert_eq!(again.access_key_id, keys.access_key_id);
            assert_eq!(again.secret, keys.secret);
            assert_eq!(token.open(&SECRET, at(1000)).unwrap_err(), SessionError::Expired);
            let other = DelegationSecret::new([7; 32]);
            assert_eq!(token.open(&other, at(1)).unwrap_err(), SessionError::Invalid);
        }
    }

    #[test]
    fn another_secret_has_another_proof() {
        let proof = |secret| secret_proof(&SECRET, &S3Secrets::new(&[secret]));
        assert_eq!(proof("a"), proof("a"));
        assert_ne!(proof("a"), proof("b"));
        assert_ne!(
            proof("a"),
            secret_proof(&DelegationSecret::new([7; 32]), &S3Secrets::new(&["a"]))
        );
    }

    #[test]
    fn keys_look_like_keys_and_no_two_sessions_have_the_same() {
        let (text, keys) = session().issue(&account(), &SECRET, RANDOM_BYTES);
        assert!(keys.access_key_id.starts_with("BT") && keys.access_key_id.len() == 20);
        assert!(AccessKeyId::new(&keys.access_key_id).is_ok());
        assert_eq!(keys.secret.len(), 40);
        assert!(!format!("{keys:?}").contains(&*keys.secret));
        let (other, other_keys) = session().issue(&account(), &SECRET, [7; RANDOM]);
        assert_ne!(text, other);
        assert_ne!(keys.access_key_id, other_keys.access_key_id);
        assert_ne!(keys.secret, other_keys.secret);
    }

    #[test]
    fn changed_cut_and_foreign_tokens_are_refused() {
        let (text, _) = of_subject().issue(&account(), &SECRET, RANDOM_BYTES);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        let is_refused = |bytes: &[u8]| {
            let token = SessionToken::parse(&URL_SAFE_NO_PAD.encode(bytes));
            token.and_then(|token| token.open(&SECRET, at(1))).is_err()
        };
        assert!(!is_refused(&bytes));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(is_refused(&changed), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(is_refused(&bytes[..len]), "cut to {len}");
        }
        assert!(is_refused(&[bytes.as_slice(), b"x"].concat()));
        for text in ["", "x", "FwoGZXIvYXdzE", &"A".repeat(TOKEN_BYTES_MAX + 1), "\u{e4}"] {
            assert_eq!(SessionToken::parse(text).unwrap_err(), SessionError::Invalid);
        }
    }

    #[test]
    fn a_token_is_written_as_specified() {
        let (text, keys) = session().issue(&account(), &SECRET, RANDOM_BYTES);
        let spec = include_str!("../../api-spec/secrets.md");
        for shown in [text.as_str(), &keys.access_key_id, &keys.secret] {
            assert!(spec.contains(shown), "api-spec/secrets.md lacks {shown}");
        }
    }
}
