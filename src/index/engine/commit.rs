//! The committer: the only task that extends a partition's log. It takes the queued writes,
//! evaluates them in order, makes the batch durable with one append, and answers. Meanwhile the
//! next batch queues up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
#[cfg(test)]
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::env::Waits;
use crate::index::api::Error;
use crate::index::api::Full;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::engine::answers::{Answers, KeptAnswer, Known, not_carried_out};
use crate::index::engine::commands::{Answer, Command, Waiting};
use crate::index::engine::core::{Core, Status};
use crate::index::engine::failed::Failed;
use crate::index::engine::group_commit::GroupCommit;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer::Log;
use crate::index::engine::pace::Pace;
use crate::index::engine::refusals::Refusals;
use crate::index::engine::run::reader::Run;
use crate::index::engine::sources::Sources;
use crate::index::engine::view::{BYTES_OF_A_ROW, Snapshot};
use crate::index::engine::watches::{ChangedRow, Outcome};
use crate::index::rows::RowBatch;
use crate::index::rows::RowChange;
use crate::types::Sequence;
use crate::types::Timestamp;

/// The most rows that a write may read in the committer. Long values count as several rows.
pub(crate) const ROWS_IN_TURN: usize = 2_048;
/// Rows added before the committer yields to other tasks of the thread. Long values count as
/// several rows.
const TURN_ROWS: usize = 1_024;

/// The state of the committer. Only its task has access.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(crate) core: Arc<Core>,
    pub(crate) log: Log,
    /// The memtables and runs, as published; the active memtable may already hold rows of the batch
    /// in the making.
    pub(crate) sources: Arc<Sources>,
    /// The newest durable commit.
    pub(crate) sequence: Sequence,
    /// The highest time given to a commit.
    pub(crate) time: Timestamp,
    /// All commits up to this one are in runs.
    pub(crate) flushed: Sequence,
    /// The answers to writes that may be sent again, all durable.
    pub(crate) answers: Answers,
    /// How long the last batch took.
    pub(crate) before: Duration,
    pub(crate) queue: mpsc::Receiver<Waiting>,
    pub(crate) queued_bytes: Arc<AtomicUsize>,
    pub(crate) waits: Arc<Waits>,
    pub(crate) commands: mpsc::Receiver<Command>,
    /// Set permanently when another owner has the partition, or when it is uncertain which writes
    /// are durable. Nothing is appended after that.
    pub(crate) failed: Option<Failed>,
    /// When the log was moved last since a member gave no read lease; monotonic time.
    pub(crate) left_log: Option<Duration>,
    /// Refused rolls of the log, and when the next may be tried.
    pub(crate) rolls: Refusals,
    /// Runs named by a manifest that may or may not be durable. The next roll makes that manifest
    /// invalid.
    pub(crate) doubtful: Vec<Arc<Run>>,
}

impl Committer {
    /// Serves until a command ends it. Writes that still wait then get [`Error::Unavailable`].
    pub(crate) async fn run(mut self) {
        let ops = self.core.context.config.batch_ops;
        let mut taken = VecDeque::new();
        let mut fresh = Vec::new();
        let (meter, clock) =
            (Arc::clone(&self.core.meter), Arc::clone(&self.core.context.deps.env.clock));
        loop {
            if taken.is_empty() {
                tokio::select! {
                    biased;
                    command = self.commands.recv() => match command {
                        Some(Command::Stop) | None => break,
                        Some(Command::SendAway) => return self.send_away().await,
                        Some(command) => self.obey(command).await,
                    },
                    count = self.queue.recv_many(&mut fresh, ops) => {
                        if count == 0 {
                            break;
                        }
                        taken.extend(fresh.drain(..));
                    }
                }
            } else {
                let began = clock.monotonic();
                if let Some(first) = taken.front() {
                    self.waits.begin(first.arrived);
                    // Writes that arrived during the last batch had to wait for its end. This does
                    // not count as waiting in the queue.
                    let waited = began.saturating_sub(first.arrived);
                    meter.waited(waited.saturating_sub(self.before));
                }
                meter.timed(clock.as_ref(), 1, self.commit(&mut taken)).await;
                self.waits.end();
                self.before = clock.monotonic().saturating_sub(began);
            }
        }
        self.core.stop(Status::ReadOnly(self.core.error_of_closing("the partition is closed")));
    }

