//! A write that is sent again because its answer was lost.

#![deny(clippy::indexing_slicing)]

use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::layout;
use crate::index::objects::values::Layout;
use crate::index::rows::Rows;
use crate::types::Location;
use crate::types::RoutingKey;

/// Answers a write that is sent again because its answer was lost. The blob in its way is the one
/// that it made before. If it made another one, it would remove a version that may be held already,
/// or leave two versions that own the same bytes. `taken` are the locations of its content.
pub(super) async fn answer(
    eval: &Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    (old, taken): (Option<&Blob>, &[Location]),
) -> Result<Option<WriteReply>, Error> {
    let (Some(old), false) = (old, taken.is_empty()) else { return Ok(None) };
    let keeps = guard.protection.versioning.is_some() || guard.protection.restorable_for.is_some();
    if !keeps || !owns(eval.view, key, old, taken).await? {
        return Ok(None);
    }
    Ok(Some(blob_row::written_as(old.record.last_modified, &old.record)))
}

/// Whether a blob owns the first of these locations.
async fn owns(
    view: &dyn Rows,
    key: &RoutingKey,
    old: &Blob,
    taken: &[Location],
) -> Result<bool, Error> {
    let Some(first) = taken.first() else { return Ok(false) };
    let layout = old.content(key)?.layout;
    if let Layout::Whole(content) = layout {
        return Ok(content.owned().contains(first));
    }
    // Pages are copied into a layer that no other blob names.
    let blocks = layout::entries(view, key, &layout).await?;
    Ok(blocks.iter().any(|block| block.content.owned().contains(first)))
}
