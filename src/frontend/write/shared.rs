//! Small bodies of all requests, appended together: one durable append for everything that waits.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::capacity;
use crate::capacity::Durability;
use crate::frontend::write::extent::ExtentWriter;
use crate::frontend::write::extent::Shared;
use crate::index::inflight::WriteGuard;
use crate::types::Location;

/// Bodies waiting for a writer; a full queue makes requests wait, it grows no further.
const QUEUE_BODIES_MAX: usize = 256;
/// Payload bytes in one append, about.
const BATCH_BYTES_MAX: usize = 4 << 20;

type Answer = Result<(Location, WriteGuard), capacity::Error>;

/// One body waiting to be appended.
#[derive(Debug)]
pub(super) struct Body {
    pieces: Vec<Bytes>,
    answer: oneshot::Sender<Answer>,
}

/// Hands bodies to the writers in turn.
#[derive(Debug)]
pub(super) struct SharedWriters {
    queue: mpsc::Sender<Body>,
}

impl SharedWriters {
    /// Starts the writer task.
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let (queue, bodies) = mpsc::channel(QUEUE_BODIES_MAX);
        let writer = ExtentWriter::new(Arc::clone(shared));
        drop(shared.tasks.spawn("shared data writer", run(writer, bodies)));
        Self { queue }
    }

    /// Appends a body durably, together with others.
    pub(super) async fn append(&self, pieces: Vec<Bytes>) -> Answer {
        let (answer, reply) = oneshot::channel();
        // Both fail only when the writer has stopped, at shutdown.
        let stopped = capacity::Error::Poisoned { disk: 0 };
        if self.queue.send(Body { pieces, answer }).await.is_err() {
            return Err(stopped);
        }
        reply.await.unwrap_or(Err(stopped))
    }
}

async fn run(mut writer: ExtentWriter, mut bodies: mpsc::Receiver<Body>) {
    while let Some(first) = bodies.recv().await {
        let mut bytes = length(&first);
        let mut batch = vec![first];
        while bytes < BATCH_BYTES_MAX {
            let Ok(body) = bodies.try_recv() else { break };
            bytes += length(&body);
            batch.push(body);
        }
        append(&mut writer, batch).await;
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
