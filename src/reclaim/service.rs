//! The loops of reclaim: passes over garbage, expired blocks and deleted containers; audits; the
//! watch of the oldest read.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::index;
use crate::reclaim::audit;
use crate::reclaim::error::Error;
use crate::reclaim::expire;
use crate::reclaim::garbage;
use crate::reclaim::garbage::Seen;
use crate::reclaim::garbage_marks::GarbageMarks;
use crate::reclaim::partitions::Ownership;
use crate::reclaim::partitions::target;
use crate::reclaim::purge;
use crate::reclaim::purge::Purged;
use crate::reclaim::readers;
use crate::reclaim::readers::LastWarning;
use crate::reclaim::report::AuditReport;
use crate::reclaim::roll;
use crate::reclaim::state::Reclaim;
use crate::reclaim::state::Setup;
use crate::reclaim::tags::TagPass;

/// The longest pause after a pass that took long to list garbage, in units of `interval_max`.
const PAUSES_MAX: u32 = 8;

impl Reclaim {
    /// Starts the loops as tasks of `env`; they end when it stops. Partitions that open later are
    /// passed over until then. In a cluster one process makes the audits, with [`Self::audits`]:
    /// others start without.
    pub fn start(setup: Setup, with_audits: bool) -> Arc<Self> {
        let reclaim = Self::new(setup);
        let (env, stop) = (&reclaim.env, reclaim.env.tasks.stopping());
        let (of_passes, of_audits) = (Arc::clone(&reclaim), Arc::clone(&reclaim));
        let passes = move || Arc::clone(&of_passes).run_passes();
        let audits = move || Arc::clone(&of_audits).audits();
        drop(env.supervise("reclaim passes", stop.clone(), passes));
        if with_audits {
            drop(env.supervise("reclaim audits", stop.clone(), audits));
        }
        let of_reads = Arc::clone(&reclaim);
        let reads = move || Arc::clone(&of_reads).watch_reads();
        drop(env.supervise("oldest read", stop, reads));
        reclaim
    }

    async fn run_passes(self: Arc<Self>) {
        let mut state = PassState::default();
        let mut pause = self.config.interval;
        // The pass may have been slow because a disk stalled, so the pause is bounded.
        let longest = self.config.interval_max.saturating_mul(PAUSES_MAX);
        while self.wait(pause).await {
            let busy = self.pass(&mut state).await;
            pause = if busy { self.config.interval } else { pause.saturating_mul(2) };
            // Listing garbage reads deleted rows too, until compaction removes them.
            pause = pause
                .min(self.config.interval_max)
                .max(state.seen.walked.saturating_mul(9).min(longest));
        }
    }

    async fn watch_reads(self: Arc<Self>) {
        let mut last = LastWarning::default();
        while self.wait(self.config.read_watch).await {
            readers::watch(&self, &mut last).await;
        }
    }

    /// One pass over all partitions of this process. Returns whether there is more to do soon. A
    /// partition that fails does not keep the pass from the others.
    pub(super) async fn pass(&self, state: &mut PassState) -> bool {
        let map = match self.partitions.map().await {
            Ok(map) => map,
            Err(error) => {
                self.log_failure("map", &error.into());
                return false;
            }
        };
        let now = self.env.clock.monotonic();
        let due = |last: Duration| now.saturating_sub(last) >= self.config.expire_every;
        let expire_now = state.expired.is_none_or(due);
        let end_due = |last: Duration| now.saturating_sub(last) >= self.config.end_deletions_every;
        let end_now = state.ended.is_none_or(end_due);
        let mut busy = false;
        state.seen = Seen::default();
        let owners: BTreeSet<Ownership> = self.own(&map).map(Ownership::of).collect();
        state.marks.retain(|owner, _| owners.contains(owner));
        state.tags_from.retain(|owner, _| owners.contains(owner));
        let passed_over = self.metrics.passed_over.get();
        let mut tags = TagPass::new(self, &map);
        for partition in self.own(&map) {
            let owner = Ownership::of(partition);
            let marks = state.marks.entry(owner).or_default();
            match garbage::free(self, target(partition), marks, &mut state.seen).await {
                Ok(freed) => busy |= freed,
                Err(error) => self.log_failure("garbage", &error),
            }
            let position = state.tags_from.entry(owner).or_default();
            match tags.index(target(partition), position).await {
                Ok(done) => busy |= done,
                Err(error) => self.log_failure("tags", &error),
            }
            if expire_now {
                state.expired = Some(now);
                if let Err(error) = expire::expire(self, target(partition)).await {
                    self.log_failure("expire", &error);
                }
            }
            if end_now {
                state.ended = Some(now);
                if let Err(error) = expire::end_deletions(self, target(partition)).await {
                    self.log_failure("end of deletions", &error);
                }
            }
        }
        let held = i64::try_from(state.seen.held_bytes).unwrap_or(i64::MAX);
        self.metrics.held_bytes.set(held);
        roll::roll(self).await;
        if state.purge_again <= now {
            state.purge_again = now.saturating_add(self.config.purge_every);
            match purge::purge(self, &map, &mut state.purged).await {
                Ok(true) => {
                    state.purge_again = now;
                    busy = true;
                }
                Ok(false) => {}
                Err(error) => self.log_failure("purge", &error),
            }
        }
        let passed_over = self.metrics.passed_over.get().saturating_sub(passed_over);
        if passed_over > 0 && state.passed_over == 0 {
            tracing::warn!(steps = passed_over, "reclaim skips partitions that fail");
        }
        state.passed_over = passed_over;
        busy
    }

