//! Changes of the partition map: their results, errors, and the latest ones.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::Error;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Timestamp;

/// The most children of a split and the most partitions of a merge, because a coordinator
/// transaction is bounded.
pub const CHILDREN_MAX: usize = 16;

/// The result of a change of the partition map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The new partitions in key order.
    pub partitions: Vec<PartitionId>,
    /// For how long no write of the range was made durable.
    pub pause: Duration,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    /// One partition became several.
    Split,
    /// Several partitions became one.
    Merge,
    /// A partition went to another host.
    Move,
    /// A partition became the stripes of its range.
    Stripe,
    /// All stripes of a range became one partition.
    Unstripe,
}

impl ChangeKind {
    /// The word that is shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Move => "move",
            Self::Stripe => "stripe",
            Self::Unstripe => "unstripe",
        }
    }
}

/// A change of the map that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeEvent {
    /// The number of the change since the start of the process, from 1.
    pub number: u64,
    /// The time of the change.
    pub at: Timestamp,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The partitions before, in key order.
    pub from: Vec<PartitionId>,
    /// The partitions after, in key order.
    pub to: Vec<PartitionId>,
    /// The keys of the partitions before, and of those after.
    pub range: KeyRange,
    /// The host that serves the new partitions.
    pub host: HostId,
    /// For how long no write of the range was made durable.
    pub pause: Duration,
}

/// Why the partition map was not changed.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
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
    Busy(Cow<'static, str>),
    /// Nothing has changed. A later try may succeed; after a full disk, once space is free.
    #[error(transparent)]
    Refused(#[from] Error),
    /// It is unknown whether the change happened. Its partitions stopped, and opening them again
    /// decides it. On a full disk that needs free space.
    #[error(transparent)]
    Failed(Error),
    /// A merge moved partitions to one host and was then refused. They stay there.
    #[error("partitions were moved to one host, but not merged: {0}")]
    PartlyDone(#[serde(deserialize_with = "whole")] Box<Self>),
}

/// An error that is no [`ChangeError::PartlyDone`], as a message holds it: the first variants.
#[derive(Deserialize)]
enum Whole {
    NoSuchPartition,
    BadKeys,
    Striped,
    NotStripable,
    NotNeighbours,
    NoSuchHost,
    Busy(Cow<'static, str>),
    Refused(Error),
    Failed(Error),
}

/// Decodes the reason of a change that was partly done. A deeper level is refused, so that a
/// message cannot exhaust the stack.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<ChangeError>, D::Error> {
    Ok(Box::new(match Whole::deserialize(deserializer)? {
        Whole::NoSuchPartition => ChangeError::NoSuchPartition,
        Whole::BadKeys => ChangeError::BadKeys,
        Whole::Striped => ChangeError::Striped,
        Whole::NotStripable => ChangeError::NotStripable,
        Whole::NotNeighbours => ChangeError::NotNeighbours,
        Whole::NoSuchHost => ChangeError::NoSuchHost,
        Whole::Busy(why) => ChangeError::Busy(why),
        Whole::Refused(error) => ChangeError::Refused(error),
        Whole::Failed(error) => ChangeError::Failed(error),
    }))
}

impl ChangeError {
    /// The error of a change that had moved a partition before it failed with this error.
    pub(in crate::index) fn after_a_move(self) -> Self {
        let is_unknown = matches!(self, Self::Failed(_) | Self::PartlyDone(_));
        if is_unknown { self } else { Self::PartlyDone(Box::new(self)) }
    }
}
