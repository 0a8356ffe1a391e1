//! List Blobs: merges the names of committed blobs and, on request, of staged blocks and snapshots.
//! Names with the delimiter are folded into groups, and the rest of a group is skipped with a seek.
//!
//! A position is a row key or a prefix of row keys. A position among the snapshots of a blob means
//! that the later snapshots and the blob itself follow, although the blob's own row sorts before
//! it.

use bytes::Bytes;

use crate::index::api::ENTRY_WEIGHT;
use crate::index::api::Error;
use crate::index::api::History;
use crate::index::api::ListBlobs;
use crate::index::api::ListEntry;
use crate::index::api::ListPage;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Place;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::list_versions;
use crate::index::objects::list_versions::Oldest;
use crate::index::objects::page::Window;
use crate::index::objects::restorable::Restorable;
use crate::index::objects::values;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// List Blobs: one page.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListBlobs,
    now: Timestamp,
) -> Result<ListPage, Error> {
    let prefix = RoutingKey::prefix(list.account, list.container, &list.prefix, list.collation);
    let mut window = Window::new(&prefix, list.position(), range).ending(list.end());
    let is_down = list.history == History::VersionsDown;
    let mut rows = MergedFamilies::open(view, &window, list);
    let (mut entries, mut after, mut weight) = begin(&mut rows, &mut window, list).await?;
    let mut asked = None;
    while let Some((family, key)) = rows.first().await? {
        if entries.len() >= list.limit || weight >= list.weight_max {
            let (next, seen) = (Some(window.position), view.seen());
            return Ok(ListPage { entries, after, weight, next, seen });
        }
        let mut only = None;
        if family == Family::Versions {
            // The entry comes before the rows of its blob.
            let is_asked = asked.as_ref() == Some(&key);
            if list.versions_only && !is_asked && window.position <= *key.as_bytes() {
                asked = Some(key.clone());
                only = list_versions::only_versions(view, &key, now).await?;
            }
            if only.is_none() && !rows.pass_hidden(list, &key, now).await? {
                continue;
            }
        }
        weight += ENTRY_WEIGHT + key.as_bytes().len();
        let name = key
            .name(list.collation)
            .ok_or_else(|| keys::corrupt(family, key.as_bytes(), "no blob name"))?;
        if let Some(group) = group(list, &name) {
            window.pass(after_group(list, &group)).map_err(|violation| view.violated(violation))?;
            entries.push(ListEntry::Prefix { name: group });
        } else if let Some(row) = only {
            window
                .pass(keys::just_after(key.as_bytes()))
                .map_err(|violation| view.violated(violation))?;
            let listed = values::decode_listed(family, &row, list.shown)?;
            weight += listed.weight;
            entries.push(ListEntry::VersionsOnly { name, record: Box::new(listed.record) });
            after.push(window.position.clone());
            continue;
        } else if family == Family::Versions {
            weight -= ENTRY_WEIGHT + key.as_bytes().len();
            let mut page = Page { list, now, entries, after, weight };
            history(&mut rows, &mut window, &key, &mut page).await?;
            Page { entries, after, weight, .. } = page;
            continue;
        } else {
            let has_versions = family == Family::Main && is_down;
            let passed = behind(&mut window, &key, has_versions);
            window.pass(passed).map_err(|violation| view.violated(violation))?;
            entries.push(if family == Family::Main {
                let row = rows.take(family).await?;
                let listed = values::decode_listed(family, &row, list.shown)?;
                weight += listed.weight;
                let record = Box::new(listed.record);
                ListEntry::Blob { name, revision: Revision::Current, record }
            } else {
                ListEntry::Uncommitted { name }
            });
        }
        after.push(window.position.clone());
        rows.seek(&window.position);
    }
    let paused = match rows.paused {
        Some(at) => Some(resumed(view, at, &window, list).await?),
        None => None,
    };
    let next = paused.or_else(|| window.end());
    Ok(ListPage { entries, after, weight, next, seen: view.seen() })
}

/// The position behind the row of a blob: before its versions, if the list has them next.
fn behind(window: &mut Window, blob: &RoutingKey, has_versions: bool) -> Bytes {
    if has_versions { keys::just_after(blob.as_bytes()) } else { window.after_blob(blob) }
}

