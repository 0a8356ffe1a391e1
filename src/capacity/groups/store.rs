//! Reads and changes of records in the coordinator.

use std::collections::BTreeMap;

use bytes::Bytes;
use thiserror::Error as ThisError;

use crate::capacity::groups::record::{GroupRecord, NoMembers, Unread};
use crate::capacity::groups::transitions::Refusal;
use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, Op, Revision, Snapshot, TxnReply};
use crate::types::GroupId;

/// Coordinator keys of records: this, then the group's id as 16 hex digits.
const PREFIX: &str = "group/";
/// How often a change is tried. Each try that fails means that another change of the group
/// succeeded, or that the coordinator gave no answer.
const TRIES_MAX: usize = 32;

/// Why a group is not made, read or changed. Each variant demands another reaction of the caller.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// The record, as it is now, does not permit the change. Nothing changed.
    #[error("group {group} is not changed: {refusal}")]
    Refused {
        /// The group.
        group: GroupId,
        /// Why.
        refusal: Refusal,
    },
    /// A condition of the caller does not hold, for instance that it leads. Nothing changed.
    #[error("group {0} is not changed: a condition no longer holds")]
    NotPermitted(GroupId),
    /// There is no such record: the group was never made.
    #[error("there is no group {0}")]
    NoSuchGroup(GroupId),
    /// Its record cannot be read. Nobody changes it until an operator has looked at it.
    #[error("the record of group {group} cannot be read: {unread}")]
    Unread {
        /// The group.
        group: GroupId,
        /// Why.
        unread: Unread,
    },
    /// The members of a new group are no members. A bug of the caller.
    #[error(transparent)]
    NoMembers(#[from] NoMembers),
    /// The coordinator does not answer, refuses or is damaged. Of
    /// [`coordinator::Error::Ambiguous`], read the group again.
    #[error(transparent)]
    Coordinator(#[from] coordinator::Error),
}

/// A record as it was read, or as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAt {
    /// The record.
    pub record: GroupRecord,
    /// The revision that wrote it.
    pub revision: Revision,
}

impl GroupAt {
    /// The condition and the change that replace this record by `next`, for a transaction that does
    /// more, such as the roll of a log.
    #[must_use]
    pub fn replaced_by(&self, next: &GroupRecord) -> (Compare, Op) {
        assert_eq!(self.record.id(), next.id(), "the record of another group");
        let key = key(next.id());
        (Compare::ModRevision(key.clone(), self.revision), Op::Put(key, next.encode()))
    }
}

/// The coordinator key of a group's record.
pub(super) fn key(group: GroupId) -> Bytes {
    format!("{PREFIX}{group}").into()
}

/// The prefix of the keys of all records.
pub(super) const fn prefix() -> &'static [u8] {
    PREFIX.as_bytes()
}

/// The group of a coordinator key; `None` if it is no key of a group.
pub(super) fn group_of(key: &[u8]) -> Option<GroupId> {
    let digits = key.strip_prefix(prefix()).filter(|digits| digits.len() == 16)?;
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    let group = GroupId::new(number)?;
    // There is one key for each group: digits in upper case are another key.
    (self::key(group) == key).then_some(group)
}

/// Decodes the record that is stored under a group's key.
fn decode(group: GroupId, value: &[u8]) -> Result<GroupRecord, Unread> {
    let record = GroupRecord::decode(value)?;
    if record.id() == group { Ok(record) } else { Err(Unread::Malformed("of another group")) }
}

/// Whether a coordinator key is that of a record.
#[must_use]
pub fn is_key(key: &[u8]) -> bool {
    group_of(key).is_some()
}

/// Writes a record, whatever there is of the group, for the transaction that makes it.
#[must_use]
pub fn put(record: &GroupRecord) -> Op {
    Op::Put(key(record.id()), record.encode())
}

/// Reads the record of a group; `None` if the group was never made.
///
/// # Errors
/// [`Error::Coordinator`], [`Error::Unread`].
pub async fn read(coordinator: &dyn Coordinator, group: GroupId) -> Result<Option<GroupAt>, Error> {
    let Some(found) = coordinator.get(&key(group)).await? else { return Ok(None) };
    let record = decode(group, &found.value).map_err(|unread| Error::Unread { group, unread })?;
    Ok(Some(GroupAt { record, revision: found.mod_revision }))
}

