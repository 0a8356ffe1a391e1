//! Handoff: a partition moves to another host. The new host opens the runs and follows the log
//! while the old host serves. Then the partition is held, and the new host reads the last records.
//! One change of the descriptor, to the next epoch and the new host, completes the move. The log
//! continues in the same extent, which is fenced: the old owner can no longer append to it (I2). An
//! extent of a cluster has one writer; there it is sealed, and the log continues in a new one.
//!
//! The hosts exchange nothing but the descriptor, the log and the runs, so hosts may be processes.
//! After a crash before the change the old host is the owner; after it the new one is, and recovers
//! as after any crash (I8).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::capacity;
use crate::index::api::Error;
use crate::index::engine::change::check::{Begin, check_goes_on, refused};
use crate::index::engine::change::descriptors;
use crate::index::engine::change::held::Held;
use crate::index::engine::context::HostContext;
use crate::index::engine::core::Core;
use crate::index::engine::extents::{ExtentRecord, Extents, Owner};
use crate::index::engine::failed::Failed;
use crate::index::engine::failure;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::{Claimed, Recovered};
use crate::index::engine::replay::Replay;
use crate::index::engine::sources::{Published, Sources};
use crate::index::engine::table::Tables;
use crate::index::engine::write_run;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;

/// A partition at its new host. It serves as soon as the caller has stopped it at the old one.
#[derive(Debug)]
pub(crate) struct HandedOff {
    pub(crate) partition: Partition,
    /// Since when no write has been made durable; monotonic time.
    pub(crate) frozen_at: Duration,
}

/// Why a partition was not handed off.
#[derive(Debug)]
pub(crate) enum NotMoved {
    /// Its log grew or changed while it was read. Nothing has changed.
    Busy(&'static str),
    /// It could not be read. Nothing has changed. The reason may be that a compaction has removed a
    /// run that an older manifest names.
    Unread(String),
    /// The failure came after the change: the new host is the owner and must open the partition.
    /// The time says since when no write has been made durable; monotonic.
    Owned(Failed, Duration),
    /// See [`NotChanged::Failed`](crate::index::engine::NotChanged::Failed).
    Failed(Failed),
}

impl From<Failed> for NotMoved {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Busy(reason) => Self::Busy(reason),
            Failed::Full(_) | Failed::Refused(_) | Failed::Fenced | Failed::Other(_) => {
                Self::Failed(failed)
            }
        }
    }
}

/// Hands `from` over to the host `to`. When this returns, the coordinator names the new host, and
/// the old one takes no writes. Reads at the old host are correct until the new one gets its first
/// write. The caller must stop the old partition before that.
///
/// # Errors
/// [`NotMoved`]. After [`NotMoved::Busy`], [`NotMoved::Unread`], [`Failed::Full`] and
/// [`Failed::Refused`] nothing has changed, and the old partition goes on.
pub(crate) async fn hand_off(
    from: &Arc<Partition>,
    to: &Arc<HostContext>,
) -> Result<HandedOff, NotMoved> {
    // After a flush the log is short. With flush and compaction locked out, only appends change the
    // state that the new host follows.
    from.flush().await?;
    let _no_flush = from.flushing.lock().await;
    let _no_compaction = from.keep_compaction_out().await;
    // If the log cannot be read now, its owner goes on.
    let unread = |error: Error| match Failed::unread(error) {
        Failed::Refused(reason) => NotMoved::Unread(reason),
        failed @ (Failed::Full(_) | Failed::Busy(_) | Failed::Fenced | Failed::Other(_)) => {
            failed.into()
        }
    };
    let descriptor = current(to, from).await.map_err(unread)?;
    let mut follower = Follower::start(to, &descriptor).await.map_err(unread)?;
    follower.catch_up().await.map_err(unread)?;
    let held = from.hold().await?;
    if let Err(error) = follower.catch_up().await {
        held.resume();
        return Err(unread(error));
    }
    if !follower.is_at(&held) {
        held.resume();
        return Err(NotMoved::Busy("the log of the partition grows too fast"));
    }
    let begin = follower.begin(&held);
    if let Err(violation) = check_goes_on(begin, std::slice::from_ref(&held)) {
        held.resume();
        return Err(refused(&to.deps, &violation).into());
    }
    let mut next = held.log.descriptor.clone();
    next.epoch = next.epoch.next();
    next.host = to.host;
    let revision = match descriptors::move_over(&to.deps, &held.log, &next).await {
        Ok(revision) => revision,
        Err(unchanged @ (Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_))) => {
            held.resume();
            return Err(unchanged.into());
        }
        Err(failed) => {
            held.stop(&failed);
            return Err(failed.into());
        }
    };
    let taken = follower.take_over(&held, Claimed { descriptor: next, revision }).await;
    let frozen_at = held.since;
    held.moved();
    let recovered = taken.map_err(|failed| NotMoved::Owned(failed, frozen_at))?;
    Ok(HandedOff { partition: Partition::start(to, recovered), frozen_at })
}

/// The partition's descriptor in the coordinator.
async fn current(to: &HostContext, from: &Partition) -> Result<PartitionDescriptor, Error> {
    let key = PartitionDescriptor::coordinator_key(from.core.id);
    let found = to.deps.coordinator.get(&key).await;
    let found = found.map_err(|error| failure::coordinator(&error))?;
    found.and_then(|found| PartitionDescriptor::decode(&found.value)).ok_or(Error::WrongPartition)
}

