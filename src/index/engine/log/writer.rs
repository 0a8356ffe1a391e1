//! The writer of a partition's log: appends to its newest extent, rolls and trims it.

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::{AppendRequest, Capacity, Durability, ExtentKind, OwnedLog};
use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, Op, Reason, Revision, TxnReply};
use crate::index::engine::chores::Chore;
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::{Change, Extents, Owner, PinnedExtent, ids};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::invariant::{Invariant, Violation};
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::PartitionId;
use crate::types::Sequence;

/// The most tries of a change of the descriptor while the outcome is unknown.
const SWAP_TRIES: usize = 3;

/// The state of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogState {
    /// The descriptor of the partition in the coordinator.
    pub(crate) descriptor: PartitionDescriptor,
    /// The last change of the descriptor.
    pub(crate) revision: Revision,
    /// The highest commit in each extent of the descriptor.
    pub(crate) highest: Vec<Sequence>,
    /// The valid end of the newest extent.
    pub(crate) link: Option<Link>,
    /// The newest commit.
    pub(crate) last: Sequence,
}

/// Appends records, and moves to a new extent when the open one is full or failed.
#[derive(Debug)]
pub(crate) struct Log {
    context: Arc<HostContext>,
    state: LogState,
    /// Whether the newest extent takes further appends.
    open: bool,
    /// Set when a change of the descriptor had an unknown outcome. The log must be recovered before
    /// it is extended.
    doubt: Option<Reason>,
    extents: Arc<Extents>,
}

impl Log {
    /// The log of a partition just recovered. Its extents are sealed, so a roll must come before
    /// the first append.
    pub(crate) fn recovered(
        context: Arc<HostContext>,
        extents: Arc<Extents>,
        state: LogState,
    ) -> Self {
        Self { open: false, ..Self::begun(context, extents, state) }
    }

    /// The log of a partition whose newest extent was written by [`write_first`].
    pub(crate) fn begun(context: Arc<HostContext>, extents: Arc<Extents>, state: LogState) -> Self {
        let count = state.descriptor.log.len();
        assert_eq!(count, state.highest.len(), "one highest commit for each log extent");
        extents.set_owner(state.descriptor.epoch, state.revision);
        extents.set_newest(newest_of(&state.descriptor));
        Self { context, state, open: true, doubt: None, extents }
    }

    /// Makes it the log of another owner.
    #[cfg(test)]
    pub(crate) fn change_owner(&mut self, id: PartitionId, epoch: Epoch) {
        (self.state.descriptor.id, self.state.descriptor.epoch) = (id, epoch);
    }

    /// The state of the log.
    pub(crate) fn state(&self) -> &LogState {
        &self.state
    }

    /// Why the descriptor in the coordinator is unknown; `None` while it is known.
    pub(crate) fn doubt(&self) -> Option<&Reason> {
        self.doubt.as_ref()
    }

    /// Whether [`Self::append`] may be called.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// # Errors
    /// [`Invariant::OneOwner`] if the log belongs to another owner.
    pub(crate) fn check_owner(&self, id: PartitionId, epoch: Epoch) -> Result<(), Violation> {
        let PartitionDescriptor { id: of, epoch: at, .. } = &self.state.descriptor;
        Invariant::OneOwner.assert(*of == id && *at == epoch, || {
            format!("partition {id} at epoch {epoch} has the log of {of} at epoch {at}")
        })
    }

    /// # Errors
    /// [`Invariant::OneOwner`] if `first` is not the number of the next commit.
    pub(crate) fn check_next(&self, first: Sequence) -> Result<(), Violation> {
        let last = self.state.last;
        Invariant::OneOwner.assert(first == last.plus(1), || {
            format!("commit {first} would follow commit {last} in the log")
        })
    }

    /// # Errors
    /// [`Invariant::OneOwner`] if the manifest is of another owner, or says that commits are
    /// flushed which the log does not have.
    pub(crate) fn check_manifest(&self, manifest: &Manifest) -> Result<(), Violation> {
        self.check_owner(manifest.partition, manifest.epoch)?;
        let (flushed, last) = (manifest.flushed, self.state.last);
        Invariant::OneOwner.assert(flushed <= last, || {
            format!("a manifest has commits up to {flushed}, the log up to {last}")
        })
    }

    /// Bytes of the newest extent.
    pub(crate) fn end(&self) -> u64 {
        self.state.link.map_or(0, |link| link.end)
    }

    /// Extents that hold the log now.
    pub(crate) fn extents(&self) -> &[ExtentId] {
        &self.state.descriptor.log
    }

