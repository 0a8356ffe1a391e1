//! Why a step of reclaim ended early. It is always taken up again.

use std::time::Duration;

use thiserror::Error as ThisError;

use crate::capacity;
use crate::coordinator;
use crate::index;

/// What ended a step.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// A partition refused or failed; [`index::Error::WrongPartition`] means that the map changed
    /// meanwhile.
    #[error("index: {0}")]
    Index(#[from] index::Error),
    /// Capacity failed.
    #[error("capacity: {0}")]
    Capacity(#[from] capacity::Error),
    /// The cursor of the audit could not be read.
    #[error("coordinator: {0}")]
    Coordinator(#[from] coordinator::Error),
    /// A partition answered a question that was not asked: a bug.
    #[error("an answer does not fit its question")]
    Answer,
    /// An audit waited as long as it may for reads and copies, begun before it had walked all rows,
    /// to be told what they found.
    #[error(
        "look-ups begun before the walk ended were not answered within {waited:?}; nothing was freed"
    )]
    Held {
        /// How long it waited.
        waited: Duration,
    },
    /// The program stops.
    #[error("stopping")]
    Stopping,
}
