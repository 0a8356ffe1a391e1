//! The directory that a backup or a restore writes to.

use std::path::Path;

use super::mark::Mark;

/// A directory, and its purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination<'a> {
    pub(super) path: &'a Path,
    pub(super) mark: Mark,
}
