//! Page blobs as sources of copies. Their written pages become a layer of the destination, which
//! the commit of the copy names. Zeros are left out, so that a sparse blob stays sparse. Pages that
//! get another key are stored again.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use bytes::BytesMut;

use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::ops::copies::take::Taken;
use crate::frontend::source::Inside;
use crate::frontend::source::SharedPart;
use crate::frontend::source::Source;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::BodyReservation;
use crate::frontend::write::InMemory;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::CopiedContent;
use crate::index::FillLayer;
use crate::index::NewContent;
use crate::index::PageSpan;
use crate::index::inflight::LayerNote;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::PAGE_BLOB_BYTES_MAX;
use crate::types::PAGE_BYTES;
use crate::types::PAGE_WINDOW_BYTES;
use crate::types::RoutingKey;
use crate::types::Timestamp;
use crate::types::content_len;

/// Bytes of a source on another server that are in memory at a time, as for one Put Page.
const BATCH_BYTES: u64 = 4 << 20;

/// Copies the source's pages into a layer of `blob`.
pub(super) async fn take(
    front: &FrontEnd,
    blob: &RoutingKey,
    found: Source,
    key: Option<&CustomerKey>,
) -> Result<Taken, Refusal> {
    let len = found.len();
    if !len.is_multiple_of(PAGE_BYTES) || len > PAGE_BLOB_BYTES_MAX {
        return Err(Refusal::new(Reason::CannotVerifyCopySource)
            .status(409)
            .message("The copy source says that it is a page blob, but its length is not one."));
    }
    // Before the layer is begun: reclaim does not free it until the copy names it or fails.
    let note = front.rows.inflight.layer(blob.clone());
    let mut layer = Layer { front, blob, id: None };
    match found {
        Source::Inside(inside) if is_under(&inside, key) => {
            share(&mut layer, &inside, None).await?;
        }
        Source::Inside(inside) => {
            store(&mut layer, &mut inside.body(front).await?, (len, key)).await?;
        }
        Source::Outside(fetched) => {
            store(&mut layer, &mut fetched.body(front), (len, key)).await?;
        }
    }
    Ok(taken(layer.finish().await?, len, note))
}

/// Copies the pages of a source in this store that changed since a snapshot of it into a layer of
/// `blob`; all of them without one.
pub(super) async fn take_since(
    front: &FrontEnd,
    blob: &RoutingKey,
    (source, since): (&Inside, Option<Timestamp>),
) -> Result<Taken, Refusal> {
    let note = front.rows.inflight.layer(blob.clone());
    let mut layer = Layer { front, blob, id: None };
    share(&mut layer, source, since).await?;
    Ok(taken(layer.finish().await?, source.len(), note))
}

fn taken(layer: u64, len: u64, note: LayerNote) -> Taken {
    let content = CopiedContent::Pages { layer, len };
    let crc64 = Crc64::EMPTY;
    Taken { content, crc64, kept_crc64: crc64, md5: None, hold: Hold::Layer(note) }
}

/// Whether the pages of the source are under this key, or under none.
pub(super) fn is_under(source: &Inside, key: Option<&CustomerKey>) -> bool {
    let under = source.record().under().and_then(|under| under.key_sha256());
    under == key.map(CustomerKey::sha256)
}

/// A layer that is being filled.
struct Layer<'a> {
    front: &'a FrontEnd,
    blob: &'a RoutingKey,
    id: Option<u64>,
}

impl Layer<'_> {
    fn fill(&self, spans: Vec<PageSpan>) -> FillLayer {
        FillLayer { blob: self.blob.clone(), layer: self.id, spans }
    }

    fn filled(&mut self, answer: Result<u64, index::Error>) -> Result<u64, Refusal> {
        let id = answer.map_err(|error| errors::from_index(&error, Subject::Blob))?;
        self.id = Some(id);
        Ok(id)
    }

    /// The layer, which may be empty.
    async fn finish(mut self) -> Result<u64, Refusal> {
        match self.id {
            Some(id) => Ok(id),
            None => {
                let answer = commit::commit(&self.front.rows, self.fill(Vec::new()), None).await;
                self.filled(answer)
            }
        }
    }
}

/// By reference, from a blob of this store.
async fn share(
    layer: &mut Layer<'_>,
    source: &Inside,
    since: Option<Timestamp>,
) -> Result<(), Refusal> {
    let mut from = Some(0);
    while let Some(start) = from {
        let SharedPart { part, note } = source.share_pages(layer.front, (since, start)).await?;
        from = part.next;
        if !part.spans.is_empty() {
            let answer =
                commit::commit_holding(&layer.front.rows, layer.fill(part.spans), note).await;
            layer.filled(answer)?;
        }
    }
    Ok(())
}

