//! List Blobs: a merge of committed and (if asked) staged names, with groups folded at the delimiter and skipped by a
//! seek.

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
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::RoutingKey;

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
    let mut committed = open(Family::Main);
    let mut staged = list.uncommitted.then(|| open(Family::Staged));
    let mut entries = Vec::new();
    while let Some((family, key)) = first(&mut committed, staged.as_mut()).await? {
        if entries.len() >= list.limit {
            return Ok(ListPage { entries, next: Some(window.position) });
        }
        let name = key
            .name(list.collation)
            .ok_or_else(|| keys::corrupt(family, key.as_bytes(), "no blob name"))?;
        let entry = if let Some(group) = group(list, &name) {
            window.position = after_group(list, &group);
            ListEntry::Prefix { name: group }
        } else {
            window.position = keys::after(&key);
            if family == Family::Main {
                blob_entry(&mut committed, name).await?
            } else {
                ListEntry::Uncommitted { name }
            }
        };
        entries.push(entry);
        committed.seek(&window.position);
        if let Some(staged) = &mut staged {
            staged.seek(&window.position);
        }
    }
    Ok(ListPage { entries, next: window.end() })
}

/// The next blob that is committed or has staged blocks; committed wins where it has both.
async fn first(
    committed: &mut Cursor<'_>,
    staged: Option<&mut Cursor<'_>>,
) -> Result<Option<(Family, RoutingKey)>, Error> {
    let main = match committed.peek().await? {
        Some(row) => Some(keys::routing_key(Family::Main, &row.key)?),
        None => None,
    };
    let Some(staged) = staged else {
        return Ok(main.map(|key| (Family::Main, key)));
    };
    let other = match staged.peek().await? {
        Some(row) => Some(keys::routing_key(Family::Staged, &row.key)?),
        None => None,
    };
    Ok(match (main, other) {
        (Some(main), Some(other)) if other < main => Some((Family::Staged, other)),
        (Some(main), _) => Some((Family::Main, main)),
        (None, other) => other.map(|key| (Family::Staged, key)),
    })
}

async fn blob_entry(committed: &mut Cursor<'_>, name: String) -> Result<ListEntry, Error> {
    let Some(row) = committed.take().await? else {
        return Err(Error::Corrupt("a row vanished from a view".to_owned()));
    };
    let (record, _content) = values::decode_record_head(Family::Main, &row.key, &row.value)?;
    Ok(ListEntry::Blob { name, record: Box::new(record) })
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
