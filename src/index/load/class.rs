//! The classes by which requests are counted.

use crate::index::api::Read;

/// The class of a request. The cost of a request depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A lookup of one account, container or blob.
    Read = 0,
    /// Anything that is committed.
    Write = 1,
    /// A page of names, or a step of a walk over rows.
    List = 2,
}

impl Class {
    /// All of them, in number order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::List];

    /// The word that is shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::List => "list",
        }
    }

    /// The class of a read.
    #[must_use]
    pub const fn of(read: &Read) -> Self {
        match read {
            Read::Account(_)
            | Read::Container(_, _)
            | Read::Setting(_)
            | Read::Blob(_)
            | Read::BlockList(_, _, _)
            | Read::BlobParts(_)
            | Read::Pages(_)
            | Read::Part(_)
            | Read::Parts(_) => Self::Read,
            Read::Accounts(_)
            | Read::Containers(_)
            | Read::Blobs(_)
            | Read::Uploads(_)
            | Read::Tags(_)
            | Read::CopyJobs { .. }
            | Read::TagWork { .. }
            | Read::Garbage { .. }
            | Read::DeadContainers
            | Read::Expired { .. }
            | Read::EndedDeletions { .. }
            | Read::References(_) => Self::List,
        }
    }
}
