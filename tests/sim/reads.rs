//! Reads of a client, compared with the reference model.

use std::ops::Range;

use blockyard::index::BlobView;
use blockyard::index::BlockView;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::History;
use blockyard::index::ListBlobs;
use blockyard::index::ListEntry;
use blockyard::index::ListedFields;
use blockyard::index::PAGE_WEIGHT_MAX;
use blockyard::index::Piece;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::index::ReadPages;
use blockyard::index::ReadReply;
use blockyard::index::Refused;
use blockyard::types::ByteRange;
use blockyard::types::RoutingKey;
use blockyard::types::Timestamp;
use bytes::Bytes;

use crate::change::Demand;
use crate::change::TagDemand;
use crate::client::Client;
use crate::content::Body;
use crate::content::Segment;
use crate::index::NAMES;
use crate::index::SHARED;
use crate::index::is_shared;
use crate::index::key;
use crate::index::shared_name;
use crate::model::Blob;
use crate::requests::block_id;
use crate::requests::guard;
use crate::requests::is_refusal;
use crate::rig::Failing;
use crate::seeds::Violation;
use crate::state::Committed;
use crate::state::State;
use crate::when::When;
use blockyard::types::Revision;

/// The result of a read, or a failure that the session's fault excuses.
pub(crate) enum Seen<T> {
    Value(T),
    Excused,
}

/// The result of a read of a blob.
pub(crate) enum Found {
    Missing,
    Archived,
    PastEnd(u64),
    Bytes { view: Box<BlobView>, bytes: Bytes },
}

impl Found {
    fn what(&self) -> String {
        match self {
            Self::Missing => "no blob".to_owned(),
            Self::Archived => "an archived blob".to_owned(),
            Self::PastEnd(len) => format!("a range past the end {len}"),
            Self::Bytes { view, .. } => format!("{:?}", view.record),
        }
    }

    /// Whether this committed blob may give this result.
    fn fits(&self, committed: Option<&mut Committed>, when: When) -> bool {
        let Some(committed) = committed else { return matches!(self, Self::Missing) };
        match self {
            Self::Missing => false,
            Self::Archived => committed.may_be_archived(true, when),
            Self::PastEnd(len) => {
                committed.body.len() == *len && committed.may_be_archived(false, when)
            }
            Self::Bytes { view, bytes } => {
                committed.see(&view.record, when)
                    && committed.may_be_archived(false, when)
                    && committed.body.bytes(&view.range) == *bytes
            }
        }
    }
}

