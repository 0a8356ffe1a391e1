//! Every change of one partition, and its answer.

use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::index::api::AbortUpload;
use crate::index::api::AccountChange;
use crate::index::api::AppendBlock;
use crate::index::api::ChangeSetting;
use crate::index::api::CloseContainer;
use crate::index::api::CommitBlocks;
use crate::index::api::CompleteUpload;
use crate::index::api::CreateContainer;
use crate::index::api::DeleteBlob;
use crate::index::api::DeleteContainer;
use crate::index::api::EndCopy;
use crate::index::api::FillLayer;
use crate::index::api::IndexTag;
use crate::index::api::LeaseBlob;
use crate::index::api::LeaseContainer;
use crate::index::api::LeaseCopy;
use crate::index::api::NoteRead;
use crate::index::api::Place;
use crate::index::api::PutBlob;
use crate::index::api::PutCopy;
use crate::index::api::ReopenContainer;
use crate::index::api::ResealCopy;
use crate::index::api::RestoreContainer;
use crate::index::api::SealBlob;
use crate::index::api::SetTier;
use crate::index::api::SetUpAccount;
use crate::index::api::Share;
use crate::index::api::SharePages;
use crate::index::api::SnapshotBlob;
use crate::index::api::StageBlock;
use crate::index::api::StagePart;
use crate::index::api::StartUpload;
use crate::index::api::UndeleteBlob;
use crate::index::api::UpdateBlob;
use crate::index::api::UpdateContainer;
use crate::index::api::UpdatePages;
use crate::index::api::WritePages;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::KeyRange;
use crate::types::Protection;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// A change of one partition's rows, durable when answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Write {
    /// Makes an account under an id already issued; one that exists is left as it is and returned.
    CreateAccount {
        /// The name.
        name: AccountName,
        /// A fresh id.
        id: AccountId,
        /// Whether its containers may have public access.
        anonymous: bool,
    },
    /// Changes an account; answers [`Account`](super::WriteReply::Account).
    UpdateAccount {
        /// The name.
        name: AccountName,
        /// The change.
        change: AccountChange,
    },
    /// Removes an account's row, if it is still that account's. Its containers are for the caller
    /// to remove first.
    DeleteAccount {
        /// The name.
        name: AccountName,
        /// The account.
        id: AccountId,
    },
    /// Create Container.
    CreateContainer(CreateContainer),
    /// Set Container Metadata, Set Container ACL.
    UpdateContainer(UpdateContainer),
    /// A setting of a container changes.
    ChangeSetting(ChangeSetting),
    /// Delete Container.
    DeleteContainer(DeleteContainer),
    /// Restore Container.
    RestoreContainer(RestoreContainer),
    /// Before a container is deleted that must be empty; answers
    /// [`Closed`](super::WriteReply::Closed).
    CloseContainer(CloseContainer),
    /// The container is not deleted after all.
    ReopenContainer(ReopenContainer),
    /// Lease Container.
    LeaseContainer(LeaseContainer),
    /// Put Blob.
    PutBlob(PutBlob),
    /// Put Blob From URL, Copy Blob: the part of the destination.
    PutCopy(Box<PutCopy>),
    /// A copy by reference: the part of the source; answers [`Shared`](super::WriteReply::Shared).
    Share(Box<Share>),
    /// A copy of pages by reference: the part of the source; answers
    /// [`SharedPages`](super::WriteReply::SharedPages).
    SharePages(Box<SharePages>),
    /// Pages of a copy; answers [`Layer`](super::WriteReply::Layer).
    FillLayer(FillLayer),
    /// A pending copy ends.
    EndCopy(Box<EndCopy>),
    /// A process carries out a pending copy.
    LeaseCopy(LeaseCopy),
    /// Commits an empty change, with which a process settles earlier writes (ADR 0058).
    Settle {
        /// A key of the partition.
        key: RoutingKey,
    },
    /// The source of a pending copy was sealed again.
    ResealCopy(ResealCopy),
    /// Put Block.
    StageBlock(StageBlock),
    /// Put Block List.
    CommitBlocks(CommitBlocks),
    /// An upload is started.
    StartUpload(Box<StartUpload>),
    /// A part of an upload; answers [`PartStaged`](super::WriteReply::PartStaged).
    StagePart(StagePart),
    /// An upload becomes the blob; answers [`UploadCompleted`](super::WriteReply::UploadCompleted).
    CompleteUpload(Box<CompleteUpload>),
    /// An upload is aborted.
    AbortUpload(AbortUpload),
    /// Append Block; answers [`Appended`](super::WriteReply::Appended).
    AppendBlock(AppendBlock),
    /// Append Blob Seal.
    SealBlob(SealBlob),
    /// Put Page; answers [`Pages`](super::WriteReply::Pages).
    WritePages(WritePages),
    /// Set Blob Properties of a page blob; answers [`Pages`](super::WriteReply::Pages).
    UpdatePages(UpdatePages),
    /// Set Blob Properties, Set Blob Metadata.
    UpdateBlob(UpdateBlob),
    /// Delete Blob.
    DeleteBlob(DeleteBlob),
    /// Lease Blob.
    LeaseBlob(LeaseBlob),
    /// Snapshot Blob.
    SnapshotBlob(SnapshotBlob),
    /// Undelete Blob; answers [`Undeleted`](super::WriteReply::Undeleted).
    UndeleteBlob(UndeleteBlob),
    /// Set Blob Tier.
    SetTier(SetTier),
    /// The blob was read, when that is tracked.
    NoteRead(NoteRead),
    /// Reclaim: drops staged blocks of blobs last staged to before `before`, and the rows of
    /// uploads that were completed before it; `key` as read by
    /// [`Read::Expired`](crate::index::api::Read::Expired).
    ExpireStaged {
        /// The blob's routing key.
        key: RoutingKey,
        /// Only if still not staged to since.
        before: Timestamp,
    },
    /// Reclaim: removes soft-deleted rows of a blob, or soft-deleted containers of a name, that can
    /// no longer be restored; `key` as read by
    /// [`Read::EndedDeletions`](crate::index::api::Read::EndedDeletions).
    ExpireDeleted {
        /// The routing key of the blob or the container.
        key: RoutingKey,
        /// Also what can be restored.
        all: bool,
    },
    /// Reclaim: removes up to `limit` blobs' rows of a deleted container, starting at its lowest;
    /// answers
    /// [`Purged`](super::WriteReply::Purged).
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
    /// Puts or removes an entry of the tag index.
    IndexTag(IndexTag),
    /// The tag index shows what these work rows say.
    ForgetTagWork {
        /// Rows from [`crate::index::Read::TagWork`], all of this partition.
        rows: Vec<Bytes>,
    },
    /// Reclaim: these garbage rows have been freed.
    ForgetGarbage {
        /// Row keys from `Read::Garbage`, all of this partition. One that stands for a layer of
        /// pages comes alone: forgetting it may take long, and only then goes ahead of its turn.
        keys: Vec<Bytes>,
    },
    /// Commits an empty change. It decides the outcome of earlier writes that were answered with
    /// `Error::Unavailable`.
    Prove,
    /// Makes an account with all that it has; answers [`Account`](super::WriteReply::Account).
    SetUpAccount(SetUpAccount),
}

