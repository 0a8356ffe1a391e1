//! The row of a blob, or of a snapshot of it.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::invariant::Invariant;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::Etag;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::Timestamp;

/// A blob's main row.
pub(super) struct Blob {
    /// The record.
    pub(super) record: BlobRecord,
    /// The encoded content.
    content: Bytes,
}

impl Blob {
    /// How its content is laid out.
    pub(super) fn content(&self, key: &RoutingKey) -> Result<BlobContent, Error> {
        values::decode_content(key.as_bytes(), &self.content)
    }

    /// Encodes the row with the present record and the unchanged content.
    pub(super) fn encode(&self) -> Bytes {
        values::encode_blob_raw(&self.record, &self.content)
    }
}

/// Reads a committed blob.
pub(super) async fn load(view: &dyn Rows, key: &RoutingKey) -> Result<Option<Blob>, Error> {
    load_row(view, Family::Main, key.as_bytes()).await
}

/// Reads the blob that a write changes.
///
/// # Errors
/// [`Invariant::NewEtag`]: the time of the change is not later than the blob's, so the blob would
/// not get a new ETag.
pub(super) async fn current(
    eval: &Evaluation<'_>,
    key: &RoutingKey,
) -> Result<Option<Blob>, Error> {
    let blob = load(eval.view, key).await?;
    if let Some(Blob { record, .. }) = &blob {
        let (before, now) = (record.last_modified, eval.now);
        let later = Invariant::NewEtag
            .assert(before < now, || format!("a blob changed at {before:?} changes at {now:?}"));
        later.map_err(|violation| eval.view.violated(violation))?;
    }
    Ok(blob)
}

/// Reads a committed blob or a snapshot of it.
pub(super) async fn load_version(
    view: &dyn Rows,
    key: &RoutingKey,
    snapshot: Option<Timestamp>,
) -> Result<Option<Blob>, Error> {
    match snapshot {
        None => load(view, key).await,
        Some(taken) => load_row(view, Family::Versions, &keys::snapshot(key, taken)).await,
    }
}

async fn load_row(view: &dyn Rows, family: Family, key: &[u8]) -> Result<Option<Blob>, Error> {
    let Some(value) = view.get(family, key).await? else {
        return Ok(None);
    };
    let (record, content) = values::decode_record_head(family, key, &value)?;
    let content = value.slice(value.len() - content.len()..);
    Ok(Some(Blob { record, content }))
}

/// The index tags of a replaced blob.
pub(super) fn tags_of(blob: Option<&Blob>) -> Tags {
    blob.map(|blob| blob.record.tags.clone()).unwrap_or_default()
}

/// The answer to a change made at `now`.
pub(super) fn written(now: Timestamp) -> WriteReply {
    WriteReply::Written(Written { etag: Etag::from_commit(now), last_modified: now })
}
