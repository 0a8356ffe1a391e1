//! The index trait: what a front end, reclaim and the checker ask of a partition. In process today, over RPC in a cluster.

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error as ThisError;

use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::BlobKey;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::ByteRange;
use crate::types::Collation;
use crate::types::Conditions;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Crc64;
use crate::types::Epoch;
use crate::types::Etag;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::Metadata;
use crate::types::Outcome;
use crate::types::PartitionId;
use crate::types::PublicAccess;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// The partition a router believes to own the key, and the epoch it knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The partition.
    pub partition: PartitionId,
    /// Its epoch in the router's map.
    pub epoch: Epoch,
}

/// What a request demands of the current state before it is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// `If-*`.
    pub conditions: Conditions,
    /// `x-ms-lease-id`, if sent.
    pub lease: Option<String>,
}

/// Content whose bytes are durable already, or small enough to live in the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewContent {
    /// Kept in the row; may be empty.
    Inline(Bytes),
    /// Stored in extents, in order.
    Stored(Vec<Location>),
}

/// Creates a container under an id already issued.
#[derive(Clone, Debug)]
pub struct CreateContainer {
    /// The account.
    pub account: AccountId,
    /// The name.
    pub name: ContainerName,
    /// A fresh id.
    pub id: ContainerId,
    /// The order of its names.
    pub collation: Collation,
    /// User metadata.
    pub metadata: Metadata,
    /// Anonymous access.
    pub public_access: PublicAccess,
}

/// Replaces a container's metadata.
#[derive(Clone, Debug)]
pub struct UpdateContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// What must hold.
    pub guard: Guard,
    /// The new metadata.
    pub metadata: Metadata,
}

/// Deletes a container: its name is free at once, its rows are purged later.
#[derive(Clone, Debug)]
pub struct DeleteContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// What must hold.
    pub guard: Guard,
}

/// Makes or replaces a blob; its staged blocks are discarded.
#[derive(Clone, Debug)]
pub struct PutBlob {
    /// The blob.
    pub key: BlobKey,
    /// What must hold.
    pub guard: Guard,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    pub metadata: Metadata,
    /// The bytes.
    pub content: NewContent,
    /// Their CRC-64/NVME.
    pub crc64: Crc64,
}

/// Stages one block, replacing a staged one of the same id.
#[derive(Clone, Debug)]
pub struct StageBlock {
    /// The blob.
    pub key: BlobKey,
    /// Only the lease counts: Put Block takes no conditions.
    pub guard: Guard,
    /// The block.
    pub id: BlockId,
    /// The bytes, not empty.
    pub content: NewContent,
    /// Their CRC-64/NVME.
    pub crc64: Crc64,
}

/// Commits a block list: the named blocks become the blob, all other staged ones are discarded.
#[derive(Clone, Debug)]
pub struct CommitBlocks {
    /// The blob.
    pub key: BlobKey,
    /// What must hold.
    pub guard: Guard,
    /// System properties, replacing all.
    pub properties: BlobProperties,
    /// User metadata, replacing all.
    pub metadata: Metadata,
    /// The blocks, at most [`crate::types::BLOCKS_COMMITTED_MAX`].
    pub list: Vec<BlockListEntry>,
}

/// A change of a blob that leaves its content alone.
#[derive(Clone, Debug)]
pub enum BlobChange {
    /// Replaces the system properties.
    Properties(BlobProperties),
    /// Replaces the user metadata.
    Metadata(Metadata),
}

/// Changes properties or metadata.
#[derive(Clone, Debug)]
pub struct UpdateBlob {
    /// The blob.
    pub key: BlobKey,
    /// What must hold.
    pub guard: Guard,
    /// The change.
    pub change: BlobChange,
}

/// Deletes a blob and its staged blocks.
#[derive(Clone, Debug)]
pub struct DeleteBlob {
    /// The blob.
    pub key: BlobKey,
    /// What must hold.
    pub guard: Guard,
}

