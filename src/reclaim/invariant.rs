//! Assertions of invariants. A failed one ends the step that found it, never the process.

use crate::reclaim::error::Error;

/// Which invariant an assertion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// I10: no referenced byte is freed.
    NothingReferencedIsFreed,
    /// I11: every unreferenced byte is freed eventually.
    UnreferencedIsFreed,
}

impl Invariant {
    /// Its number in the list of invariants.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::NothingReferencedIsFreed => "I10",
            Self::UnreferencedIsFreed => "I11",
        }
    }

    /// Asserts it. `found` describes what contradicts it.
    ///
    /// # Errors
    /// [`Error::Invariant`]: the caller frees nothing more in this step.
    pub(super) fn assert(self, holds: bool, found: impl FnOnce() -> String) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(Error::Invariant { invariant: self, found: found() }) }
    }
}
