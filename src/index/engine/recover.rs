//! Recovery: becoming a partition's owner from nothing but its descriptor.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::capacity;
use crate::capacity::Capacity;
use crate::coordinator::Revision;
use crate::index::api::Error;
use crate::index::engine::core::Core;
use crate::index::engine::extents::{ExtentRecord, Extents, ids};
use crate::index::engine::failed::Failed;
use crate::index::engine::failure;
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::replay::Replay;
use crate::index::engine::run::reader::Run;
use crate::index::engine::shared::Shared;
use crate::index::engine::sources::Sources;
use crate::index::engine::table::Tables;
use crate::index::engine::write_run;
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::Sequence;
use crate::types::Timestamp;

/// A partition ready to serve.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) core: Core,
    pub(crate) log: Log,
    pub(crate) sources: Arc<Sources>,
    pub(crate) sequence: Sequence,
    pub(crate) time: Timestamp,
    pub(crate) flushed: Sequence,
}

/// Why a partition was not taken over.
#[derive(Debug)]
pub(crate) struct NotOpened {
    /// The partition, when it was claimed: then what stands in the way are files it needs.
    pub(crate) claimed: Option<PartitionDescriptor>,
    pub(crate) error: Error,
}

/// Takes a partition over: claims it in the coordinator, locks earlier owners out of its log,
/// replays.
pub(crate) async fn take_over(
    shared: &Arc<Shared>,
    id: PartitionId,
) -> Result<Recovered, NotOpened> {
    let claimed = claim(shared, id).await;
    let (descriptor, revision) = claimed.map_err(|error| NotOpened { claimed: None, error })?;
    let recovered = recover(shared, descriptor.clone(), revision).await;
    recovered.map_err(|error| NotOpened { claimed: Some(descriptor), error })
}

async fn recover(
    shared: &Arc<Shared>,
    descriptor: PartitionDescriptor,
    revision: Revision,
) -> Result<Recovered, Error> {
    for (number, extent) in descriptor.log.iter().enumerate() {
        let shut = shut(shared.parts.capacity.as_ref(), *extent, descriptor.epoch).await;
        // Partitions split from one share its log; one of them may have shut it at a higher epoch.
        // Where it ends for this one stands in the extent after it.
        let inherited = number + 1 < descriptor.log.len();
        match shut {
            Err(Error::WrongPartition) if inherited => {}
            shut => shut?,
        }
    }
    let record = ExtentRecord::load(shared.parts.coordinator.as_ref(), descriptor.id).await?;
    let extents = Extents::new(descriptor.id, record, Vec::new());
    extents.set_owner(descriptor.epoch, revision);
    let mut replay = Replay::start(shared.parts.capacity.as_ref(), &descriptor).await?;
    let mut tables = Arc::new(Tables::new(Arc::clone(&shared.budget)));
    let replay_max = shared.config.replay_bytes_max;
    // Partitions recover side by side: those with little leave the spilling to those with much.
    let fair_share = replay_max / (2 * shared.config.parallel_opens.max(1));
    let mut spilled: Vec<Arc<Run>> = Vec::new();
    let mut flushed = replay.manifest().flushed;
    while replay.step(&tables).await? {
        if shared.budget.used() > replay_max && tables.bytes() > fair_share {
            let through = replay.sequence();
            ids::reserve_now(shared, &extents, tables.families()).await?;
            let (owner, rows) = ((&extents, descriptor.epoch), (&tables, through));
            let runs = write_run::spill(shared, owner, rows, &descriptor.keys).await?;
            spilled.splice(0..0, runs);
            tables = Arc::new(Tables::new(Arc::clone(&shared.budget)));
            flushed = through;
        }
    }
    let done = replay.finish();
    let mut sources = Sources { active: tables, frozen: None, runs: Default::default() };
    for entry in &done.manifest.runs {
        let run = write_run::open_run(shared, *entry).await?;
        sources.runs_mut(run.family()).push(run);
    }
    let dirty = !spilled.is_empty();
    for run in spilled.iter().rev() {
        run.keep();
        sources.runs_mut(run.family()).insert(0, Arc::clone(run));
    }
    let (epoch, keys) = (descriptor.epoch, descriptor.keys.clone());
    let state = LogState { descriptor, revision, highest: done.highest, link: done.link };
    let mut log = Log::recovered(Arc::clone(shared), Arc::clone(&extents), state);
    if dirty {
        let mut manifest = done.manifest;
        manifest.epoch = epoch;
        manifest.flushed = flushed;
        manifest.time = done.time;
        manifest.runs = sources.entries();
        if let Err(failed) = log.roll(manifest).await {
            if matches!(failed, Failed::Full(_) | Failed::Refused(_)) {
                // No descriptor names the manifest that names them.
                spilled.iter().for_each(|run| run.retire(&extents));
            }
            return Err(failed.of_opening());
        }
    }
    let sources = Arc::new(sources);
    let log_extents = log.state().descriptor.log.iter().copied();
    let used: BTreeSet<ExtentId> = log_extents.chain(sources.extents()).collect();
    shared.release_unused(&extents, &used);
    let published = (Arc::clone(&sources), done.sequence);
    let core = Core::new(Arc::clone(shared), (extents, epoch), keys, published);
    Ok(Recovered { core, log, sources, sequence: done.sequence, time: done.time, flushed })
}

/// Raises the epoch in the coordinator: whoever read the descriptor before is not the owner any
/// more.
async fn claim(shared: &Shared, id: PartitionId) -> Result<(PartitionDescriptor, Revision), Error> {
    let coordinator = shared.parts.coordinator.as_ref();
    let key = PartitionDescriptor::coordinator_key(id);
    let found = coordinator.get(&key).await.map_err(|error| failure::coordinator(&error))?;
    let found = found.ok_or(Error::WrongPartition)?;
    let mut descriptor = PartitionDescriptor::decode(&found.value)
        .filter(|descriptor| descriptor.id == id)
        .ok_or_else(|| Error::Corrupt(format!("the descriptor of partition {id} is malformed")))?;
    descriptor.epoch = descriptor.epoch.next();
    descriptor.host = shared.host;
    let revision = writer::swap(coordinator, found.mod_revision, &descriptor, None).await;
    Ok((descriptor, revision.map_err(Failed::of_opening)?))
}

/// Fences and seals a log extent: earlier owners cannot add to it, and its end is final (I2).
async fn shut(capacity: &dyn Capacity, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
    let lost = |error: capacity::Error| match error {
        capacity::Error::NoSuchExtent { .. } => Error::Corrupt(format!("log {error}")),
        // Only a restart verifies the disk: to try again before that is of no use.
        capacity::Error::Poisoned { .. } => Error::DiskOut(error.to_string()),
        capacity::Error::Sealed { .. }
        | capacity::Error::Fenced { .. }
        | capacity::Error::WrongOffset { .. }
        | capacity::Error::Corrupt { .. }
        | capacity::Error::Full
        | capacity::Error::Ended { .. }
        | capacity::Error::Unreadable { .. }
        | capacity::Error::OutOfService { .. } => failure::write(&error),
    };
    capacity.fence(extent, epoch).await.map_err(lost)?;
    capacity.seal(extent, epoch).await.map_err(lost)?;
    Ok(())
}