/// What is stored of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its record, or why it cannot be read.
    pub record: Result<GroupRecord, Unread>,
    /// The revision that wrote it.
    pub revision: Revision,
}

impl Stored {
    pub(super) fn of(group: GroupId, value: &[u8], revision: Revision) -> Self {
        Self { record: decode(group, value), revision }
    }
}

/// All groups, as of one revision.
#[derive(Debug)]
pub struct AllGroups {
    /// The revision.
    pub revision: Revision,
    /// What is stored of each.
    pub groups: BTreeMap<GroupId, Stored>,
}

/// Reads all records, as of one revision. They are held in memory together; a coordinator that is
/// reached by a network reads them in pages.
///
/// # Errors
/// Those of [`Coordinator::range`].
pub async fn read_all(coordinator: &dyn Coordinator) -> Result<AllGroups, coordinator::Error> {
    Ok(all_of(coordinator.range(prefix()).await?))
}

/// The records of these keys.
pub(super) fn all_of(found: Snapshot) -> AllGroups {
    let mut groups = BTreeMap::new();
    for (key, entry) in found.entries {
        let Some(group) = group_of(&key) else {
            tracing::error!(?key, "a key in the coordinator belongs to no group");
            continue;
        };
        groups.insert(group, Stored::of(group, &entry.value, entry.mod_revision));
    }
    AllGroups { revision: found.revision, groups }
}

/// Changes a record by compare and set, if the caller's conditions `when` hold. `change` makes the
/// next record of the present one; it may be called several times. Returns the record as it is
/// then; if the change had been made already, nothing is written.
///
/// # Errors
/// [`Error::Refused`] with the refusal of `change`, [`Error::NotPermitted`] if one of `when` does
/// not hold, [`Error::NoSuchGroup`], [`Error::Unread`]: nothing changed, unless an earlier try of
/// this call had an unknown outcome and was carried out. [`Error::Coordinator`] of
/// [`coordinator::Error::Ambiguous`]: it may have changed.
pub async fn change(
    coordinator: &dyn Coordinator,
    group: GroupId,
    when: &[Compare],
    change: impl Fn(&GroupRecord) -> Result<GroupRecord, Refusal> + Send,
) -> Result<GroupAt, Error> {
    let mut in_doubt = false;
    let mut rejected_at = None;
    for _ in 0..TRIES_MAX {
        let found = read(coordinator, group).await.map_err(|error| of_doubt(in_doubt, error))?;
        let at = found.ok_or(Error::NoSuchGroup(group))?;
        if rejected_at == Some(at.revision) && !when.is_empty() {
            // The record is as it was, so it was the caller's condition.
            return Err(Error::NotPermitted(group));
        }
        let next = change(&at.record).map_err(|refusal| Error::Refused { group, refusal })?;
        if next == at.record {
            return Ok(at);
        }
        let (unchanged, put) = at.replaced_by(&next);
        let when: Vec<Compare> = when.iter().cloned().chain([unchanged]).collect();
        match coordinator.txn(&when, &[put]).await {
            Ok(TxnReply::Committed(revision)) => return Ok(GroupAt { record: next, revision }),
            Ok(TxnReply::Rejected(_)) => rejected_at = Some(at.revision),
            Err(coordinator::Error::Ambiguous) => in_doubt = true,
            Err(error) => return Err(of_doubt(in_doubt, error.into())),
        }
    }
    let reason = format!("group {group} is contended").into();
    Err(of_doubt(in_doubt, coordinator::Error::Unavailable { reason }.into()))
}

/// An error of the coordinator after a transaction whose outcome is unknown does not say that
/// nothing changed.
fn of_doubt(in_doubt: bool, error: Error) -> Error {
    match error {
        Error::Coordinator(_) if in_doubt => coordinator::Error::Ambiguous.into(),
        Error::Coordinator(_)
        | Error::Refused { .. }
        | Error::NotPermitted(_)
        | Error::NoSuchGroup(_)
        | Error::Unread { .. }
        | Error::NoMembers(_) => error,
    }
}

#[cfg(test)]
mod tests;
