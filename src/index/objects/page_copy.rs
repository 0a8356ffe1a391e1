//! Copies of page blobs by reference, in parts. The source marks spans as shared and returns them.
//! The destination stores them in a layer of its own, which becomes the blob's layer when it is
//! complete (ADR 0009, 0010).
//!
//! All spans of a location are in one window of the blob and in one layer. A window is marked as a
//! whole, so all spans of a location are marked together, including those that a newer layer hides.

use std::collections::BTreeSet;

use crate::index::api::Error;
use crate::index::api::FillLayer;
use crate::index::api::PageSpan;
use crate::index::api::Refused;
use crate::index::api::SharePages;
use crate::index::api::SharedPages;
use crate::index::api::WriteReply;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::page_ranges;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::share;
use crate::index::objects::spans::LayerSpans;
use crate::index::objects::spans::Overlay;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::DeadLayer;
use crate::index::objects::values::Layout;
use crate::index::objects::values::Span;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::PAGE_BLOB_BYTES_MAX;
use crate::types::PAGE_WINDOW_BYTES;
use crate::types::RoutingKey;

/// The most written spans of one part.
const SPANS_MAX: usize = 256;
/// The most stretches, written or not, that one part examines.
const STRETCHES_MAX: usize = 10_000;

/// Marks and returns one part.
pub(super) async fn share(
    eval: &mut Evaluation<'_>,
    share: &SharePages,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&share.key);
    let of = RevisionOf { revision: share.revision, guard: &share.guard };
    let blob = revision::load(eval.view, &key, of).await?;
    if !matches!(blob.record.kind, BlobKind::Page { .. }) {
        return Err(Refused::WrongKind.into());
    }
    guard::read(&share.guard, &blob.record, eval.now)?;
    guard::not_incremental(&blob.record)?;
    let Layout::Pages { mut layers } = blob.content(&key)?.layout else {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "not the layout of a page blob"));
    };
    let mut end = blob.record.len;
    if let Some(since) = share.since {
        layers = page_ranges::layers_since(eval.view, &key, layers, since).await?;
        // Zeros beyond the end hide older pages if the blob grows again.
        end = PAGE_BLOB_BYTES_MAX;
    }
    let mut overlay = Overlay::new(eval.view, &key, &layers, &(share.from..end)).await?;
    let mut spans: Vec<PageSpan> = Vec::new();
    let mut windows = BTreeSet::new();
    let mut next = None;
    let mut stretches = 0;
    while let Some(seen) = overlay.next().await? {
        let start = seen.range.start;
        stretches += 1;
        if spans.len() >= SPANS_MAX || stretches > STRETCHES_MAX {
            next = Some(start);
            break;
        }
        let (skip, content) = match seen.span {
            Some(Span { skip, content: Some(content), .. }) => (skip, Some(content)),
            // The change wrote these zeros.
            Some(Span { content: None, .. }) if share.since.is_some() => (0, None),
            Some(Span { content: None, .. }) | None => continue,
        };
        if content.as_ref().is_some_and(|content| !content.owned().is_empty()) {
            windows.insert(window(start));
        }
        let content = content.as_ref().map(share::marked);
        spans.push(PageSpan { range: seen.range, skip, content });
    }
    for window in windows {
        mark(eval, &key, &layers, window).await?;
    }
    Ok(WriteReply::SharedPages(SharedPages { spans, next }))
}

const fn window(offset: u64) -> u64 {
    offset / PAGE_WINDOW_BYTES
}

/// Marks the spans of all layers in a window as shared.
async fn mark(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    layers: &[u64],
    window: u64,
) -> Result<(), Error> {
    let start = window.saturating_mul(PAGE_WINDOW_BYTES);
    let range = start..start.saturating_add(PAGE_WINDOW_BYTES);
    for &layer in layers {
        let mut spans = LayerSpans::new(eval.view, key, layer, &range);
        while let Some(mut placed) = spans.next().await? {
            if let Some(content) = placed.span.content.as_mut().filter(|c| !c.owned().is_empty()) {
                content.mark();
                let row = keys::span(key, layer, placed.range.end);
                eval.out.put(Family::Layout, row, values::encode(&placed.span));
            }
        }
    }
    Ok(())
}

/// Adds spans to the layer of a copy, which no blob names yet.
pub(super) async fn fill(eval: &mut Evaluation<'_>, fill: &FillLayer) -> Result<WriteReply, Error> {
    let key = fill.blob.clone();
    let layer = match fill.layer {
        Some(layer) => {
            in_the_making(eval.view, &key, layer).await?;
            layer
        }
        None => {
            // Until a blob's row names the layer, it is dead: if the copy ends here, reclaim
            // removes the layer.
            let row = keys::dead_layer(&key, eval.now.ticks());
            eval.out.put(Family::Garbage, row, values::encode(&DeadLayer { since: eval.now }));
            eval.now.ticks()
        }
    };
    for span in &fill.spans {
        let content = span.content.as_ref().map(Content::from);
        let len = span.range.end.saturating_sub(span.range.start);
        let fits = content.as_ref().is_none_or(|content| {
            let held = content.len().checked_sub(span.skip).is_some_and(|held| held >= len);
            held && content.locations().len() <= 1
        });
        if len == 0 || !fits {
            return Err(Refused::InvalidPages { len: span.range.end }.into());
        }
        let row = keys::span(&key, layer, span.range.end);
        let value = Span { len, skip: span.skip, content };
        eval.out.put(Family::Layout, row, values::encode(&value));
    }
    Ok(WriteReply::Layer(layer))
}

async fn in_the_making(view: &dyn Rows, key: &RoutingKey, layer: u64) -> Result<(), Error> {
    let row = keys::dead_layer(key, layer);
    let found = view.get(Family::Garbage, &row).await?;
    let dead: Option<DeadLayer> =
        found.map(|value| values::decode(Family::Garbage, &row, &value)).transpose()?;
    // A layer whose removal has begun has lost spans already.
    let whole = dead.is_some_and(|dead| dead.since.ticks() == layer);
    whole.then_some(()).ok_or_else(|| Error::Unavailable("the layer of a copy is gone".to_owned()))
}

/// Returns the content of a blob that consists of a filled layer. The layer is no longer dead.
pub(super) async fn adopt(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    layer: u64,
) -> Result<BlobContent, Error> {
    in_the_making(eval.view, key, layer).await?;
    eval.out.delete(Family::Garbage, keys::dead_layer(key, layer));
    Ok(BlobContent { id_len: 0, layout: Layout::Pages { layers: vec![layer] } })
}