    /// Carries out one batch from the front of `taken`.
    async fn commit(&mut self, taken: &mut VecDeque<Waiting>) {
        if let Some(failed) = self.failed.clone() {
            return self.turn_away(taken, &failed);
        }
        let bytes_max = self.core.context.config.batch_bytes;
        // Room for the writes, by the memory they take, up to a full batch: else a buffer of many
        // small bodies is copied each time it doubles.
        let weights = taken.iter().map(|waiting| waiting.weight);
        let mut batch = GroupCommit::after(self.sequence, weights.sum::<usize>().min(bytes_max));
        while batch.rows.bytes() < bytes_max && batch.sound.is_ok() {
            let Some(waiting) = taken.pop_front() else { break };
            let counted = self.uncount(waiting.weight);
            batch.sound = batch.sound.and(counted);
            if waiting.turn.take() {
                self.evaluate(waiting, &mut batch).await;
            }
        }
        let ops = batch.answers.len();
        if let Err(violation) = self.check(&batch) {
            let failed = self.stop_violated(violation);
            return self.undo(batch, &failed);
        }
        if batch.rows.commits() == 0 {
            // These answers depend on no new row, and all earlier commits are durable.
            batch.answer_as_reads();
            return;
        }
        let (bytes, durable) = match batch.finish(self.time) {
            Some(record) => (record.len(), self.persist(record, batch.last).await),
            None => (0, Err(Failed::Refused("a batch is too large for a record".into()))),
        };
        match durable {
            Ok(()) => {
                self.sequence = batch.last;
                for (_, kept) in std::mem::take(&mut batch.kept) {
                    self.answers.keep(kept);
                }
                if let Err(failed) = self.publish() {
                    return batch.refuse(&failed);
                }
                self.core.watches.note(&batch.added);
                self.core.context.deps.metrics.committed(ops);
                self.core.meter.logged(bytes);
                batch.answer();
                self.after_commit().await;
            }
            Err(failed) => self.undo(batch, &failed),
        }
    }

    /// Takes back the rows of a batch that was not committed, and refuses its writes.
    fn undo(&self, mut batch: GroupCommit, failed: &Failed) {
        for ChangedRow { family, key, sequence } in batch.added.drain(..) {
            self.sources.active.retract(family, key, sequence);
        }
        batch.refuse(failed);
    }

    /// Publishes the committer's sources and its newest commit.
    ///
    /// # Errors
    /// The partition has stopped, because the published commit would have been lowered.
    pub(crate) fn publish(&mut self) -> Result<(), Failed> {
        let published = self.core.publish(&self.sources, self.sequence);
        published.map_err(|violation| self.stop_violated(violation))
    }

    /// Refuses the taken writes without evaluating them. After a split the children share the
    /// memtable; they would see the rows of a write that is never committed.
    fn turn_away(&self, taken: &mut VecDeque<Waiting>, failed: &Failed) {
        // None of these writes was begun, so they may be sent to the next owner.
        let refused = self.core.may_write().err().unwrap_or_else(|| failed.clone().into());
        for waiting in taken.drain(..) {
            let refused = not_carried_out(waiting.id, refused.clone());
            // A violation changes nothing: the partition has stopped already.
            drop(self.uncount(waiting.weight));
            if waiting.turn.take() {
                drop(waiting.answer.send(Err(refused)));
            }
        }
    }

