//! The index: rows about accounts, containers and blobs, range-partitioned by routing key, stored
//! in extents.
//!
//! 1. `api/`: the messages that the front end, reclaim and the checker send to a partition.
//!    `record/`: the records in its answers.
//! 2. `map.rs`: the partition map. `client/` finds the owner of a key and asks it. `server/` has
//!    the partitions that are open here, and changes the map.
//! 3. `engine/`: one partition: log, memtables, runs, recovery, over capacity's API.
//! 4. `objects/`: the meaning of rows. `rows.rs` is the interface between it and the engine.
//! 5. `remote/`: the partitions of a cluster, which another process serves.
//! 6. `load/`: the load of a partition. `inflight.rs`: the running requests of this process, whose
//!    bytes reclaim must not free. `check.rs`: the check of a stopped store.
//!
//! The path of a request: `client/router.rs`, `server/mod.rs`, `engine/partition.rs`,
//! `objects/machine.rs`. A write goes through `engine/write.rs` to the committer,
//! `engine/commit.rs`, before `objects/` evaluates it.
//!
//! Invariants: I5 descriptors tile the key space (`map.rs`) · I2, I6, I14, I16 in `engine/` · I7,
//! I9, I10 in `objects/`. `invariant.rs`: the asserted invariants, and the effect of a violation.
//!
//! Not here: user bytes (they go to extents before their row is written).

pub mod api;
pub mod check;
pub mod client;
pub mod engine;
pub mod inflight;
pub mod invariant;
pub mod load;
pub mod map;
pub mod metrics;
pub mod objects;
pub mod record;
pub mod remote;
pub mod rows;
pub mod server;

pub use api::NewBlobFields;
pub use api::NoteRead;
pub use api::{
    AbortUpload, CompleteUpload, ListParts, ListUploads, NamedPart, PartPage, PartRange, PartView,
    ReadPart, StagePart, StartUpload, UploadCompleted, UploadMarker, UploadRefusal,
};
pub use api::{
    AccountChange, AccountEntry, AccountPage, AppendBlock, BlobChange, BlobView, BlockListView,
    BlockView, CloseContainer, CommitBlocks, ContainerChange, ContainerEntry, ContainerPage,
    CreateContainer, Damage, DeleteBlob, DeleteContainer, Deleted, EncryptionClaim,
    EncryptionFault, Error, Full, GarbageRow, Guard, History, IndexHost, LeaseBlob, LeaseContainer,
    LeaseRefusal, LeaseResult, Leased, ListAccounts, ListBlobs, ListContainers, ListEntry,
    ListPage, ListReferences, NewContent, PAGE_WEIGHT_MAX, Piece, PutBlob, Read, ReadBlob,
    ReadReply, ReferencePlace, References, Refused, ReopenContainer, RestoreContainer, SealBlob,
    SetTier, SnapshotBlob, Snapshotted, StageBlock, StagedBlocks, Target, UndeleteBlob, UpdateBlob,
    UpdateContainer, Write, WriteReply, Written, check_lease,
};
pub use api::{
    AppendedBlock, AskPartition, CopyJobPage, CreateAccount, DeleteAccount, DeletedContainer,
    EndedPage, ExpireDeleted, ExpireStaged, ExpiredPage, ForgetContainer, ForgetGarbage,
    ForgetTagWork, GarbagePage, Prove, PurgeContainer, ReadAccount, ReadBlockList, ReadContainer,
    ReadCopyJobs, ReadDeadContainers, ReadEndedDeletions, ReadExpired, ReadGarbage, ReadRequest,
    ReadTagWork, SetUpAccount, Settle, TagWorkPage, UpdateAccount, WriteRequest,
};
pub use api::{BlobPartView, BlobPartsView, ReadBlobParts};
pub use api::{
    CHILDREN_MAX, ChangeError, ChangeEvent, ChangeKind, Changed, ChangesOf, KnownChanges,
};
pub use api::{ChangeSetting, ReadSetting, SettingChange};
pub use api::{CopiedBlock, CopiedContent, Frames, Increment, PutCopy, Share, SharedBlob};
pub use api::{CopyEnd, EndCopy, LeaseCopy, PendingCopy, ResealCopy};
pub use api::{CopyWatch, Hold, OldestRead, RequestMark, Running, RunningRequests};
pub use api::{EntryChange, IndexTag, ListTags, TagEntry, TagPage, TagWork};
pub use api::{
    FillLayer, PageRange, PageRanges, PageSpan, PagesWritten, ReadPages, SequenceAction,
    SequenceBounds, SharePages, SharedPages, UpdatePages, WritePages,
};
pub use api::{LoadReport, PartitionLoad, Plan};
pub use api::{PartitionControl, PartitionCounts, PartitionStatus, ServedPartitions};
pub use api::{WriteId, WriterSessions};
pub use client::{
    ClusterHost, Containers, Entered, FixedMap, FoundContainer, Router, WriteNumbers,
};
pub use engine::open_offline;
pub use engine::{Config, CutPartition, Dependencies, ExtentRecord, KeptExtents, Loaded, Offline};
pub use engine::{NO_EXTENT_ID, RECORD_CHANGES, TOO_MANY_RUNS, UNRECORDED_KEY};
pub use inflight::{ClusterRequests, InFlight, LocalRequests, Processes, ReadNote};
pub use load::{Class, Counts, Load};
pub use map::{FollowedMap, Found, PartitionDescriptor, PartitionMap};
pub use metrics::Metrics;
pub use objects::{Objects, upload_marker_before};
pub use record::{AccountRecord, BlobRecord, ContainerRecord, ScopeRecord, UploadRecord};
pub use record::{CopyJob, CopyLease, CopyLink, CopyRecord, CopyStatus};
pub use record::{Encryption, ListedFields};
pub use record::{UserKey, UserRecord};
pub use server::{ConsistentCut, CutError, IndexServer, LoadReports};
pub use server::{LatestChanges, LocalPartitions, create_map, even_cuts};