    /// Appends a record whose highest commit is `highest`; durable when it returns. After an error
    /// the log is no longer open: the next roll cuts off bytes that the failed append may have
    /// left.
    pub(crate) async fn append(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        let link =
            self.state.link.filter(|_| self.open).expect("appended to a log that is not open");
        self.open = false;
        let bytes = record.len();
        let end = self.append_to(link.extent, link.end, record).await?;
        self.open = true;
        self.state.link = Some(Link { extent: link.extent, end });
        self.state.last = highest.max(self.state.last);
        if let Some(last) = self.state.highest.last_mut() {
            *last = highest.max(*last);
        }
        self.context.deps.metrics.log_bytes(bytes);
        Ok(())
    }

    /// Moves the log to a new extent that begins with `manifest`, and drops extents whose commits
    /// are all flushed.
    ///
    /// # Errors
    /// [`Failed::Full`], [`Failed::Refused`]: the log is as it was. [`Failed::Other`]: see
    /// [`Self::doubt`].
    pub(crate) async fn roll(&mut self, mut manifest: Manifest) -> Result<(), Failed> {
        manifest.previous = self.state.link;
        let epoch = self.state.descriptor.epoch;
        let record =
            manifest.encode().ok_or_else(|| Failed::Refused("manifest too large".into()))?;
        ids::reserve_for_a_roll(&self.context, &self.extents).await?;
        let owner = Owner { extents: &self.extents, epoch };
        let PinnedExtent { extent, pin: _pin } =
            self.context.create(ExtentKind::Log, owner).await?;
        let end = match self.append_to(extent, 0, record).await {
            Ok(end) => end,
            Err(failed) => {
                self.context.release(&self.extents, extent);
                return Err(failed.before_it_counts());
            }
        };
        let flushed =
            self.state.highest.iter().take_while(|highest| **highest <= manifest.flushed).count();
        let mut next = self.state.descriptor.clone();
        let left: Vec<_> = next.log.drain(..flushed).collect();
        next.log.push(extent);
        // The manifest is durable before the descriptor names its extent. After a crash between the
        // two the record of the partition still has that extent.
        self.replace(&next, Some(extent)).await?;
        if let Some(link) = self.state.link.filter(|link| !left.contains(&link.extent)) {
            self.context.chores.add(Chore::Seal(link.extent, epoch));
        }
        self.state.descriptor = next;
        self.state.highest.drain(..flushed);
        self.state.highest.push(Sequence::new(0));
        self.state.link = Some(Link { extent, end });
        self.open = true;
        self.remove(left);
        Ok(())
    }

    /// Changes the descriptor. `made` is the extent that it names for the first time.
    async fn replace(
        &mut self,
        next: &PartitionDescriptor,
        made: Option<ExtentId>,
    ) -> Result<(), Failed> {
        let coordinator = self.context.deps.coordinator.as_ref();
        let extents = Arc::clone(&self.extents);
        // If another task changes the record of extents now, only the descriptor is changed.
        let changing = extents.try_changing();
        let change = if changing.is_some() { self.next_record().await } else { None };
        let before = newest_of(&self.state.descriptor);
        let after = newest_of(next).filter(|_| made.is_some());
        extents.set_newest(before.into_iter().chain(after));
        let failed = match swap(coordinator, self.state.revision, next, change.as_ref()).await {
            Ok(revision) => {
                self.state.revision = revision;
                self.extents.set_newest(newest_of(next));
                self.extents.set_owner(self.state.descriptor.epoch, revision);
                if let Some(change) = change {
                    self.extents.changed(change, revision);
                }
                return Ok(());
            }
            Err(failed) => failed,
        };
        if change.is_some() {
            self.extents.set_stale();
        }
        match &failed {
            Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) => {
                extents.set_newest(before);
                made.into_iter().for_each(|extent| self.context.release(&self.extents, extent));
            }
            // Another owner may have found the extent in the descriptor.
            Failed::Fenced => {}
            Failed::Other(reason) => self.doubt = Some(reason.clone()),
        }
        Err(failed)
    }

    /// The new record of extents to be written with a change of the descriptor; `None` if it does
    /// not change.
    async fn next_record(&self) -> Option<Change> {
        let coordinator = self.context.deps.coordinator.as_ref();
        ids::refresh(coordinator, &self.extents).await.ok()?;
        // Recording more ids costs no extra transaction here. If none can be issued now, the
        // recorded ids are used, and the next change asks again.
        let fresh = ids::fresh_ids(&self.context, &self.extents, ids::RESERVE).await;
        self.extents.change(fresh.unwrap_or_default())
    }

    /// Drops extents whose commits are all flushed. Call it when the manifest that says so is
    /// durable.
    ///
    /// # Errors
    /// As of [`Self::roll`].
    pub(crate) async fn trim(&mut self, flushed: Sequence) -> Result<(), Failed> {
        let before_last = self.state.highest.len().saturating_sub(1);
        let count = self
            .state
            .highest
            .iter()
            .take(before_last)
            .take_while(|highest| **highest <= flushed)
            .count();
        if count == 0 {
            return Ok(());
        }
        let mut next = self.state.descriptor.clone();
        let left = next.log.drain(..count).collect();
        self.replace(&next, None).await?;
        self.state.descriptor = next;
        self.state.highest.drain(..count);
        self.remove(left);
        Ok(())
    }

    fn remove(&self, extents: Vec<ExtentId>) {
        extents.into_iter().for_each(|extent| self.context.release(&self.extents, extent));
    }

    async fn append_to(&self, extent: ExtentId, at: u64, record: Bytes) -> Result<u64, Failed> {
        let capacity = self.context.deps.capacity.as_ref();
        let place = LogPlace { extent, epoch: self.state.descriptor.epoch, offset: at };
        append_at(capacity, place, vec![record]).await
    }
}

