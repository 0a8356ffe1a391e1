//! The directory to which a store is copied.

use std::path::PathBuf;
use std::sync::Arc;

use crate::capacity;
use crate::capacity::CapacityNode;
use crate::env::Env;
use crate::types::ExtentId;

use super::attempt::Attempt;
use super::error::BackupError;
use super::source::Source;

/// The copy that is being made.
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) capacity: Arc<CapacityNode>,
    /// With tasks of its own.
    pub(super) env: Env,
    pub(super) attempt: Arc<Attempt>,
}

impl Target {
    /// The error of a failed write to it.
    pub(super) fn failed(&self, error: &dyn std::fmt::Display) -> BackupError {
        BackupError::Target { path: self.path.clone(), error: error.to_string() }
    }

    /// The error of a failed copy of an extent.
    pub(super) fn not_copied(
        &self,
        from: &Source,
        extent: ExtentId,
        error: capacity::Error,
    ) -> BackupError {
        if matches!(error, capacity::Error::Full) {
            BackupError::Full(self.path.clone())
        } else if matches!(error, capacity::Error::Poisoned { .. }) {
            self.failed(&"a write failed; the log of the program says why")
        } else {
            from.not_read(extent, error)
        }
    }
}
