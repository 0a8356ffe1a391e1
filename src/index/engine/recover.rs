//! Recovery: becoming a partition's owner from nothing but its descriptor.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::capacity;
use crate::capacity::Capacity;
use crate::coordinator::Revision;
use crate::index::api::Error;
use crate::index::engine::core::Core;
use crate::index::engine::extents::{ExtentRecord, Extents, Owner, ids};
use crate::index::engine::failed::Failed;
use crate::index::engine::failure;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::replay::{Replay, Replayed};
use crate::index::engine::run::reader::Run;
use crate::index::engine::shared::Shared;
use crate::index::engine::sources::{Frozen, Published, Sources};
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

/// A partition of the coordinator that names its owner.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) descriptor: PartitionDescriptor,
    /// The change by which the owner became it.
    pub(crate) revision: Revision,
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
    let claimed = claimed.map_err(|error| NotOpened { claimed: None, error })?;
    let recovered = recover(shared, claimed.clone()).await;
    recovered.map_err(|error| NotOpened { claimed: Some(claimed.descriptor), error })
}

async fn recover(shared: &Arc<Shared>, claimed: Claimed) -> Result<Recovered, Error> {
    let Claimed { descriptor, revision } = claimed;
    lock_out(shared, &descriptor).await?;
    let record = ExtentRecord::load(shared.parts.coordinator.as_ref(), descriptor.id).await?;
    let extents = Extents::new(descriptor.id, record, Vec::new());
    extents.set_owner(descriptor.epoch, revision);
    let (epoch, keys) = (descriptor.epoch, descriptor.keys.clone());
    let owner = Owner { extents: &extents, epoch };
    let Rows { tables, spilled, flushed, replayed } = replay(shared, &descriptor, owner).await?;
    let mut sources = Sources { active: tables, frozen: None, runs: Default::default() };
    for entry in &replayed.manifest.runs {
        let run = write_run::open_run(shared, *entry).await?;
        sources.runs_mut(run.family()).push(run);
    }
    let is_spilled = !spilled.is_empty();
    for run in spilled.iter().rev() {
        run.keep();
        sources.runs_mut(run.family()).insert(0, Arc::clone(run));
    }
    let Replayed { manifest, sequence, time, highest, link } = replayed;
    let state = LogState { descriptor, revision, highest, link, last: sequence };
    let mut log = Log::recovered(Arc::clone(shared), Arc::clone(&extents), state);
    if is_spilled {
        let manifest = Manifest { epoch, flushed, time, runs: sources.entries(), ..manifest };
        if let Err(failed) = log.roll(manifest).await {
            if matches!(failed, Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_)) {
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
    let published = Published { sources: Arc::clone(&sources), sequence };
    let core = Core::new(Arc::clone(shared), owner, keys, published);
    Ok(Recovered { core, log, sources, sequence, time, flushed })
}

/// Fences and seals all extents of a log: earlier owners cannot add to it.
async fn lock_out(shared: &Shared, descriptor: &PartitionDescriptor) -> Result<(), Error> {
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
    Ok(())
}

/// The rows of a log.
struct Rows {
    /// Those that fit into memory.
    tables: Arc<Tables>,
    /// Runs of those that did not, newest first. No manifest names them.
    spilled: Vec<Arc<Run>>,
    /// Commits up to here are in runs.
    flushed: Sequence,
    replayed: Replayed,
}

/// Replays a log. What memory has no room for is written to runs.
async fn replay(
    shared: &Arc<Shared>,
    descriptor: &PartitionDescriptor,
    owner: Owner<'_>,
) -> Result<Rows, Error> {
    let replay = Replay::start(shared.parts.capacity.as_ref(), descriptor).await?;
    let mut replay = replay.reporting_to(shared.parts.env.tasks.health());
    let mut tables = Arc::new(Tables::new(Arc::clone(&shared.budget)));
    let replay_max = shared.config.replay_bytes_max;
    // Partitions recover side by side: those with little leave the spilling to those with much.
    let fair_share = replay_max / (2 * shared.config.parallel_opens.max(1));
    let mut spilled: Vec<Arc<Run>> = Vec::new();
    let mut flushed = replay.manifest().flushed;
    while replay.step(&tables).await? {
        if shared.budget.used() > replay_max && tables.bytes() > fair_share {
            let through = replay.sequence();
            ids::reserve_now(shared, owner.extents, tables.families()).await?;
            let full = Frozen { tables, through };
            let runs = write_run::spill(shared, owner, &full, &descriptor.keys).await?;
            spilled.splice(0..0, runs);
            tables = Arc::new(Tables::new(Arc::clone(&shared.budget)));
            flushed = through;
        }
    }
    Ok(Rows { tables, spilled, flushed, replayed: replay.finish() })
}

/// Raises the epoch in the coordinator: whoever read the descriptor before is not the owner any
/// more.
async fn claim(shared: &Shared, id: PartitionId) -> Result<Claimed, Error> {
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
    let revision = revision.map_err(Failed::of_opening)?;
    Ok(Claimed { descriptor, revision })
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
