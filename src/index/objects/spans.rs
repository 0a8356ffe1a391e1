//! Spans of page blobs: walks over one layer, and over all layers as readers see them.

#![deny(clippy::indexing_slicing)]

use std::ops::Range;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::objects::keys::SpanKey;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::Span;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::Location;
use crate::types::RoutingKey;

/// A span and its range in the blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// Bytes of the blob, half-open.
    pub(super) range: Range<u64>,
    /// The span.
    pub(super) span: Span,
}

impl Placed {
    /// The location of its bytes; `None` if they are in the row or are zeros.
    pub(super) fn location(&self) -> Option<&Location> {
        self.span.content.as_ref().and_then(|content| content.locations().first())
    }

    /// The location, if it becomes garbage with the last span that shows it.
    pub(super) fn owned(&self) -> Option<&Location> {
        self.span.content.as_ref().and_then(|content| content.owned().first())
    }

    /// Bytes of the blob that its location held when it was written.
    pub(super) fn written(&self) -> Range<u64> {
        let origin = self.range.start.saturating_sub(self.span.skip);
        let len = self.span.content.as_ref().map_or(0, Content::len);
        origin..origin.saturating_add(len)
    }

    /// The part of the span in the range `part`, which lies inside the span.
    pub(super) fn part(&self, part: &Range<u64>) -> Self {
        let before = part.start.saturating_sub(self.range.start);
        let len = part.end.saturating_sub(part.start);
        let inline = self.span.content.as_ref();
        let inline = inline.and_then(|c| c.inline_part(before, before.saturating_add(len)));
        let (skip, content) = match (inline, &self.span.content) {
            (Some(inline), _) => (0, Some(inline)),
            (None, Some(whole)) => (self.span.skip.saturating_add(before), Some(whole.clone())),
            (None, None) => (0, None),
        };
        Self { range: part.clone(), span: Span { len, skip, content } }
    }
}

/// A walk over the spans of one layer that overlap a range, in order.
pub(super) struct LayerSpans<'a> {
    blob: &'a RoutingKey,
    end: u64,
    cursor: Cursor<'a>,
}

impl<'a> LayerSpans<'a> {
    /// A walk over `range` in `layer`.
    pub(super) fn new(
        view: &'a dyn Rows,
        blob: &'a RoutingKey,
        layer: u64,
        range: &Range<u64>,
    ) -> Self {
        let from = keys::span(blob, layer, range.start.saturating_add(1));
        let to = keys::just_after(&keys::span(blob, layer, u64::MAX));
        Self { blob, end: range.end, cursor: Cursor::new(view, Family::Layout, from, Some(to)) }
    }

    /// The next span.
    pub(super) async fn next(&mut self) -> Result<Option<Placed>, Error> {
        let Some(row) = self.cursor.take().await? else { return Ok(None) };
        let placed = parse(&row.key, &row.value, self.blob)?;
        Ok((placed.range.start < self.end).then_some(placed))
    }
}

/// The decoded row of a span.
#[derive(Clone, Debug)]
pub(in crate::index) struct SpanRow {
    /// The layer of the span.
    pub(in crate::index) layer: u64,
    /// Bytes of the blob, half-open.
    pub(in crate::index) range: Range<u64>,
    /// The span.
    pub(in crate::index) span: Span,
}

/// Decodes the row of a span.
pub(in crate::index) fn parse_row(
    key: &Bytes,
    value: &Bytes,
    blob: &RoutingKey,
) -> Result<SpanRow, Error> {
    let bad = |what| keys::corrupt(Family::Layout, key, what);
    let SpanKey { layer, end } = keys::parse_span(key, blob).ok_or_else(|| bad("not a span"))?;
    let span: Span = values::decode(Family::Layout, key, value)?;
    let start = end.checked_sub(span.len).ok_or_else(|| bad("a span before the blob"))?;
    let held = span.content.as_ref().map(|content| (content.len(), content.locations().len()));
    let reach = span.skip.checked_add(span.len);
    let fits = held.is_none_or(|(len, pieces)| pieces <= 1 && reach.is_some_and(|to| to <= len));
    if span.len == 0 || !fits {
        return Err(bad("a span beyond its bytes"));
    }
    Ok(SpanRow { layer, range: start..end, span })
}

fn parse(key: &Bytes, value: &Bytes, blob: &RoutingKey) -> Result<Placed, Error> {
    let SpanRow { range, span, .. } = parse_row(key, value, blob)?;
    Ok(Placed { range, span })
}

/// A walk over a range of a page blob as its layers show it. It covers every byte once, holes
/// included.
pub(super) struct Overlay<'a> {
    layers: Vec<(LayerSpans<'a>, Option<Placed>)>,
    at: u64,
    end: u64,
}

/// A stretch of the range as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Bytes of the blob, half-open.
    pub(super) range: Range<u64>,
    /// The part of a span; `None` where no layer has a span.
    pub(super) span: Option<Span>,
}

impl<'a> Overlay<'a> {
    /// A walk over `range` in `layers`, which are given newest first.
    pub(super) async fn new(
        view: &'a dyn Rows,
        blob: &'a RoutingKey,
        layers: &[u64],
        range: &Range<u64>,
    ) -> Result<Self, Error> {
        let mut all = Vec::with_capacity(layers.len());
        for &layer in layers {
            let mut spans = LayerSpans::new(view, blob, layer, range);
            let first = spans.next().await?;
            all.push((spans, first));
        }
        Ok(Self { layers: all, at: range.start, end: range.end })
    }

    /// The next stretch.
    pub(super) async fn next(&mut self) -> Result<Option<Seen>, Error> {
        if self.at >= self.end {
            return Ok(None);
        }
        let at = self.at;
        let mut limit = self.end;
        let mut found = None;
        for (spans, front) in &mut self.layers {
            while front.as_ref().is_some_and(|placed| placed.range.end <= at) {
                *front = spans.next().await?;
            }
            let Some(placed) = front else { continue };
            if placed.range.start <= at {
                let part = at..placed.range.end.min(limit);
                found = Some(placed.part(&part));
                break;
            }
            limit = limit.min(placed.range.start);
        }
        let seen = match found {
            Some(Placed { range, span }) => Seen { range, span: Some(span) },
            None => Seen { range: at..limit, span: None },
        };
        self.at = seen.range.end;
        Ok(Some(seen))
    }
}
