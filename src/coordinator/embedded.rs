//! The coordinator of a single node, on one redb file (`embedded/file.rs`).
//!
//! One task writes. Transactions that arrive while it commits share the next commit, which is
//! durable before any of them is answered. After an I/O error, such as a full disk, the writer
//! tries to open the file again until that succeeds; requests are refused meanwhile
//! (`embedded/failure.rs`). If the file opens although its disk is full, reads succeed, and changes
//! are refused for a pause (`embedded/room.rs`). Sessions that expire during the pause end after
//! it; no role of a single node opens sessions yet.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::env::Env;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::Revision;
use super::api::Session;
use super::api::Snapshot;
use super::api::TxnReply;
use super::api::Versioned;
use super::api::Watch;
use super::history::HistoryWatch;

use commit::Done;
use failure::corrupt;
use failure::unavailable;
use file::Store;
use request::Request;
use room::REOPEN_PAUSE;
use room::REOPEN_PAUSE_MAX;

mod commit;
mod failure;
mod file;
mod request;
mod room;
mod row;
#[cfg(test)]
pub(crate) use tests::{Room, Space};

/// Name of the file in the first data directory.
pub const FILE_NAME: &str = "coordinator.redb";

/// The most requests in the writer's queue. Further callers wait to queue theirs.
const QUEUE_MAX: usize = 256;
/// The most requests that share a commit.
const BATCH_MAX: usize = 64;
/// The embedded coordinator. It ends with the tasks of its [`Env`]: calls after their shutdown are
/// refused.
#[derive(Clone)]
pub struct EmbeddedCoordinator {
    store: Arc<Store>,
    env: Env,
    writer: mpsc::Sender<Request>,
}

impl fmt::Debug for EmbeddedCoordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCoordinator")
            .field("path", &self.store.path())
            .finish_non_exhaustive()
    }
}

impl EmbeddedCoordinator {
    /// Opens the file at `path`, or creates it. Verifies every row and ends the sessions of the
    /// process that had it open before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged or has another version, [`Error::Unavailable`] if it
    /// cannot be opened.
    pub async fn open(path: &Path, env: &Env) -> Result<Self, Error> {
        let path = path.to_owned();
        Self::opened(env, move || Store::open(path)).await
    }

    /// Opens a copy of the file at `path` in memory, for verification. Changes do not reach the
    /// file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_copy(path: &Path, env: &Env) -> Result<Self, Error> {
        let path = path.to_owned();
        Self::opened(env, move || Store::open_copy(path)).await
    }

    async fn opened(
        env: &Env,
        open: impl FnOnce() -> Result<Store, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let opened = env.tasks.spawn_blocking("coordinator open", open);
        // Redb panics on some damaged pages.
        let store = opened.await.unwrap_or_else(|panic| Err(corrupt(panic)))?;
        let store = Arc::new(store);
        let (writer, requests) = mpsc::channel(QUEUE_MAX);
        let room = room::Room::new(store.path().to_owned());
        let task = Writer { store: Arc::clone(&store), env: env.clone(), requests, room };
        let failed = Arc::clone(&store);
        let stop = move |why: &str| failed.fail(unavailable(why));
        drop(env.tasks.spawn_or_stop("coordinator writer", task.run(), stop));
        Ok(Self { store, env: env.clone(), writer })
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = Arc::clone(&self.store);
        let read = self.env.tasks.spawn_blocking("coordinator read", move || work(&store));
        read.await.unwrap_or_else(|panic| Err(corrupt(panic)))
    }

    async fn request(&self, request: Request) -> Result<(), Error> {
        self.writer.send(request).await.map_err(|_| unavailable("the program is stopping"))
    }
}

#[async_trait]
impl Coordinator for EmbeddedCoordinator {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error> {
        let key = key.to_vec();
        self.read(move |store| store.get(&key)).await
    }

    async fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error> {
        let prefix = prefix.to_vec();
        self.read(move |store| store.range(&prefix)).await
    }

    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Txn { when: when.to_vec(), then: then.to_vec(), reply }).await?;
        answer.await.unwrap_or(Err(Error::Ambiguous))
    }

    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error> {
        Ok(Box::new(HistoryWatch::new(self.store.history(), prefix, after)?))
    }

    async fn open_session(&self, ttl: Duration) -> Result<Session, Error> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Open { ttl, reply }).await?;
        answer.await.map_err(|_| unavailable("the program is stopping"))
    }

    async fn keep_alive(&self, session: Session) -> Result<(), Error> {
        self.store.sessions().keep_alive(self.env.clock.monotonic(), session)
    }

    async fn close_session(&self, session: Session) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::End { session, reply: Some(reply) }).await?;
        answer.await.unwrap_or(Err(Error::Ambiguous)).map(|_| ())
    }
}

/// The one task that commits.
struct Writer {
    store: Arc<Store>,
    env: Env,
    requests: mpsc::Receiver<Request>,
    room: room::Room,
}

