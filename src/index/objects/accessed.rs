//! What is remembered of reads.
//!
//! Source: "Configure a lifecycle management policy", access time tracking.

use crate::index::api::Error;
use crate::index::api::NoteRead;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Remembers a read. A clock that was ahead when the blob was read does not put it into the future.
pub(super) async fn note(
    view: &dyn Rows,
    note: &NoteRead,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&note.key);
    let at = note.at.min(now);
    if let Some(mut blob) = blob_row::load(view, &key).await?
        && blob.record.last_modified < at
        && blob.record.notes_read(at)
    {
        blob.record.accessed = Some(at);
        out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    }
    Ok(WriteReply::Done)
}
