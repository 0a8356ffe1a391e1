//! Snapshots and tiers.

use std::time::Duration;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

use crate::index::api::Guard;
use crate::index::api::Written;
use crate::types::AccessTier;
use crate::types::BlobKey;
use crate::types::Metadata;
use crate::types::RehydratePriority;
use crate::types::Revision;
use crate::types::Timestamp;

/// Snapshot Blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotBlob {
    /// The blob.
    pub key: BlobKey,
    /// The precondition. A lease does not prevent snapshots by others.
    pub guard: Guard,
    /// Metadata of the snapshot; `None` for that of the blob.
    #[serde(deserialize_with = "checked")]
    pub metadata: Option<Metadata>,
}

/// Metadata that is checked when it is decoded.
#[derive(Deserialize)]
struct Checked(#[serde(deserialize_with = "Metadata::deserialize_checked")] Metadata);

/// Decodes metadata that may be missing.
fn checked<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<Metadata>, D::Error> {
    Ok(Option::<Checked>::deserialize(decoder)?.map(|Checked(metadata)| metadata))
}

/// A snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshotted {
    /// Its time, by which it is read.
    pub snapshot: Timestamp,
    /// Its tag and time of last change: those of the blob, unless it has metadata of its own.
    pub written: Written,
}

/// Undelete Blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndeleteBlob {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
}

/// Set Blob Tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetTier {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// Only the lease and tags count.
    pub guard: Guard,
    /// The tier.
    pub tier: AccessTier,
    /// How fast out of the archive.
    pub priority: RehydratePriority,
    /// How long that takes.
    pub rehydration: Duration,
}
