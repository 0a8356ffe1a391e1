//! Recovery: becomes the owner of a partition, and reads its state from the extents that its
//! descriptor names.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::capacity;
use crate::capacity::Capacity;
use crate::coordinator::Revision;
use crate::index::api::Damage;
use crate::index::api::Error;
use crate::index::engine::answers::Answers;
use crate::index::engine::context::HostContext;
use crate::index::engine::core::Core;
use crate::index::engine::extents::{ExtentRecord, Extents, Owner, ids};
use crate::index::engine::failed::Failed;
use crate::index::engine::failure;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::replay::{Replay, Replayed};
use crate::index::engine::run::reader::Run;
use crate::index::engine::sources::{Frozen, Published, Sources};
use crate::index::engine::table::Tables;
use crate::index::engine::write_run;
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::Sequence;
use crate::types::Timestamp;

/// The state of a recovered partition, from which
/// [`Partition::start`](crate::index::engine::partition::Partition::start) starts its committer.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) core: Core,
    pub(crate) log: Log,
    pub(crate) sources: Arc<Sources>,
    pub(crate) sequence: Sequence,
    pub(crate) time: Timestamp,
    pub(crate) flushed: Sequence,
    /// The answers to writes that may be sent again.
    pub(crate) answers: Answers,
}

/// A descriptor that names this host as the owner.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) descriptor: PartitionDescriptor,
    /// The change of the descriptor that made this host the owner.
    pub(crate) revision: Revision,
}

/// Why a partition was not taken over.
#[derive(Debug)]
pub(crate) struct NotOpened {
    /// The descriptor, if the partition was claimed. Then the files that it needs cannot be used.
    pub(crate) claimed: Option<PartitionDescriptor>,
    pub(crate) error: Error,
}

/// Takes over a partition: claims it in the coordinator, fences its log against earlier owners, and
/// replays the log.
pub(crate) async fn take_over(
    context: &Arc<HostContext>,
    id: PartitionId,
) -> Result<Recovered, NotOpened> {
    let claimed = claim(context, id).await;
    let claimed = claimed.map_err(|error| NotOpened { claimed: None, error })?;
    let recovered = recover(context, claimed.clone()).await;
    recovered.map_err(|error| NotOpened { claimed: Some(claimed.descriptor), error })
}

async fn recover(context: &Arc<HostContext>, claimed: Claimed) -> Result<Recovered, Error> {
    let Claimed { descriptor, revision } = claimed;
    lock_out(context, &descriptor).await?;
    if let Some(writers) = &context.deps.writers {
        writers.catch_up().await?;
    }
    // Never closed.
    let _replaying = context.replays.acquire().await.ok();
    let record = ExtentRecord::load(context.deps.coordinator.as_ref(), descriptor.id).await?;
    let extents = Extents::new(descriptor.id, record, Vec::new());
    extents.set_owner(descriptor.epoch, revision);
    let (epoch, keys) = (descriptor.epoch, descriptor.keys.clone());
    let owner = Owner { extents: &extents, epoch };
    let Rows { tables, spilled, flushed, replayed } = replay(context, &descriptor, owner).await?;
    let mut sources = Sources { active: tables, frozen: None, runs: Default::default() };
    for entry in &replayed.manifest.runs {
        let run = write_run::open_run(context, *entry).await?;
        sources.runs_mut(run.family()).push(run);
    }
    let is_spilled = !spilled.is_empty();
    for run in spilled.iter().rev() {
        run.keep();
        sources.runs_mut(run.family()).insert(0, Arc::clone(run));
    }
    let Replayed { manifest, sequence, time, highest, link, answers } = replayed;
    let state = LogState { descriptor, revision, highest, link, last: sequence };
    let mut log = Log::recovered(Arc::clone(context), Arc::clone(&extents), state);
    // Nobody gives a read lease of a log that is sealed.
    if is_spilled || context.has_leases() {
        let (runs, answers) = (sources.entries(), answers.clone());
        let manifest = Manifest { epoch, flushed, time, runs, answers, ..manifest };
        if let Err(failed) = log.roll(manifest).await {
            if matches!(failed, Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_)) {
                // No descriptor names the extent of the manifest that names these runs.
                spilled.iter().for_each(|run| run.retire(&extents));
            }
            return Err(failed.of_opening());
        }
    }
    let sources = Arc::new(sources);
    let log_extents = log.state().descriptor.log.iter().copied();
    let used: BTreeSet<ExtentId> = log_extents.chain(sources.extents()).collect();
    context.release_unused(&extents, &used);
    let published = Published { sources: Arc::clone(&sources), sequence };
    let core = Core::new(Arc::clone(context), owner, keys, published);
    Ok(Recovered { core, log, sources, sequence, time, flushed, answers })
}

