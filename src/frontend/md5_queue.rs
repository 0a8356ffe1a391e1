//! MD5 of bodies that arrive at the same time, in batches (ADR 0042).
//!
//! A body queues its pieces here and goes on: its MD5 lags behind by up to 1 MiB. A body that
//! lags further behind catches up, and hashes a piece of each of the others in the same batch. So
//! batches are full when many bodies arrive at the same time. A body waits only while another
//! thread has its stream.
//!
//! Invariants: the stream of a body is with one thread at a time; pieces are hashed in their order;
//! the queued pieces have at most 16 MiB in all, not counted in the budget of bodies, and a thread
//! hashes at most 2 MiB at a time.

mod backlog;

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use bytes::Bytes;

use crate::frontend::md5_queue::backlog::Backlog;
use crate::frontend::md5_queue::backlog::Lane;
use crate::frontend::md5_queue::backlog::PIECE_BYTES_MIN;
use crate::frontend::md5_queue::backlog::Step;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::Md5;
use crate::types::Md5Batch;
use crate::types::Md5Hasher;
use crate::types::Md5Stream;

/// A body that lags behind by more than this catches up, bytes.
const LAG_BYTES_MAX: usize = 1 << 20;
/// The number of bodies from which a batch is worthwhile.
const COMPANY: usize = 16;
/// How often a body lets others receive what they could add to its batch.
const TURNS_GIVEN: u32 = 4;
/// A body that hashes more batches than this in a row lets other tasks run in between.
const BATCHES_IN_A_ROW: u32 = 4;
/// The most bytes that all bodies together may have queued.
const BACKLOG_BYTES_MAX: usize = 16 << 20;

/// The MD5 of a body.
#[derive(Debug)]
pub(crate) enum BodyMd5<'a> {
    /// Hashed by itself.
    Alone(Md5Hasher),
    /// Hashed in batches with others.
    Batched(Batched<'a>),
}

/// A body that has a place in the queue.
#[derive(Debug)]
pub(crate) struct Batched<'a> {
    queue: &'a Md5Queue,
    batch: Md5Batch,
    id: u64,
}

/// Pieces of bodies that wait to be hashed together.
#[derive(Debug)]
pub(crate) struct Md5Queue {
    /// `None` if the library's self-test fails on this processor.
    batch: Option<Md5Batch>,
    backlog: Mutex<Backlog>,
}

impl Md5Queue {
    pub(crate) fn new() -> Self {
        let batch = Md5Batch::new();
        if batch.is_none() {
            tracing::warn!(
                "MD5 in batches is switched off: its self-test failed on this processor. Bodies \
                 are hashed one by one. Please report the processor's model."
            );
        }
        Self { batch, backlog: Mutex::default() }
    }

    /// The MD5 of a body of this length; `None` when the length is unknown.
    pub(crate) fn begin(&self, len: Option<u64>) -> BodyMd5<'_> {
        let long = len.is_none_or(|len| len > PIECE_BYTES_MIN as u64);
        match self.batch {
            Some(batch) if long => {
                let id = self.lock().enter();
                BodyMd5::Batched(Batched { queue: self, batch, id })
            }
            Some(_) | None => BodyMd5::Alone(Md5Hasher::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyMd5<'_> {
    /// Adds a piece of the body.
    ///
    /// # Errors
    /// `InternalError` if hashing of the body panicked.
    pub(crate) async fn add(&mut self, piece: &Bytes) -> Result<(), Refusal> {
        match self {
            Self::Alone(hasher) => {
                hasher.update(piece);
                Ok(())
            }
            Self::Batched(body) => body.add(piece).await,
        }
    }

    /// The digest of everything added.
    ///
    /// # Errors
    /// As of [`Self::add`].
    pub(crate) async fn finish(self) -> Result<Md5, Refusal> {
        match self {
            Self::Alone(hasher) => Ok(hasher.finish()),
            Self::Batched(body) => body.finish().await,
        }
    }
}

impl Batched<'_> {
    async fn add(&self, piece: &Bytes) -> Result<(), Refusal> {
        let lag = {
            let mut backlog = self.queue.lock();
            let lag = backlog.push(self.id, piece.clone());
            if backlog.bytes() > BACKLOG_BYTES_MAX { None } else { Some(lag) }
        };
        match lag {
            Some(lag) if lag <= LAG_BYTES_MAX => Ok(()),
            Some(_) => self.catch_up_with_others().await,
            None => self.catch_up(0).await,
        }
    }

    async fn finish(self) -> Result<Md5, Refusal> {
        self.catch_up(0).await?;
        let stream = self.queue.lock().leave(self.id).ok_or(Reason::InternalError)?;
        Ok(stream.finish())
    }

    /// Hashes until the MD5 lags behind by no more than it may. Before each batch other bodies get
    /// a turn, if they have queued too little: a client sends in bursts, so a body that has caught
    /// up may have nothing queued although its connection has bytes.
    async fn catch_up_with_others(&self) -> Result<(), Refusal> {
        for _ in 0..TURNS_GIVEN {
            let (ready, bodies) = self.queue.lock().company();
            if ready >= bodies.min(COMPANY) {
                break;
            }
            tokio::task::yield_now().await;
        }
        self.catch_up(LAG_BYTES_MAX).await
    }

    /// Hashes, together with pieces of other bodies, until the MD5 lags behind by at most `lag`
    /// bytes.
    async fn catch_up(&self, lag: usize) -> Result<(), Refusal> {
        let mut batches = 0;
        loop {
            let step = self.queue.lock().step(self.id, lag);
            match step {
                Step::Done => return Ok(()),
                Step::Broken => return Err(Reason::InternalError.into()),
                Step::Hash(lanes) => {
                    Hashing { queue: self.queue, lanes }.run(self.batch);
                    batches += 1;
                    if batches % BATCHES_IN_A_ROW == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                // The next step finds out whether it came back or is lost.
                Step::Wait(returned) => drop(returned.await),
            }
        }
    }
}

impl Drop for Batched<'_> {
    fn drop(&mut self) {
        self.queue.lock().leave(self.id);
    }
}

/// Streams that a thread has taken out to hash.
struct Hashing<'a> {
    queue: &'a Md5Queue,
    lanes: Vec<Lane>,
}

impl Hashing<'_> {
    fn run(mut self, batch: Md5Batch) {
        for lane in &mut self.lanes {
            for piece in lane.short.drain(..) {
                lane.stream.update(&piece);
            }
        }
        let lanes = self.lanes.iter_mut();
        let mut messages: Vec<(&mut Md5Stream, &[u8])> =
            lanes.map(|lane| (&mut lane.stream, &lane.piece[..])).collect();
        batch.update(&mut messages);
    }
}

impl Drop for Hashing<'_> {
    fn drop(&mut self) {
        let lanes = std::mem::take(&mut self.lanes);
        let mut backlog = self.queue.lock();
        if std::thread::panicking() {
            // The state of their streams is unknown.
            lanes.iter().for_each(|lane| backlog.give_up(lane.id));
        } else {
            backlog.put_back(lanes);
        }
    }
}

#[cfg(test)]
mod tests;
