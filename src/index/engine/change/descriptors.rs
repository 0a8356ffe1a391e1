//! The transaction that replaces descriptors.

use std::time::Duration;

use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, Op, Reason, Revision, TxnReply};
use crate::index::api::Full;
use crate::index::engine::Dependencies;
use crate::index::engine::change::NotChanged;
use crate::index::engine::change::check::{check_move, check_replacement, refused};
use crate::index::engine::change::replacement::{New, Old};
use crate::index::engine::extents::{ExtentRecord, Extents, Heir, Passed, ids, pass_on};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::writer::{LogState, newest_of};
use crate::index::map::PartitionDescriptor;

/// The most tries with an unknown outcome.
const TRIES: usize = 4;
/// Pauses before tries. A try fails if another change of a list of sharers was faster. In each
/// round one contender succeeds, so n contenders need n rounds. Writes wait meanwhile: all pauses
/// together are half a second.
const PAUSES_MS: [u64; 12] = [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 245];
/// The most conditions, and the most changes, that the coordinator takes in one transaction, but
/// for the condition that a cluster adds (`coordinator/guarded.rs`).
const ITEMS_MAX: usize = 127;
/// Items for the logs that the children of a split share, and for the parent.
const OTHER_ITEMS: usize = 16;
/// Items for each child: its descriptor and its record.
const ITEMS_OF_A_CHILD: usize = 3;

/// The reason of a refused change: it is refused until compaction has reduced the number of runs.
pub const TOO_MANY_RUNS: &str = "too many runs to share: they are being compacted";

/// A transaction of the coordinator.
#[derive(Clone, Copy)]
struct Txn<'a> {
    when: &'a [Compare],
    then: &'a [Op],
}

/// The result of a replacement.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) revision: Revision,
    /// The extent record of each new partition.
    pub(super) records: Vec<ExtentRecord>,
    /// Whether the coordinator may have other records: an earlier try, with an unknown outcome, may
    /// be the one that was carried out.
    pub(super) is_stale: bool,
}

/// Refuses a split whose children would share more runs than one transaction can record. Call it
/// before the change stops compaction: otherwise each refused change would end the compaction that
/// it needs.
///
/// # Errors
/// [`Failed::Busy`].
pub(super) fn fits(runs: usize, children: usize) -> Result<(), Failed> {
    let room = ITEMS_MAX.saturating_sub(OTHER_ITEMS).saturating_sub(children * ITEMS_OF_A_CHILD);
    if runs > room { Err(too_many_runs()) } else { Ok(()) }
}

fn too_many_runs() -> Failed {
    Failed::Busy(TOO_MANY_RUNS)
}

/// Replaces the partitions `old` by `new` in one transaction, and records the extents of each new
/// one. No new partition has the id of an old one.
///
/// # Errors
/// [`NotChanged::Busy`], [`Failed::Full`], [`Failed::Refused`]: nothing has changed.
/// [`Failed::Fenced`]: another owner changed one of the old partitions. [`Failed::Other`]: the
/// outcome is unknown.
pub(super) async fn replace(
    deps: &Dependencies,
    old: &[Old<'_>],
    new: &[New],
) -> Result<Replaced, NotChanged> {
    let before: Vec<_> = old.iter().map(|one| one.extents.newest()).collect();
    // As long as it is not known that nothing has changed, the next owner of some of the keys may
    // fence the log of a new partition, and no other.
    let after = || new.iter().filter_map(|one| newest_of(&one.descriptor));
    for (one, newest) in old.iter().zip(&before) {
        one.extents.set_newest(newest.iter().copied().chain(after()));
    }
    let replaced = try_to_replace(deps, old, new).await;
    if let Err(
        NotChanged::Busy(_)
        | NotChanged::Failed(Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_)),
    ) = &replaced
    {
        for (one, newest) in old.iter().zip(before) {
            one.extents.set_newest(newest);
        }
    }
    replaced
}

