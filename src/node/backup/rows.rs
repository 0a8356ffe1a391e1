//! The coordinator's rows of a backup. They are written to a file with a temporary name, which gets
//! the name of the coordinator's file when the copy has everything that they name.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::Capacity;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::EmbeddedCoordinator;
use crate::coordinator::Op;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::env::Tasks;
use crate::index;
use crate::index::ExtentRecord;
use crate::index::ListReferences;
use crate::index::Objects;
use crate::index::Offline;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadGarbage;
use crate::index::ReadRequest;
use crate::index::open_offline;
use crate::index::rows::Machine;
use crate::reclaim::cursor::KEY as AUDIT_CURSOR;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::Timestamp;

use super::error::BackupError;
use super::marks;
use super::source::Contents;
use super::source::Source;
use super::target::Target;

/// Rows in a transaction.
const ROWS_MAX: usize = 64;
/// Rows read at a time.
const PAGE: usize = 1_000;
/// Locations read at a time, 32 bytes each.
const LOCATIONS: usize = 100_000;

/// Rows in a file with a temporary name.
#[derive(Debug)]
pub(super) struct Written {
    path: PathBuf,
    map: PartitionMap,
}

/// Writes the rows. Before that, ends the logs of a consistent cut in the copy.
pub(super) async fn write(
    target: &Target,
    from: &Source,
    contents: &Contents,
) -> Result<Written, BackupError> {
    let mut rows = contents.rows.clone();
    // The first start of the copy records them again: its logs end with extents of their own.
    rows.retain(|key, _| !ExtentRecord::is_key(key));
    // A restored store audits all of its extents.
    rows.remove(AUDIT_CURSOR);
    if let Some(cut) = &contents.cut {
        let ids = from.fresh_extents(cut.len()).await?;
        for (partition, id) in cut.iter().zip(ids) {
            let ended = partition.end_log(target.capacity.as_ref(), id).await;
            let descriptor = ended.map_err(|error| {
                if matches!(error, index::Error::Full(_)) {
                    BackupError::Full(target.path.clone())
                } else {
                    target.failed(&error)
                }
            })?;
            let key = PartitionDescriptor::coordinator_key(descriptor.id);
            rows.insert(key, descriptor.encode());
        }
        // The ids that were allocated here must not be issued again.
        rows.extend(from.counters().await?);
    }
    let path = target.path.join(format!("{FILE_NAME}.incomplete"));
    target.attempt.go_on()?;
    marks::remove(&path)?;
    target.attempt.go_on()?;
    let own = Env { tasks: Tasks::new().reporting_to(&target.env.tasks), ..target.env.clone() };
    let written = write_file(&path, rows, &own).await;
    own.tasks.shutdown().await;
    let map = written.map_err(|error| not_written(&target.path, error))?;
    Ok(Written { path, map })
}

/// Why rows are not written.
#[derive(Debug)]
enum NotWritten {
    /// The disk is full.
    Full,
    Other(String),
}

impl From<coordinator::Error> for NotWritten {
    fn from(error: coordinator::Error) -> Self {
        if error.is_full() { Self::Full } else { Self::Other(error.to_string()) }
    }
}

fn not_written(path: &Path, why: NotWritten) -> BackupError {
    let path = path.to_owned();
    match why {
        NotWritten::Full => BackupError::Full(path),
        NotWritten::Other(error) => BackupError::Target { path, error },
    }
}

async fn write_file(
    path: &Path,
    rows: BTreeMap<Bytes, Bytes>,
    env: &Env,
) -> Result<PartitionMap, NotWritten> {
    let coordinator = EmbeddedCoordinator::open(path, env).await?;
    put(&coordinator, rows).await?;
    let map = PartitionMap::load(&coordinator).await;
    map.map_err(|error| NotWritten::Other(error.to_string()))
}

async fn put(
    coordinator: &dyn Coordinator,
    rows: BTreeMap<Bytes, Bytes>,
) -> Result<(), NotWritten> {
    let puts: Vec<Op> = rows.into_iter().map(|(key, value)| Op::Put(key, value)).collect();
    for some in puts.chunks(ROWS_MAX) {
        if let Err(error) = coordinator.txn(&[], some).await {
            // The outcome of a failed call may be unknown; the next call reports a full disk.
            let next = coordinator.get(b"").await.err().filter(coordinator::Error::is_full);
            return Err(next.unwrap_or(error).into());
        }
    }
    Ok(())
}

impl Written {
    /// Frames in some extents that rows name, except garbage.
    pub(super) async fn named(
        &self,
        target: &Target,
        extents: &BTreeSet<ExtentId>,
    ) -> Result<BTreeMap<ExtentId, Vec<Range<u64>>>, BackupError> {
        let mut named: BTreeMap<ExtentId, Vec<Range<u64>>> = BTreeMap::new();
        for descriptor in self.map.partitions() {
            let rows = self.rows_of(target, descriptor).await?;
            let wanted = |extent| extents.contains(&extent);
            let mut add = |location: Location| {
                let frames = target.capacity.frames_of(&location);
                named.entry(location.extent).or_default().push(frames);
            };
            let visited = rows.for_each_live(&wanted, &mut add).await;
            visited.map_err(BackupError::Index)?;
        }
        Ok(named)
    }

