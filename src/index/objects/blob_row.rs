//! The row of a blob, of a snapshot or of a version of it.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::invariant::Invariant;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::Timestamp;

/// The row of a blob, a snapshot or a version.
#[derive(Clone, Debug)]
pub(super) struct Blob {
    /// The record.
    pub(super) record: BlobRecord,
    /// The encoded content.
    content: Bytes,
    /// Where the row is.
    place: Place,
}

/// Where the row of a blob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the current blob.
    Main,
    /// It is the snapshot of this time.
    Snapshot(Timestamp),
    /// The version of this time, which is not current.
    Version(Timestamp),
    /// It was softly deleted.
    Deleted(DeletedKey),
}

impl Blob {
    /// How its content is laid out.
    pub(super) fn content(&self, key: &RoutingKey) -> Result<BlobContent, Error> {
        values::decode_content(key.as_bytes(), &self.content)
    }

    /// Where its row is.
    pub(super) const fn place(&self) -> Place {
        self.place
    }

    /// Gives it other content, in the same place.
    pub(super) fn with_content(self, content: &BlobContent) -> Self {
        Self { content: values::encode_content(content), ..self }
    }

    /// The same row, elsewhere.
    pub(super) fn moved(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Encodes the row with the changed record and the unchanged content.
    pub(super) fn encode(&self) -> Bytes {
        values::encode_blob_raw(&self.record, &self.content)
    }

    /// Writes the row, with the changed record, where it was read.
    pub(super) fn store(&self, eval: &mut Evaluation<'_>, key: &RoutingKey) {
        let value = self.encode();
        match self.place {
            Place::Main => eval.out.put(Family::Main, key.as_bytes().clone(), value),
            Place::Snapshot(taken) => {
                eval.out.put(Family::Versions, keys::snapshot(key, taken), value);
            }
            Place::Version(time) => {
                eval.out.put(Family::Versions, keys::version(key, time), value);
            }
            Place::Deleted(at) => eval.out.put(Family::Versions, keys::deleted(key, at), value),
        }
    }
}

/// Reads the current blob.
pub(super) async fn load(view: &dyn Rows, key: &RoutingKey) -> Result<Option<Blob>, Error> {
    load_row(view, key, Place::Main).await
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

/// Reads the row at a place.
pub(super) async fn load_row(
    view: &dyn Rows,
    key: &RoutingKey,
    place: Place,
) -> Result<Option<Blob>, Error> {
    let (family, row) = match place {
        Place::Main => (Family::Main, key.as_bytes().clone()),
        Place::Snapshot(taken) => (Family::Versions, keys::snapshot(key, taken)),
        Place::Version(time) => (Family::Versions, keys::version(key, time)),
        Place::Deleted(at) => (Family::Versions, keys::deleted(key, at)),
    };
    let Some(value) = view.get(family, &row).await? else {
        return Ok(None);
    };
    decode(&row, &value, place).map(Some)
}

/// Decodes the row of a blob, a snapshot or a version.
pub(super) fn decode(row: &[u8], value: &Bytes, place: Place) -> Result<Blob, Error> {
    let family = match place {
        Place::Main => Family::Main,
        Place::Snapshot(_) | Place::Version(_) | Place::Deleted(_) => Family::Versions,
    };
    let (record, content) = values::decode_record_head(family, row, value)?;
    let content = value.slice(value.len() - content.len()..);
    Ok(Blob { record, content, place })
}

/// The index tags of a replaced blob.
pub(super) fn tags_of(blob: Option<&Blob>) -> Tags {
    blob.map(|blob| blob.record.tags.clone()).unwrap_or_default()
}

/// The answer to a change made at `now`.
pub(super) fn written(now: Timestamp) -> WriteReply {
    WriteReply::Written(Written::at(now, None))
}

/// The answer to a change at `now` that made a blob of this record.
pub(super) fn written_as(now: Timestamp, record: &BlobRecord) -> WriteReply {
    WriteReply::Written(Written::at(now, record.version()))
}
