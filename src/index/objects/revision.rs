//! Reads of a blob in one of its states: current, a snapshot, a version.

#![deny(clippy::indexing_slicing)]

use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::Refused;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::chain;
use crate::index::rows::Rows;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::VersionId;

/// Reads a blob in one of its states. A delete marker is not one.
///
/// # Errors
/// [`missing`], if there is no such state.
pub(super) async fn load(
    view: &dyn Rows,
    key: &RoutingKey,
    of: RevisionOf<'_>,
) -> Result<Blob, Error> {
    match find(view, key, of.revision).await? {
        // A delete marker grants access to no one.
        Some(blob) if blob.record.is_delete_marker() && of.guard.open_to.is_some() => {
            Err(Refused::NotOpen.into())
        }
        Some(blob) if blob.record.is_delete_marker() => {
            let version = blob.record.version().unwrap_or(VersionId::null(blob.record.created));
            Err(Refused::DeleteMarker(version).into())
        }
        Some(blob) => Ok(blob),
        None => Err(missing(view, key, of).await?),
    }
}

/// The state of a blob that a request names, and its precondition.
#[derive(Clone, Copy)]
pub(super) struct RevisionOf<'a> {
    /// The state.
    pub(super) revision: Revision,
    /// The precondition.
    pub(super) guard: &'a Guard,
}

/// Reads a blob in one of its states, or a delete marker.
pub(super) async fn find(
    view: &dyn Rows,
    key: &RoutingKey,
    revision: Revision,
) -> Result<Option<Blob>, Error> {
    match revision {
        Revision::Current => blob_row::load(view, key).await,
        Revision::Snapshot(taken) => blob_row::load_row(view, key, Place::Snapshot(taken)).await,
        Revision::Version(time) => {
            let current = blob_row::load(view, key).await?;
            let is_current = |blob: &Blob| blob.record.version().is_some_and(|id| id.time == time);
            match current.filter(is_current) {
                Some(blob) => Ok(Some(blob)),
                None => blob_row::load_row(view, key, Place::Version(time)).await,
            }
        }
        Revision::Null => {
            let current = blob_row::load(view, key).await?;
            let is_null = |blob: &Blob| blob.record.version().is_none_or(|id| id.is_null);
            if let Some(blob) = current.filter(is_null) {
                return Ok(Some(blob));
            }
            match chain::null_time(view, key).await? {
                Some(time) => blob_row::load_row(view, key, Place::Version(time)).await,
                None => Ok(None),
            }
        }
    }
}

/// The refusal of a request for a state that does not exist: [`Refused::NotOpen`] if the request
/// needs the blob's access control list, [`Refused::BlobDeleted`] if the newest version is a delete
/// marker, [`Refused::VersionNotFound`] or [`Refused::BlobNotFound`].
pub(super) async fn missing(
    view: &dyn Rows,
    key: &RoutingKey,
    of: RevisionOf<'_>,
) -> Result<Error, Error> {
    let RevisionOf { revision, guard } = of;
    if guard.open_to.is_some() {
        return Ok(Refused::NotOpen.into());
    }
    match revision {
        Revision::Version(_) | Revision::Null => return Ok(Refused::VersionNotFound.into()),
        Revision::Snapshot(_) => return Ok(Refused::BlobNotFound.into()),
        Revision::Current => {}
    }
    // If versions were never kept, there are no rows to search.
    if guard.protection.versioning.is_some()
        && let Some(newest) = chain::newest(view, key).await?
        && newest.blob.record.is_delete_marker()
        && let Some(version) = newest.blob.record.version()
    {
        return Ok(Refused::BlobDeleted(version).into());
    }
    Ok(Refused::BlobNotFound.into())
}