/// The start of the page after a listing that paused at `at`.
async fn resumed(
    view: &dyn Rows,
    at: Bytes,
    window: &Window,
    list: &ListBlobs,
) -> Result<Bytes, Error> {
    // Every page that pauses among the other rows of a blob comes after its current blob. The next
    // page must not mistake the current blob for one that was promoted since. This holds also if
    // the page paused before the versions: the client then names the newest time as the one that
    // the page has passed.
    let passed = RoutingKey::passed_version(&at);
    let shown = promoted(view, (&at, passed), list).await?;
    // If the listing stopped between the snapshots of a blob and the blob itself, the next page
    // must not repeat the snapshots.
    Ok(shown.map_or(at, |shown| shown.position).max(window.position.clone()))
}

/// The entries that come before the rows of a page, with the positions behind them and their
/// weight.
async fn begin(
    rows: &mut MergedFamilies<'_>,
    window: &mut Window,
    list: &ListBlobs,
) -> Result<(Vec<ListEntry>, Vec<Bytes>, usize), Error> {
    let view = rows.view;
    let begin = &window.position;
    let passed = RoutingKey::of_row(begin).and_then(|key| keys::version_passed(begin, &key));
    let Some(promoted) = promoted(view, (begin, passed), list).await? else {
        return Ok((Vec::new(), Vec::new(), 0));
    };
    window.pass(promoted.position).map_err(|violation| view.violated(violation))?;
    rows.seek(&window.position);
    Ok((vec![promoted.entry], vec![window.position.clone()], promoted.weight))
}

/// A current blob that a newest-first list has not passed, although it begins among the versions of
/// the blob.
struct Promoted {
    entry: ListEntry,
    weight: usize,
    /// The position behind it.
    position: Bytes,
}

/// The current blob that a page has to begin with: it became current after the previous page,
/// because the newest version was removed. It is then older than the version behind which the page
/// begins, and newer than every version that is left. A blob that Undelete Blob made current may be
/// older than versions; a list shows such a blob before them.
async fn promoted(
    view: &dyn Rows,
    (begin, passed): (&Bytes, Option<Timestamp>),
    list: &ListBlobs,
) -> Result<Option<Promoted>, Error> {
    let Some(passed) = passed.filter(|_| list.history == History::VersionsDown) else {
        return Ok(None);
    };
    let Some(key) = RoutingKey::of_row(begin) else { return Ok(None) };
    let Some(value) = view.get(Family::Main, key.as_bytes()).await? else { return Ok(None) };
    let row = Row { key: key.as_bytes().clone(), value };
    let listed = values::decode_listed(Family::Main, &row, list.shown)?;
    let record = Box::new(listed.record);
    let time = record.version().map_or(record.last_modified, |version| version.time);
    if time >= passed || list_versions::newest(view, &key).await? > Some(time) {
        return Ok(None);
    }
    let name = key
        .name(list.collation)
        .ok_or_else(|| keys::corrupt(Family::Main, key.as_bytes(), "no blob name"))?;
    let weight = ENTRY_WEIGHT + key.as_bytes().len() + listed.weight;
    Ok(Some(match group(list, &name) {
        Some(group) => {
            let position = after_group(list, &group);
            Promoted { entry: ListEntry::Prefix { name: group }, weight, position }
        }
        None => Promoted {
            entry: ListEntry::Blob { name, revision: Revision::Current, record },
            weight,
            position: keys::just_after(&keys::version(&key, time)),
        },
    }))
}

/// A page that is being filled.
struct Page<'a> {
    list: &'a ListBlobs,
    now: Timestamp,
    entries: Vec<ListEntry>,
    after: Vec<Bytes>,
    weight: usize,
}

