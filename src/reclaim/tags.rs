//! Applies updates of the tag index that no front end applied: after a crash between a commit and
//! its index entries, and for all removals of blobs.

use std::collections::HashMap;

use bytes::Bytes;

use crate::index::AskPartition;
use crate::index::EntryChange;
use crate::index::ForgetTagWork;
use crate::index::IndexTag;
use crate::index::ListContainers;
use crate::index::PartitionMap;
use crate::index::ReadTagWork;
use crate::index::TagWork;
use crate::index::TagWorkPage;
use crate::index::Target;
use crate::reclaim::error::Error;
use crate::reclaim::garbage;
use crate::reclaim::state::Reclaim;
use crate::types::ContainerKey;
use crate::types::ContainerName;
use crate::types::TagEntryKey;

/// Work rows per read.
const ROWS: usize = 64;
/// Containers per page of a list.
const CONTAINERS: usize = 1_000;

/// A pass over the work rows of all partitions.
pub(super) struct TagPass<'a> {
    reclaim: &'a Reclaim,
    map: &'a PartitionMap,
    /// Names of containers that were looked up in this pass; `None` for deleted containers.
    names: HashMap<ContainerKey, Option<ContainerName>>,
}

impl<'a> TagPass<'a> {
    pub(super) fn new(reclaim: &'a Reclaim, map: &'a PartitionMap) -> Self {
        Self { reclaim, map, names: HashMap::new() }
    }

    /// Applies the work rows of one partition that are due, a bounded number from `position` on.
    /// Sets `position` to where the next pass continues. Returns whether any was applied. Work
    /// that needs a failing partition stays, and the rows behind it are applied.
    pub(super) async fn index(
        &mut self,
        here: Target,
        position: &mut Bytes,
    ) -> Result<bool, Error> {
        let (mut seen, mut done) = (0, 0);
        while seen < self.reclaim.config.garbage_rows_per_pass {
            self.reclaim.go_on()?;
            let read = ReadTagWork { blob: None, from: position.clone(), limit: ROWS };
            let TagWorkPage { mut work, next } = self.reclaim.host.ask(here, read).await?;
            let now = self.reclaim.env.clock.now();
            // The front end is about to apply younger work.
            work.retain(|work| garbage::is_old(work.time, self.reclaim.config.grace, now));
            seen += work.len();
            if !work.is_empty() {
                done += self.apply_all(here, work).await?;
            }
            *position = next.unwrap_or_default();
            if position.is_empty() {
                break;
            }
        }
        Ok(done > 0)
    }

    /// Applies the changes of work rows, and deletes the rows whose changes were all applied.
    /// Returns how many these are.
    async fn apply_all(&mut self, here: Target, mut work: Vec<TagWork>) -> Result<usize, Error> {
        let mut left = Vec::new();
        for change in TagWork::changes(&work) {
            self.reclaim.go_on()?;
            if let Err(error) = self.apply(&change).await {
                self.reclaim.pass_over("tags", error)?;
                left.push(change.entry);
            }
        }
        work.retain(|one| !left.iter().any(|entry| names_entry(one, entry)));
        let rows: Vec<Bytes> = work.into_iter().map(|work| work.row).collect();
        let done = rows.len();
        // Index entries first: a crash between these two steps applies them again, which changes
        // nothing.
        if done > 0 {
            self.reclaim.host.tell(here, ForgetTagWork { rows }).await?;
        }
        Ok(done)
    }

    async fn apply(&mut self, change: &EntryChange) -> Result<(), Error> {
        let container = match container_of(&change.entry) {
            Some(container) if change.present => self.container_name(container).await?,
            Some(_) | None => None,
        };
        let entry = change.entry.routing_key();
        // Without a name, as for a deleted container, no entry is put.
        let write = IndexTag { entry, time: change.time, container };
        Ok(self.reclaim.owners(self.map).tell(write).await?)
    }

    /// The name of a container, by listing the containers of its account: their rows are keyed by
    /// name. This is rare, since front ends apply the updates of their own commits.
    async fn container_name(
        &mut self,
        wanted: ContainerKey,
    ) -> Result<Option<ContainerName>, Error> {
        if let Some(known) = self.names.get(&wanted) {
            return Ok(known.clone());
        }
        let mut list = ListContainers {
            account: wanted.account,
            prefix: String::new(),
            from: None,
            limit: CONTAINERS,
            deleted: true,
        };
        let mut found = None;
        loop {
            self.reclaim.go_on()?;
            let page = self.reclaim.owners(self.map).ask(list.clone()).await?;
            for entry in page.entries {
                if entry.record.id == wanted.id {
                    found = Some(entry.name);
                }
            }
            list.from = page.next;
            if found.is_some() || list.from.is_none() {
                self.names.insert(wanted, found.clone());
                return Ok(found);
            }
        }
    }
}

/// Whether the entry is among those that this work changes.
fn names_entry(work: &TagWork, entry: &TagEntryKey) -> bool {
    let mut pairs = work.removed.iter().chain(work.added.iter());
    work.blob == entry.blob && pairs.any(|pair| pair == (entry.key.as_str(), entry.value.as_str()))
}

/// The container of the blob that an entry is about; `None` when its key is too short.
fn container_of(entry: &TagEntryKey) -> Option<ContainerKey> {
    let key = entry.blob.as_bytes();
    key.get(..16).map(ContainerKey::of)
}
