//! Every question to one partition, and its answer.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

use crate::index::api::AccountPage;
use crate::index::api::BlobPartsView;
use crate::index::api::ContainerPage;
use crate::index::api::CopyJobPage;
use crate::index::api::DeletedContainer;
use crate::index::api::EndedPage;
use crate::index::api::ExpiredPage;
use crate::index::api::GarbagePage;
use crate::index::api::Guard;
use crate::index::api::ListAccounts;
use crate::index::api::ListBlobs;
use crate::index::api::ListContainers;
use crate::index::api::ListPage;
use crate::index::api::ListParts;
use crate::index::api::ListReferences;
use crate::index::api::ListTags;
use crate::index::api::ListUploads;
use crate::index::api::PageRanges;
use crate::index::api::PartPage;
use crate::index::api::PartRange;
use crate::index::api::Place;
use crate::index::api::ReadBlobParts;
use crate::index::api::ReadPages;
use crate::index::api::ReadPart;
use crate::index::api::ReadSetting;
use crate::index::api::References;
use crate::index::api::TagPage;
use crate::index::api::TagWorkPage;
use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::BlobKey;
use crate::types::BlockId;
use crate::types::ByteRange;
use crate::types::ContainerName;
use crate::types::ExtentId;
use crate::types::KeyedNonce;
use crate::types::Location;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Setting;
use crate::types::Timestamp;

/// Get Blob, Get Blob Properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBlob {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The precondition.
    pub guard: Guard,
    /// Which bytes are wanted; `None` for all. A range past the end answers
    /// `InvalidRange`.
    pub range: Option<ByteRange>,
    /// Whether pieces are wanted at all.
    pub pieces: bool,
}

/// A part of a blob's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Either of those above, encrypted as earlier releases did.
    Encrypted {
        /// How to decrypt.
        nonce: KeyedNonce,
        /// The offset of the piece in the content that was encrypted as one.
        at: u64,
        /// The ciphertext.
        #[serde(deserialize_with = "unencrypted")]
        piece: Box<Self>,
    },
    /// Authenticated chunks (`types::chunks`).
    Authenticated {
        /// How to decrypt them.
        nonce: KeyedNonce,
        /// Bytes of all that was encrypted as one.
        len: u64,
        /// Which of its bytes are wanted.
        range: Range<u64>,
        /// The authenticated chunks that cover them, whole.
        #[serde(deserialize_with = "unencrypted")]
        piece: Box<Self>,
    },
    /// So many zeros.
    Zeros(u64),
}

/// A piece that is not encrypted, as a message holds it: the first variants of [`Piece`].
#[derive(Deserialize)]
enum Unencrypted {
    Inline(Bytes),
    Stored { location: Location, range: Range<u64> },
}

/// Decodes what is encrypted. A piece is encrypted once: deeper levels are refused, so that a
/// message cannot exhaust the stack.
fn unencrypted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Piece>, D::Error> {
    Ok(Box::new(match Unencrypted::deserialize(deserializer)? {
        Unencrypted::Inline(bytes) => Piece::Inline(bytes),
        Unencrypted::Stored { location, range } => Piece::Stored { location, range },
    }))
}

impl Piece {
    /// The extent it lies in.
    #[must_use]
    pub fn extent(&self) -> Option<ExtentId> {
        match self {
            Self::Stored { location, .. } => Some(location.extent),
            Self::Encrypted { piece, .. } | Self::Authenticated { piece, .. } => piece.extent(),
            Self::Inline(_) | Self::Zeros(_) => None,
        }
    }
}

/// A blob as of one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobView {
    /// The blob.
    pub record: BlobRecord,
    /// Whether it is the current blob, whichever revision was requested.
    pub is_current: bool,
    /// The wanted bytes of the content, half-open; empty for an empty blob.
    pub range: Range<u64>,
    /// The first pieces of it; together they cover `range` up to `pieces_end`.
    pub pieces: Vec<Piece>,
    /// Where the pieces end: below `range.end` when the layout is long. Ask again from here: with
    /// `If-Match`, or when there is a `generation`, holding the answer's against this one.
    pub pieces_end: u64,
    /// Of blobs that change in place: which making of the blob this is. While it is the same, bytes
    /// of an append blob are too, whatever its tag.
    pub generation: Option<u64>,
}

/// One block of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockView {
    /// The block.
    pub id: BlockId,
    /// Its length, bytes.
    pub len: u64,
}

/// Get Block List.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockListView {
    /// The committed blob, if there is one.
    pub record: Option<BlobRecord>,
    /// Its blocks in order; none when it was made by Put Blob.
    pub committed: Vec<BlockView>,
    /// Staged blocks in the order of their ids.
    pub uncommitted: Vec<BlockView>,
}

