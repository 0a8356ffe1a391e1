//! Handoff: a partition goes to another host. The host to be opens its runs and follows its log
//! while the old one serves; then the partition is held, the last records are read, and one change
//! of the descriptor, to the next epoch and the new host, decides. The log goes on in the same
//! extent, which is fenced: the old owner could not add to it (I2).
//!
//! Nothing but the descriptor, the log and the runs goes from one to the other, so that hosts may
//! be processes. A crash before the change leaves the old owner, after it the new one, who recovers
//! as after any crash (I8).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::capacity;
use crate::index::api::Error;
use crate::index::engine::change::check::{Begin, check_goes_on, refused};
use crate::index::engine::change::descriptors;
use crate::index::engine::change::held::Held;
use crate::index::engine::core::Core;
use crate::index::engine::extents::{ExtentRecord, Extents, Owner};
use crate::index::engine::failed::Failed;
use crate::index::engine::failure;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::{Claimed, Recovered};
use crate::index::engine::replay::Replay;
use crate::index::engine::shared::Shared;
use crate::index::engine::sources::{Published, Sources};
use crate::index::engine::table::Tables;
use crate::index::engine::write_run;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;

/// A partition that serves at its new host as soon as it is stopped at the old one.
#[derive(Debug)]
pub(crate) struct HandedOff {
    pub(crate) partition: Partition,
    /// Monotonic time since which no write was made durable.
    pub(crate) frozen_at: Duration,
}

/// Why a partition was not handed off.
#[derive(Debug)]
pub(crate) enum NotMoved {
    /// Its log moved on while it was read; nothing has happened.
    Busy(&'static str),
    /// It could not be read. Nothing has happened. Perhaps a compaction was installed meanwhile,
    /// and a run that the manifest read before named is gone.
    Unread(String),
    /// The new host owns it and must open it anew: what failed was after the change. No write was
    /// made durable since then, in monotonic time.
    Owned(Failed, Duration),
    /// As for a split.
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

/// Hands `from` over to the host of `to`. When it returns the coordinator names that one; the old
/// one takes no write, and its reads are right until the new one is given its first write: the
/// caller stops it first.
///
/// # Errors
/// [`NotMoved`]. After [`NotMoved::Busy`], [`NotMoved::Unread`], [`Failed::Full`] and
/// [`Failed::Refused`] nothing has changed and the partition goes on.
pub(crate) async fn hand_off(
    from: &Arc<Partition>,
    to: &Arc<Shared>,
) -> Result<HandedOff, NotMoved> {
    // Little is left to follow, and nothing but appends changes what is followed.
    from.flush().await?;
    let _no_flush = from.flushing.lock().await;
    let _no_compaction = from.keep_compaction_out().await;
    // A log that cannot be read now is no reason to stop its owner.
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
        return Err(refused(&to.parts, &violation).into());
    }
    let mut next = held.log.descriptor.clone();
    next.epoch = next.epoch.next();
    next.host = to.host;
    let revision = match descriptors::move_over(&to.parts, &held.log, &next).await {
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

/// The partition's descriptor as the coordinator has it.
async fn current(to: &Shared, from: &Partition) -> Result<PartitionDescriptor, Error> {
    let key = PartitionDescriptor::coordinator_key(from.core.id);
    let found = to.parts.coordinator.get(&key).await;
    let found = found.map_err(|error| failure::coordinator(&error))?;
    found.and_then(|found| PartitionDescriptor::decode(&found.value)).ok_or(Error::WrongPartition)
}

/// A partition read by a host that does not own it yet. The runs that it has open are pinned.
struct Follower<'a> {
    shared: &'a Arc<Shared>,
    log: Vec<ExtentId>,
    replay: Replay<'a>,
    sources: Sources,
}

impl<'a> Follower<'a> {
    async fn start(
        shared: &'a Arc<Shared>,
        descriptor: &PartitionDescriptor,
    ) -> Result<Self, Error> {
        let replay = Replay::start(shared.parts.capacity.as_ref(), descriptor).await?;
        let replay = replay.reporting_to(shared.parts.env.tasks.health());
        let active = Arc::new(Tables::new(Arc::clone(&shared.budget)));
        let sources = Sources { active, frozen: None, runs: Default::default() };
        let log = descriptor.log.clone();
        let mut follower = Self { shared, log, replay, sources };
        for entry in follower.replay.manifest().runs.clone() {
            let run = write_run::open_run(shared, entry).await?;
            follower.sources.runs_mut(run.family()).push(run);
        }
        Ok(follower)
    }

    /// Applies what was appended meanwhile.
    async fn catch_up(&mut self) -> Result<(), Error> {
        while self.replay.step(&self.sources.active).await? {}
        Ok(())
    }

    /// Whether all of the held partition has been read, and nothing else.
    fn is_at(&self, held: &Held) -> bool {
        let same_log = self.log == held.log.descriptor.log && self.replay.link() == held.log.link;
        let same_runs = self.sources.entries() == held.sources.entries();
        let same_state = self.replay.manifest().flushed == held.flushed;
        same_log && same_runs && same_state && self.replay.sequence() == held.sequence
    }

    /// Where it would go on as the owner.
    fn begin(&self, held: &Held) -> Begin {
        // Times that the log does not have were given out, too.
        Begin { partition: held.core.id, sequence: self.replay.sequence(), time: held.time }
    }

    /// Becomes the owner that the descriptor names already.
    async fn take_over(self, held: &Held, claimed: Claimed) -> Result<Recovered, Failed> {
        let Claimed { descriptor, revision } = claimed;
        let mut is_open = held.is_open;
        if let Some(newest) = descriptor.log.last() {
            match self.shared.parts.capacity.fence(*newest, descriptor.epoch).await {
                Ok(()) => {}
                // As good as a fence (see `Capacity::fence`): the log goes on in another extent.
                Err(capacity::Error::Poisoned { .. }) => is_open = false,
                Err(error) => return Err(error.into()),
            }
        }
        let coordinator = self.shared.parts.coordinator.as_ref();
        let record = ExtentRecord::load(coordinator, descriptor.id).await;
        let record = record.map_err(|error| Failed::Other(error.to_string().into()))?;
        let extents = Extents::new(descriptor.id, record, Vec::new());
        let sources = Arc::new(self.sources);
        let used: BTreeSet<ExtentId> = self.log.into_iter().chain(sources.extents()).collect();
        self.shared.release_unused(&extents, &used);
        let published = Published { sources: Arc::clone(&sources), sequence: held.sequence };
        let keys = descriptor.keys.clone();
        let owner = Owner { extents: &extents, epoch: descriptor.epoch };
        let core = Core::new(Arc::clone(self.shared), owner, keys, published);
        let log = LogState { descriptor, revision, ..held.log.clone() };
        Ok(Recovered {
            core,
            log: if is_open {
                Log::begun(Arc::clone(self.shared), extents, log)
            } else {
                Log::recovered(Arc::clone(self.shared), extents, log)
            },
            sources,
            sequence: held.sequence,
            time: held.time,
            flushed: held.flushed,
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
        let shared = Arc::clone(&partition.core.shared);
        let mut follower = Follower::start(&shared, &descriptor).await.unwrap();
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
