//! MD5 of bodies that arrive at the same time, in batches (ADR 0042).
//!
//! A body adds a piece and yields once, so that other ready tasks run and add theirs. Whoever runs
//! first after that hashes all of them. So a lone body waits for no timer, and the more bodies
//! arrive at once, the less each of them costs.

use std::mem::take;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::MD5_BATCH_MAX;
use crate::types::Md5;
use crate::types::Md5Batch;
use crate::types::Md5Hasher;
use crate::types::Md5Stream;

/// A body adds at most this many bytes at a time: one long piece would be hashed alone after the
/// others of its batch.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// Shorter pieces are hashed at once: waiting costs more than it saves.
const PIECE_BYTES_MIN: usize = 8 << 10;

/// The MD5 of a body.
#[derive(Debug)]
pub(crate) enum BodyMd5 {
    /// Hashed by itself.
    Alone(Md5Hasher),
    /// Hashed in batches with others.
    Batched(Md5Stream),
}

impl BodyMd5 {
    /// The digest of everything added.
    pub(crate) fn finish(self) -> Md5 {
        match self {
            Self::Alone(hasher) => hasher.finish(),
            Self::Batched(stream) => stream.finish(),
        }
    }
}

/// A piece that waits to be hashed.
#[derive(Debug)]
struct Waiting {
    stream: Md5Stream,
    piece: Bytes,
    done: oneshot::Sender<Md5Stream>,
}

/// Pieces of bodies that wait to be hashed together.
#[derive(Debug)]
pub(crate) struct Md5Queue {
    /// `None` if the library is wrong on this processor.
    batch: Option<Md5Batch>,
    waiting: Mutex<Vec<Waiting>>,
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
        Self { batch, waiting: Mutex::default() }
    }

    /// The MD5 of a body of this length; `None` when the length is unknown.
    pub(crate) fn begin(&self, len: Option<u64>) -> BodyMd5 {
        let long = len.is_none_or(|len| len > PIECE_BYTES_MIN as u64);
        if long && self.batch.is_some() {
            BodyMd5::Batched(Md5Stream::default())
        } else {
            BodyMd5::Alone(Md5Hasher::default())
        }
    }

    /// Adds a piece of a body.
    ///
    /// # Errors
    /// `InternalError` if hashing of the batch panicked.
    pub(crate) async fn add(&self, md5: &mut BodyMd5, piece: &Bytes) -> Result<(), Refusal> {
        match (md5, self.batch) {
            (BodyMd5::Alone(hasher), _) => hasher.update(piece),
            (BodyMd5::Batched(stream), Some(batch)) if piece.len() >= PIECE_BYTES_MIN => {
                let mut rest = piece.clone();
                while rest.len() >= PIECE_BYTES_MIN {
                    let part = rest.split_to(rest.len().min(PIECE_BYTES_MAX));
                    *stream = self.hashed(batch, take(stream), part).await?;
                }
                stream.update(&rest);
            }
            (BodyMd5::Batched(stream), _) => stream.update(piece),
        }
        Ok(())
    }

    /// Adds a piece; whether the queue is full now.
    fn push(&self, piece: Waiting) -> bool {
        let mut waiting = self.lock();
        waiting.push(piece);
        waiting.len() >= MD5_BATCH_MAX
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a piece together with those of other bodies.
    async fn hashed(
        &self,
        batch: Md5Batch,
        stream: Md5Stream,
        piece: Bytes,
    ) -> Result<Md5Stream, Refusal> {
        let (done, mut hashed) = oneshot::channel();
        let turn = Turn { queue: self, batch, is_over: false };
        if !self.push(Waiting { stream, piece, done }) {
            tokio::task::yield_now().await;
        }
        if let Ok(stream) = hashed.try_recv() {
            turn.over();
            return Ok(stream);
        }
        // It waits still, or another thread is hashing it.
        drop(turn);
        hashed.await.map_err(|_| Reason::InternalError.into())
    }
}

