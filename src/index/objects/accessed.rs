//! The last access time of a blob.
//!
//! Source: "Configure a lifecycle management policy", access time tracking.

use crate::index::api::Error;
use crate::index::api::NoteRead;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::evaluation::Evaluation;
use crate::index::rows::Family;
use crate::types::RoutingKey;

/// Notes a read in the blob's record. The time is at most `now`, even if the clock was ahead when
/// the blob was read.
pub(super) async fn note(eval: &mut Evaluation<'_>, note: &NoteRead) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&note.key);
    let at = note.at.min(eval.now);
    if let Some(mut blob) = blob_row::current(eval, &key).await?
        && blob.record.last_modified < at
        && blob.record.notes_read(at)
    {
        blob.record.accessed = Some(at);
        eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    }
    Ok(WriteReply::Done)
}
