//! The committer: the one task that extends a partition's log. It takes what is queued, evaluates
//! it in order, makes it durable with one append, and answers; meanwhile the next batch queues up.

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
use crate::index::engine::commands::{Answer, Command, Waiting};
use crate::index::engine::core::{Core, Status};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::record::BatchBuilder;
use crate::index::engine::log::writer::Log;
use crate::index::engine::pace::Pace;
use crate::index::engine::refusals::Refusals;
use crate::index::engine::run::reader::Run;
use crate::index::engine::sources::Sources;
use crate::index::engine::view::{BYTES_OF_A_ROW, Snapshot};
use crate::index::engine::watches::{ChangedRow, Outcome, Watching};
use crate::index::invariant::Violation;
use crate::index::rows::RowBatch;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Rows that a write may read in the committer; long values count as several.
pub(crate) const ROWS_IN_TURN: usize = 2_048;
/// Rows added before other tasks of the thread have their turn; long values count as several.
const TURN_ROWS: usize = 1_024;

/// The committer's state; nobody else has it.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(crate) core: Arc<Core>,
    pub(crate) log: Log,
    /// Published, and as of the newest commit.
    pub(crate) sources: Arc<Sources>,
    /// The newest durable commit.
    pub(crate) sequence: Sequence,
    /// The highest time given out.
    pub(crate) time: Timestamp,
    /// Commits in runs.
    pub(crate) flushed: Sequence,
    /// How long the last batch took.
    pub(crate) before: Duration,
    pub(crate) queue: mpsc::Receiver<Waiting>,
    pub(crate) queued_bytes: Arc<AtomicUsize>,
    pub(crate) waits: Arc<Waits>,
    pub(crate) commands: mpsc::Receiver<Command>,
    /// Set for good when what is durable is no longer sure: nothing is appended any more.
    pub(crate) failed: Option<Failed>,
    /// Of rolls of the log.
    pub(crate) rolls: Refusals,
    /// Runs that a manifest names of which nobody knows whether it is durable. The next roll cuts
    /// it off.
    pub(crate) doubtful: Vec<Arc<Run>>,
}

