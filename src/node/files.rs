//! Small text files beside the data, durable before they are used.

use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use crate::env::private;
use crate::env::sync_folder;

/// Writes a file that only its owner can read. A crash leaves the old file or the new one.
///
/// # Errors
/// The system's.
#[expect(
    clippy::disallowed_methods,
    reason = "not data: made once at a start, never on a request's way"
)]
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    // Appended to the whole name: files that differ only in their extension must not collide.
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    if new.exists() {
        // Left by a start that crashed; its mode may differ.
        std::fs::remove_file(&new)?;
    }
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    if let Some(folder) = path.parent() {
        sync_folder(folder)?;
    }
    Ok(())
}

/// Reads a file; `None` if it does not exist.
///
/// # Errors
/// The system's.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secrets_are_for_their_owner_and_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, "first").unwrap();
        write(&path, "second").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("second"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_that_differ_only_in_their_extension_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("key.new");
        write(&other, "another's").unwrap();
        write(&folder.path().join("key.a"), "a").unwrap();
        write(&folder.path().join("key.b"), "b").unwrap();
        assert_eq!(read(&other).unwrap().as_deref(), Some("another's"));
    }
}
