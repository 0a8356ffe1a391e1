//! The errors of changes of the partition map.

use thiserror::Error as ThisError;

use crate::index::api::{Error, Full};
use crate::index::engine::Failed;
use crate::index::engine::NotChanged;

/// Why the partition map was not changed.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum ChangeError {
    /// The partition is not open here. Read the map again.
    #[error("no such partition here")]
    NoSuchPartition,
    /// The keys do not divide the partition into 2 to 16 ranges.
    #[error(
        "the keys must be 1 to 15, ascending, inside the partition and not inside a table of containers"
    )]
    BadKeys,
    /// The partition is a stripe. Its range can be split or striped again only after all its
    /// stripes were merged.
    #[error("the partition is a stripe: merge all stripes of its range first")]
    Striped,
    /// The range is not inside one container, or the number of stripes is not 2 to 16.
    #[error(
        "a range has 2 to 16 stripes and lies inside one container: split the container off first"
    )]
    NotStripable,
    /// The partitions are neither neighbours nor all stripes of a range, or there are too many.
    #[error(
        "a merge takes 2 to 16 partitions that lie side by side, in key order, or all stripes of a range"
    )]
    NotNeighbours,
    /// There is no such host.
    #[error("no such host here")]
    NoSuchHost,
    /// The partitions change too fast. Try again when they have less load.
    #[error("the partitions are too busy: {0}; try again when they are quieter")]
    Busy(&'static str),
    /// Nothing has changed. A later try may succeed; after a full disk, once space is free.
    #[error(transparent)]
    Refused(#[from] Error),
    /// It is unknown whether the change happened. Its partitions stopped, and opening them again
    /// decides it. On a full disk that needs free space.
    #[error(transparent)]
    Failed(Error),
    /// A merge moved partitions to one host and was then refused. They stay there.
    #[error("partitions were moved to one host, but not merged: {0}")]
    PartlyDone(Box<Self>),
}

impl ChangeError {
    /// The error of a change that had moved a partition before it failed with this error.
    pub(super) fn after_a_move(self) -> Self {
        let is_unknown = matches!(self, Self::Failed(_) | Self::PartlyDone(_));
        if is_unknown { self } else { Self::PartlyDone(Box::new(self)) }
    }
}

impl From<NotChanged> for ChangeError {
    fn from(failed: NotChanged) -> Self {
        match failed {
            NotChanged::Busy(reason) => Self::Busy(reason),
            NotChanged::Failed(failed) => failed.into(),
        }
    }
}

impl From<Failed> for ChangeError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Other(reason) if reason.is_full() => {
                Self::Failed(Error::Full(Full::Coordinator(reason.to_string())))
            }
            Failed::Busy(reason) => Self::Busy(reason),
            Failed::Full(_) | Failed::Refused(_) => Self::Refused(failed.into()),
            Failed::Fenced | Failed::Other(_) => Self::Failed(failed.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_later_by_itself_is_busy_and_not_a_failure() {
        for busy in [
            ChangeError::from(Failed::Busy("others were quicker")),
            NotChanged::from(Failed::Busy("others were quicker")).into(),
        ] {
            assert_eq!(busy, ChangeError::Busy("others were quicker"));
        }
    }
}
