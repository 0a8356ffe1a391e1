//! Reads and changes with a reply type of their own, for callers. On the way to a partition they
//! are a [`Read`] or a [`Write`].
//!
//! 1. Here: the traits, and requests of clients.
//! 2. `commands.rs`: changes of accounts, and of reclaim; `sweeps.rs`: questions of reclaim.

mod commands;
mod sweeps;

use bytes::Bytes;

use crate::index::api::AbortUpload;
use crate::index::api::AccountPage;
use crate::index::api::AppendBlock;
use crate::index::api::AppendedBlock;
use crate::index::api::BlobPartsView;
use crate::index::api::BlobView;
use crate::index::api::BlockListView;
use crate::index::api::ChangeSetting;
use crate::index::api::CloseContainer;
use crate::index::api::CommitBlocks;
use crate::index::api::CompleteUpload;
use crate::index::api::ContainerPage;
use crate::index::api::CopyJobPage;
use crate::index::api::CreateContainer;
use crate::index::api::DeleteBlob;
use crate::index::api::DeleteContainer;
use crate::index::api::Deleted;
use crate::index::api::EndCopy;
use crate::index::api::Error;
use crate::index::api::FillLayer;
use crate::index::api::Guard;
use crate::index::api::IndexHost;
use crate::index::api::IndexTag;
use crate::index::api::LeaseBlob;
use crate::index::api::LeaseContainer;
use crate::index::api::LeaseCopy;
use crate::index::api::Leased;
use crate::index::api::ListAccounts;
use crate::index::api::ListBlobs;
use crate::index::api::ListContainers;
use crate::index::api::ListPage;
use crate::index::api::ListParts;
use crate::index::api::ListReferences;
use crate::index::api::ListTags;
use crate::index::api::ListUploads;
use crate::index::api::NoteRead;
use crate::index::api::PageRanges;
use crate::index::api::PagesWritten;
use crate::index::api::PartPage;
use crate::index::api::PartRange;
use crate::index::api::PartView;
use crate::index::api::PutBlob;
use crate::index::api::PutCopy;
use crate::index::api::Read;
use crate::index::api::ReadBlob;
use crate::index::api::ReadBlobParts;
use crate::index::api::ReadPages;
use crate::index::api::ReadPart;
use crate::index::api::ReadReply;
use crate::index::api::ReadSetting;
use crate::index::api::References;
use crate::index::api::ReopenContainer;
use crate::index::api::ResealCopy;
use crate::index::api::RestoreContainer;
use crate::index::api::SealBlob;
use crate::index::api::SetTier;
use crate::index::api::SetUpAccount;
use crate::index::api::Share;
use crate::index::api::SharePages;
use crate::index::api::SharedBlob;
use crate::index::api::SharedPages;
use crate::index::api::SnapshotBlob;
use crate::index::api::Snapshotted;
use crate::index::api::StageBlock;
use crate::index::api::StagePart;
use crate::index::api::StartUpload;
use crate::index::api::TagPage;
use crate::index::api::TagWorkPage;
use crate::index::api::Target;
use crate::index::api::UndeleteBlob;
use crate::index::api::UpdateBlob;
use crate::index::api::UpdateContainer;
use crate::index::api::UpdatePages;
use crate::index::api::UploadCompleted;
use crate::index::api::Write;
use crate::index::api::WritePages;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::record::AccountRecord;
use crate::index::record::ContainerRecord;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::BlobKey;
use crate::types::ContainerName;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Setting;

pub use commands::{
    CreateAccount, DeleteAccount, ExpireDeleted, ExpireStaged, ForgetContainer, ForgetGarbage,
    ForgetTagWork, Prove, PurgeContainer, Settle, UpdateAccount,
};
pub use sweeps::{ReadDeadContainers, ReadEndedDeletions, ReadExpired, ReadGarbage};

/// A question to one partition.
pub trait ReadRequest: Into<Read> + Clone + Send {
    /// Its answer.
    type Reply: Send;

    /// The answer that a partition gave; `None` if it belongs to another question.
    fn reply(answer: ReadReply) -> Option<Self::Reply>;

    /// As [`Self::reply`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] for the answer to another question: a bug of the partition's host.
    fn checked(answer: ReadReply) -> Result<Self::Reply, Error> {
        let other = || Error::Unavailable("the partition answered another question".to_owned());
        Self::reply(answer).ok_or_else(other)
    }
}

/// A change of one partition's rows.
pub trait WriteRequest: Into<Write> + Send {
    /// The answer.
    type Reply: Send;

    /// The answer that a partition gave; `None` if it belongs to another change.
    fn reply(answer: WriteReply) -> Option<Self::Reply>;

