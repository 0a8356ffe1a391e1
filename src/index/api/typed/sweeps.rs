//! What reclaim asks a partition.

use bytes::Bytes;

use crate::index::api::GarbageRow;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::StagedBlocks;
use crate::index::api::typed::ReadRequest;
use crate::index::api::typed::read_requests;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::Timestamp;

/// Asks for garbage of the whole partition from a position.
#[derive(Clone, Debug)]
pub struct ReadGarbage {
    /// Start; empty for the beginning.
    pub from: Bytes,
    /// Rows at most.
    pub limit: usize,
}

/// Garbage.
#[derive(Clone, Debug)]
pub struct GarbagePage {
    /// The rows.
    pub rows: Vec<GarbageRow>,
    /// Where to go on.
    pub next: Option<Bytes>,
}

/// Asks for deleted containers whose rows are not yet purged.
#[derive(Clone, Copy, Debug)]
pub struct ReadDeadContainers;

/// A deleted container whose rows are not yet purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub container: ContainerId,
    /// When it was deleted.
    pub deleted: Timestamp,
}

/// Asks for blobs last staged to before a time.
#[derive(Clone, Debug)]
pub struct ReadExpired {
    /// Start; empty for the beginning.
    pub from: Bytes,
    /// The time.
    pub before: Timestamp,
    /// Blobs at most.
    pub limit: usize,
}

/// Blobs whose staged blocks have expired.
#[derive(Clone, Debug)]
pub struct ExpiredPage {
    /// The blobs.
    pub blobs: Vec<StagedBlocks>,
    /// Where to go on.
    pub next: Option<Bytes>,
}

read_requests! {
    ReadGarbage => GarbagePage:
        ReadGarbage { from, limit } => Self::Garbage { from, limit },
        ReadReply::Garbage(rows, next) => GarbagePage { rows, next };
    ReadDeadContainers => Vec<DeletedContainer>:
        ReadDeadContainers => Self::DeadContainers,
        ReadReply::DeadContainers(dead) => dead;
    ReadExpired => ExpiredPage:
        ReadExpired { from, before, limit } => Self::Expired { from, before, limit },
        ReadReply::Expired(blobs, next) => ExpiredPage { blobs, next };
}