/// A change of one partition's rows, durable when answered.
#[derive(Clone, Debug)]
pub enum Write {
    /// Makes an account under an id already issued; one that exists is left as it is and returned.
    CreateAccount {
        /// The name.
        name: AccountName,
        /// A fresh id.
        id: AccountId,
    },
    /// Create Container.
    CreateContainer(CreateContainer),
    /// Set Container Metadata.
    UpdateContainer(UpdateContainer),
    /// Delete Container.
    DeleteContainer(DeleteContainer),
    /// Put Blob.
    PutBlob(PutBlob),
    /// Put Block.
    StageBlock(StageBlock),
    /// Put Block List.
    CommitBlocks(CommitBlocks),
    /// Set Blob Properties, Set Blob Metadata.
    UpdateBlob(UpdateBlob),
    /// Delete Blob.
    DeleteBlob(DeleteBlob),
    /// Reclaim: drops staged blocks of blobs last staged to before `before`; `key` as read by [`Read::Expired`].
    ExpireStaged {
        /// The blob's routing key.
        key: RoutingKey,
        /// Only if still not staged to since.
        before: Timestamp,
    },
    /// Reclaim: removes up to `limit` blobs' rows of a deleted container, starting at its lowest; answers
    /// [`WriteReply::Purged`].
    PurgeContainer {
        /// The account.
        account: AccountId,
        /// The dead container.
        container: ContainerId,
        /// Where to start: a position inside the partition.
        from: Bytes,
        /// Blobs at most.
        limit: usize,
    },
    /// Reclaim: forgets that a container was deleted, after all its rows are gone.
    ForgetContainer {
        /// The account.
        account: AccountId,
        /// The dead container.
        container: ContainerId,
    },
    /// Reclaim: these garbage rows have been freed.
    ForgetGarbage {
        /// Row keys from [`Read::Garbage`], all of this partition.
        keys: Vec<Bytes>,
    },
}

impl Write {
    /// The position the request is routed by.
    #[must_use]
    pub fn routing_key(&self) -> Bytes {
        match self {
            Self::CreateAccount { name, .. } => RoutingKey::account(name).as_bytes().clone(),
            Self::CreateContainer(c) => {
                RoutingKey::container(c.account, &c.name).as_bytes().clone()
            }
            Self::UpdateContainer(c) => {
                RoutingKey::container(c.account, &c.name).as_bytes().clone()
            }
            Self::DeleteContainer(c) => {
                RoutingKey::container(c.account, &c.name).as_bytes().clone()
            }
            Self::PutBlob(b) => RoutingKey::blob(&b.key).as_bytes().clone(),
            Self::StageBlock(b) => RoutingKey::blob(&b.key).as_bytes().clone(),
            Self::CommitBlocks(b) => RoutingKey::blob(&b.key).as_bytes().clone(),
            Self::UpdateBlob(b) => RoutingKey::blob(&b.key).as_bytes().clone(),
            Self::DeleteBlob(b) => RoutingKey::blob(&b.key).as_bytes().clone(),
            Self::ExpireStaged { key, .. } => key.as_bytes().clone(),
            Self::PurgeContainer { from, .. } => from.clone(),
            Self::ForgetContainer { account, container } => purge_key(*account, *container),
            Self::ForgetGarbage { keys } => keys.first().cloned().unwrap_or_default(),
        }
    }
}

