//! The deletion of several blobs of one container.

use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::DeleteScope;

/// Blobs of one request at most.
pub const DELETIONS_MAX: usize = 1_000;

/// Deletes several blobs. Each is deleted by itself: one that is refused does not stop the others,
/// and one that does not exist counts as deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteBlobs {
    /// Whether a version under a retention that is not locked is deleted too.
    pub bypass: bool,
    /// The container.
    pub container: ContainerName,
    /// The blobs, at most [`DELETIONS_MAX`]; in the body.
    pub items: Vec<BlobDeletion>,
    /// Whether the answer names only those that were not deleted.
    pub quiet: bool,
    /// Whether the sender may delete versions. The request does not say it; it is filled in when
    /// the sender is known.
    pub may_delete_versions: bool,
}

/// One of the blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobDeletion {
    /// The name, as the request has it.
    pub name: String,
    /// The blob, or why none can be meant.
    pub blob: Result<BlobName, Refusal>,
    /// What is deleted.
    pub scope: DeleteScope,
    /// The version that the request names, in its words.
    pub version: Option<String>,
    /// Its precondition.
    pub precondition: Precondition,
}
