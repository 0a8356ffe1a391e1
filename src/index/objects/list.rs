//! List Blobs: merges the names of committed blobs and, on request, of staged blocks and snapshots.
//! Names with the delimiter are folded into groups, and the rest of a group is skipped with a seek.
//!
//! A position is a row key or a prefix of row keys. A position among the snapshots of a blob means
//! that the later snapshots and the blob itself follow, although the blob's own row sorts before
//! it.

use bytes::Bytes;

use crate::index::api::ENTRY_WEIGHT;
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

/// List Blobs: one page.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListBlobs,
) -> Result<ListPage, Error> {
    let prefix = RoutingKey::prefix(list.account, list.container, &list.prefix, list.collation);
    let mut window = Window::new(&prefix, list.position(), range);
    let hint = if list.delimiter.is_some() { 0 } else { list.limit.saturating_add(1) };
    let open = |family, from: Bytes| {
        let cursor = Cursor::new(view, family, from, window.to.clone()).expecting(hint);
        (family, cursor)
    };
    // Only snapshots continue inside a blob; the other families continue at its start.
    let (inside, blob) = (window.position.clone(), blob_of(&window.position));
    let mut cursors = Vec::new();
    cursors.extend(list.snapshots.then(|| open(Family::Versions, inside)));
    cursors.push(open(Family::Main, blob.clone()));
    cursors.extend(list.uncommitted.then(|| open(Family::Staged, blob)));
    let mut rows = MergedFamilies { view, start: window.position.clone(), cursors, paused: None };
    let (mut entries, mut after, mut weight) = (Vec::new(), Vec::new(), 0);
    while let Some((family, key)) = rows.first().await? {
        if entries.len() >= list.limit || weight >= list.weight_max {
            let (next, seen) = (Some(window.position), view.seen());
            return Ok(ListPage { entries, after, weight, next, seen });
        }
        weight += ENTRY_WEIGHT + key.as_bytes().len();
        let name = key
            .name(list.collation)
            .ok_or_else(|| keys::corrupt(family, key.as_bytes(), "no blob name"))?;
        if let Some(group) = group(list, &name) {
            window.pass(after_group(list, &group)).map_err(|violation| view.violated(violation))?;
            entries.push(ListEntry::Prefix { name: group });
        } else if family == Family::Versions {
            let row = rows.take(family).await?;
            window
                .pass(keys::just_after(&row.key))
                .map_err(|violation| view.violated(violation))?;
            let snapshot = Some(keys::parse_snapshot(&row.key, &key)?);
            let listed = values::decode_listed(family, &row, list.shown)?;
            weight += listed.weight;
            entries.push(ListEntry::Blob { name, snapshot, record: Box::new(listed.record) });
            after.push(window.position.clone());
            continue;
        } else {
            window.pass(keys::after(&key)).map_err(|violation| view.violated(violation))?;
            entries.push(if family == Family::Main {
                let row = rows.take(family).await?;
                let listed = values::decode_listed(family, &row, list.shown)?;
                weight += listed.weight;
                ListEntry::Blob { name, snapshot: None, record: Box::new(listed.record) }
            } else {
                ListEntry::Uncommitted { name }
            });
        }
        after.push(window.position.clone());
        rows.seek(&window.position);
    }
    // If the listing stopped between the snapshots of a blob and the blob itself, the next page
    // must not repeat the snapshots.
    let paused = rows.paused.map(|at| at.max(window.position.clone()));
    let next = paused.or_else(|| window.end());
    Ok(ListPage { entries, after, weight, next, seen: view.seen() })
}

/// The families of a listing. Of the rows of one blob, those of an earlier family in the list come
/// first.
struct MergedFamilies<'a> {
    view: &'a dyn Rows,
    /// The start of the page. A page does not stop here: each page must make progress.
    start: Bytes,
    cursors: Vec<(Family, Cursor<'a>)>,
    /// Where the listing stopped because the view is spent.
    paused: Option<Bytes>,
}

impl MergedFamilies<'_> {
    /// The next name, and the family of its first entry: snapshots come first, then the blob, then
    /// a blob with only staged blocks. `None` at the end, or if the view is spent and the listing
    /// has passed its start.
    async fn first(&mut self) -> Result<Option<(Family, RoutingKey)>, Error> {
        loop {
            // Only the cursor with the lowest position reads on, so that each family skips removed
            // rows once.
            let place = |cursor: &Cursor<'_>| cursor.bound().map(blob_of);
            let behind = self.cursors.iter_mut().filter(|(_, cursor)| cursor.bound().is_some());
            let behind = behind.min_by_key(|(_, cursor)| place(cursor));
            let Some((family, cursor)) = behind else { return Ok(None) };
            if let Some(row) = cursor.known() {
                let key = keys::routing_key(*family, &row.key)?;
                // Staged blocks have a summary before them. A blob without one has only uploads.
                if *family == Family::Staged && row.key != keys::staged_summary(&key) {
                    cursor.seek(&keys::after(&key));
                    continue;
                }
                return Ok(Some((*family, key)));
            }
            let bound = cursor.bound().filter(|bound| **bound > self.start);
            if bound.is_some() && self.view.is_spent() {
                self.paused = bound.cloned();
                return Ok(None);
            }
            cursor.step().await?;
            if cursor.known().is_none()
                && let Some(blob) = cursor.bound().and_then(|bound| passed(*family, bound))
            {
                cursor.seek(&keys::after(&blob));
            }
        }
    }

    async fn take(&mut self, family: Family) -> Result<Row, Error> {
        let cursor = self.cursors.iter_mut().find(|(of, _)| *of == family);
        let row = match cursor {
            Some((_, cursor)) => cursor.take().await?,
            None => None,
        };
        row.ok_or_else(|| Error::damaged_rows("a row that a view has shown is missing in it"))
    }

    fn seek(&mut self, position: &Bytes) {
        self.cursors.iter_mut().for_each(|(_, cursor)| cursor.seek(position));
    }
}

/// The start of the blob of a position. It is the position itself, unless that is among the rows of
/// a blob.
fn blob_of(position: &Bytes) -> Bytes {
    RoutingKey::of_row(position).map_or(position.clone(), |blob| blob.as_bytes().clone())
}

/// The blob at this position, if the only row of it that a listing needs is before the position. Of
/// snapshots a listing needs every row.
fn passed(family: Family, position: &Bytes) -> Option<RoutingKey> {
    let blob = RoutingKey::of_row(position)?;
    let is_passed = match family {
        Family::Main => position > blob.as_bytes(),
        Family::Staged => *position > keys::staged_summary(&blob),
        Family::Versions | Family::Layout | Family::Garbage | Family::Work => false,
    };
    is_passed.then_some(blob)
}

/// The group into which a name is folded: the name up to and including the first delimiter after
/// the prefix.
pub(super) fn group(list: &ListBlobs, name: &str) -> Option<String> {
    let delimiter = list.delimiter.as_deref().filter(|d| !d.is_empty())?;
    let rest = name.get(list.prefix.len()..)?;
    let end = list.prefix.len() + rest.find(delimiter)? + delimiter.len();
    name.get(..end).map(str::to_owned)
}

/// The first position after all names of a group.
pub(super) fn after_group(list: &ListBlobs, group: &str) -> Bytes {
    let prefix = RoutingKey::prefix(list.account, list.container, group, list.collation);
    RoutingKey::after_prefix(&prefix).unwrap_or_default()
}