/// A question to one partition; linearizable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Read {
    /// An account.
    Account(AccountName),
    /// A page of accounts.
    Accounts(ListAccounts),
    /// A container.
    Container(AccountId, ContainerName),
    /// A setting of a container.
    Setting(ReadSetting),
    /// A page of containers.
    Containers(ListContainers),
    /// A blob with the pieces that cover a range.
    Blob(ReadBlob),
    /// A blob's block lists; of a snapshot, the committed one.
    BlockList(BlobKey, Revision, Guard),
    /// Page ranges of a page blob.
    Pages(ReadPages),
    /// A blob and the parts in which it was uploaded.
    BlobParts(ReadBlobParts),
    /// A page of blobs.
    Blobs(ListBlobs),
    /// An upload and a page of its parts.
    Parts(ListParts),
    /// Which bytes of a blob are a part.
    Part(ReadPart),
    /// A page of uploads.
    Uploads(ListUploads),
    /// Entries of the tag index.
    Tags(ListTags),
    /// Copies that are pending, from a position to the end of its partition.
    CopyJobs {
        /// Where to start.
        from: Bytes,
        /// Copies at most.
        limit: usize,
    },
    /// Changes of tags that the tag index may not show yet.
    TagWork {
        /// Of this blob; `None` for all of the partition.
        blob: Option<RoutingKey>,
        /// Start; empty for the beginning.
        from: Bytes,
        /// Rows at most.
        limit: usize,
    },
    /// Garbage of the whole partition from a position.
    Garbage {
        /// Start; empty for the beginning.
        from: Bytes,
        /// Rows at most.
        limit: usize,
    },
    /// Deleted containers whose rows are not yet purged.
    DeadContainers,
    /// Blobs last staged to before a time, or with an upload that was completed before it.
    Expired {
        /// Start; empty for the beginning.
        from: Bytes,
        /// The time.
        before: Timestamp,
        /// Blobs at most.
        limit: usize,
    },
    /// Blobs of which something was softly deleted that can no longer be restored.
    EndedDeletions {
        /// Start; empty for the beginning.
        from: Bytes,
        /// The time.
        now: Timestamp,
        /// Blobs at most.
        limit: usize,
    },
    /// The locations that rows from a position on name, for each blob as of one instant.
    References(ListReferences),
}

impl Read {
    /// Which keys the request is about.
    #[must_use]
    pub fn place(&self) -> Place {
        match self {
            Self::Account(name) => Place::Key(RoutingKey::account(name).into_bytes()),
            Self::Accounts(list) => Place::From(list.position()),
            Self::Container(account, name) => {
                Place::Key(RoutingKey::container(*account, name).into_bytes())
            }
            Self::Setting(read) => {
                Place::Key(RoutingKey::container(read.account, &read.name).into_bytes())
            }
            Self::Containers(list) => Place::From(list.position()),
            Self::Blob(read) => Place::Key(RoutingKey::blob(&read.key).into_bytes()),
            Self::BlockList(key, _, _) => Place::Key(RoutingKey::blob(key).into_bytes()),
            Self::BlobParts(read) => Place::Key(RoutingKey::blob(&read.key).into_bytes()),
            Self::Pages(read) => Place::Key(RoutingKey::blob(&read.key).into_bytes()),
            Self::Blobs(list) => Place::From(list.position()),
            Self::Parts(list) => Place::Key(RoutingKey::blob(&list.key).as_bytes().clone()),
            Self::Part(read) => Place::Key(RoutingKey::blob(&read.key).as_bytes().clone()),
            Self::Uploads(list) => Place::From(list.position()),
            Self::Tags(list) => Place::From(list.from.clone()),
            Self::CopyJobs { from, .. } => Place::From(from.clone()),
            Self::TagWork { blob: Some(blob), .. } => Place::Key(blob.as_bytes().clone()),
            Self::TagWork { blob: None, .. }
            | Self::Garbage { .. }
            | Self::DeadContainers
            | Self::Expired { .. }
            | Self::EndedDeletions { .. }
            | Self::References(_) => Place::Partition,
        }
    }
}

/// The answer to a [`Read`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadReply {
    /// To [`Read::Account`].
    Account(Box<AccountRecord>),
    /// To [`Read::Accounts`].
    Accounts(AccountPage),
    /// To [`Read::Container`].
    Container(Box<ContainerRecord>),
    /// To [`Read::Setting`]: `None` when the container has no such setting.
    Setting(Option<Box<Setting>>),
    /// To [`Read::Containers`].
    Containers(ContainerPage),
    /// To [`Read::Blob`].
    Blob(Box<BlobView>),
    /// To [`Read::BlockList`].
    BlockList(Box<BlockListView>),
    /// To [`Read::Pages`].
    Pages(Box<PageRanges>),
    /// To [`Read::BlobParts`].
    BlobParts(Box<BlobPartsView>),
    /// To [`Read::Blobs`] and [`Read::Uploads`].
    Blobs(Box<ListPage>),
    /// To [`Read::Parts`].
    Parts(Box<PartPage>),
    /// To [`Read::Part`].
    Part(PartRange),
    /// To [`Read::Tags`].
    Tags(TagPage),
    /// To [`Read::CopyJobs`].
    CopyJobs(CopyJobPage),
    /// To [`Read::TagWork`].
    TagWork(TagWorkPage),
    /// To [`Read::Garbage`].
    Garbage(GarbagePage),
    /// To [`Read::DeadContainers`].
    DeadContainers(Vec<DeletedContainer>),
    /// To [`Read::Expired`].
    Expired(ExpiredPage),
    /// To [`Read::EndedDeletions`].
    EndedDeletions(EndedPage),
    /// To [`Read::References`].
    References(References),
}

impl ReadReply {
    /// Leaves out garbage of that time and later; other answers stay as they are.
    pub(in crate::index) fn keep_garbage_before(&mut self, time: Timestamp) {
        if let Self::Garbage(page) = self {
            page.rows.retain(|row| row.since < time);
        }
    }
}