impl Client<'_> {
    /// Reads a blob, or a range of it.
    pub(crate) async fn check_blob(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let range = if draw.percent(50) {
            let first = draw.between(0, 60_000);
            ByteRange::new(first, Some(first + draw.between(0, 60_000)))
        } else {
            None
        };
        self.check_range(name, None, range).await
    }

    /// Reads one of the snapshots, if there are any.
    pub(crate) async fn check_snapshot(&self, name: &str) -> Result<(), Violation> {
        // Another client may have deleted the snapshot of a shared name.
        let snapshots = if is_shared(name) { Vec::new() } else { self.likely(name).snapshots };
        match self.session.draw.one(&snapshots).and_then(|taken| taken.at) {
            Some(at) => self.check_range(name, Some(at), None).await,
            None => Ok(()),
        }
    }

    async fn check_range(
        &self,
        name: &str,
        snapshot: Option<Timestamp>,
        range: Option<ByteRange>,
    ) -> Result<(), Violation> {
        let before = self.now();
        let ticket = self.with_blob(name, Blob::look);
        let found = match self.read(name, snapshot, range).await {
            Ok(Seen::Value(found)) => found,
            Ok(Seen::Excused) => return self.with_blob(name, |blob| blob.looked_away(ticket)),
            Err(why) => return Err(format!("{name}: {why}")),
        };
        let when = When { from: before, to: self.now() };
        let what = format!("{} of {snapshot:?}", found.what());
        let fits = move |state: &mut State| match snapshot {
            None => {
                let right = match (&found, &state.committed) {
                    (Found::Bytes { view, .. }, Some(_)) => {
                        view.record.snapshots as usize == state.snapshots.len()
                    }
                    _ => true,
                };
                right && found.fits(state.committed.as_mut(), when)
            }
            Some(at) => {
                let taken = state.snapshots.iter_mut().find(|taken| taken.at == Some(at));
                found.fits(taken.map(|taken| &mut taken.was), when)
            }
        };
        let result = self.with_blob(name, |blob| blob.seen_by(ticket, &what, fits));
        result.map_err(|why| format!("{name}: {why}"))
    }

    pub(crate) async fn read(
        &self,
        name: &str,
        snapshot: Option<Timestamp>,
        range: Option<ByteRange>,
    ) -> Result<Seen<Found>, Violation> {
        let mut reading = self.stack.inflight.read(self.stack.env.clock.monotonic());
        let mut view = match self.view(name, snapshot, range, Demand::default()).await {
            Ok(view) => view,
            Err(Error::Refused(Refused::BlobNotFound)) => return Ok(Seen::Value(Found::Missing)),
            Err(Error::Refused(Refused::Archived | Refused::Rehydrating)) => {
                return Ok(Seen::Value(Found::Archived));
            }
            Err(Error::Refused(Refused::InvalidRange { len })) => {
                return Ok(Seen::Value(Found::PastEnd(len)));
            }
            Err(error) => return self.excuse(Failing::of_rows(&error), &error),
        };
        reading.names(view.pieces.iter().filter_map(Piece::extent));
        let mut bytes = Vec::new();
        let mut pieces = std::mem::take(&mut view.pieces);
        let mut end = view.pieces_end;
        loop {
            for piece in std::mem::take(&mut pieces) {
                match piece {
                    Piece::Inline(inline) => bytes.extend_from_slice(&inline),
                    Piece::Zeros(len) => {
                        bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
                    }
                    Piece::Stored { location, range } => {
                        match self.stack.capacity.read(&location, range).await {
                            Ok(parts) => bytes.extend_from_slice(&parts.concat()),
                            Err(error) => return self.excuse(Failing::Bytes, &error),
                        }
                    }
                    Piece::Encrypted { .. } | Piece::Authenticated { .. } => {
                        panic!("no request came with a key")
                    }
                }
            }
            if end >= view.range.end {
                break;
            }
            let rest = ByteRange::new(end, Some(view.range.end - 1));
            let same = Demand { tag: TagDemand::IfMatch(view.record.etag), lease: None };
            reading.looks_up();
            match self.view(name, snapshot, rest, same).await {
                Ok(more) => {
                    reading.names(more.pieces.iter().filter_map(Piece::extent));
                    (pieces, end) = (more.pieces, more.pieces_end);
                }
                // Another client changed it meanwhile.
                Err(error) if is_shared(name) && is_refusal(&error) => return Ok(Seen::Excused),
                Err(error) => return self.excuse(Failing::of_rows(&error), &error),
            }
        }
        Ok(Seen::Value(Found::Bytes { view, bytes: bytes.into() }))
    }

    pub(crate) async fn view(
        &self,
        name: &str,
        snapshot: Option<Timestamp>,
        range: Option<ByteRange>,
        demand: Demand,
    ) -> Result<Box<BlobView>, Error> {
        let key = key(name);
        let position = RoutingKey::blob(&key);
        let guard = guard(demand);
        let revision = snapshot.into();
        let read = Read::Blob(ReadBlob { key, revision, guard, range, pieces: true });
        let reply = self.stack.router.read(position.as_bytes(), read).await?;
        let ReadReply::Blob(view) = reply else { panic!("a blob was asked for: {reply:?}") };
        Ok(view)
    }

    pub(crate) fn excuse<T>(
        &self,
        failing: Failing,
        error: &dyn std::fmt::Display,
    ) -> Result<Seen<T>, Violation> {
        if self.excused(failing) {
            return Ok(Seen::Excused);
        }
        Err(format!("{failing:?} with {:?}: {error}", self.session.plan))
    }

    /// Reads the block lists or the page ranges.
    pub(crate) async fn check_layout(&self, name: &str) -> Result<(), Violation> {
        let body = self.likely(name).committed.map(|committed| committed.body);
        let result = match body {
            // Page ranges take several requests, and others may change the blob between two.
            Some(Body::Pages(_)) if is_shared(name) => Ok(()),
            Some(Body::Pages(pages)) => self.check_pages(name, pages.len).await,
            Some(Body::Appended { .. }) => Ok(()),
            Some(Body::Blocks(_)) | None => self.check_blocks(name).await,
        };
        result.map_err(|why| format!("{name}: {why}"))
    }

    async fn check_blocks(&self, name: &str) -> Result<(), Violation> {
        let key = key(name);
        let position = RoutingKey::blob(&key);
        let read = Read::BlockList(key, Revision::Current, Guard::default());
        let ticket = self.with_blob(name, Blob::look);
        let (committed, uncommitted) = match self.stack.router.read(position.as_bytes(), read).await
        {
            Ok(ReadReply::BlockList(list)) => (list.committed, list.uncommitted),
            Ok(other) => return Err(format!("unexpected answer {other:?}")),
            Err(Error::Refused(Refused::BlobNotFound)) => (Vec::new(), Vec::new()),
            Err(Error::Refused(Refused::WrongKind)) => {
                let fits = |state: &mut State| {
                    let body = state.committed.as_ref().map(|committed| &committed.body);
                    body.is_some_and(|body| !matches!(body, Body::Blocks(_)))
                };
                return self.with_blob(name, |blob| blob.seen_by(ticket, "no block blob", fits));
            }
            Err(error) => {
                self.excuse::<()>(Failing::of_rows(&error), &error)?;
                return self.with_blob(name, |blob| blob.looked_away(ticket));
            }
        };
        let what = format!("blocks {committed:?}, uncommitted {uncommitted:?}");
        let same = |segments: Vec<&Segment>, views: &[BlockView]| {
            segments.len() == views.len()
                && segments.iter().zip(views).all(|(segment, view)| {
                    Some(&view.id) == segment.id.map(block_id).as_ref() && view.len == segment.len
                })
        };
        let fits = move |state: &mut State| {
            let body = state.committed.as_ref().map(|committed| &committed.body);
            let blocks: Vec<&Segment> = match body {
                None => Vec::new(),
                Some(Body::Blocks(segments)) => {
                    segments.iter().filter(|segment| segment.id.is_some()).collect()
                }
                Some(Body::Appended { .. } | Body::Pages(_)) => return false,
            };
            same(blocks, &committed) && same(state.staged.values().collect(), &uncommitted)
        };
        self.with_blob(name, |blob| blob.seen_by(ticket, &what, fits))
    }

    /// Reads page ranges, with several requests.
    async fn check_pages(&self, name: &str, len: u64) -> Result<(), Violation> {
        if len == 0 {
            // No request is made, so nothing is compared.
            return Ok(());
        }
        let key = key(name);
        let position = RoutingKey::blob(&key);
        let limit = usize::try_from(self.session.draw.between(1, 50)).unwrap();
        let (mut ranges, mut from): (Vec<Range<u64>>, _) = (Vec::new(), Some(0));
        while let Some(start) = from.filter(|start| *start < len) {
            let range = ByteRange::new(start, Some(len - 1));
            let read = ReadPages {
                key: key.clone(),
                revision: Revision::Current,
                since: None,
                guard: Guard::default(),
                range,
                limit,
            };
            match self.stack.router.read(position.as_bytes(), Read::Pages(read)).await {
                Ok(ReadReply::Pages(page)) => {
                    for one in page.ranges {
                        match ranges.last_mut() {
                            Some(last) if last.end == one.range.start => last.end = one.range.end,
                            _ => ranges.push(one.range),
                        }
                    }
                    from = page.next;
                }
                Ok(other) => return Err(format!("unexpected answer {other:?}")),
                // A possible but rare outcome; a read of the blob decides whether it is right.
                Err(Error::Refused(
                    Refused::BlobNotFound | Refused::WrongKind | Refused::InvalidRange { .. },
                )) => {
                    return Ok(());
                }
                Err(error) => {
                    return self.excuse::<()>(Failing::of_rows(&error), &error).map(|_| ());
                }
            }
        }
        let fits = |state: &mut State| match &state.committed {
            Some(Committed { body: Body::Pages(pages), .. }) => pages.ranges(&(0..len)) == ranges,
            Some(_) | None => false,
        };
        self.with_blob(name, |blob| blob.see(&format!("pages {ranges:?} below {len}"), fits))
    }

    /// Lists the client's own names, page by page.
    pub(crate) async fn check_list(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let mut list = ListBlobs {
            account: key("x").account,
            container: key("x").container,
            collation: key("x").collation,
            prefix: format!("{}/", self.number),
            delimiter: None,
            start_from: None,
            end_before: None,
            from: None,
            limit: usize::try_from(draw.between(1, 4)).unwrap(),
            weight_max: PAGE_WEIGHT_MAX,
            uncommitted: draw.percent(50),
            history: if draw.percent(50) { History::Snapshots } else { History::None },
            deleted: false,
            versions_only: false,
            shown: ListedFields::ALL,
        };
        let before = self.now();
        let mut entries = Vec::new();
        loop {
            let page = match self.stack.router.list(&list).await {
                Ok(page) => page,
                Err(error) => {
                    return self.excuse::<()>(Failing::of_rows(&error), &error).map(|_| ());
                }
            };
            if page.entries.len() > list.limit {
                return Err(format!("{} entries, asked for {}", page.entries.len(), list.limit));
            }
            entries.extend(page.entries);
            list.from = page.next;
            if list.from.is_none() {
                break;
            }
        }
        self.see_list(&entries, &list, When { from: before, to: self.now() })
    }

    fn see_list(
        &self,
        entries: &[ListEntry],
        list: &ListBlobs,
        when: When,
    ) -> Result<(), Violation> {
        // The blob itself is listed after its snapshots.
        let places: Vec<(&str, Timestamp)> = entries
            .iter()
            .map(|entry| match entry {
                ListEntry::Blob { name, revision, .. } => {
                    let taken = revision.snapshot().unwrap_or(Timestamp::from_ticks(u64::MAX));
                    (name.as_str(), taken)
                }
                ListEntry::VersionsOnly { name, .. }
                | ListEntry::Uncommitted { name }
                | ListEntry::Upload { name, .. }
                | ListEntry::Prefix { name } => (name.as_str(), Timestamp::ZERO),
            })
            .collect();
        if !places.is_sorted_by(|a, b| a < b) {
            return Err(format!("list out of order, or twice the same: {places:?}"));
        }
        for number in 0..NAMES {
            let name = format!("{}/{number}", self.number);
            let own: Vec<&ListEntry> =
                entries.iter().zip(&places).filter(|(_, p)| p.0 == name).map(|(e, _)| e).collect();
            let what = format!("{own:?} in a list, {list:?}");
            let fits = |state: &mut State| is_listed(&own, list, state, when);
            let result = self.with_blob(&name, |blob| blob.see(&what, fits));
            result.map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }

    /// Reads all blobs of the client, their blocks and their list.
    pub(crate) async fn check_all(&self) -> Result<(), Violation> {
        self.check_list().await?;
        for number in 0..NAMES {
            let name = format!("{}/{number}", self.number);
            self.check_layout(&name).await?;
            self.check_uploads(&name).await?;
            self.check_range(&name, None, None).await?;
            for taken in self.likely(&name).snapshots {
                if taken.at.is_some() {
                    self.check_range(&name, taken.at, None).await?;
                }
            }
        }
        self.check_upload_list().await?;
        self.check_list().await
    }

    /// Reads the names that all clients change, while no client changes them.
    pub(crate) async fn check_shared(&self) -> Result<(), Violation> {
        for number in 0..SHARED {
            let name = shared_name(number);
            self.check_blocks(&name).await.map_err(|why| format!("{name}: {why}"))?;
            self.check_uploads(&name).await?;
            self.check_range(&name, None, None).await?;
        }
        Ok(())
    }
}

/// Whether a list shows these entries of a blob in this state.
fn is_listed(entries: &[&ListEntry], list: &ListBlobs, state: &mut State, when: When) -> bool {
    let mut entries = entries.iter();
    for taken in state.snapshots.iter_mut().filter(|_| list.history == History::Snapshots) {
        let Some(ListEntry::Blob { revision: Revision::Snapshot(at), record, .. }) = entries.next()
        else {
            return false;
        };
        if taken.at.is_some_and(|known| known != *at) || !taken.was.see(record, when) {
            return false;
        }
        taken.at = Some(*at);
    }
    let base = match (entries.next(), state.committed.as_mut()) {
        (Some(ListEntry::Blob { revision: Revision::Current, record, .. }), Some(committed)) => {
            record.snapshots as usize == state.snapshots.len() && committed.see(record, when)
        }
        (Some(ListEntry::Uncommitted { .. }), None) => list.uncommitted && !state.staged.is_empty(),
        (None, None) => !list.uncommitted || state.staged.is_empty(),
        (None | Some(_), _) => false,
    };
    base && entries.next().is_none()
}
