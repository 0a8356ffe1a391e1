//! The extents of one open partition. Ids are recorded before an extent is created under them. So
//! the next owner finds in the record every extent that a crash left unused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::capacity::OwnedLog;
use crate::coordinator::{Compare, Op, Revision};
use crate::index::engine::extents::pins::{PinnedExtent, Pins};
use crate::index::engine::extents::record::{ExtentRecord, RecordAt};
use crate::index::engine::failed::Failed;
use crate::index::engine::refusals::Refusals;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// An owner's copy of its partition's record, which only the owner changes.
#[derive(Debug)]
pub(crate) struct Extents {
    partition: PartitionId,
    state: Mutex<State>,
    /// Locked while the record is changed. A task that holds it may wait for the coordinator, never
    /// for the committer.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    record: ExtentRecord,
    /// The revision of the record; `None` while there is none.
    revision: Option<Revision>,
    /// Ids that this owner recorded and under which nothing was created.
    fresh: Vec<ExtentId>,
    /// Extents that are removed or left to the other sharers. The next record does not have them.
    gone: BTreeSet<ExtentId>,
    /// Whether the record in the coordinator may differ from this one: a change of it had an
    /// unknown outcome or was rejected.
    is_stale: bool,
    is_closed: bool,
    /// The logs of which some are the newest now: more than one while it is not known whether a
    /// roll or a change of the map happened.
    newest: Vec<OwnedLog>,
    /// The epoch of the owner, and its last change of the descriptor.
    owner: Option<(Epoch, Revision)>,
    /// Refused requests for ids, and when the next may be made.
    refusals: Refusals,
}

/// How a partition's record lists an extent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// No other partition uses it.
    Alone,
    /// Other partitions may use it. This one is on the list of sharers under these names.
    Shared(BTreeSet<PartitionId>),
    /// The record does not have it.
    Not,
}

/// A record and its revision; empty while there is none.
#[derive(Default)]
struct Known {
    record: ExtentRecord,
    revision: Option<Revision>,
}

impl From<Option<RecordAt>> for Known {
    fn from(found: Option<RecordAt>) -> Self {
        let known = |at: RecordAt| Self { record: at.record, revision: Some(at.revision) };
        found.map_or_else(Self::default, known)
    }
}

/// The owner of logs and runs that are written: a partition's extents, and the epoch of its owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) extents: &'a Arc<Extents>,
    pub(crate) epoch: Epoch,
}

/// A new record, as a part of a transaction.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) when: Compare,
    pub(crate) then: Op,
    pub(crate) record: ExtentRecord,
    fresh: Vec<ExtentId>,
}

impl Extents {
    /// The extents of a partition whose record was read.
    pub(crate) fn new(
        partition: PartitionId,
        found: Option<RecordAt>,
        fresh: Vec<ExtentId>,
    ) -> Arc<Self> {
        let Known { record, revision } = found.into();
        let state = State { record, revision, fresh, ..State::default() };
        Arc::new(Self {
            partition,
            state: Mutex::new(state),
            changing: tokio::sync::Mutex::default(),
        })
    }

