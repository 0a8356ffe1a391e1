//! The invariants that reclaim asserts. A failed assertion ends the step, never the process.

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
}
