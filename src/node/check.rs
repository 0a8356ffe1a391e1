//! `blockyard check`: verifies a stopped node's data directories, from the bytes up.
//!
//! 1. Each disk: every page, frame and journal batch against its checksum. Changes nothing.
//! 2. The store is opened as a start opens it: what the journal holds goes to the extents. The coordinator's file and the
//!    catalog stay as they are; of a store that was stopped in order nothing but the journal is written.
//! 3. The coordinator's rows, and that the partitions tile the key space (I5).
//! 4. Each partition: every row decodes, every byte it names is there and is what was ingested (I1, I10, I13), and the
//!    rows of each blob agree with each other.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::capacity;
use crate::capacity::Capacity;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::index;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::open_offline;

use super::error::NodeError;
use super::storage::Storage;
use super::storage::open_disk;

mod progress;
mod report;

pub use progress::{Progress, Silent, Terminal};
pub use report::{Disk, Index, Report};

/// Verifies the data directories of one node, in the order `serve` was given them.
///
/// # Errors
/// [`NodeError`] when it cannot run: no such store, or in use. Damage is in the report.
pub async fn check(
    data: &[PathBuf],
    env: &Env,
    progress: &mut dyn Progress,
) -> Result<Report, NodeError> {
    for path in data {
        if !path.is_dir() {
            return Err(NodeError::NoData { path: path.clone() });
        }
    }
    let mut report = Report::default();
    for (number, path) in data.iter().enumerate() {
        check_disk(number, path, env, progress, &mut report).await?;
    }
    if !data.first().is_some_and(|first| first.join(FILE_NAME).is_file()) {
        report.problem(format!(
            "{FILE_NAME} is missing from the first data directory (the order is that of `serve`)"
        ));
        return Ok(report);
    }
    match Storage::open_for_check(data, env).await {
        Ok(storage) => {
            check_index(&storage, progress, &mut report).await;
            storage.capacity.shutdown().await;
        }
        // Damage the first step has found may be what keeps the store from opening: then that is the news.
        Err(error) => report.problem(error.to_string()),
    }
    Ok(report)
}

async fn check_disk(
    number: usize,
    path: &Path,
    env: &Env,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<(), NodeError> {
    let disk = open_disk(path, env)?;
    let mut shown = |at: capacity::CheckProgress| {
        progress.extents(path, at.extents, at.extents_total, at.bytes);
    };
    let found = capacity::check_disk(&disk, number, &mut shown).await?;
    report.add_disk(path, &found);
    Ok(())
}

async fn check_index(storage: &Storage, progress: &mut dyn Progress, report: &mut Report) {
    let map = match PartitionMap::load(storage.coordinator.as_ref()).await {
        Ok(map) => map,
        Err(error) => return report.problem(format!("partition map: {error}")),
    };
    let mut sum = index::check::CheckReport::default();
    for descriptor in map.partitions() {
        match check_partition(storage, descriptor, progress, report).await {
            Ok(found) => sum.add(found),
            Err(error) => report.problem(format!("partition {}: {error}", descriptor.id)),
        }
    }
    report.add_index(map.partitions().len(), &sum);
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

#[cfg(test)]
mod tests;