impl Write {
    /// Roughly the bytes it occupies while it waits, for bounds on queues.
    #[must_use]
    pub fn weight(&self) -> usize {
        const FIXED: usize = 1024;
        const ENTRY: usize = 96;
        let content = |content: &NewContent| match content {
            NewContent::Inline(bytes) => bytes.len(),
            NewContent::Stored(locations) => locations.len() * ENTRY,
        };
        FIXED
            + match self {
                Self::PutBlob(put) => content(&put.content),
                Self::StageBlock(stage) => content(&stage.content),
                Self::CommitBlocks(commit) => commit.list.len() * ENTRY,
                Self::ForgetGarbage { keys } => keys.len() * ENTRY,
                Self::CreateAccount { .. }
                | Self::CreateContainer(_)
                | Self::UpdateContainer(_)
                | Self::DeleteContainer(_)
                | Self::UpdateBlob(_)
                | Self::DeleteBlob(_)
                | Self::ExpireStaged { .. }
                | Self::PurgeContainer { .. }
                | Self::ForgetContainer { .. } => 0,
            }
    }
}

/// The row that remembers a deleted container until its rows are gone: account, container 0, then bytes no
/// name starts with, then the id. In [`crate::index::rows::Family::Garbage`].
#[must_use]
pub fn purge_key(account: AccountId, container: ContainerId) -> Bytes {
    let mut key = Vec::with_capacity(26);
    key.extend_from_slice(&account.get().to_be_bytes());
    key.extend_from_slice(&0u64.to_be_bytes());
    key.extend_from_slice(&[0x00, 0x00]);
    key.extend_from_slice(&container.get().to_be_bytes());
    key.into()
}

/// What a change of a container or blob answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The new tag.
    pub etag: Etag,
    /// The new time.
    pub last_modified: Timestamp,
}

/// The answer to a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteReply {
    /// The account, new or not.
    Account(AccountRecord),
    /// A container or blob changed.
    Written(Written),
    /// Done, nothing to tell.
    Done,
    /// How far a purge came.
    Purged {
        /// Where to go on; `None` when the container has no rows left in this partition.
        next: Option<Bytes>,
    },
}

/// Get Blob, Get Blob Properties.
#[derive(Clone, Debug)]
pub struct ReadBlob {
    /// The blob.
    pub key: BlobKey,
    /// What must hold.
    pub guard: Guard,
    /// Which bytes are wanted; `None` for all. A range past the end answers [`Error::InvalidRange`].
    pub range: Option<ByteRange>,
    /// Whether pieces are wanted at all.
    pub pieces: bool,
}

/// A part of a blob's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Here it is.
    Inline(Bytes),
    /// `range` of the payload of `location`.
    Stored {
        /// Where.
        location: Location,
        /// Which of its payload bytes.
        range: Range<u64>,
    },
}

/// A blob as of one instant.
#[derive(Clone, Debug)]
pub struct BlobView {
    /// The blob.
    pub record: BlobRecord,
    /// The wanted bytes of the content, half-open; empty for an empty blob.
    pub range: Range<u64>,
    /// The first pieces of it; together they cover `range` up to `pieces_end`.
    pub pieces: Vec<Piece>,
    /// Where the pieces end: below `range.end` when the layout is long. Ask again from here with `If-Match`.
    pub pieces_end: u64,
}

/// One block of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// The block.
    pub id: BlockId,
    /// Its length, bytes.
    pub len: u64,
}

/// Get Block List.
#[derive(Clone, Debug)]
pub struct BlockListView {
    /// The committed blob, if there is one.
    pub record: Option<BlobRecord>,
    /// Its blocks in order; none when it was made by Put Blob.
    pub committed: Vec<BlockView>,
    /// Staged blocks in the order of their ids.
    pub uncommitted: Vec<BlockView>,
}

/// List Containers: one page.
#[derive(Clone, Debug)]
pub struct ListContainers {
    /// The account.
    pub account: AccountId,
    /// Only names that start so.
    pub prefix: String,
    /// Where to go on: `next` of the page before.
    pub from: Option<Bytes>,
    /// Entries at most, above 0.
    pub limit: usize,
}

impl ListContainers {
    /// The position the page starts at, by which it is routed.
    #[must_use]
    pub fn position(&self) -> Bytes {
        let table = ContainerId::new(0);
        let start = RoutingKey::prefix(self.account, table, &self.prefix, Collation::Utf8);
        self.from.clone().map_or(start.clone(), |from| from.max(start))
    }
}

