//! A consistent cut: all partitions as of one instant, for a backup.
//!
//! The committers of all partitions are paused between two batches, as for a split. Meanwhile the
//! coordinator's rows and the list of extents are read. So the cut has no effect without its cause,
//! even if the two are in different partitions: no copy of a blob without the mark that its bytes
//! are shared, and no blob without its container.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::capacity::ExtentInfo;
use crate::coordinator;
use crate::index::api::Damage;
use crate::index::api::Error;
use crate::index::engine::{CutPartition, Failed, KeptExtents, Partition, Paused};
use crate::index::map::{PARTITION_PREFIX, PartitionDescriptor};
use crate::index::server::host::{Closed, Retry};
use crate::index::server::{Host, IndexServer};
use crate::types::PartitionId;

/// How long a partition may take to pause alone, while all others go on.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest pause of the partitions in the first try; each later try doubles it. All partitions
/// must have paused within half of it. The bound also ends a wait for a merge that has paused some
/// partitions and waits for others.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause in any try.
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// The wait between the first two tries; each later wait doubles. Partitions commit meanwhile.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
/// The longest wait between two tries.
const AGAIN_MAX: Duration = Duration::from_secs(16);
/// A cut that has taken this long is not tried again. On a busy machine or a slow disk many tries
/// may fail.
const GIVE_UP: Duration = Duration::from_secs(300);

/// All partitions as of one instant.
#[derive(Debug)]
pub struct ConsistentCut {
    /// The coordinator's rows.
    pub rows: BTreeMap<Bytes, Bytes>,
    /// The partitions, by id.
    pub partitions: Vec<CutPartition>,
    /// The extents that existed.
    pub extents: Vec<ExtentInfo>,
    /// For how long no partition committed.
    pub pause: Duration,
    /// The logs and runs of the partitions. None of them is removed until this is dropped.
    pub kept: KeptExtents,
}

/// Why there is no cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutError {
    /// The index is stopping.
    Stops,
    /// [`Damage::Quarantined`]: a partition is out of service. [`Error::Unavailable`]: try again
    /// later. It names the partitions that do not open or did not pause.
    Failed(Error),
}

