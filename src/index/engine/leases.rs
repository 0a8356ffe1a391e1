//! Read leases of a partition, in a process that is not the only one that may open it.
//!
//! Another process may have taken the partition over while this one stood still. It has fenced the
//! newest log at one of its members at least. So an answer is right if after its evaluation every
//! member of the newest log says that it is not fenced, or has said so so lately that no new owner
//! serves yet (ADR 0049, ADR 0056). A refused condition is an answer too. Of a write that was
//! appended the members have said so by that.
//!
//! While it is not known whether a roll happened, either log may be the newest, and both count. So
//! do the logs of the new partitions while it is not known whether a split or a merge happened.

use std::time::Duration;

use crate::capacity::OwnedLog;
use crate::capacity::ReadLeases;
use crate::index::api::Error;
use crate::index::engine::commands::Command;
use crate::index::engine::commit::Committer;
use crate::index::engine::partition::Partition;
use crate::index::engine::question::Question;
use crate::types::ExtentId;

/// How long an answer waits for leases before the client gets a 503.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// A log moves at most once in this time for want of a lease: slow members must not make a flood of
/// extents.
const LEAVES_EVERY: Duration = Duration::from_secs(1);
/// The pause after the first question for an answer. It doubles up to `PAUSE_MAX`.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

impl Partition {
    /// The logs whose members may know of another owner.
    pub(crate) fn newest_logs(&self) -> Vec<OwnedLog> {
        self.core.extents.newest()
    }

    /// Makes sure that what was evaluated before this call is still right: no other owner has
    /// changed it.
    ///
    /// # Errors
    /// [`Error::WrongPartition`] if another owner has the partition; [`Error::NoAnswer`] if that
    /// cannot be found out.
    pub(crate) async fn confirm(&self) -> Result<(), Error> {
        match &self.core.context.deps.leases {
            // Nobody else can open it.
            None => Ok(()),
            Some(leases) if leases.are_held(&self.newest_logs()) => Ok(()),
            Some(leases) => self.ask(&**leases).await,
        }
    }

    async fn ask(&self, leases: &dyn ReadLeases) -> Result<(), Error> {
        let clock = &self.core.context.deps.env.clock;
        let end = clock.monotonic() + WAIT_MAX;
        let (mut pause, mut is_first) = (PAUSE, true);
        loop {
            let Question { is_confirmed, named, .. } = self.next_question(leases).await;
            if is_confirmed {
                return Ok(());
            }
            self.core.may_read()?;
            if clock.monotonic() >= end {
                let text = "it is not certain that this process still serves the partition";
                return Err(Error::NoAnswer(text.to_owned()));
            }
            // After a move a member may not have heard of the new epoch yet.
            if !is_first {
                self.leave_logs(&named);
            }
            is_first = false;
            clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// A question that is sent after this call. Only one is under way for a partition: who waits
    /// for its end takes the answer of the next one, with all others.
    async fn next_question(&self, leases: &dyn ReadLeases) -> Question {
        let clock = &self.core.context.deps.env.clock;
        let arrived = clock.monotonic();
        let mut last = self.question.lock().await;
        if let Some(later) = last.as_ref().filter(|question| question.sent > arrived) {
            return later.clone();
        }
        let (sent, logs) = (clock.monotonic(), self.newest_logs());
        let named = leases.ask(&logs).await;
        let is_confirmed = named.is_empty() && !logs.is_empty();
        let question = Question { sent, is_confirmed, named };
        *last = Some(question.clone());
        question
    }

    /// Has the log moved to other members if its newest extent is one of these. If another process
    /// has the partition, the coordinator refuses that.
    pub(crate) fn leave_logs(&self, named: &[ExtentId]) {
        let newest = self.newest_logs().into_iter().map(|owned| owned.log);
        for log in newest.filter(|log| named.contains(log)) {
            // If its queue is full, the committer is busy, and this is tried again.
            drop(self.commands.try_send(Command::LeaveLog(log)));
        }
    }
}

impl Committer {
    /// Moves the log to a new extent if this one is still its newest.
    pub(crate) async fn leave_log(&mut self, log: ExtentId) {
        let now = self.core.context.deps.env.clock.monotonic();
        let is_soon = self.left_log.is_some_and(|at| now < at + LEAVES_EVERY);
        if is_soon || self.failed.is_some() || self.log.extents().last() != Some(&log) {
            return;
        }
        self.left_log = Some(now);
        let partition = self.core.id;
        tracing::info!(%partition, %log, "the log moves: it lacks a read lease, or is to be repaired");
        let manifest = self.manifest_now();
        if let Err(failed) = self.roll(manifest).await {
            self.stop_if_lost(&failed);
        }
    }
}
