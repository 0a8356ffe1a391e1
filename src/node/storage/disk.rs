//! Data directories: locking them, and making their files private.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::env;
use crate::env::Disk;
use crate::env::DiskError;
use crate::env::Env;
use crate::env::OsDisk;
use crate::env::UnusableDisk;
use crate::node::error::NodeError;

/// Locks all data directories. A failing one other than the first is out of service.
pub(super) fn open_disks(data: &[PathBuf], env: &Env) -> Result<Vec<Arc<dyn Disk>>, NodeError> {
    let one = |(at, path): (usize, &PathBuf)| match open_disk(path, env) {
        Err(NodeError::Data { error, .. }) if at > 0 && is_failing(path, &error) => {
            Ok(Arc::new(UnusableDisk(error)) as Arc<dyn Disk>)
        }
        opened => opened,
    };
    data.iter().enumerate().map(one).collect()
}

/// Locks one data directory.
///
/// # Errors
/// [`NodeError::Data`].
pub fn open_disk(path: &Path, env: &Env) -> Result<Arc<dyn Disk>, NodeError> {
    OsDisk::open(path, env.tasks.clone())
        .map_err(|error| NodeError::Data { path: path.to_owned(), error })
}

/// Whether a directory cannot be opened because its device fails. A missing directory, or one that
/// this user may not open, is a mistake of the operator.
fn is_failing(path: &Path, error: &DiskError) -> bool {
    error.is_of_device() && !matches!(path.try_exists(), Ok(false))
}

/// Makes the files of a data directory private, as far as they belong to the node's user.
pub(super) fn narrow(path: &Path) {
    // A new directory is created later, with private modes.
    if !path.is_dir() {
        return;
    }
    let shown = path.display();
    match env::narrow(path) {
        Ok(found) => {
            if found.narrowed > 0 {
                tracing::info!(
                    path = %shown, files = found.narrowed,
                    "files were made private to this user"
                );
            }
            if let Some(first) = found.first_left {
                let (first, files) = (first.display(), found.left);
                tracing::warn!(
                    path = %shown, files, %first,
                    "other users may read files of the data directory: give them to this user"
                );
            }
        }
        Err(error) => {
            tracing::warn!(
                path = %shown, %error,
                "the modes of the files in the data directory cannot be read"
            );
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::chown;

    use super::*;
    use crate::telemetry::CapturedLog;

    #[test]
    fn data_directory_that_was_wide_is_logged_and_foreign_ownership_is_warned_about() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        let log = CapturedLog::default();
        let _kept = log.begin();
        narrow(&root);
        assert_eq!(log.text(), "", "a new one is made closed");
        fs::create_dir(&root).unwrap();
        let path = root.join("journal");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
        let open = || fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        open();
        let shown = root.display().to_string();
        narrow(&root);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            log.lines_with(&["INFO", "made private", "files=1", &shown]),
            1,
            "{}",
            log.text()
        );
        narrow(&root);
        assert_eq!(log.text().lines().count(), 1, "{}", log.text());
        // Only the superuser can give a file away.
        if chown(&path, Some(12345), None).is_ok() {
            open();
            narrow(&root);
            let first = format!("first={}", path.display());
            let warning =
                ["WARN", "other users may read", "files=1", &first, "give them to this user"];
            assert_eq!(log.lines_with(&warning), 1, "{}", log.text());
        }
    }
}