    /// Refuses rows that name data of an extent that is not copied, except garbage.
    pub(super) async fn has_all(
        &self,
        target: &Target,
        has: &(dyn Fn(ExtentId) -> bool + Sync),
    ) -> Result<(), BackupError> {
        for descriptor in self.map.partitions() {
            let rows = self.rows_of(target, descriptor).await?;
            let mut lost = None;
            let mut note = |location: Location| lost = Some(location.extent);
            let lacks = |extent| !has(extent);
            let visited = rows.for_each_live(&lacks, &mut note).await;
            visited.map_err(BackupError::Index)?;
            if let Some(extent) = lost {
                return Err(BackupError::Lost { extent, path: target.path.clone() });
            }
        }
        Ok(())
    }

    /// Renames the file, if the copy has every log and run that the rows name.
    pub(super) async fn finish(
        self,
        target: &Target,
        contents: &Contents,
    ) -> Result<(), BackupError> {
        let infos = target.capacity.extents().await;
        let copied: BTreeSet<ExtentId> = infos.into_iter().map(|info| info.extent).collect();
        for descriptor in self.map.partitions() {
            let rows = self.open(target, descriptor).await?;
            if let Some(extent) = rows.extents().iter().find(|extent| !copied.contains(extent)) {
                let reason = format!("partition {} names extent {extent}", descriptor.id);
                return Err(BackupError::NotWhole { path: target.path.clone(), reason });
            }
        }
        debug_assert!(contents.index.is_subset(&copied), "copied before");
        target.attempt.go_on()?;
        marks::rename(&self.path, &target.path.join(FILE_NAME))
    }

    async fn rows_of<'a>(
        &self,
        target: &Target,
        descriptor: &'a PartitionDescriptor,
    ) -> Result<PartitionRows<'a>, BackupError> {
        let now = target.env.clock.now();
        let rows = self.open(target, descriptor).await?;
        Ok(PartitionRows { rows, descriptor, now })
    }

    async fn open(
        &self,
        target: &Target,
        descriptor: &PartitionDescriptor,
    ) -> Result<Offline, BackupError> {
        let capacity = Arc::clone(&target.capacity) as Arc<dyn Capacity>;
        open_offline(capacity, descriptor).await.map_err(|error| BackupError::NotWhole {
            path: target.path.clone(),
            reason: format!("partition {}: {error}", descriptor.id),
        })
    }
}

/// The rows of a partition in the copy.
struct PartitionRows<'a> {
    rows: Offline,
    descriptor: &'a PartitionDescriptor,
    now: Timestamp,
}

impl PartitionRows<'_> {
    /// Calls `each` with the locations in wanted extents that rows name, except garbage. Garbage in
    /// wanted extents is held in memory.
    async fn for_each_live(
        &self,
        wanted: &(dyn Fn(ExtentId) -> bool + Sync),
        each: &mut (dyn FnMut(Location) + Send),
    ) -> Result<(), index::Error> {
        let garbage = self.garbage(wanted).await?;
        let range = self.descriptor.keys.range();
        let mut list =
            ListReferences { blobs: PAGE, locations: LOCATIONS, ..ListReferences::all() };
        loop {
            let read = Read::References(list.clone());
            let reply = Objects.answer(&self.rows, range, &read, self.now).await?;
            let page = ListReferences::checked(reply)?;
            let is_live = |at: &Location| !garbage.contains(&(at.extent, at.offset));
            let named = page.locations.into_iter().filter(|at| wanted(at.extent));
            named.filter(is_live).for_each(&mut *each);
            let Some(next) = page.next else { return Ok(()) };
            list.from = next;
        }
    }

    /// Where the garbage in wanted extents begins.
    async fn garbage(
        &self,
        wanted: &(dyn Fn(ExtentId) -> bool + Sync),
    ) -> Result<BTreeSet<(ExtentId, ExtentOffset)>, index::Error> {
        let range = self.descriptor.keys.range();
        let mut garbage = BTreeSet::new();
        let mut from = Bytes::new();
        loop {
            let read = ReadGarbage { from, limit: PAGE }.into();
            let reply = Objects.answer(&self.rows, range, &read, self.now).await?;
            let page = ReadGarbage::checked(reply)?;
            let dead = page.rows.iter().flat_map(|row| &row.locations);
            let dead = dead.filter(|location| wanted(location.extent));
            garbage.extend(dead.map(|location| (location.extent, location.offset)));
            let Some(next) = page.next else { return Ok(garbage) };
            from = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::embedded::Room;
    use crate::coordinator::embedded::Space;
    use crate::node::testing::env;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn disk_that_fills_while_rows_are_written_is_reported_as_full() {
        for space in [Space::Written, Space::None] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(FILE_NAME);
            let (env, room) = (env(), Arc::new(Room::default()));
            let copy = EmbeddedCoordinator::open_small(&path, &env, &room).await.unwrap();
            room.set(space);
            let row = |number: u32| (format!("row/{number}").into(), vec![0; 5_000].into());
            let refused = put(&copy, (0..200).map(row).collect()).await.unwrap_err();
            let failure = not_written(folder.path(), refused);
            assert!(matches!(failure, BackupError::Full(_)), "{space:?}: {failure}");
            drop(copy);
            env.tasks.shutdown().await;
        }
    }
}
