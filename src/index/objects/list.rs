//! List Blobs: a merge of committed and (if asked) staged names and snapshots, with groups folded at the delimiter and
//! skipped by a seek.
//!
//! A position is a row key or a prefix of some. One inside the snapshots of a blob stands for the later ones and the blob
//! itself, whose own row sorts before it.

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::ListBlobs;
use crate::index::api::ListEntry;
use crate::index::api::ListPage;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::objects::page::Window;
use crate::index::objects::values;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// List Blobs: one page.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListBlobs,
) -> Result<ListPage, Error> {
    let prefix = RoutingKey::prefix(list.account, list.container, &list.prefix, list.collation);
    let mut window = Window::new(&prefix, list.position(), range);
    let hint = if list.delimiter.is_some() { 0 } else { list.limit.saturating_add(1) };
    let open = |family| {
        Cursor::new(view, family, window.position.clone(), window.to.clone()).expecting(hint)
    };
    let mut rows = Merge {
        committed: Cursor::new(view, Family::Main, blob_of(&window.position), window.to.clone())
            .expecting(hint),
        staged: list.uncommitted.then(|| open(Family::Staged)),
        snapshots: list.snapshots.then(|| open(Family::Versions)),
    };
    let (mut entries, mut after) = (Vec::new(), Vec::new());
    while let Some((family, key)) = rows.first().await? {
        if entries.len() >= list.limit {
            return Ok(ListPage { entries, after, next: Some(window.position) });
        }
        let name = key
            .name(list.collation)
            .ok_or_else(|| keys::corrupt(family, key.as_bytes(), "no blob name"))?;
        if let Some(group) = group(list, &name) {
            window.position = after_group(list, &group);
            entries.push(ListEntry::Prefix { name: group });
        } else if family == Family::Versions {
            let row = taken(rows.snapshots.as_mut()).await?;
            window.position = keys::just_after(&row.key);
            let snapshot = Some(keys::parse_snapshot(&row.key, &key)?);
            entries.push(blob_entry(family, &row, name, snapshot)?);
            after.push(window.position.clone());
            continue;
        } else {
            window.position = keys::after(&key);
            entries.push(if family == Family::Main {
                blob_entry(family, &taken(Some(&mut rows.committed)).await?, name, None)?
            } else {
                ListEntry::Uncommitted { name }
            });
        }
        after.push(window.position.clone());
        rows.seek(&window.position);
    }
    Ok(ListPage { entries, after, next: window.end() })
}

/// The families a listing is made of.
struct Merge<'a> {
    committed: Cursor<'a>,
    staged: Option<Cursor<'a>>,
    snapshots: Option<Cursor<'a>>,
}

impl Merge<'_> {
    /// The next name, and what is to be shown of it first: a snapshot, then the blob, then staged blocks alone.
    async fn first(&mut self) -> Result<Option<(Family, RoutingKey)>, Error> {
        let mut first: Option<(Family, RoutingKey)> = None;
        for (family, cursor) in [
            (Family::Versions, self.snapshots.as_mut()),
            (Family::Main, Some(&mut self.committed)),
            (Family::Staged, self.staged.as_mut()),
        ] {
            let Some(cursor) = cursor else { continue };
            let Some(row) = cursor.peek().await? else { continue };
            let key = keys::routing_key(family, &row.key)?;
            if first.as_ref().is_none_or(|(_, lowest)| key < *lowest) {
                first = Some((family, key));
            }
        }
        Ok(first)
    }

    fn seek(&mut self, position: &Bytes) {
        self.committed.seek(position);
        for cursor in [&mut self.staged, &mut self.snapshots].into_iter().flatten() {
            cursor.seek(position);
        }
    }
}

/// Where the committed blobs of a page start: at the blob itself when the page starts among its snapshots.
fn blob_of(position: &Bytes) -> Bytes {
    RoutingKey::of_row(position).map_or(position.clone(), |blob| blob.as_bytes().clone())
}

async fn taken(cursor: Option<&mut Cursor<'_>>) -> Result<Row, Error> {
    let row = match cursor {
        Some(cursor) => cursor.take().await?,
        None => None,
    };
    row.ok_or_else(|| Error::Corrupt("a row vanished from a view".to_owned()))
}

fn blob_entry(
    family: Family,
    row: &Row,
    name: String,
    snapshot: Option<Timestamp>,
) -> Result<ListEntry, Error> {
    let (record, _content) = values::decode_record_head(family, &row.key, &row.value)?;
    Ok(ListEntry::Blob { name, snapshot, record: Box::new(record) })
}

/// The group a name is folded into: up to and including the first delimiter after the prefix.
fn group(list: &ListBlobs, name: &str) -> Option<String> {
    let delimiter = list.delimiter.as_deref().filter(|d| !d.is_empty())?;
    let rest = name.get(list.prefix.len()..)?;
    let end = list.prefix.len() + rest.find(delimiter)? + delimiter.len();
    name.get(..end).map(str::to_owned)
}

/// The first position after all names of a group.
fn after_group(list: &ListBlobs, group: &str) -> Bytes {
    let prefix = RoutingKey::prefix(list.account, list.container, group, list.collation);
    RoutingKey::after_prefix(&prefix).unwrap_or_default()
}
