//! A data directory for one test, in a folder that also has the master key file.

use std::path::Path;
use std::path::PathBuf;

/// Removed when dropped, with what lies beside it.
pub(crate) struct Data {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Data {
    /// A fresh one, which the program makes.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        Self { folder, path }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The master key file.
    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("data.key")
    }
}
