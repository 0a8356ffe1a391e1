//! The invariants that a partition asserts while it serves, also in release builds.
//!
//! Code that finds an invariant violated reports it and does not go on. The partition then takes no
//! writes until it is opened again from its log, as after a failed append. The logged reason names
//! the invariant. A change of the map that would violate an invariant is refused before anything
//! has changed. If the log itself violates one, the partition does not open.

use std::fmt;

use crate::env::TaskHealth;

/// An invariant of the design (ARCHITECTURE.md) that the index asserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// Only one epoch extends a log, and its commits are numbered without gaps.
    OneOwner,
    /// The new partitions of a split or merge tile the ranges of the old ones.
    Tiling,
    /// The published commit never decreases.
    Monotonic,
    /// A list shows each name once, in order.
    ListOrder,
    /// A split, merge or move changes nothing but the partition, its epoch and its host.
    AtomicChange,
    /// Each change of a blob gets a later time, and so a new ETag.
    NewEtag,
    /// A commit names exactly its blocks.
    ExactBlocks,
    /// No commit of a log is applied twice.
    ReplayOnce,
    /// The bytes of waiting writes are counted correctly.
    Bounded,
    /// A partition continues where the partitions that it replaces ended.
    Seamless,
}

impl Invariant {
    /// Its number in ARCHITECTURE.md.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OneOwner => "I2",
            Self::Tiling => "I5",
            Self::Monotonic => "I6",
            Self::ListOrder => "I7",
            Self::AtomicChange => "I8",
            Self::NewEtag => "I9",
            Self::ExactBlocks => "I10",
            Self::ReplayOnce => "I14",
            Self::Bounded => "I16",
            Self::Seamless => "I17",
        }
    }

    /// Makes the violation of this invariant, with the contradicting state.
    #[must_use]
    pub fn violated(self, found: impl fmt::Display) -> Violation {
        Violation { invariant: self, found: found.to_string() }
    }

    /// Returns a violation if the invariant does not hold.
    ///
    /// # Errors
    /// The [`Violation`].
    pub fn assert<D: fmt::Display>(
        self,
        holds: bool,
        found: impl FnOnce() -> D,
    ) -> Result<(), Violation> {
        if holds { Ok(()) } else { Err(self.violated(found())) }
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The contradicting state.
    pub found: String,
}

impl Violation {
    /// Counts it, as found in `place`.
    pub(crate) fn report(&self, health: &TaskHealth, place: impl fmt::Display) {
        health.violated(self.invariant.id(), &format!("{place}: {}", self.found));
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {} is violated: {}", self.invariant.id(), self.found)
    }
}