    /// As [`Self::reply`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] for the answer to another change: a bug of the partition's host.
    fn checked(answer: WriteReply) -> Result<Self::Reply, Error> {
        let other = || Error::Unavailable("the partition answered another change".to_owned());
        Self::reply(answer).ok_or_else(other)
    }
}

/// Asks for an account.
#[derive(Clone, Debug)]
pub struct ReadAccount(pub AccountName);

/// Asks for a container.
#[derive(Clone, Debug)]
pub struct ReadContainer(pub AccountId, pub ContainerName);

/// Asks for a blob's block lists; of a snapshot, for the committed one.
#[derive(Clone, Debug)]
pub struct ReadBlockList {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The precondition.
    pub guard: Guard,
}

/// Asks for pending copies, from a position to the end of its partition. The answer has where to go
/// on, perhaps in the next partition.
#[derive(Clone, Debug)]
pub struct ReadCopyJobs {
    /// Where to start.
    pub from: Bytes,
    /// Copies at most.
    pub limit: usize,
}

/// Asks for changes of tags that the tag index may not show yet. The answer has where to go on.
#[derive(Clone, Debug)]
pub struct ReadTagWork {
    /// Of this blob; `None` for all of the partition.
    pub blob: Option<RoutingKey>,
    /// Start; empty for the beginning.
    pub from: Bytes,
    /// Rows at most.
    pub limit: usize,
}

/// Implements [`ReadRequest`]: the request, what it answers, and how both travel.
macro_rules! read_requests {
    ($($request:ident => $reply:ty: $asked:pat => $read:expr, $answer:pat => $value:expr;)*) => {$(
        impl From<$request> for Read {
            fn from($asked: $request) -> Self {
                $read
            }
        }

        impl ReadRequest for $request {
            type Reply = $reply;

            fn reply(answer: ReadReply) -> Option<$reply> {
                if let $answer = answer { Some($value) } else { None }
            }
        }
    )*};
}
pub(super) use read_requests;

read_requests! {
    ReadAccount => AccountRecord:
        ReadAccount(name) => Self::Account(name), ReadReply::Account(record) => *record;
    ListAccounts => AccountPage:
        list => Self::Accounts(list), ReadReply::Accounts(page) => page;
    ReadContainer => Box<ContainerRecord>:
        ReadContainer(account, name) => Self::Container(account, name),
        ReadReply::Container(record) => record;
    ReadSetting => Option<Setting>:
        read => Self::Setting(read),
        ReadReply::Setting(setting) => setting.map(|setting| *setting);
    ListContainers => ContainerPage:
        list => Self::Containers(list), ReadReply::Containers(page) => page;
    ReadBlob => Box<BlobView>:
        read => Self::Blob(read), ReadReply::Blob(view) => view;
    ReadBlockList => BlockListView:
        read => Self::BlockList(read.key, read.revision, read.guard),
        ReadReply::BlockList(view) => *view;
    ReadBlobParts => BlobPartsView:
        read => Self::BlobParts(read), ReadReply::BlobParts(view) => *view;
    ReadPages => PageRanges:
        read => Self::Pages(read), ReadReply::Pages(found) => *found;
    ListBlobs => ListPage:
        list => Self::Blobs(list), ReadReply::Blobs(page) => *page;
    ListParts => PartPage:
        list => Self::Parts(list), ReadReply::Parts(page) => *page;
    ReadPart => PartRange:
        read => Self::Part(read), ReadReply::Part(found) => found;
    ListUploads => ListPage:
        list => Self::Uploads(list), ReadReply::Blobs(page) => *page;
    ListTags => TagPage:
        list => Self::Tags(list), ReadReply::Tags(page) => page;
    ReadCopyJobs => CopyJobPage:
        ReadCopyJobs { from, limit } => Self::CopyJobs { from, limit },
        ReadReply::CopyJobs(page) => page;
    ReadTagWork => TagWorkPage:
        ReadTagWork { blob, from, limit } => Self::TagWork { blob, from, limit },
        ReadReply::TagWork(page) => page;
    ListReferences => References:
        list => Self::References(list), ReadReply::References(page) => page;
}

/// Implements [`WriteRequest`] for changes that are the whole field of a variant of [`Write`].
macro_rules! write_requests {
    ($($request:ty => $reply:ty: $variant:ident, $answer:pat => $value:expr;)*) => {$(
        impl From<$request> for Write {
            fn from(change: $request) -> Self {
                Self::$variant(change)
            }
        }

        impl WriteRequest for $request {
            type Reply = $reply;

            fn reply(answer: WriteReply) -> Option<$reply> {
                if let $answer = answer { Some($value) } else { None }
            }
        }
    )*

        /// Whether an answer has the type that callers of the change expect.
        #[cfg(test)]
        pub(crate) fn is_answer(change: &Write, answer: WriteReply) -> bool {
            $(
                if let Write::$variant(_) = change {
                    return <$request as WriteRequest>::reply(answer).is_some();
                }
            )*
            commands::is_answer(change, answer)
        }
    };
}