impl Page<'_> {
    fn is_full(&self) -> bool {
        self.entries.len() >= self.list.limit || self.weight >= self.list.weight_max
    }

    fn add(&mut self, key: &RoutingKey, row: &Row, revision: Revision) -> Result<(), Error> {
        let name = key
            .name(self.list.collation)
            .ok_or_else(|| keys::corrupt(Family::Versions, key.as_bytes(), "no blob name"))?;
        let listed = values::decode_listed(Family::Versions, row, self.list.shown)?;
        self.weight += ENTRY_WEIGHT + key.as_bytes().len() + listed.weight;
        self.entries.push(ListEntry::Blob { name, revision, record: Box::new(listed.record) });
        Ok(())
    }
}

/// Adds the next row of the versions family to the page.
async fn history(
    rows: &mut MergedFamilies<'_>,
    window: &mut Window,
    key: &RoutingKey,
    page: &mut Page<'_>,
) -> Result<(), Error> {
    let row = rows.take(Family::Versions).await?;
    let revision = match (keys::parse_version(&row.key, key)?, page.list.history) {
        (VersionKey::Null, _) => return Ok(()),
        (VersionKey::Deleted(at), _) => match at.state {
            DeletedState::Version => Revision::Version(at.time),
            DeletedState::Blob if list_versions::is_base(rows.view, key, at, page.now).await? => {
                Revision::Current
            }
            DeletedState::Blob | DeletedState::Snapshot => Revision::Snapshot(at.time),
        },
        (VersionKey::Version(_), History::VersionsUp { .. }) => {
            return versions_up(rows, window, key, page).await;
        }
        (VersionKey::Snapshot(taken), _) => Revision::Snapshot(taken),
        (VersionKey::Version(time), _) => Revision::Version(time),
    };
    let view = rows.view;
    window.pass(keys::just_after(&row.key)).map_err(|violation| view.violated(violation))?;
    page.add(key, &row, revision)?;
    page.after.push(window.position.clone());
    Ok(())
}

/// Adds the oldest versions of a blob, as many as the page has room for. The rows are newest first,
/// so all of them are read, and the times of the oldest are kept.
async fn versions_up(
    rows: &mut MergedFamilies<'_>,
    window: &mut Window,
    key: &RoutingKey,
    page: &mut Page<'_>,
) -> Result<(), Error> {
    let view = rows.view;
    loop {
        let shown = keys::version_up_of(&window.position, key);
        let Oldest { times, has_more } = list_versions::oldest(view, key, shown).await?;
        for time in times {
            if page.is_full() {
                return Ok(());
            }
            let position = keys::version_up(key, time);
            window.pass(position).map_err(|violation| view.violated(violation))?;
            let row = keys::version(key, time);
            let value = view.get(Family::Versions, &row).await?;
            let value = value.ok_or_else(|| keys::corrupt(Family::Versions, &row, "is gone"))?;
            page.add(key, &Row { key: row, value }, Revision::Version(time))?;
            page.after.push(window.position.clone());
        }
        if !has_more {
            rows.seek_in(Family::Versions, &keys::after(key));
            return Ok(());
        }
    }
}

/// The families of a listing. Of the rows of one blob, those of an earlier family in the list come
/// first.
struct MergedFamilies<'a> {
    view: &'a dyn Rows,
    /// The start of the page. A page does not stop here: each page must make progress.
    start: Bytes,
    cursors: Vec<(Family, Cursor<'a>)>,
    /// Whether the page must not stop among the rows of a blob. It has to begin before them to show
    /// the blob as a whole, or its versions oldest first.
    is_by_blob: bool,
    /// Where the listing stopped because the view is spent.
    paused: Option<Bytes>,
}

impl<'a> MergedFamilies<'a> {
    /// The families that a list has.
    fn open(view: &'a dyn Rows, window: &Window, list: &ListBlobs) -> Self {
        let hint = if list.delimiter.is_some() { 0 } else { list.limit.saturating_add(1) };
        let open = |family, from: Bytes| {
            let cursor = Cursor::new(view, family, from, window.to.clone()).expecting(hint);
            (family, cursor)
        };
        // Only snapshots and versions continue inside a blob; the other families continue at its
        // start. Where versions come after the current blob, a position inside says that it was
        // passed.
        let (inside, blob) = (window.position.clone(), blob_of(&window.position));
        let mut cursors = Vec::new();
        if list.history == History::VersionsDown {
            cursors.push(open(Family::Main, inside.clone()));
            cursors.push(open(Family::Versions, inside));
        } else {
            cursors.extend(list.has_versions_rows().then(|| open(Family::Versions, inside)));
            cursors.push(open(Family::Main, blob.clone()));
        }
        cursors.extend(list.uncommitted.then(|| open(Family::Staged, blob)));
        let is_up = matches!(list.history, History::VersionsUp { .. });
        let is_by_blob = list.versions_only || is_up;
        Self { view, start: window.position.clone(), cursors, is_by_blob, paused: None }
    }

