//! The partitions of a host: those that are open, and those that did not open at the start. Changes
//! of the map replace members of this set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::RwLockReadGuard;
use std::sync::RwLockWriteGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::api::Damage;
use crate::index::api::Error;
use crate::index::engine::NotOpened;
use crate::index::engine::Partition;
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::PartitionId;

/// Whether and when a partition that did not open is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It is tried again, and requests wait for it as for a move.
    Soon,
    /// It is tried again, but has failed so often that requests are refused immediately.
    Later,
    /// It is quarantined: only the next start tries it again.
    Never,
}

/// A partition that did not open at the start.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    /// Its descriptor, which has its range.
    pub(crate) descriptor: PartitionDescriptor,
    /// Why it does not open.
    pub(crate) error: Error,
    pub(crate) retry: Retry,
}

impl Closed {
    /// The closed partition, if it was claimed and its files are the reason. If they are damaged or
    /// missing, only the next start opens it; any other reason may pass.
    ///
    /// # Errors
    /// The error, if the reason is another.
    pub(crate) fn after(not: NotOpened) -> Result<Self, Error> {
        let Some(descriptor) = not.claimed else { return Err(not.error) };
        let may_pass = matches!(not.error, Error::Unavailable(_) | Error::Full(_));
        if !may_pass && !is_lasting(&not.error) {
            return Err(not.error);
        }
        let retry = if may_pass { Retry::Soon } else { Retry::Never };
        let one = Self { descriptor, error: not.error, retry };
        one.log();
        Ok(one)
    }

    fn log(&self) {
        let (partition, keys) = (self.descriptor.id, &self.descriptor.keys);
        let error = &self.error;
        if self.is_quarantined() {
            let what = "partition quarantined: requests for its names get 503";
            tracing::error!(%partition, ?keys, %error, "{what}");
        } else {
            let what = "the partition does not open yet; it is tried again";
            tracing::warn!(%partition, ?keys, %error, "{what}");
        }
    }

    /// Whether only the next start tries it again.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.retry == Retry::Never
    }
}

/// Whether only a start after a repair can open the partition.
pub(crate) const fn is_lasting(error: &Error) -> bool {
    matches!(error, Error::Corrupt(Damage::Rows(_) | Damage::DiskOut(_)))
}

/// Partitions by id.
#[derive(Debug)]
pub(crate) struct Opened {
    partitions: RwLock<Partitions>,
    /// Grows with every change of the open partitions.
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct Partitions {
    open: BTreeMap<PartitionId, Arc<Partition>>,
    closed: BTreeMap<PartitionId, Closed>,
}

impl Opened {
    /// The partitions that opened at the start, and those that did not.
    pub(crate) fn new(open: BTreeMap<PartitionId, Arc<Partition>>, closed: Vec<Closed>) -> Self {
        let closed = closed.into_iter().map(|one| (one.descriptor.id, one)).collect();
        let partitions = RwLock::new(Partitions { open, closed });
        Self { partitions, version: AtomicU64::new(0) }
    }

    /// The partitions that did not open.
    pub(crate) fn closed(&self) -> Vec<Closed> {
        self.read().closed.values().cloned().collect()
    }

    /// Whether a partition did not open, and is tried again or is damaged as of this epoch.
    pub(crate) fn has_closed(&self, id: PartitionId, epoch: Epoch) -> bool {
        let partitions = self.read();
        let is_known = |one: &Closed| !one.is_quarantined() || one.descriptor.epoch >= epoch;
        partitions.closed.get(&id).is_some_and(is_known)
    }

    /// The partitions that are open, and those that did not open.
    pub(crate) fn ids(&self) -> Vec<PartitionId> {
        let partitions = self.read();
        partitions.open.keys().chain(partitions.closed.keys()).copied().collect()
    }

    /// Adds a partition that did not open.
    pub(crate) fn add_not_open(&self, closed: Closed) {
        self.write().closed.insert(closed.descriptor.id, closed);
    }

    /// Removes a partition that did not open: another process has it.
    pub(crate) fn forget_closed(&self, id: PartitionId) -> Option<Closed> {
        self.write().closed.remove(&id)
    }

    /// Whether a partition is closed and tried again.
    pub(crate) fn is_tried(&self, id: PartitionId) -> bool {
        self.read().closed.get(&id).is_some_and(|one| !one.is_quarantined())
    }

    /// Records why a closed partition still does not open, and when it is tried again.
    pub(crate) fn still_closed(&self, id: PartitionId, error: Error, retry: Retry) {
        if let Some(one) = self.write().closed.get_mut(&id) {
            (one.error, one.retry) = (error, retry);
            if retry == Retry::Never {
                one.log();
            }
        }
    }

    /// Adds an open partition that was closed.
    pub(crate) fn add_closed(&self, new: Partition) {
        let mut partitions = self.write();
        partitions.closed.remove(&new.core.id);
        partitions.open.insert(new.core.id, Arc::new(new));
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn get(&self, id: PartitionId) -> Option<Arc<Partition>> {
        self.read().open.get(&id).cloned()
    }

    /// As [`Self::get`].
    ///
    /// # Errors
    /// [`Error::WrongPartition`] if it is not open here, [`Damage::Quarantined`] if callers should
    /// not wait for it.
    pub(crate) fn find(&self, id: PartitionId) -> Result<Arc<Partition>, Error> {
        let partitions = self.read();
        if let Some(open) = partitions.open.get(&id) {
            return Ok(Arc::clone(open));
        }
        match partitions.closed.get(&id).map(|one| one.retry) {
            Some(Retry::Later | Retry::Never) => Err(Damage::Quarantined(id).into()),
            Some(Retry::Soon) | None => Err(Error::WrongPartition),
        }
    }

    /// A number that changes with every change of the open partitions.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// All open partitions, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        self.read().open.values().cloned().collect()
    }

    /// Stops the old partitions, then adds the new ones, so that no request finds both (I6).
    pub(crate) fn replace(&self, old: &[Arc<Partition>], new: Vec<Partition>) {
        let mut partitions = self.write();
        for old in old {
            old.core.lose();
            partitions.open.remove(&old.core.id);
        }
        partitions.open.extend(new.into_iter().map(|new| (new.core.id, Arc::new(new))));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Adds an open partition.
    pub(crate) fn add(&self, new: Partition) {
        self.replace(&[], vec![new]);
    }

    fn read(&self) -> RwLockReadGuard<'_, Partitions> {
        self.partitions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Partitions> {
        self.partitions.write().unwrap_or_else(PoisonError::into_inner)
    }
}
