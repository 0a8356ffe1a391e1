//! The handle of an open partition.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{SemaphorePermit, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::env::Clock;
use crate::env::Queued;
use crate::env::Turn;
use crate::env::Waits;
use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::engine::change::CompactionYield;
use crate::index::engine::commands::{Command, Waiting};
use crate::index::engine::core::{Core, Status};
use crate::index::engine::extents::ids;
use crate::index::engine::failed::Failed;
use crate::index::engine::question::Question;
use crate::index::engine::view::Snapshot;
use crate::index::engine::watches::{Evaluated, Outcome, Settled};
use crate::index::load::Class;
use crate::types::Epoch;

/// A write that was evaluated ahead.
pub(super) struct Ready<'a> {
    pub(super) evaluated: Box<Evaluated>,
    /// Its permit to be one of the writes that are evaluated ahead.
    pub(super) place: Option<SemaphorePermit<'a>>,
}

/// A write to be queued for the committer.
pub(super) struct Entry<'a> {
    pub(super) write: Arc<Write>,
    /// Its number, if it may be sent again.
    pub(super) id: Option<WriteId>,
    pub(super) evaluated: Option<Ready<'a>>,
    /// Its bytes.
    pub(super) weight: usize,
    /// How long the write waited before it was queued. If few writes wait, this time counts too.
    pub(super) waited: Duration,
}

/// The handle through which readers and writers use a partition. Dropping it does not close the
/// partition; [`Self::close`] does.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) core: Arc<Core>,
    pub(super) queue: mpsc::Sender<Waiting>,
    pub(super) queued_bytes: Arc<AtomicUsize>,
    pub(crate) waits: Arc<Waits>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) committer: Mutex<Option<JoinHandle<()>>>,
    /// The last question for read leases. Held while one is under way.
    pub(super) question: tokio::sync::Mutex<Option<Question>>,
    /// Held by the one flush, and the one compaction, that may run at a time.
    pub(crate) flushing: tokio::sync::Mutex<()>,
    pub(crate) compacting: tokio::sync::Mutex<()>,
    pub(crate) compaction_yield: CompactionYield,
}

