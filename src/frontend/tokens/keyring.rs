//! The keys of one issuer.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::auth::Issuer;
use crate::auth::KeySet;
use crate::env::Env;
use crate::frontend::client::Client;
use crate::frontend::tokens::fetch;
use crate::frontend::tokens::fetch::FetchError;
use crate::frontend::tokens::metrics::Metrics;
use crate::frontend::tokens::place::KeysAt;
use crate::frontend::tokens::place::TokenSource;

/// Keys in a file are read again at this age, so that removed ones are no longer trusted.
const FILE_AGE_MAX: Duration = Duration::from_secs(5 * 60);
/// Keys in a file are not read more often, whatever keys tokens name.
const FILE_AGE_MIN: Duration = Duration::from_secs(5);
/// Keys at a URL are fetched again at this age.
const URL_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Keys at a URL are not fetched more often, whatever keys tokens name, and after a failure.
pub const URL_AGE_MIN: Duration = Duration::from_secs(30);
/// The time limit of a fetch, from the look-up of the issuer's name on.
pub(super) const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
/// The most requests that wait for the keys of one issuer. Others use the known keys, so that
/// forged tokens and a slow issuer do not take up all requests that may run.
pub(super) const WAITING_MAX: usize = 64;

/// One issuer with its keys.
#[derive(Debug)]
pub(super) struct Keyring {
    name: String,
    place: KeysAt,
    client: Client,
    metrics: Metrics,
    state: Mutex<State>,
    /// Held while the keys are fetched.
    turn: Arc<tokio::sync::Mutex<()>>,
    waiting: Semaphore,
}

/// The age of keys at which they are fetched again.
#[derive(Clone, Copy, Debug)]
struct AgeLimits {
    /// For a token that names an unknown key.
    min: Duration,
    /// Always.
    max: Duration,
}

/// Times are monotonic.
#[derive(Debug)]
struct State {
    /// The issuer with the newest keys.
    issuer: Issuer,
    /// When the keys were fetched; `None` if they never were.
    fetched: Option<Duration>,
    /// When the last fetch began.
    tried: Option<Duration>,
    /// Whether the last fetch failed.
    failed: bool,
}

impl Keyring {
    /// A keyring with the keys of a file, which were just read, or without keys yet.
    pub(super) fn new(
        TokenSource { issuer, keys_at: place }: TokenSource,
        client: &Client,
        metrics: &Metrics,
        now: Duration,
    ) -> Self {
        let fetched = matches!(place, KeysAt::File(_)).then_some(now);
        Self {
            name: issuer.trusted.name.clone(),
            place,
            client: client.clone(),
            metrics: metrics.clone(),
            state: Mutex::new(State { issuer, fetched, tried: fetched, failed: false }),
            turn: Arc::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// The issuer's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the keys are at a URL.
    pub(super) const fn is_remote(&self) -> bool {
        !matches!(self.place, KeysAt::File(_))
    }

    /// The issuer with its keys; `None` before they were ever fetched.
    pub(super) fn issuer(&self) -> Option<Issuer> {
        let state = self.state();
        state.fetched.map(|_| state.issuer.clone())
    }

    /// The age of the keys; `None` before they were ever fetched.
    pub(super) fn age(&self, now: Duration) -> Option<Duration> {
        self.state().fetched.map(|fetched| now.saturating_sub(fetched))
    }

    /// Fetches the keys again if a token that names this key needs it, and waits for that.
    pub(super) async fn renew_for(self: &Arc<Self>, key: Option<&str>, env: &Env) {
        let (known, tried) = {
            let state = self.state();
            let known = key.map(|key| state.issuer.keys.knows(key));
            (known.unwrap_or(state.fetched.is_some()), state.tried)
        };
        let limits = self.age_limits();
        // Old keys at a URL are renewed in the background.
        let limit = match (known, self.is_remote()) {
            (true, true) => return,
            (true, false) => limits.max,
            (false, _) => limits.min,
        };
        let old = |tried| env.clock.monotonic().saturating_sub(tried) >= limit;
        // A request with a known key does not wait for a running fetch.
        if known && !tried.is_none_or(old) {
            return;
        }
        if let Ok(_place) = self.waiting.try_acquire() {
            self.refresh(limit, env).await;
        }
    }

    /// Fetches the keys in the background until the tasks stop.
    pub(super) async fn keep_new(self: Arc<Self>, env: Env) {
        let stop = env.tasks.stopping();
        loop {
            self.refresh(URL_AGE_MIN, &env).await;
            let pause = self.until_next(env.clock.monotonic());
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = env.clock.sleep(pause) => {}
            }
        }
    }

    /// The time until the next fetch in the background.
    fn until_next(&self, now: Duration) -> Duration {
        let state = self.state();
        let limit = if state.failed { URL_AGE_MIN } else { URL_AGE_MAX };
        state.tried.map_or(Duration::ZERO, |tried| (tried + limit).saturating_sub(now))
    }

    /// Fetches the keys if the last fetch began at least `age_min` ago; waits for a running fetch.
    async fn refresh(self: &Arc<Self>, age_min: Duration, env: &Env) {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        {
            let mut state = self.state();
            let now = env.clock.monotonic();
            if state.tried.is_some_and(|tried| now.saturating_sub(tried) < age_min) {
                return;
            }
            state.tried = Some(now);
        }
        // A task of its own: it continues when the client whose token caused it disconnects.
        let (keyring, env_of_task) = (Arc::clone(self), env.clone());
        let fetching = env.tasks.spawn("issuer keys", async move {
            keyring.fetch(&env_of_task).await;
            drop(turn);
        });
        if let Err(error) = fetching.await {
            tracing::error!(issuer = self.name, %error, "the task that fetches the keys failed");
            self.state().failed = true;
        }
    }

    async fn fetch(&self, env: &Env) {
        let stop = env.tasks.stopping();
        let found = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            found = fetch::keys(&self.client, &env.tasks, &self.place, &self.name) => found,
            () = env.clock.sleep(FETCH_TIME_MAX) => Err(FetchError::Late),
        };
        if self.is_remote() {
            self.metrics.count_fetch(&self.name, found.is_err());
        }
        self.take(found, env.clock.monotonic());
    }

    fn take(&self, found: Result<KeySet, FetchError>, now: Duration) {
        let (issuer, place) = (&self.name, &self.place);
        let mut state = self.state();
        state.failed = found.is_err();
        match found {
            Ok(keys) => {
                if state.fetched.is_none() {
                    tracing::info!(
                        issuer, %place,
                        "the keys of an issuer of bearer tokens were fetched"
                    );
                }
                state.issuer.keys = keys;
                state.fetched = Some(now);
            }
            Err(error) if state.fetched.is_some() => {
                tracing::warn!(
                    issuer, %place, %error,
                    "the keys of an issuer of bearer tokens cannot be fetched; the old ones stay in use"
                );
            }
            Err(error) => {
                tracing::warn!(
                    issuer, %place, %error,
                    "the keys of an issuer of bearer tokens cannot be fetched; its tokens are refused until they are"
                );
            }
        }
    }

    const fn age_limits(&self) -> AgeLimits {
        if self.is_remote() {
            AgeLimits { min: URL_AGE_MIN, max: URL_AGE_MAX }
        } else {
            AgeLimits { min: FILE_AGE_MIN, max: FILE_AGE_MAX }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
