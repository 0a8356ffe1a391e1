//! Calls with a deadline, repeated while that is safe, as a user if there is one.

use std::future::Future;
use std::sync::Mutex as Locked;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;

use crate::env::Env;

use super::config::EtcdUser;
use super::grpc;
use super::grpc::Answers;
use super::grpc::CallError;
use super::grpc::Head;
use super::link::Connection;
use super::link::Link;
use super::meaning::Meaning;
use super::meaning::meaning;
use super::meaning::needs_no_token;
use super::meaning::text;
use super::wire::AuthenticateRequest;
use super::wire::Header;
use super::wire::Rpc;

/// The pause after a failed attempt. It doubles with each further one.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// When a call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// While it may succeed. Twice does no harm.
    Harmless,
    /// Only while it is known that nothing was changed.
    NotDone,
}

/// Calls to an etcd.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) link: Link,
    user: Option<EtcdUser>,
    /// What the user got for its password; `None` before the first call, and empty if etcd wants
    /// none.
    token: Mutex<Option<HeaderValue>>,
    call_timeout: Duration,
    env: Env,
    /// The newest revision of which an answer told.
    newest: AtomicI64,
}

/// What is known about a call when its time is over.
#[derive(Default)]
struct Progress {
    /// Where an attempt was sent that is not answered.
    sent: Option<Connection>,
    /// The failure of the last attempt.
    failed: Option<CallError>,
}

impl Progress {
    /// An attempt failed, and there may be another.
    fn fail(&mut self, error: CallError) {
        self.sent = None;
        // What may have happened once may have happened, whatever became of it later.
        if self.failed.as_ref().map(meaning) != Some(Meaning::Unknown) {
            self.failed = Some(error);
        }
    }
}

impl Client {
    pub(super) fn new(link: Link, user: Option<EtcdUser>, timeout: Duration, env: &Env) -> Self {
        let (token, newest) = (Mutex::new(None), AtomicI64::new(0));
        Self { link, user, token, call_timeout: timeout, env: env.clone(), newest }
    }

    /// The environment of the calls.
    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// How long a call may take.
    pub(super) fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Notes the revision in the head of an answer, and returns it.
    pub(super) fn note(&self, header: Option<Header>) -> i64 {
        let revision = header.unwrap_or_default().revision;
        self.newest.fetch_max(revision, Ordering::SeqCst);
        revision
    }

    /// The newest revision of which an answer told. The store has at least this one.
    pub(super) fn newest(&self) -> i64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Makes a call. It takes at most the timeout of calls, and ends when the program stops.
    ///
    /// # Errors
    /// Of the last attempt, or of an earlier one whose outcome is open. If none was answered:
    /// [`CallError::NotSent`] between two attempts, [`CallError::Lost`] during one.
    pub(super) async fn call<R: Rpc>(
        &self,
        request: &R,
        repeat: Repeat,
    ) -> Result<R::Answer, CallError> {
        let (progress, stopping) = (Locked::default(), self.env.tasks.stopping());
        tokio::select! {
            biased;
            answered = self.attempts(request, repeat, &progress) => return answered,
            () = self.env.clock.sleep(self.call_timeout) => {}
            () = stopping.cancelled() => {}
        }
        let progress = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Progress { sent, failed } = progress;
        if let Some(connection) = sent {
            self.link.leave(&connection);
            return Err(CallError::Lost("etcd does not answer in time".to_owned()));
        }
        Err(failed
            .unwrap_or_else(|| CallError::NotSent("etcd cannot be reached in time".to_owned())))
    }