impl Committer {
    /// Serves until told to stop. Whoever still waits then learns that the partition is
    /// unavailable.
    pub(crate) async fn run(mut self) {
        let ops = self.core.shared.config.batch_ops;
        let mut taken = VecDeque::new();
        let mut fresh = Vec::new();
        let (meter, clock) =
            (Arc::clone(&self.core.meter), Arc::clone(&self.core.shared.parts.env.clock));
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
                    // Whoever came during the last batch could not but wait for its end.
                    let waited = began.saturating_sub(first.arrived);
                    meter.waited(waited.saturating_sub(self.before));
                }
                meter.timed(clock.as_ref(), 1, self.commit(&mut taken)).await;
                self.waits.end();
                self.before = clock.monotonic().saturating_sub(began);
            }
        }
        self.core.stop(Status::ReadOnly(Error::Unavailable("the partition is closed".into())));
    }

    /// Carries out one batch from the front of `taken`.
    async fn commit(&mut self, taken: &mut VecDeque<Waiting>) {
        if let Some(failed) = self.failed.clone() {
            return self.turn_away(taken, &failed);
        }
        let mut batch = Batch::after(self.sequence);
        while batch.rows.bytes() < self.core.shared.config.batch_bytes && batch.sound.is_ok() {
            let Some(waiting) = taken.pop_front() else { break };
            let counted = self.uncount(waiting.weight);
            batch.sound = batch.sound.and(counted);
            if waiting.turn.take() {
                self.evaluate(waiting, &mut batch).await;
            }
        }
        let ops = batch.answers.len();
        if let Err(violation) = self.check(batch.sound.clone(), batch.numbers()) {
            let failed = self.stop_violated(violation);
            return self.undo(batch, &failed);
        }
        if batch.rows.commits() == 0 {
            // Nothing new for these answers to rest on: all earlier commits are durable.
            batch.answer();
            return;
        }
        let (bytes, durable) = match batch.finish(self.time) {
            Some(record) => (record.len(), self.persist(record, batch.last).await),
            None => (0, Err(Failed::Refused("a batch is too large for a record".into()))),
        };
        match durable {
            Ok(()) => {
                self.sequence = batch.last;
                if let Err(failed) = self.publish() {
                    return batch.refuse(&failed);
                }
                self.core.watches.note(&batch.added);
                self.core.shared.parts.metrics.committed(ops);
                self.core.meter.logged(bytes);
                batch.answer();
                self.after_commit().await;
            }
            Err(failed) => self.undo(batch, &failed),
        }
    }

    /// Takes the rows of a batch back that is not to be, and refuses its writes.
    fn undo(&self, mut batch: Batch, failed: &Failed) {
        for ChangedRow { family, key, sequence } in batch.added.drain(..) {
            self.sources.active.retract(family, key, sequence);
        }
        batch.refuse(failed);
    }

    /// Shows readers the rows as they are here.
    ///
    /// # Errors
    /// The partition has stopped: readers would go back.
    pub(crate) fn publish(&mut self) -> Result<(), Failed> {
        let published = self.core.publish(&self.sources, self.sequence);
        published.map_err(|violation| self.stop_violated(violation))
    }

    /// Refuses what is taken without trying it: after a split the memtable is the children's too,
    /// and they would see the rows of a write that is not to be.
    fn turn_away(&self, taken: &mut VecDeque<Waiting>, failed: &Failed) {
        // None of it was begun: it may wait for the next owner.
        let refused = self.core.may_write().err().unwrap_or_else(|| failed.clone().into());
        for waiting in taken.drain(..) {
            // It has stopped already.
            drop(self.uncount(waiting.weight));
            if waiting.turn.take() {
                drop(waiting.answer.send(Err(refused.clone())));
            }
        }
    }

    async fn evaluate(&mut self, waiting: Waiting, batch: &mut Batch) {
        let Waiting { write, evaluated, answer, .. } = waiting;
        let Decided { mut reply, rows } = match evaluated {
            Some(ready) if ready.holds(&batch.added) => {
                self.time = self.time.max(ready.time);
                batch.watches.push(ready.watch);
                Decided { reply: Ok(ready.reply), rows: ready.rows }
            }
            Some(_) => return give_back(answer),
            None => match self.evaluate_now(&write, batch).await {
                Some(decided) => decided,
                None => return give_back(answer),
            },
        };
        if rows.changes.iter().any(|(_, key, _)| !self.core.keys.contains(key)) {
            // Such a row could never be read back.
            tracing::error!(partition = %self.core.id, "a write made a row outside its partition");
            reply = Err(Error::Unavailable("a row lies outside the partition".into()));
        }
        if reply.is_ok() && (rows.must_commit || !rows.changes.is_empty()) {
            batch.last = batch.last.plus(1);
            batch.rows.begin(rows.changes.len());
            // Before it is durable: counted twice at worst, which makes an audit run early.
            self.core.shared.parts.metrics.shared_dropped(rows.shared_dropped);
            let mut turn = 0;
            for (family, key, value) in rows.changes {
                batch.rows.add(family, &key, value.as_ref());
                turn += 1 + value.as_ref().map_or(0, Bytes::len) / BYTES_OF_A_ROW;
                // Not visible to readers before it is published; the next writes of the batch see
                // it.
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

    /// What a write comes to after those of the batch; `None` when it takes so long that it
    /// is to be evaluated ahead.
    async fn evaluate_now(&mut self, write: &Write, batch: &mut Batch) -> Option<Decided> {
        let last = batch.last;
        self.time = self.core.tick();
        let parts = &self.core.shared.parts;
        let view = |pace| Snapshot {
            sources: Arc::clone(&self.sources),
            sequence: last,
            keys: Arc::clone(&self.core.keys),
            pace,
            violation: OnceLock::new(),
        };
        let mut rows = RowBatch::default();
        let limited = view(Pace::limited(&parts.env.clock, ROWS_IN_TURN));
        let reply = parts.machine.evaluate(&limited, write, self.time, &mut rows).await;
        #[cfg(test)]
        self.core.longest_turn.fetch_max(limited.pace.seen(), Ordering::Relaxed);
        batch.note(&limited);
        if !(limited.pace.is_over() && matches!(reply, Err(Error::Overloaded))) {
            return Some(Decided { reply, rows });
        }
        if write.reach().is_some() {
            return None;
        }
        // Its steps are short for other reasons: what it may remove at a time is bounded.
        let (view, mut rows) = (view(Pace::new(&parts.env.clock)), RowBatch::default());
        let reply = parts.machine.evaluate(&view, write, self.time, &mut rows).await;
        #[cfg(test)]
        self.core.longest_turn.fetch_max(view.pace.seen(), Ordering::Relaxed);
        batch.note(&view);
        Some(Decided { reply, rows })
    }

    /// Appends a record; if that fails, seals the extent off and tries once on another.
    async fn persist(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let mut first = Failed::Full(Full::Disks);
        if self.log.is_open() {
            match self.log.append(record.clone(), highest).await {
                Ok(()) => return Ok(()),
                Err(failed) => first = failed,
            }
        }
        let second = match first {
            Failed::Fenced => Failed::Fenced,
            Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) | Failed::Other(_) => {
                tracing::debug!(
                    partition = %self.core.id,
                    "an append failed; the log moves to a new extent"
                );
                match self.roll_and_append(record, highest).await {
                    Ok(()) => return Ok(()),
                    Err(failed) => failed,
                }
            }
        };
        let told = match (first, second) {
            // Another owner has the partition, and perhaps what the first try wrote: whoever waits
            // must not try again there as if nothing had happened.
            (Failed::Other(reason), Failed::Fenced) => {
                self.stop_after(&Failed::Fenced);
                return Err(Failed::Other(reason));
            }
            (_, Failed::Fenced) => Failed::Fenced,
            (
                Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_),
                unknown @ Failed::Other(_),
            ) if self.log.doubt().is_some() => {
                // The record follows a roll, and what came of the roll is not known: the record
                // was surely not written, and may wait for the partition to be opened again.
                self.stop_if_lost(&unknown);
                return Err(Failed::Fenced);
            }
            // Only if both tries surely wrote nothing may the caller be told so.
            (Failed::Other(reason), _) | (_, Failed::Other(reason)) => Failed::Other(reason),
            (_, second) => second,
        };
        self.stop_if_lost(&told);
        Err(told)
    }

    /// A record that follows one of unknown outcome begins a new extent, whose link cuts that one
    /// off.
    async fn roll_and_append(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        self.roll(self.manifest(&self.sources, self.flushed)).await?;
        self.log.append(record, highest).await
    }

    /// Rolls the log unless it was refused a moment ago: the log is as it was then, and so is the
    /// partition.
    pub(crate) async fn roll(&mut self, manifest: Manifest) -> Result<(), Failed> {
        let clock = Arc::clone(&self.core.shared.parts.env.clock);
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
                tracing::warn!(%partition, ?refused, ?pause, "the log cannot move on now");
                Err(refused)
            }
            Err(failed) => Err(failed),
        }
    }

    /// The partition's state as it would be with these sources.
    pub(crate) fn manifest(&self, sources: &Sources, flushed: Sequence) -> Manifest {
        Manifest {
            partition: self.core.id,
            epoch: self.core.epoch,
            previous: None,
            flushed,
            time: self.time,
            runs: sources.entries(),
        }
    }

    /// Stops when another owner has the partition, or when nobody knows where its log goes on.
    /// After any other failure the log is rolled before something is appended, and the partition
    /// goes on.
    pub(crate) fn stop_if_lost(&mut self, failed: &Failed) {
        if *failed == Failed::Fenced {
            self.stop_after(failed);
        } else if let Some(reason) = self.log.doubt().cloned() {
            self.stop_after(&Failed::Other(reason));
        }
    }

    /// Stops serving as far as a failure demands.
    pub(crate) fn stop_after(&mut self, failed: &Failed) {
        match failed {
            Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) => return,
            Failed::Fenced => self.core.fail(Status::Lost),
            Failed::Other(reason) => {
                let partition = self.core.id;
                tracing::error!(%partition, %reason, "writes stop until the partition is opened again");
                self.core.fail(Status::Stopped(reason.to_string()));
            }
        }
        self.failed = Some(failed.clone());
    }

    async fn after_commit(&mut self) {
        let shared = Arc::clone(&self.core.shared);
        if self.log.end() >= shared.config.log_extent_bytes {
            // Full or refused is no reason to stop: the open extent still takes appends.
            if let Err(failed) = self.roll(self.manifest(&self.sources, self.flushed)).await {
                self.stop_if_lost(&failed);
            }
            shared.wake.notify_one();
        }
        if shared.budget.used() >= shared.config.memtable_bytes_max / 2 {
            shared.wake.notify_one();
        }
    }
}

