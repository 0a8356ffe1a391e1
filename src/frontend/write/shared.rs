//! Small bodies of all requests, appended together: one durable append for everything that waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use crate::capacity;
use crate::capacity::Durability;
use crate::env::Clock;
use crate::env::Turn;
use crate::env::Waits;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::write::extent::ExtentWriter;
use crate::frontend::write::extent::NotStored;
use crate::frontend::write::extent::Shared;
use crate::index::inflight::WriteGuard;
use crate::protocol::Error;
use crate::types::Location;

/// Bodies waiting for a writer; more are refused. Their bytes are bounded before they come here.
pub(super) const QUEUE_BODIES_MAX: usize = 8192;
/// Payload bytes in one append, about.
const BATCH_BYTES_MAX: usize = 4 << 20;

type Answer = Result<(Location, WriteGuard), NotStored>;

/// One body waiting to be appended.
#[derive(Debug)]
pub(super) struct Body {
    pieces: Vec<Bytes>,
    answer: oneshot::Sender<Answer>,
    /// Monotonic.
    arrived: Duration,
    /// Taken before it is appended: who waits may have given up.
    turn: Turn,
}

/// Hands bodies to the writers in turn.
#[derive(Debug)]
pub(super) struct SharedWriters {
    queue: mpsc::Sender<Body>,
    waits: Arc<Waits>,
    clock: Arc<dyn Clock>,
}

impl SharedWriters {
    /// Starts the writer task.
    pub(super) fn start(shared: &Arc<Shared>, waits: Waits) -> Self {
        let (queue, bodies) = mpsc::channel(QUEUE_BODIES_MAX);
        let (bodies, waits) = (Arc::new(Mutex::new(bodies)), Arc::new(waits));
        let (of, pace) = (Arc::clone(shared), Arc::clone(&waits));
        let running = move || {
            // After a panic another extent: nobody knows where the last one ends.
            let writer = ExtentWriter::new(Arc::clone(&of));
            let (bodies, pace) = (Arc::clone(&bodies), Arc::clone(&pace));
            async move { run(writer, &mut *bodies.lock().await, &pace).await }
        };
        let stop = shared.env.tasks.stopping();
        drop(shared.env.supervise("shared data writer", stop, running));
        Self { queue, waits, clock: Arc::clone(&shared.env.clock) }
    }

    /// Appends a body durably, together with others.
    ///
    /// # Errors
    /// `ServerBusy` when it would wait, or has waited, for too long: it is never appended then.
    /// Those of the disks.
    pub(super) async fn append(&self, pieces: Vec<Bytes>) -> Result<(Location, WriteGuard), Error> {
        let arrived = self.clock.monotonic();
        let ahead = self.queue.max_capacity() - self.queue.capacity();
        let few = Waits::is_few(ahead, QUEUE_BODIES_MAX);
        if self.waits.is_late(arrived, few) {
            return Err(errors::busy(Busy::Appends));
        }
        let (answer, reply) = oneshot::channel();
        let turn = Turn::default();
        let body = Body { pieces, answer, arrived, turn: turn.clone() };
        // The writer stops at shutdown only.
        let stopped = || capacity::Error::Poisoned { disk: 0 };
        match self.queue.try_send(body) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(errors::busy(Busy::Appends)),
            Err(TrySendError::Closed(_)) => return Err(errors::from_capacity(&stopped())),
        }
        let answer = self.waits.answer(self.clock.as_ref(), (&turn, arrived, few), reply).await;
        let answer = answer
            .ok_or_else(|| errors::busy(Busy::Appends))?
            .unwrap_or_else(|_| Err(stopped().into()));
        Ok(answer?)
    }
}

async fn run(mut writer: ExtentWriter, bodies: &mut mpsc::Receiver<Body>, waits: &Waits) {
    waits.end();
    while let Some(first) = bodies.recv().await {
        waits.begin(first.arrived);
        let mut bytes = length(&first);
        let mut batch = vec![first];
        while bytes < BATCH_BYTES_MAX {
            let Ok(body) = bodies.try_recv() else { break };
            bytes += length(&body);
            batch.push(body);
        }
        batch.retain(|body| body.turn.take());
        if !batch.is_empty() {
            append(&mut writer, batch).await;
        }
        waits.end();
    }
    writer.seal();
}

async fn append(writer: &mut ExtentWriter, batch: Vec<Body>) {
    let (payloads, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|body| (body.pieces, body.answer)).unzip();
    // A receiver that is gone has given up: its bytes are garbage for the audit.
    match writer.append(payloads, Durability::Durable).await {
        Ok((locations, guard)) => {
            for (answer, location) in answers.into_iter().zip(locations) {
                drop(answer.send(Ok((location, guard.another()))));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(error.clone())));
            }
        }
    }
}

fn length(body: &Body) -> usize {
    body.pieces.iter().map(Bytes::len).sum()
}
