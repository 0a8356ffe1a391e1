//! Get Blob, Get Blob Properties, Get Block List.

use std::ops::Range;

use bytes::Bytes;

use crate::index::api::BlobView;
use crate::index::api::BlockListView;
use crate::index::api::BlockView;
use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::Piece;
use crate::index::api::ReadBlob;
use crate::index::api::Refused;
use crate::index::objects::blob_row::Place;
use crate::index::objects::encryption;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::layout::Segments;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::spans::Overlay;
use crate::index::objects::staged;
use crate::index::objects::staged::StagedBlocks;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::Protection;
use crate::index::objects::values::StoredBytes;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobKey;
use crate::types::BlobKind;
use crate::types::CHUNK_BYTES;
use crate::types::Location;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Timestamp;
use crate::types::authenticated_range;

/// The most stretches of a page blob in one answer: more than 4 MiB of single pages.
const SPANS_MAX: usize = 10_000;
/// The most layout segments that one answer reads. The caller asks again from the end of the
/// pieces.
const SEGMENTS_MAX: usize = 2;

/// Get Blob, Get Blob Properties.
pub(super) async fn blob(
    view: &dyn Rows,
    read: &ReadBlob,
    now: Timestamp,
) -> Result<BlobView, Error> {
    let key = RoutingKey::blob(&read.key);
    let of = RevisionOf { revision: read.revision, guard: &read.guard };
    let blob = revision::load(view, &key, of).await?;
    guard::read(&read.guard, &blob.record, now)?;
    if read.pieces {
        guard::not_incremental(&blob.record)?;
    }
    if read.pieces && !read.guard.over_archived {
        guard::not_archived(&blob.record, now)?;
    }
    encryption::check(&read.guard.encryption, blob.record.under().as_ref())?;
    let len = blob.record.len;
    let range = match read.range {
        Some(range) => range.within(len).ok_or(Refused::InvalidRange { len })?,
        None => 0..len,
    };
    let wanted = read.pieces && !range.is_empty();
    let layout = if wanted { Some(blob.content(&key)?.layout) } else { None };
    let mut view_of = BlobView {
        pieces_end: range.start,
        range: range.clone(),
        pieces: Vec::new(),
        generation: None,
        is_current: blob.place() == Place::Main,
        record: blob.record,
    };
    let Some(layout) = layout else { return Ok(view_of) };
    let mut found = Found { range: range.clone(), at: 0, pieces: Vec::new() };
    match layout {
        Layout::Whole(content) => found.add(&content)?,
        Layout::Blocks(entries) => found.add_all(&entries)?,
        Layout::Segments { generation, directory } => {
            found.add_segments(view, &key, Segments { generation, directory: &directory }).await?;
        }
        Layout::Pages { layers } => {
            view_of.generation = layers.last().copied();
            found.at = range.start;
            found.add_spans(view, &key, &layers).await?;
        }
        Layout::Appended { generation, directory, tail } => {
            view_of.generation = Some(generation);
            let tail_len = tail.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.len));
            let tail_start = len.saturating_sub(tail_len);
            if range.start < tail_start {
                found
                    .add_segments(view, &key, Segments { generation, directory: &directory })
                    .await?;
            } else {
                found.at = tail_start;
            }
            if found.at == tail_start {
                found.add_all(&tail)?;
            }
        }
    }
    let pieces_end = found.at.min(range.end);
    if pieces_end <= range.start {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "layout shorter than the blob"));
    }
    Ok(BlobView { pieces: found.pieces, pieces_end, ..view_of })
}

/// Collects the pieces of content that cover a range of the blob.
struct Found {
    /// The wanted range of the blob.
    range: Range<u64>,
    /// The offset in the blob of the next content.
    at: u64,
    /// The pieces found so far.
    pieces: Vec<Piece>,
}

impl Found {
    /// Adds the wanted pieces of the first segments that the range touches.
    async fn add_segments(
        &mut self,
        view: &dyn Rows,
        key: &RoutingKey,
        segments: Segments<'_>,
    ) -> Result<(), Error> {
        let directory = segments.directory;
        let after = directory.partition_point(|segment| segment.start <= self.range.start);
        let first = after.saturating_sub(1);
        self.at = directory.get(first).map_or(0, |segment| segment.start);
        for (place, start) in segments.places().skip(first).take(SEGMENTS_MAX) {
            if self.at < self.range.end {
                self.add_all(&layout::segment(view, key, place, start.entries).await?)?;
            }
        }
        Ok(())
    }

    /// Adds a range of a page blob, as its layers show it: at most [`SPANS_MAX`] stretches.
    async fn add_spans(
        &mut self,
        view: &dyn Rows,
        key: &RoutingKey,
        layers: &[u64],
    ) -> Result<(), Error> {
        let mut overlay = Overlay::new(view, key, layers, &self.range).await?;
        while self.pieces.len() < SPANS_MAX
            && let Some(seen) = overlay.next().await?
        {
            let len = seen.range.end - seen.range.start;
            match seen.span.as_ref().and_then(|span| Some((span.skip, span.content.as_ref()?))) {
                Some((skip, content)) => self.add_span(skip, content, len)?,
                None => self.add_zeros(len),
            }
            self.at = seen.range.end;
        }
        Ok(())
    }

