//! Index tags: the work rows beside blobs, and the entries of the tag index.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Error;
use crate::index::api::IndexTag;
use crate::index::api::ListTags;
use crate::index::api::TagEntry;
use crate::index::api::TagPage;
use crate::index::api::TagWork;
use crate::index::api::TagWorkPage;
use crate::index::api::WriteReply;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::ContainerName;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::TagEntryKey;
use crate::types::Tags;
use crate::types::Timestamp;

/// The value of a work row: the change that the tag index must make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TagWorkValue {
    /// Pairs that the blob no longer has.
    pub(crate) removed: Tags,
    /// Pairs that the blob has got.
    pub(crate) added: Tags,
}

/// An entry of the tag index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TagEntryValue {
    /// The time at which the tag was set.
    pub(crate) time: Timestamp,
    /// The name of the blob's container.
    pub(crate) container: ContainerName,
}

/// Writes a work row if this commit changes the tags of a blob from `old` to `new`.
pub(super) fn changed(eval: &mut Evaluation<'_>, blob: &RoutingKey, old: &Tags, new: &Tags) {
    if old == new {
        return;
    }
    let value = TagWorkValue { removed: old.without(new), added: new.without(old) };
    eval.out.put(Family::Work, keys::tag_work(blob, eval.now), values::encode(&value));
}

/// Returns work rows about tags, of one blob or of the whole partition, from a position on, and
/// where to continue.
pub(super) async fn work(
    view: &dyn Rows,
    blob: Option<&RoutingKey>,
    from: &Bytes,
    limit: usize,
) -> Result<TagWorkPage, Error> {
    let (from, to) = match blob {
        Some(blob) => (blob.as_bytes().max(from).clone(), Some(keys::after(blob))),
        None => (from.clone(), None),
    };
    let mut cursor = Cursor::new(view, Family::Work, from, to).pausing();
    let mut work = Vec::new();
    while let Some(row) = cursor.take().await? {
        let blob = keys::routing_key(Family::Work, &row.key)?;
        let Some(time) = keys::parse_tag_work(&row.key, &blob) else { continue };
        if work.len() >= limit {
            return Ok(TagWorkPage { work, next: Some(row.key) });
        }
        let TagWorkValue { removed, added } = decode_work(&row)?;
        work.push(TagWork { row: row.key, blob, time, removed, added });
    }
    Ok(TagWorkPage { work, next: cursor.paused().cloned() })
}

/// Decodes the value of a work row.
pub(crate) fn decode_work(row: &Row) -> Result<TagWorkValue, Error> {
    values::decode(Family::Work, &row.key, &row.value)
}

/// Decodes the key and value of an entry.
pub(crate) fn decode_entry(
    key: &RoutingKey,
    value: &[u8],
) -> Result<(TagEntryKey, TagEntryValue), Error> {
    let parts = TagEntryKey::parse(key)
        .ok_or_else(|| keys::corrupt(Family::Main, key.as_bytes(), "no entry of the tag index"))?;
    Ok((parts, values::decode(Family::Main, key.as_bytes(), value)?))
}

/// Puts or removes an entry, unless a later change has changed it.
pub(super) async fn index(
    eval: &mut Evaluation<'_>,
    change: &IndexTag,
) -> Result<WriteReply, Error> {
    let key = change.entry.as_bytes();
    let old = match eval.view.get(Family::Main, key).await? {
        Some(value) => Some(decode_entry(&change.entry, &value)?.1.time),
        None => None,
    };
    match &change.container {
        Some(container) if old.is_none_or(|old| old < change.time) => {
            let value = TagEntryValue { time: change.time, container: container.clone() };
            eval.out.put(Family::Main, key.clone(), values::encode(&value));
        }
        None if old.is_some_and(|old| old <= change.time) => {
            eval.out.delete(Family::Main, key.clone());
        }
        Some(_) | None => {}
    }
    Ok(WriteReply::Done)
}

/// Removes work rows that were applied to the tag index.
pub(super) fn forget(eval: &mut Evaluation<'_>, rows: &[Bytes]) -> WriteReply {
    for row in rows {
        eval.out.delete(Family::Work, row.clone());
    }
    WriteReply::Done
}

/// Returns a page of entries.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListTags,
) -> Result<TagPage, Error> {
    let end = range.high().map(|high| high.as_bytes().clone());
    let to = match (&list.to, &end) {
        (Some(a), Some(b)) => Some(a.min(b).clone()),
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let mut rows = Cursor::new(view, Family::Main, list.from.clone(), to)
        .expecting(list.limit.saturating_add(1))
        .pausing();
    let mut entries = Vec::new();
    while let Some(row) = rows.take().await? {
        if entries.len() >= list.limit {
            return Ok(TagPage { entries, next: Some(row.key), seen: view.seen() });
        }
        let (key, value) = decode_entry(&RoutingKey::from_bytes(row.key), &row.value)?;
        entries.push(TagEntry { key, time: value.time, container: value.container });
    }
    let end = end.filter(|end| list.to.as_ref().is_none_or(|to| end < to));
    let next = rows.paused().cloned().or(end);
    Ok(TagPage { entries, next, seen: view.seen() })
}