    /// The partition.
    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }

    /// Waits until no other task changes the record, and locks it.
    pub(crate) async fn changing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// As [`Self::changing`]; `None` if another task changes the record now.
    pub(crate) fn try_changing(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.changing.try_lock().ok()
    }

    /// Notes the owner. The record is changed only if the descriptor still has this revision.
    pub(crate) fn set_owner(&self, epoch: Epoch, revision: Revision) {
        self.lock().owner = Some((epoch, revision));
    }

    /// Notes which logs may be the newest. Another process that takes the keys over fences one of
    /// the newest logs first.
    pub(crate) fn set_newest(&self, newest: impl IntoIterator<Item = OwnedLog>) {
        self.lock().newest = newest.into_iter().collect();
    }

    /// The logs of which some are the newest.
    pub(crate) fn newest(&self) -> Vec<OwnedLog> {
        self.lock().newest.clone()
    }

    /// # Errors
    /// [`Failed::Refused`] if no owner was noted yet.
    pub(crate) fn owner(&self) -> Result<(Epoch, Revision), Failed> {
        let none = || Failed::Refused("the partition has no owner yet".into());
        self.lock().owner.ok_or_else(none)
    }

    /// # Errors
    /// The last refusal of ids, while its pause lasts.
    pub(crate) fn may_ask(&self, now: Duration) -> Result<(), Failed> {
        self.lock().refusals.may_try(now)
    }

    /// Notes whether ids were recorded.
    pub(crate) fn asked(&self, now: Duration, answer: &Result<(), Failed>) {
        let mut state = self.lock();
        match answer {
            Ok(()) => state.refusals = Refusals::default(),
            Err(failed) => {
                let pause = state.refusals.note(now, failed);
                tracing::debug!(
                    partition = %self.partition, ?failed, ?pause,
                    "no extent ids could be recorded"
                );
            }
        }
    }

    /// Takes a recorded id for a new extent; `None` if none is left, or if the partition is closed.
    pub(crate) fn take(&self, pins: &Arc<Pins>) -> Option<PinnedExtent> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let extent = state.fresh.pop()?;
        // The pin is made under the lock: a later opening of the partition, which comes after
        // `close`, sees it.
        Some(PinnedExtent { extent, pin: pins.pin(extent) })
    }

    /// Returns an id under which nothing was created.
    pub(crate) fn give_back(&self, extent: ExtentId) {
        self.lock().fresh.push(extent);
    }

    /// The number of ids that can be taken.
    pub(crate) fn fresh(&self) -> usize {
        self.lock().fresh.len()
    }

    /// Whether the partition has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Makes [`Self::take`] return `None` from now on.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Closes this, and returns the unused ids for a partition that replaces this one.
    pub(crate) fn hand_on(&self) -> Vec<ExtentId> {
        let mut state = self.lock();
        state.is_closed = true;
        std::mem::take(&mut state.fresh)
    }

    /// How the record lists an extent.
    pub(crate) fn holding(&self, extent: ExtentId) -> Holding {
        let state = self.lock();
        match state.record.shared.get(&extent) {
            Some(names) => Holding::Shared(names.clone()),
            None if state.record.own.contains(&extent) => Holding::Alone,
            None => Holding::Not,
        }
    }

    /// Notes that an extent is removed, or left to the other sharers.
    pub(crate) fn set_gone(&self, extent: ExtentId) {
        self.lock().gone.insert(extent);
    }

    /// The extents of the record that are not used, not available and not gone. They were created
    /// and are not used, or were never created.
    pub(crate) fn unused(&self, used: &BTreeSet<ExtentId>) -> Vec<ExtentId> {
        let state = self.lock();
        let is_left = |extent: &ExtentId| {
            !used.contains(extent) && !state.fresh.contains(extent) && !state.gone.contains(extent)
        };
        state.record.all().filter(is_left).collect()
    }

    /// The record without the extents that are gone.
    pub(crate) fn current(&self) -> ExtentRecord {
        self.lock().pruned()
    }

    /// The condition that the record in the coordinator still has the known revision.
    pub(crate) fn unchanged(&self) -> Compare {
        unchanged(self.partition, self.lock().revision)
    }

    /// The next record: with these ids, without the extents that are gone. `None` if it would not
    /// change.
    pub(crate) fn change(&self, fresh: Vec<ExtentId>) -> Option<Change> {
        let state = self.lock();
        if fresh.is_empty() && state.gone.is_empty() {
            return None;
        }
        let mut record = state.pruned();
        record.own.extend(&fresh);
        let when = unchanged(self.partition, state.revision);
        let then = Op::Put(ExtentRecord::key(self.partition), record.encode());
        Some(Change { when, then, record, fresh })
    }

    /// Notes that a change happened. Its ids can be taken now.
    pub(crate) fn changed(&self, change: Change, at: Revision) {
        let mut state = self.lock();
        state.revision = Some(at);
        state.gone.retain(|extent| change.record.has(*extent));
        state.record = change.record;
        state.fresh.extend(change.fresh);
    }

    /// Notes that the record in the coordinator may differ from the known one.
    pub(crate) fn set_stale(&self) {
        self.lock().is_stale = true;
    }

    /// Whether the record must be read again.
    pub(crate) fn is_stale(&self) -> bool {
        self.lock().is_stale
    }

    /// Notes the record that was read again. Ids that only the coordinator had are gone: nothing
    /// was created under them.
    pub(crate) fn refresh(&self, found: Option<RecordAt>) {
        let mut state = self.lock();
        let Known { record, revision } = found.into();
        let State { record: known, gone, .. } = &mut *state;
        gone.extend(record.all().filter(|extent| !known.has(*extent)));
        gone.retain(|extent| record.has(*extent));
        (state.record, state.revision, state.is_stale) = (record, revision, false);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pruned(&self) -> ExtentRecord {
        let mut record = self.record.clone();
        self.gone.iter().for_each(|extent| record.remove(*extent));
        record
    }
}

/// The condition that a partition's record has this revision, or that there is none.
fn unchanged(partition: PartitionId, revision: Option<Revision>) -> Compare {
    let key = ExtentRecord::key(partition);
    match revision {
        Some(revision) => Compare::ModRevision(key, revision),
        None => Compare::Absent(key),
    }
}