impl IndexServer {
    /// Makes a consistent cut. No partition commits meanwhile. That takes about as long as one
    /// commit, and at most [`PAUSE_MAX`] in a try. Before that each partition is paused alone, so
    /// that the others do not wait for one that does not pause.
    ///
    /// # Errors
    /// [`CutError`].
    pub async fn consistent_cut(&self) -> Result<ConsistentCut, CutError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(CutError::Stops),
            made = self.cut_in_time() => made.map_err(CutError::Failed),
        }
    }

    async fn cut_in_time(&self) -> Result<ConsistentCut, Error> {
        let clock = Arc::clone(&self.deps()?.env.clock);
        let began = clock.monotonic();
        let (mut pause, mut again) = (PAUSE_FIRST, AGAIN_FIRST);
        loop {
            let made = match self.not_open()? {
                Some(error) => Err(error),
                None => self.probe_and_cut(pause).await?,
            };
            let error = match made {
                Ok(cut) => return Ok(cut),
                Err(error) => error,
            };
            if clock.monotonic().saturating_sub(began) >= GIVE_UP {
                return Err(error);
            }
            tracing::warn!(%error, wait = ?again, "no cut of all partitions yet: trying again");
            clock.sleep(again).await;
            again = again.saturating_mul(2).min(AGAIN_MAX);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }

    /// The error if a partition does not open yet. The others go on.
    ///
    /// # Errors
    /// [`Damage::Quarantined`]: one is out of service.
    fn not_open(&self) -> Result<Option<Error>, Error> {
        let closed: Vec<Closed> = self.hosts.iter().flat_map(|host| host.opened.closed()).collect();
        if let Some(out) = closed.iter().find(|one| one.retry != Retry::Soon) {
            return Err(Damage::Quarantined(out.descriptor.id).into());
        }
        let why = |one: &Closed| {
            let (partition, error) = (one.descriptor.id, &one.error);
            Error::Unavailable(format!("partition {partition} does not open yet: {error}"))
        };
        Ok(closed.first().map(why))
    }

    /// One try. After the inner error another try may succeed.
    ///
    /// # Errors
    /// A partition does not pause within [`PATIENCE`].
    async fn probe_and_cut(&self, pause: Duration) -> Result<Result<ConsistentCut, Error>, Error> {
        let clock = Arc::clone(&self.deps()?.env.clock);
        let began = clock.monotonic();
        match self.pause_all(PATIENCE, Together::No).await {
            Err(error) if clock.monotonic().saturating_sub(began) >= PATIENCE => return Err(error),
            Err(error) => return Ok(Err(error)),
            Ok(_) => {}
        }
        tokio::select! {
            biased;
            made = self.try_cut(pause / 2) => Ok(made),
            () = clock.sleep(pause) => {
                let slow = "the coordinator or the list of extents took too long to read";
                Ok(Err(Error::Unavailable(slow.into())))
            }
        }
    }

    async fn try_cut(&self, patience: Duration) -> Result<ConsistentCut, Error> {
        let deps = self.deps()?;
        let began = deps.env.clock.monotonic();
        let paused = self.pause_all(patience, Together::Yes).await?;
        let found = deps.coordinator.range(b"").await;
        let unread = |error: coordinator::Error| Error::Unavailable(error.to_string());
        let found = found.map_err(unread)?.entries;
        let rows: BTreeMap<Bytes, Bytes> =
            found.into_iter().map(|(key, entry)| (key, entry.value)).collect();
        let mut partitions: Vec<CutPartition> = paused.iter().filter_map(Paused::cut).collect();
        partitions.sort_by_key(|partition| partition.descriptor().id);
        if !is_all(&rows, &partitions) {
            return Err(changing(&rows, &partitions));
        }
        let extents = deps.capacity.extents().await;
        let used = partitions.iter().flat_map(CutPartition::extents).collect();
        let first = self.hosts.first().ok_or_else(|| Error::Unavailable("no host".into()))?;
        let kept = KeptExtents::new(&first.context, used);
        drop(paused);
        let pause = deps.env.clock.monotonic().saturating_sub(began);
        Ok(ConsistentCut { rows, partitions, extents, pause, kept })
    }

    /// Pauses all partitions: together until the result is dropped, or each one briefly.
    async fn pause_all(
        &self,
        patience: Duration,
        together: Together,
    ) -> Result<Vec<Paused>, Error> {
        let clock = Arc::clone(&self.deps()?.env.clock);
        let open: Vec<(&Host, Arc<Partition>)> = self
            .hosts
            .iter()
            .flat_map(|host| host.opened.all().into_iter().map(move |one| (host, one)))
            .collect();
        let (found, mut answers) = mpsc::channel(open.len().max(1));
        for (host, partition) in &open {
            let (found, partition) = (found.clone(), Arc::clone(partition));
            let id = partition.core.id;
            // In a task, because a pause must not be cancelled. If its result is not received, the
            // partition goes on immediately.
            let pausing = async move { drop(found.send((id, partition.pause().await)).await) };
            drop(host.context.deps.env.tasks.spawn("pause partition", pausing));
        }
        drop(found);
        let mut late: BTreeSet<PartitionId> = open.iter().map(|(_, one)| one.core.id).collect();
        let mut paused = Vec::new();
        let mut timeout = clock.sleep(patience);
        while !late.is_empty() {
            let answer = tokio::select! {
                biased;
                answer = answers.recv() => answer,
                () = &mut timeout => None,
            };
            let Some((id, one)) = answer else { return Err(busy(&late)) };
            // A partition that was replaced meanwhile is closed, which is not a failure.
            let is_here = |(host, one): &(&Host, Arc<Partition>)| {
                let here = host.opened.get(one.core.id);
                one.core.id == id && here.is_some_and(|here| Arc::ptr_eq(&here, one))
            };
            let one = one.map_err(|failed| {
                let failed = if open.iter().any(is_here) { failed } else { Failed::Fenced };
                not_paused(id, failed)
            })?;
            late.remove(&id);
            match together {
                Together::Yes => paused.push(one),
                Together::No => drop(one),
            }
        }
        Ok(paused)
    }
}

