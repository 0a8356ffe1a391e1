//! The loops of reclaim: passes over garbage, expired blocks and deleted containers; audits; a look
//! at the oldest read.

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
use crate::reclaim::met::Met;
use crate::reclaim::partitions::target;
use crate::reclaim::purge;
use crate::reclaim::purge::Purged;
use crate::reclaim::readers;
use crate::reclaim::readers::Warned;
use crate::reclaim::report::AuditReport;
use crate::reclaim::roll;
use crate::reclaim::state::Reclaim;
use crate::reclaim::state::Setup;
use crate::reclaim::tags;
use crate::types::Epoch;
use crate::types::PartitionId;

/// After a pass that walked over garbage for long there is a pause of so many times `interval_max`
/// at most.
const PAUSES_MAX: u32 = 8;

impl Reclaim {
    /// Starts the loops as tasks of `env`; they end when it stops. To be called once all partitions
    /// are open.
    pub fn start(setup: Setup) -> Arc<Self> {
        let reclaim = Self::new(setup);
        let (env, stop) = (&reclaim.env, reclaim.env.tasks.stopping());
        let (of_passes, of_audits) = (Arc::clone(&reclaim), Arc::clone(&reclaim));
        let passes = move || Arc::clone(&of_passes).run_passes();
        let audits = move || Arc::clone(&of_audits).run_audits();
        drop(env.supervise("reclaim passes", stop.clone(), passes));
        drop(env.supervise("reclaim audits", stop.clone(), audits));
        let of_reads = Arc::clone(&reclaim);
        let reads = move || Arc::clone(&of_reads).watch_reads();
        drop(env.supervise("oldest read", stop, reads));
        reclaim
    }

    async fn run_passes(self: Arc<Self>) {
        let mut state = PassState::default();
        let mut pause = self.config.interval;
        // What took long may have been a disk that stalled.
        let longest = self.config.interval_max.saturating_mul(PAUSES_MAX);
        while self.wait(pause).await {
            let busy = self.pass(&mut state).await;
            pause = if busy { self.config.interval } else { pause.saturating_mul(2) };
            // The walk over garbage passes over what was forgotten until the index compacts it
            // away.
            pause = pause
                .min(self.config.interval_max)
                .max(state.seen.walked.saturating_mul(9).min(longest));
        }
    }

    async fn watch_reads(self: Arc<Self>) {
        let mut warned = Warned::default();
        while self.wait(self.config.read_watch).await {
            readers::watch(&self, &mut warned);
        }
    }

    /// One pass over all partitions. Whether there is more to do soon. A partition that fails does
    /// not keep the others from giving space back.
    pub(super) async fn pass(&self, state: &mut PassState) -> bool {
        let map = match self.partitions.map().await {
            Ok(map) => map,
            Err(error) => {
                log_failure("map", &error.into());
                return false;
            }
        };
        let now = self.env.clock.monotonic();
        let due = |last: Duration| now.saturating_sub(last) >= self.config.expire_every;
        let expire_now = state.expired.is_none_or(due);
        let mut busy = false;
        let mut names = tags::Names::default();
        state.seen = Seen::default();
        let owners: BTreeSet<Owner> = map.partitions().iter().map(|p| (p.id, p.epoch)).collect();
        state.met.retain(|owner, _| owners.contains(owner));
        state.tags_from.retain(|owner, _| owners.contains(owner));
        let passed_over = self.metrics.passed_over.get();
        for partition in map.partitions() {
            let met = state.met.entry((partition.id, partition.epoch)).or_default();
            match garbage::free(self, target(partition), met, &mut state.seen).await {
                Ok(freed) => busy |= freed,
                Err(error) => log_failure("garbage", &error),
            }
            let position = state.tags_from.entry((partition.id, partition.epoch)).or_default();
            match tags::index(self, &map, target(partition), (&mut names, position)).await {
                Ok(done) => busy |= done,
                Err(error) => log_failure("tags", &error),
            }
            if expire_now {
                state.expired = Some(now);
                if let Err(error) = expire::expire(self, target(partition)).await {
                    log_failure("expire", &error);
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
                Err(error) => log_failure("purge", &error),
            }
        }
        let passed_over = self.metrics.passed_over.get().saturating_sub(passed_over);
        if passed_over > 0 && state.passed_over == 0 {
            tracing::warn!(steps = passed_over, "reclaim skips partitions that fail");
        }
        state.passed_over = passed_over;
        busy
    }

    async fn run_audits(self: Arc<Self>) {
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
                // What called for this audit may lie where the round had passed before.
                Ok(report) if report.resumed => self.config.audit_soon,
                Ok(report) if report.read > 0 => self.config.audit_wait_max,
                Ok(_) => self.config.audit_every,
                Err(_) => after_failure,
            };
            pause = next.min(self.config.audit_every);
        }
    }

    /// Waits for the next audit, which comes early once much shared content was dropped: `dropped`
    /// had been at the last one. False when the program stops.
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

    /// One audit: a round, or what is left of it.
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
                log_failure("audit", error);
            }
        }
        result
    }
}

/// An owner of a partition: the next one begins anew.
type Owner = (PartitionId, Epoch);

/// What one pass leaves to the next.
#[derive(Debug, Default)]
pub(super) struct PassState {
    /// Which garbage was met when.
    met: BTreeMap<Owner, Met>,
    /// What the last pass found of it.
    seen: Seen,
    purged: Purged,
    /// Where to go on with work on the tag index.
    tags_from: BTreeMap<Owner, Bytes>,
    /// Steps of the last pass that went on without a partition.
    passed_over: u64,
    /// When to look for deleted containers again, by the monotonic clock.
    purge_again: Duration,
    /// When expiry last ran, by the monotonic clock.
    expired: Option<Duration>,
}

fn log_failure(step: &'static str, error: &Error) {
    match error {
        // The map changed under the step, or the program stops: the next pass has it right.
        // A quarantined partition is reported elsewhere, and stays so until a restart.
        Error::Stopping
        | Error::Index(index::Error::WrongPartition | index::Error::Quarantined(_)) => {
            tracing::debug!(step, %error, "reclaim step ended early");
        }
        Error::Index(_)
        | Error::Capacity(_)
        | Error::Coordinator(_)
        | Error::Answer
        | Error::Held { .. } => {
            tracing::warn!(step, %error, "reclaim step failed, will be tried again");
        }
    }
}
