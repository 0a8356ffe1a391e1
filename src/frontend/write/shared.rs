//! Small bodies of all requests, appended together: one durable append for everything that waits.

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
use crate::env::Turn;
use crate::env::Waits;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::write::budget::InMemory;
use crate::frontend::write::extent::ExtentWriter;
use crate::frontend::write::extent::NotStored;
use crate::frontend::write::extent::Shared;
use crate::frontend::write::stored::Stored;
use crate::protocol::model::Refusal;

/// Bodies waiting for a writer; more are refused. Their bytes are bounded before they come here.
pub(super) const QUEUE_BODIES_MAX: usize = 8192;
/// Payload bytes in one append, about.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Dropped, the bytes are freed: so they are when nobody receives the answer.
type Answer = Result<Stored, NotStored>;

/// A body in the queue, until its append begins or its client is gone.
type Slot = Arc<std::sync::Mutex<Option<InMemory>>>;

/// One body waiting to be appended.
#[derive(Debug)]
struct Body {
    slot: Slot,
    answer: oneshot::Sender<Answer>,
    /// Monotonic.
    arrived: Duration,
    /// Taken before it is appended: who waits may have given up.
    turn: Turn,
}

impl Body {
    /// What is to be appended, unless who waited for it has given up or is gone.
    fn begin(&self) -> Option<InMemory> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if self.turn.take() { slot.take() } else { None }
    }
}

/// Who waits for a body. Dropped, it gives a body up that was not begun: the queue keeps no bytes
/// of clients that are gone.
#[derive(Debug)]
struct Waiting {
    slot: Slot,
    turn: Turn,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        // What was begun is not in there any more.
        if slot.take().is_some() {
            let _is_first = self.turn.take();
        }
    }
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
            let of = Arc::clone(&of);
            async move { run(&of, writer, &mut *bodies.lock().await, &pace).await }
        };
        let stop = shared.env.tasks.stopping();
        drop(shared.env.supervise("shared data writer", stop, running));
        Self { queue, waits, clock: Arc::clone(&shared.env.clock) }
    }

    /// Appends a body durably, together with others. Cut while it waits, it is never appended; cut
    /// later, its bytes are freed.
    ///
    /// # Errors
    /// `ServerBusy` when it would wait, or has waited, for too long: it is never appended then.
    /// Those of the disks.
    pub(super) async fn append(&self, body: InMemory) -> Result<Stored, Refusal> {
        let arrived = self.clock.monotonic();
        let ahead = self.queue.max_capacity() - self.queue.capacity();
        let few = Waits::is_few(ahead, QUEUE_BODIES_MAX);
        if self.waits.is_late(arrived, few) {
            return Err(errors::busy(Busy::Appends));
        }
        let (answer, reply) = oneshot::channel();
        let (slot, turn) = (Arc::new(std::sync::Mutex::new(Some(body))), Turn::default());
        let waiting = Waiting { slot: Arc::clone(&slot), turn: turn.clone() };
        let body = Body { slot, answer, arrived, turn };
        // The writer stops at shutdown only.
        let stopped = || capacity::Error::Poisoned { disk: 0 };
        match self.queue.try_send(body) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(errors::busy(Busy::Appends)),
            Err(TrySendError::Closed(_)) => return Err(errors::from_capacity(&stopped())),
        }
        let mine = (&waiting.turn, arrived, few);
        let answer = self.waits.answer(self.clock.as_ref(), mine, reply).await;
        let answer = answer
            .ok_or_else(|| errors::busy(Busy::Appends))?
            .unwrap_or_else(|_| Err(stopped().into()));
        Ok(answer?)
    }
}

async fn run(
    shared: &Shared,
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
    shared: &Shared,
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
        Ok((locations, guard)) => {
            for (answer, location) in answers.into_iter().zip(locations) {
                // A receiver that is gone drops it, which frees the bytes.
                drop(answer.send(Ok(shared.stored(vec![location], vec![guard.another()]))));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(error.clone())));
            }
        }
    }
}