    async fn evaluate(&mut self, waiting: Waiting, batch: &mut GroupCommit) {
        let Waiting { write, id, evaluated, answer, .. } = waiting;
        let known = id.map_or(Known::Nothing, |id| batch.known(&id, &mut self.answers));
        match known {
            Known::Nothing => {}
            Known::Answered(reply) => return batch.answers.push((answer, reply)),
            Known::Settled => return drop(answer.send(Err(settled()))),
            Known::TooMany => return drop(answer.send(Err(Error::Overloaded))),
        }
        let Decided { mut reply, rows } = match evaluated {
            Some(ready) if ready.holds(&batch.added) => {
                self.time = self.time.max(ready.time);
                batch.watches.push(ready.watch);
                Decided { reply: ready.reply, rows: ready.rows }
            }
            Some(_) => return give_back(answer),
            None => match self.evaluate_now(&write, batch).await {
                Some(decided) => decided,
                None => return give_back(answer),
            },
        };
        if rows.changes.iter().any(|row| !self.core.keys.contains(&row.key)) {
            // Such a row could never be read.
            tracing::error!(partition = %self.core.id, "a write made a row outside its partition");
            reply = Err(Error::Unavailable("a row lies outside the partition".into()));
        }
        let is_change = reply.is_ok() && (rows.must_commit || !rows.changes.is_empty());
        let kept = id.filter(|id| is_change || id.is_repeated);
        let kept = kept.and_then(|id| KeptAnswer::of(&id, &reply));
        if is_change || kept.is_some() {
            let changes = if is_change { rows.changes } else { Vec::new() };
            batch.last = batch.last.plus(1);
            batch.rows.begin(changes.len());
            batch.keep(kept);
            if is_change {
                // Counted before the commit is durable. If the write is repeated it counts twice,
                // which only makes an audit run early.
                self.core.context.deps.metrics.shared_dropped(rows.shared_dropped);
            }
            let mut turn = 0;
            for RowChange { family, key, value } in changes {
                batch.rows.add(family, &key, value.as_ref());
                turn += 1 + value.as_ref().map_or(0, Bytes::len) / BYTES_OF_A_ROW;
                // Readers see the row once it is published. The next writes of the batch see it
                // now.
                self.sources.active.insert(family, key.clone(), batch.last, value);
                batch.added.push(ChangedRow { family, key, sequence: batch.last });
                #[cfg(test)]
                self.core.longest_turn.fetch_max(turn, Ordering::Relaxed);
                if turn >= TURN_ROWS {
                    turn = 0;
                    tokio::task::yield_now().await;
                }
            }
        }
        batch.answers.push((answer, reply));
    }

    /// Evaluates a write after those of the batch. Returns `None` if the write reads so many rows
    /// that it must be evaluated ahead.
    async fn evaluate_now(&mut self, write: &Write, batch: &mut GroupCommit) -> Option<Decided> {
        let last = batch.last;
        self.time = self.core.tick();
        let deps = &self.core.context.deps;
        let view = |pace| Snapshot {
            sources: Arc::clone(&self.sources),
            sequence: last,
            keys: Arc::clone(&self.core.keys),
            pace,
            violation: OnceLock::new(),
        };
        let mut rows = RowBatch::default();
        let limited = view(Pace::limited(&deps.env.clock, ROWS_IN_TURN));
        let reply = deps.machine.evaluate(&limited, write, self.time, &mut rows).await;
        #[cfg(test)]
        self.core.longest_turn.fetch_max(limited.pace.seen(), Ordering::Relaxed);
        batch.note(&limited);
        if !(limited.pace.is_over() && matches!(reply, Err(Error::Overloaded))) {
            return Some(Decided { reply, rows });
        }
        if write.reach().is_some() {
            return None;
        }
        // A write without a reach is short for another reason: the number of rows that it may
        // remove is bounded.
        let (view, mut rows) = (view(Pace::new(&deps.env.clock)), RowBatch::default());
        let reply = deps.machine.evaluate(&view, write, self.time, &mut rows).await;
        #[cfg(test)]
        self.core.longest_turn.fetch_max(view.pace.seen(), Ordering::Relaxed);
        batch.note(&view);
        Some(Decided { reply, rows })
    }