    /// The next name, and the family of its first entry: snapshots come first, then the blob, then
    /// a blob with only staged blocks. `None` at the end, or if the view is spent and the listing
    /// has passed its start.
    async fn first(&mut self) -> Result<Option<(Family, RoutingKey)>, Error> {
        loop {
            // Only the cursor with the lowest position reads on, so that each family skips removed
            // rows once.
            let behind = self.cursors.iter_mut().filter(|(_, cursor)| cursor.bound().is_some());
            let behind = behind.min_by(|(_, a), (_, b)| blob_at(a).cmp(&blob_at(b)));
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
            let pause =
                |bound: &Bytes| if self.is_by_blob { blob_of(bound) } else { bound.clone() };
            let paused = cursor.bound().map(pause).filter(|at| *at > self.start);
            if paused.is_some() && self.view.is_spent() {
                self.paused = paused;
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

    /// Passes rows of the versions family that the list does not show. Returns whether it shows the
    /// next row, which belongs to `key`.
    async fn pass_hidden(
        &mut self,
        list: &ListBlobs,
        key: &RoutingKey,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let history = list.history;
        let of = self.cursors.iter().find(|(of, _)| *of == Family::Versions);
        let Some(row) = of.and_then(|(_, cursor)| cursor.known()) else { return Ok(false) };
        let next = match (keys::parse_version(&row.key, key)?, history) {
            (VersionKey::Null, _) => keys::just_after(&row.key),
            (VersionKey::Deleted(_), _) if !list.deleted => keys::deleted_end(key),
            (VersionKey::Deleted(at), _) => {
                let deleted = Restorable {
                    at,
                    blob: blob_row::decode(&row.key, &row.value, Place::Deleted(at))?,
                };
                let is_in_history = match at.state {
                    DeletedState::Version => history.has_versions(),
                    DeletedState::Snapshot => history.has_snapshots(),
                    DeletedState::Blob => {
                        history.has_snapshots()
                            || list_versions::is_base(self.view, key, at, now).await?
                    }
                };
                if is_in_history && deleted.is_left(now) {
                    return Ok(true);
                }
                keys::just_after(&row.key)
            }
            (
                VersionKey::Snapshot(_),
                History::Snapshots | History::VersionsUp { snapshots: true } | History::All,
            )
            | (VersionKey::Version(_), History::VersionsDown | History::All) => return Ok(true),
            (VersionKey::Version(_), History::VersionsUp { .. }) => {
                if !list_versions::is_delete_marker(row)? {
                    return Ok(true);
                }
                keys::just_after(&row.key)
            }
            (VersionKey::Snapshot(_), _) => keys::versions_start(key),
            (VersionKey::Version(_), History::None | History::Snapshots) => keys::after(key),
        };
        self.seek_in(Family::Versions, &next);
        Ok(false)
    }

    async fn take(&mut self, family: Family) -> Result<Row, Error> {
        let cursor = self.cursors.iter_mut().find(|(of, _)| *of == family);
        let row = match cursor {
            Some((_, cursor)) => cursor.take().await?,
            None => None,
        };
        row.ok_or_else(|| Error::damaged_rows("a row that a view has shown is missing in it"))
    }

    fn seek_in(&mut self, family: Family, position: &Bytes) {
        let of = self.cursors.iter_mut().filter(|(known, _)| *known == family);
        of.for_each(|(_, cursor)| cursor.seek(position));
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

/// The start of the blob at which a cursor is.
fn blob_at<'c>(cursor: &'c Cursor<'_>) -> Option<&'c [u8]> {
    cursor.bound().map(|at| RoutingKey::prefix_of_row(at).unwrap_or(at))
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
