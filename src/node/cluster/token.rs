//! Tokens: a new node gets the master key file of its cluster with one, once.
//!
//! A token is a secret of 32 bytes. The coordinator has the file, sealed under a key that is
//! derived from that secret, under an id that is derived from it too. Who can read the coordinator
//! learns nothing, and nobody can give a node another file than the one that the token was made
//! for.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::Digest;
use sha2::Sha256;
use thiserror::Error;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::auth::KeyRing;
use crate::auth::KeyRingError;
use crate::auth::SecretContext;
use crate::auth::UnsealError;
use crate::coordinator::Coordinator;
use crate::coordinator::cluster::ClusterError;
use crate::coordinator::trust::TokenId;
use crate::coordinator::trust::TokenRecord;
use crate::coordinator::trust::TrustError;
use crate::env::Env;
use crate::node::error::NodeError;
use crate::node::keys::master_key;
use crate::node::paths::absolute;
use crate::types::Secret;
use crate::types::Timestamp;

use super::authority::random;
use super::authority::sealed_bytes;
use super::coordinator::connect;
use super::settings::CoordinatorSettings;

/// What the text of a token begins with.
const PREFIX: &str = "blockyard-";

/// Why a token gives no master key.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The text is not a token.
    #[error("--token: this is not a token of `blockyard cluster token`")]
    Malformed,
    /// Nobody has made it here, it was used, or its time is over.
    #[error(
        "--token: the cluster does not know this token: it was used, its time is over, or it is of \
         another cluster; `blockyard cluster token` makes one"
    )]
    Unknown,
    /// What it stands for cannot be read.
    #[error("--token: {0}")]
    Record(#[from] TrustError),
    /// It does not open.
    #[error("--token: the master key file that it stands for: {0}")]
    Sealed(#[from] UnsealError),
    /// It is no key ring.
    #[error("--token: the master key file that it stands for: {0}")]
    Ring(#[from] KeyRingError),
    /// It is not text.
    #[error("--token: the master key file that it stands for is not text")]
    NoText,
}

/// The secret of a token.
struct Token(Zeroizing<[u8; 32]>);

impl Token {
    fn parse(text: &str) -> Result<Self, TokenError> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(TokenError::Malformed)?;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(encoded).map_err(|_| TokenError::Malformed)?;
        let bytes = Zeroizing::new(bytes);
        let secret = bytes.as_slice().try_into().map_err(|_| TokenError::Malformed)?;
        Ok(Self(Zeroizing::new(secret)))
    }

    fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(*self.0)))
    }

    fn derived(&self, what: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(Sha256::new().chain_update(what).chain_update(*self.0).finalize().into())
    }

    fn id(&self) -> TokenId {
        let [id @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = *self.derived("token id ");
        id
    }

    /// Seals and opens what the token stands for.
    fn ring(&self) -> KeyRing {
        let key = self.derived("token key ");
        KeyRing::new(Uuid::from_bytes(self.id()), key, Timestamp::ZERO)
    }

    fn context(&self) -> SecretContext {
        SecretContext::token(self.id())
    }
}

/// Makes a token for one new node.
///
/// # Errors
/// [`NodeError`].
pub async fn new_token(
    settings: &CoordinatorSettings,
    master_key_file: &Path,
    valid: Duration,
    env: &Env,
) -> Result<Zeroizing<String>, NodeError> {
    let coordinator = connect(settings, env).await?;
    let file = absolute(master_key_file);
    let ring = master_key::open_for_check(&file, &*coordinator).await?;
    let ring = ring.ok_or(ClusterError::NotMade)?;
    let token = Token(Zeroizing::new(random()?));
    store(&*coordinator, &token, &ring, valid).await?;
    Ok(token.text())
}

async fn store(
    coordinator: &dyn Coordinator,
    token: &Token,
    ring: &KeyRing,
    valid: Duration,
) -> Result<(), NodeError> {
    let text = ring.to_text();
    let sealed = token.ring().seal(&token.context(), text.as_bytes(), random()?);
    let record = TokenRecord { sealed: sealed_bytes(sealed) };
    record.store(coordinator, &token.id(), valid).await.map_err(TokenError::Record)?;
    Ok(())
}

/// Gets the master keys that a token stands for. The token is used up by that.
pub(super) async fn redeem(
    coordinator: &dyn Coordinator,
    text: &str,
) -> Result<KeyRing, TokenError> {
    let token = Token::parse(text)?;
    let record = TokenRecord::take(coordinator, &token.id()).await?.ok_or(TokenError::Unknown)?;
    let file = token.ring().open(&token.context(), &Secret::Sealed(record.sealed))?;
    let file = std::str::from_utf8(&file).map_err(|_| TokenError::NoText)?;
    Ok(KeyRing::from_text(file)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::coordinator::SimulatedStore;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;

    const HOUR: Duration = Duration::from_secs(3600);

    fn env() -> Env {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        Env { clock, rand, tasks: Tasks::new() }
    }

    fn token(byte: u8) -> Token {
        Token(Zeroizing::new([byte; 32]))
    }

    #[tokio::test(start_paused = true)]
    async fn token_gives_the_master_keys_once() {
        let coordinator = SimulatedStore::new().open(&env());
        let ring = KeyRing::new(Uuid::from_u128(5), Zeroizing::new([6; 32]), Timestamp::ZERO);
        let redeemed = async |token: &Token| redeem(&coordinator, &token.text()).await;
        store(&coordinator, &token(1), &ring, HOUR).await.unwrap();
        let other = redeemed(&token(2)).await.unwrap_err();
        assert!(matches!(other, TokenError::Unknown), "{other}");
        let found = redeemed(&token(1)).await.unwrap();
        assert_eq!(*found.to_text(), *ring.to_text());
        let again = redeemed(&token(1)).await.unwrap_err();
        assert!(matches!(again, TokenError::Unknown), "{again}");
    }

    /// Whoever writes to the coordinator cannot make a node take other keys.
    #[tokio::test(start_paused = true)]
    async fn record_of_another_token_does_not_open() {
        let coordinator = SimulatedStore::new().open(&env());
        let ring = KeyRing::new(Uuid::from_u128(5), Zeroizing::new([6; 32]), Timestamp::ZERO);
        let foreign = token(2).ring().seal(&token(1).context(), ring.to_text().as_bytes(), [0; 12]);
        for sealed in [sealed_bytes(foreign), Bytes::from_static(b"nothing")] {
            let record = TokenRecord { sealed };
            record.store(&coordinator, &token(1).id(), HOUR).await.unwrap();
            let error = redeem(&coordinator, &token(1).text()).await.unwrap_err();
            assert!(matches!(error, TokenError::Sealed(_)), "{error}");
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let text = token(3).text();
        assert_eq!(*Token::parse(&text).unwrap().0, [3; 32]);
        for other in ["", "blockyard-", "blockyard-AAAA", &text[10..], &format!("{}A", *text)] {
            assert!(matches!(Token::parse(other), Err(TokenError::Malformed)), "{other}");
        }
    }
}
