//! The index trait: the requests of the front end, reclaim and the checker to a partition. It is a
//! call today, and an RPC in a cluster.
//!
//! 1. `host.rs`: the trait.
//! 2. `write.rs`: changes, with messages in `accounts.rs`, `blobs.rs`, `appends.rs`, `pages.rs`,
//!    `containers.rs`, `settings.rs`, `copy.rs`, `lease.rs`, `versions.rs` and `accessed.rs`;
//!    `new_fields.rs`: fields that a dialect sets beside properties and metadata; `written.rs`: the
//!    answer of most of them.
//! 3. `read.rs`: questions, with pages in `list.rs` and `containers.rs`; `reclaim.rs`: the answers
//!    to reclaim; `tags.rs`: the tag index; `typed.rs`: questions and changes whose answers have a
//!    type of their own; `uploads.rs`: changes and questions of uploads in parts; `blob_parts.rs`:
//!    the parts of an object that was uploaded in parts.
//! 4. `load.rs`, `plan.rs`: the load that a manager reads, and the changes of the map that it
//!    plans. `control.rs`: the trait of those who show and change partitions; `status.rs`,
//!    `changes.rs`: its answers.
//! 5. `requests.rs`: questions of reclaim and backups to the processes that run requests.
//! 6. `weight.rs`: the memory of a queued write; `place.rs`: the partition that a request names;
//!    `error.rs`: errors. `once.rs`: the numbers of writes that may be sent again.
//!
//! Messages are plain values, checked by the types of their fields, and routed by one key each.
//! They refer to nothing in a process and can be sent as bytes, which postcard encodes (ADR 0029).

mod accessed;
mod accounts;
mod appends;
mod blob_parts;
mod blobs;
mod changes;
mod containers;
mod control;
mod copy;
mod error;
mod host;
mod lease;
mod list;
mod load;
mod new_fields;
mod once;
mod pages;
mod place;
mod plan;
mod read;
mod reclaim;
mod requests;
mod settings;
mod status;
mod tags;
mod typed;
mod uploads;
mod versions;
mod weight;
mod write;
mod write_reply;
mod written;

pub use accessed::NoteRead;
pub use accounts::{AccountChange, AccountEntry, AccountPage, ListAccounts, SetUpAccount};
pub use appends::{AppendBlock, AppendedBlock, SealBlob};
pub use blob_parts::{BlobPartView, BlobPartsView, ReadBlobParts};
pub use blobs::{
    BlobChange, CommitBlocks, DeleteBlob, EncryptionClaim, Guard, NewContent, PutBlob, StageBlock,
    UpdateBlob,
};
pub use changes::{CHILDREN_MAX, ChangeError, ChangeEvent, ChangeKind, Changed};
pub use containers::{
    CloseContainer, ContainerChange, ContainerEntry, ContainerPage, CreateContainer,
    DeleteContainer, ListContainers, ReopenContainer, RestoreContainer, UpdateContainer,
};
pub use control::{ChangesOf, KnownChanges, PartitionControl};
pub use copy::{CopiedBlock, CopiedContent, Frames, Increment, PutCopy, Share, SharedBlob};
pub use copy::{CopyEnd, CopyJobPage, EndCopy, LeaseCopy, PendingCopy, ResealCopy};
pub use error::{Damage, EncryptionFault, Error, Full, LeaseRefusal, Refused, UploadRefusal};
pub use host::{IndexHost, Target};
pub use lease::{LeaseBlob, LeaseContainer, LeaseResult, Leased, check_lease};
pub use list::{ENTRY_WEIGHT, History, ListBlobs, ListEntry, ListPage, PAGE_WEIGHT_MAX};
pub use load::{LoadReport, PartitionLoad};
pub use new_fields::NewBlobFields;
pub use once::{WriteId, WriterSessions};
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
pub use status::{PartitionCounts, PartitionStatus, ServedPartitions};
pub use tags::{EntryChange, IndexTag, ListTags, TagEntry, TagPage, TagWork, TagWorkPage};
#[cfg(test)]
pub(crate) use typed::is_answer;
pub use typed::{
    AskPartition, CreateAccount, DeleteAccount, ExpireDeleted, ExpireStaged, ForgetContainer,
    ForgetGarbage, ForgetTagWork, Prove, PurgeContainer, ReadAccount, ReadBlockList, ReadContainer,
    ReadCopyJobs, ReadDeadContainers, ReadEndedDeletions, ReadExpired, ReadGarbage, ReadRequest,
    ReadTagWork, Settle, UpdateAccount, WriteRequest,
};
pub use uploads::{
    AbortUpload, CompleteUpload, ListParts, ListUploads, NamedPart, PartPage, PartRange, PartView,
    ReadPart, StagePart, StartUpload, UploadCompleted, UploadMarker,
};
pub use versions::{SetTier, SnapshotBlob, Snapshotted, UndeleteBlob};
pub use write::{Write, purge_key};
pub use write_reply::WriteReply;
pub use written::{Deleted, Written};

#[cfg(test)]
mod tests;
