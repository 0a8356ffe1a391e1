//! Every request, free of dialect.
//!
//! Some requests have a document in their body, such as a block list. Then the dialect's parser
//! returns [`Parsed::NeedsBody`], and the fields that the document fills are empty until it is
//! decoded. So no operation reads a document.

mod account;
mod blob;
mod container;
mod content;
mod deletions;
mod metadata;
mod names;
mod parsed;
pub(super) mod parts;
mod preconditions;
mod setting;
mod upload;

pub use account::AccountOperation;
pub use blob::BlobOperation;
pub use container::ContainerOperation;
pub use content::ContentOperation;
pub use deletions::{BlobDeletion, DELETIONS_MAX, DeleteBlobs};
pub use names::OPERATION_NAMES;
pub use parsed::{Decode, Document, DocumentBody, Parsed};
pub use parts::{
    AccessPolicy, Batch, BatchPart, BlobPath, BlockListKind, ChecksumClaim, ClaimedChecksums,
    ContainerSettings, FindBlobs, Framing, Holder, KeyInfo, ListAfter, ListBlobs, ListContainers,
    LockPart, PageWrite, Passed, Precondition, RangeChecksum, RequestEncryption, SequenceBounds,
    SequenceChange, Upload, VersionAfter, VersionOrder, WantedParts,
};
pub use setting::{SettingAction, SettingOperation};
pub use upload::{
    CompleteUpload, CopyPart, CreateUpload, ListUploads, NamedPart, UploadOperation, UploadPart,
    UploadPath,
};

/// Everything that a client can request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// On an account.
    Account(AccountOperation),
    /// On a container.
    Container(ContainerOperation),
    /// Writes the content of a blob.
    Content(ContentOperation),
    /// Reads or changes a blob.
    Blob(BlobOperation),
    /// On uploads in parts.
    Upload(UploadOperation),
}

impl From<AccountOperation> for Operation {
    fn from(operation: AccountOperation) -> Self {
        Self::Account(operation)
    }
}

impl From<ContainerOperation> for Operation {
    fn from(operation: ContainerOperation) -> Self {
        Self::Container(operation)
    }
}

impl From<ContentOperation> for Operation {
    fn from(operation: ContentOperation) -> Self {
        Self::Content(operation)
    }
}

impl From<UploadOperation> for Operation {
    fn from(operation: UploadOperation) -> Self {
        Self::Upload(operation)
    }
}

impl From<BlobOperation> for Operation {
    fn from(operation: BlobOperation) -> Self {
        Self::Blob(operation)
    }
}