/// Fences and seals all extents of a log, so that earlier owners cannot append to it.
async fn lock_out(context: &HostContext, descriptor: &PartitionDescriptor) -> Result<(), Error> {
    for (number, extent) in descriptor.log.iter().enumerate() {
        let shut = shut(context.deps.capacity.as_ref(), *extent, descriptor.epoch).await;
        // The children of a split share the log of their parent. One of them may have fenced it at
        // a higher epoch. The link in the next extent says where it ends for this partition.
        let inherited = number + 1 < descriptor.log.len();
        match shut {
            Err(Error::WrongPartition) if inherited => {}
            shut => shut?,
        }
    }
    Ok(())
}

/// The rows that a replay found in a log.
struct Rows {
    /// The rows that fit into memory.
    tables: Arc<Tables>,
    /// Runs with the other rows, newest first. No manifest names these runs.
    spilled: Vec<Arc<Run>>,
    /// Commits up to here are in runs.
    flushed: Sequence,
    replayed: Replayed,
}

/// Replays a log. Rows for which memory has no room are written to runs.
async fn replay(
    context: &Arc<HostContext>,
    descriptor: &PartitionDescriptor,
    owner: Owner<'_>,
) -> Result<Rows, Error> {
    let replay = Replay::start(context.deps.capacity.as_ref(), descriptor).await?;
    let mut replay = replay.reporting_to(context.deps.env.tasks.health());
    let mut tables = Arc::new(Tables::new(Arc::clone(&context.budget)));
    let replay_max = context.config.replay_bytes_max;
    // Partitions recover concurrently. Only a partition with many rows in memory writes them to
    // runs.
    let fair_share = replay_max / (2 * context.config.parallel_opens.max(1));
    let mut spilled: Vec<Arc<Run>> = Vec::new();
    let mut flushed = replay.manifest().flushed;
    while replay.step(&tables).await? {
        if context.budget.used() > replay_max && tables.bytes() > fair_share {
            let through = replay.sequence();
            ids::reserve_now(context, owner.extents, tables.families()).await?;
            let full = Frozen { tables, through };
            let runs = write_run::spill(context, owner, &full, &descriptor.keys).await?;
            spilled.splice(0..0, runs);
            tables = Arc::new(Tables::new(Arc::clone(&context.budget)));
            flushed = through;
        }
    }
    Ok(Rows { tables, spilled, flushed, replayed: replay.finish() })
}

/// Raises the epoch in the coordinator, so that an earlier owner can no longer change the
/// descriptor.
async fn claim(context: &HostContext, id: PartitionId) -> Result<Claimed, Error> {
    let coordinator = context.deps.coordinator.as_ref();
    let key = PartitionDescriptor::coordinator_key(id);
    let found = coordinator.get(&key).await.map_err(|error| failure::coordinator(&error))?;
    let found = found.ok_or(Error::WrongPartition)?;
    let mut descriptor = PartitionDescriptor::decode(&found.value)
        .filter(|descriptor| descriptor.id == id)
        .ok_or_else(|| {
            Error::damaged_rows(format!("the descriptor of partition {id} is malformed"))
        })?;
    // The manager has given it to another process.
    if descriptor.host.node() != context.host.node() {
        return Err(Error::WrongPartition);
    }
    descriptor.epoch = descriptor.epoch.next();
    descriptor.host = context.host;
    let revision = writer::swap(coordinator, found.mod_revision, &descriptor, None).await;
    let revision = revision.map_err(Failed::of_opening)?;
    Ok(Claimed { descriptor, revision })
}

/// Fences and seals a log extent: earlier owners cannot append to it, and its end is final (I2).
async fn shut(capacity: &dyn Capacity, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
    let lost = |error: capacity::Error| match error {
        capacity::Error::NoSuchExtent { .. } => Error::damaged_rows(format!("log {error}")),
        // Only a restart verifies the disk; a retry before that fails again.
        capacity::Error::Poisoned { .. } => Error::Corrupt(Damage::DiskOut(error.to_string())),
        capacity::Error::Sealed { .. }
        | capacity::Error::Fenced { .. }
        | capacity::Error::WrongOffset { .. }
        | capacity::Error::Corrupt { .. }
        | capacity::Error::Full
        | capacity::Error::Ended { .. }
        | capacity::Error::NoAnswer { .. }
        | capacity::Error::Unreadable { .. }
        | capacity::Error::OutOfService { .. } => failure::write(&error),
    };
    capacity.fence(extent, epoch).await.map_err(lost)?;
    capacity.seal(extent, epoch).await.map_err(lost)?;
    Ok(())
}