    /// Rolls the log, unless the last roll was refused very recently. After a refusal log and
    /// partition are as before.
    pub(crate) async fn roll(&mut self, manifest: Manifest) -> Result<(), Failed> {
        let clock = Arc::clone(&self.core.context.deps.env.clock);
        let fits = self.log.check_manifest(&manifest);
        fits.map_err(|violation| self.stop_violated(violation))?;
        self.rolls.may_try(clock.monotonic())?;
        match self.log.roll(manifest).await {
            Ok(()) => {
                self.rolls = Refusals::default();
                self.doubtful.drain(..).for_each(|run| run.retire(&self.core.extents));
                self.core.set_log_extents(self.log.extents());
                Ok(())
            }
            Err(
                refused @ (Failed::Full(Full::Coordinator(_))
                | Failed::Refused(_)
                | Failed::Busy(_)),
            ) => {
                let pause = self.rolls.note(clock.monotonic(), &refused);
                let partition = self.core.id;
                tracing::warn!(
                    %partition, ?refused, ?pause,
                    "the log cannot be rolled now; it is tried again after the pause"
                );
                Err(refused)
            }
            Err(failed) => Err(failed),
        }
    }

    /// Keeps nothing any more for processes that have ended.
    pub(crate) fn forget_ended_writers(&mut self) {
        if let Some(writers) = &self.core.context.deps.writers {
            self.answers.forget_ended(writers.as_ref());
        }
    }

    /// The manifest of the partition's present state.
    pub(crate) fn manifest_now(&mut self) -> Manifest {
        let sources = Arc::clone(&self.sources);
        self.manifest(&sources, self.flushed)
    }

    /// The manifest of the partition's state with these sources.
    pub(crate) fn manifest(&mut self, sources: &Sources, flushed: Sequence) -> Manifest {
        self.forget_ended_writers();
        Manifest {
            partition: self.core.id,
            epoch: self.core.epoch,
            previous: None,
            flushed,
            time: self.time,
            runs: sources.entries(),
            answers: self.answers.clone(),
        }
    }

    /// Stops the partition if another owner has it, or if it is unknown which extent its log
    /// continues in. After any other failure the log is rolled before the next append, and the
    /// partition goes on.
    pub(crate) fn stop_if_lost(&mut self, failed: &Failed) {
        if *failed == Failed::Fenced {
            self.stop_after(failed);
        } else if let Some(reason) = self.log.doubt().cloned() {
            self.stop_after(&Failed::Other(reason));
        }
    }

    /// Stops serving as far as a failure requires.
    pub(crate) fn stop_after(&mut self, failed: &Failed) {
        match failed {
            Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) => return,
            Failed::Fenced => self.core.fail(Status::Lost),
            Failed::Other(reason) => {
                let partition = self.core.id;
                tracing::error!(
                    %partition, %reason,
                    "writes stop until the partition is opened again"
                );
                self.core.fail(Status::Stopped(reason.to_string()));
            }
        }
        self.failed = Some(failed.clone());
    }

    async fn after_commit(&mut self) {
        let context = Arc::clone(&self.core.context);
        if self.log.end() >= context.config.log_extent_bytes {
            // A full disk or a refusal does not stop the partition: the open extent still takes
            // appends.
            let manifest = self.manifest_now();
            if let Err(failed) = self.roll(manifest).await {
                self.stop_if_lost(&failed);
            }
            context.wake.notify_one();
        }
        if context.budget.used() >= context.config.memtable_bytes_max / 2 {
            context.wake.notify_one();
        }
    }
}

/// Returns a write that was not evaluated. The caller, unless it has left, evaluates the write
/// ahead.
fn give_back(answer: Answer) {
    drop(answer.send(Ok(Outcome::Again)));
}

/// The error of a write that its sender has settled: it does not wait for an answer any more.
fn settled() -> Error {
    Error::NoAnswer("the write was settled by its sender".into())
}

/// The result of evaluating a write: its answer, and its rows unless the answer is an error.
struct Decided {
    reply: Result<WriteReply, Error>,
    rows: RowBatch,
}
