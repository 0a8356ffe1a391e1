//! Put Page, and changes of the length and the sequence number of page blobs.
//!
//! If a span is overwritten in part, its remaining parts become spans. A location is garbage once
//! no span of its layer shows a part of it. All spans of a location are in the range for which it
//! was written, so a short walk around a change finds the others.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::index::api::Error;
use crate::index::api::PagesWritten;
use crate::index::api::Refused;
use crate::index::api::SequenceAction;
use crate::index::api::UpdatePages;
use crate::index::api::WritePages;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::lock;
use crate::index::objects::spans::LayerSpans;
use crate::index::objects::spans::Placed;
use crate::index::objects::tier_limits;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::DeadLayer;
use crate::index::objects::values::Layout;
use crate::index::objects::values::Span;
use crate::index::objects::values::StoredBytes;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::Etag;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::PAGE_BYTES;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// The most spans that one change removes; a larger change is made in steps. A Put Page of 4 MiB
/// meets at most 8,192.
const SPANS_MAX: usize = 10_000;

/// Put Page.
pub(super) async fn write(
    eval: &mut Evaluation<'_>,
    write: &WritePages,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&write.key);
    let PageBlob { mut blob, sequence, layers } = load(eval, &key).await?;
    blob.record.lease = guard::change(&write.guard, &blob.record, eval.now)?;
    guard::not_incremental(&blob.record)?;
    lock::may_change(&blob.record, eval.now)?;
    if !write.sequence.hold(sequence) {
        return Err(Refused::SequenceCondition.into());
    }
    let Range { start, end } = write.range;
    encryption::check_content(&write.guard.encryption, blob.record.under().as_ref())?;
    let len = blob.record.len;
    let whole = |offset: u64| offset.is_multiple_of(PAGE_BYTES);
    if start >= end || end > len || !whole(start) || !whole(end) {
        return Err(Refused::InvalidPages { len }.into());
    }
    let content = write.content.as_ref().map(Content::from);
    if content.as_ref().is_some_and(|content| content.len() != end - start) {
        return Err(Refused::InvalidPages { len }.into());
    }
    let mut change = Change::new(eval.view, &key, &layers);
    let done = change.take(&write.range).await?;
    let hides = (layers.len() > 1).then_some(Span { len: done - start, skip: 0, content: None });
    match content {
        Some(_) if done < end => return Err(Refused::InvalidPages { len }.into()),
        Some(content) => change.add(start, &content),
        None => change.put_span(done, hides),
    }
    change.finish(eval);
    let written = touch(eval, &mut blob, &key);
    let rest = (done < end).then_some(done);
    Ok(WriteReply::Pages(PagesWritten { written, sequence, rest }))
}

/// Set Blob Properties of a page blob.
pub(super) async fn update(
    eval: &mut Evaluation<'_>,
    update: &UpdatePages,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&update.key);
    let PageBlob { mut blob, sequence: old, layers } = load(eval, &key).await?;
    blob.record.lease = guard::change(&update.guard, &blob.record, eval.now)?;
    guard::not_incremental(&blob.record)?;
    lock::may_change(&blob.record, eval.now)?;
    encryption::check_change(&update.guard.encryption, blob.record.under().as_ref())?;
    let sequence = match update.sequence {
        None => old,
        Some(SequenceAction::Max(new)) => old.max(new),
        Some(SequenceAction::Update(new)) => new,
        Some(SequenceAction::Increment) => {
            let highest = u64::try_from(i64::MAX).unwrap_or(u64::MAX);
            if old >= highest {
                return Err(Refused::SequenceExhausted.into());
            }
            old.saturating_add(1)
        }
    };
    let mut rest = None;
    if let Some(len) = update.len {
        tier_limits::check_len(&blob.record, len)?;
        let dropped = len..blob.record.len;
        if !dropped.is_empty() {
            let mut change = Change::new(eval.view, &key, &layers);
            let done = change.take(&dropped).await?;
            let span = Span { len: done - len, skip: 0, content: None };
            change.put_span(done, (layers.len() > 1).then_some(span));
            change.finish(eval);
            rest = (done < dropped.end).then_some(done);
        }
        if rest.is_none() {
            blob.record.len = len;
        }
    }
    if rest.is_none() {
        blob.record.kind = BlobKind::Page { sequence };
        if let Some(properties) = &update.properties {
            encryption::check_properties(properties, blob.record.under().as_ref())?;
            blob.record.replace_properties(properties.clone());
        }
    }
    let written = touch(eval, &mut blob, &key);
    Ok(WriteReply::Pages(PagesWritten { written, sequence, rest }))
}