/// When to try to open a failed file again, and the pause after that try.
struct Retry {
    at: Duration,
    pause: Duration,
}

impl Writer {
    async fn run(mut self) {
        let stopping = self.env.tasks.stopping();
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut retry: Option<Retry> = None;
        loop {
            retry = self.mend(retry).await;
            let expiry = self.store.sessions().next_deadline();
            let expiry = expiry.max(expiry.and_then(|_| self.room.paused_until()));
            let has_room_at = self.room.has_room_at();
            let again = retry.as_ref().map(|retry| retry.at);
            let received = tokio::select! {
                biased;
                () = stopping.cancelled(), if !self.requests.is_closed() => {
                    // Queued requests are still answered.
                    self.requests.close();
                    continue;
                }
                // Checked before the requests, of which there may always be more.
                () = sleep_until(&self.env, expiry) => 0,
                () = sleep_until(&self.env, again) => 0,
                () = sleep_until(&self.env, has_room_at) => 0,
                () = self.store.failed.raised.notified() => 0,
                received = self.requests.recv_many(&mut batch, BATCH_MAX) => received,
            };
            let now = self.env.clock.monotonic();
            self.room.log_room_again(now);
            let is_paused = self.room.refusal(now).is_some();
            let expired =
                if is_paused { Vec::new() } else { self.store.sessions().take_expired(now) };
            let closed = self.requests.is_closed() && self.requests.is_empty();
            if received == 0 && expired.is_empty() && closed {
                return;
            }
            batch.extend(expired.into_iter().map(|session| Request::End { session, reply: None }));
            if !batch.is_empty() {
                self.commit(now, std::mem::replace(&mut batch, Vec::with_capacity(BATCH_MAX)))
                    .await;
            }
        }
    }

    /// If the file has failed and it is time to try, opens it again. Returns when to try next if it
    /// does not open.
    async fn mend(&mut self, retry: Option<Retry>) -> Option<Retry> {
        let refusal = self.store.failure()?;
        let now = self.env.clock.monotonic();
        let Retry { at, pause } = retry.unwrap_or(Retry { at: now, pause: REOPEN_PAUSE });
        if now < at {
            return Some(Retry { at, pause });
        }
        let store = Arc::clone(&self.store);
        let reopen = self.env.tasks.spawn_blocking("coordinator reopen", move || store.reopen(now));
        match reopen.await.unwrap_or_else(|panic| Err(corrupt(panic))) {
            Ok(_) => {
                self.pause_after(refusal);
                None
            }
            Err(error) => {
                if error.is_full() {
                    self.room.log_full(now, &self.store.failure().unwrap_or(error));
                } else {
                    let path = self.store.path().display();
                    let what = "the coordinator's file cannot be opened again yet; check its disk";
                    tracing::warn!(%path, %error, ?pause, "{what}");
                }
                Some(Retry { at: now + pause, pause: (pause * 2).min(REOPEN_PAUSE_MAX) })
            }
        }
    }

    async fn commit(&mut self, now: Duration, mut batch: Vec<Request>) {
        if let Some(refusal) = self.room.refusal(now) {
            batch = refuse_changes(batch, refusal);
        }
        if batch.is_empty() {
            return;
        }
        let store = Arc::clone(&self.store);
        let work = move || store.commit(now, batch);
        // A panic drops the senders of the answers, so the callers get an ambiguous outcome.
        match self.env.tasks.spawn_blocking("coordinator commit", work).await {
            Ok(Done::Nothing) => {}
            Ok(Done::Changed) => self.room.found(self.env.clock.monotonic()),
            Ok(Done::Full(refusal)) => self.pause_after(refusal),
            Err(panic) => self.store.fail(unavailable(panic)),
        }
    }

    /// The file is open again after this failure. If the cause was a full disk, begins a pause for
    /// changes.
    fn pause_after(&mut self, refusal: Error) {
        if refusal.is_full() {
            self.room.found_none(self.env.clock.monotonic(), refusal);
        }
    }
}

/// Refuses requests that may change rows, and returns the others. A session whose close is refused
/// stays open until it expires.
fn refuse_changes(batch: Vec<Request>, refusal: &Error) -> Vec<Request> {
    let mut rest = Vec::with_capacity(batch.len());
    for request in batch {
        match request {
            Request::Txn { reply, ref then, .. } if !then.is_empty() => {
                // A cancelled caller needs no answer.
                reply.send(Err(refusal.clone())).ok();
            }
            Request::End { reply: Some(reply), .. } => {
                reply.send(Err(refusal.clone())).ok();
            }
            Request::Txn { .. } | Request::Open { .. } | Request::End { reply: None, .. } => {
                rest.push(request);
            }
        }
    }
    rest
}

async fn sleep_until(env: &Env, deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => {
            env.clock.sleep(deadline.saturating_sub(env.clock.monotonic())).await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
