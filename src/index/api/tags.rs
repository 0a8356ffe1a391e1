//! The tag index: work left by changes of tags, entries, pages of them.
//!
//! An entry is elsewhere in the key space than its blob, so a change of tags writes a work row
//! beside the blob, in the same commit. Code that finds the row updates the entries with
//! [`IndexTag`] and then deletes the row. Every entry carries the time of the change that put it,
//! and only later changes touch it: repeated or out of order, work never removes an entry that is
//! due (ADR 0011).

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::types::ContainerName;
use crate::types::RoutingKey;
use crate::types::TagEntryKey;
use crate::types::Tags;
use crate::types::Timestamp;

/// A change of a blob's tags that the tag index may not show yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagWork {
    /// For [`crate::index::Write::ForgetTagWork`].
    pub row: Bytes,
    /// The blob.
    pub blob: RoutingKey,
    /// When the change was committed.
    pub time: Timestamp,
    /// Pairs the blob had and has no more.
    pub removed: Tags,
    /// Pairs the blob got.
    pub added: Tags,
}

/// The change of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The entry.
    pub entry: TagEntryKey,
    /// The last change of it.
    pub time: Timestamp,
    /// Whether it is there after that.
    pub present: bool,
}

impl TagWork {
    /// The combined effect of work rows: one change for each entry, from the last row that names
    /// it.
    #[must_use]
    pub fn changes(work: &[Self]) -> Vec<EntryChange> {
        let mut last: BTreeMap<(&RoutingKey, &str, &str), (Timestamp, bool)> = BTreeMap::new();
        for one in work {
            let removed = one.removed.iter().map(|pair| (pair, false));
            for ((key, value), present) in removed.chain(one.added.iter().map(|pair| (pair, true)))
            {
                let newest = last.entry((&one.blob, key, value)).or_insert((one.time, present));
                if newest.0 < one.time {
                    *newest = (one.time, present);
                }
            }
        }
        let change = |((blob, key, value), (time, present)): ((&RoutingKey, &str, &str), _)| {
            let (key, value, blob) = (key.to_owned(), value.to_owned(), blob.clone());
            EntryChange { entry: TagEntryKey { key, value, blob }, time, present }
        };
        last.into_iter().map(change).collect()
    }
}

/// Puts or removes an entry of the tag index, unless a later change touched it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexTag {
    /// The entry's key.
    pub entry: RoutingKey,
    /// When the change of the blob was committed.
    pub time: Timestamp,
    /// The name of the blob's container, to put the entry; `None` removes it.
    pub container: Option<ContainerName>,
}

/// Entries between two positions, as far as this partition reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTags {
    /// Where to start; routed by it.
    pub from: Bytes,
    /// Where to end, exclusive.
    pub to: Option<Bytes>,
    /// Entries at most, above 0.
    pub limit: usize,
}

/// An entry of the tag index: a blob that had this tag at a time. Its current tags are in its
/// record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagEntry {
    /// Tag and blob.
    pub key: TagEntryKey,
    /// When the tag was set.
    pub time: Timestamp,
    /// The blob's container.
    pub container: ContainerName,
}

/// A page of entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagPage {
    /// In key order.
    pub entries: Vec<TagEntry>,
    /// Where to go on, possibly in the next partition; `None` at the end.
    pub next: Option<Bytes>,
    /// Rows examined for it, removed ones included.
    pub seen: usize,
}

/// Changes of tags that the tag index may not show yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagWorkPage {
    /// The changes.
    pub work: Vec<TagWork>,
    /// Where to go on.
    pub next: Option<Bytes>,
}
