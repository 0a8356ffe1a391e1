//! The open end of a partition's log.

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::{AppendRequest, Durability, ExtentKind};
use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, Op, Revision, TxnReply};
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::shared::{Chore, Failed, Shared};
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::Sequence;

/// Tries of a change of the descriptor whose outcome is unknown.
const SWAP_TRIES: usize = 3;

/// Appends records, and moves to a new extent when the open one is full or failed.
#[derive(Debug)]
pub(crate) struct Log {
    shared: Arc<Shared>,
    descriptor: PartitionDescriptor,
    revision: Revision,
    /// The highest commit in each extent of the descriptor.
    highest: Vec<Sequence>,
    /// Where the newest extent validly ends.
    link: Option<Link>,
    /// Whether more may be appended there.
    open: bool,
}

impl Log {
    /// The log of a partition just recovered; its extents are sealed, so the first append needs a roll.
    pub(crate) fn new(
        shared: Arc<Shared>,
        claimed: (PartitionDescriptor, Revision),
        highest: Vec<Sequence>,
        link: Option<Link>,
    ) -> Self {
        let (descriptor, revision) = claimed;
        assert_eq!(descriptor.log.len(), highest.len(), "one highest commit for each log extent");
        Self { shared, descriptor, revision, highest, link, open: false }
    }

    /// The log of a partition split off from `parent`'s: that log, then an extent of its own of which `end` bytes are
    /// written.
    pub(crate) fn split_off(
        parent: &Self,
        claimed: (PartitionDescriptor, Revision),
        end: u64,
    ) -> Self {
        let (descriptor, revision) = claimed;
        let own = descriptor.log.last().copied();
        let highest = parent.highest.iter().copied().chain([Sequence::new(0)]).collect();
        let link = own.map(|extent| Link { extent, end });
        let shared = Arc::clone(&parent.shared);
        Self { shared, descriptor, revision, highest, link, open: true }
    }

    /// What the coordinator holds of the partition.
    pub(crate) fn descriptor(&self) -> &PartitionDescriptor {
        &self.descriptor
    }

    /// The last change of the descriptor.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Where the newest extent validly ends.
    pub(crate) fn link(&self) -> Option<Link> {
        self.link
    }

    /// Whether [`Self::append`] may be called.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Bytes of the newest extent.
    pub(crate) fn end(&self) -> u64 {
        self.link.map_or(0, |link| link.end)
    }

    /// Extents that hold the log now.
    pub(crate) fn extents(&self) -> usize {
        self.descriptor.log.len()
    }

    /// Appends a record whose highest commit is `highest`; durable when it returns. After an error the log is no longer
    /// open: the roll after it cuts off whatever the failed append left behind.
    pub(crate) async fn append(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        let link = self.link.filter(|_| self.open).expect("appended to a log that is not open");
        self.open = false;
        let bytes = record.len();
        let end = self.append_to(link.extent, link.end, record).await?;
        self.open = true;
        self.link = Some(Link { extent: link.extent, end });
        if let Some(last) = self.highest.last_mut() {
            *last = highest.max(*last);
        }
        self.shared.parts.metrics.log_bytes(bytes);
        Ok(())
    }

