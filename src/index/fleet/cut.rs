//! A consistent cut: all partitions as of one instant, for a backup.
//!
//! The committers of all partitions stand still between two batches, as for a split. Meanwhile the
//! coordinator's rows and the list of extents are read. So nothing is in the cut that follows from
//! something that is not: not the copy of a blob without the mark that its bytes are shared, and
//! not a blob without its container, which other partitions have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::capacity::ExtentInfo;
use crate::coordinator;
use crate::index::api::Error;
use crate::index::engine::{CutPartition, Failed, KeptExtents, Partition, Paused};
use crate::index::fleet::Fleet;
use crate::index::host::Closed;
use crate::index::map::{PARTITION_PREFIX, PartitionDescriptor};

/// Tries, with partitions that change meanwhile or do not stand still in time.
const TRIES: u32 = 8;
/// How long partitions stand still at most in the first try; twice as long in each later one. A
/// merge that also has partitions stand still may wait for one of these, and they for it.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The longest.
const PAUSE_LIMIT: Duration = Duration::from_secs(8);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(200);

/// All partitions as of one instant. Until it is dropped none of their logs and runs is removed.
#[derive(Debug)]
pub struct ConsistentCut {
    /// The coordinator's rows.
    pub rows: BTreeMap<Bytes, Bytes>,
    /// The partitions, by id.
    pub partitions: Vec<CutPartition>,
    /// The extents that there were.
    pub extents: Vec<ExtentInfo>,
    /// How long nothing was committed.
    pub pause: Duration,
    _kept: KeptExtents,
}

impl Fleet {
    /// Makes a consistent cut. No partition commits anything meanwhile, which takes about as long
    /// as one commit does.
    ///
    /// # Errors
    /// [`Error::Quarantined`]: a partition cannot be read. [`Error::Unavailable`]: to be tried
    /// again later.
    pub async fn consistent_cut(&self) -> Result<ConsistentCut, Error> {
        let clock = Arc::clone(&self.parts()?.env.clock);
        let mut patience = PAUSE_MAX;
        let mut failed = Error::Unavailable("no partition is open".into());
        for _ in 0..TRIES {
            let closed: Vec<Closed> =
                self.hosts.iter().flat_map(|host| host.opened.closed()).collect();
            if let Some(out) = closed.iter().find(|one| one.is_quarantined()) {
                return Err(Error::Quarantined(out.descriptor.id));
            }
            let made = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(Error::Unavailable("it stops".into())),
                made = self.try_cut() => made,
                () = clock.sleep(patience) => {
                    Err(Error::Unavailable("partitions are busy or their disks stall".into()))
                }
            };
            match made {
                Ok(cut) => return Ok(cut),
                Err(error) => failed = error,
            }
            patience = patience.saturating_mul(2).min(PAUSE_LIMIT);
            clock.sleep(AGAIN).await;
        }
        Err(failed)
    }

    async fn try_cut(&self) -> Result<ConsistentCut, Error> {
        let parts = self.parts()?;
        let began = parts.env.clock.monotonic();
        let paused = self.pause_all().await?;
        let found = parts.coordinator.range(b"").await;
        let unread = |error: coordinator::Error| Error::Unavailable(error.to_string());
        let found = found.map_err(unread)?.entries;
        let rows: BTreeMap<Bytes, Bytes> =
            found.into_iter().map(|(key, entry)| (key, entry.value)).collect();
        let mut partitions: Vec<CutPartition> = paused.iter().filter_map(Paused::cut).collect();
        partitions.sort_by_key(|partition| partition.descriptor().id);
        if !is_all(&rows, &partitions) {
            return Err(Error::Unavailable("the partition map keeps changing".into()));
        }
        let extents = parts.capacity.extents().await;
        let used = partitions.iter().flat_map(CutPartition::extents).collect();
        let first = self.hosts.first().ok_or_else(|| Error::Unavailable("no host".into()))?;
        let kept = KeptExtents::new(&first.shared, used);
        drop(paused);
        let pause = parts.env.clock.monotonic().saturating_sub(began);
        Ok(ConsistentCut { rows, partitions, extents, pause, _kept: kept })
    }

    /// Has all partitions stand still.
    async fn pause_all(&self) -> Result<Vec<Paused>, Error> {
        let open: Vec<(&_, Arc<Partition>)> = self
            .hosts
            .iter()
            .flat_map(|host| host.opened.all().into_iter().map(move |one| (host, one)))
            .collect();
        let (found, mut answers) = mpsc::channel(open.len().max(1));
        for (host, partition) in &open {
            let (found, partition) = (found.clone(), Arc::clone(partition));
            // In a task, since it must not be cancelled. If nobody waits for it any more, the
            // partition goes on at once.
            let pausing = async move { drop(found.send(partition.pause().await).await) };
            drop(host.shared.parts.env.tasks.spawn("pause partition", pausing));
        }
        drop(found);
        let mut paused = Vec::new();
        while let Some(one) = answers.recv().await {
            paused.push(one.map_err(|failed: Failed| Error::from(failed))?);
        }
        if paused.len() < open.len() {
            return Err(Error::Unavailable("a partition did not stand still".into()));
        }
        Ok(paused)
    }
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
mod tests;
