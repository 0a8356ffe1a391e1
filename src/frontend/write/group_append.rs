//! Group appends: the small bodies of all requests that wait are stored with one durable append.

use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use crate::capacity;
use crate::capacity::Durability;
use crate::env::Clock;
use crate::env::Queued;
use crate::env::Turn;
use crate::env::Waits;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::write::budget::InMemory;
use crate::frontend::write::extent::AppendedPayloads;
use crate::frontend::write::extent::ExtentWriter;
use crate::frontend::write::extent::NotStored;
use crate::frontend::write::extent::WriterContext;
use crate::frontend::write::stored::Stored;
use crate::protocol::model::Refusal;

/// The most bodies in the queue; more are refused. `budget.rs` bounds their bytes.
pub(super) const QUEUE_BODIES_MAX: usize = 8192;
/// About the most payload bytes of one append.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// The bytes are freed when this is dropped, also if it is never received.
type Answer = Result<Stored, NotStored>;

/// A queued body; empty once its append began or its client disconnected.
type QueuedBody = Arc<std::sync::Mutex<Option<InMemory>>>;

/// One body waiting to be appended.
#[derive(Debug)]
struct Body {
    body: QueuedBody,
    answer: oneshot::Sender<Answer>,
    /// Monotonic.
    arrived: Duration,
    /// Taken before it is appended: its request may have timed out.
    turn: Turn,
}

impl Body {
    /// The bytes to append, unless the request timed out or its client disconnected.
    fn begin(&self) -> Option<InMemory> {
        let mut queued = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        if self.turn.take() { queued.take() } else { None }
    }
}

/// The request that waits for an append. Dropped before the append begins, it removes the body, so
/// that the queue keeps no bytes of clients that disconnected.
#[derive(Debug)]
struct WaitingRequest {
    body: QueuedBody,
    turn: Turn,
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let mut queued = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        // It is empty once the append began.
        if queued.take().is_some() {
            let _is_first = self.turn.take();
        }
    }
}

/// The queue of the writer.
#[derive(Debug)]
pub(super) struct GroupAppenders {
    queue: mpsc::Sender<Body>,
    waits: Arc<Waits>,
    clock: Arc<dyn Clock>,
}

impl GroupAppenders {
    /// Starts the writer task.
    pub(super) fn start(shared: &Arc<WriterContext>, waits: Waits) -> Self {
        let (queue, bodies) = mpsc::channel(QUEUE_BODIES_MAX);
        let (bodies, waits) = (Arc::new(Mutex::new(bodies)), Arc::new(waits));
        let (of, pace) = (Arc::clone(shared), Arc::clone(&waits));
        let running = move || {
            // After a panic a new extent: the end of the last one is unknown.
            let writer = ExtentWriter::new(Arc::clone(&of));
            let (bodies, pace) = (Arc::clone(&bodies), Arc::clone(&pace));
            let of = Arc::clone(&of);
            async move { run(&of, writer, &mut *bodies.lock().await, &pace).await }
        };
        let stop = shared.env.tasks.stopping();
        drop(shared.env.supervise("shared data writer", stop, running));
        Self { queue, waits, clock: Arc::clone(&shared.env.clock) }
    }

    /// Appends a body durably, together with others. Cancelled while it waits, it is never
    /// appended; cancelled later, its bytes are freed.
    ///
    /// # Errors
    /// `ServerBusy` when it would wait, or has waited, too long: then it is never appended. Errors
    /// of the disks.
    pub(super) async fn append(&self, body: InMemory) -> Result<Stored, Refusal> {
        let arrived = self.clock.monotonic();
        let ahead = self.queue.max_capacity() - self.queue.capacity();
        let few = Waits::is_few(ahead, QUEUE_BODIES_MAX);
        if self.waits.is_late(arrived, few) {
            return Err(errors::busy(Busy::Appends));
        }
        let (answer, reply) = oneshot::channel();
        let (queued, turn) = (Arc::new(std::sync::Mutex::new(Some(body))), Turn::default());
        let waiting = WaitingRequest { body: Arc::clone(&queued), turn: turn.clone() };
        let body = Body { body: queued, answer, arrived, turn };
        // The writer stops only at shutdown.
        let stopped = || capacity::Error::Poisoned { disk: 0 };
        match self.queue.try_send(body) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(errors::busy(Busy::Appends)),
            Err(TrySendError::Closed(_)) => return Err(errors::from_capacity(&stopped())),
        }
        let queued = Queued { turn: &waiting.turn, arrived, few };
        let answer = self.waits.answer(self.clock.as_ref(), queued, reply).await;
        let answer = answer
            .ok_or_else(|| errors::busy(Busy::Appends))?
            .unwrap_or_else(|_| Err(stopped().into()));
        Ok(answer?)
    }
}

async fn run(
    shared: &WriterContext,
    mut writer: ExtentWriter,
    bodies: &mut mpsc::Receiver<Body>,
    waits: &Waits,
) {
    waits.end();
    while let Some(first) = bodies.recv().await {
        waits.begin(first.arrived);
        let (mut bytes, mut batch, mut next) = (0, Vec::new(), Some(first));
        while let Some(body) = next {
            if let Some(begun) = body.begin() {
                bytes += begun.len();
                batch.push((begun, body.answer));
            }
            next = if bytes < BATCH_BYTES_MAX { bodies.try_recv().ok() } else { None };
        }
        if !batch.is_empty() {
            append(shared, &mut writer, batch).await;
        }
        waits.end();
    }
    writer.seal();
}

async fn append(
    shared: &WriterContext,
    writer: &mut ExtentWriter,
    batch: Vec<(InMemory, oneshot::Sender<Answer>)>,
) {
    let (mut payloads, mut held, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for (body, answer) in batch {
        payloads.push(body.pieces);
        held.push(body.held);
        answers.push(answer);
    }
    let appended = writer.append(payloads, Durability::Durable).await;
    drop(held);
    match appended {
        Ok(AppendedPayloads { locations, note }) => {
            for (answer, location) in answers.into_iter().zip(locations) {
                // Without a receiver this is dropped, which frees the bytes.
                drop(answer.send(Ok(shared.stored(vec![location], vec![note.another()]))));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(error.clone())));
            }
        }
    }
}
