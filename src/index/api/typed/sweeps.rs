//! The requests of reclaim to a partition.

use bytes::Bytes;

use crate::index::api::DeletedContainer;
use crate::index::api::EndedPage;
use crate::index::api::ExpiredPage;
use crate::index::api::GarbagePage;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::typed::ReadRequest;
use crate::index::api::typed::read_requests;
use crate::types::Timestamp;

/// Asks for garbage of the whole partition from a position.
#[derive(Clone, Debug)]
pub struct ReadGarbage {
    /// Start; empty for the beginning.
    pub from: Bytes,
    /// Rows at most.
    pub limit: usize,
}

/// Asks for deleted containers whose rows are not yet purged.
#[derive(Clone, Copy, Debug)]
pub struct ReadDeadContainers;

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

/// Asks for blobs of which something was softly deleted that can no longer be restored.
#[derive(Clone, Debug)]
pub struct ReadEndedDeletions {
    /// Start; empty for the beginning.
    pub from: Bytes,
    /// The time.
    pub now: Timestamp,
    /// Blobs at most.
    pub limit: usize,
}

read_requests! {
    ReadGarbage => GarbagePage:
        ReadGarbage { from, limit } => Self::Garbage { from, limit },
        ReadReply::Garbage(page) => page;
    ReadDeadContainers => Vec<DeletedContainer>:
        ReadDeadContainers => Self::DeadContainers,
        ReadReply::DeadContainers(dead) => dead;
    ReadExpired => ExpiredPage:
        ReadExpired { from, before, limit } => Self::Expired { from, before, limit },
        ReadReply::Expired(page) => page;
    ReadEndedDeletions => EndedPage:
        ReadEndedDeletions { from, now, limit } => Self::EndedDeletions { from, now, limit },
        ReadReply::EndedDeletions(page) => page;
}