/// Whether paused partitions wait for the others.
#[derive(Clone, Copy, Debug)]
enum Together {
    Yes,
    No,
}

/// The error when these partitions did not pause in time.
fn busy(late: &BTreeSet<PartitionId>) -> Error {
    let what = match late.len() {
        1 => "is busy or its disk stalls",
        _ => "are busy or their disks stall",
    };
    Error::Unavailable(format!("{} {what}; try again later", named(late)))
}

/// The partitions by name, for an error.
fn named(partitions: &BTreeSet<PartitionId>) -> String {
    let names: Vec<String> = partitions.iter().map(ToString::to_string).collect();
    let noun = if names.len() == 1 { "partition" } else { "partitions" };
    format!("{noun} {}", names.join(", "))
}

/// The error when this partition takes no writes, so that it cannot be paused.
fn not_paused(id: PartitionId, failed: Failed) -> Error {
    let why = match failed {
        Failed::Full(full) => full.to_string(),
        Failed::Refused(reason) => reason,
        Failed::Busy(reason) => reason.to_owned(),
        Failed::Other(reason) => reason.to_string(),
        Failed::Fenced => {
            let what = "it has just been moved, split, merged or opened again";
            return Error::Unavailable(format!("partition {id}: {what}"));
        }
    };
    let what = "it takes no writes until it is opened again";
    Error::Unavailable(format!("partition {id}: {what}: {why}"))
}

/// The error when these are not the partitions of the coordinator's map.
fn changing(rows: &BTreeMap<Bytes, Bytes>, partitions: &[CutPartition]) -> Error {
    let prefix = PARTITION_PREFIX.as_bytes();
    let of_map = rows.iter().filter(|(key, _)| key.starts_with(prefix));
    let of_map = of_map.filter_map(|(_, value)| PartitionDescriptor::decode(value));
    let of_map: BTreeMap<PartitionId, PartitionDescriptor> =
        of_map.map(|one| (one.id, one)).collect();
    let here: BTreeMap<PartitionId, &PartitionDescriptor> =
        partitions.iter().map(|one| (one.descriptor().id, one.descriptor())).collect();
    let all: BTreeSet<PartitionId> = of_map.keys().chain(here.keys()).copied().collect();
    let is_other = |id: &PartitionId| of_map.get(id) != here.get(id).copied();
    let others: BTreeSet<PartitionId> = all.into_iter().filter(is_other).collect();
    let what = match others.len() {
        0 => {
            return Error::Unavailable("the partition map has a row that cannot be read".into());
        }
        1 => "it is",
        _ => "they are",
    };
    let named = named(&others);
    Error::Unavailable(format!("{named}: {what} being moved, split, merged or opened"))
}

/// Whether these are the partitions of the coordinator's map.
fn is_all(rows: &BTreeMap<Bytes, Bytes>, partitions: &[CutPartition]) -> bool {
    let prefix = PARTITION_PREFIX.as_bytes();
    let known = rows.iter().filter(|(key, _)| key.starts_with(prefix)).count();
    let is_current = |one: &CutPartition| {
        let value = rows.get(&PartitionDescriptor::coordinator_key(one.descriptor().id));
        value.and_then(|value| PartitionDescriptor::decode(value)).as_ref()
            == Some(one.descriptor())
    };
    known == partitions.len() && partitions.iter().all(is_current)
}

#[cfg(test)]
impl IndexServer {
    /// Whether an extent is kept for a cut, or read or written here.
    pub(crate) fn keeps(&self, extent: crate::types::ExtentId) -> bool {
        self.hosts.first().is_some_and(|host| host.context.pins.is_pinned(extent))
    }
}

#[cfg(test)]
mod tests;