fn touch(eval: &mut Evaluation<'_>, blob: &mut Blob, key: &RoutingKey) -> Written {
    blob.record.last_modified = eval.now;
    blob.record.etag = Etag::from_commit(eval.now);
    eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Written::at(eval.now, blob.record.version())
}

/// The current state of a page blob.
struct PageBlob {
    blob: Blob,
    sequence: u64,
    /// The layers, newest first, at least one.
    layers: Vec<u64>,
}

async fn load(eval: &Evaluation<'_>, key: &RoutingKey) -> Result<PageBlob, Error> {
    let blob = blob_row::current(eval, key).await?.ok_or(Refused::BlobNotFound)?;
    let sequence = match blob.record.kind {
        BlobKind::Page { sequence } => sequence,
        BlobKind::Block | BlobKind::Append { .. } => return Err(Refused::WrongKind.into()),
    };
    let Layout::Pages { layers } = blob.content(key)?.layout else {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "not the layout of a page blob"));
    };
    if layers.is_empty() {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "a page blob without layers"));
    }
    Ok(PageBlob { blob, sequence, layers })
}

/// A change of the newest layer.
struct Change<'a> {
    view: &'a dyn Rows,
    key: &'a RoutingKey,
    layer: u64,
    /// Changed rows by the end of their span; `None` removes the row.
    rows: BTreeMap<u64, Option<Span>>,
    dropped: Vec<Location>,
    /// Shared bytes that the layer no longer shows. Other rows may name them.
    shared_dropped: u64,
}

impl<'a> Change<'a> {
    fn new(view: &'a dyn Rows, key: &'a RoutingKey, layers: &[u64]) -> Self {
        let layer = layers.first().copied().unwrap_or_default();
        Self { view, key, layer, rows: BTreeMap::new(), dropped: Vec::new(), shared_dropped: 0 }
    }

    /// Removes the spans of the layer in `range`. Returns the end of the part that was done.
    async fn take(&mut self, range: &Range<u64>) -> Result<u64, Error> {
        let mut spans = LayerSpans::new(self.view, self.key, self.layer, range);
        let mut taken = Vec::new();
        let mut done = range.end;
        while let Some(placed) = spans.next().await? {
            if taken.len() >= SPANS_MAX {
                done = placed.range.start;
                break;
            }
            taken.push(placed);
        }
        let mut kept: Vec<Location> = Vec::new();
        for placed in &taken {
            self.rows.insert(placed.range.end, None);
            let Range { start, end } = placed.range;
            if end > done {
                let right = placed.part(&(done..end));
                kept.extend(right.location().copied());
                self.rows.insert(end, Some(right.span));
            }
            if start < range.start {
                let left = placed.part(&(start..range.start));
                kept.extend(left.location().copied());
                self.rows.insert(range.start, Some(left.span));
            }
        }
        self.drop_unseen(&taken, &kept, &(range.start..done)).await?;
        Ok(done)
    }

    /// Finds the locations of the removed spans that no span shows any more.
    async fn drop_unseen(
        &mut self,
        taken: &[Placed],
        kept: &[Location],
        range: &Range<u64>,
    ) -> Result<(), Error> {
        let mut seen: BTreeMap<(ExtentId, ExtentOffset), bool> =
            kept.iter().map(|location| (place(location), true)).collect();
        for placed in taken {
            let shown = placed.range.start.max(range.start)..placed.range.end.min(range.end);
            if placed.span.content.as_ref().is_some_and(|content| content.shared_len() > 0) {
                self.shared_dropped += shown.end.saturating_sub(shown.start);
            }
            let Some(location) = placed.owned() else { continue };
            if seen.contains_key(&place(location)) {
                continue;
            }
            let whole = placed.range == placed.written();
            let shown = !whole && self.is_shown(placed, location, range).await?;
            seen.insert(place(location), shown);
            if !shown {
                self.dropped.push(*location);
            }
        }
        Ok(())
    }