/// Nothing was done: the caller, unless it left meanwhile, evaluates the write ahead.
fn give_back(answer: Answer) {
    drop(answer.send(Ok(Outcome::Again)));
}

/// What a write comes to: its answer, and its rows unless that is an error.
struct Decided {
    reply: Result<WriteReply, Error>,
    rows: RowBatch,
}

/// The commits of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) commits: u64,
}

/// A group commit in the making.
struct Batch {
    rows: BatchBuilder,
    last: Sequence,
    added: Vec<ChangedRow>,
    answers: Vec<(Answer, Result<WriteReply, Error>)>,
    /// Of the changes that were evaluated ahead: their times stay known until the batch is visible.
    watches: Vec<Arc<Watching>>,
    /// The first invariant that was found violated.
    sound: Result<(), Violation>,
}

impl Batch {
    fn after(sequence: Sequence) -> Self {
        Self {
            rows: BatchBuilder::new(sequence.plus(1)),
            last: sequence,
            added: Vec::new(),
            answers: Vec::new(),
            watches: Vec::new(),
            sound: Ok(()),
        }
    }

    fn numbers(&self) -> Numbers {
        let (first, commits) = (self.rows.first(), self.rows.commits());
        Numbers { first, last: self.last, commits: u64::from(commits) }
    }

    /// Notes what was found violated through a view.
    fn note(&mut self, view: &Snapshot) {
        if let (Ok(()), Some(violation)) = (&self.sound, view.violation.get()) {
            self.sound = Err(violation.clone());
        }
    }

    fn finish(&mut self, time: Timestamp) -> Option<Bytes> {
        std::mem::replace(&mut self.rows, BatchBuilder::new(self.last)).finish(time)
    }

    fn answer(self) {
        for (to, reply) in self.answers {
            // A caller who went away does not need the answer.
            drop(to.send(reply.map(Outcome::Done)));
        }
    }

    /// Refusals too: they may rest on rows that did not become durable.
    fn refuse(self, failed: &Failed) {
        for (to, _) in self.answers {
            drop(to.send(Err(failed.clone().into())));
        }
    }
}