write_requests! {
    SetUpAccount => AccountRecord: SetUpAccount, WriteReply::Account(record) => *record;
    CreateContainer => Written: CreateContainer, WriteReply::Written(written) => written;
    UpdateContainer => Written: UpdateContainer, WriteReply::Written(written) => written;
    DeleteContainer => (): DeleteContainer, WriteReply::Done => ();
    RestoreContainer => Written: RestoreContainer, WriteReply::Written(written) => written;
    ChangeSetting => (): ChangeSetting, WriteReply::Done => ();
    CloseContainer => ContainerRecord: CloseContainer, WriteReply::Closed(record) => *record;
    ReopenContainer => (): ReopenContainer, WriteReply::Done => ();
    LeaseContainer => Leased: LeaseContainer, WriteReply::Leased(leased) => leased;
    PutBlob => Written: PutBlob, WriteReply::Written(written) => written;
    Box<PutCopy> => Written: PutCopy, WriteReply::Written(written) => written;
    Box<Share> => SharedBlob: Share, WriteReply::Shared(shared) => *shared;
    Box<SharePages> => SharedPages: SharePages, WriteReply::SharedPages(part) => part;
    FillLayer => u64: FillLayer, WriteReply::Layer(layer) => layer;
    Box<EndCopy> => Written: EndCopy, WriteReply::Written(written) => written;
    StageBlock => (): StageBlock, WriteReply::Done => ();
    CommitBlocks => Written: CommitBlocks, WriteReply::Written(written) => written;
    Box<StartUpload> => (): StartUpload, WriteReply::Done => ();
    StagePart => PartView: StagePart, WriteReply::PartStaged(part) => *part;
    Box<CompleteUpload> => UploadCompleted: CompleteUpload,
        WriteReply::UploadCompleted(completed) => *completed;
    AbortUpload => (): AbortUpload, WriteReply::Done => ();
    AppendBlock => AppendedBlock: AppendBlock,
        WriteReply::Appended(appended) => appended;
    SealBlob => Written: SealBlob, WriteReply::Written(written) => written;
    WritePages => PagesWritten: WritePages, WriteReply::Pages(written) => written;
    UpdatePages => PagesWritten: UpdatePages, WriteReply::Pages(written) => written;
    UpdateBlob => Written: UpdateBlob, WriteReply::Written(written) => written;
    DeleteBlob => Deleted: DeleteBlob, WriteReply::Deleted(deleted) => deleted;
    LeaseBlob => Leased: LeaseBlob, WriteReply::Leased(leased) => leased;
    SnapshotBlob => Snapshotted: SnapshotBlob, WriteReply::Snapshotted(taken) => taken;
    UndeleteBlob => bool: UndeleteBlob, WriteReply::Undeleted { has_more } => has_more;
    SetTier => bool: SetTier, WriteReply::TierSet { pending } => pending;
    NoteRead => (): NoteRead, WriteReply::Done => ();
    LeaseCopy => (): LeaseCopy, WriteReply::Done => ();
    ResealCopy => (): ResealCopy, WriteReply::Done => ();
    IndexTag => (): IndexTag, WriteReply::Done => ();
}

/// Requests with an answer of their own type, to one partition of a map that the caller has read.
/// [`Error::WrongPartition`] is for the caller: it reads the map again. [`crate::index::Router`]
/// does so by itself.
pub trait AskPartition: IndexHost {
    /// Asks a partition.
    ///
    /// # Errors
    /// The partition's answer.
    fn ask<Q: ReadRequest>(
        &self,
        target: Target,
        question: Q,
    ) -> impl Future<Output = Result<Q::Reply, Error>> + Send {
        let answer = self.read(target, question.into());
        async move { answer.await.and_then(Q::checked) }
    }

    /// Changes rows of a partition. Not cancel-safe, as [`IndexHost::write`].
    ///
    /// # Errors
    /// The partition's answer.
    fn tell<W: WriteRequest>(
        &self,
        target: Target,
        change: W,
    ) -> impl Future<Output = Result<W::Reply, Error>> + Send {
        let answer = self.write(target, change.into());
        async move { answer.await.and_then(W::checked) }
    }
}

impl<H: IndexHost + ?Sized> AskPartition for H {}
