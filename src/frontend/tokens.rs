//! The issuers whose tokens are believed: their keys are read again when a token names one that is not known.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::auth;
use crate::auth::Issuer;
use crate::auth::KeySet;
use crate::auth::Principal;
use crate::auth::claimed_key;
use crate::auth::verify_token;
use crate::env::Env;

/// Keys are read again after so long in any case, so that a withdrawn one ends.
const KEYS_AGE_MAX: Duration = Duration::from_secs(5 * 60);
/// And not more often than so, whatever tokens claim.
const KEYS_AGE_MIN: Duration = Duration::from_secs(5);
/// The resource that clients ask tokens for.
const RESOURCE: &str = "https://storage.azure.com";

/// An issuer and where its keys stand.
#[derive(Clone, Debug)]
pub struct TokenSource {
    /// The issuer with the keys as last read.
    pub issuer: Issuer,
    /// A file with its key set.
    pub keys_file: PathBuf,
}

/// All issuers; none when bearer tokens are not served.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<[Mutex<Known>]>);

#[derive(Debug)]
struct Known {
    source: TokenSource,
    /// By the monotonic clock.
    read_at: Duration,
}

impl Tokens {
    /// Issuers whose keys were just read.
    #[must_use]
    pub fn new(sources: Vec<TokenSource>, env: &Env) -> Self {
        let read_at = env.clock.monotonic();
        Self(sources.into_iter().map(|source| Mutex::new(Known { source, read_at })).collect())
    }

    /// The `WWW-Authenticate` that tells clients where to get a token; `None` when none is believed.
    #[must_use]
    pub fn challenge(&self) -> Option<String> {
        let known = lock(self.0.first()?);
        let base =
            known.source.issuer.name.trim_end_matches('/').trim_end_matches("/v2.0").to_owned();
        Some(format!("Bearer authorization_uri={base}/oauth2/authorize resource_id={RESOURCE}"))
    }

    /// Who a token speaks of.
    ///
    /// # Errors
    /// [`auth::Error::Token`].
    pub async fn verify(&self, token: &str, env: &Env) -> Result<Principal, auth::Error> {
        self.renew(token, env).await;
        let issuers: Vec<Issuer> =
            self.0.iter().map(|known| lock(known).source.issuer.clone()).collect();
        verify_token(token, &issuers, env.clock.now())
    }

    /// Reads the keys of the token's issuer again if they are old or lack the one it names.
    async fn renew(&self, token: &str, env: &Env) {
        let Some((name, key)) = claimed_key(token) else { return };
        let now = env.clock.monotonic();
        let due = |known: &&Mutex<Known>| {
            let known = lock(known);
            let age = now.saturating_sub(known.read_at);
            let missing = key.as_deref().is_some_and(|key| !known.source.issuer.keys.knows(key));
            known.source.issuer.name == name
                && age >= if missing { KEYS_AGE_MIN } else { KEYS_AGE_MAX }
        };
        let Some(known) = self.0.iter().find(due) else { return };
        let path = {
            let mut known = lock(known);
            // Taken before the reading: others that come meanwhile use the old keys and do not read too.
            known.read_at = now;
            known.source.keys_file.clone()
        };
        let shown = path.display().to_string();
        let reading = env.tasks.spawn_blocking("key set", move || std::fs::read_to_string(path));
        let text = match reading.await {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => {
                return tracing::warn!(file = shown, %error, "a key set cannot be read");
            }
            Err(error) => return tracing::warn!(file = shown, %error, "a key set was not read"),
        };
        match KeySet::parse(&text) {
            Ok(keys) => lock(known).source.issuer.keys = keys,
            Err(error) => {
                tracing::warn!(file = shown, %error, "a key set is refused; the old one stays");
            }
        }
    }
}

fn lock(known: &Mutex<Known>) -> std::sync::MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