/// A container in a list.
#[derive(Clone, Debug)]
pub struct ContainerEntry {
    /// The name.
    pub name: String,
    /// The record.
    pub record: ContainerRecord,
}

/// A page of containers.
#[derive(Clone, Debug)]
pub struct ContainerPage {
    /// In name order.
    pub entries: Vec<ContainerEntry>,
    /// Where to go on, possibly in the next partition; `None` at the end.
    pub next: Option<Bytes>,
}

/// List Blobs: one page of one container, as far as this partition reaches.
#[derive(Clone, Debug)]
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
    /// Where to go on: `next` of the page before.
    pub from: Option<Bytes>,
    /// Entries at most, above 0.
    pub limit: usize,
    /// Also blobs that have only staged blocks.
    pub uncommitted: bool,
}

impl ListBlobs {
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

/// An entry of a blob list.
#[derive(Clone, Debug)]
pub enum ListEntry {
    /// A committed blob.
    Blob {
        /// The name.
        name: String,
        /// The record.
        record: Box<BlobRecord>,
    },
    /// A blob with staged blocks only.
    Uncommitted {
        /// The name.
        name: String,
    },
    /// All names up to and including the delimiter.
    Prefix {
        /// The common part.
        name: String,
    },
}

/// A page of blobs.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// In the container's order, prefixes among them.
    pub entries: Vec<ListEntry>,
    /// Where to go on, possibly in the next partition; `None` at the end of the container.
    pub next: Option<Bytes>,
}

/// Something to free.
#[derive(Clone, Debug)]
pub struct GarbageRow {
    /// For [`Write::ForgetGarbage`].
    pub key: Bytes,
    /// When it became garbage.
    pub since: Timestamp,
    /// What to free.
    pub locations: Vec<Location>,
}

/// A blob with staged blocks, for expiry.
#[derive(Clone, Debug)]
pub struct StagedBlocks {
    /// The blob.
    pub key: RoutingKey,
    /// The last Put Block.
    pub last_staged: Timestamp,
}

/// Everything some rows refer to, for the audit: current, staged and garbage alike.
#[derive(Clone, Debug)]
pub struct References {
    /// Locations.
    pub locations: Vec<Location>,
    /// Where to go on; `None` at the end of the partition.
    pub next: Option<Bytes>,
}

/// A question to one partition; linearizable.
#[derive(Clone, Debug)]
pub enum Read {
    /// An account.
    Account(AccountName),
    /// A container.
    Container(AccountId, ContainerName),
    /// A page of containers.
    Containers(ListContainers),
    /// A blob with the pieces that cover a range.
    Blob(ReadBlob),
    /// A blob's block lists.
    BlockList(BlobKey, Guard),
    /// A page of blobs.
    Blobs(ListBlobs),
    /// Garbage of the whole partition from a position.
    Garbage {
        /// Start; empty for the beginning.
        from: Bytes,
        /// Rows at most.
        limit: usize,
    },
    /// Deleted containers whose rows are not yet purged.
    DeadContainers,
    /// Blobs last staged to before a time.
    Expired {
        /// Start; empty for the beginning.
        from: Bytes,
        /// The time.
        before: Timestamp,
        /// Blobs at most.
        limit: usize,
    },
    /// Everything referred to by rows from a position; whole blobs, each as of one instant.
    References {
        /// Start; empty for the beginning.
        from: Bytes,
        /// Blobs at most.
        limit: usize,
    },
}