impl Partition {
    /// Answers a read from a snapshot of the durable rows, taken after the call. Reads share
    /// nothing but cached blocks, which never change (ADR 0020).
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) async fn read(&self, epoch: Epoch, read: &Read) -> Result<ReadReply, Error> {
        if epoch != self.core.epoch || !read.place().is_in(&self.core.keys) {
            return Err(Error::WrongPartition);
        }
        self.core.may_read()?;
        let clock = &self.core.context.deps.env.clock;
        let meter = &self.core.meter;
        let times = meter.note(Class::of(read), || clock.monotonic(), || read.place().sample());
        let Settled { snapshot: view, below: settled } = if matches!(read, Read::Garbage { .. }) {
            self.core.watches.settled(|| self.core.snapshot())
        } else {
            Settled { snapshot: self.core.snapshot(), below: None }
        };
        let machine = &self.core.context.deps.machine;
        let answer = machine.answer(&view, self.core.range(), read, clock.now());
        let mut reply = meter.timed(clock.as_ref(), times, answer).await;
        self.stop_if_violated(&view).await;
        // A reader that gets garbage of one time must have got all earlier garbage. Later garbage
        // is left for the next pass.
        if let (Some(settled), Ok(reply)) = (settled, &mut reply) {
            reply.keep_garbage_before(settled);
        }
        // Ownership is checked after the read: the answer was correct while this partition was the
        // owner (I6).
        self.confirm().await?;
        self.core.may_read()?;
        reply
    }

    /// Stops the committer if a read of this view found an invariant violated.
    pub(super) async fn stop_if_violated(&self, view: &Snapshot) {
        if let Some(violation) = view.violation.get() {
            // A committer that has ended takes no command; the partition has stopped then.
            drop(self.commands.send(Command::StopAfter(violation.clone())).await);
        }
    }

    /// Whether few writes are in the queue.
    pub(crate) fn few_are_queued(&self) -> bool {
        let config = &self.core.context.config;
        let ahead = self.queue.max_capacity() - self.queue.capacity();
        Waits::is_few(ahead, config.queue_ops)
            && Waits::is_few(self.queued_bytes.load(Ordering::Relaxed), config.queue_bytes)
    }

    /// Queues a write and waits for its outcome.
    pub(super) async fn take_turn(
        &self,
        entry: Entry<'_>,
        clock: &dyn Clock,
    ) -> Result<Outcome, Error> {
        let Entry { write, id, evaluated, weight, waited } = entry;
        let arrived = clock.monotonic();
        let config = &self.core.context.config;
        let few = self.few_are_queued();
        if self.waits.is_late(arrived, few) {
            return Err(Error::Overloaded);
        }
        // The rows of an evaluated write are in memory already, and few such writes exist at a
        // time.
        let is_evaluated = evaluated.is_some();
        let queued = self.queued_bytes.fetch_add(weight, Ordering::Relaxed);
        let has_room = queued + weight <= config.queue_bytes;
        let (evaluated, place) = evaluated.map(|ready| (ready.evaluated, ready.place)).unzip();
        // The byte limit of the queue bounds the writes that fit; permits bound all others.
        let _place = place.filter(|_| !has_room);
        let (answer, answered) = oneshot::channel();
        let turn = Turn::default();
        let turn_of = turn.clone();
        let waiting = Waiting { write, id, evaluated, weight, answer, arrived, turn: turn_of };
        // A write larger than the whole queue is accepted when the queue is empty.
        let fits = is_evaluated || queued == 0 || has_room;
        let sent =
            if fits { self.queue.try_send(waiting) } else { Err(TrySendError::Full(waiting)) };
        if let Err(refused) = sent {
            self.queued_bytes.fetch_sub(weight, Ordering::Relaxed);
            return Err(match refused {
                TrySendError::Full(_) => Error::Overloaded,
                TrySendError::Closed(_) => self.is_closed(),
            });
        }
        let since = if few { arrived.saturating_sub(waited) } else { arrived };
        let answer =
            self.waits.answer(clock, Queued { turn: &turn, arrived: since, few }, answered).await;
        let Some(answer) = answer else { return Err(Error::Overloaded) };
        answer.unwrap_or_else(|_| match turn.take() {
            true => Err(self.is_closed()),
            // The committer answers every write that it takes, unless it panics.
            false => {
                Err(Error::Unavailable("the write was begun, and its outcome is unknown".into()))
            }
        })
    }

    /// The error of a write that the committer did not take. The write was certainly not carried
    /// out.
    fn is_closed(&self) -> Error {
        match self.core.may_write() {
            Err(Error::WrongPartition) => Error::WrongPartition,
            Ok(()) | Err(_) => self.core.error_of_closing("the partition is closed"),
        }
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn command<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Failed> {
        let closed = || Failed::Other("the partition is closed".into());
        let (answer, answered) = oneshot::channel();
        self.commands.send(make(answer)).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())
    }

    /// Makes sure that at least `count` recorded ids are available for new extents.
    ///
    /// # Errors
    /// [`Failed::Full`], [`Failed::Refused`], [`Failed::Busy`]: the coordinator did not record
    /// them. [`Failed::Fenced`]: the partition stops.
    pub(crate) async fn reserve(&self, count: usize) -> Result<(), Failed> {
        let reserved = ids::reserve(&self.core.context, &self.core.extents, count).await;
        self.reserved(reserved).await
    }

    /// As [`Self::reserve`], for a flush.
    ///
    /// # Errors
    /// As of [`Self::reserve`].
    pub(crate) async fn reserve_for_a_flush(&self, count: usize) -> Result<(), Failed> {
        let (context, extents) = (&self.core.context, &self.core.extents);
        let reserved = ids::reserve_for_a_flush(context, extents, count).await;
        self.reserved(reserved).await
    }

    async fn reserved(&self, reserved: Result<(), Failed>) -> Result<(), Failed> {
        if reserved == Err(Failed::Fenced) {
            // A committer that has ended takes no command; the partition has stopped then.
            drop(self.commands.send(Command::Lose).await);
        }
        reserved
    }

    /// Ends the committer of a partition that another owner has now. Waiting writes get
    /// [`Error::WrongPartition`] and are routed to that owner.
    pub(crate) async fn abandon(&self) {
        drop(self.commands.send(Command::SendAway).await);
        let task = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && task.await.is_err()
        {
            tracing::error!(partition = %self.core.id, "the committer panicked");
        }
    }

    /// Refuses further writes, flushes all rows so that the next start has nothing to replay, and
    /// ends the committer. Rows that cannot be flushed stay in the log.
    pub(crate) async fn close(&self) {
        if self.core.status() == Status::Serving {
            let closing = self.core.error_of_closing("the partition is closing");
            self.core.stop(Status::ReadOnly(closing));
            if let Err(failed) = self.flush().await {
                tracing::warn!(
                    partition = %self.core.id, ?failed,
                    "the partition was not flushed at shutdown"
                );
            }
        }
        // The committer may have ended already; then it takes no command.
        drop(self.commands.send(Command::Stop).await);
        let task = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && task.await.is_err()
        {
            tracing::error!(partition = %self.core.id, "the committer panicked");
        }
    }
}
