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

/// The keys in a file are read again after so long, so that a withdrawn one ends.
const FILE_AGE_MAX: Duration = Duration::from_secs(5 * 60);
/// And not more often than so, whatever tokens claim.
const FILE_AGE_MIN: Duration = Duration::from_secs(5);
/// Keys are asked for by URL again after so long.
const URL_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// And not more often than so, whatever tokens claim, and when they cannot be had.
pub const URL_AGE_MIN: Duration = Duration::from_secs(30);
/// Until the keys are there, from the look-up of the issuer's name on.
pub(super) const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
/// Requests that wait for the keys of one issuer; more are answered by those that are known, so
/// that forged tokens and a slow issuer do not take all the requests that may run.
pub(super) const WAITING_MAX: usize = 64;

/// One issuer with its keys.
#[derive(Debug)]
pub(super) struct Keyring {
    name: String,
    place: KeysAt,
    client: Client,
    metrics: Metrics,
    state: Mutex<State>,
    /// Held by who asks for the keys.
    turn: Arc<tokio::sync::Mutex<()>>,
    waiting: Semaphore,
}

/// Times are monotonic.
#[derive(Debug)]
struct State {
    /// With the keys as last had.
    issuer: Issuer,
    /// When they were; `None` before the first time.
    had: Option<Duration>,
    /// When they were last asked for.
    asked: Option<Duration>,
    /// Whether that failed.
    failed: bool,
}

impl Keyring {
    /// A keyring of keys that were just read, or none of an issuer that is to be asked.
    pub(super) fn new(
        TokenSource { issuer, keys_at: place }: TokenSource,
        (client, metrics): (&Client, &Metrics),
        now: Duration,
    ) -> Self {
        let had = matches!(place, KeysAt::File(_)).then_some(now);
        Self {
            name: issuer.trusted.name.clone(),
            place,
            client: client.clone(),
            metrics: metrics.clone(),
            state: Mutex::new(State { issuer, had, asked: had, failed: false }),
            turn: Arc::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// The issuer's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the keys are asked for by URL.
    pub(super) const fn is_remote(&self) -> bool {
        !matches!(self.place, KeysAt::File(_))
    }

    /// The issuer with its keys; `None` before they were ever had.
    pub(super) fn issuer(&self) -> Option<Issuer> {
        let state = self.state();
        state.had.map(|_| state.issuer.clone())
    }

    /// How old the keys are; `None` before they were ever had.
    pub(super) fn age(&self, now: Duration) -> Option<Duration> {
        self.state().had.map(|had| now.saturating_sub(had))
    }

    /// Has the keys brought up to date for a token that names this key, and waits for that.
    pub(super) async fn renew_for(self: &Arc<Self>, key: Option<&str>, env: &Env) {
        let (known, asked) = {
            let state = self.state();
            let known = key.map(|key| state.issuer.keys.knows(key));
            (known.unwrap_or(state.had.is_some()), state.asked)
        };
        let (age_min, age_max) = self.ages();
        // By URL, old keys are the background's business.
        let limit = match (known, self.is_remote()) {
            (true, true) => return,
            (true, false) => age_max,
            (false, _) => age_min,
        };
        let old = |asked| env.clock.monotonic().saturating_sub(asked) >= limit;
        // Who comes while they are asked for waits for them only if it cannot do without.
        if known && !asked.is_none_or(old) {
            return;
        }
        if let Ok(_place) = self.waiting.try_acquire() {
            self.refresh(limit, env).await;
        }
    }

    /// Asks for the keys in the background, until the tasks are to stop.
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

    /// Until the background asks again.
    fn until_next(&self, now: Duration) -> Duration {
        let state = self.state();
        let limit = if state.failed { URL_AGE_MIN } else { URL_AGE_MAX };
        state.asked.map_or(Duration::ZERO, |asked| (asked + limit).saturating_sub(now))
    }

    /// Asks for the keys if the last asking was at least so long ago; waits for whoever asks
    /// already.
    async fn refresh(self: &Arc<Self>, age_min: Duration, env: &Env) {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        {
            let mut state = self.state();
            let now = env.clock.monotonic();
            if state.asked.is_some_and(|asked| now.saturating_sub(asked) < age_min) {
                return;
            }
            state.asked = Some(now);
        }
        // A task of its own: it goes on when the client whose token caused it leaves.
        let (keyring, world) = (Arc::clone(self), env.clone());
        let asking = env.tasks.spawn("issuer keys", async move {
            keyring.ask(&world).await;
            drop(turn);
        });
        if let Err(error) = asking.await {
            tracing::error!(issuer = self.name, %error, "the task that fetches the keys failed");
            self.state().failed = true;
        }
    }

    async fn ask(&self, env: &Env) {
        let stop = env.tasks.stopping();
        let found = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            found = fetch::keys(&self.client, &env.tasks, (&self.place, &self.name)) => found,
            () = env.clock.sleep(FETCH_TIME_MAX) => Err(FetchError::Late),
        };
        if self.is_remote() {
            self.metrics.asked(&self.name, found.is_err());
        }
        self.take(found, env.clock.monotonic());
    }

    fn take(&self, found: Result<KeySet, FetchError>, now: Duration) {
        let (issuer, place) = (&self.name, &self.place);
        let mut state = self.state();
        state.failed = found.is_err();
        match found {
            Ok(keys) => {
                if state.had.is_none() {
                    tracing::info!(
                        issuer, %place,
                        "the keys of an issuer of bearer tokens were fetched"
                    );
                }
                state.issuer.keys = keys;
                state.had = Some(now);
            }
            Err(error) if state.had.is_some() => {
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

    /// How old keys are at least, and at most, before they are asked for again.
    const fn ages(&self) -> (Duration, Duration) {
        if self.is_remote() { (URL_AGE_MIN, URL_AGE_MAX) } else { (FILE_AGE_MIN, FILE_AGE_MAX) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