/// Reads a partition that this host does not own yet. Its open runs are pinned.
struct Follower<'a> {
    context: &'a Arc<HostContext>,
    log: Vec<ExtentId>,
    replay: Replay<'a>,
    sources: Sources,
}

impl<'a> Follower<'a> {
    async fn start(
        context: &'a Arc<HostContext>,
        descriptor: &PartitionDescriptor,
    ) -> Result<Self, Error> {
        let replay = Replay::start(context.deps.capacity.as_ref(), descriptor).await?;
        let replay = replay.reporting_to(context.deps.env.tasks.health());
        let active = Arc::new(Tables::new(Arc::clone(&context.budget)));
        let sources = Sources { active, frozen: None, runs: Default::default() };
        let log = descriptor.log.clone();
        let mut follower = Self { context, log, replay, sources };
        for entry in follower.replay.manifest().runs.clone() {
            let run = write_run::open_run(context, entry).await?;
            follower.sources.runs_mut(run.family()).push(run);
        }
        Ok(follower)
    }

    /// Applies the records that were appended meanwhile.
    async fn catch_up(&mut self) -> Result<(), Error> {
        while self.replay.step(&self.sources.active).await? {}
        Ok(())
    }

    /// Whether the follower has read exactly the state of the held partition.
    fn is_at(&self, held: &Held) -> bool {
        let same_log = self.log == held.log.descriptor.log && self.replay.link() == held.log.link;
        let same_runs = self.sources.entries() == held.sources.entries();
        let same_state = self.replay.manifest().flushed == held.flushed;
        same_log && same_runs && same_state && self.replay.sequence() == held.sequence
    }

    /// Where this host would begin as the owner.
    fn begin(&self, held: &Held) -> Begin {
        // The committer gave out times that are not in the log, too.
        Begin { partition: held.core.id, sequence: self.replay.sequence(), time: held.time }
    }

    /// Makes this host the owner; the descriptor names it already.
    async fn take_over(self, held: &Held, claimed: Claimed) -> Result<Recovered, Failed> {
        let Claimed { descriptor, revision } = claimed;
        let (capacity, is_cluster) = (&self.context.deps.capacity, self.context.has_leases());
        let mut is_open = held.is_open && !is_cluster;
        if let Some(newest) = descriptor.log.last() {
            match capacity.fence(*newest, descriptor.epoch).await {
                Ok(()) => {}
                // A poisoned disk takes no appends, which is as good as a fence (see
                // `Capacity::fence`). The log continues in another extent.
                Err(capacity::Error::Poisoned { .. }) => is_open = false,
                Err(error) => return Err(error.into()),
            }
            if is_cluster && let Err(error) = capacity.seal(*newest, descriptor.epoch).await {
                // The roll has it sealed later. Until then the partition cannot move again.
                tracing::debug!(log = %newest, %error, "the log of a moved partition is not sealed");
            }
        }
        let answers = self.replay.answers().clone();
        let coordinator = self.context.deps.coordinator.as_ref();
        let record = ExtentRecord::load(coordinator, descriptor.id).await;
        let record = record.map_err(|error| Failed::Other(error.to_string().into()))?;
        let extents = Extents::new(descriptor.id, record, Vec::new());
        let sources = Arc::new(self.sources);
        let used: BTreeSet<ExtentId> = self.log.into_iter().chain(sources.extents()).collect();
        self.context.release_unused(&extents, &used);
        let published = Published { sources: Arc::clone(&sources), sequence: held.sequence };
        let keys = descriptor.keys.clone();
        let owner = Owner { extents: &extents, epoch: descriptor.epoch };
        let core = Core::new(Arc::clone(self.context), owner, keys, published);
        let manifest = Manifest {
            partition: descriptor.id,
            epoch: descriptor.epoch,
            previous: None,
            flushed: held.flushed,
            time: held.time,
            runs: sources.entries(),
            answers: answers.clone(),
        };
        let log = LogState { descriptor, revision, ..held.log.clone() };
        let log = if is_open {
            Log::begun(Arc::clone(self.context), extents, log)
        } else {
            let mut log = Log::recovered(Arc::clone(self.context), extents, log);
            if is_cluster {
                // Nobody gives a read lease of a log that is sealed.
                log.roll(manifest).await?;
            }
            log
        };
        Ok(Recovered {
            core,
            log,
            sources,
            sequence: held.sequence,
            time: held.time,
            flushed: held.flushed,
            answers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::engine::testing::{World, put};
    use crate::index::invariant::Invariant;

    #[tokio::test]
    async fn a_host_that_has_not_read_the_last_commits_is_found() {
        let world = World::new().await;
        let partition = world.open().await.unwrap();
        partition.apply(put("a", "1")).await.unwrap();
        let descriptor = world.descriptor().await;
        let context = Arc::clone(&partition.core.context);
        let mut follower = Follower::start(&context, &descriptor).await.unwrap();
        follower.catch_up().await.unwrap();
        partition.apply(put("b", "2")).await.unwrap();
        let held = [partition.hold().await.unwrap()];
        let checked = |follower: &Follower<'_>| check_goes_on(follower.begin(&held[0]), &held);
        let violation = checked(&follower).unwrap_err();
        assert_eq!(violation.invariant, Invariant::Seamless);
        follower.catch_up().await.unwrap();
        assert_eq!(checked(&follower), Ok(()));
        held.into_iter().for_each(Held::resume);
    }
}
