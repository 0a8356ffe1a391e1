//! Verifies the data directories of a stopped node.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::auth::MasterKeyId;
use crate::capacity;
use crate::capacity::Capacity;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::index;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::open_offline;
use crate::node::config::master_key_beside;
use crate::node::disks::Given;
use crate::node::disks::directories;
use crate::node::error::NodeError;
use crate::node::keys::MasterKeyError;
use crate::node::keys::master_key;
use crate::node::storage::Storage;
use crate::node::storage::open_disk;
use crate::node::storage::open_failed;

use super::affected::UnreadRange;
use super::progress::Progress;
use super::report::Report;

/// Verifies the data directories of one node, in the order in which `serve` gets them, and that its
/// master key file opens their secrets. Without `key` that is the file beside the first directory.
/// Bytes on disks that `given` leaves out count as missing.
///
/// # Errors
/// [`NodeError`] when the store does not exist or is in use. Damage is in the report.
pub async fn check(
    given: Given<'_>,
    key: Option<&Path>,
    env: &Env,
    progress: &mut dyn Progress,
) -> Result<Report, NodeError> {
    let data = given.data;
    directories::check(data)?;
    let mut report = Report::default();
    let mut read = Read::default();
    let has_coordinator = data.first().is_some_and(|first| first.join(FILE_NAME).is_file());
    {
        // All are locked before the first is read, which may take long.
        let locked = data.iter().map(|path| open_disk(path, env));
        let locked = locked.collect::<Result<Vec<_>, _>>()?;
        if has_coordinator {
            directories::check_remembered(given, env).await?;
        }
        for (number, (path, disk)) in data.iter().zip(&locked).enumerate() {
            let mut shown = |at: capacity::CheckProgress| {
                progress.extents(path, at.extents, at.extents_total, at.bytes);
            };
            let found = capacity::check_disk(disk, number, &mut shown).await;
            match found {
                Ok(found) => {
                    read.all.insert(number);
                    read.intact.extend(found.problems.is_empty().then_some(number));
                    report.add_disk(path, &found);
                }
                Err(error) if error.is_unreadable() => {
                    report.problem(format!("{}: {error}", path.display()));
                }
                Err(error) => return Err(open_failed(data, error)),
            }
        }
    }
    if !has_coordinator {
        let first = data.first().map(|first| first.join(FILE_NAME)).unwrap_or_default();
        report.problem(format!("{} is missing: restore it from a backup", first.display()));
        return Ok(report);
    }
    match open_store(given, &read, env, &mut report).await {
        Ok(storage) => {
            let keys = check_index(&storage, progress, &mut report).await;
            let beside = || data.first().and_then(|first| master_key_beside(first).ok());
            let file = key.map(Path::to_owned).or_else(beside);
            check_keys(&storage, file, &keys, &mut report).await;
            storage.capacity.shutdown().await;
        }
        // The damage that the first step found may be the reason.
        Err(error) => report.problem(error.to_string()),
    }
    Ok(report)
}

/// The places of disks whose bytes were read in the first step.
#[derive(Debug, Default)]
struct Read {
    all: BTreeSet<usize>,
    /// Those without damage.
    intact: BTreeSet<usize>,
}

/// Opens the store as a start does. A start writes, so a disk that takes no writes would be out of
/// service. If its bytes could be read, it is opened nevertheless, and writes of the recovery stay
/// in memory.
async fn open_store(
    given: Given<'_>,
    read: &Read,
    env: &Env,
    report: &mut Report,
) -> Result<Storage, NodeError> {
    let mut storage = Storage::open_for_check(given, &BTreeSet::new(), env).await?;
    let out = out_of_service(&storage, given);
    let unwritable: BTreeSet<usize> = out.intersection(&read.all).copied().collect();
    if !unwritable.is_empty() {
        storage.capacity.shutdown().await;
        // Its disks are locked until then.
        drop(storage);
        storage = Storage::open_for_check(given, &unwritable, env).await?;
    }
    let still_out = out_of_service(&storage, given);
    for (at, path) in given.data.iter().enumerate().filter(|(at, _)| out.contains(at)) {
        let what = match still_out.contains(&at) {
            true => "cannot be recovered; the log says why",
            false if read.intact.contains(&at) => "not writable; bytes verified",
            false => "not writable; its damage is listed above",
        };
        report.problem(format!("{}: {what}", path.display()));
    }
    for path in given.without.iter().filter(|path| !given.data.contains(path)) {
        let path = path.display();
        report.problem(format!("{path}: left out; what lies on it counts as missing"));
    }
    Ok(storage)
}

/// The places of the disks that could not be recovered.
fn out_of_service(storage: &Storage, given: Given<'_>) -> BTreeSet<usize> {
    let serving: BTreeSet<usize> = storage.capacity.disks().iter().map(|info| info.disk).collect();
    (0..given.data.len()).filter(|at| !serving.contains(at)).collect()
}

/// Checks that the master key file belongs to the store and has the keys that its secrets name.
async fn check_keys(
    storage: &Storage,
    file: Option<PathBuf>,
    named: &BTreeSet<MasterKeyId>,
    report: &mut Report,
) {
    let Some(path) = file else {
        return report.problem("no place for a master key file: give --master-key-file".to_owned());
    };
    let opened = master_key::open_for_check(&path, storage.coordinator.as_ref()).await;
    let ring = match opened {
        Ok(Some(ring)) => ring,
        Ok(None) => return,
        Err(error) => return report.problem(error.to_string()),
    };
    for key in named {
        if ring.keys().iter().all(|held| held.id() != *key) {
            let lacks = MasterKeyError::Lacks { path: path.clone(), key: *key };
            report.problem(lacks.to_string());
        }
    }
}

/// Verifies the rows of all partitions. Returns the master keys that sealed secrets name.
async fn check_index(
    storage: &Storage,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> BTreeSet<MasterKeyId> {
    let map = match PartitionMap::load(storage.coordinator.as_ref()).await {
        Ok(map) => map,
        Err(error) => {
            report.problem(format!("partition map: {error}"));
            return BTreeSet::new();
        }
    };
    let mut sum = index::check::CheckReport::default();
    let mut unread = Vec::new();
    for descriptor in map.partitions() {
        match check_partition(storage, descriptor, progress, report).await {
            Ok(mut found) => {
                let from = found.unread_from.take();
                unread.extend(from.map(|from| UnreadRange { descriptor, from }));
                sum.add(found);
            }
            Err(error) => {
                let from = descriptor.keys.range().low().clone();
                unread.push(UnreadRange { descriptor, from });
                report.problem(format!("partition {}: {error}", descriptor.id));
            }
        }
    }
    report.add_index(map.partitions().len(), &sum, &unread);
    sum.master_keys
}

async fn check_partition(
    storage: &Storage,
    descriptor: &PartitionDescriptor,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<index::check::CheckReport, index::Error> {
    let capacity = Arc::clone(&storage.capacity) as Arc<dyn Capacity>;
    let rows = open_offline(Arc::clone(&capacity), descriptor).await?;
    let known = capacity.extents().await;
    for extent in rows.extents() {
        if known.binary_search_by_key(extent, |info| info.extent).is_err() {
            report.problem(format!("partition {} names extent {extent}: missing", descriptor.id));
        }
    }
    let mut shown = |at: &index::check::CheckReport| progress.blobs(at.blobs, at.bytes);
    Ok(index::check::check(&rows, capacity.as_ref(), &mut shown).await)
}
