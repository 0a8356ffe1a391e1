//! The names of the files that mark a directory as a backup or as incomplete. A directory with a
//! mark of incompleteness is neither a backup nor a store.

use std::path::Path;

use crate::node::error::NodeError;

/// The file of a complete backup.
pub(super) const SUMMARY: &str = "backup.json";

/// The purpose of an incomplete directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A backup.
    Backup,
    /// A store.
    Restore,
}

impl Mark {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Backup => "backup.incomplete",
            Self::Restore => "restore.incomplete",
        }
    }
}

/// Refuses a directory that is a backup, or that is not complete, as a store.
///
/// # Errors
/// [`NodeError::IsBackup`], [`NodeError::HalfRestored`].
pub(crate) fn refuse_marked(data: &Path) -> Result<(), NodeError> {
    let has = |name: &str| data.join(name).exists();
    if has(SUMMARY) || has(Mark::Backup.name()) {
        return Err(NodeError::IsBackup { path: data.to_owned() });
    }
    if has(Mark::Restore.name()) {
        return Err(NodeError::HalfRestored { path: data.to_owned() });
    }
    Ok(())
}
