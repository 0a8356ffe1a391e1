//! The answers to changes of a partition.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use std::fmt::Debug;

use crate::index::api::AppendedBlock;
use crate::index::api::Deleted;
use crate::index::api::Leased;
use crate::index::api::PagesWritten;
use crate::index::api::PartView;
use crate::index::api::SharedBlob;
use crate::index::api::SharedPages;
use crate::index::api::Snapshotted;
use crate::index::api::UploadCompleted;
use crate::index::api::Written;
use crate::index::record::AccountRecord;
use crate::index::record::ContainerRecord;

/// The answer to a [`Write`](crate::index::Write).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteReply {
    /// The account, new or not.
    Account(Box<AccountRecord>),
    /// A container or blob changed.
    Written(Written),
    /// A blob, or some of its rows, was deleted.
    Deleted(Deleted),
    /// A container was closed; its record.
    Closed(Box<ContainerRecord>),
    /// A lease was acted on.
    Leased(Leased),
    /// The content that [`Share`](crate::index::Write::Share) marked.
    Shared(Box<SharedBlob>),
    /// The pages that [`SharePages`](crate::index::Write::SharePages) marked.
    SharedPages(SharedPages),
    /// The layer that was filled.
    Layer(u64),
    /// Pages changed.
    Pages(PagesWritten),
    /// A part was staged.
    PartStaged(Box<PartView>),
    /// An upload was completed.
    UploadCompleted(Box<UploadCompleted>),
    /// A block was appended.
    Appended(AppendedBlock),
    /// A snapshot was taken.
    Snapshotted(Snapshotted),
    /// Soft-deleted rows were restored.
    Undeleted {
        /// Whether more can be restored.
        has_more: bool,
    },
    /// A tier was set.
    TierSet {
        /// The blob is on its way out of the archive.
        pending: bool,
    },
    /// Done, without a result.
    Done,
    /// How far a purge came.
    Purged {
        /// Where to go on; `None` when the container has no rows left in this partition.
        next: Option<Bytes>,
    },
}