/// The log that takes the appends of a partition; `None` if it never had one.
pub(crate) fn newest_of(descriptor: &PartitionDescriptor) -> Option<OwnedLog> {
    let log = *descriptor.log.last()?;
    Some(OwnedLog { log, epoch: descriptor.epoch })
}

/// Writes the first records of a log extent that no descriptor names yet. Returns their end.
pub(crate) async fn write_first(
    capacity: &dyn Capacity,
    extent: ExtentId,
    epoch: Epoch,
    records: Vec<Bytes>,
) -> Result<u64, Failed> {
    append_at(capacity, LogPlace { extent, epoch, offset: 0 }, records).await
}

/// Where records of a log are appended.
struct LogPlace {
    extent: ExtentId,
    /// The owner's.
    epoch: Epoch,
    /// The end of the extent.
    offset: u64,
}

async fn append_at(
    capacity: &dyn Capacity,
    place: LogPlace,
    records: Vec<Bytes>,
) -> Result<u64, Failed> {
    let LogPlace { extent, epoch, offset } = place;
    let request = AppendRequest {
        extent,
        epoch,
        offset: ExtentOffset::new(offset),
        payloads: records.into_iter().map(|record| vec![record]).collect(),
        durability: Durability::Durable,
    };
    Ok(capacity.append(request).await?.end.get())
}

/// Replaces the descriptor if its last change is still `revision`, and with it the record of its
/// extents (I2: if the descriptor was changed, another owner has the partition).
///
/// # Errors
/// [`Failed::Full`], [`Failed::Refused`]: nothing has changed. [`Failed::Fenced`]: another owner
/// changed the descriptor. [`Failed::Other`]: the outcome is unknown.
pub(crate) async fn swap(
    coordinator: &dyn Coordinator,
    revision: Revision,
    next: &PartitionDescriptor,
    record: Option<&Change>,
) -> Result<Revision, Failed> {
    let key = PartitionDescriptor::coordinator_key(next.id);
    let value = next.encode();
    let unknown = |error: coordinator::Error| Failed::unknown(&error);
    let mut when = vec![Compare::ModRevision(key.clone(), revision)];
    let mut then = vec![Op::Put(key.clone(), value.clone())];
    if let Some(record) = record {
        when.push(record.when.clone());
        then.push(record.then.clone());
    }
    let mut doubt = false;
    for _ in 0..SWAP_TRIES {
        match coordinator.txn(&when, &then).await {
            Ok(TxnReply::Committed(at)) => return Ok(at),
            Ok(TxnReply::Rejected(_)) if !doubt && record.is_none() => return Err(Failed::Fenced),
            Ok(TxnReply::Rejected(_)) if !doubt => {
                return Err(rejected(coordinator, &key, revision).await);
            }
            // An earlier try may have changed the descriptor.
            Ok(TxnReply::Rejected(_)) | Err(coordinator::Error::Ambiguous) => doubt = true,
            Err(error) if !doubt => return Err(Failed::refused(&error)),
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
    }
    Err(Failed::Other("the coordinator does not say whether the descriptor was changed".into()))
}

/// Determines why a transaction was rejected whose conditions were the revisions of a descriptor
/// and of a record.
async fn rejected(coordinator: &dyn Coordinator, key: &Bytes, revision: Revision) -> Failed {
    match coordinator.get(key).await {
        Ok(Some(found)) if found.mod_revision == revision => {
            // An earlier change of the record took effect late, after it had been reported as lost.
            Failed::Refused(
                "the record of extents was changed; the partition reads it again".into(),
            )
        }
        Ok(_) => Failed::Fenced,
        Err(error) => Failed::refused(&error),
    }
}