    /// Moves to a new extent that begins with `manifest`, and leaves behind extents of commits already flushed. On an
    /// error the log is as it was.
    pub(crate) async fn roll(&mut self, mut manifest: Manifest) -> Result<(), Failed> {
        manifest.previous = self.link;
        let epoch = self.descriptor.epoch;
        let record = manifest.encode().ok_or_else(|| Failed::Other("manifest too large".into()))?;
        let extent = self.shared.create(ExtentKind::Log, epoch).await?;
        let end = match self.append_to(extent, 0, record).await {
            Ok(end) => end,
            Err(failed) => {
                self.shared.chores.add(Chore::Leave(extent));
                return Err(failed);
            }
        };
        let flushed =
            self.highest.iter().take_while(|highest| **highest <= manifest.flushed).count();
        let mut next = self.descriptor.clone();
        let left: Vec<_> = next.log.drain(..flushed).collect();
        next.log.push(extent);
        // The manifest is durable before the descriptor names it; a crash between the two leaves an orphan.
        self.revision = swap(self.shared.parts.coordinator.as_ref(), self.revision, &next).await?;
        if let Some(link) = self.link.filter(|link| !left.contains(&link.extent)) {
            self.shared.chores.add(Chore::Seal(link.extent, epoch));
        }
        self.descriptor = next;
        self.highest.drain(..flushed);
        self.highest.push(Sequence::new(0));
        self.link = Some(Link { extent, end });
        self.open = true;
        self.remove(left);
        Ok(())
    }

    /// Leaves behind extents whose commits are all flushed, after the manifest that says so is durable.
    pub(crate) async fn trim(&mut self, flushed: Sequence) -> Result<(), Failed> {
        let before_last = self.highest.len().saturating_sub(1);
        let count = self
            .highest
            .iter()
            .take(before_last)
            .take_while(|highest| **highest <= flushed)
            .count();
        if count == 0 {
            return Ok(());
        }
        let mut next = self.descriptor.clone();
        let left = next.log.drain(..count).collect();
        self.revision = swap(self.shared.parts.coordinator.as_ref(), self.revision, &next).await?;
        self.descriptor = next;
        self.highest.drain(..count);
        self.remove(left);
        Ok(())
    }

    fn remove(&self, extents: Vec<ExtentId>) {
        for extent in extents {
            self.shared.chores.add(Chore::Leave(extent));
        }
        self.shared.wake.notify_one();
    }

    async fn append_to(&self, extent: ExtentId, at: u64, record: Bytes) -> Result<u64, Failed> {
        self.append_at((extent, self.descriptor.epoch), at, record).await
    }

    /// Writes the first record of another partition's log; returns where it ends.
    pub(crate) async fn append_first(
        &self,
        extent: ExtentId,
        epoch: Epoch,
        record: Bytes,
    ) -> Result<u64, Failed> {
        self.append_at((extent, epoch), 0, record).await
    }

    async fn append_at(
        &self,
        (extent, epoch): (ExtentId, Epoch),
        at: u64,
        record: Bytes,
    ) -> Result<u64, Failed> {
        let request = AppendRequest {
            extent,
            epoch,
            offset: at,
            payloads: vec![vec![record]],
            durability: Durability::Durable,
        };
        Ok(self.shared.parts.capacity.append(request).await?.end)
    }
}

/// Replaces a descriptor last changed by `revision` (I2: whoever else changed it meanwhile owns the partition now).
pub(crate) async fn swap(
    coordinator: &dyn Coordinator,
    mut revision: Revision,
    next: &PartitionDescriptor,
) -> Result<Revision, Failed> {
    let key = PartitionDescriptor::coordinator_key(next.id);
    let value = next.encode();
    let unknown = |error: coordinator::Error| Failed::Other(error.to_string());
    for _ in 0..SWAP_TRIES {
        let when = [Compare::ModRevision(key.clone(), revision)];
        match coordinator.txn(&when, &[Op::Put(key.clone(), value.clone())]).await {
            Ok(TxnReply::Committed(at)) => return Ok(at),
            Ok(TxnReply::Rejected(_)) => return Err(Failed::Fenced),
            Err(coordinator::Error::Ambiguous) => {}
            Err(error) => return Err(unknown(error)),
        }
        let Some(found) = coordinator.get(&key).await.map_err(unknown)? else {
            return Err(Failed::Fenced);
        };
        if found.value == value {
            return Ok(found.mod_revision);
        }
        if found.mod_revision != revision {
            return Err(Failed::Fenced);
        }
        revision = found.mod_revision;
    }
    Err(Failed::Other("the coordinator's answers stay unknown".into()))
}