impl Write {
    /// Sets in a change that makes or removes a blob how blobs of its container are protected.
    pub(crate) fn set_protection(&mut self, protection: Protection) {
        let guard = match self {
            Self::PutBlob(put) => &mut put.guard,
            Self::PutCopy(put) => &mut put.guard,
            Self::CommitBlocks(commit) => &mut commit.guard,
            Self::CompleteUpload(complete) => &mut complete.guard,
            Self::UpdateBlob(update) => &mut update.guard,
            Self::DeleteBlob(delete) => &mut delete.guard,
            Self::SnapshotBlob(snapshot) => &mut snapshot.guard,
            Self::UndeleteBlob(undelete) => &mut undelete.guard,
            Self::CreateAccount { .. }
            | Self::SetUpAccount(_)
            | Self::UpdateAccount { .. }
            | Self::DeleteAccount { .. }
            | Self::CreateContainer(_)
            | Self::UpdateContainer(_)
            | Self::ChangeSetting(_)
            | Self::DeleteContainer(_)
            | Self::RestoreContainer(_)
            | Self::CloseContainer(_)
            | Self::ReopenContainer(_)
            | Self::LeaseContainer(_)
            | Self::Share(_)
            | Self::SharePages(_)
            | Self::FillLayer(_)
            | Self::EndCopy(_)
            | Self::LeaseCopy(_)
            | Self::Settle { .. }
            | Self::ResealCopy(_)
            | Self::StageBlock(_)
            | Self::StartUpload(_)
            | Self::StagePart(_)
            | Self::AbortUpload(_)
            | Self::AppendBlock(_)
            | Self::SealBlob(_)
            | Self::WritePages(_)
            | Self::UpdatePages(_)
            | Self::LeaseBlob(_)
            | Self::SetTier(_)
            | Self::NoteRead(_)
            | Self::ExpireStaged { .. }
            | Self::ExpireDeleted { .. }
            | Self::PurgeContainer { .. }
            | Self::ForgetContainer { .. }
            | Self::IndexTag(_)
            | Self::ForgetTagWork { .. }
            | Self::ForgetGarbage { .. }
            | Self::Prove => return,
        };
        guard.protection = protection;
    }