    /// Adds `len` bytes of the content of a span, after the first `skip` bytes.
    fn add_span(&mut self, skip: u64, content: &Content, len: u64) -> Result<(), Error> {
        let range = skip..skip.saturating_add(len);
        let held = match content.stored_bytes() {
            StoredBytes::Inline(bytes) => Held::Inline(bytes),
            StoredBytes::Locations(locations) => {
                let Some(location) = locations.first() else { return Ok(()) };
                Held::Stored(location)
            }
        };
        self.pieces.push(held.piece(content, 0, range)?);
        Ok(())
    }

    fn add_zeros(&mut self, more: u64) {
        match self.pieces.last_mut() {
            Some(Piece::Zeros(len)) => *len = len.saturating_add(more),
            _ => self.pieces.push(Piece::Zeros(more)),
        }
    }

    fn add_all(&mut self, entries: &[Entry]) -> Result<(), Error> {
        for entry in entries {
            if self.at >= self.range.end {
                break;
            }
            if entry.content.len() != entry.len {
                return Err(Error::damaged_rows("a block's length is not that of its bytes"));
            }
            self.add(&entry.content)?;
        }
        Ok(())
    }

    fn add(&mut self, content: &Content) -> Result<(), Error> {
        let start = self.at;
        match content.stored_bytes() {
            StoredBytes::Inline(bytes) => {
                if let Some(range) = self.advance(content.len())? {
                    self.pieces.push(Held::Inline(bytes).piece(content, 0, range)?);
                }
            }
            StoredBytes::Locations(locations) => {
                for location in locations {
                    let before = self.at - start;
                    if let Some(range) = self.advance(content.len_of(location.len.get()))? {
                        let piece = Held::Stored(location).piece(content, before, range)?;
                        self.pieces.push(piece);
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves past the next `len` bytes of the blob, and returns which of them are wanted.
    fn advance(&mut self, len: u64) -> Result<Option<Range<u64>>, Error> {
        let start = self.at;
        self.at = start
            .checked_add(len)
            .ok_or_else(|| Error::damaged_rows("a blob's layout is longer than 2^64"))?;
        let from = self.range.start.max(start);
        let to = self.range.end.min(self.at);
        Ok((from < to).then(|| from - start..to - start))
    }
}

/// One stretch of stored bytes: those in the row, or those of one location.
enum Held<'a> {
    Inline(&'a Bytes),
    Stored(&'a Location),
}

impl Held<'_> {
    /// The piece for `range` of these bytes, which come after `before` bytes of `content`.
    fn piece(&self, content: &Content, before: u64, range: Range<u64>) -> Result<Piece, Error> {
        match content.protection() {
            Protection::Plain => Ok(self.piece_of(range)),
            Protection::Encrypted(nonce) => {
                let at = before.saturating_add(range.start);
                Ok(Piece::Encrypted { nonce, at, piece: Box::new(self.piece_of(range)) })
            }
            Protection::Authenticated(_) if !before.is_multiple_of(CHUNK_BYTES) => {
                Err(Error::damaged_rows("a location begins inside an authenticated chunk"))
            }
            Protection::Authenticated(nonce) => {
                let piece = Box::new(self.piece_of(authenticated_range(&range, self.stored())));
                let range = before.saturating_add(range.start)..before.saturating_add(range.end);
                Ok(Piece::Authenticated { nonce, len: content.len(), range, piece })
            }
        }
    }

    /// The number of stored bytes.
    fn stored(&self) -> u64 {
        match self {
            Self::Inline(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::Stored(location) => location.len.get(),
        }
    }

    /// The stored bytes in `range`.
    fn piece_of(&self, range: Range<u64>) -> Piece {
        match *self {
            Self::Inline(bytes) => {
                let index = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Piece::Inline(bytes.slice(index(range.start)..index(range.end)))
            }
            Self::Stored(location) => Piece::Stored { location: *location, range },
        }
    }
}

/// A request for the blocks of a blob, a snapshot or a version.
pub(super) struct BlockListOf<'a> {
    pub(super) key: &'a BlobKey,
    pub(super) revision: Revision,
    pub(super) guard: &'a Guard,
}

/// Get Block List.
pub(super) async fn block_list(
    view: &dyn Rows,
    of: BlockListOf<'_>,
    now: Timestamp,
) -> Result<BlockListView, Error> {
    let BlockListOf { key, revision, guard } = of;
    let key = RoutingKey::blob(key);
    let of = RevisionOf { revision, guard };
    let blob = revision::find(view, &key, revision).await?;
    let blob = blob.filter(|blob| !blob.record.is_delete_marker());
    let summary = match revision {
        Revision::Current => staged::summary(view, &key).await?,
        Revision::Snapshot(_) | Revision::Version(_) | Revision::Null => None,
    };
    match &blob {
        Some(blob) => guard::read(guard, &blob.record, now)?,
        None if summary.is_none() => return Err(revision::missing(view, &key, of).await?),
        None => guard::lease_of_read(guard.lease, None, now)?,
    }
    let mut committed = Vec::new();
    if let Some(blob) = &blob {
        if blob.record.kind != BlobKind::Block {
            return Err(Refused::WrongKind.into());
        }
        let layout = blob.content(&key)?.layout;
        let entries = layout::entries(view, &key, &layout).await?;
        committed = entries.into_iter().map(|e| BlockView { id: e.id, len: e.len }).collect();
    }
    let mut uncommitted = Vec::new();
    if let Some(summary) = summary {
        let mut blocks = StagedBlocks::new(view, &key, &summary);
        while let Some((id, block)) = blocks.next().await? {
            uncommitted.push(BlockView { id, len: block.len });
        }
    }
    Ok(BlockListView { record: blob.map(|blob| blob.record), committed, uncommitted })
}
