//! The index trait: what a front end, reclaim and the checker ask of a partition. In process today,
//! over RPC in a cluster.
//!
//! 1. `host.rs`: the trait.
//! 2. `write.rs`: changes, with messages in `accounts.rs`, `blobs.rs`, `appends.rs`, `pages.rs`,
//!    `containers.rs`, `settings.rs`, `copy.rs`, `lease.rs`, `versions.rs` and `accessed.rs`;
//!    `new_fields.rs`: what a dialect sets beside properties and metadata; `written.rs`: what most
//!    of them answer.
//! 3. `read.rs`: questions, with pages in `list.rs` and `containers.rs`; `reclaim.rs`: the answers
//!    to reclaim; `tags.rs`: the tag index; `typed.rs`: questions and changes whose answers have a
//!    type of their own; `uploads.rs`: changes and questions of uploads in parts; `blob_parts.rs`:
//!    the parts of an object that was uploaded so.
//! 4. `load.rs`, `plan.rs`: what a manager reads of the load, and the changes of the map that it
//!    plans.
//! 5. `requests.rs`: what reclaim and backups ask of those that run requests.
//! 6. `weight.rs`: what a queued write occupies; `place.rs`: which partition is meant; `error.rs`:
//!    why a request has no answer.
//!
//! Messages are plain values: whole, checked by the types they are made of, routed by one key each.
//! They hold nothing of a process and can be sent as bytes, which postcard encodes (ADR 0029).

mod accessed;
mod accounts;
mod appends;
mod blob_parts;
mod blobs;
mod containers;
mod copy;
mod error;
mod host;
mod lease;
mod list;
mod load;
mod new_fields;
mod pages;
mod place;
mod plan;
mod read;
mod reclaim;
mod requests;
mod settings;
mod tags;
mod typed;
mod uploads;
mod versions;
mod weight;
mod write;
mod written;

pub use accessed::NoteRead;
pub use accounts::{AccountChange, AccountEntry, AccountPage, ListAccounts, SetUpAccount};
pub use appends::{AppendBlock, AppendedBlock, SealBlob};
pub use blob_parts::{BlobPartView, BlobPartsView, ReadBlobParts};
pub use blobs::{
    BlobChange, CommitBlocks, DeleteBlob, EncryptionClaim, Guard, NewContent, PutBlob, StageBlock,
    UpdateBlob,
};
pub use containers::{
    CloseContainer, ContainerChange, ContainerEntry, ContainerPage, CreateContainer,
    DeleteContainer, ListContainers, ReopenContainer, RestoreContainer, UpdateContainer,
};
pub use copy::{CopiedBlock, CopiedContent, Frames, Increment, PutCopy, Share, SharedBlob};
pub use copy::{CopyEnd, CopyJobPage, EndCopy, PendingCopy, ResealCopy};
pub use error::{Damage, EncryptionFault, Error, Full, LeaseRefusal, Refused, UploadRefusal};
pub use host::{IndexHost, Target};
pub use lease::{LeaseBlob, LeaseContainer, LeaseResult, Leased, check_lease};
pub use list::{ENTRY_WEIGHT, History, ListBlobs, ListEntry, ListPage, PAGE_WEIGHT_MAX};
pub use load::{LoadReport, PartitionLoad};
pub use new_fields::NewBlobFields;
pub use pages::{
    FillLayer, PageRange, PageRanges, PageSpan, PagesWritten, ReadPages, SequenceAction,
    SequenceBounds, SharePages, SharedPages, UpdatePages, WritePages,
};
pub use place::Place;
pub use plan::Plan;
pub use read::{BlobView, BlockListView, BlockView, Piece, Read, ReadBlob, ReadReply};
pub use reclaim::{
    DeletedContainer, EndedPage, ExpiredPage, GarbagePage, GarbageRow, ListReferences,
    ReferencePlace, References, StagedBlocks,
};
pub use requests::{
    CopyWatch, CopyWatchId, Hold, HoldId, OldestRead, RequestMark, Running, RunningRequests,
};
pub use settings::{ChangeSetting, ReadSetting, SettingChange};
pub use tags::{EntryChange, IndexTag, ListTags, TagEntry, TagPage, TagWork, TagWorkPage};
#[cfg(test)]
pub(crate) use typed::is_answer;
pub use typed::{
    AskPartition, CreateAccount, DeleteAccount, ExpireDeleted, ExpireStaged, ForgetContainer,
    ForgetGarbage, ForgetTagWork, Prove, PurgeContainer, ReadAccount, ReadBlockList, ReadContainer,
    ReadCopyJobs, ReadDeadContainers, ReadEndedDeletions, ReadExpired, ReadGarbage, ReadRequest,
    ReadTagWork, UpdateAccount, WriteRequest,
};
pub use uploads::{
    AbortUpload, CompleteUpload, ListParts, ListUploads, NamedPart, PartPage, PartRange, PartView,
    ReadPart, StagePart, StartUpload, UploadCompleted, UploadMarker,
};
pub use versions::{SetTier, SnapshotBlob, Snapshotted, UndeleteBlob};
pub use write::{Write, WriteReply, purge_key};
pub use written::{Deleted, Written};

#[cfg(test)]
mod tests;