/// Stores the `len` bytes under a key, or under none.
async fn store(
    layer: &mut Layer<'_>,
    body: &mut RequestBody,
    (len, key): (u64, Option<&CustomerKey>),
) -> Result<(), Refusal> {
    let front = layer.front;
    let (mut at, mut batch, mut held) = (0u64, BytesMut::new(), Vec::new());
    while at < len {
        let wanted = usize::try_from(BATCH_BYTES.min(len - at)).unwrap_or(usize::MAX);
        while batch.len() < wanted {
            let piece = body.next().await?.ok_or_else(short)?;
            held.push(front.pool.budget().take(body.memory(), piece.len())?);
            batch.extend_from_slice(&piece);
        }
        let rest = batch.split_off(wanted);
        let bytes = std::mem::replace(&mut batch, rest).freeze();
        let holding: Arc<[BodyReservation]> = std::mem::take(&mut held).into();
        for range in written(&bytes) {
            let start = at + u64::try_from(range.start).unwrap_or(u64::MAX);
            let pieces = vec![bytes.slice(range)];
            let written = InMemory { pieces, held: Arc::clone(&holding) };
            let under = Encrypting::new(&front.env, key);
            let stored = front.pool.store_pages_under(written, start, under.as_ref()).await?;
            let stored = stored.under(under.as_ref().map(Encrypting::nonce));
            let spans = spans(&stored, start);
            let answer = commit::commit(&front.rows, layer.fill(spans), Some(stored)).await;
            layer.filled(answer)?;
        }
        at += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    }
    match (batch.is_empty(), body.next().await?) {
        (true, None) => Ok(()),
        (_, Some(_)) | (false, None) => Err(Refusal::new(Reason::CannotVerifyCopySource)
            .status(409)
            .message("The copy source sent more than it said.")),
    }
}

fn short() -> Refusal {
    Refusal::new(Reason::CannotVerifyCopySource)
        .status(500)
        .message("The answer of the copy source ended early; try again.")
}

/// Ranges of windows that are not all zeros.
fn written(bytes: &Bytes) -> Vec<Range<usize>> {
    let window = usize::try_from(PAGE_WINDOW_BYTES).unwrap_or(usize::MAX);
    let mut found: Vec<Range<usize>> = Vec::new();
    for (number, part) in bytes.chunks(window).enumerate() {
        if part.iter().all(|byte| *byte == 0) {
            continue;
        }
        let start = number * window;
        let end = start + part.len();
        match found.last_mut() {
            Some(last) if last.end == start => last.end = end,
            Some(_) | None => found.push(start..end),
        }
    }
    found
}

/// Where stored pages lie in the blob, from `start` on.
fn spans(stored: &Stored, start: u64) -> Vec<PageSpan> {
    let mut at = start;
    let mut span = |len: u64, content| {
        let range = at..at.saturating_add(len);
        at = range.end;
        PageSpan { range, skip: 0, content: Some(content) }
    };
    match stored.content() {
        plain @ (NewContent::Inline(_) | NewContent::Stored(_) | NewContent::Shared(_)) => {
            let plain = parts(plain).into_iter();
            plain.map(|Part { len, content }| span(len, content)).collect()
        }
        NewContent::Authenticated(nonce, stored) => (0..)
            .zip(parts(*stored))
            .map(|(number, Part { len, content })| {
                let content = NewContent::Authenticated(nonce.part(number), Box::new(content));
                span(content_len(len), content)
            })
            .collect(),
        // This form is no longer written.
        NewContent::Encrypted(..) => Vec::new(),
    }
}

/// A part of stored pages that is encrypted by itself, and its stored bytes.
struct Part {
    len: u64,
    content: NewContent,
}

fn parts(stored: NewContent) -> Vec<Part> {
    match stored {
        NewContent::Inline(bytes) => {
            let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            vec![Part { len, content: NewContent::Inline(bytes) }]
        }
        NewContent::Stored(locations) | NewContent::Shared(locations) => locations
            .into_iter()
            .map(|location| {
                let content = NewContent::Stored(vec![location]);
                Part { len: location.len.get(), content }
            })
            .collect(),
        // Content is not encrypted twice.
        NewContent::Encrypted(..) | NewContent::Authenticated(..) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_zeros_are_left_out() {
        let window = 64 << 10;
        let mut bytes = vec![0; 5 * window + 512];
        assert!(written(&Bytes::from(bytes.clone())).is_empty());
        bytes[window] = 1;
        bytes[3 * window - 1] = 1;
        bytes[5 * window + 511] = 1;
        let found = written(&Bytes::from(bytes));
        assert_eq!(found, [window..3 * window, 5 * window..5 * window + 512]);
    }
}
