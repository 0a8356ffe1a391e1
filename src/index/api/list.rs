//! Pages of blobs.

use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::index::record::BlobRecord;
use crate::index::record::ListedFields;
use crate::index::record::UploadRecord;
use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::UploadId;

/// List Blobs: one page of one container, as far as this partition reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListBlobs {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub container: ContainerId,
    /// Its collation.
    pub collation: Collation,
    /// Only names that start so.
    pub prefix: String,
    /// Names that contain this after the prefix are folded into one entry.
    pub delimiter: Option<String>,
    /// Only names at or after this one.
    pub start_from: Option<String>,
    /// Only names before this one.
    pub end_before: Option<String>,
    /// Where to go on: `next` of the page before.
    pub from: Option<Bytes>,
    /// Entries at most, above 0.
    pub limit: usize,
    /// The weight of entries, with fields that are not shown, at which the page ends; see
    /// [`PAGE_WEIGHT_MAX`].
    pub weight_max: usize,
    /// Also blobs that have only staged blocks.
    pub uncommitted: bool,
    /// Which snapshots and versions are listed beside current blobs.
    pub history: History,
    /// Also soft-deleted blobs, snapshots and versions. Not beside [`History::VersionsDown`].
    pub deleted: bool,
    /// Also an entry for each blob of which nothing is left but versions. Not beside
    /// [`History::VersionsDown`].
    pub versions_only: bool,
    /// Which fields the records have that are shown on request.
    pub shown: ListedFields,
}

impl ListBlobs {
    /// Whether it has entries from the versions family.
    #[must_use]
    pub const fn has_versions_rows(&self) -> bool {
        self.history.has_rows() || self.deleted || self.versions_only
    }

    /// The first page of at most `limit` names of a container: no prefix, no delimiter, committed
    /// blobs only.
    #[must_use]
    pub fn first_page(
        account: AccountId,
        container: ContainerId,
        collation: Collation,
        limit: usize,
    ) -> Self {
        Self {
            account,
            container,
            collation,
            prefix: String::new(),
            delimiter: None,
            start_from: None,
            end_before: None,
            from: None,
            limit,
            weight_max: PAGE_WEIGHT_MAX,
            uncommitted: false,
            history: History::None,
            deleted: false,
            versions_only: false,
            shown: ListedFields::ALL,
        }
    }

    /// The position before which its names end, if they end before those of its prefix do.
    #[must_use]
    pub fn end(&self) -> Option<Bytes> {
        let name = self.end_before.as_ref()?;
        Some(RoutingKey::prefix(self.account, self.container, name, self.collation))
    }

    /// The position the page starts at, by which it is routed.
    #[must_use]
    pub fn position(&self) -> Bytes {
        let start = RoutingKey::prefix(self.account, self.container, &self.prefix, self.collation);
        let named = self
            .start_from
            .as_ref()
            .map(|name| RoutingKey::prefix(self.account, self.container, name, self.collation));
        [self.from.clone(), named].into_iter().flatten().fold(start, Ord::max)
    }
}

/// The history of a blob that a list includes beside the current one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum History {
    /// Nothing.
    #[default]
    None,
    /// Its snapshots by time, before it.
    Snapshots,
    /// Its versions by time, before it, without delete markers; of snapshots, those too if wanted,
    /// before the versions.
    VersionsUp {
        /// Whether snapshots are listed.
        snapshots: bool,
    },
    /// Its versions from the newest on, after it, and delete markers.
    VersionsDown,
    /// Everything: it is looked for whether anything is there.
    All,
}

impl History {
    /// Whether a list has snapshots.
    #[must_use]
    pub const fn has_snapshots(self) -> bool {
        matches!(self, Self::Snapshots | Self::VersionsUp { snapshots: true } | Self::All)
    }

    /// Whether a list has versions.
    #[must_use]
    pub const fn has_versions(self) -> bool {
        matches!(self, Self::VersionsUp { .. } | Self::VersionsDown | Self::All)
    }

    /// Whether a list has rows of the versions family.
    #[must_use]
    pub const fn has_rows(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// An entry of a blob list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListEntry {
    /// A committed blob, a snapshot of one, or a version.
    Blob {
        /// The name.
        name: String,
        /// Which of them: [`Revision::Version`] is one that is not current.
        revision: Revision,
        /// The record, without fields that are not in [`ListBlobs::shown`].
        record: Box<BlobRecord>,
    },
    /// A blob of which nothing is left but versions.
    VersionsOnly {
        /// The name.
        name: String,
        /// The record of its newest version.
        record: Box<BlobRecord>,
    },
    /// A blob with staged blocks only.
    Uncommitted {
        /// The name.
        name: String,
    },
    /// An upload, in the answer to [`ListUploads`](crate::index::api::ListUploads).
    Upload {
        /// The name of the blob.
        name: String,
        /// The id of the upload.
        id: UploadId,
        /// The upload.
        record: Box<UploadRecord>,
    },
    /// All names up to and including the delimiter.
    Prefix {
        /// The common part.
        name: String,
    },
}

/// The weight of entries, about their bytes in memory, at which a page ends. 5,000 blobs with
/// little metadata weigh three quarters of it.
pub const PAGE_WEIGHT_MAX: usize = 4 << 20;

/// The weight of an entry beside its row.
pub const ENTRY_WEIGHT: usize = 512;

/// A page of blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPage {
    /// In the container's order, prefixes among them.
    pub entries: Vec<ListEntry>,
    /// Where to go on after each of them.
    pub after: Vec<Bytes>,
    /// Their weight, which may end a page before its limit.
    pub weight: usize,
    /// Where to go on, possibly in the next partition; `None` at the end of the container.
    pub next: Option<Bytes>,
    /// Rows examined for it, removed ones included.
    pub seen: usize,
}