    /// Whether a span outside `range` shows a part of the location.
    async fn is_shown(
        &self,
        placed: &Placed,
        location: &Location,
        range: &Range<u64>,
    ) -> Result<bool, Error> {
        let written = placed.written();
        for part in [written.start..range.start, range.end..written.end] {
            if part.is_empty() {
                continue;
            }
            let mut spans = LayerSpans::new(self.view, self.key, self.layer, &part);
            while let Some(other) = spans.next().await? {
                if other.location().is_some_and(|l| place(l) == place(location)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Adds content at `start`. Each location becomes a span.
    fn add(&mut self, start: u64, content: &Content) {
        match content.stored_bytes() {
            StoredBytes::Inline(_) => {
                let len = content.len();
                let content = Some(content.clone());
                self.put_span(start.saturating_add(len), Some(Span { len, skip: 0, content }));
            }
            StoredBytes::Locations(locations) => {
                let mut before = 0u64;
                for (number, location) in (0u64..).zip(locations) {
                    let one = content.one(*location, number, before);
                    let len = one.len();
                    before = before.saturating_add(len);
                    let end = start.saturating_add(before);
                    self.put_span(end, Some(Span { len, skip: 0, content: Some(one) }));
                }
            }
        }
    }

    fn put_span(&mut self, end: u64, span: Option<Span>) {
        if let Some(span) = span.filter(|span| span.len > 0) {
            self.rows.insert(end, Some(span));
        }
    }

    fn finish(self, eval: &mut Evaluation<'_>) {
        let kept: Vec<Location> = self
            .rows
            .values()
            .flatten()
            .flat_map(|span| span.content.iter().flat_map(Content::locations))
            .copied()
            .collect();
        garbage::write(eval, self.key, &self.dropped, &kept);
        eval.out.shared_dropped += self.shared_dropped;
        for (end, span) in self.rows {
            let key = keys::span(self.key, self.layer, end);
            match span {
                Some(span) => eval.out.put(Family::Layout, key, values::encode(&span)),
                None => eval.out.delete(Family::Layout, key),
            }
        }
    }
}

fn place(location: &Location) -> (ExtentId, ExtentOffset) {
    (location.extent, location.offset)
}

/// Writes garbage rows for the layers of a removed row, which reclaim removes later: a layer may
/// have millions of spans. Snapshots may still name a layer; [`bury`] checks that.
pub(super) fn drop_layers(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    layers: &[u64],
    since: Timestamp,
) {
    for &layer in layers {
        let row = keys::dead_layer(key, layer);
        eval.out.put(Family::Garbage, row, values::encode(&DeadLayer { since }));
    }
}

/// Whether the blob, a snapshot or a version of it names a layer.
async fn is_named(view: &dyn Rows, key: &RoutingKey, layer: u64) -> Result<bool, Error> {
    let names = |content: BlobContent| match content.layout {
        Layout::Pages { layers } => layers.contains(&layer),
        Layout::Whole(_)
        | Layout::Blocks(_)
        | Layout::Segments { .. }
        | Layout::Appended { .. } => false,
    };
    if let Some(blob) = blob_row::load(view, key).await?
        && names(blob.content(key)?)
    {
        return Ok(true);
    }
    let (low, high) = (key.as_bytes().clone(), keys::after(key));
    let mut rows = Cursor::new(view, Family::Versions, low, Some(high));
    while let Some(row) = rows.take().await? {
        if keys::parse_version(&row.key, key)? == VersionKey::Null {
            continue;
        }
        let (_record, content) =
            values::decode_record_head::<BlobRecord>(Family::Versions, &row.key, &row.value)?;
        if names(values::decode_content(&row.key, content)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the next spans of a dead layer, and its garbage row after the last span. If a row still
/// names the layer, removes only the garbage row.
pub(super) async fn bury(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    layer: u64,
) -> Result<(), Error> {
    const SPANS_PER_STEP: usize = 1_000;
    if is_named(eval.view, key, layer).await? {
        eval.out.delete(Family::Garbage, keys::dead_layer(key, layer));
        return Ok(());
    }
    let mut spans = LayerSpans::new(eval.view, key, layer, &(0..u64::MAX));
    let mut dropped = Vec::new();
    let mut count = 0;
    let mut last = None;
    while let Some(placed) = spans.next().await? {
        // A location becomes garbage with its last span. All spans of a location are adjacent.
        let owned = placed.owned().copied();
        let reach = owned.map(|_| placed.written().end);
        if count >= SPANS_PER_STEP && last.is_none_or(|end| placed.range.start >= end) {
            garbage::write(eval, key, &dropped, &[]);
            // A copy must no longer use the layer as its own.
            let begun = DeadLayer { since: Timestamp::ZERO };
            eval.out.put(Family::Garbage, keys::dead_layer(key, layer), values::encode(&begun));
            return Ok(());
        }
        last = last.max(reach);
        count += 1;
        eval.out.delete(Family::Layout, keys::span(key, layer, placed.range.end));
        dropped.extend(owned);
        eval.out.shared_dropped += placed.span.content.as_ref().map_or(0, Content::shared_len);
    }
    garbage::write(eval, key, &dropped, &[]);
    eval.out.delete(Family::Garbage, keys::dead_layer(key, layer));
    Ok(())
}
