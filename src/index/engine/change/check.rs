//! Checks a change of the map before it is carried out. A change that would violate an invariant is
//! refused, and the partitions stay as they are.

use crate::index::engine::change::held::Held;
use crate::index::engine::change::replacement::{New, Old};
use crate::index::engine::context::Dependencies;
use crate::index::engine::failed::Failed;
use crate::index::invariant::{Invariant, Violation};
use crate::index::map::PartitionDescriptor;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Logs a violation, and returns the refusal of the change.
pub(super) fn refused(deps: &Dependencies, violation: &Violation) -> Failed {
    violation.report(&deps.env.tasks.health(), "a change of the partition map");
    tracing::error!(%violation, "a change of the partition map is refused");
    Failed::Refused(violation.to_string())
}

/// # Errors
/// [`Invariant::Tiling`] if `parts`, in order, do not tile `whole` (I5).
pub(super) fn check_tiles<'a>(
    whole: &PartitionKeys,
    parts: impl IntoIterator<Item = &'a PartitionKeys>,
) -> Result<(), Violation> {
    let parts: Vec<&PartitionKeys> = parts.into_iter().collect();
    // The stripes of a range are first joined to that range, which may have neighbours.
    let ranges = parts.chunk_by(|one, next| one.range() == next.range());
    let ranges: Option<Vec<PartitionKeys>> = ranges.map(join).collect();
    let joined = ranges.and_then(|ranges| join(&ranges.iter().collect::<Vec<_>>()));
    Invariant::Tiling
        .assert(joined.as_ref() == Some(whole), || format!("{parts:?} do not tile {whole:?}"))
}

/// Joins parts; `None` if they tile no range.
fn join(parts: &[&PartitionKeys]) -> Option<PartitionKeys> {
    match parts {
        [only] => Some((*only).clone()),
        several => PartitionKeys::joined(several.iter().copied()),
    }
}

/// # Errors
/// [`Invariant::Tiling`] if the new partitions do not have exactly the keys of the old ones (I5);
/// [`Invariant::AtomicChange`] if one of them has the id of another, or an epoch that is not higher
/// than the old ones (I8).
pub(super) fn check_replacement(old: &[Old<'_>], new: &[New]) -> Result<(), Violation> {
    let before: Vec<&PartitionDescriptor> = old.iter().map(|old| &old.log.descriptor).collect();
    let after: Vec<&PartitionDescriptor> = new.iter().map(|new| &new.descriptor).collect();
    match (before.as_slice(), after.as_slice()) {
        ([whole], parts) => check_tiles(&whole.keys, parts.iter().map(|part| &part.keys))?,
        (parts, [whole]) => check_tiles(&whole.keys, parts.iter().map(|part| &part.keys))?,
        (_, _) => return Err(Invariant::Tiling.violated("several partitions replace several")),
    }
    for one in &after {
        let is_new = before.iter().all(|other| other.id != one.id && other.epoch < one.epoch);
        let is_alone = after.iter().filter(|other| other.id == one.id).count() == 1;
        Invariant::AtomicChange.assert(is_new && is_alone, || {
            format!("partition {} at epoch {} is not new", one.id, one.epoch)
        })?;
    }
    Ok(())
}

/// # Errors
/// [`Invariant::AtomicChange`] if a move changes more than epoch and host (I8).
pub(super) fn check_move(
    old: &PartitionDescriptor,
    new: &PartitionDescriptor,
) -> Result<(), Violation> {
    let moved = PartitionDescriptor { epoch: old.epoch.next(), host: new.host, ..old.clone() };
    Invariant::AtomicChange.assert(moved == *new, || {
        format!("a move of partition {} changes more than its host", old.id)
    })
}

/// Where a new partition, or a new owner, begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    pub(super) partition: PartitionId,
    /// Its commits so far.
    pub(super) sequence: Sequence,
    /// The highest time given out.
    pub(super) time: Timestamp,
}

/// # Errors
/// [`Invariant::Seamless`] if it does not continue where the old ones ended: if an old partition
/// has a later commit, or a later time (I17).
pub(super) fn check_goes_on(begin: Begin, held: &[Held]) -> Result<(), Violation> {
    let Begin { partition, sequence, time } = begin;
    for old in held {
        let goes_on = time >= old.time && sequence >= old.sequence;
        Invariant::Seamless.assert(goes_on, || {
            format!(
                "partition {partition} begins with commit {sequence} at {time:?}, {} ended with \
                 {} at {:?}",
                old.core.id, old.sequence, old.time
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
