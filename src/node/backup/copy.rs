//! Copies extents to the directory of a backup, and the rows last.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::capacity;
use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::env::Disk;
use crate::env::Env;
use crate::node::storage::open_failed;
use crate::types::ExtentId;

use super::attempt::Attempt;
use super::error::BackupError;
use super::progress::Progress;
use super::progress::Step;
use super::rows;
use super::source::Contents;
use super::source::Source;
use super::target::Target;

/// The journal of a backup. Few bytes are written to it.
const JOURNAL_BYTES: u64 = 256 << 10;

/// The purpose of a copy, which decides its pace and its disk's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// While the node serves.
    Serving,
    /// A backup of a stopped store.
    Stopped,
    /// A store that is to be served.
    Restore,
}

impl Pace {
    pub(super) fn of(from: &Source) -> Self {
        if from.is_served() { Self::Serving } else { Self::Stopped }
    }

    /// The configuration of the copy's disk.
    fn config(self, from: &Source) -> CapacityConfig {
        let config = CapacityConfig {
            scrub_bytes_per_second: 0,
            compact_bytes_per_second: 0,
            // The headers of extents name their store.
            store: from.capacity.store_id(),
            ..CapacityConfig::default()
        };
        match self {
            Self::Restore => config,
            // A backup may fill its disk.
            Self::Serving | Self::Stopped => {
                CapacityConfig { journal_bytes: JOURNAL_BYTES, reserve_bytes: Some(0), ..config }
            }
        }
    }
}

/// How something is copied.
pub(super) struct How {
    pub(super) pace: Pace,
    pub(super) progress: Progress,
    pub(super) attempt: Arc<Attempt>,
}

/// The directory of a copy. It is locked and marked.
pub(super) struct CopyDisk<'a> {
    pub(super) path: &'a Path,
    pub(super) disk: Arc<dyn Disk>,
    /// With tasks of its own.
    pub(super) env: Env,
}

/// Copies everything.
pub(super) async fn copy(
    from: &Source,
    contents: &Contents,
    to: CopyDisk<'_>,
    how: How,
) -> Result<Step, BackupError> {
    let CopyDisk { path, disk, env } = to;
    let (config, metrics) = (how.pace.config(from), CapacityMetrics::default());
    let opened = CapacityNode::open(vec![disk], env.clone(), config, metrics).await;
    let capacity = opened.map_err(|error| open_failed(&[path.to_owned()], error))?;
    let target = Target { path: path.to_owned(), capacity, env, attempt: how.attempt };
    let done = copy_store_to(&target, from, contents, how.progress).await;
    target.capacity.shutdown().await;
    target.env.tasks.shutdown().await;
    done
}

async fn copy_store_to(
    target: &Target,
    from: &Source,
    contents: &Contents,
    progress: Progress,
) -> Result<Step, BackupError> {
    let extents_total = contents.index.len() + contents.data.len();
    let step = Step { extents_total, ..Step::default() };
    let mut copying = Copying { target, from, progress, step, gone: BTreeSet::new() };
    let mut stale: BTreeSet<ExtentId> =
        target.capacity.extents().await.into_iter().map(|info| info.extent).collect();
    stale.retain(|extent| !contents.index.contains(extent) && !contents.data.contains(extent));
    let mut damaged = BTreeMap::new();
    copying.all(&contents.index, None, &mut damaged).await?;
    if let Some((extent, error)) = damaged.pop_first() {
        return Err(BackupError::Damaged { extent, error });
    }
    let rows = rows::write(target, from, contents).await?;
    // Extents that the store has lost may be among the stale ones.
    rows.has_all(target, &|extent| contents.data.contains(&extent)).await?;
    // Before the data, since the disk may be nearly full.
    for extent in stale {
        let removed = target.capacity.remove(extent).await;
        removed.map_err(|error| target.failed(&error))?;
    }
    copying.all(&contents.data, None, &mut damaged).await?;
    if !damaged.is_empty() {
        copying.named_frames(&rows, damaged).await?;
    }
    if !copying.gone.is_empty() {
        rows.has_all(target, &|extent| !copying.gone.contains(&extent)).await?;
    }
    rows.finish(target, contents).await?;
    Ok(copying.step)
}

struct Copying<'a> {
    target: &'a Target,
    from: &'a Source,
    progress: Progress,
    step: Step,
    /// Extents that existed when the list was made, and not when they were copied.
    gone: BTreeSet<ExtentId>,
}

impl Copying<'_> {
    /// Seals and copies extents, or only their frames in `only`. Extents with frames that do not
    /// match their checksums are added to `damaged`.
    async fn all(
        &mut self,
        extents: &BTreeSet<ExtentId>,
        only: Option<BTreeMap<ExtentId, Vec<Range<u64>>>>,
        damaged: &mut BTreeMap<ExtentId, capacity::Error>,
    ) -> Result<(), BackupError> {
        for extent in extents.iter().copied() {
            self.target.attempt.go_on()?;
            (self.progress)(self.step);
            let sealed = self.from.capacity.seal_for_copy(extent).await;
            sealed.map_err(|error| self.from.not_sealed(extent, error))?;
            let frames = only.as_ref().map(|only| only.get(&extent).cloned().unwrap_or_default());
            match self.from.capacity.copy_extent_to(extent, &self.target.capacity, frames).await {
                Ok(copied) => {
                    if copied.is_none() {
                        self.gone.insert(extent);
                    }
                    self.step.copied_bytes += copied.unwrap_or(0);
                    self.step.extents += 1;
                }
                Err(error @ capacity::Error::Corrupt { .. }) => {
                    damaged.insert(extent, error);
                }
                Err(error) => return Err(self.target.not_copied(self.from, extent, error)),
            }
        }
        (self.progress)(self.step);
        Ok(())
    }

    /// Copies the frames that rows name of extents that cannot be copied as a whole. After a crash
    /// the node may not know which frames were freed, and their remains look like damage.
    async fn named_frames(
        &mut self,
        rows: &rows::Written,
        damaged: BTreeMap<ExtentId, capacity::Error>,
    ) -> Result<(), BackupError> {
        let extents: BTreeSet<ExtentId> = damaged.keys().copied().collect();
        let named = rows.named(self.target, &extents).await?;
        let mut still = BTreeMap::new();
        self.all(&extents, Some(named), &mut still).await?;
        match still.pop_first() {
            Some((extent, error)) => Err(BackupError::Damaged { extent, error }),
            None => Ok(()),
        }
    }
}