async fn try_to_replace(
    deps: &Dependencies,
    old: &[Old<'_>],
    new: &[New],
) -> Result<Replaced, NotChanged> {
    check_replacement(old, new).map_err(|violation| refused(deps, &violation))?;
    let coordinator = deps.coordinator.as_ref();
    let heirs: Vec<Heir> = new.iter().map(|new| new.heir.clone()).collect();
    let extents: Vec<&Extents> = old.iter().map(|old| old.extents).collect();
    let states: Vec<&LogState> = old.iter().map(|old| old.log).collect();
    let fresh = new.iter().map(|new| Compare::Absent(key(&new.descriptor)));
    let when: Vec<Compare> = states.iter().map(|log| unchanged(log)).chain(fresh).collect();
    let puts = new.iter().map(|new| Op::Put(key(&new.descriptor), new.descriptor.encode()));
    let gone = states.iter().map(|log| Op::Delete(key(&log.descriptor)));
    let then: Vec<Op> = gone.chain(puts).collect();
    let Some(first) = new.first().map(|new| &new.descriptor) else {
        return Err(Failed::Refused("nothing to change".into()).into());
    };
    let mut kept = Vec::new();
    for one in &extents {
        kept.push(one.changing().await);
        ids::refresh(coordinator, one).await?;
    }
    let mut doubt = Doubt::default();
    for pause in PAUSES_MS.map(Duration::from_millis) {
        if !pause.is_zero() {
            deps.env.clock.sleep(pause).await;
        }
        let passed = match pass_on(coordinator, &extents, &heirs).await {
            Ok(passed) => passed,
            Err(failed) => return Err(doubt.failed(failed).into()),
        };
        let Passed { when: of_extents, then: to_extents, records } = passed;
        let (when, then) = ([&when[..], &of_extents].concat(), [&then[..], &to_extents].concat());
        if when.len() > ITEMS_MAX || then.len() > ITEMS_MAX {
            return Err(doubt.failed(too_many_runs()).into());
        }
        if let Some(revision) =
            doubt.attempt(coordinator, Txn { when: &when, then: &then }, first, &states).await?
        {
            return Ok(Replaced { revision, records, is_stale: doubt.is_any() });
        }
        if doubt.tries >= TRIES {
            return Err(Failed::Other(
                "the coordinator does not say whether the partitions were replaced".into(),
            )
            .into());
        }
    }
    if doubt.is_any() {
        return Err(Failed::Other("the lists of sharers keep changing".into()).into());
    }
    Err(NotChanged::Busy("the lists of sharers keep changing"))
}

/// Names another host in a descriptor. The record of extents does not change.
///
/// # Errors
/// As of [`replace`].
pub(super) async fn move_over(
    deps: &Dependencies,
    old: &LogState,
    new: &PartitionDescriptor,
) -> Result<Revision, Failed> {
    check_move(&old.descriptor, new).map_err(|violation| refused(deps, &violation))?;
    let coordinator = deps.coordinator.as_ref();
    let (when, then) = ([unchanged(old)], [Op::Put(key(new), new.encode())]);
    let mut doubt = Doubt::default();
    for _ in 0..TRIES {
        if let Some(revision) =
            doubt.attempt(coordinator, Txn { when: &when, then: &then }, new, &[old]).await?
        {
            return Ok(revision);
        }
    }
    Err(doubt.failed(Failed::Fenced))
}

fn key(descriptor: &PartitionDescriptor) -> bytes::Bytes {
    PartitionDescriptor::coordinator_key(descriptor.id)
}

fn unchanged(old: &LogState) -> Compare {
    Compare::ModRevision(key(&old.descriptor), old.revision)
}

/// Counts the tries with an unknown outcome.
#[derive(Debug, Default)]
struct Doubt {
    tries: usize,
}

impl Doubt {
    fn is_any(&self) -> bool {
        self.tries > 0
    }

    /// Tries a transaction that writes the descriptor `first`. Returns `None` if it must be tried
    /// again.
    async fn attempt(
        &mut self,
        coordinator: &dyn Coordinator,
        txn: Txn<'_>,
        first: &PartitionDescriptor,
        old: &[&LogState],
    ) -> Result<Option<Revision>, Failed> {
        match coordinator.txn(txn.when, txn.then).await {
            Ok(TxnReply::Committed(revision)) => return Ok(Some(revision)),
            Ok(TxnReply::Rejected(_)) => {}
            Err(coordinator::Error::Ambiguous) => self.tries += 1,
            Err(error) => return Err(self.failed(Failed::refused(&error))),
        }
        let unread = |error: coordinator::Error| Failed::refused(&error);
        if self.is_any() {
            let found = coordinator.get(&key(first)).await;
            let found = found.map_err(|error| self.failed(unread(error)))?;
            if let Some(found) = found.filter(|found| found.value == first.encode()) {
                return Ok(Some(found.mod_revision));
            }
        }
        for old in old {
            let found = coordinator.get(&key(&old.descriptor)).await;
            let found = found.map_err(|error| self.failed(unread(error)))?;
            if found.is_none_or(|found| found.mod_revision != old.revision) {
                return Err(Failed::Fenced);
            }
        }
        Ok(None)
    }

    /// Combines the failure of this try with the outcomes of earlier ones: if one of those is
    /// unknown, the result is unknown.
    fn failed(&self, failed: Failed) -> Failed {
        if !self.is_any() {
            return failed;
        }
        match failed {
            Failed::Full(Full::Coordinator(why)) => Failed::Other(Reason::full(why)),
            Failed::Full(full @ Full::Disks) => Failed::Other(Reason::full(full.to_string())),
            Failed::Refused(reason) => Failed::Other(reason.into()),
            Failed::Busy(reason) => Failed::Other(reason.to_owned().into()),
            Failed::Fenced | Failed::Other(_) => failed,
        }
    }
}
