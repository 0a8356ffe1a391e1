//! All issuers whose bearer tokens are trusted.

use std::sync::Arc;

use crate::auth;
use crate::auth::ClaimedKey;
use crate::auth::Issuer;
use crate::auth::Principal;
use crate::auth::TrustedIssuer;
use crate::auth::claimed_key;
use crate::auth::verify_token;
use crate::env::Env;
use crate::frontend::client::Client;
use crate::frontend::tokens::ages::Ages;
use crate::frontend::tokens::keyring::Keyring;
use crate::frontend::tokens::metrics::Metrics;
use crate::frontend::tokens::place::TokenSource;
use crate::telemetry::Registry;

/// The resource that clients request tokens for.
const RESOURCE: &str = "https://storage.azure.com";

/// All issuers; none when bearer tokens are not served.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    keyrings: Arc<[Arc<Keyring>]>,
    trusted: Arc<[TrustedIssuer]>,
}

impl Tokens {
    /// Begins to fetch keys at URLs in the background, until the tasks of `env` stop.
    #[must_use]
    pub fn start(
        sources: Vec<TokenSource>,
        client: &Client,
        env: &Env,
        registry: &mut Registry,
    ) -> Self {
        let (metrics, now) = (Metrics::default(), env.clock.monotonic());
        let trusted = sources.iter().map(|source| source.issuer.trusted.clone()).collect();
        let keyrings: Arc<[Arc<Keyring>]> = sources
            .into_iter()
            .map(|source| Arc::new(Keyring::new(source, client, &metrics, now)))
            .collect();
        let remote: Vec<_> = keyrings.iter().filter(|one| one.is_remote()).cloned().collect();
        for keyring in &remote {
            let (keyring, of) = (Arc::clone(keyring), env.clone());
            let keeping = move || Arc::clone(&keyring).keep_new(of.clone());
            drop(env.supervise("keys of an issuer", env.tasks.stopping(), keeping));
        }
        metrics.register(registry);
        Ages { keyrings: remote, clock: Arc::clone(&env.clock) }.register(registry);
        Self { keyrings, trusted }
    }

    /// The issuers' names, and the accounts that they are limited to.
    #[must_use]
    pub fn trusted(&self) -> &[TrustedIssuer] {
        &self.trusted
    }

    /// The `WWW-Authenticate` that names where clients get a token; `None` without an issuer.
    #[must_use]
    pub fn challenge(&self) -> Option<String> {
        let name = self.keyrings.first()?.name();
        let base = name.trim_end_matches('/').trim_end_matches("/v2.0");
        Some(format!("Bearer authorization_uri={base}/oauth2/authorize resource_id={RESOURCE}"))
    }

    /// Verifies a token, and returns the user that it names.
    ///
    /// # Errors
    /// [`auth::Error::Token`].
    pub async fn verify(&self, token: &str, env: &Env) -> Result<Principal, auth::Error> {
        if let Some(ClaimedKey { issuer, key }) = claimed_key(token)
            && let Some(keyring) = self.keyrings.iter().find(|keyring| keyring.name() == issuer)
        {
            keyring.renew_for(key.as_deref(), env).await;
            if keyring.issuer().is_none() {
                let detail = "the keys of the token's issuer are not known yet".to_owned();
                return Err(auth::Error::Token { detail });
            }
        }
        let issuers: Vec<Issuer> =
            self.keyrings.iter().filter_map(|keyring| keyring.issuer()).collect();
        verify_token(token, &issuers, env.clock.now())
    }
}
