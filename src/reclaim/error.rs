//! Why a step of reclaim ended early. A later one continues.

use std::time::Duration;

use thiserror::Error as ThisError;

use crate::capacity;
use crate::coordinator;
use crate::index;
use crate::reclaim::invariant::Invariant;

/// The error that ended a step.
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
    /// Reads or copies that began before the end of the walk did not finish their look-ups in time.
    #[error(
        "look-ups begun before the walk ended were not answered within {waited:?}; nothing was freed"
    )]
    Held {
        /// How long the audit waited.
        waited: Duration,
    },
    /// An assertion failed. The step has freed nothing since.
    #[error("invariant {} does not hold: {found}", .invariant.number())]
    Invariant {
        /// The invariant.
        invariant: Invariant,
        /// The state that contradicts it.
        found: String,
    },
    /// The program stops.
    #[error("stopping")]
    Stopping,
}

impl Invariant {
    /// Asserts it. `found` describes what contradicts it.
    ///
    /// # Errors
    /// [`Error::Invariant`]: the caller frees nothing more in this step.
    pub(super) fn assert(self, holds: bool, found: impl FnOnce() -> String) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(Error::Invariant { invariant: self, found: found() }) }
    }
}