impl Read {
    /// The position the request is routed by; `None` when it is about a whole partition, whatever its keys.
    #[must_use]
    pub fn routing_key(&self) -> Option<Bytes> {
        match self {
            Self::Account(name) => Some(RoutingKey::account(name).as_bytes().clone()),
            Self::Container(account, name) => {
                Some(RoutingKey::container(*account, name).as_bytes().clone())
            }
            Self::Containers(list) => Some(list.position()),
            Self::Blob(read) => Some(RoutingKey::blob(&read.key).as_bytes().clone()),
            Self::BlockList(key, _) => Some(RoutingKey::blob(key).as_bytes().clone()),
            Self::Blobs(list) => Some(list.position()),
            Self::Garbage { .. }
            | Self::DeadContainers
            | Self::Expired { .. }
            | Self::References { .. } => None,
        }
    }
}

/// The answer to a [`Read`].
#[derive(Clone, Debug)]
pub enum ReadReply {
    /// To [`Read::Account`].
    Account(AccountRecord),
    /// To [`Read::Container`].
    Container(Box<ContainerRecord>),
    /// To [`Read::Containers`].
    Containers(ContainerPage),
    /// To [`Read::Blob`].
    Blob(Box<BlobView>),
    /// To [`Read::BlockList`].
    BlockList(Box<BlockListView>),
    /// To [`Read::Blobs`].
    Blobs(ListPage),
    /// To [`Read::Garbage`]; with where to go on.
    Garbage(Vec<GarbageRow>, Option<Bytes>),
    /// To [`Read::DeadContainers`]; with when each was deleted.
    DeadContainers(Vec<(AccountId, ContainerId, Timestamp)>),
    /// To [`Read::Expired`]; with where to go on.
    Expired(Vec<StagedBlocks>, Option<Bytes>),
    /// To [`Read::References`].
    References(References),
}

/// Why a request was refused; each variant is a different answer or a different next step.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Error {
    /// The partition is not here, not at this epoch, or does not own the key: read the map again and retry.
    #[error("wrong partition")]
    WrongPartition,
    /// No such account.
    #[error("no such account")]
    AccountNotFound,
    /// No such container.
    #[error("no such container")]
    ContainerNotFound,
    /// A container of that name exists.
    #[error("the container exists")]
    ContainerExists,
    /// No such blob (one with staged blocks only does not exist either).
    #[error("no such blob")]
    BlobNotFound,
    /// A condition failed; never [`Outcome::Proceed`].
    #[error("a condition failed: {0:?}")]
    Condition(Outcome),
    /// A lease id was sent but there is no lease.
    #[error("there is no lease")]
    LeaseNotPresent,
    /// The range starts past the end; the blob's length.
    #[error("the range starts past the end, {len}")]
    InvalidRange {
        /// The blob's length.
        len: u64,
    },
    /// A block list names a block that is not there.
    #[error("the block list names an unknown block")]
    UnknownBlock,
    /// The block id's length differs from the blob's other blocks.
    #[error("the block id's length differs from the blob's other blocks")]
    BlockIdLength,
    /// Too many staged blocks.
    #[error("too many uncommitted blocks")]
    TooManyBlocks,
    /// No space for the index's own rows.
    #[error("the disk is full")]
    Full,
    /// Rows cannot be read: their checksum does not match.
    #[error("index rows are damaged: {0}")]
    Corrupt(String),
    /// The partition cannot serve now (stopping, or its disk is poisoned).
    #[error("the partition is unavailable: {0}")]
    Unavailable(String),
    /// Too much is queued: retry later.
    #[error("the partition is overloaded")]
    Overloaded,
}

/// Hosts partitions.
#[async_trait]
pub trait IndexHost: Send + Sync + Debug {
    /// Answers from one partition.
    ///
    /// # Errors
    /// [`Error`].
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error>;

    /// Changes one partition; durable when it returns. Not cancel-safe: run it in a task of its own.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unavailable`] the change may or may not have happened.
    async fn write(&self, target: Target, write: Write) -> Result<WriteReply, Error>;

    /// The log and run extents of all partitions hosted here, for the audit.
    async fn owned_extents(&self) -> Vec<ExtentId>;
}