    /// Which keys the request is about.
    #[must_use]
    pub fn place(&self) -> Place {
        if matches!(self, Self::Prove) {
            Place::Partition
        } else if let Self::PurgeContainer { from, .. } = self {
            Place::From(from.clone())
        } else {
            Place::Key(self.routing_key())
        }
    }

    /// The position the request is routed by.
    #[must_use]
    pub fn routing_key(&self) -> Bytes {
        match self {
            Self::CreateAccount { name, .. }
            | Self::SetUpAccount(SetUpAccount { name, .. })
            | Self::UpdateAccount { name, .. }
            | Self::DeleteAccount { name, .. } => RoutingKey::account(name).into_bytes(),
            Self::CreateContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::UpdateContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::DeleteContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::RestoreContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::ChangeSetting(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::CloseContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::ReopenContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::LeaseContainer(c) => RoutingKey::container(c.account, &c.name).into_bytes(),
            Self::PutBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::PutCopy(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::Share(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::SharePages(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::FillLayer(b) => b.blob.as_bytes().clone(),
            Self::EndCopy(b) => b.blob.as_bytes().clone(),
            Self::Settle { key } => key.as_bytes().clone(),
            Self::LeaseCopy(b) => b.blob.as_bytes().clone(),
            Self::ResealCopy(b) => b.blob.as_bytes().clone(),
            Self::StageBlock(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::CommitBlocks(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::StartUpload(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::StagePart(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::CompleteUpload(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::AbortUpload(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::AppendBlock(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::SealBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::WritePages(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::UpdatePages(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::UpdateBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::DeleteBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::LeaseBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::SnapshotBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::UndeleteBlob(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::SetTier(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::NoteRead(b) => RoutingKey::blob(&b.key).into_bytes(),
            Self::ExpireStaged { key, .. } | Self::ExpireDeleted { key, .. } => {
                key.as_bytes().clone()
            }
            Self::PurgeContainer { from, .. } => from.clone(),
            Self::ForgetContainer { account, container } => purge_key(*account, *container),
            Self::IndexTag(tag) => tag.entry.as_bytes().clone(),
            Self::ForgetGarbage { keys: rows } | Self::ForgetTagWork { rows } => {
                rows.first().cloned().unwrap_or_default()
            }
            Self::Prove => Bytes::new(),
        }
    }
}

impl Write {
    /// The keys of all rows that determine its outcome, if these belong to one blob or one deleted
    /// container. Such a write can be evaluated ahead of its turn, and the result is valid as long
    /// as none of these rows changes. The other writes are short.
    #[must_use]
    pub fn reach(&self) -> Option<KeyRange> {
        match self {
            Self::CreateAccount { .. }
            | Self::SetUpAccount(_)
            | Self::UpdateAccount { .. }
            | Self::DeleteAccount { .. }
            | Self::CreateContainer(_)
            | Self::UpdateContainer(_)
            | Self::ChangeSetting(_)
            | Self::DeleteContainer(_)
            | Self::RestoreContainer(_)
            | Self::CloseContainer(_)
            | Self::ReopenContainer(_)
            | Self::LeaseContainer(_)
            | Self::ForgetContainer { .. }
            | Self::IndexTag(_)
            | Self::ForgetTagWork { .. }
            | Self::Settle { .. }
            | Self::Prove => None,
            // Of a dead layer: whether it is one, the blob and all its snapshots say.
            Self::ForgetGarbage { keys } => match keys.as_slice() {
                [only] => RoutingKey::of_row(only).map(rows_of),
                _ => None,
            },
            // A container gets a purge row, which lies elsewhere.
            Self::ExpireDeleted { key, .. } if !is_blob(key) => None,
            Self::PurgeContainer { account, container, from, .. } => {
                let whole = RoutingKey::container_range(*account, *container);
                // It may go on among the rows of a blob, and removes them all.
                let blob = RoutingKey::of_row(from);
                let from = blob.as_ref().map_or(from, RoutingKey::as_bytes);
                let low = RoutingKey::from_bytes(whole.low().as_bytes().max(from).clone());
                Some(KeyRange::new(low, whole.high().cloned()))
            }
            Self::PutBlob(_)
            | Self::PutCopy(_)
            | Self::Share(_)
            | Self::SharePages(_)
            | Self::FillLayer(_)
            | Self::EndCopy(_)
            | Self::LeaseCopy(_)
            | Self::ResealCopy(_)
            | Self::StageBlock(_)
            | Self::CommitBlocks(_)
            | Self::StartUpload(_)
            | Self::StagePart(_)
            | Self::CompleteUpload(_)
            | Self::AbortUpload(_)
            | Self::AppendBlock(_)
            | Self::SealBlob(_)
            | Self::WritePages(_)
            | Self::UpdatePages(_)
            | Self::UpdateBlob(_)
            | Self::DeleteBlob(_)
            | Self::LeaseBlob(_)
            | Self::SnapshotBlob(_)
            | Self::UndeleteBlob(_)
            | Self::SetTier(_)
            | Self::NoteRead(_)
            | Self::ExpireDeleted { .. }
            | Self::ExpireStaged { .. } => {
                Some(rows_of(RoutingKey::from_bytes(self.routing_key())))
            }
        }
    }
}

/// Whether a routing key is that of a blob: containers have the container id 0.
fn is_blob(key: &RoutingKey) -> bool {
    key.as_bytes().get(8..16).is_some_and(|container| container != [0; 8])
}

/// The keys of all rows of a blob.
fn rows_of(blob: RoutingKey) -> KeyRange {
    let end = RoutingKey::after_prefix(blob.as_bytes()).map(RoutingKey::from_bytes);
    KeyRange::new(blob, end)
}

/// The row that remembers a deleted container until its rows are gone: account, container 0, then
/// bytes no name starts with, then the id. In [`crate::index::rows::Family::Garbage`].
#[must_use]
pub fn purge_key(account: AccountId, container: ContainerId) -> Bytes {
    let mut key = Vec::with_capacity(26);
    key.extend_from_slice(&account.get().to_be_bytes());
    key.extend_from_slice(&0u64.to_be_bytes());
    key.extend_from_slice(&[0x00, 0x00]);
    key.extend_from_slice(&container.get().to_be_bytes());
    key.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::BlobKey;
    use crate::types::BlobName;
    use crate::types::Collation;

    /// A purge removes whole blobs, also the one whose rows it goes on among.
    #[test]
    fn reach_of_a_purge_begins_with_a_whole_blob() {
        let (account, container) = (AccountId::new(1), ContainerId::new(7));
        let name = BlobName::new("b").unwrap();
        let blob =
            RoutingKey::blob(&BlobKey { account, container, collation: Collation::Utf16, name });
        let among = Bytes::from([blob.as_bytes().as_ref(), b"snapshot"].concat());
        for from in [blob.as_bytes().clone(), among] {
            let purge = Write::PurgeContainer { account, container, from, limit: 1 };
            assert_eq!(purge.reach().unwrap().low(), &blob);
        }
        let purge = Write::PurgeContainer { account, container, from: Bytes::new(), limit: 1 };
        let whole = RoutingKey::container_range(account, container);
        assert_eq!(purge.reach(), Some(whole));
    }
}