/// The duty to hash what waits. It is carried out on drop, so also when the request is given up.
struct Turn<'a> {
    queue: &'a Md5Queue,
    batch: Md5Batch,
    is_over: bool,
}

impl Turn<'_> {
    /// Another one has hashed the piece.
    fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let waiting = take(&mut *self.queue.lock());
            hash(self.batch, waiting);
        }
    }
}

fn hash(batch: Md5Batch, mut waiting: Vec<Waiting>) {
    // Several threads may have added pieces to a full queue.
    for some in waiting.chunks_mut(MD5_BATCH_MAX) {
        let mut messages: Vec<_> =
            some.iter_mut().map(|one| (&mut one.stream, &one.piece[..])).collect();
        batch.update(&mut messages);
    }
    for Waiting { stream, done, .. } in waiting {
        // A request that was given up does not wait any more.
        drop(done.send(stream));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    fn content(number: usize) -> Bytes {
        let len = 20_000 * (number + 1) + number;
        (0..len).map(|at| u8::try_from((at * 7 + number) % 253).unwrap()).collect()
    }

    /// The MD5 of content that comes in pieces of `step` bytes.
    async fn digest(queue: &Md5Queue, content: &Bytes, step: usize) -> Md5 {
        let mut md5 = queue.begin(Some(content.len() as u64));
        for piece in content.chunks(step) {
            queue.add(&mut md5, &content.slice_ref(piece)).await.unwrap();
        }
        md5.finish()
    }

    #[tokio::test]
    async fn bodies_of_one_time_keep_their_own_digests() {
        let queue = Md5Queue::new();
        assert!(queue.batch.is_some(), "the library is right on this processor");
        for bodies in [1, 2, 7, 8, MD5_BATCH_MAX, 40] {
            let contents: Vec<_> = (0..bodies).map(content).collect();
            let steps = (0..bodies).map(|number| 5_000 + number * 4_999);
            let digests =
                join_all(contents.iter().zip(steps).map(|(c, step)| digest(&queue, c, step)));
            let right: Vec<_> = contents.iter().map(|content| Md5::of(content)).collect();
            assert_eq!(digests.await, right, "{bodies} bodies");
        }
    }

    #[tokio::test]
    async fn the_pieces_of_many_are_hashed_together() {
        let queue = Md5Queue::new();
        let (piece, mut first) = (content(0), queue.begin(None));
        let mut others: Vec<_> = (0..5).map(|_| queue.begin(None)).collect();
        let adding = async {
            tokio::join!(queue.add(&mut first, &piece), async {
                let added = join_all(others.iter_mut().map(|md5| queue.add(md5, &piece)));
                let seen = async { queue.lock().len() };
                tokio::join!(added, seen).1
            })
        };
        assert_eq!(adding.await.1, 6, "all wait for the first, which has let them come");
        assert!(queue.lock().is_empty());
    }

    /// Whoever hashes for all may be given up while it lets others come.
    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_nobody_waiting() {
        let queue = Md5Queue::new();
        let piece = content(3);
        let (mut given_up, mut left) = (queue.begin(None), queue.begin(None));
        let mut first = Box::pin(queue.add(&mut given_up, &piece));
        assert!(futures_util::poll!(&mut first).is_pending());
        let mut second = Box::pin(queue.add(&mut left, &piece));
        assert!(futures_util::poll!(&mut second).is_pending(), "the first has the turn");
        drop(first);
        second.await.unwrap();
        // A piece of more than 64 KiB waits once for each part of it.
        assert_eq!(left.finish(), Md5::of(&piece));
    }

    #[tokio::test]
    async fn short_bodies_and_processors_that_fail_the_test_hash_alone() {
        let queue = Md5Queue::new();
        assert!(matches!(queue.begin(Some(4096)), BodyMd5::Alone(_)));
        let queue = Md5Queue { batch: None, waiting: Mutex::default() };
        assert!(matches!(queue.begin(None), BodyMd5::Alone(_)));
        assert_eq!(digest(&queue, &content(9), 70_000).await, Md5::of(&content(9)));
    }
}