    /// Makes audits, until the program stops. It may be dropped at any time: another process goes
    /// on.
    pub async fn audits(self: Arc<Self>) {
        let mut pause = self.config.audit_delay;
        let mut after_failure = self.config.audit_delay;
        let mut dropped = 0;
        loop {
            if !self.wait_for_audit(pause, dropped).await {
                return;
            }
            let now = self.index.shared_dropped_bytes();
            if now.saturating_sub(dropped) >= self.config.audit_dropped_min {
                roll::roll_for_audit(&self).await;
            }
            dropped = now;
            let done = self.audit().await;
            after_failure = match &done {
                Ok(_) => self.config.audit_delay,
                Err(_) => after_failure.saturating_mul(2),
            };
            let next = match done {
                // The garbage that triggered this audit may lie in extents that the round had
                // passed before.
                Ok(report) if report.resumed => self.config.audit_soon,
                Ok(report) if report.read > 0 => self.config.audit_wait_max,
                Ok(_) => self.config.audit_every,
                Err(_) => after_failure,
            };
            pause = next.min(self.config.audit_every);
        }
    }

    /// Waits for the next audit, which comes early when many shared bytes were dropped. `dropped`
    /// is the counter at the last audit. Returns false when the program stops.
    async fn wait_for_audit(&self, pause: Duration, dropped: u64) -> bool {
        let (step, mut left) = (self.config.audit_soon, pause);
        while left > step {
            if !self.wait(step).await {
                return false;
            }
            left -= step;
            let since = self.index.shared_dropped_bytes().saturating_sub(dropped);
            if since >= self.config.audit_dropped_min {
                return true;
            }
        }
        self.wait(left).await
    }

    /// One audit: a round, or the rest of one.
    pub(super) async fn audit(&self) -> Result<AuditReport, Error> {
        let result = audit::audit(self).await;
        match &result {
            Ok(report) => {
                self.metrics.audits.inc();
                self.metrics.audited_extents.inc_by(report.extents);
                tracing::info!(?report, "audit finished");
            }
            Err(Error::Stopping) => {}
            Err(error) => {
                self.metrics.audits_failed.inc();
                self.log_failure("audit", error);
            }
        }
        result
    }

    /// Logs why a step ended early.
    fn log_failure(&self, step: &'static str, error: &Error) {
        match error {
            // The map changed during the step, or the program stops: the next pass succeeds. A
            // quarantined partition is reported elsewhere, and stays quarantined until a restart.
            Error::Stopping
            | Error::Index(
                index::Error::WrongPartition | index::Error::Corrupt(index::Damage::Quarantined(_)),
            ) => {
                tracing::debug!(step, %error, "reclaim step ended early");
            }
            Error::Invariant { invariant, found } => {
                let invariant = invariant.number();
                self.env.tasks.health().violated(invariant, &format!("reclaim, {step}: {found}"));
                tracing::error!(step, invariant, %error, "reclaim step stopped; it frees nothing more");
            }
            Error::Index(_) | Error::Capacity(_) | Error::Coordinator(_) | Error::Held { .. } => {
                tracing::warn!(step, %error, "reclaim step failed, will be tried again");
            }
        }
    }
}

/// State kept from one pass to the next. A new owner of a partition begins without any.
#[derive(Debug, Default)]
pub(super) struct PassState {
    /// The read marks of garbage rows.
    marks: BTreeMap<Ownership, GarbageMarks>,
    /// The garbage that the last pass found.
    seen: Seen,
    purged: Purged,
    /// Where to continue with updates of the tag index.
    tags_from: BTreeMap<Ownership, Bytes>,
    /// Steps of the last pass that skipped a partition.
    passed_over: u64,
    /// When to list deleted containers again, by the monotonic clock.
    purge_again: Duration,
    /// When expiry last ran, by the monotonic clock.
    expired: Option<Duration>,
    /// The time of the last search for expired soft-deleted rows, by the monotonic clock.
    ended: Option<Duration>,
}