    async fn attempts<R: Rpc>(
        &self,
        request: &R,
        repeat: Repeat,
        progress: &Locked<Progress>,
    ) -> Result<R::Answer, CallError> {
        let (mut pause, mut renewed) = (PAUSE, false);
        loop {
            let attempt = self.attempt(request, progress);
            let answered = match repeat {
                Repeat::NotDone => attempt.await,
                Repeat::Harmless => self.in_half_the_time(attempt, progress).await,
            };
            let error = match answered {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let again = match meaning(&error) {
                Meaning::NotDone => true,
                Meaning::Token => !std::mem::replace(&mut renewed, true) && self.user.is_some(),
                Meaning::Unknown => repeat == Repeat::Harmless,
                Meaning::Refused
                | Meaning::Compacted
                | Meaning::Future
                | Meaning::NoLease
                | Meaning::Full
                | Meaning::Corrupt
                | Meaning::TooLarge => false,
            };
            if !again {
                return Err(error);
            }
            known(progress).fail(error);
            self.env.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Leaves a member that does not answer time for another one.
    async fn in_half_the_time<T>(
        &self,
        attempt: impl Future<Output = Result<T, CallError>>,
        progress: &Locked<Progress>,
    ) -> Result<T, CallError> {
        tokio::select! {
            biased;
            answered = attempt => return answered,
            () = self.env.clock.sleep(self.call_timeout / 2) => {}
        }
        if let Some(connection) = known(progress).sent.take() {
            self.link.leave(&connection);
        }
        Err(CallError::Lost("a member of etcd does not answer".to_owned()))
    }

    async fn attempt<R: Rpc>(
        &self,
        request: &R,
        progress: &Locked<Progress>,
    ) -> Result<R::Answer, CallError> {
        let token = self.token().await?;
        let mut connection = self.link.connection().await.map_err(CallError::NotSent)?;
        known(progress).sent = Some(connection.clone());
        let answered = self.unary(&mut connection, token.as_ref(), request).await;
        if let Err(error) = &answered {
            self.after(&connection, token, error).await;
        }
        answered
    }

    /// Sends one request and waits for the end of its answer.
    async fn unary<R: Rpc>(
        &self,
        connection: &mut Connection,
        token: Option<&HeaderValue>,
        request: &R,
    ) -> Result<R::Answer, CallError> {
        let head = Head {
            origin: connection.origin.clone(),
            token: token.cloned(),
            timeout: Some(self.call_timeout),
        };
        let mut answers = grpc::send(&mut connection.sender, head, request, false).await?;
        let lost = || CallError::Lost("etcd sent no answer".to_owned());
        let answer = answers.next().await?.ok_or_else(lost)?;
        // Up to its end, so that the stream is not reset.
        while answers.next().await?.is_some() {}
        Ok(answer)
    }

    /// Makes one attempt at a call whose answers go on, without a deadline.
    pub(super) async fn stream<R: Rpc>(
        &self,
        request: &R,
    ) -> Result<Answers<R::Answer>, CallError> {
        let token = self.token().await?;
        let mut connection = self.link.connection().await.map_err(CallError::NotSent)?;
        let origin = connection.origin.clone();
        let head = Head { origin, token: token.clone(), timeout: None };
        let sent = grpc::send(&mut connection.sender, head, request, true).await;
        if let Err(error) = &sent {
            self.after(&connection, token, error).await;
        }
        sent
    }

    /// Draws the conclusions of a failed attempt for the next one.
    async fn after(&self, from: &Connection, token: Option<HeaderValue>, error: &CallError) {
        match meaning(error) {
            // Another member may do better.
            Meaning::NotDone | Meaning::Unknown => self.link.leave(from),
            Meaning::Token => self.forget(token).await,
            Meaning::Refused
            | Meaning::Compacted
            | Meaning::Future
            | Meaning::NoLease
            | Meaning::Full
            | Meaning::Corrupt
            | Meaning::TooLarge => {}
        }
    }

    /// Has the next call get a new token.
    pub(super) async fn forget_token(&self) {
        *self.token.lock().await = None;
    }

    /// Forgets a token that was refused, unless there is a newer one.
    async fn forget(&self, refused: Option<HeaderValue>) {
        let mut token = self.token.lock().await;
        if token.as_ref().filter(|token| !token.is_empty()) == refused.as_ref() {
            *token = None;
        }
    }

    /// The token of the user, if there is a user and etcd wants a token. The first caller gets it.
    async fn token(&self) -> Result<Option<HeaderValue>, CallError> {
        let Some(user) = &self.user else { return Ok(None) };
        let mut token = self.token.lock().await;
        if token.is_none() {
            let mut connection = self.link.connection().await.map_err(CallError::NotSent)?;
            let (name, password) = (user.name.clone(), user.password.to_string());
            let request = AuthenticateRequest { name, password };
            // Shorter than an attempt, so that a member that is silent is left here.
            let answered = tokio::select! {
                biased;
                answered = self.unary(&mut connection, None, &request) => answered,
                () = self.env.clock.sleep(self.call_timeout / 3) => {
                    Err(CallError::Lost("a member of etcd does not answer a log-in".to_owned()))
                }
            };
            let found = match answered {
                Ok(answer) => answer.token,
                Err(error) if needs_no_token(&error) => String::new(),
                Err(error) => {
                    self.link.leave(&connection);
                    // A refused user is refused again. Whatever else failed, the call itself was
                    // not sent.
                    return Err(match meaning(&error) {
                        Meaning::Refused | Meaning::Token => error,
                        Meaning::NotDone
                        | Meaning::Compacted
                        | Meaning::Future
                        | Meaning::NoLease
                        | Meaning::Full
                        | Meaning::Corrupt
                        | Meaning::TooLarge
                        | Meaning::Unknown => CallError::NotSent(text(&error)),
                    });
                }
            };
            let found = HeaderValue::from_str(&found);
            let mut found = found.map_err(|error| CallError::NotSent(error.to_string()))?;
            found.set_sensitive(true);
            *token = Some(found);
        }
        Ok(token.clone().filter(|token| !token.is_empty()))
    }
}

fn known(progress: &Locked<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
