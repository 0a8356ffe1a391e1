//! The extents of one open partition. Ids are recorded before an extent is created under them, so
//! that whatever a crash leaves behind is found in the record by the next owner.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::coordinator::{Compare, Op, Revision};
use crate::index::engine::extents::pins::{PinnedExtent, Pins};
use crate::index::engine::extents::record::{ExtentRecord, RecordAt};
use crate::index::engine::failed::Failed;
use crate::index::engine::refusals::Refusals;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// One owner's view of its partition's record; only the owner changes it.
#[derive(Debug)]
pub(crate) struct Extents {
    partition: PartitionId,
    state: Mutex<State>,
    /// Locked while the record is changed. Who has it waits for the coordinator only, never for
    /// the committer.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    record: ExtentRecord,
    /// Of the record; `None` while there is none.
    revision: Option<Revision>,
    /// Recorded by this owner, and nothing was created under them.
    fresh: Vec<ExtentId>,
    /// Removed, or left to the other sharers: not in the next record.
    gone: BTreeSet<ExtentId>,
    /// Nobody knows whether the last change of the record happened.
    is_stale: bool,
    is_closed: bool,
    /// The owner's epoch, and its last change of the descriptor.
    owner: Option<(Epoch, Revision)>,
    /// Refused requests for ids, and when the next may be made.
    refusals: Refusals,
}

/// How a partition's record has an extent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// No other partition uses it.
    Alone,
    /// Others may use it; the partition is on the list under these names.
    Shared(BTreeSet<PartitionId>),
    /// It is not there.
    Not,
}

/// What is known of a record; it is empty while there is none.
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

/// Whose logs and runs are written: a partition's, at an epoch of its owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) extents: &'a Arc<Extents>,
    pub(crate) epoch: Epoch,
}

/// A record to be, as part of a transaction.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) when: Compare,
    pub(crate) then: Op,
    pub(crate) record: ExtentRecord,
    fresh: Vec<ExtentId>,
}

impl Extents {
    /// Of a partition whose record, at this revision, is known.
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

    /// Waits until nobody else changes the record, and keeps others from it.
    pub(crate) async fn changing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// As [`Self::changing`]; `None` when somebody changes it now.
    pub(crate) fn try_changing(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.changing.try_lock().ok()
    }

    /// Notes who owns the partition: the record is changed only as long as this is so.
    pub(crate) fn set_owner(&self, epoch: Epoch, revision: Revision) {
        self.lock().owner = Some((epoch, revision));
    }

    /// # Errors
    /// [`Failed::Refused`] before there is an owner.
    pub(crate) fn owner(&self) -> Result<(Epoch, Revision), Failed> {
        let none = || Failed::Refused("the partition has no owner yet".into());
        self.lock().owner.ok_or_else(none)
    }

    /// # Errors
    /// Why ids were refused a moment ago.
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

    /// Takes an id to create an extent under; `None` when there is none, or others own the
    /// partition.
    pub(crate) fn take(&self, pins: &Arc<Pins>) -> Option<PinnedExtent> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let extent = state.fresh.pop()?;
        // Under the lock: who opens the partition again after `close` sees the pin.
        Some(PinnedExtent { extent, pin: pins.pin(extent) })
    }

    /// Gives an id back under which nothing was created.
    pub(crate) fn give_back(&self, extent: ExtentId) {
        self.lock().fresh.push(extent);
    }

    /// How many ids there are to take.
    pub(crate) fn fresh(&self) -> usize {
        self.lock().fresh.len()
    }

    /// Gives out no ids from now on.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Closes this, and gives what is left to a partition that follows it.
    pub(crate) fn hand_on(&self) -> Vec<ExtentId> {
        let mut state = self.lock();
        state.is_closed = true;
        std::mem::take(&mut state.fresh)
    }

    /// How the record has an extent.
    pub(crate) fn holding(&self, extent: ExtentId) -> Holding {
        let state = self.lock();
        match state.record.shared.get(&extent) {
            Some(names) => Holding::Shared(names.clone()),
            None if state.record.own.contains(&extent) => Holding::Alone,
            None => Holding::Not,
        }
    }

    /// The extent is removed, or left to the other sharers.
    pub(crate) fn set_gone(&self, extent: ExtentId) {
        self.lock().gone.insert(extent);
    }

    /// What is recorded and neither used nor fresh nor gone: created and not used, or never
    /// created.
    pub(crate) fn unused(&self, used: &BTreeSet<ExtentId>) -> Vec<ExtentId> {
        let state = self.lock();
        let is_left = |extent: &ExtentId| {
            !used.contains(extent) && !state.fresh.contains(extent) && !state.gone.contains(extent)
        };
        state.record.all().filter(is_left).collect()
    }

    /// The record without what is gone.
    pub(crate) fn current(&self) -> ExtentRecord {
        self.lock().pruned()
    }

    /// The condition that the record is still the one known here.
    pub(crate) fn unchanged(&self) -> Compare {
        unchanged(self.partition, self.lock().revision)
    }

    /// The next record: with these ids, without what is gone. `None` when it is the same.
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

    /// The change happened: its ids may be taken.
    pub(crate) fn changed(&self, change: Change, at: Revision) {
        let mut state = self.lock();
        state.revision = Some(at);
        state.gone.retain(|extent| change.record.has(*extent));
        state.record = change.record;
        state.fresh.extend(change.fresh);
    }

    /// Nobody knows whether the last change happened.
    pub(crate) fn set_stale(&self) {
        self.lock().is_stale = true;
    }

    /// Whether the record is to be read again.
    pub(crate) fn is_stale(&self) -> bool {
        self.lock().is_stale
    }

    /// The record was read again. Nothing was created under ids that only the coordinator knows.
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
